"""Cards of mobile bases with differential drive: figures of wheels, motors, shape and lidar."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from robo_rl.contract import Actuator, Robot
from sim.robots.figures import flat_card, require

UNITS = {
    "mass": "kg",
    "radius": "m",
    "height": "m",
    "wheel_radius": "m",
    "wheel_separation": "m",
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
"""The figures of a card and the one unit that each may have."""
COUNTS = {"lidar_position": 2, "lidar_range": 2}
"""Of those that are several numbers."""


@dataclass(frozen=True)
class MobileBaseCard:
    """Figures of a round mobile base with two driven wheels, in SI units; x forward, from the middle of its axle."""

    kind: ClassVar[str] = "mobile_base"

    name: str
    title: str
    mass: float
    radius: float
    """Of a disc about the middle of the axle that has the robot in it."""
    height: float
    wheel_radius: float
    wheel_separation: float
    speed_max: float
    turn_rate_max: float
    acceleration: float
    turn_acceleration: float
    motor_time: float
    """Time constant of the wheels' speed control."""
    gyroscope_range: float
    lidar_position: tuple[float, float]
    """Forward of the axle, and above the ground; it looks all around."""
    lidar_range: tuple[float, float]
    """Least and greatest distance that it measures."""
    lidar_noise: float
    """Standard deviation."""
    lidar_period: float
    """Time of a turn."""
    sources: dict[str, str]

    def facts(self) -> Robot:
        """What a contract tells about this robot."""
        top, turn = self.speed_max, self.turn_rate_max
        actuators = (
            Actuator("vx", "velocity", "m/s", -top, top, safe=0.0),
            Actuator("wz", "velocity", "rad/s", -turn, turn, safe=0.0),
        )
        told = ("mass", "radius", "wheel_radius", "wheel_separation", "speed_max", "turn_rate_max", "acceleration")
        own: dict[str, Any] = {name: getattr(self, name) for name in (*told, "turn_acceleration")}
        return Robot(self.name, self.kind, actuators, own)

    def figures(self) -> dict[str, Any]:
        """What is worth knowing at a glance."""
        return {"mass_kg": self.mass, "radius_m": self.radius, "speed_max_m_s": self.speed_max}

    def files(self) -> tuple[Path, ...]:
        """Files beside the card that belong to it: none."""
        return ()

    def drawing(self) -> tuple[Any, Any]:
        """How it looks at rest: a MuJoCo model, and poses (bodies, 7) as ``Plant.poses`` gives them."""
        from sim.plants.mobile_base_drawing import at_rest

        return at_rest(self)

    def urdf(self) -> str:
        """base_link on the ground below the middle of the axle, a cylinder with all mass, two wheels, the lidar."""
        robot = ET.Element("robot", name=self.name)
        base = ET.SubElement(robot, "link", name="base_link")
        middle = {"xyz": f"0 0 {0.5 * self.height}", "rpy": "0 0 0"}
        inertial = ET.SubElement(base, "inertial")
        ET.SubElement(inertial, "origin", middle)
        ET.SubElement(inertial, "mass", value=repr(self.mass))
        across = self.mass * (3 * self.radius**2 + self.height**2) / 12
        moments = {"ixx": across, "iyy": across, "izz": 0.5 * self.mass * self.radius**2, "ixy": 0, "ixz": 0, "iyz": 0}
        ET.SubElement(inertial, "inertia", {name: repr(value) for name, value in moments.items()})
        for part in ("visual", "collision"):
            shape = ET.SubElement(base, part)
            ET.SubElement(shape, "origin", middle)
            body = {"radius": repr(self.radius), "length": repr(0.8 * self.height)}
            ET.SubElement(ET.SubElement(shape, "geometry"), "cylinder", body)
        for side, sign in (("left", 0.5), ("right", -0.5)):
            joint, link = _link(robot, f"{side}_wheel", (0.0, sign * self.wheel_separation, self.wheel_radius))
            joint.set("type", "continuous")
            ET.SubElement(joint, "axis", xyz="0 1 0")
            visual = ET.SubElement(link, "visual")
            ET.SubElement(visual, "origin", xyz="0 0 0", rpy="1.5707963 0 0")
            wheel = {"radius": repr(self.wheel_radius), "length": repr(0.12 * self.wheel_separation)}
            ET.SubElement(ET.SubElement(visual, "geometry"), "cylinder", wheel)
        _link(robot, "base_scan", (self.lidar_position[0], 0.0, self.lidar_position[1]))
        ET.indent(robot)
        return f'<?xml version="1.0"?>\n{ET.tostring(robot, encoding="unicode")}\n'

    @classmethod
    def read(cls, card: dict[str, Any], name: str, path: Path) -> MobileBaseCard:
        """The card in the parsed TOML ``card`` of the file ``path``."""
        where = str(path)
        made, sources = flat_card(card, UNITS, COUNTS, ("lidar_noise",), ("lidar_position",), where)
        low, high = made["lidar_range"]
        checks = (
            ("lidar_range", low < high, "least < greatest"),
            ("lidar_position", abs(made["lidar_position"][0]) < made["radius"], "a place on the robot"),
            ("wheel_separation", made["wheel_separation"] <= 2 * made["radius"], "at most twice the radius"),
        )
        for key, good, expected in checks:
            require(good, where, f"{key}.value", made[key], expected)
        return cls(name=name, sources=sources, **made)


def _link(robot: ET.Element, name: str, place: tuple[float, ...]) -> tuple[ET.Element, ET.Element]:
    link = ET.SubElement(robot, "link", name=name)
    joint = ET.SubElement(robot, "joint", name=f"{name}_joint", type="fixed")
    ET.SubElement(joint, "origin", xyz=" ".join(map(str, place)), rpy="0 0 0")
    ET.SubElement(joint, "parent", link="base_link")
    ET.SubElement(joint, "child", link=name)
    return joint, link


CARD = MobileBaseCard
