// Subscribes to measured joints on /measured_joint_states and publishes all joints on /joint_states, the passive ones too,
// and poses of floating links as transforms.
#include <geometry_msgs/msg/transform_stamped.hpp>
#include <rclcpp/rclcpp.hpp>
#include <sensor_msgs/msg/joint_state.hpp>
#include <tf2_ros/transform_broadcaster.h>

#include <cstdio>

#include "machine.h"
#include "passive_joints.h"

class PassiveJoints : public rclcpp::Node {
public:
    PassiveJoints() : Node("passive_joints"), transforms_(*this) {
        passive_joints_start(&state_);
        publisher_ = create_publisher<sensor_msgs::msg::JointState>("joint_states", rclcpp::SensorDataQoS().reliable());
        subscription_ = create_subscription<sensor_msgs::msg::JointState>(
            "measured_joint_states", rclcpp::SensorDataQoS(),
            [this](const sensor_msgs::msg::JointState &measured) { publish(measured); });
    }

private:
    void publish(const sensor_msgs::msg::JointState &measured) {
        const std::size_t count = std::min(measured.name.size(), measured.position.size());
        for (std::size_t k = 0; k < count; ++k) passive_joints_take(&state_, measured.name[k].c_str(), measured.position[k]);
        sensor_msgs::msg::JointState all;
        all.header = measured.header;
        all.name.assign(machine_joint_names, machine_joint_names + MACHINE_JOINTS);
        all.position.resize(MACHINE_JOINTS);
        const int fault = passive_joints_compute(&state_, all.position.data());
        if (fault == 0) {
            publisher_->publish(all);
            for (int k = 0; k < MACHINE_FLOATING; ++k) place(measured.header.stamp, k);
        } else {
            RCLCPP_WARN_THROTTLE(get_logger(), *get_clock(), 2000, "%s",
                                 fault == 1 ? "not all driven joints were measured yet"
                                            : "the loops cannot be closed at the measured joints: out of reach, or singular");
        }
    }

    void place(const builtin_interfaces::msg::Time &stamp, int k) {
        double pose[7];
        passive_joints_floating(&state_, k, pose);
        geometry_msgs::msg::TransformStamped link;
        link.header.stamp = stamp;
        link.header.frame_id = machine_floating[k].parent;
        link.child_frame_id = machine_floating[k].child;
        link.transform.translation.x = pose[0];
        link.transform.translation.y = pose[1];
        link.transform.translation.z = pose[2];
        link.transform.rotation.w = pose[3];
        link.transform.rotation.x = pose[4];
        link.transform.rotation.y = pose[5];
        link.transform.rotation.z = pose[6];
        transforms_.sendTransform(link);
    }

    passive_joints state_;
    tf2_ros::TransformBroadcaster transforms_;
    rclcpp::Publisher<sensor_msgs::msg::JointState>::SharedPtr publisher_;
    rclcpp::Subscription<sensor_msgs::msg::JointState>::SharedPtr subscription_;
};

int main(int count, char **arguments) {
    if (machine_check_parameters(MACHINE_PARAMETER_HASH) != 0) {
        std::fprintf(stderr, "passive_joints: the parameters in this program are damaged: build it again\n");
        return 1;
    }
    rclcpp::init(count, arguments);
    rclcpp::spin(std::make_shared<PassiveJoints>());
    rclcpp::shutdown();
    return 0;
}
