"""The parameters of policy_node. All but ``select`` are read once, at configure."""

from __future__ import annotations

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.node import Node

from robo_rl.deploy.robot.session import MODES

FIXED = {
    "bundle": ("", "path of the bundle (*.onnx)"),
    "others": ([""], "more policies to take turns with: 'name=path'"),
    "digest": ("", "digest that the bundle must have, or its beginning; '': any"),
    "trusted_keys": ("", "file of public keys, one of which must have signed the bundle; '': any bundle"),
    "robot": ("", "robot that the bundle must be for; '': any"),
    "mode": ("dry_run", f"where to begin on the ladder: one of {MODES}"),
    "command_message": ("", "message type of commands; '': what suits the contract"),
    "wires": ([""], "other sources of signals: 'signal=topic type field', of a LaserScan also 'yaw=… roll=…'"),
    "cmd_vel": ("TwistStamped", "message type of cmd_vel: TwistStamped or Twist"),
    "cmd_vel_timeout": (0.5, "s after which a velocity on cmd_vel counts as zero"),
    "setpoints": ([""], "constant operator signals: 'signal=1.0 0.0 …'"),
    "runtime": ("onnxruntime", "what runs the policy's graph: onnxruntime, or native (compiled when it is loaded)"),
    "driver": (
        "",
        "driver of the robot, which measures and commands instead of topics: go2, so101, dynamixel, f1tenth, …",
    ),
    "port": ("", "of the driver: device, address or network interface; '': its usual one"),
    "calibration": ("", "of the driver: the robot's calibration file"),
    "robot_file": ("", "of the driver: what differs between two robots of a type (*.toml)"),
    "isolate": (False, "run the policy's graph in a process of its own, which can hang or crash alone"),
    "activate": (False, "activate after configure by itself, as soon as signals, set-points and clock are there"),
    "activate_timeout": (10.0, "s to wait for them; then it is refused with what is missing"),
    "learn": ("", "folder that 'robo-rl learn' shares: steps go there, and its newest policy goes on; '': none"),
    "record": ("", "folder in which every session writes one .mcap file; '': none"),
}
"""Default and meaning, by name."""
LONGEST = 3600.0
"""s that a parameter may be: more would switch off what it limits."""


def declare(node: Node) -> None:
    """Declare them all. ROS can't give an empty list a type, so lists of texts begin with an empty text."""
    for name, (default, meaning) in FIXED.items():
        node.declare_parameter(name, default, ParameterDescriptor(description=meaning, read_only=True))
    span = FloatingPointRange(from_value=0.1, to_value=600.0)
    blend = ParameterDescriptor(description="s from no authority to all", floating_point_range=[span])
    node.declare_parameter("blend_time", 5.0, blend)
    node.declare_parameter("select", "", ParameterDescriptor(description="the active policy, by name"))


def seconds(node: Node, name: str) -> float:
    """A parameter that is a time. ValueError for a number that can't be one, such as NaN."""
    value = float(node.get_parameter(name).value)
    if not 0.0 <= value <= LONGEST:
        raise ValueError(f"parameter '{name}' is {value:g} s; expected 0 to {LONGEST:g}")
    return value
