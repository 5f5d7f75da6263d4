"""Every task as a gymnasium environment, single and batched.

    import gymnasium
    import robo_rl.adapters.gym

    env = gymnasium.make("quadrotor-hover", robot="hummingbird")
    envs = gymnasium.make_vec("quadrotor-hover", num_envs=1024)
    mine = gymnasium.make("robo-rl/Task-v0", task="./circle.py:Circle")

Importing this module registers the tasks under their own names, and "robo-rl/Task-v0" for any other, which is given by
the class in a user's file. (Gymnasium 1.0 dropped the plug-ins that let a package register without an import;
``gymnasium.make("robo_rl.adapters.gym:quadrotor-hover")`` imports and makes in one.)

Observations are what the exported policy graph sees, numpy float32: a vector, or a dictionary where a task has several
groups. ``info["privileged"]`` is what only a critic may see. An action is the input of the task's ``command``, in units
of ``ACTION_SCALE``. Time is the task's: an episode is terminated when it fails or succeeds (then
``info["is_success"]``), and truncated when its time is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Dict
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from robo_rl.adapters.gym_picture import Camera
from robo_rl.learn.experience.learning_env import ACTION_SCALE, LearningEnv
from robo_rl.learn.experience.transitions import Observation, Transition, rows
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.checking import check
from robo_rl.sim.tasks.loading import load_task, task_names

RENDER_MODES = ["human", "rgb_array"]

ANY_TASK = "robo-rl/Task-v0"
"""The environment whose task is given by the argument ``task``, as ``robo-rl train`` takes it."""


def register_tasks() -> None:
    """Make every task known to gymnasium, by its own name."""
    for name, given in {**{name: {"task": name} for name in task_names()}, ANY_TASK: {}}.items():
        gymnasium.register(
            id=name,
            entry_point="robo_rl.adapters.gym:TaskEnv",
            vector_entry_point="robo_rl.adapters.gym:TaskVectorEnv",
            kwargs=given,
        )


def _load(task: str, robot: str | None) -> Task:
    """The task; ValueError if it is a user's own and its parts don't fit together."""
    found = load_task(task, robot)
    if found.source is not None:
        check(found)
    return found


class TaskEnv(gymnasium.Env[Any, NDArray[np.float32]]):
    """One robot at a task."""

    metadata: dict[str, Any] = {"render_modes": RENDER_MODES}

    def __init__(
        self, task: str, robot: str | None = None, fixed: Mapping[str, float] | None = None, evaluation: bool = False,
        render_mode: str | None = None,
    ) -> None:  # fmt: skip
        """``robot`` is a name or the path of a card; ``fixed`` sets ranges of the task to one value, by name;

        ``evaluation`` puts all ranges at their end, without a curriculum. ``render_mode`` is None, "rgb_array", or
        "human": a page for the browser, in real time, whose address is printed.
        """
        _require_mode(render_mode)
        self.render_mode = render_mode
        loaded = _load(task, robot)
        if loaded.spec.team > 1:
            raise ValueError(
                f"task '{task}' is one of teams; gymnasium.make_vec makes {loaded.spec.team} robots of each"
            )
        seed = _draw_seed(self.np_random)
        self.observed = LearningEnv(VecEnv(loaded, 1, seed, fixed=fixed, evaluation=evaluation))
        self.action_scale = ACTION_SCALE
        self.observation_space, self.action_space = _spaces(self.observed)
        self.metadata = {**self.metadata, "render_fps": round(1 / loaded.spec.control_period)}
        self._camera = Camera(self.observed.env) if render_mode == "rgb_array" else None
        self._window = _window(self.observed.env) if render_mode == "human" else None
        self._begun = True  # an episode that no step was made in

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observed.env.seed(_draw_seed(self.np_random))
        if seed is not None or not self._begun:
            self.observed.reset()
        _show(self._window, torch.zeros(1, dtype=torch.int64))
        self._begun = False
        return _arrays(rows(self.observed.observation(), 0)), {"privileged": _array(self.observed.privileged()[0])}

    def step(self, action: ArrayLike) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        step = self.observed.step(_actions(np.asarray(action)[None], 1, self.observed.task))
        self._begun = len(step.ids) > 0  # the environment has gone on to the next episode
        _show(self._window, step.ids)
        seen = (step.final_observation, step.final_privileged) if self._begun else (step.observation, step.privileged)
        info = {"privileged": _array(seen[1][0]), "is_success": bool(step.succeeded)}
        over = bool(step.failed | step.succeeded)
        return _arrays(rows(seen[0], 0)), float(step.reward), over, bool(step.timeout), info

    def render(self) -> Any:
        """(height, width, 3) pixels of the robot now; of an episode that has ended, of the next one. "human": None."""
        return None if self._camera is None else self._camera.picture(0)

    def close(self) -> None:
        for shown in (self._camera, self._window):
            if shown is not None:
                shown.close()


class TaskVectorEnv(gymnasium.vector.VectorEnv[Any, NDArray[np.float32], NDArray[Any]]):
    """Many robots at a task, stepped together; those whose episode ends are reset within the same step.

    The last observation and info of an episode are then in ``infos["final_obs"]`` and ``infos["final_info"]``, as
    gymnasium's own vector environments have them.
    """

    metadata: dict[str, Any] = {"render_modes": RENDER_MODES, "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(
        self,
        task: str,
        num_envs: int = 1,
        robot: str | None = None,
        fixed: Mapping[str, float] | None = None,
        evaluation: bool = False,
        render_mode: str | None = None,
    ) -> None:
        """As ``TaskEnv``, ``num_envs`` times. Of a task of teams, each robot is one of them."""
        _require_mode(render_mode)
        self.render_mode = render_mode
        loaded = _load(task, robot)
        teams, left = divmod(num_envs, loaded.spec.team)
        if left:
            raise ValueError(f"num_envs is {num_envs}; expected a multiple of the {loaded.spec.team} robots of a team")
        self.num_envs = num_envs
        seed = _draw_seed(self.np_random)
        self.observed = LearningEnv(VecEnv(loaded, teams, seed, fixed=fixed, evaluation=evaluation))
        self.action_scale = ACTION_SCALE
        self.single_observation_space, self.single_action_space = _spaces(self.observed)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.metadata = {**self.metadata, "render_fps": round(1 / loaded.spec.control_period)}
        self._camera = Camera(self.observed.env) if render_mode == "rgb_array" else None
        self._window = _window(self.observed.env) if render_mode == "human" else None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observed.env.seed(_draw_seed(self.np_random))
        observation = _arrays(self.observed.reset())
        _show(self._window, torch.arange(self.num_envs))
        return observation, self._info(self.observed.privileged())

    def step(self, actions: ArrayLike) -> tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        step = self.observed.step(_actions(np.asarray(actions), self.num_envs, self.observed.task))
        _show(self._window, step.ids)
        over, truncated = (step.failed | step.succeeded).numpy(), step.timeout.numpy().copy()
        infos = {**self._info(step.privileged), **self._success(over | truncated), **self._final(step)}
        return self._given(step.observation), step.reward.numpy().copy(), over, truncated, infos

    def _given(self, observation: Observation) -> Any:
        """Arrays that belong to the caller: a native step gives away new memory each time."""
        return _arrays(observation, copy=not self.observed.gives_away)

    def render(self) -> Any:
        """One picture (height, width, 3) of each robot now; "human": None."""
        return None if self._camera is None else tuple(self._camera.picture(i) for i in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Let go of the renderer."""
        for shown in (self._camera, self._window):
            if shown is not None:
                shown.close()

    def _info(self, privileged: Tensor) -> dict[str, Any]:
        return {"privileged": self._given(privileged), "_privileged": np.ones(self.num_envs, bool)}

    def _success(self, ended: NDArray[Any]) -> dict[str, Any]:
        """Final info of episodes that continue: none. That of the others is in ``_final``."""
        return {} if ended.all() else {"is_success": np.zeros(self.num_envs, bool), "_is_success": ~ended}

    def _final(self, step: Transition) -> dict[str, Any]:
        """The last observations and infos of the episodes that ended, each beside a mask of where there is one."""
        if len(step.ids) == 0:
            return {}
        ids = step.ids.numpy()
        ended = np.zeros(self.num_envs, bool)
        ended[ids] = True
        observations = np.empty(self.num_envs, dtype=object)
        last = _arrays(step.final_observation)
        for k, i in enumerate(ids.tolist()):
            observations[i] = {name: value[k] for name, value in last.items()} if isinstance(last, dict) else last[k]
        privileged = np.zeros((self.num_envs, step.final_privileged.shape[1]), np.float32)
        privileged[ids] = step.final_privileged.numpy()
        return {
            "final_obs": observations,
            "_final_obs": ended,
            "final_info": {
                "privileged": privileged,
                "_privileged": ended.copy(),
                "is_success": step.succeeded.numpy().copy(),
                "_is_success": ended.copy(),
            },
            "_final_info": ended.copy(),
        }


