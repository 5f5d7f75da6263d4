// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace robo_rl_controller
{

/// ROS, or what it was asked for by parameters, can't be used. The message says what, and what was expected.
class RosError : public std::runtime_error
{
public:
  using std::runtime_error::runtime_error;
};

}  // namespace robo_rl_controller
