"""A policy bundle on a robot through ROS 2: thin nodes over a core that imports without rclpy."""
