"""Data sets of episodes in formats of others: LeRobotDataset v3; v2.1, and robomimic's HDF5, can be read."""

from __future__ import annotations

import importlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from robo_rl.files import sandbox as confined


class DatasetError(ValueError):
    """A data set can't be read, or can't be made. The message says why."""


@dataclass(frozen=True)
class Dataset:
    """Episodes, one after the other: s control steps, of e episodes."""

    task: str
    """What is done, in words."""
    robot: str
    """Its name; "" where it is not known."""
    fps: float
    """Control steps per second."""
    episode: np.ndarray
    """(s,) int64, the number of each step's episode: 0 for the first ones, then 1, …"""
    columns: dict[str, np.ndarray]
    """(s, k) float32, or (s,) float32, int64 or bool, by name."""
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of the k elements of some columns."""
    left_out: tuple[str, ...] = ()
    """Columns of a file that are not numbers, or are images."""

    @property
    def lengths(self) -> np.ndarray:
        """(e,) control steps."""
        return np.bincount(self.episode) if len(self.episode) else np.zeros(0, np.int64)

    def check(self, where: str) -> None:
        """DatasetError, about a place ``where``, unless episodes follow each other and all numbers are finite."""
        steps = np.diff(self.episode, prepend=-1)
        if len(steps) == 0 or not bool(np.isin(steps[1:], (0, 1)).all()) or steps[0] != 1:
            raise DatasetError(f"{where}: expected episodes one after the other, 0, 1, …, and at least one step")
        for name, value in self.columns.items():
            if len(value) != len(steps):
                raise DatasetError(f"{where}: '{name[:100]}' has {len(value)} rows; expected {len(steps)}")
            if value.dtype.kind == "f" and not bool(np.isfinite(value).all()):
                row = int(np.argmin(np.isfinite(value).reshape(len(value), -1).all(1)))
                episode = int(self.episode[row])
                raise DatasetError(
                    f"{where}: '{name[:100]}' has numbers that are not finite, first in episode {episode}, control "
                    f"step {row - int(np.argmax(self.episode == episode))}"
                )

    def to_bytes(self) -> bytes:
        """For another process, which reads them with ``from_bytes``: JSON, its length before it, and safetensors."""
        about = {
            "task": self.task, "robot": self.robot, "fps": self.fps, "names": self.names, "left_out": self.left_out,
            "order": list(self.columns),
        }  # fmt: skip
        text = json.dumps(about).encode()
        arrays = {"episode": self.episode, **{f"column/{name}": value for name, value in self.columns.items()}}
        solid = {name: np.ascontiguousarray(value) for name, value in arrays.items()}
        return len(text).to_bytes(8, "little") + text + safetensors.numpy.save(solid)

    @staticmethod
    def from_bytes(data: bytes) -> Dataset:
        """What ``to_bytes`` gave."""
        end = 8 + int.from_bytes(data[:8], "little")
        about, arrays = json.loads(data[8:end]), safetensors.numpy.load(data[end:])
        names = {name: tuple(elements) for name, elements in about["names"].items()}
        columns = {name: arrays[f"column/{name}"] for name in about["order"]}
        return Dataset(
            about["task"], about["robot"], about["fps"], arrays["episode"], columns, names, tuple(about["left_out"])
        )


MOST_BYTES = 1 << 27
"""Of numbers that are read from one data set, after they are unpacked."""
MEMORY, SECONDS = 800 << 20, 8.0
"""Bytes, and s of processor time, that the process has which reads them."""


def read_confined(function: str, path: Path, module: str) -> Dataset:
    """A stranger's data set, as ``function`` ("module:name") reads it from a path in a process that is confined.

    ``module`` is the package that it reads it with.
    """
    needed(module)  # before the process has little memory
    try:
        data = confined.attempt(function, os.fsencode(path), memory=MEMORY, seconds=SECONDS, most=4 * MOST_BYTES)
    except confined.Refused as error:
        said = str(error)
        raise DatasetError(said if str(path) in said else f"{path}: it can't be read: {said}") from None
    return Dataset.from_bytes(data)


class Budget:
    """Of bytes that a data set may have."""

    def __init__(self, where: str) -> None:
        self.where, self.left = where, MOST_BYTES

    def take(self, name: str, size: int) -> None:
        """DatasetError where there is no more."""
        self.left -= size
        require(self.left >= 0, self.where, name, f"{size} bytes", f"at most {MOST_BYTES >> 20} MiB of numbers in all")


def needed(module: str) -> Any:
    """A package that reads and writes data sets; DatasetError where it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise DatasetError(
            f"data sets need the package '{module.split('.')[0]}': pip install 'robo-rl[data]'"
        ) from None


def require(good: object, where: str, name: str, value: object, expected: str) -> None:
    """DatasetError unless ``good``."""
    if not good:
        raise DatasetError(f"{where}: {name[:100]} is {str(value)[:100]!r}; expected {expected}")
