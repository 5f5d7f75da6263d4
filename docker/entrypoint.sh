#!/bin/bash
# ROS, the workspace, and then what was asked for.
set -e
. /opt/ros/jazzy/setup.bash
. /robo-rl/ros2_ws/install/setup.bash
exec "$@"
