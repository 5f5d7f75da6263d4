// SPDX-License-Identifier: Apache-2.0
// Values of ros2_control's interfaces, whichever release it is: since 4.27 they may be refused, and are optional.
#pragma once

#include <limits>

namespace robo_rl_controller
{

template<class Interface>
auto value_of(const Interface & interface, int) -> decltype(interface.get_optional(), double())
{
  return interface.get_optional().value_or(std::numeric_limits<double>::quiet_NaN());
}

template<class Interface>
double value_of(const Interface & interface, long)
{
  return interface.get_value();
}

/// NaN, which the gate refuses, where there is none.
template<class Interface>
double value_of(const Interface & interface)
{
  return value_of(interface, 0);
}

}  // namespace robo_rl_controller
