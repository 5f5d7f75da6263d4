"""What can be added to an algorithm that learns from horizons, without a word of it in the algorithm."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor


class Extension:
    """Is told how a training goes. Does nothing by itself: an extension overrides what it needs."""

    name: str
    """Of its tensors in checkpoints, "NAME/…"."""

    def plan(self, done: int, total: int) -> None:
        """An update begins, the one after ``done`` of ``total``."""

    def hear(self, reward: Tensor, ids: Tensor) -> None:
        """Rewards (n,) were earned, and the episodes ``ids`` (m,) have ended, and new ones have begun there."""

    def add_reward(self, reward: Tensor, states: Tensor, progress: float) -> dict[str, float]:
        """Change the rewards (T, n) of a horizon in the states (T, n, p) that the critic saw; returns metrics.

        ``progress``: the part of the training that is over.
        """
        return {}

    def learn(self, states: Tensor) -> None:
        """Learn from states (T, n, p), after the policy has."""

    def metrics(self) -> dict[str, float]:
        """At the end of an update."""
        return {}

    def save(self) -> dict[str, Tensor]:
        """All that changes, for a checkpoint."""
        return {}

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Go on from ``save``."""
