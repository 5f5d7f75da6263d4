"""Every task as a gymnasium environment, single and batched.

    import gymnasium
    import robo_rl.gym

    env = gymnasium.make("quadrotor-hover", robot="hummingbird")
    envs = gymnasium.make_vec("quadrotor-hover", num_envs=1024)
    mine = gymnasium.make("robo-rl/Task-v0", task="./circle.py:Circle")

Importing this module registers the tasks under their own names, and "robo-rl/Task-v0" for any other, which is given by
the class in a user's file. (Gymnasium 1.0 dropped the plug-ins that let a package register without an import;
``gymnasium.make("robo_rl.gym:quadrotor-hover")`` imports and makes in one.)

Observations are what the exported policy graph sees, numpy float32. ``info["privileged"]`` is what only a critic
may see. An action is the input of the task's ``command``, in units of ``ACTION_SCALE``. Time is the task's: an
episode is terminated when it fails, and truncated when its time is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from robo_rl.learning_env import LearningEnv, Transition
from sim.env import VecEnv
from sim.tasks import Task
from sim.tasks.checking import check
from sim.tasks.loading import load_task, task_names

ACTION_SCALE = 2.0
"""What an action of ±1 is for the task. Trained quadrotor policies held to it lose no flight out of 1,000; held to half
of it they lose 3 in hovering and 12 in tracking."""


ANY_TASK = "robo-rl/Task-v0"
"""The environment whose task is given by the argument ``task``, as ``robo-rl train`` takes it."""


def register_tasks() -> None:
    """Make every task known to gymnasium, by its own name."""
    for name, given in {**{name: {"task": name} for name in task_names()}, ANY_TASK: {}}.items():
        gymnasium.register(
            id=name,
            entry_point="robo_rl.gym:TaskEnv",
            vector_entry_point="robo_rl.gym:TaskVectorEnv",
            kwargs=given,
        )


def _load(task: str, robot: str | None) -> Task:
    """The task; ValueError if it is a user's own and its parts don't fit together."""
    found = load_task(task, robot)
    if found.source is not None:
        check(found)
    return found


class TaskEnv(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """One robot at a task."""

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self, task: str, robot: str | None = None, fixed: Mapping[str, float] | None = None, evaluation: bool = False
    ) -> None:
        """``robot`` is a name or the path of a card; ``fixed`` sets ranges of the task to one value, by name;

        ``evaluation`` puts all ranges at their end, without a curriculum.
        """
        loaded = _load(task, robot)
        self.observation_space, self.action_space = _spaces(loaded)
        seed = _draw_seed(self.np_random)
        self.observed = LearningEnv(VecEnv(loaded, 1, seed, fixed=fixed, evaluation=evaluation))
        self._begun = True  # an episode that no step was made in

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observed.env.seed(_draw_seed(self.np_random))
        if seed is not None or not self._begun:
            self.observed.reset()
        self._begun = False
        return _array(self.observed.observation()[0]), {"privileged": _array(self.observed.privileged()[0])}

    def step(self, action: ArrayLike) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, NDArray[np.float32]]]:
        step = self.observed.step(_actions(np.asarray(action)[None], 1, self.observed.task))
        self._begun = len(step.ids) > 0  # the environment has gone on to the next episode
        seen = (step.final_observation, step.final_privileged) if self._begun else (step.observation, step.privileged)
        observation, privileged = (_array(value[0]) for value in seen)
        return observation, float(step.reward), bool(step.failed), bool(step.timeout), {"privileged": privileged}


class TaskVectorEnv(gymnasium.vector.VectorEnv[NDArray[np.float32], NDArray[np.float32], NDArray[Any]]):
    """Many robots at a task, stepped together; those whose episode ends begin again within the same step.

    The last observation and info of an episode are then in ``infos["final_obs"]`` and ``infos["final_info"]``, as
    gymnasium's own vector environments have them.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(
        self,
        task: str,
        num_envs: int = 1,
        robot: str | None = None,
        fixed: Mapping[str, float] | None = None,
        evaluation: bool = False,
    ) -> None:
        """As ``TaskEnv``, ``num_envs`` times."""
        loaded = _load(task, robot)
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = _spaces(loaded)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        seed = _draw_seed(self.np_random)
        self.observed = LearningEnv(VecEnv(loaded, num_envs, seed, fixed=fixed, evaluation=evaluation))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observed.env.seed(_draw_seed(self.np_random))
        observation = _array(self.observed.reset())
        return observation, self._info(self.observed.privileged())

    def step(
        self, actions: ArrayLike
    ) -> tuple[NDArray[np.float32], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        step = self.observed.step(_actions(np.asarray(actions), self.num_envs, self.observed.task))
        infos = {**self._info(step.privileged), **self._final(step)}
        return _array(step.observation), _array(step.reward), _array(step.failed), _array(step.timeout), infos

    def _info(self, privileged: Tensor) -> dict[str, Any]:
        return {"privileged": _array(privileged), "_privileged": np.ones(self.num_envs, bool)}

    def _final(self, step: Transition) -> dict[str, Any]:
        """The last observations and infos of the episodes that ended, each beside a mask of where there is one."""
        if len(step.ids) == 0:
            return {}
        ids = _array(step.ids)
        ended = np.zeros(self.num_envs, bool)
        ended[ids] = True
        observations = np.full(self.num_envs, None, dtype=object)
        for i, observation in zip(ids, _array(step.final_observation), strict=True):
            observations[i] = observation.copy()
        privileged = np.zeros((self.num_envs, step.final_privileged.shape[1]), np.float32)
        privileged[ids] = _array(step.final_privileged)
        return {
            "final_obs": observations,
            "_final_obs": ended,
            "final_info": {"privileged": privileged, "_privileged": ended.copy()},
            "_final_info": ended.copy(),
        }


def _spaces(task: Task) -> tuple[Any, Any]:
    """Observations have no bounds: nothing keeps a tumbling robot's body rates below any. Actions have.

    Numbers beyond ±1 are taken at their word, not clipped: the task's ``command`` keeps its limits by itself.
    """
    return Box(-np.inf, np.inf, (task.observation_size,)), Box(-1.0, 1.0, (task.action_size,))


def _actions(given: NDArray[Any], n: int, task: Task) -> Tensor:
    """The task's actions (n, action_size) for gymnasium's."""
    if given.shape != (n, task.action_size):
        raise ValueError(f"actions have shape {given.shape}; expected {(n, task.action_size)}")
    actions = np.asarray(given, np.float32)
    if not np.isfinite(actions).all():
        raise ValueError(f"actions are {given}; expected finite numbers")
    return torch.from_numpy(ACTION_SCALE * actions)


def _draw_seed(generator: np.random.Generator) -> int:
    return int(generator.integers(1 << 63))


def _array(tensor: Tensor) -> NDArray[Any]:
    """A copy that belongs to the caller."""
    return np.array(tensor.numpy(), order="C")


register_tasks()
