// SPDX-License-Identifier: Apache-2.0
// Ownership of what rcl has: context, node, publishers, subscriptions, services, and a set to wait on. Not rclcpp.
#pragma once

#include <rcl/error_handling.h>
#include <rcl/rcl.h>

#include <cstdint>
#include <string>
#include <vector>

#include <rosidl_typesupport_cpp/message_type_support.hpp>
#include <rosidl_typesupport_cpp/service_type_support.hpp>

#include "errors.hpp"

namespace robo_rl_controller
{

inline std::string last_error()
{
  const std::string text = rcl_get_error_string().str;
  rcl_reset_error();
  return text;
}

inline void check(rcl_ret_t returned, const std::string & what)
{
  if (returned != RCL_RET_OK) {
    throw RosError(what + ": " + last_error());
  }
}

/// For what ends: there is nothing left to do about a failure.
inline void ignore(rcl_ret_t returned) noexcept
{
  if (returned != RCL_RET_OK) {
    rcl_reset_error();
  }
}

/// Owns a context and a node.
class Node
{
public:
  Node(int argc, char ** argv, const char * usual_name);
  ~Node();
  Node(const Node &) = delete;
  Node & operator=(const Node &) = delete;

  const char * name() const {return rcl_node_get_name(&node);}
  const char * logger() const {return rcl_node_get_logger_name(&node);}

  rcl_context_t context = rcl_get_zero_initialized_context();
  rcl_node_t node = rcl_get_zero_initialized_node();
};

template<class Message>
class Publisher
{
public:
  Publisher(Node & owner, const std::string & topic, const rmw_qos_profile_t & quality)
  : node_(owner.node)
  {
    rcl_publisher_options_t options = rcl_publisher_get_default_options();
    options.qos = quality;
    check(
      rcl_publisher_init(
        &publisher_, &node_, rosidl_typesupport_cpp::get_message_type_support_handle<Message>(), topic.c_str(),
        &options), "topic '" + topic + "'");
  }
  ~Publisher() {ignore(rcl_publisher_fini(&publisher_, &node_));}
  Publisher(const Publisher &) = delete;
  Publisher & operator=(const Publisher &) = delete;

  /// Whether it left.
  bool publish(const Message & message) noexcept
  {
    const rcl_ret_t returned = rcl_publish(&publisher_, &message, nullptr);
    ignore(returned);
    return returned == RCL_RET_OK;
  }

  /// Whether somebody subscribes.
  bool is_heard() const noexcept
  {
    std::size_t count = 0;
    ignore(rcl_publisher_get_subscription_count(&publisher_, &count));
    return count > 0;
  }

private:
  rcl_node_t & node_;
  rcl_publisher_t publisher_ = rcl_get_zero_initialized_publisher();
};

/// A subscription of any type.
class Inlet
{
public:
  virtual ~Inlet() {ignore(rcl_subscription_fini(&handle, &node_));}
  Inlet(const Inlet &) = delete;
  Inlet & operator=(const Inlet &) = delete;

  /// Take the newest message, if there is one, and do with it what is to be done.
  virtual void take() = 0;

  rcl_subscription_t handle = rcl_get_zero_initialized_subscription();

protected:
  Inlet(
    Node & owner, const std::string & topic, const rosidl_message_type_support_t * type,
    const rmw_qos_profile_t & quality)
  : node_(owner.node)
  {
    rcl_subscription_options_t options = rcl_subscription_get_default_options();
    options.qos = quality;
    check(rcl_subscription_init(&handle, &node_, type, topic.c_str(), &options), "topic '" + topic + "'");
  }

private:
  rcl_node_t & node_;
};

/// Calls `receive` with every message. It keeps one, so that sequences keep their memory.
template<class Message, class Receive>
class Subscription final : public Inlet
{
public:
  Subscription(Node & owner, const std::string & topic, const rmw_qos_profile_t & quality, Receive receive)
  : Inlet(owner, topic, rosidl_typesupport_cpp::get_message_type_support_handle<Message>(), quality),
    receive_(std::move(receive))
  {
  }

