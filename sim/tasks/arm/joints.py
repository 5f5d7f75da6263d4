"""The joints of an arm that takes their positions: hinges and slides, from base to tool in one row of numbers, and
apart as signals and commands have them, in rad and m.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from robo_rl.contract import Command, PositionLaw, Signal
from robo_rl.sim.robots.arm import ArmCard
from robo_rl.sim.robots.mechanism import DrivenJoint

DELAY = (0.0, 0.01)  # s, of an arm's own sensors


class Sort(NamedTuple):
    """What is alike for joints that turn, or for those that slide. Units are of hinges; of slides, m stands for rad."""

    name: str
    unit: str
    beyond: float
    """rad, how far beyond its stops a joint may be measured."""
    noise: float
    """rad, of a measured position."""
    rate: float
    """rad/s, far beyond what such joints reach."""
    rate_noise: float
    """rad/s."""
    step: float
    """rad, of a target from where the joint was measured, at most, and the deflection under its load on top."""
    loaded: float
    """rad, the greatest deflection of a servo under load that is compensated."""
    seen: float
    """s/rad, factor of a speed in observations."""
    changed: float
    """1/rad, factor of a target's change in rewards."""


HINGE = Sort("joint", "rad", 0.1, 0.002, 20.0, 0.05, 0.2, 0.1, 0.3, 10.0)
SLIDE = Sort("slide", "m", 0.02, 2e-4, 5.0, 0.005, 0.06, 0.03, 1.0, 30.0)
"""As a hinge 0.3 m from the tool; encoders of slides are finer."""


class Joints:
    """Those of an arm, in a row from base to tool."""

    def __init__(self, card: ArmCard) -> None:
        self.count = len(card.joints)
        sorts = [SLIDE if joint.slides else HINGE for joint in card.joints]
        self.parts: list[tuple[Sort, tuple[DrivenJoint, ...], list[int]]] = []
        """Each sort that there is, its joints, and their places in the row."""
        for sort, joints in ((HINGE, card.hinges), (SLIDE, card.slides)):
            if joints:
                self.parts.append((sort, joints, [k for k, its in enumerate(sorts) if its is sort]))
        self.step, self.loaded, self.seen, self.changed = (
            self._figure([getattr(sort, name) for sort in sorts]) for name in ("step", "loaded", "seen", "changed")
        )

    @staticmethod
    def _figure(values: list[float]) -> Any:
        """One number where all are alike, else (1, J)."""
        return values[0] if len(set(values)) == 1 else torch.tensor([values])

    def signals(self) -> tuple[Signal, ...]:
        found = []
        for sort, joints, _ in self.parts:
            names, n = tuple(joint.name for joint in joints), len(joints)
            lower, upper = tuple(j.lower - sort.beyond for j in joints), tuple(j.upper + sort.beyond for j in joints)
            position = Signal(
                f"{sort.name}_position", names, sort.unit, "joint", lower, upper, noise=(sort.noise,) * n, delay=DELAY
            )
            fastest = (sort.rate,) * n
            velocity = Signal(
                f"{sort.name}_velocity", names, f"{sort.unit}/s", "joint", tuple(-x for x in fastest), fastest,
                noise=(sort.rate_noise,) * n, delay=DELAY,
            )  # fmt: skip
            found += [position, velocity]
        return tuple(found)

    def commands(self) -> tuple[Command, ...]:
        found = []
        for sort, joints, _ in self.parts:
            law = PositionLaw(tuple(j.stiffness for j in joints), tuple(j.damping for j in joints))
            command = Command(
                f"{sort.name}_position_target", tuple(joint.name for joint in joints), sort.unit, "joint",
                tuple(j.lower for j in joints), tuple(j.upper for j in joints), safe="hold", stop="hold", law=law,
                feedback=f"{sort.name}_position",
            )  # fmt: skip
            found.append(command)
        return tuple(found)

    def row(self, values: Mapping[str, Any], quantity: str) -> Any:
        """(n, J) from base to tool: of signals the "position" or "velocity", of commands the "position_target"."""
        if len(self.parts) == 1:
            return values[f"{self.parts[0][0].name}_{quantity}"]
        columns: list[Any] = [None] * self.count
        for sort, _, places in self.parts:
            for place, column in zip(places, values[f"{sort.name}_{quantity}"].unbind(-1), strict=True):
                columns[place] = column
        return torch.stack(columns, -1)

    def apart(self, row: Any, quantity: str) -> dict[str, Any]:
        """What ``row`` puts together."""
        if len(self.parts) == 1:
            return {f"{self.parts[0][0].name}_{quantity}": row}
        columns = row.unbind(-1)
        return {
            f"{sort.name}_{quantity}": torch.stack([columns[place] for place in places], -1)
            for sort, _, places in self.parts
        }
