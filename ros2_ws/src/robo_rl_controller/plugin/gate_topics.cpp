// SPDX-License-Identifier: Apache-2.0
#include "gate_topics.hpp"

#include <map>

#include "../node/wire.hpp"

namespace robo_rl_controller
{
namespace
{

/// `channel` with its bounds, and where it is by its wire, if it has one.
robo_rl_msgs::msg::Channel described(
  const robot_channel & channel, const float * lower, const float * upper,
  const std::map<std::string, std::string> & wires)
{
  robo_rl_msgs::msg::Channel told;
  told.name = channel.name;
  told.elements = Channel(channel).elements;
  told.shape.assign(channel.shape, channel.shape + channel.rank);
  told.unit = channel.unit;
  told.frame = channel.frame;
  told.source = channel.source;
  told.lower.assign(lower + channel.offset, lower + channel.offset + channel.size);
  told.upper.assign(upper + channel.offset, upper + channel.offset + channel.size);
  if (const auto found = wires.find(channel.name); found != wires.end()) {
    const Wire wire(channel.name, found->second);
    told.topic = wire.topic;
    told.type = wire.kind;
    told.field = wire.field;
  }
  return told;
}

}  // namespace

GateTopics::GateTopics(
  rclcpp_lifecycle::LifecycleNode & node, const std::string & prefix, const std::string & library)
{
  const std::string base = library.substr(library.rfind('/') + 1);
  policy_ = ascii(base.substr(0, base.find('.')));
  const auto latched = rclcpp::QoS(1).transient_local();
  status_ = node.create_publisher<robo_rl_msgs::msg::GateStatus>(prefix + "gate_status", latched);
  contract_ = node.create_publisher<robo_rl_msgs::msg::Contract>(prefix + "policy_contract", latched);
  gate_json_ = node.create_publisher<std_msgs::msg::String>(prefix + "gate", latched);
  contract_json_ = node.create_publisher<std_msgs::msg::String>(prefix + "contract", latched);
}

void GateTopics::contract(const robot_bundle & bundle, const std::vector<std::string> & wires)
{
  const gate_config & gate = *bundle.gate;
  const auto texts = texts_by_name(wires, "parameter 'wires'");
  robo_rl_msgs::msg::Contract message;
  message.digest = bundle.bundle_digest;
  message.task = bundle.task;
  message.robot = bundle.robot;
  message.control_period = bundle.control_period;
  message.signal_timeout = 1e-6 * static_cast<double>(gate.timeout);
  for (std::size_t i = 0; i < gate.signal_count; i++) {
    message.signals.push_back(described(bundle.signals[i], gate.signal_lower, gate.signal_upper, texts));
  }
  for (std::size_t i = 0; i < gate.command_count; i++) {
    message.commands.push_back(described(bundle.commands[i], gate.command_lower, gate.command_upper, texts));
  }
  message.json = bundle.contract;
  contract_->publish(message);
  std_msgs::msg::String text;
  text.data = bundle.contract;
  contract_json_->publish(text);
}

void GateTopics::gate(const News & news, const std::string & sentence, const rclcpp::Time & now)
{
  const Decision & decision = news.decision;
  robo_rl_msgs::msg::GateStatus message;
  message.stamp = now;
  message.time = 1e-6 * static_cast<double>(decision.time);
  message.state = decision.state;
  message.source = decision.source;
  message.reason = decision.problem.reason;
  message.reason_name = name_of(static_cast<gate_reason>(decision.problem.reason));
  message.sentence = ascii(sentence);
  message.mode = name_of(decision.mode);
  message.authority = static_cast<float>(decision.authority);
  message.policy = policy_;
  status_->publish(message);
  std_msgs::msg::String text;
  text.data = gate_json(news, sentence, policy_);
  gate_json_->publish(text);
}

}  // namespace robo_rl_controller
