"""Demonstrations: episodes of a script that succeeded, in one file that tells what its numbers mean.

A file is a checkpoint (``robo_rl.checkpoint``: safetensors with a digest, nothing pickled) with a row per control step,
and in its header the contract that it was recorded under: signals and commands with their units, frames and limits.

    observation       (s, k)  what a policy sees
    action            (s, a)  what the script did, −1 to 1
    reward            (s,)    for it
    ended             (s,)    1 where that was the end of the episode, and nothing more is to be earned, else 0
    next_observation  (s, k)
    episode           (s,)    number of the episode, from 0
    signal/NAME       (s, …)  what was measured, in the signal's unit
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from robo_rl import checkpoint
from robo_rl.checkpoint import CheckpointError
from robo_rl.contract import Contract, ContractError, Network, Provenance
from robo_rl.learning_env import LearningEnv
from sim.env import VecEnv
from sim.tasks import Task

FILE_NAME = "demonstrations.safetensors"
"""In the folder of a run that learns from them."""
BATCH = 64
"""Episodes at once. Each environment gives as many, so that quick ones are no more frequent than they are."""
PATIENCE = 10
"""Times as many episodes as are wanted may be tried."""


class DemonstrationError(ValueError):
    """Demonstrations can't be made or used. The message says why."""


class Transitions(NamedTuple):
    """What a policy learns from: s rows of float32."""

    observation: Tensor
    """(s, k)."""
    action: Tensor
    """(s, a)."""
    reward: Tensor
    """(s,)."""
    ended: Tensor
    """(s,) 1 where nothing more was to be earned, else 0."""
    next_observation: Tensor
    """(s, k)."""

    def rows(self, ids: Any) -> Transitions:
        """Some of them."""
        return Transitions(*(value[ids] for value in self))


def contract_of(task: Task) -> Contract:
    """What the numbers of a task's demonstrations mean."""
    return task.spec.contract(Provenance("script", 0, 0, ""), Network((), "tanh", False))


def demonstrate(
    task: Task, episodes: int, seed: int = 0, told: Callable[[int], None] = lambda count: None
) -> tuple[dict[str, Tensor], int]:
    """Tensors of a file with so many episodes of the task's script that succeeded, and how many were tried.

    ``told`` is called with the number of episodes so far.
    """
    script = getattr(task, "script", None)
    if script is None:
        raise DemonstrationError(f"task '{task.name}' has no script that could show how it is done")
    if task.encoders:
        raise DemonstrationError(f"task '{task.name}' observes scans or images; expected one that observes a vector")
    n = min(BATCH, episodes)
    env = LearningEnv(VecEnv(task, n, seed, evaluation=True))
    wanted = [len(range(i, episodes, n)) for i in range(n)]
    rows: list[list[dict[str, Tensor]]] = [[] for _ in range(n)]
    kept: list[dict[str, Tensor]] = []
    tried = found = 0
    while found < episodes:
        if tried >= PATIENCE * episodes + n:
            raise DemonstrationError(f"the script of '{task.name}' succeeded in {found} of {tried} episodes; gave up")
        signals, observation = env.signals, env.observation()
        assert isinstance(observation, Tensor)
        action = script(signals, env.memory).clamp(-1.0, 1.0)
        step = env.step(action)
        later, final = step.observation, step.final_observation
        assert isinstance(later, Tensor)
        assert isinstance(final, Tensor)
        later = later.clone()
        later[step.ids] = final
        now = {
            "observation": observation.clone(), "action": action, "reward": step.reward,
            "ended": (step.failed | step.succeeded).float(), "next_observation": later,
            **{f"signal/{name}": value for name, value in signals.items()},
        }  # fmt: skip
        for i in range(n):
            rows[i].append({name: value[i].clone() for name, value in now.items()})
        for i in step.ids.tolist():
            tried += wanted[i] > 0
            if bool(step.succeeded[i]) and wanted[i] > 0:
                steps = {name: torch.stack([row[name] for row in rows[i]]) for name in now}
                kept.append({**steps, "episode": torch.full((len(rows[i]),), found)})
                wanted[i], found = wanted[i] - 1, found + 1
                told(found)
            rows[i] = []
    return {name: torch.cat([episode[name] for episode in kept]) for name in kept[0]}, tried


def write(path: Path, task: Task, tensors: dict[str, Tensor]) -> None:
    """Write tensors of ``demonstrate`` with the task's contract."""
    checkpoint.save(path, tensors, {"task": task.name, "contract": contract_of(task).to_json()})


def read(path: Path, task: Task) -> tuple[Transitions, int]:
    """The transitions in a file, and the number of its episodes; DemonstrationError if it does not fit the task."""
    try:
        tensors, told = checkpoint.load(path)
    except CheckpointError as error:
        raise DemonstrationError(f"{error}; expected demonstrations") from None
    try:
        contract = Contract.from_json(told["contract"], f"{path}: contract")
    except (KeyError, TypeError, AttributeError, ContractError) as error:
        raise DemonstrationError(f"{path}: not demonstrations ({str(error)[:300]})") from None
    if contract.digest != contract_of(task).digest:
        raise DemonstrationError(
            f"{path}: recorded at task '{contract.task}' with {contract.robot_name}, whose signals, commands or limits "
            f"are not those of '{task.name}' with {task.spec.robot.name}; record them again with 'robo-rl demonstrate'"
        )
    episode = tensors.get("episode")
    if episode is None or episode.ndim != 1 or len(episode) == 0 or episode.dtype != torch.int64:
        raise DemonstrationError(f"{path}: episode is {_shown(episode)}; expected one int64 per control step, and some")
    count = len(episode)
    seen, acted = (count, task.observation_size), (count, task.action_size)
    shapes = {"observation": seen, "action": acted, "reward": (count,), "ended": (count,), "next_observation": seen}
    for name, shape in shapes.items():
        value = tensors.get(name)
        if value is None or tuple(value.shape) != shape or value.dtype != torch.float32:
            raise DemonstrationError(f"{path}: {name} is {_shown(value)}; expected {shape} numbers of torch.float32")
        if not bool(torch.isfinite(value).all()):
            raise DemonstrationError(f"{path}: {name} has numbers that are not finite")
    shown = Transitions(*(tensors[name] for name in shapes))
    if bool((shown.action.abs() > 1.0).any()):
        raise DemonstrationError(f"{path}: action goes beyond what a policy can do; expected −1 to 1")
    if bool(((shown.ended != 0.0) & (shown.ended != 1.0)).any()):
        raise DemonstrationError(f"{path}: ended has numbers that are neither 0 nor 1")
    return shown, len(episode.unique())


def _shown(value: Tensor | None) -> str:
    return "missing" if value is None else f"{tuple(value.shape)} numbers of {value.dtype}"


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def kept(folder: Path | None, wanted: str, task: Task) -> Transitions | None:
    """The demonstrations in a run's folder, of which the run knows the digest ``wanted``; "" for none."""
    if not wanted:
        return None
    path = (folder or Path()) / FILE_NAME
    if not path.is_file() or digest(path) != wanted:
        raise DemonstrationError(f"{path}: not the demonstrations that the run began with; expected SHA-256 {wanted}")
    return read(path, task)[0]
