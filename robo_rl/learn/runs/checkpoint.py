"""Checkpoints: tensors and numbers in one safetensors file with a digest, replaced atomically, never pickled."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor
from torch.optim import Optimizer

from robo_rl.files import require_file, write

MOST_BYTES = 3 << 27
MOST_COUNTED = 1 << 53
"""Of steps and updates."""


class CheckpointError(ValueError):
    """A checkpoint can't be read. The message names the file."""


def save(path: Path, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
    """Write ``tensors``, and ``numbers`` as JSON in the file's header, with the SHA-256 of both.

    The file is complete and on disk before it takes its name: whoever reads it finds the old one or the new one,
    also after a crash or a kill in between, or when the disk is full.
    """
    write(path, packed(tensors, numbers))


def packed(tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> bytes:
    """What ``save`` writes."""
    solid = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    text = json.dumps(numbers)
    return safetensors.torch.save(solid, metadata={"numbers": text, "sha256": digest(solid, text)})


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and numbers of a checkpoint. CheckpointError if one bit is another than was written."""
    if not path.is_file():
        raise CheckpointError(f"{path}: the file does not exist; expected a checkpoint written by 'robo-rl train'")
    try:
        require_file(path, MOST_BYTES)
        with safetensors.safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
            metadata = file.metadata()
        text = metadata["numbers"]
        numbers = json.loads(text)
        if not isinstance(numbers, dict) or not metadata.keys() <= {"numbers", "sha256"}:
            raise ValueError("its header has other entries")
    except (safetensors.SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: not a checkpoint of robo-rl ({error})") from None
    if "sha256" not in metadata:
        warnings.warn(f"{path} is of an earlier release, without a digest: damage is not noticed", stacklevel=2)
    elif metadata["sha256"] != digest(tensors, text):
        raise CheckpointError(
            f"{path}: damaged, or changed after it was written: its tensors and numbers have another SHA-256 than its "
            "header says; take a copy of it, or train again"
        )
    return tensors, numbers


def require_finite(path: Path, tensors: Mapping[str, Tensor], consequence: str) -> None:
    """CheckpointError, about a file at ``path``, if a number is not finite; it says what comes of it."""
    for name, tensor in tensors.items():
        if not bool(tensor.isfinite().all()):
            raise CheckpointError(f"{path}: {name} has numbers that are not finite; {consequence}")


def require_count(path: Path, numbers: Mapping[str, Any], name: str, most: int = MOST_COUNTED) -> int:
    """One of the numbers of a checkpoint at ``path``; CheckpointError unless it is an integer from 0 to ``most``."""
    value = numbers.get(name)
    if type(value) is not int or not 0 <= value <= most:
        raise CheckpointError(f"{path}: {name} is {str(value)[:80]!r}; expected an integer from 0 to {most}")
    return value


def require_shapes(path: Path, found: Mapping[str, Tensor], model: Mapping[str, Tensor], where: Path) -> None:
    """CheckpointError, about a file at ``path``, unless it has all tensors of the model that ``where`` tells of: torch
    stretches those that are smaller.
    """
    for name, value in model.items():
        told = tuple(found[name].shape) if name in found else "missing"
        if told != tuple(value.shape):
            raise CheckpointError(f"{path} does not fit {where} ({name} is {told}; expected {tuple(value.shape)})")


def digest(tensors: Mapping[str, Tensor], text: str) -> str:
    """SHA-256 of names, types, shapes and bytes of tensors, and of a text, as hexadecimal digits."""
    found = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        found.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    found.update(text.encode())
    return found.hexdigest()


def part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Those tensors whose names begin with ``prefix``, by the rest of their names."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


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
