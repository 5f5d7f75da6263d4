"""Cards of mobile bases with differential drive, and what those of all round bases with a lidar have."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from robo_rl.contract import Actuator, Robot
from robo_rl.sim.robots.figures import flat_card, require

SHARED = {
    "mass": "kg",
    "radius": "m",
    "height": "m",
    "wheel_radius": "m",
    "speed_max": "m/s",
    "turn_rate_max": "rad/s",
    "acceleration": "m/s^2",
    "turn_acceleration": "rad/s^2",
    "motor_time": "s",
    "gyroscope_range": "rad/s",
    "lidar_position": "m",
    "lidar_range": "m",
    "lidar_noise": "m",
    "lidar_period": "s",
}
"""The figures that every base's card has, and the one unit that each may have."""
UNITS = {**SHARED, "wheel_separation": "m"}
SKID = {"icr_width": "1", "icr_forward": "m"}
"""The figures of a base that skids in turns, which others' cards have not."""
COUNTS = {"lidar_position": 2, "lidar_range": 2}
"""Of those that are several numbers."""


@dataclass(frozen=True)
class BaseCard(ABC):
    """Figures of any round base on wheels with a lidar, in SI units; x forward, from the middle of its wheels."""

    kind: ClassVar[str]

    name: str
    title: str
    mass: float
    radius: float
    """Of a disc about the middle of the wheels that has the robot in it."""
    height: float
    wheel_radius: float
    speed_max: float
    turn_rate_max: float
    acceleration: float
    turn_acceleration: float
    motor_time: float
    """Time constant of the wheels' speed control."""
    gyroscope_range: float
    lidar_position: tuple[float, float]
    """Forward of the middle of the wheels, and above the ground; it looks all around."""
    lidar_range: tuple[float, float]
    """Least and greatest distance that it measures."""
    lidar_noise: float
    """Standard deviation."""
    lidar_period: float
    """Time of a turn."""
    sources: dict[str, str]

    @abstractmethod
    def facts(self) -> Robot:
        """What a contract tells about this robot."""

    @property
    @abstractmethod
    def wheels(self) -> tuple[Wheel, ...]:
        """Where its wheels are."""

    @property
    @abstractmethod
    def wheel_width(self) -> float:
        """m, for pictures."""

    @property
    def yaw_moment(self) -> float:
        """kg m², the moment of inertia about the vertical: of a disc, unless the card has it."""
        return 0.5 * self.mass * self.radius**2

    def figures(self) -> dict[str, Any]:
        """What is worth knowing at a glance."""
        return {"mass_kg": self.mass, "radius_m": self.radius, "speed_max_m_s": self.speed_max}

    def files(self) -> tuple[Path, ...]:
        """Files beside the card that belong to it: none."""
        return ()

    def drawing(self) -> tuple[Any, Any]:
        """How it looks at rest: a MuJoCo model, and poses (bodies, 7) as ``Plant.poses`` gives them."""
        from robo_rl.sim.plants.mobile_base.drawing import at_rest

        return at_rest(self)

    def urdf(self) -> str:
        """base_link on the ground below the middle of the wheels, a cylinder with all mass, the wheels, the lidar."""
        robot = ET.Element("robot", name=self.name)
        base = ET.SubElement(robot, "link", name="base_link")
        middle = {"xyz": f"0 0 {0.5 * self.height}", "rpy": "0 0 0"}
        inertial = ET.SubElement(base, "inertial")
        ET.SubElement(inertial, "origin", middle)
        ET.SubElement(inertial, "mass", value=repr(self.mass))
        across = self.mass * (3 * self.radius**2 + self.height**2) / 12
        moments = {"ixx": across, "iyy": across, "izz": self.yaw_moment, "ixy": 0, "ixz": 0, "iyz": 0}
        ET.SubElement(inertial, "inertia", {name: repr(value) for name, value in moments.items()})
        for part in ("visual", "collision"):
            shape = ET.SubElement(base, part)
            ET.SubElement(shape, "origin", middle)
            body = {"radius": repr(self.radius), "length": repr(0.8 * self.height)}
            ET.SubElement(ET.SubElement(shape, "geometry"), "cylinder", body)
        for wheel in self.wheels:
            joint, link = _link(robot, wheel.name, (wheel.x, wheel.y, self.wheel_radius))
            joint.set("type", "continuous")
            across_it = (-math.sin(wheel.heading), math.cos(wheel.heading), 0.0)
            ET.SubElement(joint, "axis", xyz=" ".join(f"{round(x, 6) + 0.0:g}" for x in across_it))
            visual = ET.SubElement(link, "visual")
            ET.SubElement(visual, "origin", xyz="0 0 0", rpy=f"1.5707963 0 {wheel.heading:.8g}")
            size = {"radius": repr(self.wheel_radius), "length": repr(self.wheel_width)}
            ET.SubElement(ET.SubElement(visual, "geometry"), "cylinder", size)
        _link(robot, "base_scan", (self.lidar_position[0], 0.0, self.lidar_position[1]))
        ET.indent(robot)
        return f'<?xml version="1.0"?>\n{ET.tostring(robot, encoding="unicode")}\n'

    @classmethod
    @abstractmethod
    def read(cls, card: dict[str, Any], name: str, path: Path) -> Self:
        """The card in the parsed TOML ``card`` of the file ``path``."""

    @classmethod
    def of(
        cls, card: dict[str, Any], units: dict[str, str], counts: dict[str, int], signed: tuple[str, ...], name: str,
        path: Path,
    ) -> Self:  # fmt: skip
        """The card in the parsed TOML ``card`` of the file ``path``, whose figures have these ``units``.

        ``counts``: how many numbers those have that are several and no other base's; of ``signed``, any sign.
        """
        where = str(path)
        zero, any_sign = ("lidar_noise", "roller_friction"), ("lidar_position", *signed)
        made, sources = flat_card(card, units, {**COUNTS, **counts}, zero, any_sign, where)
        low, high = made["lidar_range"]
        checks = (
            ("lidar_range", low < high, "least < greatest"),
            ("lidar_position", abs(made["lidar_position"][0]) < made["radius"], "a place on the robot"),
        )
        for key, good, expected in checks:
            require(good, where, f"{key}.value", made[key], expected)
        return cls(name=name, sources=sources, **made)


