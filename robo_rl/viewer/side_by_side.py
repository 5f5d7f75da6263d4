"""Several policies of a task at once: each has a part of the robots, in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor


class SideBySide:
    """Policies, the first of the first robots. Their states may have different sizes."""

    def __init__(self, policies: Sequence[Any]) -> None:
        self.policies = list(policies)

    def _parts(self, n: int) -> list[slice]:
        """The robots of each policy; where they don't divide evenly, the first ones have more."""
        ends = [-(-n * (k + 1) // len(self.policies)) for k in range(len(self.policies))]
        return [slice(a, b) for a, b in zip([0, *ends], ends, strict=False)]

    def initial_state(self, n: int) -> Tensor:
        """(n, the largest size of a state)."""
        states = [policy.initial_state(n) for policy in self.policies]
        wide = max(state.shape[1] for state in states)
        state = torch.zeros(n, wide)
        for part, one in zip(self._parts(n), states, strict=True):
            state[part, : one.shape[1]] = one[part]
        return state

    def __call__(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        n, found, after = len(state), [], torch.zeros_like(state)
        for part, policy in zip(self._parts(n), self.policies, strict=True):
            size = policy.initial_state(1).shape[1]
            commands, new = policy({name: value[part] for name, value in signals.items()}, state[part, :size])
            after[part, : new.shape[1]] = new
            found.append(commands)
        return {name: torch.cat([commands[name] for commands in found]) for name in found[0]}, after
