// SPDX-License-Identifier: Apache-2.0
#include "status_topics.hpp"

#include <cmath>
#include <map>

#if __has_include(<robo_rl_msgs/msg/gate_status.h>)
#define HAS_MESSAGES
#include <robo_rl_msgs/msg/channel.h>
#include <robo_rl_msgs/msg/contract.h>
#include <robo_rl_msgs/msg/decision.h>
#include <robo_rl_msgs/msg/gate_status.h>
#include <robo_rl_msgs/msg/policy_status.h>
#include <robo_rl_msgs/srv/select_policy.h>
#include <rosidl_runtime_c/primitives_sequence_functions.h>
#include <rosidl_runtime_c/string_functions.h>

#include <algorithm>
#include <new>
#endif

namespace robo_rl_controller
{

#ifdef HAS_MESSAGES
namespace
{

/// A message of rosidl's C, which has its memory by two functions.
template<class Message, bool (* init)(Message *), void (* fini)(Message *)>
struct Owned : Message
{
  Owned()
  {
    if (!init(this)) {
      throw std::bad_alloc();
    }
  }
  ~Owned() {fini(this);}
  Owned(const Owned &) = delete;
  Owned & operator=(const Owned &) = delete;
};

#define OWNED(kind, name) Owned<robo_rl_msgs__ ## kind ## __ ## name, robo_rl_msgs__ ## kind ## __ ## name ## __init, \
    robo_rl_msgs__ ## kind ## __ ## name ## __fini>
using Contract = OWNED(msg, Contract);
using DecisionMessage = OWNED(msg, Decision);
using GateStatus = OWNED(msg, GateStatus);
using PolicyStatus = OWNED(msg, PolicyStatus);
struct SelectPolicy
{
  using Request = OWNED(srv, SelectPolicy_Request);
  using Response = OWNED(srv, SelectPolicy_Response);
};
#undef OWNED

void ensure(bool done)
{
  if (!done) {
    throw std::bad_alloc();
  }
}

void set(rosidl_runtime_c__String & text, const std::string & value)
{
  ensure(rosidl_runtime_c__String__assignn(&text, value.data(), value.size()));
}

void set(rosidl_runtime_c__String__Sequence & texts, const std::vector<std::string> & values)
{
  ensure(rosidl_runtime_c__String__Sequence__init(&texts, values.size()));
  for (std::size_t i = 0; i < values.size(); i++) {
    set(texts.data[i], ascii(values[i]));
  }
}

void set(rosidl_runtime_c__float__Sequence & numbers, const float * from, std::size_t size)
{
  ensure(rosidl_runtime_c__float__Sequence__init(&numbers, size));
  std::copy(from, from + size, numbers.data);
}

template<class Time>
void stamp(Time & time, std::int64_t ros_ns)
{
  time.sec = static_cast<std::int32_t>(ros_ns / 1000000000);
  time.nanosec = static_cast<std::uint32_t>(ros_ns % 1000000000);
}

/// `channel` with its bounds, and where it is by its wire, if it has one.
void describe(
  robo_rl_msgs__msg__Channel & told, const robot_channel & channel, const float * lower, const float * upper,
  const std::map<std::string, std::string> & wires)
{
  set(told.name, channel.name);
  set(told.elements, Channel(channel).elements);
  ensure(rosidl_runtime_c__uint32__Sequence__init(&told.shape, channel.rank));
  std::copy(channel.shape, channel.shape + channel.rank, told.shape.data);
  set(told.unit, channel.unit);
  set(told.frame, channel.frame);
  set(told.source, channel.source);
  set(told.lower, lower + channel.offset, channel.size);
  set(told.upper, upper + channel.offset, channel.size);
  if (const auto found = wires.find(channel.name); found != wires.end()) {
    const Wire wire(channel.name, found->second);
    set(told.topic, wire.topic);
    set(told.type, wire.kind);
    set(told.field, wire.field);
  }
}

float known(double figure, bool is_known)
{
  return is_known ? static_cast<float>(figure) : NAN;
}

}  // namespace
}  // namespace robo_rl_controller

namespace rosidl_typesupport_cpp
{

using namespace robo_rl_controller;
#define SUPPORT(name, message) \
  template<> const rosidl_message_type_support_t * get_message_type_support_handle<name>() \
  {return ROSIDL_GET_MSG_TYPE_SUPPORT(robo_rl_msgs, msg, message);}
SUPPORT(Contract, Contract)
SUPPORT(DecisionMessage, Decision)
SUPPORT(GateStatus, GateStatus)
SUPPORT(PolicyStatus, PolicyStatus)
#undef SUPPORT
template<> const rosidl_service_type_support_t * get_service_type_support_handle<SelectPolicy>()
{
  return ROSIDL_GET_SRV_TYPE_SUPPORT(robo_rl_msgs, srv, SelectPolicy);
}

}  // namespace rosidl_typesupport_cpp

namespace robo_rl_controller
{

const bool StatusTopics::on = true;

struct StatusTopics::Topics
{
  explicit Topics(Node & node)
  : gate(node, "~/gate_status", latched()), contract(node, "~/policy_contract", latched()),
    status(node, "~/status", latched()) {}

