// SPDX-License-Identifier: Apache-2.0
// What the node tells in messages of robo_rl_msgs. The twin of ros/status_topics.py.
//
// The topics ~/gate and ~/contract have the same as JSON in texts; they are deprecated, and stay for one release. They
// are all that there is where robo_rl_msgs was not there when the node was compiled.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <std_srvs/srv/trigger.hpp>

#include "control.hpp"

namespace robo_rl_controller
{

/// The topics ~/gate_status, ~/policy_contract and ~/status, the service ~/select_policy.
class StatusTopics
{
public:
  /// Whether there are messages for them; without, nothing of the following does anything.
  static const bool on;

  explicit StatusTopics(Node & node);
  ~StatusTopics();

  /// Switches to a policy by name.
  using Select = std::function<void (const std::string & name, std_srvs::srv::Trigger::Response & told)>;
  /// ~/select_policy; nothing without messages.
  std::unique_ptr<Server> server(Select select);

  /// The gate has changed, at `ros_ns`.
  void gate(const News & news, const std::string & sentence, const std::string & policy, std::int64_t ros_ns);
  /// What is read and commanded, and where: `wires` are texts "name=topic type field".
  void contract(const robot_bundle & bundle, const std::vector<std::string> & wires);
  /// Once a second.
  void status(
    const Decision & decision, const Figures & figures, const std::string & policy,
    const std::vector<std::string> & complaints, std::int64_t ros_ns);

private:
  struct Topics;
  Node & node_;
  std::unique_ptr<Topics> topics_;
};

/// The topic ~/decision, for the control thread: it allocates nothing, but what the middleware does.
class DecisionTopic
{
public:
  DecisionTopic(Node & node, std::size_t command_size);
  ~DecisionTopic();

  /// One step, for whoever subscribes; `inference` in s.
  void send(const Decision & decision, double inference, std::int64_t ros_ns) noexcept;

private:
  struct Topic;
  std::unique_ptr<Topic> topic_;
};

}  // namespace robo_rl_controller
