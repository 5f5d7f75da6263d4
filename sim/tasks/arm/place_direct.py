"""Placing by a network alone: ``arm-place`` without a script in the policy, to be learnt from demonstrations.

All is as in ``sim.tasks.arm.place``, but for what the network does: its action is the whole movement. What the memory
holds beside the hand's own is the script's state, of which the network sees one number: the estimate whether the cube
is held. The script is what is demonstrated.
"""

from __future__ import annotations

from typing import Any

import torch

from sim.robots.arm import ArmCard
from sim.tasks import Tensors
from sim.tasks.arm.place import Place
from sim.tasks.scripted import Scripted

HIDDEN = 4
"""Numbers of the script's state that the network does not see: the script's own action."""


class PlaceDirect(Place):
    """Lift a cube and place it, without a script."""

    name = "arm-place-direct"
    summary = "lift a cube and place it, without a script in the policy"
    algorithms = ("bc", "sac", "ppo")

    def __init__(self, card: ArmCard | None = None) -> None:
        super().__init__(card)
        self.observation_size -= HIDDEN

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        seen = super().observe(signals, memory)
        last = self.observation_size - 1
        return torch.cat([seen[:, :last], seen[:, last + HIDDEN :]], -1)

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        return self.hand.command(action, memory)

    def script(self, signals: Tensors, memory: Tensors) -> Any:
        """(n, 4) actions of the script."""
        return self._script(memory, signals)[:, :4]

    def controller(self) -> Any:
        """The script, as part of the policy's own graph."""
        return Scripted(self, self.script)
