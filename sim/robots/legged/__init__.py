"""Cards of legged robots: a model file for bodies and shapes, and the figures of the motors in every joint.

Motors that are alike are one table ``[[motors]]`` with the joints they drive. The list ``joints`` says in which
order the robot's computer has them; it is the order of signals and commands. Legs may be any number, of any number of
joints each (``robo_rl.sim.tasks.legged.limbs`` finds them in the model).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from robo_rl.contract import Actuator, ContractError, PositionLaw, Robot
from robo_rl.contract.checks import require as require_fact
from robo_rl.contract.checks import require_label, set_numbers
from robo_rl.sim.robots.figures import CardError, figure, label, model_beside, names, require
from robo_rl.sim.robots.mechanism import ContactPoints, DrivenJoint, JointGroup, Mechanism
from robo_rl.sim.robots.motors import HINGE, read_held

KIND = "legged"

UNITS = {"stand": "rad", **HINGE}
"""The figures of a motor and the one unit that each may have."""

HOLD = {"hold_stiffness": "N*m/rad", "hold_damping": "N*m*s/rad"}
"""Of all motors or of none: gains that hold the stance, of a robot that falls with those of its gait."""

FIELDS = {"kind", "title", "model", "base", "feet", "joints", "motors", "held", "hardware"}


@dataclass(frozen=True)
class Joint:
    """One driven joint.

    ``stand`` (rad): where it is when the robot stands. ``lower``, ``upper`` (rad): its stops. ``effort`` (N m): the
    greatest torque, at standstill; it falls to zero at ``velocity`` (rad/s). ``stiffness`` (N m/rad) and ``damping``
    (N m s/rad): gains of the position control that runs at the motor. ``hold_stiffness``, ``hold_damping``: its gains
    while the robot holds its stance; None: the same.
    """

    name: str
    stand: float
    lower: float
    upper: float
    effort: float
    velocity: float
    stiffness: float
    damping: float
    hold_stiffness: float | None = None
    hold_damping: float | None = None

    def __post_init__(self) -> None:
        where = f"joint '{self.name}'"
        require_label(self.name, "joint.name")
        given = [f.name for f in dataclasses.fields(self) if f.name != "name" and getattr(self, f.name) is not None]
        set_numbers(self, given, f"{where}: ")
        stops = (self.lower, self.upper)
        require_fact(stops[0] < stops[1], f"{where}: lower, upper", stops, "lower < upper, in rad")
        require_fact(stops[0] <= self.stand <= stops[1], f"{where}: stand", self.stand, f"a number from {stops}")
        for name in ("effort", "velocity"):
            sane = 1e-6 <= getattr(self, name) <= 1e9  # beyond, their ratio is no figure of a motor
            require_fact(sane, f"{where}: {name}", getattr(self, name), "a positive number, 1e-6 to 1e9")
        for name in set(given) & {"stiffness", "damping", *HOLD}:
            require_fact(getattr(self, name) >= 0, f"{where}: {name}", getattr(self, name), "a number of 0 or more")


@dataclass(frozen=True)
class Motor:
    """What a model needs of the motor in a joint, besides the contract's facts: its rotor and its losses."""

    armature: float
    """kg m², inertia of rotor and gears as seen by the joint."""
    friction: float
    """N m, dry friction of gears and bearings."""


@dataclass(frozen=True)
class LeggedCard:
    """Figures of a legged robot in SI units."""

    kind: ClassVar[str] = KIND
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
    held: tuple[tuple[str, float], ...] = ()
    """Joints of the model that don't move, such as an arm's, and where they stay (rad or m)."""
    hardware: tuple[tuple[str, float], ...] = ()
    """What tells this robot from others of its name, such as Unitree's mode_machine, as the robot itself reports it."""

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(joint.name for joint in self.joints)

    @property
    def law(self) -> PositionLaw:
        """The position control at the motors."""
        return PositionLaw(tuple(j.stiffness for j in self.joints), tuple(j.damping for j in self.joints))

    def facts(self) -> Robot:
        """What a contract tells about this robot."""
        actuators = tuple(
            Actuator(j.name, "position", "rad", j.lower, j.upper, "hold", effort=j.effort, speed=j.velocity)
            for j in self.joints
        )
        facts: dict[str, Any] = {"feet": list(self.feet), "stand": [joint.stand for joint in self.joints]}
        if self.hardware:
            facts["hardware"] = dict(self.hardware)
        if self.joints[0].hold_stiffness is not None:
            facts["hold"] = {key.removeprefix("hold_"): [getattr(j, key) for j in self.joints] for key in HOLD}
        return Robot(self.name, KIND, actuators, facts)

    def figures(self) -> dict[str, Any]:
        """What is worth knowing at a glance: mass, height, and what each joint moves, as the walking tasks see it."""
        from robo_rl.sim.tasks.legged.legs import describe

        return describe(self)

    def files(self) -> tuple[Path, ...]:
        """Files beside the card that belong to it: the model, and what it names."""
        from robo_rl.sim.models import named_files

        return (self.model, *named_files(self.model))

    @classmethod
    def read(cls, card: dict[str, Any], name: str, path: Path) -> LeggedCard:
        """The card in the parsed TOML ``card`` of the file ``path``."""
        return _read(card, name, path)

    def drawing(self) -> tuple[Any, Any]:
        """How it looks as it stands: a MuJoCo model, and poses (bodies, 7) as ``Plant.poses`` gives them."""
        from robo_rl.sim.plants.drawing import at_rest

        return at_rest(self.mechanism)

    def urdf(self) -> str:
        """One link per body of the model file, and one more for each foot."""
        from robo_rl.sim.plants.urdf import ros_urdf

        return ros_urdf(self.mechanism)

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
            held=self.held,
            complete=True,
        )


