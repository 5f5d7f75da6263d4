// SPDX-License-Identifier: Apache-2.0
#include "status.hpp"

#include <cmath>
#include <cstdio>

namespace robo_rl_controller
{
namespace
{

std::string number(const char * format, double value)
{
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

void tell(diagnostic_msgs::msg::DiagnosticStatus & status, const char * key, const std::string & value)
{
  auto & told = status.values.emplace_back();
  told.key = key;
  told.value = value;
}

}  // namespace

diagnostic_msgs::msg::DiagnosticArray diagnostics(
  const std::string & node, const Session & session, const SignalBuffer & buffer, const Figures & figures,
  const std::string & wrong, std::int64_t now_us, std::int64_t ros_ns)
{
  using diagnostic_msgs::msg::DiagnosticStatus;
  diagnostic_msgs::msg::DiagnosticArray array;
  array.header.stamp.sec = static_cast<std::int32_t>(ros_ns / 1000000000);
  array.header.stamp.nanosec = static_cast<std::uint32_t>(ros_ns % 1000000000);
  DiagnosticStatus & gate = array.status.emplace_back();
  const robot_bundle & bundle = session.bundle();
  gate.name = node + ": gate";
  gate.level = wrong.empty() ? DiagnosticStatus::OK : DiagnosticStatus::ERROR;
  gate.message = wrong.empty() ? "well" : wrong;
  gate.hardware_id = std::string(bundle.bundle_digest).substr(0, 12);
  tell(gate, "task", bundle.task);
  tell(gate, "robot", bundle.robot);
  tell(gate, "digest", bundle.bundle_digest);
  tell(gate, "rate Hz", number("%.3f", figures.rate));
  tell(gate, "longest interval ms", number("%.3f", 1e3 * figures.longest));
  tell(gate, "inference p99 ms", number("%.3f", 1e3 * figures.update_p99));
  tell(gate, "step to command p99 ms", number("%.3f", 1e3 * figures.sent_p99));
  tell(gate, "steps", std::to_string(figures.steps));
  tell(gate, "missed periods", std::to_string(figures.missed));
  tell(gate, "rate-limited steps", std::to_string(figures.limited));
  for (const Arrivals & topic : buffer.arrivals()) {
    DiagnosticStatus & status = array.status.emplace_back();
    const double silence = topic.last < 0.0 ? INFINITY : 1e-6 * static_cast<double>(now_us) - topic.last;
    const std::string trouble = !topic.complaint.empty() ? topic.complaint : topic.count == 0 ? "nothing has arrived" : "";
    status.name = node + ": " + topic.topic;
    status.level = trouble.empty() ? DiagnosticStatus::OK : DiagnosticStatus::ERROR;
    status.message = trouble.empty() ? "arrives" : trouble;
    tell(status, "rate Hz", topic.interval > 0.0 ? number("%.1f", 1.0 / topic.interval) : "unknown");
    tell(status, "age on arrival ms", number("%.1f", 1e3 * topic.age));
    tell(status, "last arrival s ago", number("%.3f", silence));
    tell(status, "messages", std::to_string(topic.count));
  }
  return array;
}

}  // namespace robo_rl_controller
