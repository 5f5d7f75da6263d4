"""Which topic, message type and field each signal comes from and each command goes to, derived from a contract.

A wire is written as one text, as in parameters: ``"odom nav_msgs/msg/Odometry position"``. More of it may follow:
``yaw=1.5708 roll=3.1416`` of a lidar that is mounted turned, ``nothing=nan`` of one that gives NaN where nothing is
within its range, and ``frame=cf231`` where that is the contract's frame by another name. A pose that only tf tells is
``"/tf tf2_msgs/msg/TFMessage position frame=map child=base_link"``. What a contract does not
decide (the robot's own topic names) is remapped as usual in ROS 2, or by giving the wire of a signal or command.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from robo_rl.contract import Command, Image, Scan, Signal
from robo_rl.deploy.robot.scans import NOTHING
from robo_rl.ros.frames import LEVEL, Frames, View
from robo_rl.ros.reading import ACKERMANN, READERS, TF, TWIST_ELEMENTS, seen_by


class WiringError(ValueError):
    """A signal or command can't be wired. The message names it and what was expected."""


SCAN = "sensor_msgs/msg/LaserScan"
Channel = TypeVar("Channel", bound=Signal | Command)


@dataclass(frozen=True)
class Wire:
    """One signal or command on one field of one topic."""

    name: str
    topic: str
    kind: str
    """The message type, as ``nav_msgs/msg/Odometry``."""
    field: str
    yaw: float = 0.0
    """rad from the robot's x axis to that of its lidar, to the left, as in a URDF."""
    upside_down: bool = False
    """Whether the lidar's z axis points down: a roll of half a turn, which a URDF makes before the yaw."""
    frame: str = ""
    """A frame_id that is the contract's frame by another name."""
    nothing: tuple[str, ...] = View.nothing
    """What a lidar gives where nothing is within its range."""
    child: str = ""
    """Of a pose that tf tells, the frame whose place in ``frame`` it is."""

    @staticmethod
    def parse(name: str, text: str) -> Wire:
        """The wire of signal or command ``name`` from "topic type field", and "frame=…" where that has another name.

        Of a LaserScan also "yaw=… roll=… nothing=…".
        """
        parts = text.split()
        if len(parts) < 3:
            raise WiringError(f"the wire of '{name}' is {text!r}; expected 'topic type field'")
        topic, kind, field, *more = parts
        if kind not in READERS:
            raise WiringError(f"the wire of '{name}' has the type '{kind}'; expected one of {sorted(READERS)}")
        if field not in READERS[kind]:
            raise WiringError(f"the wire of '{name}' has the field '{field}'; {kind} has {sorted(READERS[kind])}")
        frames = [part.partition("=")[2] for part in more if part.startswith("frame=")]
        nothing = [part.partition("=")[2] for part in more if part.startswith("nothing=")]
        children = [part.partition("=")[2] for part in more if part.startswith("child=")]
        mounting = [part for part in more if not part.startswith(("frame=", "nothing=", "child="))]
        if (kind == TF and not (frames and frames[-1] and children and children[-1])) or (kind != TF and children):
            raise WiringError(
                f"the wire of '{name}' is {text!r}; expected '/tf {TF} {field} frame=map child=base_link' of a pose "
                "that tf tells, and child=… of no other"
            )
        if (mounting or nothing) and kind != SCAN:
            raise WiringError(f"the wire of '{name}' is {text!r}; expected 'topic type field' and, if need be, frame=…")
        told = _nothing(name, nothing[-1]) if nothing else View.nothing
        return Wire(
            name, topic, kind, field, *_mounting(name, mounting), frames[-1] if frames else "", told, *children[-1:]
        )

    def __str__(self) -> str:
        mounting = (f" yaw={self.yaw:.9g}" if self.yaw else "") + (f" roll={math.pi:.9g}" if self.upside_down else "")
        frame = f" frame={self.frame}" if self.frame else ""
        nothing = f" nothing={','.join(self.nothing) or 'inf'}" if self.nothing != View.nothing else ""
        child = f" child={self.child}" if self.child else ""
        return f"{self.topic} {self.kind} {self.field}{mounting}{frame}{nothing}{child}"

    def view(self, frames: Frames | None = None) -> View:
        """How its messages are read; ``frames`` is what is known of the robot's frames beside their names."""
        return View(self.frame, bool(self.yaw or self.upside_down), self.nothing, frames or Frames(), self.child)

    def measured(self, channel: Channel) -> Channel:
        """``channel`` as its sensor has it: a scan with the angles of its beams about the axes of the lidar."""
        if (
            not isinstance(channel, Signal)
            or not isinstance(channel.layout, Scan)
            or not (self.yaw or self.upside_down)
        ):
            return channel
        return replace(channel, layout=seen_by(channel.layout, self.yaw, self.upside_down))


