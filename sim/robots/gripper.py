"""The gripper of an arm's card: one drive, joints that follow it, and two pads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robo_rl.sim.robots.figures import is_number, names, require
from robo_rl.sim.robots.mechanism import Coupling, DrivenJoint
from robo_rl.sim.robots.motors import HINGE, SLIDE, drive, driven_joint

NAMES = ("joint", "followers", "pads", "slides")
"""Fields of a gripper that are no figures."""
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

    @property
    def unit(self) -> str:
        return "m" if self.slides else "rad"

    def coupling(self, model: Path) -> Coupling:
        """How its joints move together. What the card does not say, an equality in the model, or <mimic>, does."""
        open_ratios = any(ratio is None for _, ratio in self.followers)
        told = _ratios(model, self.joint.name) if open_ratios else {}
        return Coupling(
            self.joint.name,
            tuple((name, told.get(name, 1.0) if ratio is None else ratio) for name, ratio in self.followers),
        )


def _ratios(model: Path, leader: str) -> dict[str, float]:
    """By how much more than ``leader`` joints of a model move: those that an equality of joints holds to it."""
    import mujoco  # which lists of robots do without

    from robo_rl.sim.models import require_bearable

    require_bearable(model)
    try:
        equalities = mujoco.MjSpec.from_file(str(model)).equalities
    except ValueError:
        return {}  # who assembles it is told why
    found: dict[str, float] = {}
    for held in equalities:
        if held.type != mujoco.mjtEq.mjEQ_JOINT or leader not in (held.name1, held.name2) or not held.name2:
            continue
        offset, ratio, *curve = (float(number) for number in held.data[:5])
        name = held.name1 if held.name2 == leader else held.name2
        require(ratio != 0 and not any(curve), str(model), f"what joint '{name}' follows '{leader}' by",
                [offset, ratio, *curve], "a straight line")  # fmt: skip
        found[name] = ratio if held.name2 == leader else 1.0 / ratio
    return found


def read_gripper(table: Any, where: str) -> Gripper:
    """The table ``[gripper]`` of the file ``where``."""
    slides = isinstance(table, dict) and table.get("slides")
    require(isinstance(slides, bool), where, "gripper.slides", slides, "true or false")
    values = drive(table, "gripper", SLIDE if slides else HINGE, NAMES, where)
    require(isinstance(table["joint"], str), where, "gripper.joint", table["joint"], "a name")
    pads = names(table["pads"], "gripper.pads", where)
    require(len(pads) == 2, where, "gripper.pads", table["pads"], "two names")
    followers = _followers(table["followers"], where)
    joint = driven_joint(table["joint"], values, values["range"][1], where)  # at home it is open
    return Gripper(joint, followers, pads, bool(slides))


def _followers(told: Any, where: str) -> tuple[tuple[str, float | None], ...]:
    """A list of names, or a table of names and ratios."""
    if isinstance(told, dict):
        for name, ratio in told.items():
            good = is_number(ratio) and LEAST_RATIO <= abs(ratio) <= 1.0 / LEAST_RATIO
            require(
                good, where, f"gripper.followers.{name}", ratio, "a number: how far it moves when the joint moves by 1"
            )
        return tuple((name, float(ratio)) for name, ratio in told.items())
    return tuple((name, None) for name in names(told, "gripper.followers", where)) if told != [] else ()
