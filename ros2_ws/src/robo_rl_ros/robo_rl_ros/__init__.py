"""A policy bundle on a robot through ROS 2: thin nodes over a core that imports without rclpy."""

if __name__ == "robo_rl_ros":  # found in its own folder, by its former name
    from robo_rl.former_names import become

    become(__name__)
