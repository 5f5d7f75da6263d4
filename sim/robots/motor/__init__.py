"""Cards of electric motors with their inverter and sensors: synchronous machines in dq, brushless motors with six-step
commutation, and geared DC motors.

Amplitude-invariant dq: a current (d, q) of length I is phase currents of amplitude I, and torque has the factor 3/2.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from robo_rl.contract import Actuator, Robot
from robo_rl.sim.robots.figures import flat_card, require

INVERTER = {
    "supply_voltage": "V",
    "supply_resistance": "ohm",
    "dead_time": "s",
    "current_limit": "A",
    "current_nominal": "A",
    "current_noise": "A",
    "current_step": "A",
    "speed_noise": "rad/s",
    "speed_max": "rad/s",
    "inertia": "kg*m^2",
    "friction": "N*m*s/rad",
}
"""Of the inverter, the sensors and the shaft, and the one unit that each may have."""
PMSM = {
    **INVERTER, "pole_pairs": "1", "resistance": "ohm", "inductance_d": "H", "inductance_q": "H", "flux": "Wb",
    "supply_capacitance": "F",
}  # fmt: skip
DC = {
    **INVERTER, "resistance": "ohm", "inductance": "H", "torque_constant": "N*m/A", "gear_ratio": "1",
    "dry_friction": "N*m",
}  # fmt: skip
BLDC = {
    **INVERTER, "pole_pairs": "1", "resistance": "ohm", "inductance": "H", "torque_constant": "N*m/A",
    "dry_friction": "N*m",
}  # fmt: skip
MAY_BE_ZERO = ("supply_resistance", "dead_time", "current_noise", "current_step", "speed_noise", "friction",
               "dry_friction")  # fmt: skip


@dataclass(frozen=True)
class MotorCard:
    """What all motors have, in SI units; the shaft is that after a gear, if there is one."""

    kind: ClassVar[str] = "motor"
    machine: ClassVar[str] = ""
    """What the card's field of that name says."""
    units: ClassVar[dict[str, str]] = {}

    name: str
    title: str
    supply_voltage: float
    """Of the DC bus without load."""
    supply_resistance: float
    dead_time: float
    """s of the inverter's switches in each PWM period, at most: what was drawn in training goes from 0 to this."""
    current_limit: float
    """A, of the phase current's amplitude: beyond it the inverter switches off."""
    current_nominal: float
    current_noise: float
    """A, standard deviation."""
    current_step: float
    """A, of the current's analog-digital converter."""
    speed_noise: float
    """rad/s of the motor's shaft, standard deviation."""
    speed_max: float
    """rad/s of the motor's shaft, without field weakening."""
    inertia: float
    """kg m² at the motor's shaft, load included."""
    friction: float
    sources: dict[str, str]

    @property
    def voltage_max(self) -> float:
        """V, the greatest amplitude of what a phase can be given at the nominal supply."""
        raise NotImplementedError

    @property
    def torque_factor(self) -> float:
        """N m/A, torque of the motor's shaft per current in q, or of the armature."""
        raise NotImplementedError

    def facts(self) -> Robot:
        """What a contract tells about this motor; its classical controllers read the same."""
        names = self.actuator_names
        most = 1.3 * self.voltage_max
        actuators = tuple(Actuator(name, "voltage", "V", -most, most, safe=0.0) for name in names)
        own: dict[str, Any] = {name: getattr(self, name) for name in self.units}
        return Robot(self.name, self.kind, actuators, {"machine": self.machine, **own})

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Of the voltages that it is given."""
        raise NotImplementedError

    def figures(self) -> dict[str, Any]:
        """What is worth knowing at a glance."""
        return {
            "machine": self.machine, "current_limit_a": self.current_limit, "supply_v": self.supply_voltage,
            "torque_n_m": self.torque_factor * self.current_nominal, "speed_max_rad_s": self.speed_max,
        }  # fmt: skip

    def files(self) -> tuple[Path, ...]:
        """Files beside the card that belong to it: none."""
        return ()

    def drawing(self) -> tuple[Any, Any]:
        """How it looks at rest: a MuJoCo model, and poses (bodies, 7) as ``Plant.poses`` gives them."""
        from robo_rl.sim.plants.motor.drawing import at_rest

        return at_rest()

    def urdf(self) -> str:
        """base_link, and the shaft as a continuous joint about z."""
        robot = ET.Element("robot", name=self.name)
        ET.SubElement(robot, "link", name="base_link")
        ET.SubElement(robot, "link", name="shaft")
        joint = ET.SubElement(robot, "joint", name="shaft_joint", type="continuous")
        ET.SubElement(joint, "parent", link="base_link")
        ET.SubElement(joint, "child", link="shaft")
        ET.SubElement(joint, "axis", xyz="0 0 1")
        ET.indent(robot)
        return f'<?xml version="1.0"?>\n{ET.tostring(robot, encoding="unicode")}\n'

    @classmethod
    def read(cls, card: dict[str, Any], name: str, path: Path) -> Self:
        """The card in the parsed TOML ``card`` of the file ``path``."""
        where, machine = str(path), card.get("machine")
        known = {one.machine: one for one in (PmsmCard, DcCard, BldcCard) if issubclass(one, cls)}
        require(isinstance(machine, str) and machine in known, where, "machine", machine, f"one of {sorted(known)}")
        assert isinstance(machine, str)
        made = known[machine]
        rest = {key: value for key, value in card.items() if key != "machine"}
        found, sources = flat_card(rest, made.units, {}, MAY_BE_ZERO, (), where)
        nominal, limit = found["current_nominal"], found["current_limit"]
        require(nominal < limit, where, "current_nominal.value", nominal, f"less than current_limit, {limit:g} A")
        if "pole_pairs" in found:
            pairs = found["pole_pairs"]
            require(pairs == int(pairs) and pairs <= 1000, where, "pole_pairs.value", pairs, "a whole number")
        return made(name=name, sources=sources, **found)  # type: ignore[return-value]


@dataclass(frozen=True)
class PmsmCard(MotorCard):
    """A synchronous machine with permanent magnets on an inverter of three half bridges."""

    machine: ClassVar[str] = "pmsm"
    units: ClassVar[dict[str, str]] = PMSM

    pole_pairs: float
    resistance: float
    """Of a phase."""
    inductance_d: float
    inductance_q: float
    flux: float
    """Of the magnets, linked with a phase."""
    supply_capacitance: float
    """Of the DC link."""

    @property
    def voltage_max(self) -> float:
        return self.supply_voltage / math.sqrt(3.0)

    @property
    def torque_factor(self) -> float:
        return 1.5 * self.pole_pairs * self.flux

    @property
    def actuator_names(self) -> tuple[str, ...]:
        return "d", "q"


@dataclass(frozen=True)
class DcCard(MotorCard):
    """A DC motor with brushes and a gear, on a full bridge."""

    machine: ClassVar[str] = "dc"
    units: ClassVar[dict[str, str]] = DC

    resistance: float
    inductance: float
    torque_constant: float
    """At the motor's shaft; also V s/rad of the back-EMF."""
    gear_ratio: float
    dry_friction: float
    """At the motor's shaft, gear included."""

    @property
    def voltage_max(self) -> float:
        return self.supply_voltage

    @property
    def torque_factor(self) -> float:
        return self.torque_constant

    @property
    def actuator_names(self) -> tuple[str, ...]:
        return ("armature",)


@dataclass(frozen=True)
class BldcCard(MotorCard):
    """A brushless motor with a trapezoidal back-EMF and three Hall sensors, on an inverter of three half bridges, of
    which two conduct at a time."""

    machine: ClassVar[str] = "bldc"
    units: ClassVar[dict[str, str]] = BLDC

    pole_pairs: float
    resistance: float
    """From phase to phase, as in data sheets."""
    inductance: float
    """Likewise."""
    torque_constant: float
    """With the current in two phases; also V s/rad of the back-EMF between them."""
    dry_friction: float

    @property
    def voltage_max(self) -> float:
        return self.supply_voltage

    @property
    def torque_factor(self) -> float:
        return self.torque_constant

    @property
    def actuator_names(self) -> tuple[str, ...]:
        return ("bridge",)


CARD = MotorCard
