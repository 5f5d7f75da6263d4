"""Stacking: an arm lifts a cube off the ground, sets it down on another one, and lets go.

All is as in ``robo_rl.sim.tasks.arm.place``, but that the cube's place is on top of a second one, the support, which
a camera
sees as it sees the cube: with noise, late, and not always. What the script aims at follows the support where it is
pushed. The two begin at least 10 cm from each other: of several draws of the support's place the first that is so far
away is taken. An episode succeeds once the cube is on top, at rest and free, for a fifth of a second; it may overhang
by less than half of its edge, or it would fall. All episodes begin anywhere.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Signal, StateBlock
from robo_rl.sim.drawing import Marker, Sphere
from robo_rl.sim.plants import Articulated
from robo_rl.sim.ranges import PROBABILITY, Range
from robo_rl.sim.robots.arm import ArmCard
from robo_rl.sim.robots.mechanism import FreeObject
from robo_rl.sim.tasks import Tensors
from robo_rl.sim.tasks.arm.hand import XYZ
from robo_rl.sim.tasks.arm.place import ABOVE, OLDEST, POSE_DELAY, Place, turned
from robo_rl.sim.tasks.arm.starts import SHARE, Start

HOP = 1.5  # half edges, how high the cube is carried above its place
OVER = 3.0  # half edges, how high the hand is above a cube at first: the pads clear the other one on the way
DROP = 0.4  # half edges, how high the cube is let go at most; the height of its place is twice as noisy as a pose
ON_TOP = 1.6  # half edges of the cube above the support, with which it counts as lifted
LARGEST = 1.1  # of the card's cube, a support
SMOOTH = 0.2  # of the support's measured place, per step


class Stack(Place):
    """Lift a cube and set it down on another one, with an arm whose gripper points down."""

    name = "arm-stack"
    summary = "set a cube down on another one"
    student = None
    wide = False
    perturbed = (
        "cube_mass", "cube_friction", "cube_size", "support_size", "strength", "command_delay", "delay/cube_position",
        "noise",
    )  # fmt: skip

    def __init__(self, card: ArmCard | None = None) -> None:
        super().__init__(card)
        self.observation_size, self.near = self.observation_size + 1, self.half
        self.sizes = self.sizes._replace(
            hop=HOP * self.half, above=OVER * self.half, drop=max(self.sizes.drop, DROP * self.half)
        )
        far = (2.0,) * 3
        seen = (
            Signal("support_position", XYZ, "m", "base", (-2.0,) * 3, far, noise=(0.001,) * 3, delay=POSE_DELAY),
            Signal(
                "support_age", ("age",), "s", "cube", (0.0,), (OLDEST,), source="runtime", age_of="support_position"
            ),
        )
        self.spec = dataclasses.replace(
            self.spec,
            signals=(*self.spec.signals[:-1], *seen),
            memory=(*self.spec.memory, StateBlock("support", (3,), (*self.space.origin[0, :2].tolist(), self.half))),
            rules=(),
        )
        self.spec = dataclasses.replace(self.spec, facts=self.facts())

    def facts(self) -> dict[str, Any]:
        told = super().facts()
        seen = {"support_position": "the centre of the cube below, of the same size and mass, within support_size"}
        lifted = {"lifted_m": ON_TOP * self.half, "lifted_above": "the support's centre"}
        references = {name: text for name, text in told["references"].items() if name != "cube_position_setpoint"}
        return {**told, "references": {**references, **seen}, "success": {**told["success"], **lifted}}

    def lift(self, card: ArmCard) -> float:
        """m, onto the greatest support, and up to where it is let go."""
        return max(super().lift(card), (LARGEST + 0.5 * DROP) * card.grasp.size)

    def physical_ranges(self) -> dict[str, Range]:
        return {
            **super().physical_ranges(),
            "initial/family": Range.fixed(SHARE, 1.0),
            "support_size": Range.fixed(0.85, LARGEST, unit="×"),
            "support_yaw": Range.fixed(-0.4, 0.4, unit="rad"),
            "delay/support_position": Range.fixed(*POSE_DELAY, unit="s"),
            "dropout/support_position": Range.fixed(0.0, 0.1, limits=PROBABILITY),
        }

    def objects(self) -> tuple[FreeObject, ...]:
        (cube,) = super().objects()
        x, y, z = cube.position
        return cube, dataclasses.replace(cube, name="support", position=(x, y + 4.0 * self.half, z))

    def randomize(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        super().randomize(plant, ids, drawn)
        size = plant.param("object_size")
        size[ids, 1] = plant.nominal.object_size[:, 1] * drawn["support_size"].to(size)[:, None]

    def begun(self, start: Start, drawn: Mapping[str, Tensor]) -> dict[str, Tensor]:
        half = self.half * drawn["support_size"][:, None]
        return {
            **super().begun(start, drawn),
            "support_position": torch.cat([start.place[:, :2], half], -1) + ABOVE,
            "support_orientation": turned(self.space.yaw(start.place) + drawn["support_yaw"]),
        }

    def wanted(self, signals: Tensors) -> Any:
        """(n, 3) m, on top of the support: it lies on the ground, so that its top is twice as high as its middle."""
        x, y, z = signals["support_position"].unbind(-1)
        return torch.stack([x, y, 2.0 * z + self.half], -1)

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        seen = super().observe({**signals, "support_position": memory["support"]}, memory)
        return torch.cat([seen, 5.0 * signals["support_age"]], -1)

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        support = memory["support"] + SMOOTH * (signals["support_position"] - memory["support"])
        return {**super().remember(memory, {**signals, "support_position": support}, commands), "support": support}

    def _height(self, truth: Tensors) -> Any:
        return (truth["cube_position"][:, 2] - truth["support_position"][:, 2]) / (ON_TOP * self.half)

    def markers(self, truth: Tensors) -> list[Marker]:
        return [Sphere("place", self.wanted(truth), radius=0.015)]
