"""A policy that explores on a robot while it is learnt: noise is a signal, and the deviation is part of the graph.

The robot's side draws standard normal numbers (``robo_rl.deploy.robot.actor``), and the policy scales them by its
deviation at what
it observes. So what is tried passes the same limits, the same gate and the same recorder as any action, and the newest
policy brings its newest deviation along.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
from torch import Tensor, nn

from robo_rl.contract import Contract, Provenance, Signal
from robo_rl.deploy.robot.actor import EXPLORATION, MOST_NOISE
from robo_rl.online.interventions import SILENT, InterventionPolicy
from robo_rl.policy import PolicyGraph


class ExploringPolicy(InterventionPolicy):
    """An intervention policy with one more signal, ``exploration``: noise, of which its actions are its deviation."""

    def __init__(self, policy: PolicyGraph, spread: nn.Module) -> None:
        """``spread`` gives the logarithm of the deviation (n, a) at observations (n, k)."""
        super().__init__(policy)
        self.spread = spread

    def contract(self, provenance: Provenance) -> Contract:
        """The task's contract with the operator's signal, and noise."""
        found, most = super().contract(provenance), (MOST_NOISE,) * self.task.action_size
        low = tuple(-value for value in most)
        names = self.signal.elements[1:]
        noise = Signal(EXPLORATION, names, "1", "action", low, most, source="operator", timeout=SILENT)
        return dataclasses.replace(found, signals=(*found.signals, noise))

    def acted(self, own: Tensor, observation: Tensor, signals: Mapping[str, Tensor]) -> Tensor:
        """The action (n, a) at random about the policy's own."""
        return own + self.spread(observation).exp() * signals[EXPLORATION]

    def beside(self, steps: int, episodes: int) -> dict[str, np.ndarray]:
        """Signals for golden vectors, with noise."""
        drawn = np.random.default_rng(0).standard_normal((steps, episodes, self.task.action_size))
        noise = drawn.clip(-MOST_NOISE, MOST_NOISE).astype(np.float32)
        return {**super().beside(steps, episodes), EXPLORATION: noise}
