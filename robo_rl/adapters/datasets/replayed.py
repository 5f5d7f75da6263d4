"""Demonstrations again: the recorded actions from the recorded starts, compared bit by bit with what was recorded."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from robo_rl.learn.experience.demonstrations import SIGNAL, START, DemonstrationError
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.sim.env import VecEnv
from robo_rl.sim.env_state import EnvState
from robo_rl.sim.tasks import Task

BATCH = 64
"""Episodes at once."""


class Difference(NamedTuple):
    """Where a replay first gives something else."""

    episode: int
    step: int
    name: str
    recorded: float
    replayed: float


def replay(task: Task, tensors: dict[str, Tensor]) -> Difference | None:
    """The first difference, or None. DemonstrationError where a file has no starts, or those of another task."""
    starts = EnvState({name.removeprefix(START): v for name, v in tensors.items() if name.startswith(START)})
    if not starts.tensors:
        raise DemonstrationError("the file has no states to start from, as those of earlier releases; record it again")
    found = []
    for first in range(0, len(starts), BATCH):
        episodes = torch.arange(first, min(first + BATCH, len(starts)))
        found += _replayed(task, tensors, starts, episodes)
    return min(found) if found else None


def _replayed(task: Task, tensors: dict[str, Tensor], starts: EnvState, episodes: Tensor) -> list[Difference]:
    """The first difference of each episode that has one."""
    n = len(episodes)
    env = LearningEnv(VecEnv(task, n, evaluation=True))
    try:
        env.set_state(torch.arange(n), starts.at(episodes))
    except (ValueError, RuntimeError, KeyError, TypeError) as error:
        raise DemonstrationError(f"the states to start from are not those of '{task.name}' ({error})") from None
    rows = [(tensors["episode"] == k).nonzero()[:, 0] for k in episodes.tolist()]
    found: dict[int, Difference] = {}
    for t in range(max(map(len, rows))):
        observation = env.observation()
        assert isinstance(observation, Tensor)
        seen = {"observation": observation.clone(), **{SIGNAL + name: x.clone() for name, x in env.signals.items()}}
        alive = [i for i in range(n) if t < len(rows[i])]
        action = torch.zeros(n, task.action_size)
        for i in alive:
            action[i] = tensors["action"][rows[i][t]]
        step = env.step(action)
        after = {"reward": step.reward, "ended": (step.failed | step.succeeded).float()}
        for i in alive:
            row = rows[i][t]
            for name, value in {**seen, **after}.items():
                now, then = value[i].reshape(-1), tensors[name][row].reshape(-1)
                other = (now != then).nonzero()
                if len(other) and i not in found:
                    k = int(other[0])
                    found[i] = Difference(int(episodes[i]), t, name, float(then[k]), float(now[k]))
    return list(found.values())
