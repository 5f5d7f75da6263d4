// SPDX-License-Identifier: Apache-2.0
// Checks of orientations that the gate does not make: jumps, and values outside of the range seen in training.
// The twin of deploy/robot/orientation_monitor.py, which finds a quaternion whose elements come in another order.
#pragma once

#include <cstdint>
#include <vector>

#include "robo_rl_controller/sample.hpp"
#include "robot.h"

namespace robo_rl_controller
{

/// Why an orientation is not believed.
struct Doubt
{
  enum class Kind : std::uint8_t { none, jump, strange };
  Kind kind = Kind::none;
  std::int16_t signal = -1;
  std::int16_t element = -1;
  /// rad by which it turned at once, and s that it had for that; or the element's value.
  double angle = 0.0;
  double passed = 0.0;
  float value = 0.0f;
};

/// Whether a quaternion's norm is 1, within 0.05.
bool is_unit(const float * quaternion) noexcept;

class AttitudeMonitor
{
public:
  explicit AttitudeMonitor(const robot_bundle & bundle);

  /// Forget what was measured.
  void reset() noexcept;
  /// Whether an orientation turned faster than the robot can, since the last call.
  Doubt jump(const Sample * samples) noexcept;
  /// Whether an orientation is outside of the range seen in training.
  Doubt strange(const Sample * samples) const noexcept;

private:
  struct Last
  {
    bool known = false;
    float quaternion[4] = {};
    std::int64_t stamp = 0;
  };

  const robot_bundle & bundle_;
  std::vector<Last> last_;
};

}  // namespace robo_rl_controller
