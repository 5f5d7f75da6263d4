// SPDX-License-Identifier: Apache-2.0
#include "followed_path.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace robo_rl_controller
{
namespace
{

// controllers/path.py
constexpr double SIZE = 0.105;                   // m, the radius of a robot for which the lengths are meant
constexpr double LENGTHS[] = {0.15, 0.3, 0.45, 0.6, 0.8, 1.0, 1.3, 1.6};  // m ahead
constexpr double SEARCHED = 0.6;                 // m ahead of the last place, where the robot may be now
static_assert(sizeof LENGTHS / sizeof LENGTHS[0] == FollowedPath::AHEAD, "a length for each point");
// ros/path_following.py
const double INVERSION = std::cos(120.0 * M_PI / 180.0);
constexpr double LEAST = 0.25, SAME = 1e-3;
constexpr double TOLERANCE = 0.25, REST = 1.0, NEAR_INVERSION = 0.2, BEGIN = 1.0, STEP = 2.0;  // m
constexpr std::size_t MOST = 20000;

double apart(const Point & a, const Point & b)
{
  return std::hypot(a.x - b.x, a.y - b.y);
}

/// m along a path to each of its points.
std::vector<double> lengths(const std::vector<Point> & points)
{
  std::vector<double> along(points.size(), 0.0);
  for (std::size_t i = 1; i < points.size(); i++) {
    along[i] = along[i - 1] + apart(points[i], points[i - 1]);
  }
  return along;
}

/// The place `s` m along a path; its ends beyond them.
Point place_at(const std::vector<Point> & points, const std::vector<double> & along, double s)
{
  const auto above = std::upper_bound(along.begin(), along.end(), s);
  if (above == along.begin()) {
    return points.front();
  }
  if (above == along.end()) {
    return points.back();
  }
  const auto i = static_cast<std::size_t>(above - along.begin());
  const double part = (s - along[i - 1]) / (along[i] - along[i - 1]);
  return {points[i - 1].x + part * (points[i].x - points[i - 1].x),
    points[i - 1].y + part * (points[i].y - points[i - 1].y)};
}

/// The points at which a path turns back, from `reach` m before to `reach` m behind.
std::vector<std::size_t> inversions(const std::vector<Point> & points, double reach)
{
  const std::vector<double> along = lengths(points);
  std::vector<std::size_t> found;
  double sharpest = 0.0;
  for (std::size_t i = 0; i < points.size(); i++) {
    const Point before = place_at(points, along, along[i] - reach), behind = place_at(points, along, along[i] + reach);
    const Point came{points[i].x - before.x, points[i].y - before.y};
    const Point goes{behind.x - points[i].x, behind.y - points[i].y};
    const double product = came.x * goes.x + came.y * goes.y;
    const double a = std::hypot(came.x, came.y), b = std::hypot(goes.x, goes.y);
    if (!(product < INVERSION * a * b && std::min(a, b) > LEAST * reach)) {
      continue;
    }
    if (found.empty() || along[i] - along[found.back()] > reach) {
      found.push_back(i);
      sharpest = product;
    } else if (product < sharpest) {
      found.back() = i;
      sharpest = product;
    }
  }
  return found;
}

/// m from the nearest place of a path.
double distance(const std::vector<Point> & points, const Pose & pose)
{
  double least = apart(points.back(), {pose.x, pose.y});
  for (std::size_t i = 0; i + 1 < points.size(); i++) {
    const Point way{points[i + 1].x - points[i].x, points[i + 1].y - points[i].y};
    const Point off{pose.x - points[i].x, pose.y - points[i].y};
    const double part =
      std::clamp((way.x * off.x + way.y * off.y) / std::max(way.x * way.x + way.y * way.y, 1e-12), 0.0, 1.0);
    least = std::min(least, std::hypot(off.x - part * way.x, off.y - part * way.y));
  }
  return least;
}

/// The point where a path first passes by the robot; a later passage may be nearer by the tolerance.
std::size_t first_passage(const std::vector<Point> & points, const Pose & pose)
{
  std::vector<double> far;
  for (const Point & point : points) {
    far.push_back(apart(point, {pose.x, pose.y}));
  }
  const double limit = *std::min_element(far.begin(), far.end()) + TOLERANCE;
  const auto is_near = [limit](double one) {return one <= limit;};
  const auto first = std::find_if(far.begin(), far.end(), is_near);
  const auto end = std::find_if_not(first, far.end(), is_near);
  return static_cast<std::size_t>(std::min_element(first, end) - far.begin());
}

}  // namespace

Pose Pose::within(const Pose & frame) const
{
  const double c = std::cos(frame.heading), s = std::sin(frame.heading);
  return {frame.x + c * x - s * y, frame.y + s * x + c * y, heading + frame.heading};
}

void check_path(const std::vector<Point> & points)
{
  if (points.empty()) {
    throw PathError("the path has no points");
  }
  if (points.size() > MOST) {
    throw PathError(
            "the path has " + std::to_string(points.size()) + " points; expected at most " + std::to_string(MOST));
  }
  for (std::size_t i = 0; i < points.size(); i++) {
    if (!std::isfinite(points[i].x) || !std::isfinite(points[i].y)) {
      throw PathError("point " + std::to_string(i) + " of the path is not finite");
    }
    if (i > 0 && apart(points[i], points[i - 1]) > STEP) {
      throw PathError(
              "points " + std::to_string(i - 1) + " and " + std::to_string(i) + " of the path are " +
              std::to_string(apart(points[i], points[i - 1])) + " m apart; expected at most " + std::to_string(STEP) +
              " m");
    }
  }
}

FollowedPath::Piece::Piece(std::vector<Point> given)
: points(std::move(given))
{
  points.push_back(points.back());
  begin = lengths(points);
  begin.pop_back();
  for (std::size_t i = 0; i + 1 < points.size(); i++) {
    apart.push_back(robo_rl_controller::apart(points[i + 1], points[i]));
  }
}

FollowedPath::FollowedPath(std::vector<Point> points, const Pose & pose, double radius)
: points_(std::move(points)), scale_(radius / SIZE)
{
  check_path(points_);
  if (const double far = distance(points_, pose); !(far <= BEGIN)) {
    throw PathError("the path is " + std::to_string(far) + " m away; expected at most " + std::to_string(BEGIN) + " m");
  }
  std::vector<std::size_t> ends = inversions(points_, scale_ * LENGTHS[1]);
  ends.insert(ends.begin(), 0);
  ends.push_back(points_.size() - 1);
  const std::size_t joined = first_passage(points_, pose);
  for (std::size_t i = 0; i + 1 < ends.size(); i++) {
    const auto from = points_.begin() + static_cast<std::ptrdiff_t>(ends[i]);
    pieces_.emplace_back(std::vector<Point>(from, points_.begin() + static_cast<std::ptrdiff_t>(ends[i + 1]) + 1));
    number_ += i > 0 && ends[i] < joined;
  }
  const std::vector<double> along = lengths(points_);
  at_ = along[joined] - along[ends[number_]];
}

/// Go on along the piece. Whether the robot is at its end: near to it, or beside it or beyond.
bool FollowedPath::advance(const Pose & pose)
{
  const Piece & piece = pieces_[number_];
  const double high = at_ + scale_ * SEARCHED;
  double best = std::numeric_limits<double>::infinity(), found = at_;
  for (std::size_t i = 0; i < piece.apart.size(); i++) {
    const double least = std::max(at_ - piece.begin[i], 0.0), most = std::min(high - piece.begin[i], piece.apart[i]);
    if (least > most) {
      continue;
    }
    const Point & from = piece.points[i], & to = piece.points[i + 1];
    const Point way{to.x - from.x, to.y - from.y}, off{pose.x - from.x, pose.y - from.y};
    const double size = std::max(piece.apart[i], 1e-9);
    const double along = std::clamp((way.x * off.x + way.y * off.y) / size, least, most);
    const double dx = off.x - along / size * way.x, dy = off.y - along / size * way.y;
    if (dx * dx + dy * dy < best) {
      best = dx * dx + dy * dy;
      found = piece.begin[i] + along;
    }
  }
  at_ = found;
  const double left = piece.length() - at_;
  return left <= SAME || (apart(piece.points.back(), {pose.x, pose.y}) <= NEAR_INVERSION && left <= REST);
}

Progress FollowedPath::update(const Pose & pose)
{
  while (advance(pose) && number_ + 1 < pieces_.size()) {
    number_++;
    at_ = 0.0;
  }
  const Piece & piece = pieces_[number_];
  std::vector<double> along = piece.begin;
  along.push_back(piece.length());
  Progress progress{{}, piece.length() - at_};
  const double c = std::cos(pose.heading), s = std::sin(pose.heading);
  for (const double length : LENGTHS) {
    const Point place = place_at(piece.points, along, at_ + scale_ * length);
    const double x = place.x - pose.x, y = place.y - pose.y;
    progress.ahead.push_back(static_cast<float>(c * x + s * y));
    progress.ahead.push_back(static_cast<float>(c * y - s * x));
  }
  for (std::size_t i = number_ + 1; i < pieces_.size(); i++) {
    progress.left += pieces_[i].length();
  }
  return progress;
}

}  // namespace robo_rl_controller
