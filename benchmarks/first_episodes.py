"""The first episode of each of so many environments, under a policy or a controller that is told more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from robo_rl.evaluate.evaluation import ControllerPolicy
from robo_rl.sim.env import VecEnv

Act = Callable[[VecEnv, Any, Tensor], tuple[Mapping[str, Tensor], Any]]
"""Commands and state, by the environments, the last state (None at first), and which of them (n,) still run."""


class Episodes(NamedTuple):
    """How they ended, (n,) each."""

    succeeded: Tensor
    failed: Tensor
    time: Tensor
    """s, to the end."""


def first_episodes(env: VecEnv, act: Act, watch: Callable[[VecEnv, Tensor], None] | None = None) -> Episodes:
    """Run them. ``watch`` is called before every step, with which of them (n,) still run."""
    running = torch.ones(env.n, dtype=torch.bool)
    succeeded, failed, time = torch.zeros_like(running), torch.zeros_like(running), torch.zeros(env.n)
    state = None
    for _ in range(env.episode_steps):
        if watch is not None:
            watch(env, running)
        with torch.no_grad():
            given, state = act(env, state, running)
        step = env.step(given)
        time[running] += env.task.spec.control_period
        succeeded |= running & step.succeeded
        failed |= running & step.failed
        running &= ~(step.failed | step.succeeded | step.timeout)
        if not running.any():
            break
    return Episodes(succeeded, failed, time)


def by_policy(policy: Any) -> Act:
    """What acts on signals alone."""

    def act(env: VecEnv, state: Any, running: Tensor) -> tuple[Mapping[str, Tensor], Any]:
        return policy(env.signals(), policy.initial_state(env.n) if state is None else state)

    return act


def by_controller(controller: ControllerPolicy) -> Act:
    """What acts on signals alone and computes long: only for the environments that still run."""

    def act(env: VecEnv, state: Any, running: Tensor) -> tuple[Mapping[str, Tensor], Any]:
        state = controller.initial_state(env.n) if state is None else state
        found, later = controller({name: value[running] for name, value in env.signals().items()}, state[running])
        commands = {name: torch.zeros(env.n, value.shape[1]) for name, value in found.items()}
        for name, value in found.items():
            commands[name][running] = value
        return commands, state.index_put((running,), later)

    return act
