# A robot's computer without Python's packages, x86-64 or aarch64: the node in C++, and the controllers of ros2_control
# and Nav2 where the distribution has them. DISTRIBUTION is humble (Ubuntu 22.04), jazzy or kilted (24.04).
#
#   docker build -f docker/cpp.Dockerfile --build-arg DISTRIBUTION=jazzy -t robo-rl-cpp .
#   docker build -f docker/cpp.Dockerfile --platform linux/arm64 -t robo-rl-cpp .          # for a Jetson or a Raspberry Pi
#   docker run --rm -it --network host --ulimit rtprio=99 --ulimit memlock=-1 -v "$PWD:/data" \
#       --cap-drop ALL --security-opt no-new-privileges robo-rl-cpp \
#       ros2 run robo_rl_controller policy_node --ros-args --params-file policy.yaml -p bundle:=/data/policy.x86_64.so
ARG DISTRIBUTION=jazzy
FROM ros:${DISTRIBUTION}-ros-base

# What the packages name in package.xml, and no more. The headers that compiled bundles share with the core lie outside of
# the workspace.
COPY deploy/build/c/robot.h deploy/build/c/gate.h deploy/build/c/held.h /robo-rl/deploy/build/c/
COPY ros2_ws/src/robo_rl_msgs /robo-rl/ros2_ws/src/robo_rl_msgs
COPY ros2_ws/src/robo_rl_description /robo-rl/ros2_ws/src/robo_rl_description
COPY ros2_ws/src/robo_rl_controller /robo-rl/ros2_ws/src/robo_rl_controller
WORKDIR /robo-rl/ros2_ws
RUN apt-get update \
    && rosdep update --rosdistro "$ROS_DISTRO" \
    && rosdep install --default-yes --from-paths src --ignore-src \
    && rm -rf /var/lib/apt/lists/*
RUN . "/opt/ros/$ROS_DISTRO/setup.sh" && colcon build
COPY docker/entrypoint.sh /robo-rl/docker/entrypoint.sh

# Nothing runs as root: the user is 1000, as a computer's first user is. Ubuntu 24.04's image has it, 22.04's has not.
WORKDIR /data
RUN (id ubuntu || useradd --create-home --uid 1000 ubuntu) && chown ubuntu:ubuntu /data
USER ubuntu
ENTRYPOINT ["/robo-rl/docker/entrypoint.sh"]
CMD ["ros2", "pkg", "executables", "robo_rl_controller"]
