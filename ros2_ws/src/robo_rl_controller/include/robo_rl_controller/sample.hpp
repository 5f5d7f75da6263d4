// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "gate.h"

namespace robo_rl_controller
{

/// The newest measurement of one signal.
struct Sample
{
  /// (k,) in SI units, quaternions x, y, z, w; null: there is none.
  const float * values = nullptr;
  /// µs, when it was measured
  std::int64_t stamp = GATE_NEVER;
};

/// Microseconds from one stamp to a later one, as a double of the same value; 0 where it is not later.
inline double microseconds(std::int64_t from, std::int64_t to) noexcept
{
  return to > from ? static_cast<double>(static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from)) : 0.0;
}

}  // namespace robo_rl_controller
