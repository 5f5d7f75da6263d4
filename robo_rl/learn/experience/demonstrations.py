"""Demonstrations: episodes of a script that succeeded, in one file that tells what its numbers mean.

A file is a checkpoint (``robo_rl.learn.runs.checkpoint``: safetensors with a digest, nothing pickled) with a row per
control step,
and in its header the contract that it was recorded under: signals and commands with their units, frames and limits.

    observation       (s, k)  what a policy sees
    action            (s, a)  what the script did, −1 to 1
    reward            (s,)    for it
    ended             (s,)    1 where that was the end of the episode, and nothing more is to be earned, else 0
    next_observation  (s, k)
    episode           (s,)    number of the episode, from 0
    signal/NAME       (s, …)  what was measured, in the signal's unit
    command/NAME      (s, k)  what was commanded, in the command's unit
    start/NAME        (e, …)  the state in which each episode began (``LearningEnv.state``): they can be replayed
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from robo_rl.contract import Contract, ContractError, Network, Provenance
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.learn.experience.recorded_values import faults
from robo_rl.learn.runs import checkpoint
from robo_rl.learn.runs.checkpoint import CheckpointError
from robo_rl.sim.env import VecEnv
from robo_rl.sim.env_state import EnvState
from robo_rl.sim.tasks import Task

FILE_NAME = "demonstrations.safetensors"
"""In the folder of a run that learns from them."""
BATCH = 64
"""Episodes at once. Each environment gives as many, so that quick ones are no more frequent than they are."""
SIGNAL, COMMAND, START = "signal/", "command/", "start/"
"""What names of tensors begin with."""
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
    begun = env.state(torch.arange(n))
    starts: list[EnvState] = []
    kept: list[dict[str, Tensor]] = []
    tried = found = 0
    while found < episodes:
        if tried >= PATIENCE * episodes + n:
            raise DemonstrationError(f"the script of '{task.name}' succeeded in {found} of {tried} episodes; gave up")
        signals, observation = env.signals, env.observation()
        assert isinstance(observation, Tensor)
        action = script(signals, env.memory).clamp(-1.0, 1.0)
        commands = task.command(action, env.memory)
        step = env.step(action)
        later, final = step.observation, step.final_observation
        assert isinstance(later, Tensor)
        assert isinstance(final, Tensor)
        later = later.clone()
        later[step.ids] = final
        now = {
            "observation": observation.clone(), "action": action, "reward": step.reward,
            "ended": (step.failed | step.succeeded).float(), "next_observation": later,
            **{SIGNAL + name: value for name, value in signals.items()},
            **{COMMAND + name: value for name, value in commands.items()},
        }  # fmt: skip
        for i in range(n):
            rows[i].append({name: value[i].clone() for name, value in now.items()})
        for i in step.ids.tolist():
            tried += wanted[i] > 0
            if bool(step.succeeded[i]) and wanted[i] > 0:
                steps = {name: torch.stack([row[name] for row in rows[i]]) for name in now}
                kept.append({**steps, "episode": torch.full((len(rows[i]),), found)})
                starts.append(begun.at(torch.tensor([i])))
                wanted[i], found = wanted[i] - 1, found + 1
                told(found)
            rows[i] = []
        if len(step.ids):
            fresh = env.state(step.ids)
            for name, value in begun.tensors.items():
                value[step.ids] = fresh[name]
    first = {START + name: value for name, value in EnvState.concatenated(starts).tensors.items()}
    return {name: torch.cat([episode[name] for episode in kept]) for name in kept[0]} | first, tried


def write(path: Path, task: Task, tensors: dict[str, Tensor]) -> None:
    """Write tensors of ``demonstrate`` with the task's contract. CheckpointError if one is not finite."""
    checkpoint.require_finite(path, tensors, "nothing was written")
    checkpoint.save(path, tensors, {"task": task.name, "contract": contract_of(task).to_json()})


def read(path: Path, task: Task) -> tuple[Transitions, int]:
    """The transitions in a file, and the number of its episodes; DemonstrationError if it does not fit the task."""
    tensors = tensors_of(path, task)
    return Transitions(*(tensors[name] for name in Transitions._fields)), len(tensors["episode"].unique())


def tensors_of(path: Path, task: Task) -> dict[str, Tensor]:
    """All tensors of a file, checked; DemonstrationError as ``read``. Old files have neither commands nor starts."""
    tensors, _ = of_task(path, task, "demonstrations", "robo-rl demonstrate", DemonstrationError)
    check(tensors, path, task)
    return tensors


