"""The gait of a robot on four legs: a clock that makes a rough trot, and the mirror that halves what is to be learnt.

A trot that follows a commanded velocity lifts diagonal feet in turn and sweeps those on the ground backwards, by as
much as the commanded velocity asks of each foot. A robot built alike on both sides does in the second half of its
stride what it did in the first, left and right exchanged. So whoever looks at it in the mirror during the second half
only ever sees first halves: a policy that does is symmetric by construction, and every step teaches it about both
sides (phase-based mirroring of Abdolhosseini et al. 2019, On Learning Symmetric Locomotion).

Pure functions of arrays with environments first; numbers of legs lie one after the other, in the order of the feet,
hip, thigh and calf each. Which joints those are on a robot, and which way they turn,
``robo_rl.sim.tasks.legged.legs`` finds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from robo_rl.sim.tasks.legged.legs import Legs

PACE = 2.5  # Hz, strides; usual for trots of robots of this size
LIFT = 0.07  # m, height of a foot in mid-swing, for legs of LEG
LEG = 0.27  # m, from hip to foot of the Go2
SWEEP = 1.3  # of the way that a foot on the ground makes: motors lag and feet slip; the network adds the rest
FOLD = 0.22  # rad, of the thigh in mid-swing, and twice that of the calf: about LIFT for legs of two 0.213 m links
STILL = 0.1  # m/s and rad/s together, below which the robot stands
EARLY = math.pi / 20  # rad, by which the mirror is taken up before the clock's turn, so that rounding does not decide


class Trot:
    """A trot of a robot with these legs."""

    def __init__(self, legs: Legs, fold: float = FOLD) -> None:
        """``fold`` (rad) is how far thighs turn in mid-swing; calves turn twice as far."""
        sides, (ahead, aside) = legs.sides, legs.place
        self.length = legs.length
        self.fold = torch.tensor([[fold * knee for knee in legs.knees]])
        self._order = legs.order
        self._back = [legs.order.index(joint) for joint in range(len(legs.order))]
        self._turns = torch.tensor([list(legs.turns)])
        self._turns_back = torch.tensor([[legs.turns[place] for place in self._back]])
        self._alike = list(legs.order) == self._back == sorted(self._back) and min(legs.turns) > 0.0
        self._signs: dict[tuple[float, ...], torch.Tensor] = {}
        self._signs |= {signs: torch.tensor([list(signs)]) for signs in (JOINTS, (1.0,))}
        self.diagonal = torch.tensor([[1.0 if side in ("FL", "RR") else -1.0 for side in sides]])
        """(1, 4) 1 for the feet that swing in the first half of a stride, -1 for the others."""
        self.forward = torch.tensor([[ahead if side[0] == "F" else -ahead for side in sides]])
        self.left = torch.tensor([[aside if side[1] == "L" else -aside for side in sides]])
        self._opposite = [sides.index(side[0] + ("R" if side[1] == "L" else "L")) for side in sides]

    def targets(self, gait: Any) -> Any:
        """(n, 12) rad, what a rough trot adds to the stand: hip, thigh and calf of each foot in turn.

        ``gait`` (n, 5): cosine and sine of the clock, commanded velocity x, y (m/s) and yaw (rad/s). A foot is in the
        air for half a turn of the clock and swings forward; for the other half it goes back as the ground does.
        """
        cosine, sine, x, y, yaw = (gait[:, i : i + 1] for i in range(5))
        walking = torch.where(x * x + y * y + yaw * yaw > STILL**2, 1.0, 0.0)
        lift = self.swing(sine) * walking
        sweep = self.diagonal * cosine * (SWEEP * walking / (4 * PACE * self.length))  # rad per m/s
        hip = -sweep * (y + yaw * self.forward)
        thigh = sweep * (x - yaw * self.left) + self.fold * lift
        return torch.stack([hip, thigh, -2 * self.fold * lift], -1).flatten(1)

    def legwise(self, joints: Any) -> Any:
        """Numbers of joints in the card's order (n, 12 k), k sets in a row, leg by leg and about the base's axes."""
        if self._alike:
            return joints
        sets = joints.reshape(-1, joints.shape[1] // len(self._order), len(self._order))
        return (torch.cat([sets[:, :, joint : joint + 1] for joint in self._order], 2) * self._turns).flatten(1)

    def jointwise(self, legs: Any) -> Any:
        """The reverse of ``legwise``, for one set (n, 12)."""
        if self._alike:
            return legs
        return torch.cat([legs[:, place : place + 1] for place in self._back], 1) * self._turns_back

    def swing(self, sine: Any) -> Any:
        """(n, 4) how far up each foot should be, 0 to 1, at a clock's sine (n, 1)."""
        return torch.clamp(self.diagonal * sine, min=0.0)

    def advance(self, clock: Any, period: float) -> Any:
        """The clock (n, 2), cosine and sine, ``period`` s later."""
        cosine, sine = clock[:, 0], clock[:, 1]
        c, s = math.cos(2 * math.pi * PACE * period), math.sin(2 * math.pi * PACE * period)
        turned = torch.stack([c * cosine - s * sine, s * cosine + c * sine], -1)
        return turned / torch.linalg.vector_norm(turned, dim=-1, keepdim=True)

    def side(self, clock: Any) -> Any:
        """(n, 1) -1 in the second half of a stride, when the robot is looked at in the mirror, and 1 in the first."""
        ahead = math.cos(EARLY) * clock[:, 1:2] + math.sin(EARLY) * clock[:, 0:1]
        return torch.where(ahead < 0.0, -1.0, 1.0)

    def mirrored(self, values: Any, side: Any, signs: Sequence[float] = (1.0,)) -> Any:
        """Numbers of the legs (n, 4 k), where ``side`` (n, 1) is negative those of the opposite legs.

        ``signs``: what the mirror makes of the numbers of one leg. ``values`` may hold several such sets in a row.
        """
        legs, k = len(self._opposite), len(signs)
        sets = values.reshape(-1, values.shape[1] // (legs * k), legs, k)
        exchanged = torch.cat([sets[:, :, leg : leg + 1] for leg in self._opposite], 2) * self._signs[tuple(signs)]
        return torch.where(side < 0.0, exchanged.flatten(1), values)


JOINTS = (-1.0, 1.0, 1.0)
"""The mirror turns around the angles of hips, which swing sideways, but not those of thighs and calves."""


def polar(vector: Any, side: Any) -> Any:
    """A vector (n, 3) in the base or heading frame as the mirror shows it."""
    return torch.cat([vector[:, 0:1], side * vector[:, 1:2], vector[:, 2:3]], -1)


def axial(vector: Any, side: Any) -> Any:
    """A rate of turn (n, 3), likewise."""
    return torch.cat([side * vector[:, 0:1], vector[:, 1:2], side * vector[:, 2:3]], -1)
