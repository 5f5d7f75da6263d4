"""Cards of mobile manipulators: an arm as in ``robo_rl.sim.robots.arm``, on a base with two driven wheels
(``[drive]``).

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
from robo_rl.sim.robots.arm import ArmCard
from robo_rl.sim.robots.figures import figure, names, require
from robo_rl.sim.robots.mechanism import DrivenJoint, JointGroup, Mechanism

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


@dataclass(frozen=True)
class MobileManipulatorCard:
    """Figures of an arm on a mobile base."""

    kind: ClassVar[str] = KIND
    arm: ArmCard
    drive: Drive
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
        base = (
            Actuator("vx", "velocity", "m/s", -top, top, safe=0.0),
            Actuator("wz", "velocity", "rad/s", -turn, turn, safe=0.0),
        )
        arm = self.arm.facts()
        own = {name: getattr(self.drive, name) for name in DRIVE}
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
        known = sorted({"joints", *DRIVE})
        require(set(table) == set(known), where, "drive", sorted(table), f"the fields {known}")
        joints = names(table["joints"], "drive.joints", where)
        require(len(joints) == 3, where, "drive.joints", list(joints), "two slides and a hinge")
        found = {key: figure(table[key], f"drive.{key}", unit, 1, where)[0] for key, unit in DRIVE.items()}
        for key, value in found.items():
            require(value > 0, where, f"drive.{key}.value", value, "a positive number")
        arm = ArmCard.read({key: value for key, value in card.items() if key != "drive"}, name, path)
        sources = {f"drive.{key}": str(table[key]["source"]) for key in DRIVE}
        return cls(arm, Drive((joints[0], joints[1], joints[2]), **found), {**sources, **arm.sources})


CARD = MobileManipulatorCard
