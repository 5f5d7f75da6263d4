# A robot's computer, x86-64 or aarch64: ROS 2, the policy's node and the drivers; neither torch nor MuJoCo. DISTRIBUTION
# is humble (Ubuntu 22.04), jazzy or kilted (24.04).
#
#   docker build -f docker/robot.Dockerfile --build-arg DISTRIBUTION=jazzy -t robo-rl .
#   docker run --rm -it --network host --device /dev/ttyACM0 --ulimit rtprio=99 --ulimit memlock=-1 -v "$PWD:/data" \
#       --cap-drop ALL --security-opt no-new-privileges robo-rl ros2 launch robo_rl_bringup robot.launch.py robot:=so101 port:=/dev/ttyACM0 \
#       calibration:=/data/my_arm.json policy:=/data/policy.onnx record:=/data/logs
ARG DISTRIBUTION=jazzy
FROM ros:${DISTRIBUTION}-ros-base

# gcc compiles policies to machine code (the node's runtime:=native, robo-rl run --native).
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        gcc libc6-dev python3-colcon-common-extensions python3-venv \
        "ros-$ROS_DISTRO-joy" "ros-$ROS_DISTRO-robot-state-publisher" \
    && rm -rf /var/lib/apt/lists/*

# The distribution's rclpy, beside packages of PyPI that have wheels for both architectures. The extra [ros] would
# install rclpy from PyPI, which has none for aarch64. Humble's own packages in Python are compiled for numpy 1, and its
# Python is 3.10, for which the constraints are not.
COPY . /robo-rl
RUN python3 -m venv --system-site-packages /opt/robo-rl \
    && if [ "$ROS_DISTRO" = humble ]; then set -- 'numpy<2'; else set -- -c /robo-rl/constraints.txt; fi \
    && /opt/robo-rl/bin/pip install --no-cache-dir "$@" '/robo-rl[log]'
ENV PATH=/opt/robo-rl/bin:$PATH

# By the environment's Python, which the nodes are then started with.
WORKDIR /robo-rl/ros2_ws
RUN . "/opt/ros/$ROS_DISTRO/setup.sh" && python -m colcon build --packages-skip robo_rl_controller

# Nothing runs as root: the user is 1000, as a computer's first user is, whose folder /data usually is. Ubuntu 24.04's
# image has it, 22.04's has not. The group dialout opens serial lines.
WORKDIR /data
RUN (id ubuntu || useradd --create-home --uid 1000 ubuntu) \
    && usermod --append --groups dialout ubuntu && chown ubuntu:ubuntu /data
USER ubuntu
ENTRYPOINT ["/robo-rl/docker/entrypoint.sh"]
CMD ["robo-rl", "--help"]