@dataclass(frozen=True)
class Wheel:
    """Where a wheel is (m), and which way it rolls (rad from x towards y)."""

    name: str
    x: float
    y: float
    heading: float = 0.0


@dataclass(frozen=True)
class MobileBaseCard(BaseCard):
    """Figures of a round mobile base with two driven wheels, in SI units; x forward, from the middle of its axle.

    Or with two or three on each side, which skid in turns: x from the middle of them all.
    """

    kind: ClassVar[str] = "mobile_base"

    wheel_separation: float
    icr_width: float = 1.0
    """Distance of the points about which its sides turn, over ``wheel_separation``: 1 of wheels that don't skid."""
    icr_forward: float = 0.0
    """Ahead of its middle, of the point about which it turns on the spot."""

    @property
    def skids(self) -> bool:
        return self.icr_width != 1.0

    def facts(self) -> Robot:
        """What a contract tells about this robot."""
        top, turn = self.speed_max, self.turn_rate_max
        actuators = (
            Actuator("vx", "velocity", "m/s", -top, top, safe=0.0),
            Actuator("wz", "velocity", "rad/s", -turn, turn, safe=0.0),
        )
        told = ("mass", "radius", "wheel_radius", "wheel_separation", "speed_max", "turn_rate_max", "acceleration")
        skid = tuple(SKID) if self.skids else ()
        own: dict[str, Any] = {name: getattr(self, name) for name in (*told, "turn_acceleration", *skid)}
        return Robot(self.name, self.kind, actuators, own)

    @property
    def wheels(self) -> tuple[Wheel, Wheel]:
        """Left and right."""
        half = 0.5 * self.wheel_separation
        return Wheel("left_wheel", 0.0, half), Wheel("right_wheel", 0.0, -half)

    @property
    def wheel_width(self) -> float:
        return 0.12 * self.wheel_separation

    @classmethod
    def read(cls, card: dict[str, Any], name: str, path: Path) -> Self:
        """The card in the parsed TOML ``card`` of the file ``path``."""
        skids = any(key in card for key in SKID)
        found = cls.of(card, {**UNITS, **(SKID if skids else {})}, {}, ("icr_forward",), name, path)
        separation, good = found.wheel_separation, found.wheel_separation <= 2 * found.radius
        require(good, str(path), "wheel_separation.value", separation, "at most twice the radius")
        if skids:
            expected = "more than 1, up to 4: the controller's multiplier of wheel_separation"
            require(1.0 < found.icr_width <= 4.0, str(path), "icr_width.value", found.icr_width, expected)
            ahead, near = found.icr_forward, abs(found.icr_forward) < found.radius
            require(near, str(path), "icr_forward.value", ahead, "a point between front and back")
        return found


def _link(robot: ET.Element, name: str, place: tuple[float, ...]) -> tuple[ET.Element, ET.Element]:
    link = ET.SubElement(robot, "link", name=name)
    joint = ET.SubElement(robot, "joint", name=f"{name}_joint", type="fixed")
    ET.SubElement(joint, "origin", xyz=" ".join(map(str, place)), rpy="0 0 0")
    ET.SubElement(joint, "parent", link="base_link")
    ET.SubElement(joint, "child", link=name)
    return joint, link


CARD = MobileBaseCard
