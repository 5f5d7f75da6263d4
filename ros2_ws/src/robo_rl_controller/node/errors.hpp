// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace robo_rl_controller
{

/// ROS, or what it was asked for by parameters, can't be used. The message says what, and what was expected.
class RosError : public std::runtime_error
{
public:
  using std::runtime_error::runtime_error;
};

/// A parameter that is a time; RosError for what is none, as NaN, or what would switch off what it limits.
inline double checked_seconds(const std::string & name, double value)
{
  constexpr double LONGEST = 3600.0;
  if (!(value >= 0.0 && value <= LONGEST)) {
    std::ostringstream text;
    text << "parameter '" << name << "' is " << value << " s; expected 0 to " << LONGEST;
    throw RosError(text.str());
  }
  return value;
}

}  // namespace robo_rl_controller
