"""Cards of mobile manipulators: an arm as in ``robo_rl.sim.robots.arm``, on a base with two driven wheels, or with
mecanum or omni wheels (``[drive]``).

All but ``[drive]`` is what an arm's card has. Frames are those of the base: x forward from the middle of the axle, on
the ground. In the model file the base body has three joints, two slides along x and y and a hinge about z, which stand
for its wheels: ``robo_rl.sim.plants.mobile_manipulator`` moves them as wheels would.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree as Xml

from robo_rl.contract import Actuator, Robot
from robo_rl.sim.robots.arm import ArmCard, read_arm
from robo_rl.sim.robots.figures import figure, names, require
from robo_rl.sim.robots.mechanism import DrivenJoint, JointGroup, Mechanism
from robo_rl.sim.robots.mobile_base import Wheel
from robo_rl.sim.robots.omni_wheels import WHEELS, require_all_ways, wheels_of

KIND = "mobile_manipulator"

DRIVE = {
    "wheel_separation": "m",
    "speed_max": "m/s",
    "turn_rate_max": "rad/s",
    "acceleration": "m/s^2",
    "turn_acceleration": "rad/s^2",
    "motor_time": "s",
}
"""The figures of a drive and the one unit that each may have."""
ALL_WAYS = {
    **{name: unit for name, unit in DRIVE.items() if name != "wheel_separation"}, **WHEELS, "gyration": "m",
    "grip": "1", "roller_friction": "1", "slip_speed": "m/s",
}  # fmt: skip
"""Those of a drive on mecanum or omni wheels."""
HEAVY = 1e3
"""kg and kg m², of the joints that stand for wheels: the arm does not move the base, which goes as its wheels turn. A
stiff drive would do the same, but contacts are solved before its damping: what is held would be thrown away."""


@dataclass(frozen=True)
class Drive:
    """Two wheels, in SI units."""

    joints: tuple[str, str, str]
    """Of the model: slides along x and y, and a hinge about z."""
    wheel_separation: float
    speed_max: float
    turn_rate_max: float
    acceleration: float
    turn_acceleration: float
    motor_time: float
    """Time constant of the wheels' speed control."""
    units: ClassVar[dict[str, str]] = DRIVE
    commands: ClassVar[tuple[tuple[str, str], ...]] = (("forward_speed", "vx"), ("turn_rate", "wz"))
    """Names and elements."""


@dataclass(frozen=True)
class OmniDrive:
    """Three mecanum or omni wheels, or more, in SI units: see ``robo_rl.sim.robots.omni_wheels``."""

    joints: tuple[str, str, str]
    """Of the model: slides along x and y, and a hinge about z."""
    speed_max: float
    turn_rate_max: float
    acceleration: float
    turn_acceleration: float
    motor_time: float
    wheel_x: tuple[float, ...]
    wheel_y: tuple[float, ...]
    wheel_heading: tuple[float, ...]
    roller_angle: tuple[float, ...]
    gyration: float
    """Radius of gyration of the whole robot about the vertical."""
    grip: float
    roller_friction: float
    slip_speed: float
    units: ClassVar[dict[str, str]] = ALL_WAYS
    commands: ClassVar[tuple[tuple[str, str], ...]] = (*Drive.commands, ("lateral_speed", "vy"))

    @property
    def wheels(self) -> tuple[Wheel, ...]:
        places = zip(self.wheel_x, self.wheel_y, self.wheel_heading, strict=True)
        return tuple(Wheel(f"wheel_{k}", *place) for k, place in enumerate(places, 1))


