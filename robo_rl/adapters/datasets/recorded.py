"""Demonstrations of robo-rl as a LeRobotDataset, and back, bit by bit.

Columns for LeRobot are in the contract's units: ``observation.state`` has the elements of all signals, ``action`` those
of all commands, by the names "tool_position.x", …; what a policy of robo-rl saw and did is in ``policy.observation``,
``policy.action`` and ``policy.next_observation``. Beside the format's own files, ``meta/contract.json`` has units,
frames and limits, and ``meta/demonstrations.safetensors`` the states in which the episodes began.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from robo_rl.adapters.datasets import Dataset, DatasetError, lerobot
from robo_rl.files import write
from robo_rl.learn.experience.demonstrations import COMMAND, SIGNAL, START, contract_of, of_task, tensors_of
from robo_rl.learn.runs import checkpoint
from robo_rl.sim.tasks import Task

POLICY = ("observation", "action", "next_observation")
"""Tensors that are columns called "policy.…"."""
CONTRACT, BESIDE = "meta/contract.json", "meta/demonstrations.safetensors"


def to_lerobot(path: Path, folder: Path, task: Task) -> Dataset:
    """Write the demonstrations in a file of ``robo_rl.learn.experience.demonstrations`` as a new folder; returns
    what is in it."""
    tensors = tensors_of(path, task)
    if not any(name.startswith(COMMAND) for name in tensors):
        raise DatasetError(f"{path}: has no commands, as files of earlier releases; record it again")
    ended = tensors["ended"] > 0.5
    last = torch.cat([tensors["episode"].diff() > 0, torch.ones(1, dtype=torch.bool)])
    columns = {
        "observation.state": _joined(tensors, SIGNAL, task.spec.signals),
        "action": _joined(tensors, COMMAND, task.spec.commands),
        "next.reward": tensors["reward"].numpy(),
        "next.done": last.numpy(),
        "next.success": ended.numpy(),
        **{f"policy.{name}": tensors[name].numpy() for name in POLICY},
    }
    names = {"observation.state": _elements(task.spec.signals), "action": _elements(task.spec.commands)}
    rate = 1.0 / task.spec.control_period
    rate = round(rate) if abs(rate - round(rate)) < 1e-6 * rate else rate
    data = Dataset(task.summary, task.spec.robot.name, rate, tensors["episode"].numpy(), columns, names)
    lerobot.write(folder, data)
    write(folder / CONTRACT, json.dumps(json.loads(contract_of(task).to_json()), indent=2) + "\n")
    starts = {name: value for name, value in tensors.items() if name.startswith(START)}
    checkpoint.save(folder / BESIDE, starts, {"task": task.name, "contract": contract_of(task).to_json()})
    return data


def from_lerobot(folder: Path, task: Task) -> dict[str, Tensor]:
    """The tensors that ``to_lerobot`` wrote; DatasetError if it was not robo-rl that wrote the folder."""
    data = lerobot.read(folder)
    starts, _ = of_task(folder / BESIDE, task, "what robo-rl writes beside a LeRobotDataset", "robo-rl demonstrate",
                        DatasetError)  # fmt: skip
    sizes = {"policy.observation": task.observation_size, "policy.action": task.action_size}
    sizes |= {"policy.next_observation": task.observation_size, "next.reward": 1, "next.success": 1}
    sizes |= {"observation.state": len(_elements(task.spec.signals)), "action": len(_elements(task.spec.commands))}
    found = {}
    for name, size in sizes.items():
        value = data.columns.get(name)
        kind = "bool" if name == "next.success" else "float32"
        if value is None or value.size != size * len(value) or str(value.dtype) != kind:
            told = "missing" if value is None else f"{value.shape} of {value.dtype}"
            raise DatasetError(f"{folder}: column '{name}' is {told}; expected {size} of {kind} in each row")
        found[name] = torch.from_numpy(value.reshape(len(value), size))
    return {
        **{name: found[f"policy.{name}"] for name in POLICY},
        "reward": found["next.reward"][:, 0],
        "ended": found["next.success"][:, 0].float(),
        "episode": torch.from_numpy(data.episode),
        **_split(found["observation.state"], SIGNAL, task.spec.signals),
        **_split(found["action"], COMMAND, task.spec.commands),
        **starts,
    }


def _elements(channels: Any) -> tuple[str, ...]:
    """Names of all elements, one after the other."""
    return tuple(f"{channel.name}.{label}" for channel in channels for label in channel.labels)


def _joined(tensors: dict[str, Tensor], prefix: str, channels: Any) -> np.ndarray:
    """(s, k) all elements of signals or commands."""
    return torch.cat([tensors[prefix + channel.name].flatten(1) for channel in channels], 1).numpy()


def _split(rows: Tensor, prefix: str, channels: Any) -> dict[str, Tensor]:
    """The reverse."""
    parts = zip(channels, rows.split([channel.size for channel in channels], 1), strict=True)
    return {prefix + c.name: part.reshape(len(part), *c.dimensions).contiguous() for c, part in parts}
