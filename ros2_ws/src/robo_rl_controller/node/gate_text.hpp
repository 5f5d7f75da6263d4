// SPDX-License-Identifier: Apache-2.0
// What the gate decided, as texts. Not for the control thread: they allocate.
#pragma once

#include <string>

#include "robo_rl_controller/session.hpp"

namespace robo_rl_controller
{

/// A step as another thread sees it: its arrays must not be read.
struct News
{
  Decision decision;
  /// What else is known of its problem: why messages are refused.
  std::string complaints;
};

const char * name_of(gate_state state);
const char * name_of(Mode mode);
const char * name_of(gate_reason reason);
/// RosError for a text that is none of them.
Mode mode_of(const std::string & text);

/// A problem as a sentence, and, where the operator is not heard, by what it is.
std::string explained(const Session & session, const gate_problem & problem);

/// A decision's problem as a sentence, with what else is known about its cause; "" if there is none.
std::string sentence(const Session & session, const News & news);

/// With "?" in place of what is not printable ASCII: it may be half a letter, of a message's text that was cut.
std::string ascii(std::string text);

/// For the topic ~/gate.
std::string gate_json(const News & news, const std::string & sentence, const std::string & policy);

}  // namespace robo_rl_controller
