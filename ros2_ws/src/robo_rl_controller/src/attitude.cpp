// SPDX-License-Identifier: Apache-2.0
#include "robo_rl_controller/attitude.hpp"

#include <algorithm>
#include <cmath>

namespace robo_rl_controller
{
namespace
{

constexpr double UNIT_TOLERANCE = 0.05;
constexpr double MARGIN = 0.2;  // rad: noise and filters of an estimator may turn an orientation by this much at once

/// Of four floats; their squares are exact in double, and the long double keeps the sum's rounding out of the result.
double norm(const float * q) noexcept
{
  long double square = 0.0L;
  for (int i = 0; i < 4; i++) {
    square += static_cast<long double>(q[i]) * static_cast<long double>(q[i]);
  }
  return static_cast<double>(std::sqrt(square));
}

/// rad between two orientations.
double angle_between(const float * p, const float * q) noexcept
{
  double product = 0.0;
  for (int i = 0; i < 4; i++) {
    product += static_cast<double>(p[i]) * static_cast<double>(q[i]);
  }
  const double cosine = std::fabs(product) / (norm(p) * norm(q));
  return 2.0 * std::acos(std::min(1.0, cosine));
}

/// The first element outside of what was seen, of sign * q; -1 if none is.
std::int16_t outside(const robot_attitude & attitude, const float * q, double sign) noexcept
{
  for (std::int16_t i = 0; i < 4; i++) {
    const double value = sign * static_cast<double>(q[i]);
    if (!(attitude.seen_low[i] <= value && value <= attitude.seen_high[i])) {
      return i;
    }
  }
  return -1;
}

bool is_finite(const float * q) noexcept
{
  return std::isfinite(q[0]) && std::isfinite(q[1]) && std::isfinite(q[2]) && std::isfinite(q[3]);
}

}  // namespace

bool is_unit(const float * quaternion) noexcept
{
  return std::fabs(norm(quaternion) - 1.0) <= UNIT_TOLERANCE;
}

AttitudeMonitor::AttitudeMonitor(const robot_bundle & bundle)
: bundle_(bundle), last_(bundle.attitude_count) {}

void AttitudeMonitor::reset() noexcept
{
  std::fill(last_.begin(), last_.end(), Last{});
}

Doubt AttitudeMonitor::jump(const Sample * samples) noexcept
{
  Doubt doubt;
  for (std::uint32_t i = 0; i < bundle_.attitude_count; i++) {
    const std::uint16_t signal = bundle_.attitudes[i].signal;
    const Sample & sample = samples[signal];
    if (sample.values == nullptr || !(std::fabs(norm(sample.values) - 1.0) < UNIT_TOLERANCE)) {
      continue;  // the gate's affair
    }
    Last & last = last_[i];
    if (last.known) {
      const double angle = angle_between(last.quaternion, sample.values);
      const double passed = std::max(microseconds(last.stamp, sample.stamp) * 1e-6, bundle_.control_period);
      if (angle > MARGIN + bundle_.fastest * passed && doubt.kind == Doubt::Kind::none) {
        doubt.kind = Doubt::Kind::jump;
        doubt.signal = static_cast<std::int16_t>(signal);
        doubt.angle = angle;
        doubt.passed = passed;
      }
    }
    last.known = true;
    std::copy(sample.values, sample.values + 4, last.quaternion);
    last.stamp = sample.stamp;
  }
  return doubt;
}

Doubt AttitudeMonitor::strange(const Sample * samples) const noexcept
{
  Doubt doubt;
  for (std::uint32_t i = 0; i < bundle_.attitude_count; i++) {
    const robot_attitude & attitude = bundle_.attitudes[i];
    const float * q = samples[attitude.signal].values;
    if (q == nullptr || !attitude.seen || !is_finite(q)) {
      continue;
    }
    const std::int16_t element = outside(attitude, q, 1.0);
    if (element >= 0 && outside(attitude, q, -1.0) >= 0) {
      doubt.kind = Doubt::Kind::strange;
      doubt.signal = static_cast<std::int16_t>(attitude.signal);
      doubt.element = element;
      doubt.value = q[element];
      return doubt;
    }
  }
  return doubt;
}

}  // namespace robo_rl_controller