  void take() override
  {
    const rcl_ret_t returned = rcl_take(&handle, &message_, nullptr, nullptr);
    if (returned == RCL_RET_OK) {
      receive_(message_);
    } else if (returned == RCL_RET_SUBSCRIPTION_TAKE_FAILED) {
      rcl_reset_error();
    } else {
      throw RosError("a message can't be read: " + last_error());
    }
  }

private:
  Message message_;
  Receive receive_;
};

/// A service of any type.
class Server
{
public:
  virtual ~Server() = default;
  virtual rcl_service_t & handle() = 0;
  /// Answer one request, if there is one.
  virtual void answer() = 0;
};

template<class Service, class Answer>
void answer_one(rcl_service_t & service, const Answer & fill)
{
  rmw_request_id_t id{};
  typename Service::Request request;
  if (rcl_take_request(&service, &id, &request) != RCL_RET_OK) {
    rcl_reset_error();
    return;
  }
  typename Service::Response response;
  fill(request, response);
  ignore(rcl_send_response(&service, &id, &response));
}

template<class Service, class Answer>
class OwnServer final : public Server
{
public:
  OwnServer(Node & owner, const std::string & name, Answer answer)
  : node_(owner.node), answer_(std::move(answer))
  {
    const rcl_service_options_t options = rcl_service_get_default_options();
    check(
      rcl_service_init(
        &service_, &node_, rosidl_typesupport_cpp::get_service_type_support_handle<Service>(), name.c_str(), &options),
      "service '" + name + "'");
  }
  ~OwnServer() override {ignore(rcl_service_fini(&service_, &node_));}

  rcl_service_t & handle() override {return service_;}
  void answer() override {answer_one<Service>(service_, answer_);}

private:
  rcl_node_t & node_;
  rcl_service_t service_ = rcl_get_zero_initialized_service();
  Answer answer_;
};

/// Wakes a thread that waits.
class Bell
{
public:
  explicit Bell(Node & owner)
  {
    check(
      rcl_guard_condition_init(&handle, &owner.context, rcl_guard_condition_get_default_options()), "guard condition");
  }
  ~Bell() {ignore(rcl_guard_condition_fini(&handle));}
  Bell(const Bell &) = delete;
  Bell & operator=(const Bell &) = delete;
  void ring() noexcept {ignore(rcl_trigger_guard_condition(&handle));}

  rcl_guard_condition_t handle = rcl_get_zero_initialized_guard_condition();
};

/// What one thread waits for: it is cleared, filled and waited on again and again.
class WaitSet
{
public:
  WaitSet(Node & owner, std::size_t subscriptions, std::size_t services)
  {
    check(
      rcl_wait_set_init(
        &set_, subscriptions, 1, 0, 0, services, 0, &owner.context, rcl_get_default_allocator()), "wait set");
  }
  ~WaitSet() {ignore(rcl_wait_set_fini(&set_));}
  WaitSet(const WaitSet &) = delete;
  WaitSet & operator=(const WaitSet &) = delete;

  /// Whether one of them has something, within `ns`. Those that have are marked in `ready`, inlets first.
  bool wait(
    const std::vector<Inlet *> & inlets, const std::vector<rcl_service_t *> & services, const Bell & bell,
    std::int64_t ns, std::vector<bool> & ready);

private:
  rcl_wait_set_t set_ = rcl_get_zero_initialized_wait_set();
};

/// Sensors and set-points: best effort, only the newest one counts.
rmw_qos_profile_t newest();
/// The last message reaches whoever comes later.
rmw_qos_profile_t latched();
/// Commands: reliable, with `deadline` s between two of them, and `lifespan` s after which one is void.
rmw_qos_profile_t commands(double deadline, double lifespan);

}  // namespace robo_rl_controller
