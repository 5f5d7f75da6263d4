"""An environment seen through a policy's eyes: observations out, actions in.

``VecEnv`` speaks signals and commands. Algorithms that learn from samples want observations and actions, which
are the task's: what is observed of signals and memory, and what an action commands. ``LearningEnv`` keeps the
memory in between, so that rsl_rl and gymnasium see what the exported policy graph will see.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sim.env import VecEnv
from sim.fuse import fuse


class Transition(NamedTuple):
    """What ``LearningEnv.step`` returns; finished environments have begun again."""

    observation: Tensor
    """(n, k) of what the policy may see."""
    privileged: Tensor
    """(n, p) of what only a critic may see."""
    reward: Tensor
    failed: Tensor
    timeout: Tensor
    ids: Tensor
    """(m,) environments whose episode ended."""
    final_observation: Tensor
    """(m, k): the last observations of the episodes that ended."""
    final_privileged: Tensor


class LearningEnv:
    """n environments with the memory that a policy keeps."""

    def __init__(self, env: VecEnv) -> None:
        self.env, self.task, self.n = env, env.task, env.n
        self.memory = self.task.first_memory(self.n, env.device)
        self.signals = env.signals()
        self.privileged()  # from now on the environment tells what a critic saw at the end of episodes
        self._observe = fuse(self.task.observe)
        self._remember = fuse(self._act)

    def _act(self, memory: Mapping[str, Any], signals: Mapping[str, Any], action: Any) -> tuple[dict, dict]:
        commands = self.task.command(action, memory)
        return commands, self.task.remember(memory, signals, commands)

    def reset(self) -> Tensor:
        """Begin all episodes anew; returns the observations."""
        self.signals = self.env.reset()
        self.memory = self.task.first_memory(self.n, self.env.device)
        return self.observation()

    def begin_at(self, levels: Tensor) -> None:
        """Begin all episodes anew, at the levels (m, ranges) of other environments, taken in turn."""
        self.env.levels.level.copy_(levels[torch.arange(self.n) % len(levels)])
        self.reset()

    def observation(self) -> Tensor:
        """(n, k) now."""
        return self._observe(self.signals, self.memory)

    def privileged(self) -> Tensor:
        """(n, p) now."""
        return self.env.privileged()

    def step(self, action: Tensor) -> Transition:
        """One control step under actions (n, action_size)."""
        commands, self.memory = self._remember(self.memory, self.signals, action)
        step = self.env.step(commands)
        self.signals, ids = step.signals, step.ids
        final = self._observe(step.final_signals, {name: value[ids] for name, value in self.memory.items()})
        for name, value in self.task.first_memory(len(ids), self.env.device).items():
            self.memory[name][ids] = value
        return Transition(
            observation=self.observation(),
            privileged=self.privileged(),
            reward=step.reward,
            failed=step.failed,
            timeout=step.timeout,
            ids=ids,
            final_observation=final,
            final_privileged=step.final_privileged,
        )

    def save(self) -> dict[str, Tensor]:
        """All that changes, for a checkpoint."""
        return {
            **{f"env/{name}": value for name, value in self.env.save().items()},
            **{f"memory/{name}": value for name, value in self.memory.items()},
            **{f"signals/{name}": value for name, value in self.signals.items()},
        }

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Continue from ``save``, bit by bit."""
        groups: dict[str, dict[str, Tensor]] = {"env": {}, "memory": {}, "signals": {}}
        for key, value in saved.items():
            group, _, name = key.partition("/")
            groups[group][name] = value
        self.env.load(groups["env"])
        for mine, theirs in ((self.memory, groups["memory"]), (self.signals, groups["signals"])):
            for name, value in theirs.items():
                mine[name].copy_(value)
