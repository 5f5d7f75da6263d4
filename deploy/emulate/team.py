"""A simulated team: the policy commands its first robot, the task's classical controller the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from robo_rl.evaluate.evaluation import ControllerPolicy

if TYPE_CHECKING:
    from robo_rl.sim.env import VecEnv


class Team:
    """The commands of all robots of an environment with one team; with one robot, that robot's alone."""

    def __init__(self, env: VecEnv) -> None:
        self._env = env
        self._controller = ControllerPolicy(env.task) if env.n > 1 else None
        self.restart()

    def restart(self) -> None:
        """Begin an episode."""
        self._memory = self._controller.initial_state(self._env.n) if self._controller else torch.empty(0)

    def commands(self, own: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """(n, k) by name: the first robot's ``own`` (1, k), and those of the others."""
        if self._controller is None:
            return own
        rest, self._memory = self._controller(self._env.signals(), self._memory)
        return {name: torch.cat([own[name][:1], value[1:]]) for name, value in rest.items()}