  Publisher<GateStatus> gate;
  Publisher<Contract> contract;
  Publisher<PolicyStatus> status;
};

StatusTopics::StatusTopics(Node & node)
: node_(node), topics_(std::make_unique<Topics>(node)) {}

std::unique_ptr<Server> StatusTopics::server(Select select)
{
  auto answer = [select](const SelectPolicy::Request & request, SelectPolicy::Response & response) {
      std_srvs::srv::Trigger::Response told;
      select(request.name.data, told);
      response.success = told.success;
      set(response.message, told.message);
    };
  return std::make_unique<OwnServer<SelectPolicy, decltype(answer)>>(node_, "~/select_policy", answer);
}

void StatusTopics::gate(
  const News & news, const std::string & sentence, const std::string & policy, std::int64_t ros_ns)
{
  const Decision & decision = news.decision;
  GateStatus message;
  stamp(message.stamp, ros_ns);
  message.time = static_cast<double>(decision.time) / 1e6;
  message.state = decision.state;
  message.source = decision.source;
  message.reason = decision.problem.reason;
  set(message.reason_name, name_of(static_cast<gate_reason>(decision.problem.reason)));
  set(message.sentence, ascii(sentence));
  set(message.mode, name_of(decision.mode));
  message.authority = static_cast<float>(decision.authority);
  set(message.policy, ascii(policy));
  topics_->gate.publish(message);
}

void StatusTopics::contract(const robot_bundle & bundle, const std::vector<std::string> & wires)
{
  const auto texts = texts_by_name(wires, "wires");
  const gate_config & gate = *bundle.gate;
  Contract message;
  set(message.digest, bundle.bundle_digest);
  set(message.task, bundle.task);
  set(message.robot, bundle.robot);
  message.control_period = bundle.control_period;
  message.signal_timeout = 1e-6 * static_cast<double>(gate.timeout);
  ensure(robo_rl_msgs__msg__Channel__Sequence__init(&message.signals, gate.signal_count));
  for (std::size_t i = 0; i < gate.signal_count; i++) {
    describe(message.signals.data[i], bundle.signals[i], gate.signal_lower, gate.signal_upper, texts);
  }
  ensure(robo_rl_msgs__msg__Channel__Sequence__init(&message.commands, gate.command_count));
  for (std::size_t i = 0; i < gate.command_count; i++) {
    describe(message.commands.data[i], bundle.commands[i], gate.command_lower, gate.command_upper, texts);
  }
  set(message.json, bundle.contract);
  topics_->contract.publish(message);
}

void StatusTopics::status(
  const Decision & decision, const Figures & figures, const std::string & policy,
  const std::vector<std::string> & complaints, std::int64_t ros_ns)
{
  PolicyStatus message;
  stamp(message.stamp, ros_ns);
  set(message.policy, ascii(policy));
  set(message.policies, std::vector<std::string>{policy});
  set(message.mode, name_of(decision.mode));
  message.state = decision.state;
  message.steps = static_cast<std::uint64_t>(figures.steps);
  message.missed_periods = static_cast<std::uint64_t>(figures.missed);
  message.rate_limited_steps = static_cast<std::uint64_t>(figures.limited);
  const bool enough = figures.steps > 1;
  message.rate = known(figures.rate, enough);
  message.longest_interval = known(figures.longest, enough);
  message.inference_p50 = known(figures.update_p50, enough);
  message.inference_p99 = known(figures.update_p99, enough);
  message.step_to_command_p99 = known(figures.sent_p99, enough);
  set(message.complaints, complaints);
  topics_->status.publish(message);
}

struct DecisionTopic::Topic
{
  Topic(Node & node, std::size_t size)
  : command_size(size), publisher(node, "~/decision", newest())
  {
    ensure(rosidl_runtime_c__float__Sequence__init(&message.command, size));
    ensure(rosidl_runtime_c__float__Sequence__init(&message.proposal, size));
  }

  void fill(rosidl_runtime_c__float__Sequence & numbers, const float * from) const noexcept
  {
    numbers.size = from == nullptr ? 0 : command_size;
    std::copy(from, from + numbers.size, numbers.data);
  }

  std::size_t command_size;
  DecisionMessage message;
  Publisher<DecisionMessage> publisher;
};

DecisionTopic::DecisionTopic(Node & node, std::size_t command_size)
: topic_(std::make_unique<Topic>(node, command_size)) {}

void DecisionTopic::send(const Decision & decision, double inference, std::int64_t ros_ns) noexcept
{
  if (!topic_->publisher.is_heard()) {
    return;
  }
  DecisionMessage & message = topic_->message;
  stamp(message.stamp, ros_ns);
  message.time = static_cast<double>(decision.time) / 1e6;
  message.state = decision.state;
  message.source = decision.source;
  message.reason = decision.problem.reason;
  topic_->fill(message.command, decision.send);
  topic_->fill(message.proposal, decision.policy);
  message.authority = static_cast<float>(decision.authority);
  message.inference = static_cast<float>(inference);
  message.rate_limited = (decision.events & GATE_EVENT_RATE_LIMITED) != 0;
  topic_->publisher.publish(message);
}

#else

const bool StatusTopics::on = false;
struct StatusTopics::Topics {};
struct DecisionTopic::Topic {};
StatusTopics::StatusTopics(Node & node)
: node_(node) {}
std::unique_ptr<Server> StatusTopics::server(Select) {return nullptr;}
void StatusTopics::gate(const News &, const std::string &, const std::string &, std::int64_t) {}
void StatusTopics::contract(const robot_bundle &, const std::vector<std::string> &) {}
void StatusTopics::status(
  const Decision &, const Figures &, const std::string &, const std::vector<std::string> &, std::int64_t) {}
DecisionTopic::DecisionTopic(Node &, std::size_t) {}
void DecisionTopic::send(const Decision &, double, std::int64_t) noexcept {}

#endif

StatusTopics::~StatusTopics() = default;
DecisionTopic::~DecisionTopic() = default;

}  // namespace robo_rl_controller
