"""What a step gives to an algorithm that learns from samples."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor

Observation = Tensor | dict[str, Tensor]
"""(n, k) of what the policy may see, or several groups (n, …) by name."""


class Transition(NamedTuple):
    """What ``LearningEnv.step`` returns; finished environments have begun again."""

    observation: Observation
    privileged: Tensor
    """(n, p) of what only a critic may see."""
    reward: Tensor
    failed: Tensor
    succeeded: Tensor
    timeout: Tensor
    ids: Tensor
    """(m,) environments whose episode ended."""
    final_observation: Observation
    """(m, …): the last observations of the episodes that ended; where one diverged, the last before it did."""
    final_privileged: Tensor
    """(m, p): zeros where an episode diverged (``robo_rl.sim.episode.within``)."""

    @property
    def done(self) -> Tensor:
        """(n,) whether the episode ended, in whatever way."""
        return self.failed | self.succeeded | self.timeout


def groups(observation: Observation) -> dict[str, Tensor]:
    """The groups of an observation by name; a single vector is "policy"."""
    return observation if isinstance(observation, dict) else {"policy": observation}


def rows(observation: Observation, ids: Any) -> Observation:
    """Some rows of an observation."""
    if isinstance(observation, dict):
        return {name: value[ids] for name, value in observation.items()}
    return observation[ids]
