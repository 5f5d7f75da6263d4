// SPDX-License-Identifier: Apache-2.0
#include "rcl_entities.hpp"

#include <rcl/logging.h>
#include <rcl/logging_rosout.h>

#include <algorithm>
#include <cmath>

namespace robo_rl_controller
{

Node::Node(int argc, char ** argv, const char * usual_name)
{
  const rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  check(rcl_init_options_init(&options, allocator), "ROS 2 does not start");
  const rcl_ret_t begun = rcl_init(argc, argv, &options, &context);
  ignore(rcl_init_options_fini(&options));
  check(begun, "ROS 2 does not start");
  check(rcl_logging_configure(&context.global_arguments, &allocator), "logging does not start");
  rcl_node_options_t node_options = rcl_node_get_default_options();
  const rcl_ret_t made = rcl_node_init(&node, usual_name, "", &context, &node_options);
  ignore(rcl_node_options_fini(&node_options));
  check(made, "the node does not start");
}

Node::~Node()
{
  ignore(rcl_node_fini(&node));
  ignore(rcl_logging_fini());
  ignore(rcl_shutdown(&context));
  ignore(rcl_context_fini(&context));
}

bool WaitSet::wait(
  const std::vector<Inlet *> & inlets, const std::vector<rcl_service_t *> & services, const Bell & bell,
  std::int64_t ns, std::vector<bool> & ready)
{
  std::fill(ready.begin(), ready.end(), false);
  check(rcl_wait_set_clear(&set_), "wait set");
  for (const Inlet * inlet : inlets) {
    check(rcl_wait_set_add_subscription(&set_, &inlet->handle, nullptr), "wait set");
  }
  for (const rcl_service_t * service : services) {
    check(rcl_wait_set_add_service(&set_, service, nullptr), "wait set");
  }
  check(rcl_wait_set_add_guard_condition(&set_, &bell.handle, nullptr), "wait set");
  const rcl_ret_t returned = rcl_wait(&set_, std::max<std::int64_t>(0, ns));
  if (returned == RCL_RET_TIMEOUT) {
    rcl_reset_error();
    return false;
  }
  check(returned, "waiting");
  for (std::size_t i = 0; i < inlets.size(); i++) {
    ready[i] = set_.subscriptions[i] != nullptr;
  }
  for (std::size_t i = 0; i < services.size(); i++) {
    ready[inlets.size() + i] = set_.services[i] != nullptr;
  }
  return true;
}

rmw_qos_profile_t newest()
{
  rmw_qos_profile_t quality = rmw_qos_profile_default;
  quality.depth = 1;
  quality.reliability = RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
  return quality;
}

rmw_qos_profile_t latched()
{
  rmw_qos_profile_t quality = rmw_qos_profile_default;
  quality.depth = 1;
  quality.durability = RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL;
  return quality;
}

static rmw_time_t duration(double seconds)
{
  const double whole = std::floor(seconds);
  return {static_cast<std::uint64_t>(whole), static_cast<std::uint64_t>(std::lround(1e9 * (seconds - whole)))};
}

rmw_qos_profile_t commands(double deadline, double lifespan)
{
  rmw_qos_profile_t quality = rmw_qos_profile_default;
  quality.depth = 1;
  quality.deadline = duration(deadline);
  quality.lifespan = duration(lifespan);
  return quality;
}

}  // namespace robo_rl_controller
