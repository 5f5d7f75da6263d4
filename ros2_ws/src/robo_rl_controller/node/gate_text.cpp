// SPDX-License-Identifier: Apache-2.0
#include "gate_text.hpp"

#include <cstdio>

#include "errors.hpp"

namespace robo_rl_controller
{
namespace
{

const char * const STATES[] = {"IDLE", "READY", "ACTIVE", "FAULT"};
const char * const SOURCES[] = {"SAFE", "START", "POLICY", "HOLD", "DAMP", "FALLBACK", "SILENT", "STOP"};
const char * const MODES[] = {"dry_run", "shadow", "blend", "live"};
const char * const REASONS[] = {
  "NONE", "OPERATOR_STOP", "BUNDLE", "CLOCK", "OVERRUN", "TOO_FAST", "OPERATOR_LOST", "SIGNAL_MISSING", "SIGNAL_STALE",
  "SIGNAL_NOT_FINITE", "SIGNAL_RANGE", "SIGNAL_NORM", "TILT", "SIGNAL_FROZEN", "COMMAND_MISSING", "COMMAND_STALE",
  "COMMAND_NOT_FINITE", "COMMAND_RANGE", "COMMAND_RATE", "NOT_READY", "ENVELOPE", "HALTED", "COLLISION"};
static_assert(
  sizeof REASONS / sizeof REASONS[0] == GATE_REASON_COLLISION + 1, "a reason of the gate has no name");

/// A text in JSON.
std::string quoted(const std::string & text)
{
  std::string told = "\"";
  for (const char letter : ascii(text)) {
    told += letter == '"' || letter == '\\' ? std::string("\\") + letter : std::string(1, letter);
  }
  return told + "\"";
}

std::string number(const char * format, double value)
{
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

const char * name_of(gate_state state)
{
  return STATES[state];
}

const char * name_of(Mode mode)
{
  return MODES[static_cast<int>(mode)];
}

const char * name_of(gate_reason reason)
{
  return REASONS[reason];
}

std::string ascii(std::string text)
{
  for (char & letter : text) {
    letter = letter < 0x20 || letter >= 0x7f ? '?' : letter;
  }
  return text;
}

Mode mode_of(const std::string & text)
{
  for (const Mode mode : {Mode::dry_run, Mode::shadow, Mode::live}) {
    if (text == name_of(mode)) {
      return mode;
    }
  }
  throw RosError(
          "parameter 'mode' is '" + text + "'; expected dry_run, shadow or live. The Python node has blend: robo-rl ros "
          "policy");
}

std::string explained(const Session & session, const gate_problem & problem)
{
  std::string text = session.explain(problem);
  if (problem.reason == GATE_REASON_OPERATOR_LOST) {
    text += "; set-points and ~/heartbeat tell that the operator is there, one of them at least every " +
      number("%g", 1e-6 * static_cast<double>(session.bundle().gate->operator_timeout)) +
      " s: start 'robo-rl ros teleop' or 'robo-rl ros panel'";
  }
  return text;
}

std::string sentence(const Session & session, const News & news)
{
  if (news.decision.problem.reason == GATE_REASON_NONE) {
    return "";
  }
  std::string text = explained(session, news.decision.problem);
  for (const std::string & more :
    {session.explain(news.decision.doubt), news.decision.problem.reason == GATE_REASON_COMMAND_MISSING ?
      session.explain(news.decision.refusal) : "", news.complaints})
  {
    text += more.empty() ? "" : "; " + more;
  }
  return text;
}

std::string gate_json(const News & news, const std::string & sentence, const std::string & policy)
{
  const Decision & decision = news.decision;
  return "{\"time\": " + number("%.6f", 1e-6 * static_cast<double>(decision.time)) +
         ", \"state\": \"" + STATES[decision.state] + "\", \"source\": \"" + SOURCES[decision.source] +
         "\", \"reason\": \"" + REASONS[decision.problem.reason] + "\", \"sentence\": " + quoted(sentence) +
         ", \"mode\": \"" + name_of(decision.mode) + "\", \"authority\": " + number("%.4f", decision.authority) +
         ", \"policy\": " + quoted(policy) + "}";
}

}  // namespace robo_rl_controller
