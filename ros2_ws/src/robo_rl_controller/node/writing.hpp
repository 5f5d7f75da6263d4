// SPDX-License-Identifier: Apache-2.0
// From commands to messages, with names, stamps and frames. The twin of ros/writing.py of the Python node.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rcl_entities.hpp"
#include "wire.hpp"

namespace robo_rl_controller
{

/// One topic of commands.
class Outlet
{
public:
  virtual ~Outlet() = default;
  /// Send what of the flat `command` goes here, stamped `ns` of ROS time. Whether it left. Allocates nothing after the
  /// first time, but what the middleware does.
  virtual bool send(const float * command, std::int64_t ns) noexcept = 0;
};

/// The topics of a bundle's commands by the texts of wires, with `timeout` s until a command is void. RosError for a
/// command without a wire, or a type that does not fit.
std::vector<std::unique_ptr<Outlet>> make_outlets(
  Node & node, const robot_bundle & bundle, const std::vector<std::string> & wires, double timeout);

}  // namespace robo_rl_controller
