"""What one control step of an environment comes to, as pure functions of tensors.

An environment, a fused differentiable step and a simulated robot share them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from robo_rl.sim.sensors import Chance, SensorDraws, Sensors, SensorState
from robo_rl.sim.tasks import Task, Tensors

LARGEST = 1e6
"""Euclidean norm of all numbers of a state, of rewards, signals or observations, in SI units, beyond which they have
diverged. The largest quantity in any unit of contracts is an atmosphere, 1.01e5 Pa (ISO 2533); of the tasks here,
1,081 ranges of a lidar (6e2), a quadrotor's rotor speeds (4e3) and a robot's contact forces (7e2)."""


class EpisodeState(NamedTuple):
    """What the environment keeps from step to step besides the plant's state."""

    step: Any
    """(n,) control steps since the episode began, a whole number."""
    sensors: SensorState
    """What sensors keep."""
    previous: dict[str, Any]
    """The last commands."""


class Draws(NamedTuple):
    """What is drawn at the start of an episode and holds through it, besides the plant's parameters.

    All but the goal are the sensors': see ``SensorDraws``; () where the task has none.
    """

    goal: Any
    """(n, k) of the set-points. It changes where the task's goals advance."""
    delay: Any
    """(n, k) s, latencies of sensors."""
    noise: Any
    """(n,) factor on the sensors' noise."""
    bias: Any
    """(n, elements) constant errors of sensors."""
    dropout: Any
    """(n, k) probabilities that measurements drop out."""

    @property
    def sensors(self) -> SensorDraws:
        """Those of sensors."""
        return SensorDraws(*self[1:])


class Outcome(NamedTuple):
    """What ``transition`` makes of one step."""

    episode: EpisodeState
    goal: Any
    """() where goals don't advance."""
    signals: dict[str, Any]
    reward: Any
    failed: Any
    """(n,) truth values, as are the next."""
    succeeded: Any
    """() where the task knows no success."""
    finite: Any
    """Whether state, rewards and signals are within ``LARGEST``."""
    terms: Any
    """(n, t) weighted rewards, in the task's order."""


def within(*values: Any) -> Any:
    """(n,) whether the norm of all numbers of tensors (n, …) is at most ``LARGEST``; false for what is not finite."""
    return sum(value.flatten(1).square().sum(-1) for value in values) <= LARGEST**2


def all_within(*values: Tensor) -> bool:
    """Whether all rows are ``within`` for sure: their norm together is. Costs a fraction of looking at each."""
    return math.hypot(*(float(torch.linalg.vector_norm(value)) for value in values)) <= LARGEST


def transition(
    task: Task, sensors: Sensors, truth: Tensors, commands: Tensors, episode: EpisodeState, draws: Draws, chance: Chance
) -> Outcome:
    """Reward, failure, success and the next signals, after the plant moved to ``truth`` under ``commands``.

    A goal that advances does so after the reward was earned: the signals already tell of the next one.
    """
    step = episode.step + 1.0
    time = step * task.spec.control_period
    full = {**truth, **task.reference(time, draws.goal)}
    terms_by_name = task.reward(full, commands, episode.previous)
    weighted = [weight * terms_by_name[name] for name, weight in task.spec.reward.items()]
    terms = torch.stack(weighted, -1)
    goal = task.advance(full, draws.goal)
    seen = full if goal is None else {**truth, **task.reference(time, goal)}
    signals, state = sensors.measure(seen, episode.sensors, draws.sensors, chance)
    succeeded = task.succeeded(full)
    return Outcome(
        episode=EpisodeState(step, state, dict(commands)),
        goal=() if goal is None else goal,
        signals=signals,
        reward=sum(weighted),
        failed=task.failed(full),
        succeeded=() if succeeded is None else succeeded,
        finite=within(*truth.values(), terms, *signals.values()),
        terms=terms,
    )


def privileged_observation(task: Task, truth: Tensors, time: Any, goal: Any, parameters: Any) -> Any:
    """(n, p) what a critic may see."""
    return task.privileged({**truth, **task.reference(time, goal)}, parameters)


def first_moment(
    sensors: Sensors, truth: Tensors, idle: Tensors, draws: Draws, phases: tuple[Any, ...], stream: Any
) -> tuple[EpisodeState, dict[str, Any]]:
    """The state and the signals of episodes that begin at ``truth``, set-points included, after ``idle`` commands."""
    start = truth[next(iter(truth))].flatten(1)[:, 0] * 0.0
    state = sensors.start(truth, phases)
    signals, state = sensors.measure(truth, state, draws.sensors, sensors.chance(stream, start), first=True)
    return EpisodeState(start, state, dict(idle)), signals
