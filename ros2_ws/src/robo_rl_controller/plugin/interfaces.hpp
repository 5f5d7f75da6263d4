// SPDX-License-Identifier: Apache-2.0
// Which interfaces of ros2_control the signals and commands of a contract are. Needs no ROS.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "../node/wire.hpp"

namespace robo_rl_controller
{

/// Of one element of a command whose actuator has stiffness and damping as command interfaces.
struct Gains
{
  std::size_t element;
  /// In control, and in a stop by damping, where the stiffness is zero.
  double stiffness, damping, damping_in_a_stop;
};

/// What a controller claims: (M,) the elements of the commands, then stiffness and damping of each of `gains`.
struct CommandInterfaces
{
  std::vector<std::string> names;
  std::vector<Gains> gains;
};

/// The names of a signal's state interfaces; none: it comes by a topic. Those of an IMU are as in ros2_control's
/// semantic component. "force=foot state_interfaces force" stands for foot/force.x, foot/force.y, …
std::vector<std::string> state_names(const Channel & channel, const Wire & wire);

/// `wires` and `gains` are texts by the command's name. "tool_target=tool command_interfaces position" stands for
/// tool/position.x, tool/position.y, … RosError names the command, and what was expected.
CommandInterfaces command_interfaces(
  const robot_bundle & bundle, const std::map<std::string, std::string> & wires,
  const std::map<std::string, std::string> & gains);

/// As many finite numbers as `count`. RosError for another text; it begins with `where` and tells `expected`.
std::vector<double> numbers(
  const std::string & text, std::size_t count, const std::string & where, const std::string & expected);

/// RosError for a text whose name is none of the channels'.
void require_known(
  const std::map<std::string, std::string> & texts, const robot_channel * channels, std::size_t count,
  const std::string & option);

}  // namespace robo_rl_controller