def check(tensors: dict[str, Tensor], path: Path, task: Task) -> None:
    """DemonstrationError, about the file ``path``, unless these can be demonstrations of a task."""
    episode = tensors.get("episode")
    if episode is None or episode.ndim != 1 or len(episode) == 0 or episode.dtype != torch.int64:
        raise DemonstrationError(f"{path}: episode is {shown(episode)}; expected one int64 per control step, and some")
    count = len(episode)
    seen, acted = (count, task.observation_size), (count, task.action_size)
    steps = episode.diff(prepend=torch.tensor([-1]))
    if bool((steps < 0).any()) or bool((steps > 1).any()) or int(episode[0]) != 0:
        raise DemonstrationError(f"{path}: episode does not count 0, 0, …, 1, …; expected episodes one after the other")
    shapes = {"observation": seen, "action": acted, "reward": (count,), "ended": (count,), "next_observation": seen}
    shapes |= {SIGNAL + signal.name: (count, *signal.dimensions) for signal in task.spec.signals}
    if any(name.startswith(COMMAND) for name in tensors):
        shapes |= {COMMAND + command.name: (count, *command.dimensions) for command in task.spec.commands}
    first = {name: value for name, value in tensors.items() if name.startswith(START)}
    unknown = sorted(tensors.keys() - shapes.keys() - first.keys() - {"episode"})
    if unknown:
        raise DemonstrationError(f"{path}: {unknown[0][:100]} is unknown; expected {list(shapes)}")
    for name, begun in first.items():
        if begun.ndim == 0 or len(begun) != int(episode[-1]) + 1:
            raise DemonstrationError(f"{path}: {name[:100]} is {shown(begun)}; expected one per episode")
    for name, shape in shapes.items():
        value = tensors.get(name)
        if value is None or tuple(value.shape) != shape or value.dtype != torch.float32:
            raise DemonstrationError(f"{path}: {name} is {shown(value)}; expected {shape} numbers of torch.float32")
        if not bool(torch.isfinite(value).all()):
            raise DemonstrationError(f"{path}: {name} has numbers that are not finite")
    values = {name.removeprefix(SIGNAL): tensors[name].numpy() for name in shapes}
    for fault in faults(task.spec.signals, values):
        raise DemonstrationError(f"{path}: step {fault.first}: {fault.sentence}")
    if bool((tensors["action"].abs() > 1.0).any()):
        raise DemonstrationError(f"{path}: action goes beyond what a policy can do; expected −1 to 1")
    if bool(((tensors["ended"] != 0.0) & (tensors["ended"] != 1.0)).any()):
        raise DemonstrationError(f"{path}: ended has numbers that are neither 0 nor 1")


def task_of(path: Path, name: str | None = None, robot: str | None = None) -> Task:
    """The task that a file was recorded at. ``name`` is needed for a user's own: a file does not choose what is run."""
    from robo_rl.sim.tasks.loading import load_task, task_names

    _, _, contract = _opened(path, "demonstrations", DemonstrationError)
    if name is None and contract.task not in task_names():
        raise DemonstrationError(
            f"{path}: recorded at '{contract.task}', a task of its own; expected --task FILE:CLASS"
        )
    task = load_task(name or contract.task, robot)
    if robot is None and task.spec.robot.name != contract.robot_name:
        try:
            return load_task(name or contract.task, contract.robot_name)
        except ValueError:
            raise DemonstrationError(
                f"{path}: recorded with '{contract.robot_name}'; expected --robot, its card (*.toml)"
            ) from None
    return task


def of_task(
    path: Path, task: Task, what: str, command: str, refusal: type[ValueError]
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and header of a file that ``command`` wrote; a ``refusal`` if it was not recorded at this task."""
    tensors, told, contract = _opened(path, what, refusal)
    if contract.interface_digest != contract_of(task).interface_digest:
        raise refusal(
            f"{path}: recorded at task '{contract.task}' with {contract.robot_name}, whose signals, commands or limits "
            f"are not those of '{task.name}' with {task.spec.robot.name}; record them again with '{command}'"
        )
    return tensors, told


def _opened(path: Path, what: str, refusal: type[ValueError]) -> tuple[dict[str, Tensor], dict[str, Any], Contract]:
    if not path.exists():
        raise refusal(f"{path}: the file does not exist; expected {what}")
    if path.is_dir() or path.suffix in (".hdf5", ".h5"):
        raise refusal(
            f"{path}: expected {what} of robo-rl, a file *.safetensors. Of a LeRobotDataset that robo-rl wrote, "
            "'robo-rl demos convert' makes one. Of what others recorded with an arm, 'robo-rl adopt' makes a task and "
            "demonstrations for it; it has not what other tasks measure"
        )
    try:
        tensors, told = checkpoint.load(path)
        return tensors, told, Contract.from_json(told["contract"], f"{path}: contract")
    except CheckpointError as error:
        raise refusal(f"{error}; expected {what}") from None
    except (KeyError, TypeError, AttributeError, ContractError) as error:
        raise refusal(f"{path}: not {what} ({str(error)[:300]})") from None


def shown(value: Tensor | None) -> str:
    """What a tensor of a file is, for people."""
    return "missing" if value is None else f"{tuple(value.shape)} numbers of {value.dtype}"


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def kept(folder: Path | None, wanted: str, task: Task) -> Transitions | None:
    """The demonstrations in a run's folder, of which the run knows the digest ``wanted``; "" for none."""
    return read(kept_file(folder, wanted), task)[0] if wanted else None


def kept_file(folder: Path | None, wanted: str) -> Path:
    """The file in a run's folder, if its digest is ``wanted``; else DemonstrationError."""
    path = (folder or Path()) / FILE_NAME
    if not path.is_file() or digest(path) != wanted:
        raise DemonstrationError(f"{path}: not the demonstrations that the run began with; expected SHA-256 {wanted}")
    return path
