// The parts of ros2_control's interface that an exported transmission uses, written for the tests.
#pragma once
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace hardware_interface
{
constexpr char HW_IF_POSITION[] = "position";
constexpr char HW_IF_VELOCITY[] = "velocity";
constexpr char HW_IF_EFFORT[] = "effort";
struct JointInfo
{
  std::string name;
  double mechanical_reduction = 1.0;
  double offset = 0.0;
};
struct ActuatorInfo
{
  std::string name;
  double mechanical_reduction = 1.0;
  double offset = 0.0;
};
struct TransmissionInfo
{
  std::vector<JointInfo> joints;
  std::vector<ActuatorInfo> actuators;
};
}  // namespace hardware_interface

namespace transmission_interface
{
class Exception : public std::runtime_error
{
public:
  using std::runtime_error::runtime_error;
};
class Handle
{
public:
  Handle(const std::string & prefix, const std::string & interface, double * value)
  : prefix_(prefix), interface_(interface), value_(value)
  {
  }
  const std::string & get_prefix_name() const { return prefix_; }
  const std::string & get_interface_name() const { return interface_; }
  double get_value() const { return *value_; }
  bool set_value(double value)
  {
    *value_ = value;
    return true;
  }

private:
  std::string prefix_, interface_;
  double * value_;
};
class JointHandle : public Handle
{
public:
  using Handle::Handle;
};
class ActuatorHandle : public Handle
{
public:
  using Handle::Handle;
};
class Transmission
{
public:
  virtual ~Transmission() = default;
  virtual void configure(
    const std::vector<JointHandle> & joints, const std::vector<ActuatorHandle> & actuators) = 0;
  virtual void actuator_to_joint() = 0;
  virtual void joint_to_actuator() = 0;
  virtual std::size_t num_actuators() const = 0;
  virtual std::size_t num_joints() const = 0;
};
class TransmissionLoader
{
public:
  virtual ~TransmissionLoader() = default;
  virtual std::shared_ptr<Transmission> load(const hardware_interface::TransmissionInfo & info) = 0;
};
}  // namespace transmission_interface

#define PLUGINLIB_EXPORT_CLASS(Class, Base) \
  std::shared_ptr<Base> made_plugin() { return std::make_shared<Class>(); }
