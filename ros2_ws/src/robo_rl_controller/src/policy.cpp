// SPDX-License-Identifier: Apache-2.0
#include "robo_rl_controller/policy.hpp"

#include <algorithm>
#include <cmath>

#include "memory.hpp"
#include "robo_rl_controller/attitude.hpp"

namespace robo_rl_controller
{
namespace
{

/// µs, added to all times, so that no measurement was before time zero
constexpr std::int64_t BEGINNING = std::int64_t{1} << 50;
constexpr double LONGEST = 4611686018427387904.0;  // 2^62 µs

/// An age as the policy is told it: through seconds, and back to whole µs.
std::int64_t told_age(std::int64_t stamp, std::int64_t now) noexcept
{
  const double age = microseconds(stamp, now) * 1e-6;
  return static_cast<std::int64_t>(std::min(LONGEST, std::nearbyint(1e6 * age)));
}

}  // namespace

std::vector<float> blanks(const robot_bundle & bundle)
{
  std::vector<float> values(bundle.signal_size);
  for (std::size_t i = 0; i < values.size(); i++) {
    values[i] = std::min(std::max(0.0f, bundle.gate->signal_lower[i]), bundle.gate->signal_upper[i]);
  }
  return values;
}

Policy::Policy(const robot_bundle & bundle)
: bundle_(bundle),
  state_(std::make_unique<Memory>(bundle.state_bytes)),
  arena_(std::make_unique<Memory>(bundle.arena_bytes)),
  blank_(blanks(bundle)),
  accepted_(bundle.signal_size),
  seen_(bundle.signal_size),
  command_(bundle.gate->command_size),
  accepted_stamps_(bundle.gate->signal_count),
  stamps_(bundle.gate->signal_count)
{
  for (std::size_t i = 0; i < bundle.gate->signal_count; i++) {
    waits_ = waits_ || bundle.signals[i].waits;
  }
  reset();
}

Policy::~Policy() = default;

void Policy::reset() noexcept
{
  bundle_.reset(state_->data());
  counted_ = BEGINNING;
  std::copy(blank_.begin(), blank_.end(), accepted_.begin());
  std::fill(accepted_stamps_.begin(), accepted_stamps_.end(), GATE_NEVER);
}

Refusal Policy::check(const Sample * samples) const noexcept
{
  for (std::int16_t i = 0; i < bundle_.gate->signal_count; i++) {
    const robot_channel & signal = bundle_.signals[i];
    if (signal.computed) {
      continue;
    }
    if (samples[i].values == nullptr) {
      if (!signal.waits) {
        return {Refusal::Kind::missing, i, -1};
      }
      continue;
    }
    const Refusal refusal = check_values(signal, i, samples[i].values);
    if (refusal.kind != Refusal::Kind::none) {
      return refusal;
    }
  }
  return {};
}

Refusal Policy::check_values(const robot_channel & signal, std::int16_t index, const float * values) const noexcept
{
  for (std::int16_t k = 0; k < signal.size; k++) {
    const float value = values[k];
    const std::size_t flat = static_cast<std::size_t>(signal.offset) + static_cast<std::size_t>(k);
    if (!(value >= bundle_.gate->signal_lower[flat] && value <= bundle_.gate->signal_upper[flat])) {
      return {Refusal::Kind::range, index, k};
    }
  }
  if (bundle_.gate->signals[index].quaternion && !is_unit(values)) {
    return {Refusal::Kind::norm, index, -1};
  }
  return {};
}

/// The accepted samples and the new ones, as of `counted`: what the policy sees.
void Policy::hold(const Sample * samples, std::int64_t now, std::int64_t counted) noexcept
{
  for (std::size_t i = 0; i < stamps_.size(); i++) {
    const robot_channel & signal = bundle_.signals[i];
    const bool given = samples[i].values != nullptr && !signal.computed;
    stamps_[i] = given ? counted - (signal.waits ? told_age(samples[i].stamp, now) : 0) : accepted_stamps_[i];
    const float * from = given ? samples[i].values : &accepted_[signal.offset];
    if (stamps_[i] < 0) {
      from = &blank_[signal.offset];
    }
    std::copy(from, from + signal.size, &seen_[signal.offset]);
  }
}

const float * Policy::step(const Sample * samples, std::int64_t now) noexcept
{
  refusal_ = check(samples);
  if (refusal_.kind != Refusal::Kind::none) {
    return nullptr;
  }
  const std::int64_t counted = counted_ + bundle_.gate->period;
  hold(samples, now, counted);
  if (waits_) {
    const std::int16_t late = bundle_.held_late(bundle_.held, stamps_.data(), counted);
    if (late >= 0) {
      refusal_ = {Refusal::Kind::late, late, -1};
      return nullptr;
    }
    bundle_.held_complete(bundle_.held, seen_.data(), stamps_.data(), counted);
  }
  if (bundle_.step(seen_.data(), state_->data(), command_.data(), arena_->data()) != 0u) {
    refusal_ = {Refusal::Kind::not_finite, -1, -1};
    return nullptr;
  }
  counted_ = counted;
  std::copy(seen_.begin(), seen_.end(), accepted_.begin());
  std::copy(stamps_.begin(), stamps_.end(), accepted_stamps_.begin());
  return command_.data();
}

}  // namespace robo_rl_controller
