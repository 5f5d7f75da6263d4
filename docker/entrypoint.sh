#!/bin/bash
# ROS, the workspace, and then what was asked for.
set -e
. "/opt/ros/$ROS_DISTRO/setup.bash"
. /robo-rl/ros2_ws/install/setup.bash
exec "$@"
