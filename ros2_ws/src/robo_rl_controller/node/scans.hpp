// SPDX-License-Identifier: Apache-2.0
// From sensor_msgs/LaserScan to a contract's scan: by angle, so that one policy serves lidars of any resolution. The
// twin of deploy/robot/scans.py.
#pragma once

#include <vector>

#include <sensor_msgs/msg/laser_scan.hpp>

#include "wire.hpp"

namespace robo_rl_controller
{

/// What the contract's beams measure, in m, into `out`, which has their number. MessageError if the message does not
/// tell.
void ranges_of(
  const sensor_msgs::msg::LaserScan & message, const Channel & channel, const Wire & wire, std::vector<float> & out);

}  // namespace robo_rl_controller
