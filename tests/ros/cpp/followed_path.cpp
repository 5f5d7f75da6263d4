// SPDX-License-Identifier: Apache-2.0
// Reads a radius, a path and poses, and prints what is told of each; or the sentence that refuses the path.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "../../../ros2_ws/src/robo_rl_controller/nav2/followed_path.hpp"

static double number()
{
  std::string word;
  std::cin >> word;
  return std::strtod(word.c_str(), nullptr);
}

int main()
{
  using namespace robo_rl_controller;
  const double radius = number();
  std::vector<Point> points(static_cast<std::size_t>(number()));
  for (Point & point : points) {
    point.x = number();
    point.y = number();
  }
  std::vector<Pose> poses(static_cast<std::size_t>(number()));
  for (Pose & pose : poses) {
    pose.x = number();
    pose.y = number();
    pose.heading = number();
  }
  try {
    FollowedPath path(points, poses[0], radius);
    for (const Pose & pose : poses) {
      const Progress progress = path.update(pose);
      std::printf("%.17g", progress.left);
      for (const float one : progress.ahead) {
        std::printf(" %.9g", static_cast<double>(one));
      }
      std::printf("\n");
    }
  } catch (const PathError & error) {
    std::printf("%s\n", error.what());
  }
  return 0;
}
