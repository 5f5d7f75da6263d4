// SPDX-License-Identifier: Apache-2.0
// The life cycle of a managed node, by rcl_lifecycle: its services, and the work of each transition.
#pragma once

#include <rcl_lifecycle/rcl_lifecycle.h>

#include <functional>
#include <memory>
#include <vector>

#include "rcl_entities.hpp"

namespace robo_rl_controller
{

class Lifecycle
{
public:
  /// `work` does what a transition (lifecycle_msgs/Transition) is for; false: it failed.
  Lifecycle(Node & node, std::function<bool (std::uint8_t)> work);
  ~Lifecycle();
  Lifecycle(const Lifecycle &) = delete;
  Lifecycle & operator=(const Lifecycle &) = delete;

  /// Make a transition; false: the present state has no such one, or its work failed.
  bool change(std::uint8_t transition);
  /// lifecycle_msgs/State
  std::uint8_t state() const {return static_cast<std::uint8_t>(machine_.current_state->id);}

  std::vector<std::unique_ptr<Server>> servers();

private:
  Node & node_;
  std::function<bool (std::uint8_t)> work_;
  rcl_lifecycle_state_machine_t machine_ = rcl_lifecycle_get_zero_initialized_state_machine();
};

}  // namespace robo_rl_controller
