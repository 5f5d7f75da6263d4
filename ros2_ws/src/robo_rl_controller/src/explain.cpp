// SPDX-License-Identifier: Apache-2.0
// What a session tells an operator. The sentences about problems are those of controllers/gate/codes.py.
#include <cmath>
#include <cstdio>

#include "robo_rl_controller/session.hpp"

namespace robo_rl_controller
{
namespace
{

/// In the order of enum gate_reason.
const char * const MEANING[] = {
  "nothing is wrong",
  "the operator asked to stop",
  "the bundle is no longer the one that was verified",
  "a time lies in the future, or time ran backwards",
  "the control steps are too far behind their schedule",
  "the control steps come faster than the contract's rate",
  "no heartbeat from the operator",
  "it never arrived",
  "it is too old",
  "it is not a finite number",
  "it is outside the contract's range",
  "its norm is not 1",
  "the robot is tilted beyond the contract's limit",
  "it repeats bit for bit under new stamps",
  "the policy gave no command",
  "the policy's command is too old",
  "the policy's command is not a finite number",
  "the policy's command is outside the contract's range",
  "the rate limit has cut the policy's command for too long",
  "the gate is not armed, or the start pose is not reached",
  "it is outside the contract's envelope, where the robot may be",
  "the program around the gate stopped the robot",
  "what it sees in the way is nearer than the contract's time to collision",
};
static_assert(
  sizeof MEANING / sizeof MEANING[0] == GATE_REASON_COLLISION + 1, "a reason of the gate has no sentence");

bool is_about_signal(std::uint8_t reason)
{
  return (reason >= GATE_REASON_SIGNAL_MISSING && reason <= GATE_REASON_SIGNAL_FROZEN) ||
         reason == GATE_REASON_CLOCK || reason == GATE_REASON_ENVELOPE || reason == GATE_REASON_COLLISION;
}

std::string element_of(const robot_channel & channel, std::int16_t element)
{
  return channel.elements == nullptr ? std::to_string(element) : channel.elements[element];
}

}  // namespace

std::string Session::explain(const gate_problem & problem) const
{
  const std::string meaning = MEANING[problem.reason];
  if (problem.channel < 0) {
    return meaning;
  }
  const bool signal = is_about_signal(problem.reason);
  const robot_channel & channel = (signal ? bundle_.signals : bundle_.commands)[problem.channel];
  const std::string element =
    problem.element < 0 ? "" : ", element '" + element_of(channel, problem.element) + "'";
  return std::string(signal ? "signal '" : "command '") + channel.name + "'" + element + ": " + meaning;
}

std::string Session::explain(const Refusal & refusal) const
{
  if (refusal.kind == Refusal::Kind::none) {
    return "";
  }
  if (refusal.kind == Refusal::Kind::not_finite) {
    return "the policy gives no finite commands";
  }
  const robot_channel & channel = bundle_.signals[refusal.signal];
  const std::string name = std::string("signal '") + channel.name + "' ";
  switch (refusal.kind) {
    case Refusal::Kind::missing:
      return name + "is missing";
    case Refusal::Kind::norm:
      return name + "has a norm that is not 1";
    case Refusal::Kind::late:
      return name + "is too old, or was never measured";
    default:
      return name + "is out of range at '" + element_of(channel, refusal.element) + "', or not a finite number";
  }
}

std::string Session::explain(const Doubt & doubt) const
{
  if (doubt.kind == Doubt::Kind::none) {
    return "";
  }
  const robot_channel & channel = bundle_.signals[doubt.signal];
  const std::string name = std::string("signal '") + channel.name + "'";
  char text[200];
  if (doubt.kind == Doubt::Kind::jump) {
    std::snprintf(
      text, sizeof text, " turned by %.0f degrees in %.0f ms; the robot can turn at %.0f rad/s. ",
      doubt.angle * 180.0 / M_PI, 1e3 * doubt.passed, bundle_.fastest);
    return name + text + "Is its order x, y, z, w?";
  }
  std::snprintf(
    text, sizeof text, " is %.2f, which is outside of the range seen in training. ", static_cast<double>(doubt.value));
  return name + ": " + element_of(channel, doubt.element) + text + "Is its order x, y, z, w, and is the robot upright?";
}

}  // namespace robo_rl_controller
