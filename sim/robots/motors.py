"""Figures of the motors in joints, and of an arm's and its gripper's how they are read."""

from __future__ import annotations

from typing import Any, NamedTuple

from robo_rl.sim.robots.figures import figure, label, names, require
from robo_rl.sim.robots.mechanism import DrivenJoint

HINGE = {
    "range": "rad",
    "effort": "N*m",
    "velocity": "rad/s",
    "stiffness": "N*m/rad",
    "damping": "N*m*s/rad",
    "armature": "kg*m^2",
    "friction": "N*m",
}
"""The figures of a motor and the one unit that each may have."""
SLIDE = {
    "range": "m",
    "effort": "N",
    "velocity": "m/s",
    "stiffness": "N/m",
    "damping": "N*s/m",
    "armature": "kg",
    "friction": "N",
}
"""The same of a joint that slides."""


class Motor(NamedTuple):
    """Of one joint."""

    figures: dict[str, list[float]]
    """Those of ``HINGE``, or of ``SLIDE``."""
    slides: bool


def drive(table: Any, label: str, units: dict[str, str], others: tuple[str, ...], where: str) -> dict[str, list[float]]:
    """The figures of a motor."""
    keys = {*others, *units}
    require(isinstance(table, dict) and set(table) == keys, where, label, table, f"the fields {sorted(keys)}")
    values = {k: figure(table[k], f"{label}.{k}", u, 2 if k == "range" else 1, where) for k, u in units.items()}
    for key in ("effort", "velocity", "stiffness"):
        require(values[key][0] > 0, where, f"{label}.{key}.value", values[key][0], "a positive number")
    for key in ("damping", "armature", "friction"):
        require(values[key][0] >= 0, where, f"{label}.{key}.value", values[key][0], "a number of 0 or more")
    low, high = values["range"]
    require(low < high, where, f"{label}.range.value", values["range"], "two numbers, the lower one first")
    return values


def read_motors(motors: Any, where: str) -> dict[str, Motor]:
    """The motor in each joint: what a table says that has ``slides = true`` is of a slide."""
    require(isinstance(motors, list) and len(motors) > 0, where, "motors", motors, "at least one [[motors]]")
    driven: dict[str, Motor] = {}
    for i, motor in enumerate(motors):
        slides = isinstance(motor, dict) and motor.get("slides", False)
        require(isinstance(slides, bool), where, f"motors[{i}].slides", slides, "true or false")
        table = {key: value for key, value in motor.items() if key != "slides"} if isinstance(motor, dict) else motor
        values = drive(table, f"motors[{i}]", SLIDE if slides else HINGE, ("name", "joints"), where)
        require(isinstance(motor["name"], str), where, f"motors[{i}].name", motor["name"], "a text")
        unlike = all(motor["name"] != other["name"] for other in motors[:i])
        require(unlike, where, f"motors[{i}].name", motor["name"], "a name that no other motor has")
        for joint in names(motor["joints"], f"motors[{i}].joints", where):
            require(joint not in driven, where, f"motors[{i}].joints", joint, "a joint that no other motor drives")
            driven[joint] = Motor(values, bool(slides))
    return driven


def driven_joint(name: str, motor: Motor, home: float, where: str) -> DrivenJoint:
    """A joint with the figures of its motor."""
    lower, upper = motor.figures["range"]
    require(lower <= home <= upper, where, f"home of '{name}'", home, f"a number from {lower} to {upper}")
    single = {key: motor.figures[key][0] for key in HINGE if key != "range"}
    return DrivenJoint(name, home=home, lower=lower, upper=upper, slides=motor.slides, **single)


def read_held(table: Any, where: str) -> tuple[tuple[str, float], ...]:
    """Where joints stay that nothing moves."""
    require(isinstance(table, dict), where, "held", table, "a table of joints, each with value, unit and source")
    found = []
    for name, entry in table.items():
        unit = entry.get("unit") if isinstance(entry, dict) else None
        require(unit in ("rad", "m"), where, f"held.{name}.unit", unit, "'rad' of a hinge, 'm' of a slide")
        found.append((label(name), figure(entry, f"held.{name}", str(unit), 1, where)[0]))
    return tuple(found)