@dataclass(frozen=True)
class MobileManipulatorCard:
    """Figures of an arm on a mobile base."""

    kind: ClassVar[str] = KIND
    arm: ArmCard
    drive: Drive | OmniDrive
    sources: dict[str, str]

    @property
    def name(self) -> str:
        return self.arm.name

    @property
    def title(self) -> str:
        return self.arm.title

    def facts(self) -> Robot:
        """What a contract tells about it: the base's speeds, then the arm's actuators; the chain of its joints."""
        top, turn = self.drive.speed_max, self.drive.turn_rate_max
        base = tuple(
            Actuator("wz", "velocity", "rad/s", -turn, turn, safe=0.0)
            if element == "wz"
            else Actuator(element, "velocity", "m/s", -top, top, safe=0.0)
            for _, element in self.drive.commands
        )
        arm = self.arm.facts()
        told = ((name, getattr(self.drive, name)) for name in self.drive.units)
        own = {name: list(value) if isinstance(value, tuple) else value for name, value in told}
        return Robot(self.name, KIND, (*base, *arm.actuators), {**arm.facts, **own})

    def figures(self) -> dict[str, Any]:
        """What is worth knowing at a glance."""
        return {**self.arm.figures(), "speed_max_m_s": self.drive.speed_max}

    def files(self) -> tuple[Path, ...]:
        """Files beside the card that belong to it: the model, and what it names."""
        return self.arm.files()

    def drawing(self) -> tuple[Any, Any]:
        """How it looks at home: a MuJoCo model, and poses (bodies, 7) as ``Plant.poses`` gives them."""
        from robo_rl.sim.plants.drawing import at_rest

        return at_rest(self.mechanism)

    def urdf(self) -> str:
        """As an arm's, from the base on: where that is in the world, the odometry tells."""
        robot = Xml.fromstring(self.arm.urdf())
        for name in self.drive.joints:
            joint = next(part for part in robot.iter("joint") if part.get("name") == name)
            above = next(part.get("link", "") for part in joint.iter("parent"))
            robot.remove(joint)
            robot.remove(next(part for part in robot.iter("link") if part.get("name") == above))
        return f'<?xml version="1.0"?>\n{Xml.tostring(robot, encoding="unicode")}\n'

    @cached_property
    def mechanism(self) -> Mechanism:
        """The arm's, and the joints of the base, which have no drives: a plant moves them."""
        x, y, yaw = (DrivenJoint(name, armature=HEAVY) for name in self.drive.joints)
        base = JointGroup("base", (x, y), law="none", slides=True)
        heading = JointGroup("heading", (yaw,), law="none")
        arm = self.arm.mechanism
        return dataclasses.replace(arm, groups=(*arm.groups, base, heading))

    @classmethod
    def read(cls, card: dict[str, Any], name: str, path: Path) -> MobileManipulatorCard:
        """The card in the parsed TOML ``card`` of the file ``path``."""
        where, table = str(path), card.get("drive")
        require(isinstance(table, dict), where, "drive", table, "a table [drive] with joints and figures")
        assert isinstance(table, dict)
        drive = _all_ways(table, where) if "wheel_x" in table else _two_wheels(table, where)
        arm = read_arm({key: value for key, value in card.items() if key != "drive"}, name, path, drive.joints)
        sources = {f"drive.{key}": str(table[key]["source"]) for key in drive.units}
        return cls(arm, drive, {**sources, **arm.sources})


def _two_wheels(table: dict[str, Any], where: str) -> Drive:
    joints = _joints(table, DRIVE, where)
    found = {key: figure(table[key], f"drive.{key}", unit, 1, where)[0] for key, unit in DRIVE.items()}
    for key, value in found.items():
        require(value > 0, where, f"drive.{key}.value", value, "a positive number")
    return Drive(joints, **found)


def _all_ways(table: dict[str, Any], where: str) -> OmniDrive:
    joints = _joints(table, ALL_WAYS, where)
    count, found = wheels_of(table, where, "drive."), dict[str, Any]()
    for key, unit in ALL_WAYS.items():
        values = figure(table[key], f"drive.{key}", unit, count if key in WHEELS else 1, where)
        good = key in WHEELS or values[0] > 0 or (key == "roller_friction" and values[0] == 0)
        require(good, where, f"drive.{key}.value", values, "a positive number")
        found[key] = tuple(values) if key in WHEELS else values[0]
    made = OmniDrive(joints, **found)
    require_all_ways(made, made.gyration, where, "drive.")
    return made


def _joints(table: dict[str, Any], units: dict[str, str], where: str) -> tuple[str, str, str]:
    known = sorted({"joints", *units})
    other = "; of mecanum or omni wheels those of docs/own-robot.md, other drives are a task of your own"
    require(set(table) == set(known), where, "drive", sorted(table), f"the fields {known}{other} (docs/own-task.md)")
    joints = names(table["joints"], "drive.joints", where)
    require(len(joints) == 3, where, "drive.joints", list(joints), "two slides and a hinge")
    return joints[0], joints[1], joints[2]


CARD = MobileManipulatorCard
