// SPDX-License-Identifier: Apache-2.0
#include "topic_input.hpp"

#include <algorithm>

#include "../node/errors.hpp"

namespace robo_rl_controller
{
namespace
{

constexpr std::int64_t SKEW = 1000;   // µs by which clocks of two computers may differ
constexpr int COMPLAINT_PERIOD = 1000;  // ms between two complaints

template<class Message>
auto age_ns(const Message & message, const rclcpp::Time & now, int) -> decltype(message.header, std::int64_t())
{
  return (now - rclcpp::Time(message.header.stamp, now.get_clock_type())).nanoseconds();
}

template<class Message>
std::int64_t age_ns(const Message &, const rclcpp::Time &, long)
{
  return 0;
}

}  // namespace

TopicInput::TopicInput(const Channel & channel, const Wire & wire, Frames & frames, Clock clock)
: channel_(channel), wire_(wire), frames_(frames), clock_(std::move(clock)), buffer_(Reading{}) {}

template<class Message>
void TopicInput::listen(rclcpp_lifecycle::LifecycleNode & node, std::function<void (std::int64_t)> heard)
{
  const Reader<Message> read = reader<Message>(wire_.field, wire_.name);
  auto receive = [owner = weak_from_this(), &node, read, heard](const Message & message) {
      const std::shared_ptr<TopicInput> self = owner.lock();  // it may be gone while a message is on its way
      if (self == nullptr) {
        return;
      }
      Reading reading;
      reading.values.resize(self->channel_.size);
      try {
        read(message, View{self->channel_, self->wire_, self->frames_}, reading.values);
      } catch (const MessageError & error) {  // the signal grows old, and the gate acts
        RCLCPP_ERROR_THROTTLE(node.get_logger(), *node.get_clock(), COMPLAINT_PERIOD, "%s", error.what());
        return;
      }
      const std::int64_t now = self->clock_(), age = age_ns(message, node.now(), 0) / 1000;
      reading.stamp = now - (age < -SKEW ? age : std::max<std::int64_t>(0, age));
      self->buffer_.writeFromNonRT(reading);
      heard(now);
    };
  subscription_ = node.create_subscription<Message>(wire_.topic, rclcpp::QoS(1).best_effort(), receive);
}

void TopicInput::subscribe(rclcpp_lifecycle::LifecycleNode & node, std::function<void (std::int64_t)> heard)
{
  const std::string & kind = wire_.kind;
  if (kind == "nav_msgs/msg/Odometry") {
    listen<nav_msgs::msg::Odometry>(node, heard);
  } else if (kind == "sensor_msgs/msg/Imu") {
    listen<sensor_msgs::msg::Imu>(node, heard);
  } else if (kind == "geometry_msgs/msg/PoseStamped") {
    listen<geometry_msgs::msg::PoseStamped>(node, heard);
  } else if (kind == "geometry_msgs/msg/TwistStamped") {
    listen<geometry_msgs::msg::TwistStamped>(node, heard);
  } else if (kind == "geometry_msgs/msg/Twist") {
    listen<geometry_msgs::msg::Twist>(node, heard);
  } else if (kind == "sensor_msgs/msg/LaserScan" && channel_.data.scan != nullptr) {
    listen<sensor_msgs::msg::LaserScan>(node, heard);
  } else if (kind == "std_msgs/msg/Float64MultiArray") {
    listen<std_msgs::msg::Float64MultiArray>(node, heard);
  } else if (kind == "std_msgs/msg/Float32MultiArray") {
    listen<std_msgs::msg::Float32MultiArray>(node, heard);
  } else {
    throw RosError("the wire of '" + wire_.name + "' has the type " + kind + ", which this controller does not read");
  }
}

}  // namespace robo_rl_controller
