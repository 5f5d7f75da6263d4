"""Checkpoints: tensors and numbers in one safetensors file, replaced atomically, never pickled."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor
from torch.optim import Optimizer


class CheckpointError(ValueError):
    """A checkpoint can't be read. The message names the file."""


def save(path: Path, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
    """Write ``tensors``, and ``numbers`` as JSON in the file's header.

    The file is complete and on disk before it takes its name: whoever reads it finds the old one or the new one,
    also after a crash or a kill in between.
    """
    partial = path.with_name(path.name + ".partial")
    solid = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    safetensors.torch.save_file(solid, partial, metadata={"numbers": json.dumps(numbers)})
    with open(partial, "rb") as file:
        os.fsync(file.fileno())
    os.replace(partial, path)


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and numbers of a checkpoint."""
    if not path.is_file():
        raise CheckpointError(f"{path}: there is no such file; expected a checkpoint written by 'robo-rl train'")
    try:
        with safetensors.safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
            return tensors, json.loads(file.metadata()["numbers"])
    except (safetensors.SafetensorError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: not a checkpoint of robo-rl ({error})") from None


def optimizer_tensors(optimizer: Optimizer) -> dict[str, Tensor]:
    """What an optimiser such as Adam remembers of each parameter, as tensors by name."""
    state = optimizer.state_dict()["state"]
    return {f"optimizer/{i}/{name}": value for i, kept in state.items() for name, value in kept.items()}


def optimizer_from(tensors: Mapping[str, Tensor], optimizer: Optimizer) -> None:
    """Give an optimiser back what ``optimizer_tensors`` took from it; its settings stay as they are."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        if key.startswith("optimizer/"):
            _, index, name = key.split("/")
            state.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
