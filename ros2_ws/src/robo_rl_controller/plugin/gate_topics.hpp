// SPDX-License-Identifier: Apache-2.0
// What the plug-ins on rclcpp tell: the gate and the contract, in messages of robo_rl_msgs. The twin of
// node/status_topics.hpp.
//
// The topics gate and contract have the same as JSON in texts; they are deprecated, and stay for one release.
#pragma once

#include <string>
#include <vector>

#include <rclcpp_lifecycle/lifecycle_node.hpp>
#include <robo_rl_msgs/msg/contract.hpp>
#include <robo_rl_msgs/msg/gate_status.hpp>
#include <std_msgs/msg/string.hpp>

#include "../node/gate_text.hpp"

namespace robo_rl_controller
{

class GateTopics
{
public:
  /// `prefix` is put before the topics' names: "~/", or "~/NAME/" in a node of others. `library` is the bundle's path,
  /// whose name is the policy's.
  GateTopics(rclcpp_lifecycle::LifecycleNode & node, const std::string & prefix, const std::string & library);

  /// What is read and commanded, and where: `wires` are texts "name=topic type field".
  void contract(const robot_bundle & bundle, const std::vector<std::string> & wires);
  /// The gate has changed, at `now` of the node's clock.
  void gate(const News & news, const std::string & sentence, const rclcpp::Time & now);

private:
  // By the base of lifecycle publishers, which sends in every state of the node.
  template<class Message>
  using Publisher = typename rclcpp::Publisher<Message>::SharedPtr;

  std::string policy_;
  Publisher<robo_rl_msgs::msg::GateStatus> status_;
  Publisher<robo_rl_msgs::msg::Contract> contract_;
  Publisher<std_msgs::msg::String> gate_json_, contract_json_;
};

}  // namespace robo_rl_controller
