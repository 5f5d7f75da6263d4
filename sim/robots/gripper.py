"""The gripper of an arm's card: one drive, joints that follow it, and two pads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robo_rl.sim.robots.figures import CardError, figure, is_number, label, names, require
from robo_rl.sim.robots.mechanism import Coupling, DrivenJoint
from robo_rl.sim.robots.motors import HINGE, SLIDE, Motor, drive, driven_joint

NAMES = ("joint", "followers", "pads", "slides")
"""Fields of a gripper that are no figures."""
FINGER = "finger_inertia"
"""A figure that may be left out."""
LEAST_RATIO = 0.01
"""Of a follower's way to its leader's."""


@dataclass(frozen=True)
class Gripper:
    """Fingers that one drive moves; its least position is closed, its greatest is open."""

    joint: DrivenJoint
    followers: tuple[tuple[str, float | None], ...]
    """Joints that move with the driven one, and by how much more; None: as the model has it, else by as much."""
    pads: tuple[str, ...]
    """Shapes that touch what is held, two."""
    slides: bool
    finger_inertia: float = 0.0
    """kg m², or kg: what each finger's joint has of its own, as seen through crank and gear."""

    @property
    def unit(self) -> str:
        return "m" if self.slides else "rad"

    def coupling(self, model: Path) -> Coupling:
        """How its joints move together. What the card does not say, an equality in the model, or <mimic>, does."""
        told = _ratios(model, {self.joint.name, *(name for name, _ in self.followers)}, self.joint.name)
        followers = tuple((name, told.get(name, 1.0) if ratio is None else ratio) for name, ratio in self.followers)
        return Coupling(self.joint.name, followers, self.finger_inertia)


def _ratios(model: Path, fingers: set[str], leader: str) -> dict[str, float]:
    """By how much more than ``leader`` the ``fingers`` of a model move: equalities of joints hold them to it, or to
    each other. CardError for those that have an offset, or are curves."""
    import mujoco  # which lists of robots do without

    from robo_rl.sim.models import read_model

    try:
        equalities = read_model(model).equalities
    except CardError:
        return {}  # who assembles it is told why
    lines: dict[str, list[tuple[str, float]]] = {name: [] for name in fingers}
    for held in equalities:
        if held.type != mujoco.mjtEq.mjEQ_JOINT or not {held.name1, held.name2} <= fingers or not held.active:
            continue
        offset, ratio, *curve = (float(number) for number in held.data[:5])
        where = f"what joint '{held.name1}' follows '{held.name2}' by"
        require(ratio != 0 and not any(curve), str(model), where, [offset, ratio, *curve], "a straight line")
        expected = "no offset: move the origin of the joint that follows by as much, so that both are 0 together"
        require(offset == 0, str(model), f"{where}, its offset", offset, expected)
        lines[held.name1].append((held.name2, 1.0 / ratio))
        lines[held.name2].append((held.name1, ratio))
    found, left = {leader: 1.0}, [leader]
    while left:
        one = left.pop()
        for other, ratio in lines[one]:
            if other not in found:
                found[other] = found[one] * ratio
                left.append(other)
            where, both = f"what joint '{other}' follows '{leader}' by", [found[other], found[one] * ratio]
            require(math.isclose(*both, rel_tol=1e-6), str(model), where, both, "one ratio")
    return found


def read_gripper(table: Any, where: str) -> Gripper:
    """The table ``[gripper]`` of the file ``where``."""
    slides = isinstance(table, dict) and table.get("slides")
    require(isinstance(slides, bool), where, "gripper.slides", slides, "true or false")
    inertia = 0.0
    if isinstance(table, dict) and FINGER in table:
        unit = (SLIDE if slides else HINGE)["armature"]
        (inertia,) = figure(table[FINGER], f"gripper.{FINGER}", unit, 1, where)
        require(inertia >= 0, where, f"gripper.{FINGER}.value", inertia, "a number of 0 or more")
        table = {key: value for key, value in table.items() if key != FINGER}
    values = drive(table, "gripper", SLIDE if slides else HINGE, NAMES, where)
    require(isinstance(table["joint"], str), where, "gripper.joint", table["joint"], "a name")
    pads = names(table["pads"], "gripper.pads", where)
    require(len(pads) == 2, where, "gripper.pads", table["pads"], "two names")
    followers = _followers(table["followers"], where)
    motor = Motor(values, bool(slides))
    joint = driven_joint(label(table["joint"]), motor, values["range"][1], where)  # at home it is open
    return Gripper(joint, followers, pads, bool(slides), inertia)


def _followers(told: Any, where: str) -> tuple[tuple[str, float | None], ...]:
    """A list of names, or a table of names and ratios."""
    if isinstance(told, dict):
        for name, ratio in told.items():
            good = is_number(ratio) and LEAST_RATIO <= abs(ratio) <= 1.0 / LEAST_RATIO
            require(
                good, where, f"gripper.followers.{name}", ratio, "a number: how far it moves when the joint moves by 1"
            )
        return tuple((label(name), float(ratio)) for name, ratio in told.items())
    return tuple((name, None) for name in names(told, "gripper.followers", where)) if told != [] else ()
