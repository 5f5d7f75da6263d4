"""A step of a ``LearningEnv`` as one native loop, for plants that are pure functions.

An action becomes commands, memory, the plant's next state, reward, signals, observation and privileged observation of
one environment while its numbers are in registers. Only the episodes that end are looked at once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from robo_rl.learn.experience.transitions import Transition
from robo_rl.sim.accelerate.compiled_env import CompiledEnv
from robo_rl.sim.accelerate.fuse import fuse, spaced
from robo_rl.sim.accelerate.fuse.structure import flatten
from robo_rl.sim.episode import Judged, Outcome, privileged_observation
from robo_rl.sim.tasks import Task, Tensors

if TYPE_CHECKING:
    from robo_rl.learn.experience.learning_env import LearningEnv


def native_step(learning: LearningEnv) -> NativeStep | None:
    """The step of an environment and its task as one native loop, where it can be."""
    env = learning.env
    disturbed = type(env.task).disturb is not Task.disturb
    alone = env.large or env.task.encoders or disturbed or env.device.type != "cpu"
    return NativeStep(learning, env) if isinstance(env, CompiledEnv) and env.fused and not alone else None


class NativeStep:
    """The step, bound to the memory of a ``LearningEnv``."""

    def __init__(self, learning: LearningEnv, env: CompiledEnv) -> None:
        self.learning, self.env, self.task = learning, env, learning.task
        self._action = spaced(self.task.action_size, self.env.n).mT
        self._step, self._look = fuse(self._whole_step), fuse(self._seen)
        self._bound_to: tuple[Any, ...] = ()

    def _whole_step(
        self, signals: Tensors, action: Any, memory: Tensors, current: Any, parameters: Any,
        kept: Any, stream: Any, limit: Any,
    ) -> Any:  # fmt: skip
        commands, remembered = self.task.act(action, signals, memory)

        def observe(truth: Tensors, outcome: Outcome) -> tuple[Any, Any]:
            goal = kept.draws.goal if isinstance(outcome.goal, tuple) else outcome.goal
            return self._seen(outcome.signals, remembered, truth, outcome.episode.step, goal, parameters)

        current, judged = self.env.fused_step(current, parameters, commands, kept, stream, limit, observe)
        finite = judged.ended.finite
        # What is left of an episode that has diverged are signals and memory of the step before.
        signals = {name: _where(finite, value, signals[name]) for name, value in judged.signals.items()}
        remembered = {name: _where(finite, value, memory[name]) for name, value in remembered.items()}
        return current, remembered, judged._replace(signals=signals)

    def _seen(self, signals: Tensors, memory: Tensors, truth: Tensors, step: Any, goal: Any, parameters: Any) -> Any:
        """Observation and privileged observation."""
        time = step * self.task.spec.control_period
        return self.task.observe(signals, memory), privileged_observation(self.task, truth, time, goal, parameters)

    def _bind(self) -> None:
        """To the memory that all is in now; only what a step gives away goes into new memory each time."""
        env, memory = self.env, self.learning.memory
        current, parameters = env.plant.current, env.plant.parameters
        signals = env.small(env.signal_block)
        given = signals, self._action, memory, current, parameters, env.kept, env.stream, env.step_limit
        _, ((_, remembered, judged),) = self._step.results(*given)
        mine: Judged = env.place_for(judged)._replace(signals=signals)
        out = current, {name: memory[name] for name in remembered}, mine
        self._flags = [isinstance(value, Tensor) for value in mine.ended]
        self._sizes = [*(part.shape[1] for part in mine.observed), 1]
        kept: list[Tensor] = []
        flatten((*out[:2], *mine[:5]), kept)
        self._place = len(kept)
        self._run = self._step.bind(*given, out=out)
        self._again = self._look.bind(
            signals, memory, env.true(), env.episode.step, env.draws.goal, parameters, out=mine.observed
        )
        self._nobody = torch.zeros(env.n, dtype=torch.bool)
        self._first = [(memory[name], value) for name, value in self.task.first_memory(1).items()]
        self._bound_to = self._where()

    def _where(self) -> tuple[Any, ...]:
        return self.learning.memory, self.env.plant.parameters, self.env.signal_block

    def __call__(self, action: Tensor) -> Transition:
        """One control step under actions (n, action_size)."""
        env = self.env
        if env.given_away:
            env.renew_signals()
        if len(self._bound_to) == 0 or any(a is not b for a, b in zip(self._bound_to, self._where(), strict=True)):
            self._bind()
        self._action.copy_(action.detach())
        observation, privileged, reward = spaced(sum(self._sizes), env.n).mT.split_with_sizes(self._sizes, 1)
        reward = reward[:, 0]
        fresh = torch.empty(sum(self._flags), env.n, dtype=torch.bool).unbind(0)
        for place, target in enumerate((reward, *fresh, observation, privileged), self._place):
            self._run.redirect(place, target)
        self._run()
        flags = iter(fresh)
        failed, succeeded, timeout, finite, over = (next(flags) if own else self._nobody for own in self._flags)
        ids = over.nonzero()[:, 0]
        final, final_privileged = observation[ids], privileged[ids]
        if len(ids):
            self._again.redirect(0, observation)
            self._again.redirect(1, privileged)
            lost = ~finite[ids]
            if lost.any():
                env.diverged += int(lost.sum())
                self._again(ids[lost])
                final[lost], final_privileged[lost] = observation[ids[lost]], 0.0
            env.begin_again(ids)
            for value, first in self._first:
                value[ids] = first
            self._again(ids)
        return Transition(observation, privileged, reward, failed, succeeded, timeout, ids, final, final_privileged)


def _where(mask: Any, value: Any, other: Any) -> Any:
    """``value`` (n, …) where the mask (n,) is true."""
    return torch.where(mask[(...,) + (None,) * (len(value.shape) - 1)], value, other)