def _window(env: VecEnv) -> Any:
    """Made when it is asked for: the page takes a while to load."""
    from robo_rl.adapters.gym_window import Window

    return Window(env)


def _show(window: Any, ids: Tensor) -> None:
    """Show a step, after which the episodes of ``ids`` have begun again, if there is a window."""
    if window is not None:
        window.began(ids)
        window.show()


def _require_mode(render_mode: str | None) -> None:
    if render_mode not in (None, *RENDER_MODES):
        raise ValueError(f"render_mode is '{render_mode}'; expected one of {RENDER_MODES}, or none")


def _spaces(observed: LearningEnv) -> tuple[Any, Any]:
    """Observations have no bounds: nothing keeps a tumbling robot's body rates below any. Actions have.

    Numbers beyond ±1 are taken at their word, not clipped: the task's ``command`` keeps its limits by itself.
    """
    seen = observed.observation()
    if isinstance(seen, dict):
        space: Any = Dict({name: Box(-np.inf, np.inf, tuple(value.shape[1:])) for name, value in seen.items()})
    else:
        space = Box(-np.inf, np.inf, tuple(seen.shape[1:]))
    return space, Box(-1.0, 1.0, (observed.task.action_size,))


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


def _arrays(observation: Observation, copy: bool = True) -> Any:
    """Copies that belong to the caller, or the memory itself."""
    if isinstance(observation, dict):
        return {name: _array(value, copy) for name, value in observation.items()}
    return _array(observation, copy)


def _array(tensor: Tensor, copy: bool = True) -> NDArray[Any]:
    """In the same order in memory: robots of a batch are neighbours."""
    return (tensor.clone() if copy else tensor).numpy()


register_tasks()
