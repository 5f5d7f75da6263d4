"""Data sets of episodes in formats of others: LeRobotDataset v3; v2.1, and robomimic's HDF5, can be read."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np


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
