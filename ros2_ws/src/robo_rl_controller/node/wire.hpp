// SPDX-License-Identifier: Apache-2.0
// Which topic, message type and field each signal comes from and each command goes to.
//
// A wire is one text, as in the Python node: "odom nav_msgs/msg/Odometry position". It may go on with "frame=cf231",
// where that is the contract's frame by another name, and of a LaserScan with "yaw=1.5708 roll=3.1416 nothing=nan".
// "robo-rl ros native" writes the wires of a bundle into a file of parameters.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "robot.h"

namespace robo_rl_controller
{

struct Wire
{
  /// RosError names the signal or command, and what was expected.
  Wire(const std::string & name, const std::string & text);

  std::string name, topic, kind, field;
  /// A frame_id that is the contract's frame by another name.
  std::string frame;
  /// rad, of a lidar about the robot's z axis
  double yaw = 0.0;
  bool upside_down = false;
  /// What a lidar gives where nothing is within its range, beside infinity.
  bool zero_is_nothing = true, nan_is_nothing = false, max_is_nothing = false;
};

/// A signal or command as the contract has it.
struct Channel
{
  explicit Channel(const robot_channel & given);

  std::string name;
  std::vector<std::string> elements;
  std::string frame;
  std::size_t size;
  std::size_t offset;
  const robot_channel & data;
};

/// Texts by name out of entries "name=text"; empty entries are skipped. RosError names `option` for another one.
std::map<std::string, std::string> texts_by_name(const std::vector<std::string> & entries, const std::string & option);

}  // namespace robo_rl_controller