CARD = LeggedCard


def load_legged(name: str) -> LeggedCard:
    """As ``robo_rl.sim.robots.load_robot``, for a legged robot."""
    from robo_rl.sim.robots import load_robot

    return load_robot(name, CARD)


def _read(card: dict[str, Any], name: str, path: Path) -> LeggedCard:
    """The card in the parsed TOML ``card`` of the file ``path``."""
    where = str(path)
    for key in card:
        require(key in FIELDS, where, key, "an unknown field", f"one of {sorted(FIELDS)}")
    for key in ("title", "model", "base"):
        require(isinstance(card.get(key), str), where, key, card.get(key), "a text")
    feet, moved = (names(card.get(key), key, where) for key in ("feet", "joints"))
    model = model_beside(card, path)
    driven = _motors(card.get("motors"), where)
    require(set(driven) == set(moved), where, "joints", list(moved), f"the motors' joints, {sorted(driven)}")
    figures = [driven[joint] for joint in moved]
    held = read_held(card.get("held", {}), where)
    hardware = card.get("hardware", {})
    require(
        isinstance(hardware, dict), where, "hardware", hardware, "a table of numbers, each with value, unit, source"
    )
    try:
        joints = tuple(_joint(joint, values) for joint, values in zip(moved, figures, strict=True))
        result = LeggedCard(
            name=name,
            title=card["title"],
            model=model,
            base=label(card["base"]),
            feet=feet,
            joints=joints,
            motors=tuple(Motor(values["armature"][0], values["friction"][0]) for values in figures),
            held=held,
            hardware=tuple((label(k), figure(v, f"hardware.{k}", "1", 1, where)[0]) for k, v in hardware.items()),
            sources={
                **{f"hardware.{name}": str(entry["source"]) for name, entry in hardware.items()},
                **{
                    f"{m['name']}.{key}": str(m[key]["source"])
                    for m in card["motors"]
                    for key in (UNITS | HOLD)
                    if key in m
                },
                **{f"held.{name}": str(entry["source"]) for name, entry in card.get("held", {}).items()},
            },
        )
        result.facts()
    except ContractError as error:
        raise CardError(f"{where}: {error}") from None
    return result


def _motors(motors: Any, where: str) -> dict[str, dict[str, list[float]]]:
    """The figures of the motor in each joint."""
    require(isinstance(motors, list) and len(motors) > 0, where, "motors", motors, "at least one [[motors]]")
    driven: dict[str, dict[str, list[float]]] = {}
    units = UNITS | (HOLD if any(isinstance(motor, dict) and set(HOLD) & set(motor) for motor in motors) else {})
    for i, motor in enumerate(motors):
        label = f"motors[{i}]"
        keys = {"name", "joints", *units}
        require(isinstance(motor, dict) and set(motor) == keys, where, label, motor, f"the fields {sorted(keys)}")
        values = {k: figure(motor[k], f"{label}.{k}", u, 2 if k == "range" else 1, where) for k, u in units.items()}
        for key in ("armature", "friction"):
            require(values[key][0] >= 0, where, f"{label}.{key}.value", values[key][0], "a number of 0 or more")
        for joint in names(motor["joints"], f"{label}.joints", where):
            require(joint not in driven, where, f"{label}.joints", joint, "a joint that no other motor drives")
            driven[joint] = values
    return driven


def _joint(name: str, values: dict[str, list[float]]) -> Joint:
    lower, upper = values["range"]
    wanted = ("stand", "effort", "velocity", "stiffness", "damping", *HOLD)
    single = {key: values[key][0] for key in wanted if key in values}
    return Joint(name, lower=lower, upper=upper, **single)
