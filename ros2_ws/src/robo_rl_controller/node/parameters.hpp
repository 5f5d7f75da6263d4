// SPDX-License-Identifier: Apache-2.0
// The parameters of the node, from "--ros-args -p name:=value" and "--params-file FILE". All are read once.
#pragma once

#include <string>
#include <vector>

#include "rcl_entities.hpp"

namespace robo_rl_controller
{

/// Names and defaults are those of the Python node; what that node has and this one can't do is refused.
struct Parameters
{
  /// RosError for an unknown one, or one of another type.
  explicit Parameters(Node & node);

  std::string bundle;
  std::string digest;
  std::string robot;
  std::string mode = "dry_run";
  /// "signal=topic type field"
  std::vector<std::string> wires;
  /// "command=topic type field"
  std::vector<std::string> command_wires;
  /// "signal=1.0 0.0 …"
  std::vector<std::string> setpoints;
  /// s after which a velocity on cmd_vel counts as zero
  double cmd_vel_timeout = 0.5;
  bool use_sim_time = false;
  bool activate = false;
  /// s
  double activate_timeout = 10.0;
};

}  // namespace robo_rl_controller
