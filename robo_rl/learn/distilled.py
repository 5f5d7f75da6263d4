"""Distillation as a training: a policy with a robot's signals imitates a run's policy, which has privileged ones.

What is kept of the teacher beside the student's own weights (exploration, critic, levels of the curricula) lets a
training by ppo begin from the student.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from robo_rl.learn.config import DistillConfig
from robo_rl.learn.distill import Distillation
from robo_rl.learn.runs import checkpoint
from robo_rl.learn.runs.checkpoint import optimizer_from, optimizer_tensors
from robo_rl.learn.runs.folder import Run
from robo_rl.learn.runs.warm_start import narrow
from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks import Task


class Learner:
    """Teaches a policy, one update at a time, on the CPU."""

    def __init__(self, task: Task, policy: PolicyGraph, config: DistillConfig, seed: int, device: str = "cpu") -> None:
        if device != "cpu":
            raise ValueError(f"device is '{device}'; expected cpu: distillation is there alone")
        run = Run.open(config.teacher)
        teacher, _ = run.policy()
        if not policy.encoders:  # which see what the teacher does not
            narrow(policy, teacher)
        self.config, self.policy, self.total = config, policy, config.updates
        self.lessons = Distillation(teacher, policy, config, seed)
        self._kept = _kept(run.checkpoint_file, task.observation_size)
        self.diverged, self.skipped = 0, 0

    collect_seconds = 0.0

    @property
    def done(self) -> int:
        """Updates so far."""
        return self.lessons.done

    @property
    def environments(self) -> VecEnv:
        """Whose episodes metrics tell of."""
        return self.lessons.env

    @property
    def environment_steps(self) -> int:
        """Control steps simulated so far, over all environments."""
        return self.done * self.config.environments

    def update(self) -> dict[str, float]:
        """One update; ``error``: root mean square of the difference in commands, in units of their range."""
        before, skipped = self.lessons.env.diverged, self.lessons.skipped
        error = self.lessons.update() ** 0.5
        self.diverged += self.lessons.env.diverged - before
        self.skipped += self.lessons.skipped - skipped
        return {"error": error}

    def save(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """What a training by ppo begins from besides the policy, and what the optimiser remembers."""
        return {**self._kept, **optimizer_tensors(self.lessons.optimizer)}, {"done": self.done}

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Go on from ``save``; the robots, which it does not hold, begin new episodes."""
        self.lessons.done = numbers["done"]
        optimizer_from(tensors, self.lessons.optimizer)


def _kept(file: Path, inputs: int) -> dict[str, Tensor]:
    """What the student takes over from its teacher's checkpoint for a training by ppo, as far as its inputs go."""
    tensors, _ = checkpoint.load(file)
    kept = {name: value for name, value in tensors.items() if name.startswith("critic/")}
    for name, value in tensors.items():
        if name.startswith("normalizer/"):
            kept[name] = value[..., :inputs] if value.ndim else value
    return kept | {name: tensors[name] for name in ("deviation", "env/env/levels")}
