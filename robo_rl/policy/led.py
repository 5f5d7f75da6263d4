"""A policy of another task that a task's planner leads: it reads what the planner commands, and does the rest itself.

A walking policy, which follows commanded velocities, knows nothing of rooms; the planner of ``tunnel-walk`` commands
velocities that lead through one. Together they do the task, and nothing is trained.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor


class LedPolicy:
    """A planner and the policy below it, as one policy; the planner's state comes first."""

    def __init__(self, planner: Any, policy: Any, reads: Collection[str]) -> None:
        """``planner`` is a task's (``Task.planner``); ``policy`` reads signals by name, some of them its commands."""
        self.planner, self.policy, self.reads = planner, policy, reads
        self.size = planner.first_state(1).shape[1]

    def initial_state(self, n: int) -> Tensor:
        """(n, k)."""
        return torch.cat([torch.from_numpy(self.planner.first_state(n)), self.policy.initial_state(n)], 1)

    def __call__(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Commands of the policy, which reads ``signals`` and what the planner makes of them."""
        told, planned = self.planner(signals, state[:, : self.size])
        read = {name: value for name, value in {**signals, **told}.items() if name in self.reads}
        commands, state = self.policy(read, state[:, self.size :])
        return commands, torch.cat([planned, state], 1)
