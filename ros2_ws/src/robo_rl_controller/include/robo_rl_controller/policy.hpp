// SPDX-License-Identifier: Apache-2.0
// The policy with its memory, and the checks of what it may act on. The twin of deploy/robot/runtime.py.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "robo_rl_controller/sample.hpp"
#include "robot.h"

namespace robo_rl_controller
{

class Memory;

/// Why a policy gave no command.
struct Refusal
{
  enum class Kind : std::uint8_t { none, missing, range, norm, late, not_finite };
  Kind kind = Kind::none;
  /// Which signal, and which of its elements; -1: none in particular.
  std::int16_t signal = -1;
  std::int16_t element = -1;
};

class Policy
{
public:
  explicit Policy(const robot_bundle & bundle);
  ~Policy();

  /// Forget the past, measurements too: before every take-over of the robot.
  void reset() noexcept;

  /// (M,) commands for the newest samples, one per signal; null: it refuses, and nothing was changed.
  const float * step(const Sample * samples, std::int64_t now) noexcept;

  const Refusal & refusal() const noexcept {return refusal_;}

private:
  Refusal check(const Sample * samples) const noexcept;
  Refusal check_values(const robot_channel & signal, std::int16_t index, const float * values) const noexcept;
  void hold(const Sample * samples, std::int64_t now, std::int64_t counted) noexcept;

  const robot_bundle & bundle_;
  bool waits_ = false;
  std::int64_t counted_;
  std::unique_ptr<Memory> state_, arena_;
  std::vector<float> blank_, accepted_, seen_, command_;
  std::vector<std::int64_t> accepted_stamps_, stamps_;
  Refusal refusal_;
};

/// (N,) what signals are before they were measured: 0 within their limits.
std::vector<float> blanks(const robot_bundle & bundle);

}  // namespace robo_rl_controller
