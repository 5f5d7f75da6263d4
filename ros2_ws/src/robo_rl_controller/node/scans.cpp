// SPDX-License-Identifier: Apache-2.0
#include "scans.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>

#include "frames.hpp"

namespace robo_rl_controller
{
namespace
{

constexpr double TURN = 2.0 * M_PI;
constexpr double EDGE = 1e-3;           // part of a beam by which the rounding of angles may miss the last one
constexpr double ASTRAY = 0.3;           // rad by which the last beam may be off angle_max, or beyond a full turn
constexpr std::size_t MAX_BEAMS = 10000;
constexpr double NEAR = 2.0;            // times range_min: zeros beside a nearer range may be of something too close
constexpr std::size_t SENTINELS = 2;    // different numbers above range_max that may all say that nothing is there
constexpr double NAN_ = std::numeric_limits<double>::quiet_NaN();
constexpr double INF = std::numeric_limits<double>::infinity();

/// No distance, but 0 or a negative number in its place; -inf is something too close.
bool is_zero(double range)
{
  return range <= 0.0 && range != -INF;
}

/// Which zeros are in a row that ends beside a range below NEAR times `low`; the scan may be a full turn.
std::vector<bool> too_close(const std::vector<double> & ranges, double low)
{
  const std::size_t n = ranges.size();
  std::vector<bool> found(n);
  bool before = false, after = false;
  const auto look = [&](std::size_t i, bool & is_near) {
      if (!is_zero(ranges[i])) {
        is_near = ranges[i] < NEAR * low;
      } else if (is_near) {
        found[i] = true;
      }
    };
  for (std::size_t k = 0; low > 0.0 && k < 2 * n; k++) {  // twice round: a row may go on at the beginning
    look(k % n, before);
    look(n - 1 - k % n, after);
  }
  return found;
}

/// Which zeros and NaNs count as nothing within range. Of a lidar that sees nothing at all none is known.
std::vector<bool> blank(const std::vector<double> & ranges, double low, const Wire & wire)
{
  std::vector<bool> found(ranges.size());
  const auto unknown = [](double r) {return std::isnan(r) || is_zero(r);};
  if (std::all_of(ranges.begin(), ranges.end(), unknown)) {
    return found;
  }
  const std::vector<bool> close = too_close(ranges, low);
  for (std::size_t i = 0; i < ranges.size(); i++) {
    found[i] = (wire.zero_is_nothing && is_zero(ranges[i]) && !close[i]) ||
      (wire.nan_is_nothing && std::isnan(ranges[i]));
  }
  return found;
}

/// MessageError for a scan in mm, which would be an empty plain; `farthest` (m) is the contract's range_max.
void require_metres(
  const std::vector<double> & ranges, double low, double high, double farthest, const std::string & about)
{
  std::set<double> different;
  double least = INF, most = 0.0;
  for (const double range : ranges) {
    if (std::isfinite(range) && range > 0.0) {
      least = std::min(least, range);
      most = std::max(most, range);
      if (different.size() <= SENTINELS) {
        different.insert(range);
      }
    }
  }
  if (low >= farthest || (least > high && different.size() > SENTINELS)) {
    std::ostringstream text;
    text << about << "ranges of " << (different.empty() ? 0.0 : least) << " to " << most << ", range_min " << low <<
      " and range_max " << high << "; expected some in between, and below " << farthest << " m. Are they in mm?";
    throw MessageError(text.str());
  }
}

/// Infinite where nothing is within range or something too close, NaN where nothing is known.
std::vector<double> measured(
  const sensor_msgs::msg::LaserScan & message, const Wire & wire, double farthest, const std::string & about,
  std::vector<bool> & empty)
{
  const double low = message.range_min, high = message.range_max;
  const bool told = 0.0 <= low && low < high;  // else the driver does not tell
  std::vector<double> ranges(message.ranges.begin(), message.ranges.end());
  empty = blank(ranges, low, wire);
  if (told) {
    require_metres(ranges, low, high, farthest, about);
  }
  for (std::size_t i = 0; i < ranges.size(); i++) {
    double & range = ranges[i];
    if (told) {
      range = std::isfinite(range) && range < low ? NAN_ : range > high ? INF : range;
    }
    range = empty[i] ? NAN_ : told && wire.max_is_nothing && range >= high * (1.0 - 1e-6) ? INF : range;
  }
  return ranges;
}

/// The nearest beam that is known, within `reach` beams of `place`; NaN if none is.
double by_neighbours(const std::vector<double> & ranges, double place, double reach, double turn)
{
  double best = INF, found = NAN_;
  for (std::size_t k = 0; k < ranges.size(); k++) {
    const double apart = std::fabs(static_cast<double>(k) - place);
    const double around = std::min(apart, std::fabs(turn - apart));
    if (!std::isnan(ranges[k]) && around < best) {
      best = around;
      found = ranges[k];
    }
  }
  return best <= std::max(reach, 0.5) + EDGE ? found : NAN_;
}

std::string degrees(double angle)
{
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", angle * 180.0 / M_PI);
  return text;
}

/// MessageError where a driver's angles contradict each other: nobody knows then where its beams look.
void require_angles(const sensor_msgs::msg::LaserScan & message, const std::string & about)
{
  const double step = message.angle_increment, first = message.angle_min, last = message.angle_max;
  const double reach = first + step * (static_cast<double>(message.ranges.size()) - 1.0);
  const bool told = std::isfinite(last) && last != 0.0 && last != first;  // else it was left out
  const bool backwards = std::isfinite(last) && (last - first) * step < 0.0;
  if (backwards || std::fabs(reach - first) > TURN + ASTRAY || (told && std::fabs(reach - last) > ASTRAY)) {
    throw MessageError(
            about + std::to_string(message.ranges.size()) + " ranges from angle_min " + std::to_string(first) +
            " in steps of " + std::to_string(step) + " rad end at " + std::to_string(reach) + ", and angle_max is " +
            std::to_string(last) + "; expected the same, within a full turn. Is the number of ranges, the sign or the "
            "unit wrong?");
  }
}

}  // namespace

void ranges_of(
  const sensor_msgs::msg::LaserScan & message, const Channel & channel, const Wire & wire, std::vector<float> & out)
{
  const std::string about = "'" + channel.name + "': ";
  if (message.ranges.size() > MAX_BEAMS) {
    throw MessageError(
            about + std::to_string(message.ranges.size()) + " ranges; expected at most " + std::to_string(MAX_BEAMS));
  }
  const double step = message.angle_increment, first = message.angle_min;
  if (!(std::isfinite(step) && step != 0.0 && std::isfinite(first)) || message.ranges.empty()) {
    throw MessageError(
            about + std::to_string(message.ranges.size()) + " ranges from the angle " + std::to_string(first) +
            " in steps of " + std::to_string(step) + "; expected some, in steps other than 0");
  }
  require_angles(message, about);
  std::vector<bool> empty;
  const robot_scan & scan = *channel.data.scan;
  const std::vector<double> ranges = measured(message, wire, scan.range_max, about, empty);
  const double sense = wire.upside_down ? -1.0 : 1.0;
  const double begin = sense * (scan.angle_min - wire.yaw), beam = sense * scan.angle_increment;
  const double turn = TURN / std::fabs(step), count = static_cast<double>(ranges.size());
  for (std::size_t i = 0; i < out.size(); i++) {
    const double angle = begin + beam * static_cast<double>(i);
    double place = std::fmod((angle - first) / step, turn);  // in beams of the message
    place += place < 0.0 ? turn : 0.0;
    place -= place > count - 0.5 + EDGE ? turn : 0.0;
    if (place < -0.5 - EDGE) {
      throw MessageError(
              about + "no beam at " + degrees(angle) + " degrees: the scan is from " + degrees(first) + " to " +
              degrees(first + step * (count - 1.0)) + " degrees");
    }
    const auto nearest = static_cast<std::size_t>(std::min(std::max(std::nearbyint(place), 0.0), count - 1.0));
    double range = ranges[nearest];
    if (std::isnan(range)) {
      range = by_neighbours(ranges, place, std::fabs(scan.angle_increment / step) / 2.0, turn);
      if (std::isnan(range) && !empty[nearest]) {
        throw MessageError(
                about + "beam " + std::to_string(i) + " is not a number, nor is one beside it; expected a range. Where "
                "this lidar gives zero or NaN for nothing within range, add nothing=zero,nan to the wire");
      }
      range = std::isnan(range) ? INF : range;
    }
    out[i] = static_cast<float>(std::min(std::max(range, scan.range_min), scan.range_max));
  }
}

}  // namespace robo_rl_controller
