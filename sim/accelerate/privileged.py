"""Privileged observations of an environment, computed from the first request on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse import empty_block, fuse, spaced
from robo_rl.sim.accelerate.fuse.bound import Bound, are_rows
from robo_rl.sim.episode import privileged_observation
from robo_rl.sim.sensors import without_large
from robo_rl.sim.tasks import Tensors

if TYPE_CHECKING:
    from robo_rl.sim.accelerate.compiled_env import CompiledEnv


class Privileged:
    """(n, p) of an environment, in new memory each time."""

    def __init__(self, env: CompiledEnv) -> None:
        self.env = env
        self._call: Bound | None = None
        self._parameters: Any = None

    def __call__(self) -> Tensor:
        parameters = self.env.plant.parameters
        if self._call is None or self._parameters is not parameters:
            self._parameters, self._call = parameters, self._bind()
        for place, copy in self._copies.items():
            copy.copy_(parameters[place])
        seen = spaced(self.size, self.env.n, device=self.env.device).mT
        self._call.redirect(0, seen)
        self._call()
        return seen

    def _bind(self) -> Bound:
        """With room for float32 copies of the parameters that are read, where they are not."""
        env, parameters = self.env, self.env.plant.parameters
        period, task = env.task.spec.control_period, env.task

        def observe(truth: Tensors, step: Any, goal: Any, parameters: Any) -> Any:
            return privileged_observation(task, truth, step * period, goal, parameters)

        _, room = empty_block(env.n, [value.shape[1:] for value in parameters], env.device)
        fused, known = fuse(observe), (without_large(env.true()), env.episode.step, env.draws.goal)
        read = fused.reads(*known, type(parameters)(*room))[-len(room) :]
        usable = [_usable(value, env.n) for value in parameters]
        self._copies = {i: part for i, part in enumerate(room) if read[i] and not usable[i]}
        given = [value if ok else part for value, part, ok in zip(parameters, room, usable, strict=True)]
        arguments = (*known, type(parameters)(*given))
        _, (seen,) = fused.results(*arguments)
        self.size = seen.shape[1]
        return fused.bind(*arguments, out=seen)


def _usable(value: Tensor, n: int) -> bool:
    """Whether a native loop can read a tensor as it is."""
    return value.dtype == torch.float32 and len(value) == n and are_rows(value)
