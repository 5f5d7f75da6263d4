"""An environment seen through a policy's eyes: observations out, actions in.

``VecEnv`` speaks signals and commands. Algorithms that learn from samples want observations and actions, which
are the task's: what is observed of signals and memory, and what an action commands. ``LearningEnv`` keeps the
memory in between, so that ppo, rsl_rl and gymnasium see what the exported policy graph will see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from robo_rl.learn.experience.native_step import native_step
from robo_rl.learn.experience.transitions import Observation, Transition, groups
from robo_rl.sim.accelerate.fuse import fuse
from robo_rl.sim.env import VecEnv
from robo_rl.sim.env_state import EnvState, named
from robo_rl.sim.episode import all_within, within
from robo_rl.sim.sensors import LARGE

if TYPE_CHECKING:
    from robo_rl.learn.experience.reset_states import Starts

ACTION_SCALE = 2.0
"""What gymnasium's action of ±1 is for the task. Trained quadrotor policies limited to it fail in no episode of 1,000;
limited to half of it they fail in 3 in hovering and 12 in tracking."""


class LearningEnv:
    """n environments with the memory that a policy keeps."""

    def __init__(self, env: VecEnv) -> None:
        self.env, self.task, self.n = env, env.task, env.n
        self.memory = self.task.first_memory(self.n, env.device)
        self.forget(torch.arange(self.n, device=env.device))
        self.starts: Starts | None = None
        """Where episodes begin that do not begin as the task's own do (``robo_rl.learn.experience.reset_states``)."""
        self.privileged()  # from now on the environment tells what a critic saw at the end of episodes
        sizes = [signal.size for signal in env.task.spec.signals] + [block.size for block in env.task.spec.memory]
        small = max(sizes) <= LARGE
        vectors = all(len(shape) == 1 for shape in self.task.observation_shapes.values())
        native: Callable[..., Any] = fuse if small and vectors else lambda function: function
        self._observe = native(self.task.observe)
        self._remember = native(self._act)
        self._native = native_step(self)

    @property
    def gives_away(self) -> bool:
        """Whether no one but the caller holds the memory of what ``step`` returns."""
        return self._native is not None and self.starts is None

    @property
    def signals(self) -> dict[str, Tensor]:
        """The newest, (n, …) by name."""
        return self.env.signals()

    def _act(self, memory: Mapping[str, Any], signals: Mapping[str, Any], action: Any) -> tuple[dict, dict]:
        return self.task.act(action, signals, memory)

    def reset(self) -> Observation:
        """Reset all environments; returns the observations."""
        self.env.reset()
        self.memory = self.task.first_memory(self.n, self.env.device)
        self.forget(torch.arange(self.n, device=self.env.device))
        if self.starts is not None:
            self.starts.begin(torch.arange(self.n, device=self.env.device))
        return self.observation()

    def begin_at(self, levels: Tensor) -> None:
        """Reset all environments, at the levels (m, ranges) of other environments, taken in turn."""
        self.env.levels.level.copy_(levels[torch.arange(self.n) % len(levels)])
        self.reset()

    def observation(self) -> Observation:
        """Of all environments now."""
        return self._observe(self.signals, self.memory)

    def privileged(self) -> Tensor:
        """(n, p) now."""
        return self.env.privileged()

    def step(self, action: Tensor) -> Transition:
        """One control step under actions (n, action_size)."""
        if self._native is not None and self.starts is None:
            return self._native(action)
        before = self.signals, self.memory
        commands, self.memory = self._remember(*before[::-1], action)
        step = self.env.step(commands)
        ids, lost = step.ids, step.diverged
        memory = {name: value[ids] for name, value in self.memory.items()}
        for name, value in memory.items() if lost.any() else ():
            value[lost] = before[1][name][ids[lost]]
        final = self._observe(step.final_signals, memory) if len(ids) else None
        if len(ids):
            self._begin(ids, step.succeeded)
        observation = self.observation()
        found = Transition(
            observation=observation,
            privileged=self.privileged(),
            reward=step.reward,
            failed=step.failed,
            succeeded=step.succeeded,
            timeout=step.timeout,
            ids=ids,
            final_observation=_none_of(observation) if final is None else final,
            final_privileged=step.final_privileged,
        )
        seen = found.observation, found.final_observation
        vectors = [value for observation in seen for value in groups(observation).values()]
        if all_within(*vectors, found.privileged, found.final_privileged):
            return found
        good = _within(found.observation, found.privileged)
        if len(ids):
            good[ids] = lost | _within(found.final_observation, found.final_privileged)
        return found if good.all() else self._without(found, before, ~good)

    def _begin(self, ids: Tensor, succeeded: Tensor) -> None:
        """Let policies and reset states begin with the episodes that the environment has begun in ``ids`` (m,)."""
        self.forget(ids)
        if self.starts is not None:
            self.starts.count(ids, succeeded[ids])
            self.starts.begin(ids)

    def _without(self, found: Transition, before: tuple[Any, Any], bad: Tensor) -> Transition:
        """``found``, with episodes of which a policy or a critic would see what has diverged (n,) ended as failures.

        ``before``: signals and memory before the step, of which the last observations then are.
        """
        team, ended = self.env.team, found.done
        bad = bad.view(-1, team).any(1).repeat_interleave(team)
        new = (bad & ~ended).nonzero()[:, 0]
        self.env.diverged += int(bad.sum())
        good, ids = ~bad, (bad | ended).nonzero()[:, 0]
        succeeded = found.succeeded & good
        if len(new):
            self.env.end(new, bad[new])
            self._begin(new, succeeded)
        signals, memory = ({name: value[ids] for name, value in part.items()} for part in before)
        last, own, kept = self._observe(signals, memory), groups(found.final_observation), good[ids]
        final = {name: value.clone() for name, value in groups(last).items()}
        privileged = torch.zeros(len(ids), found.privileged.shape[1], device=self.env.device)
        of = good[found.ids]
        for name, value in own.items():
            final[name][kept] = value[of]
        privileged[kept] = found.final_privileged[of]
        return Transition(
            observation=self.observation(),
            privileged=self.privileged(),
            reward=torch.where(bad, 0.0, found.reward),
            failed=found.failed | bad,
            succeeded=succeeded,
            timeout=found.timeout & good,
            ids=ids,
            final_observation=final if isinstance(last, dict) else final["policy"],
            final_privileged=privileged,
        )

    def metrics(self) -> dict[str, float]:
        """Mean levels of ranges, and success by where episodes began."""
        levels = {f"level/{name}": level for name, level in self.env.levels.mean().items()}
        return {**levels, **(self.starts.metrics() if self.starts else {})}

    def forget(self, ids: Tensor) -> None:
        """Let the policies of ``ids`` (m,) remember what they do at first."""
        for name, value in self.task.first_memory(1, self.env.device).items():
            self.memory[name][ids] = value
        for name, value in self.task.memory_at(self.env.draws.goal[ids]).items():
            self.memory[name][ids] = value

    def state(self, ids: Tensor) -> EnvState:
        """As the environment's, with what the policies of ``ids`` (m,) remember."""
        memory = {name: value[ids] for name, value in self.memory.items()}
        return EnvState({**self.env.state(ids).tensors, **named(memory, "memory/")})

    def set_state(self, ids: Tensor, state: EnvState) -> None:
        """As the environment's. A state without memory is that of a policy that has just begun."""
        self.env.set_state(ids, state)
        self.memory = {name: value.clone() for name, value in self.memory.items()}
        self.forget(ids)
        for name, value in state.part("memory/").items():
            self.memory[name][ids] = value.to(self.env.device)

    def save(self) -> dict[str, Tensor]:
        """All that changes, for a checkpoint."""
        return {
            **{f"env/{name}": value for name, value in self.env.save().items()},
            **{f"memory/{name}": value for name, value in self.memory.items()},
            **(self.starts.save() if self.starts else {}),
        }

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Continue from ``save``, bit by bit."""
        kept = EnvState(dict(saved))
        self.env.load(kept.part("env/"))
        for name, value in kept.part("memory/").items():
            self.memory[name].copy_(value)
        if self.starts is not None:
            self.starts.load(saved)


def _none_of(observation: Observation) -> Observation:
    """The observations (0, …) of no environment."""
    if isinstance(observation, dict):
        return {name: value[:0] for name, value in observation.items()}
    return observation[:0]


def _within(observation: Observation, privileged: Tensor) -> Tensor:
    """(n,) whether all that a policy and a critic see is within ``robo_rl.sim.episode.LARGEST``."""
    return within(*groups(observation).values(), privileged)
