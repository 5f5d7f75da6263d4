// SPDX-License-Identifier: Apache-2.0
// A path that a planner gave, followed: what the policy is told of it. Knows no ROS. The twin of ros/path_following.py,
// whose rules, with their sources, it has.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <vector>

namespace robo_rl_controller
{

/// Why a path is not followed.
class PathError : public std::runtime_error
{
public:
  using std::runtime_error::runtime_error;
};

/// m
struct Point
{
  double x, y;
};

/// Where the robot is: m and rad, in the frame of a path.
struct Pose
{
  double x, y, heading;

  /// In the frame in which `frame` is where this pose's own frame is.
  Pose within(const Pose & frame) const;
};

/// The points ahead, x and y of each (m), in the robot's frame; m along the path to its end.
struct Progress
{
  std::vector<float> ahead;
  double left;
};

/// A path that was checked, and how far along it the robot is. Progress never decreases. Where the path turns back on
/// itself, only the piece up to there is followed until the robot is at its end.
class FollowedPath
{
public:
  /// Points ahead that a policy is told.
  static constexpr std::size_t AHEAD = 8;

  /// `radius` (m) of the robot scales how far ahead it looks. PathError where the path is none, is not finite, jumps, or
  /// is not where the robot is.
  FollowedPath(std::vector<Point> points, const Pose & pose, double radius);

  /// The robot is at `pose`.
  Progress update(const Pose & pose);

  const std::vector<Point> & points() const {return points_;}

private:
  /// Segments of a piece: `apart[i]` m long, from `points[i]`, `begin[i]` m along the piece.
  struct Piece
  {
    explicit Piece(std::vector<Point> given);
    double length() const {return begin.back() + apart.back();}

    std::vector<Point> points;
    std::vector<double> apart, begin;
  };

  bool advance(const Pose & pose);

  std::vector<Point> points_;
  double scale_;
  std::vector<Piece> pieces_;
  std::size_t number_ = 0;
  double at_ = 0.0;
};

/// PathError unless these are the points of a path.
void check_path(const std::vector<Point> & points);

}  // namespace robo_rl_controller
