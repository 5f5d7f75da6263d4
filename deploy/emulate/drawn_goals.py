"""Goals of a task, a new one every so many seconds: what keeps a robot moving while a session is recorded.

They are drawn as those of episodes are, so that an arm's set-points are within its workspace.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from robo_rl.learn.runs.folder import HELD_OUT
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks import Task

SHORTEST = 0.1
"""s."""
COUNT = 64
"""Goals, after which the first comes again."""


class DrawnGoals:
    """The goals of ``COUNT`` held-out episodes, one after the other."""

    def __init__(self, task: Task, seconds: float, seed: int = 0, fixed: Mapping[str, float] = {}) -> None:
        """``seconds`` that each stands; ``fixed`` are ranges that are set to one value."""
        if not seconds >= SHORTEST:
            raise ValueError(f"--new-goal-every is {seconds:g} s; expected at least {SHORTEST:g} s")
        if not task.goal_size:
            raise ValueError(f"--new-goal-every: the episodes of '{task.name}' have no goals; leave it out")
        self.task, self.seconds = task, seconds
        self._goals = VecEnv(task, COUNT, HELD_OUT + seed, fixed=dict(fixed), evaluation=True).draws.goal.clone()

    def number(self, time: float) -> int:
        """How many goals there were before the one at ``time`` (s)."""
        return int(time / self.seconds + 1e-9)

    def goal(self, number: int) -> Tensor:
        """(1, goal_size)."""
        return self._goals[number % COUNT][None]

    def setpoints(self, number: int) -> dict[str, np.ndarray]:
        """The operator's signals, by name."""
        told = self.task.reference(torch.zeros(1), self.goal(number))
        return {s.name: told[s.name][0].numpy() for s in self.task.spec.signals if s.source == "operator"}
