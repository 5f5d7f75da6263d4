// SPDX-License-Identifier: Apache-2.0
// What the node tells of itself for diagnostics.
#pragma once

#include <string>

#include <diagnostic_msgs/msg/diagnostic_array.hpp>

#include "control.hpp"

namespace robo_rl_controller
{

/// For /diagnostics: one status of the gate, and one of every topic.
diagnostic_msgs::msg::DiagnosticArray diagnostics(
  const std::string & node, const Session & session, const SignalBuffer & buffer, const Figures & figures,
  const std::string & wrong, std::int64_t now_us, std::int64_t ros_ns);

}  // namespace robo_rl_controller
