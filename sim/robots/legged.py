"""Cards of robots on legs: a model file for bodies and shapes, and the figures of the motors in every joint.

Motors that are alike are one table ``[[motors]]`` with the joints they drive. The list ``joints`` says in which
order the robot's computer has them; it is the order of signals and commands.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from robo_rl.contract import ContractError, Joint, Legged
from sim.robots.figures import CardError, figure, require
from sim.robots.mechanism import ContactPoints, DrivenJoint, JointGroup, Mechanism

UNITS = {
    "stand": "rad",
    "range": "rad",
    "effort": "N*m",
    "velocity": "rad/s",
    "stiffness": "N*m/rad",
    "damping": "N*m*s/rad",
    "armature": "kg*m^2",
    "friction": "N*m",
}
"""The figures of a motor and the one unit that each may have."""

FIELDS = {"kind", "title", "model", "base", "feet", "joints", "motors"}


@dataclass(frozen=True)
class Motor:
    """What a model needs of the motor in a joint, besides the contract's facts: its rotor and its losses."""

    armature: float
    """kg m², inertia of rotor and gears as seen by the joint."""
    friction: float
    """N m, dry friction of gears and bearings."""


@dataclass(frozen=True)
class LeggedCard:
    """Figures of a robot on legs in SI units."""

    name: str
    title: str
    model: Path
    """MJCF or URDF with bodies, inertias, joint axes and collision shapes."""
    base: str
    """The body that carries the legs and the IMU."""
    feet: tuple[str, ...]
    """The shapes (MuJoCo's geoms) that stand on the ground."""
    joints: tuple[Joint, ...]
    motors: tuple[Motor, ...]
    """One per joint."""
    sources: dict[str, str]

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(joint.name for joint in self.joints)

    def facts(self) -> Legged:
        """What a contract tells about this robot."""
        return Legged(self.joints, self.feet)

    @cached_property
    def mechanism(self) -> Mechanism:
        """Bodies and joints for the plants: a free base, position-controlled DC motors, feet that touch."""
        joints = tuple(
            DrivenJoint(
                joint.name, joint.stand, joint.lower, joint.upper, joint.effort, joint.velocity, joint.stiffness,
                joint.damping, motor.armature, motor.friction,
            )
            for joint, motor in zip(self.joints, self.motors, strict=True)
        )  # fmt: skip
        return Mechanism(
            name=self.name,
            model=self.model,
            base=self.base,
            fixed=False,
            groups=(JointGroup("joint", joints, dc_motor=True),),
            contacts=(ContactPoints("foot", self.feet),),
        )


def read_legged(card: dict[str, Any], name: str, path: Path) -> LeggedCard:
    """The card in the parsed TOML ``card`` of the file ``path``."""
    where = str(path)
    for key in card:
        require(key in FIELDS, where, key, "an unknown field", f"one of {sorted(FIELDS)}")
    for key in ("title", "model", "base"):
        require(isinstance(card.get(key), str), where, key, card.get(key), "a text")
    for key in ("feet", "joints"):
        value = card.get(key)
        good = isinstance(value, list) and len(value) > 0 and all(isinstance(x, str) for x in value)
        require(good, where, key, value, "a list of names")
    model = path.parent / card["model"]
    beside = model.name == card["model"] and model.is_file()
    require(beside, where, "model", card["model"], f"the name of a file beside the card; there is no {model}")
    driven = _motors(card.get("motors"), where)
    require(
        set(driven) == set(card["joints"]), where, "joints", card["joints"], f"the motors' joints, {sorted(driven)}"
    )
    figures = [driven[joint] for joint in card["joints"]]
    try:
        joints = tuple(_joint(joint, values) for joint, values in zip(card["joints"], figures, strict=True))
        result = LeggedCard(
            name=name,
            title=card["title"],
            model=model,
            base=card["base"],
            feet=tuple(card["feet"]),
            joints=joints,
            motors=tuple(Motor(values["armature"][0], values["friction"][0]) for values in figures),
            sources={f"{m['name']}.{key}": str(m[key]["source"]) for m in card["motors"] for key in UNITS},
        )
        result.facts()
    except ContractError as error:
        raise CardError(f"{where}: {error}") from None
    return result


def _motors(motors: Any, where: str) -> dict[str, dict[str, list[float]]]:
    """The figures of the motor in each joint."""
    require(isinstance(motors, list) and len(motors) > 0, where, "motors", motors, "at least one [[motors]]")
    driven: dict[str, dict[str, list[float]]] = {}
    for i, motor in enumerate(motors):
        label = f"motors[{i}]"
        keys = {"name", "joints", *UNITS}
        require(isinstance(motor, dict) and set(motor) == keys, where, label, motor, f"the fields {sorted(keys)}")
        values = {k: figure(motor[k], f"{label}.{k}", u, 2 if k == "range" else 1, where) for k, u in UNITS.items()}
        for key in ("armature", "friction"):
            require(values[key][0] >= 0, where, f"{label}.{key}.value", values[key][0], "a number of 0 or more")
        for joint in motor["joints"]:
            require(joint not in driven, where, f"{label}.joints", joint, "a joint that no other motor drives")
            driven[joint] = values
    return driven


def _joint(name: str, values: dict[str, list[float]]) -> Joint:
    lower, upper = values["range"]
    single = {key: values[key][0] for key in ("stand", "effort", "velocity", "stiffness", "damping")}
    return Joint(name, lower=lower, upper=upper, **single)
