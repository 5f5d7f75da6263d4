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
const char * const POSITION = "position";

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

template<class Message>
auto frame_of(const Message & message, int) -> decltype(message.header.frame_id)
{
  return message.header.frame_id;
}

template<class Message>
std::string frame_of(const Message &, long)
{
  return "";
}

bool is_in_world(const Channel & channel)
{
  const std::size_t at = channel.frame.rfind(" to ");
  return (at == channel.frame.npos ? channel.frame : channel.frame.substr(at + 4)) == "world";
}

}  // namespace

TopicInput::TopicInput(
  const Channel & channel, const gate_watch & watch, const Wire & wire, std::shared_ptr<Frames> frames, Clock clock)
: channel_(channel), wire_(wire), sensor_(watch.sensor), noisy_(watch.sensor && watch.noisy),
  frames_(std::move(frames)), clock_(std::move(clock)), buffer_(Reading{})
{
  frames_->drives = frames_->drives || (sensor_ && channel_.name == POSITION);
}

void TopicInput::note_frame(const std::string & frame_id)
{
  if (frame_id.empty() || !is_in_world(channel_)) {
    return;
  }
  frame_id_ = frame_id;
  if (frames_->world.empty() && sensor_ && channel_.name == POSITION) {
    frames_->world = frame_id;
    for (const std::function<void ()> & check : frames_->when_known) {
      check();
    }
  }
}

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
        read(message, View{self->channel_, self->wire_, *self->frames_}, reading.values);
      } catch (const MessageError & error) {  // the signal grows old, and the gate acts
        RCLCPP_ERROR_THROTTLE(node.get_logger(), *node.get_clock(), COMPLAINT_PERIOD, "%s", error.what());
        return;
      }
      const auto numbers = measured(message, self->wire_.field);
      const bool repeats = self->noisy_ && numbers && numbers == self->before_;
      self->before_ = numbers;
      if (repeats) {  // it grows old
        RCLCPP_ERROR_THROTTLE(
          node.get_logger(), *node.get_clock(), COMPLAINT_PERIOD, "'%s' repeats bit for bit in the robot's frame",
          self->channel_.name.c_str());
        return;
      }
      self->note_frame(frame_of(message, 0));
      const std::int64_t now = self->clock_(), age = age_ns(message, node.now(), 0) / 1000;
      reading.stamp = now - (age < -SKEW ? age : std::max<std::int64_t>(0, age));
      self->buffer_.writeFromNonRT(reading);
      heard(now);
    };
  if (is_in_world(channel_)) {
    frames_->when_known.push_back(
      [owner = weak_from_this()] {
        const std::shared_ptr<TopicInput> self = owner.lock();
        const std::string frame = self == nullptr ? "" : self->frame_id_;
        if (!frame.empty() && stripped(frame) != stripped(self->frames_->world)) {
          self->buffer_.writeFromNonRT(Reading{});  // it was meant in another frame
        }
      });
  }
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
