// SPDX-License-Identifier: Apache-2.0
// What the node tells of itself: the gate as JSON, and diagnostics.
#pragma once

#include <string>

#include <diagnostic_msgs/msg/diagnostic_array.hpp>

#include "control.hpp"

namespace robo_rl_controller
{

const char * name_of(gate_state state);
const char * name_of(Mode mode);
/// RosError for a text that is none of them.
Mode mode_of(const std::string & text);

/// A decision's problem as a sentence, with what else is known about its cause; "" if there is none.
std::string sentence(const Session & session, const News & news);

/// For the topic ~/gate.
std::string gate_json(const News & news, const std::string & sentence, const std::string & policy);

/// For /diagnostics: one status of the gate, and one of every topic.
diagnostic_msgs::msg::DiagnosticArray diagnostics(
  const std::string & node, const Session & session, const SignalBuffer & buffer, const Figures & figures,
  const std::string & wrong, std::int64_t now_us, std::int64_t ros_ns);

}  // namespace robo_rl_controller
