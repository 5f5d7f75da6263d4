// SPDX-License-Identifier: Apache-2.0
// When the control loop steps: at the contract's rate, drawn towards the moment at which fresh signals arrive. The twin
// of ros/scheduler.py, which explains it. Times are µs of one clock.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace robo_rl_controller
{

class StepSchedule
{
public:
  explicit StepSchedule(std::int64_t period)
  : period_(period) {}

  /// When to step. `fresh`: whether a complete set of new signals is there.
  std::int64_t due(bool fresh) const noexcept
  {
    return next_ < 0 ? 0 : fresh ? next_ - part(EARLY) : next_ + part(LATE);
  }

  /// Count from a step at `now`: the one that armed the gate, which counts its periods from there, too.
  void begin(std::int64_t now) noexcept {next_ = now + period_;}

  /// Note a step at `now`. After a stall the schedule restarts.
  void stepped(std::int64_t now) noexcept
  {
    if (next_ < 0) {
      begin(now);
      return;
    }
    const std::int64_t late = now - next_, limit = part(PULL);
    next_ = late > period_ ? now + period_ : next_ + period_ + std::max(-limit, std::min(limit, late));
  }

  void restart() noexcept {next_ = -1;}

private:
  static constexpr double EARLY = 0.2, LATE = 0.2;  // parts of the period by which a step may miss its time
  static constexpr double PULL = 0.008;             // by which the schedule moves per step

  std::int64_t part(double of) const noexcept
  {
    return static_cast<std::int64_t>(std::nearbyint(of * static_cast<double>(period_)));
  }

  std::int64_t period_;
  std::int64_t next_ = -1;
};

}  // namespace robo_rl_controller
