// SPDX-License-Identifier: Apache-2.0
// From messages to the values of signals: names, frames and sizes are checked at every message. The twin of
// ros/reading.py of the Python node.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <geometry_msgs/msg/pose_stamped.hpp>
#include <geometry_msgs/msg/twist.hpp>
#include <geometry_msgs/msg/twist_stamped.hpp>
#include <nav_msgs/msg/odometry.hpp>
#include <sensor_msgs/msg/imu.hpp>
#include <sensor_msgs/msg/joint_state.hpp>
#include <sensor_msgs/msg/laser_scan.hpp>
#include <std_msgs/msg/float32_multi_array.hpp>
#include <std_msgs/msg/float64_multi_array.hpp>

#include "frames.hpp"
#include "wire.hpp"

namespace robo_rl_controller
{

/// What one field of a message is read with.
struct View
{
  const Channel & channel;
  const Wire & wire;
  const Frames & frames;
};

/// Writes the channel's elements in its order, shape and unit into `out`, which has its size; or MessageError.
template<class Message>
using Reader = std::function<void (const Message &, const View &, std::vector<float> & out)>;

/// How `field` of a message is read; RosError for one that it has not.
template<class Message>
Reader<Message> reader(const std::string & field, const std::string & signal);

/// What the robot measured, where a reader may turn it into another frame: turned anew it never repeats, even if the
/// sensor does. Nothing of other messages.
std::optional<std::array<double, 3>> measured(const nav_msgs::msg::Odometry & message, const std::string & field);
template<class Message>
std::optional<std::array<double, 3>> measured(const Message &, const std::string &)
{
  return std::nullopt;
}

/// Which of `names` is each element of the channel; MessageError where one is missing, or `count` values do not fit.
std::vector<std::size_t> places(
  const std::vector<std::string> & names, std::size_t count, const std::string & field, const Channel & channel);

/// The values of a field of a JointState.
const std::vector<double> & joint_values(const sensor_msgs::msg::JointState & message, const std::string & field);

}  // namespace robo_rl_controller