def _nothing(name: str, text: str) -> tuple[str, ...]:
    """What counts as nothing within range, by "zero,nan,max", any of them; "inf": infinity alone."""
    found = tuple(text.split(","))
    if found == ("inf",):
        return ()
    if set(found) - set(NOTHING):
        raise WiringError(f"the wire of '{name}' has 'nothing={text}'; expected some of {','.join(NOTHING)}, or inf")
    return found


def _mounting(name: str, parts: Sequence[str]) -> tuple[float, bool]:
    """The yaw (rad), and whether it is upside down, by "yaw=…" and "roll=…"."""
    found = {"yaw": 0.0, "roll": 0.0}
    for part in parts:
        key, _, text = part.partition("=")
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if key not in found or not abs(number) <= 2 * math.pi:
            raise WiringError(
                f"the wire of '{name}' has {part!r}; expected yaw=… or roll=…, rad, as in the robot's URDF"
            )
        found[key] = number
    level = abs(math.sin(found["roll"])) <= LEVEL
    if not level:
        raise WiringError(
            f"the wire of '{name}' has a roll of {found['roll']:g}; expected 0 or {math.pi:.4f}: upside down"
        )
    return found["yaw"], math.cos(found["roll"]) < 0


ODOMETRY, IMU = "odom nav_msgs/msg/Odometry", "imu sensor_msgs/msg/Imu"
USUAL = {
    "position": f"{ODOMETRY} position",
    "orientation": f"{ODOMETRY} orientation",
    "linear_velocity": f"{ODOMETRY} linear_velocity",
    "angular_velocity": f"{IMU} angular_velocity",
    "linear_acceleration": f"{IMU} linear_acceleration",
    "imu_orientation": f"{IMU} orientation",
    "imu_angular_velocity": f"{IMU} angular_velocity",
    "imu_linear_acceleration": f"{IMU} linear_acceleration",
    "joint_position": "joint_states sensor_msgs/msg/JointState position",
    "joint_velocity": "joint_states sensor_msgs/msg/JointState velocity",
    "joint_effort": "joint_states sensor_msgs/msg/JointState effort",
    "slide_position": "joint_states sensor_msgs/msg/JointState position",
    "slide_velocity": "joint_states sensor_msgs/msg/JointState velocity",
    "slide_effort": "joint_states sensor_msgs/msg/JointState effort",
    "gripper_position": "joint_states sensor_msgs/msg/JointState position",
    "position_setpoint": "setpoint/pose geometry_msgs/msg/PoseStamped position",
    "orientation_setpoint": "setpoint/pose geometry_msgs/msg/PoseStamped orientation",
    "waypoint_position": "waypoint/pose geometry_msgs/msg/PoseStamped position",
    "linear_velocity_setpoint": "setpoint/twist geometry_msgs/msg/TwistStamped linear",
    "angular_velocity_setpoint": "setpoint/twist geometry_msgs/msg/TwistStamped angular",
    "linear_velocity_command": "cmd_vel geometry_msgs/msg/TwistStamped linear",
    "yaw_rate_command": "cmd_vel geometry_msgs/msg/TwistStamped angular",
    "wheel_speed": f"{ODOMETRY} linear_velocity",
    "yaw_rate": f"{IMU} angular_velocity",
    "scan": f"scan {SCAN} ranges",
}
"""Wires of signals by their names in contracts. Scans and images come on their names, others as an array on
``signal/<name>``."""

PLACES = {
    "_position_setpoint": "setpoint/{} geometry_msgs/msg/PoseStamped position",
    "_position": "{}/pose geometry_msgs/msg/PoseStamped position",
    "_linear_velocity": "{}/twist geometry_msgs/msg/TwistStamped linear",
}
"""Wires of a thing's place and velocity (x, y, z), by the end of the signal's name, with the thing's name in the topic:
of a tool, or of an object that a camera sees."""
XYZ = ("x", "y", "z")

TWISTS = ("TwistStamped", "Twist")
"""What may come on cmd_vel; one of the two, since a topic has one type."""


def signal_wires(
    signals: Sequence[Signal], given: Mapping[str, str] | None = None, twist: str = "TwistStamped"
) -> list[Wire]:
    """A wire for each signal that comes by message, in order: all but ages, which are computed.

    ``given`` are texts by signal that replace the usual ones; ``twist`` is the type of cmd_vel, out of ``TWISTS``.
    """
    if twist not in TWISTS:
        raise WiringError(f"cmd_vel is '{twist}'; expected one of {TWISTS}")
    given = dict(given or {})
    sent = [signal for signal in signals if signal.source != "runtime"]
    _refuse_unknown(given, [signal.name for signal in sent], "signal")
    return [Wire.parse(s.name, given.get(s.name) or _usual_signal(s, twist)) for s in sent]


