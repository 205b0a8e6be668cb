// Runs an exported transmission: motors to joints, and commands back, with an offset of the first joint.
#include <cstdio>

#include "transmission.cpp"

int main()
{
  hardware_interface::TransmissionInfo info;
  info.joints = {{"p", 1.0, 0.25}, {"r", 1.0, 0.0}};
  info.actuators = {{"a", 1.0, 0.0}, {"b", 1.0, 0.0}};
  auto transmission = made_plugin()->load(info);
  double joint[6] = {0}, motor[6] = {MOTORS};
  const char * const kinds[] = {"position", "velocity", "effort"};
  std::vector<transmission_interface::JointHandle> joints;
  std::vector<transmission_interface::ActuatorHandle> motors;
  for (int kind = 0; kind < 3; ++kind) {
    joints.emplace_back("r", kinds[kind], &joint[2 * kind + 1]);
    joints.emplace_back("p", kinds[kind], &joint[2 * kind]);
    motors.emplace_back("a", kinds[kind], &motor[2 * kind]);
    motors.emplace_back("b", kinds[kind], &motor[2 * kind + 1]);
  }
  transmission->configure(joints, motors);
  transmission->actuator_to_joint();
  for (double value : joint) {
    std::printf("%.17g\n", value);
  }
  for (double & value : motor) {
    value = 0.0;
  }
  transmission->joint_to_actuator();
  for (double value : motor) {
    std::printf("%.17g\n", value);
  }
  motor[0] = std::nan("");  // no state: the joints stay as they were
  transmission->actuator_to_joint();
  std::printf("%.17g\n", joint[0]);
  info.joints[0].mechanical_reduction = 2.0;
  try {
    made_plugin()->load(info);
    return 1;
  } catch (const transmission_interface::Exception & error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 0;
}
