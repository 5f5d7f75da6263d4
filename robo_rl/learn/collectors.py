"""Where the transitions come from that an off-policy algorithm learns from."""

from __future__ import annotations

import time
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from robo_rl.learn.experience.demonstrations import Transitions
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.learn.explorer import Explorer


class Collected(NamedTuple):
    """A step of some robots, or several."""

    transitions: list[Transitions]
    reward: float
    """Mean."""
    succeeded: int
    ended: int
    """Episodes."""
    diverged: int
    """Episodes, of those that ended."""
    levels: dict[str, float]
    """Mean levels of ranges."""
    seconds: float
    """It took."""


class Collector(Protocol):
    """Robots that act while a policy learns."""

    def collect(self, version: int) -> Collected:
        """As many transitions as there are robots, by the policy that has learnt ``version`` times."""

    def metrics(self) -> dict[str, float]:
        """Since the last call."""

    def close(self) -> None:
        """There is nothing more to collect."""


class Simulated:
    """Robots of this process: they and the learning take turns."""

    def __init__(self, explorer: Explorer, env: LearningEnv) -> None:
        self.explorer, self.env = explorer, env

    @torch.no_grad()
    def collect(self, version: int) -> Collected:
        """One step of all robots."""
        env, begun = self.env, time.perf_counter()
        observation, before = env.observation(), env.env.diverged
        assert isinstance(observation, Tensor)
        action, *_ = self.explorer(observation)
        step = env.step(action)
        later, final = step.observation, step.final_observation
        assert isinstance(later, Tensor)
        assert isinstance(final, Tensor)
        later = later.clone()
        later[step.ids] = final
        over = (step.failed | step.succeeded).float()  # after a time-out there would have been more to earn
        transitions = Transitions(observation, action, step.reward, over, later)
        reward, won, lost = float(step.reward.mean()), int(step.succeeded.sum()), env.env.diverged - before
        seconds = time.perf_counter() - begun
        return Collected([transitions], reward, won, len(step.ids), lost, env.env.levels.mean(), seconds)

    def metrics(self) -> dict[str, float]:
        """Success by where episodes began."""
        return self.env.starts.metrics() if self.env.starts else {}

    def close(self) -> None:
        """Nothing is to be done."""
