"""Placing by a network alone: ``arm-place`` without a script in the policy, to be learnt from demonstrations.

All is as in ``robo_rl.sim.tasks.arm.place``, but for what the network does: its action is the whole movement. What
the memory
holds beside the hand's own is the script's state, of which the network sees one number: the estimate whether the cube
is held. The script is what is demonstrated. All episodes begin anywhere: a training may begin some on the way, with
states by family (``robo_rl.learn.experience.reset_states``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.sim.ranges import Range
from robo_rl.sim.robots.arm import ArmCard
from robo_rl.sim.tasks import Tensors
from robo_rl.sim.tasks.arm.place import Place
from robo_rl.sim.tasks.arm.starts import SHARE
from robo_rl.sim.tasks.scripted import Scripted

HIDDEN = 4
"""Numbers of the script's state that the network does not see: the script's own action."""
CLOSE = 0.03
"""m, of the tool from the cube near a grasp, and level, of the cube from where it is to be, nearly placed."""


class PlaceDirect(Place):
    """Lift a cube and place it, without a script."""

    name = "arm-place-direct"
    summary = "lift a cube and place it, without a script in the policy"
    algorithms = ("bc", "sac", "ppo")
    student = None
    wide = False
    families = ("near_grasp", "grasped", "nearly_placed")

    def __init__(self, card: ArmCard | None = None) -> None:
        super().__init__(card)
        self.observation_size -= HIDDEN
        anywhere = {"initial/family": Range.fixed(SHARE, 1.0)}
        self.spec = dataclasses.replace(self.spec, ranges={**self.spec.ranges, **anywhere}, rules=())

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        seen = super().observe(signals, memory)
        last = self.observation_size - 1
        return torch.cat([seen[:, :last], seen[:, last + HIDDEN :]], -1)

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        return self.hand.command(action, memory)

    def script(self, signals: Tensors, memory: Tensors) -> Any:
        """(n, 4) actions of the script."""
        return self._script(memory, signals)[:, :4]

    def hold(self, signals: Tensors, memory: Tensors) -> Any:
        """The tool stays where it is, and the gripper does what the script would."""
        gripper = self.script(signals, memory)[:, 3:]
        return torch.cat([gripper.new_zeros(len(gripper), 3), gripper], -1)

    def family(self, truth: Mapping[str, Tensor]) -> Tensor:
        """Beside a cube that lies on the ground, open; with it in the hand in the air; and where it is to be."""
        cube, held, lifted = truth["cube_position"], self._grasped(truth), truth["lifted"][:, 0] > 0.5
        there = lifted & ((cube - truth["cube_position_setpoint"])[:, :2].norm(dim=-1) < CLOSE)
        near = (cube - truth["tool_position"]).norm(dim=-1) < CLOSE
        found = torch.where(near & ~lifted & ~held, 0, -1)
        found = torch.where(held & lifted, 1, found)
        return torch.where(there, 2, found)

    def controller(self) -> Any:
        """The script, as part of the policy's own graph."""
        return Scripted(self, self.script)
