"""An operator who is a script: takes over when a policy strays, gives back when things are well. For measurements.

Who watches a robot sees what it does, and knows what they would do. So the operator compares the policy's action with
that of the task's script, as a mean over the last ``WATCH`` s, and takes over where they are too far apart for that
long. While the operator has the robot the policy goes on proposing (``own_action`` in its memory): once it has proposed
about the same for as long, the robot is given back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from robo_rl.online.interventions import OWN, InterventionPolicy

WATCH = 0.25
"""s over which actions are compared."""
TAKE, GIVE = 0.3, 0.15
"""Root mean square of the difference in actions, of ±1, beyond which the operator takes over, and gives back."""


class ScriptedOperator:
    """One robot's."""

    def __init__(self, policy: InterventionPolicy) -> None:
        """``policy``: whose memory it reads, of any weights."""
        task = policy.task
        self._policy, self._script = policy, task.script  # type: ignore[attr-defined]
        self._apart: deque[float] = deque(maxlen=max(1, round(WATCH / task.spec.control_period)))
        self._wanted: Tensor | None = None
        self.leads = False

    def begin(self) -> None:
        """A new episode, which is the policy's."""
        self._apart.clear()
        self._wanted, self.leads = None, False

    def signal(self, values: Mapping[str, np.ndarray], memory: np.ndarray) -> np.ndarray:
        """(1 + k,) the operator's signal for a step with these signals and memory (S,)."""
        kept = self._policy.unpack(torch.from_numpy(memory)[None])
        if self._wanted is not None:
            apart = kept[OWN].clamp(-1.0, 1.0) - self._wanted
            self._apart.append(float(apart.square().mean().sqrt()))
        signals = {name: torch.from_numpy(np.asarray(value, np.float32))[None] for name, value in values.items()}
        self._wanted = self._script(signals, kept).clamp(-1.0, 1.0)
        if len(self._apart) == self._apart.maxlen:
            self.leads = sum(self._apart) / len(self._apart) > (GIVE if self.leads else TAKE)
        return np.concatenate([[float(self.leads)], self._wanted[0].numpy() * self.leads]).astype(np.float32)