def _usual_signal(signal: Signal, twist: str) -> str:
    if isinstance(signal.layout, Scan):
        return f"{signal.name} {SCAN} ranges"
    if isinstance(signal.layout, Image):
        return f"{signal.name} sensor_msgs/msg/Image data"
    if signal.shape is not None:
        return f"signal/{signal.name} std_msgs/msg/Float64MultiArray data"
    if signal.name in USUAL:
        usual = USUAL[signal.name]
        return usual.replace("TwistStamped", twist) if usual.startswith("cmd_vel") else usual
    if set(signal.elements) <= set(TWIST_ELEMENTS):
        return f"cmd_vel geometry_msgs/msg/{twist} by_name"
    ending = next((end for end in PLACES if signal.name.endswith(end)), None)
    if ending is not None and signal.elements == XYZ:
        return PLACES[ending].format(signal.name.removesuffix(ending))
    return f"signal/{signal.name} std_msgs/msg/Float64MultiArray data"


JOINT_FIELDS = {
    "rad": "position",
    "m": "position",
    "rad/s": "velocity",
    "m/s": "velocity",
    "N*m": "effort",
    "N": "effort",
}
"""Which field of a JointState has which unit."""
COMMAND_TYPES = {
    "JointState": "sensor_msgs/msg/JointState",
    "JointTrajectory": "trajectory_msgs/msg/JointTrajectory",
    "Float64MultiArray": "std_msgs/msg/Float64MultiArray",
    "Twist": "geometry_msgs/msg/Twist",
    "TwistStamped": "geometry_msgs/msg/TwistStamped",
    "AckermannDrive": "ackermann_msgs/msg/AckermannDrive",
    "AckermannDriveStamped": "ackermann_msgs/msg/AckermannDriveStamped",
    "PoseStamped": "geometry_msgs/msg/PoseStamped",
}


def command_wires(commands: Sequence[Command], message: str = "") -> list[Wire]:
    """A wire for each command. ``message`` chooses the type; "" takes what suits the contract.

    A place (x, y, z in m), which is no actuator's, is a pose whatever is chosen for the actuators. Of an arm on a
    mobile base, a kind of twist is meant for the base, any other type for the arm.
    """
    if message and message not in COMMAND_TYPES:
        raise WiringError(f"command_message is '{message}'; expected one of {sorted(COMMAND_TYPES)} or ''")
    mixed = len({_is_twist(c) for c in commands}) == 2
    return [_command_wire(c, _message(c, message, mixed)) for c in commands]


def _message(command: Command, chosen: str, mixed: bool) -> str:
    """The type for one of several commands, ``mixed`` if some are a base's and others an arm's."""
    if _is_place(command):
        return "PoseStamped"
    if mixed and (chosen in TWISTS) != _is_twist(command):
        return _usual_message(command)
    return chosen or _usual_message(command)


def _is_twist(command: Command) -> bool:
    return set(command.elements) <= set(TWIST_ELEMENTS)


def _is_place(command: Command) -> bool:
    return command.elements == XYZ and command.unit == "m" and command.frame != "joint"


def _usual_message(command: Command) -> str:
    if _is_twist(command):
        return "TwistStamped"
    return "JointState" if command.unit in JOINT_FIELDS else "Float64MultiArray"


def _command_wire(command: Command, message: str) -> Wire:
    kind = COMMAND_TYPES[message]
    if message in ("Twist", "TwistStamped"):
        if not set(command.elements) <= set(TWIST_ELEMENTS):
            raise WiringError(
                f"command '{command.name}' has the elements {command.elements}; a {message} holds {TWIST_ELEMENTS}"
            )
        return Wire(command.name, "cmd_vel", kind, "by_name")
    if message.startswith("Ackermann"):
        if len(command.elements) != 1 or ACKERMANN.get(command.name) != command.unit:
            raise WiringError(
                f"command '{command.name}' has {len(command.elements)} elements in {command.unit}; an {message} holds "
                f"one number each for {ACKERMANN}"
            )
        return Wire(command.name, "drive", kind, command.name)
    if message == "PoseStamped":
        if not _is_place(command):
            raise WiringError(f"command '{command.name}' has the elements {command.elements}; a pose holds {XYZ} in m")
        return Wire(command.name, f"command/{command.name}", kind, "position")
    if message == "Float64MultiArray":
        return Wire(command.name, f"command/{command.name}", kind, "data")
    if command.unit not in JOINT_FIELDS:
        raise WiringError(
            f"command '{command.name}' is in {command.unit}; a {message} holds {sorted(JOINT_FIELDS)}. "
            "Use Float64MultiArray"
        )
    if message == "JointTrajectory" and JOINT_FIELDS[command.unit] != "position":
        raise WiringError(
            f"command '{command.name}' is in {command.unit}; joint_trajectory_controller takes trajectories of "
            "positions. Use Float64MultiArray, for a controller of this interface"
        )
    return Wire(command.name, f"command/{command.name}", kind, JOINT_FIELDS[command.unit])


def _refuse_unknown(given: Mapping[str, str], known: list[str], what: str) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise WiringError(f"there are wires for {what}s {unknown}; the contract has {known}")
