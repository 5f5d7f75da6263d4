"""robomimic's HDF5 files of demonstrations, as they are documented for release 0.4: read, never written.

data/demo_K/actions   (s, a)
data/demo_K/obs/NAME  (s, …)  what was observed before each action; images have three dimensions
data/demo_K/rewards, dones  (s,)
data   attribute env_args: JSON, with the environment's name and its control_freq (Hz)
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from robo_rl.adapters.datasets import MOST_BYTES, Budget, Dataset, DatasetError, needed, read_confined, require
from robo_rl.files import sandbox as confined
from robo_rl.files.escaping import printable
from robo_rl.files.text import loads_json

EXACT = 1 << 24
"""The integers up to this one are float32 numbers."""
RATE = 20.0
"""Hz, robosuite's rate, where a file does not tell one."""


def read(path: Path) -> Dataset:
    """The numbers in a file; columns are those of LeRobot, ``observation.state`` all that is observed but images.

    Another process reads it, with ``MEMORY`` and ``SECONDS`` of ``robo_rl.adapters.datasets``.
    """
    require(path.is_file(), str(path), "file", "missing", "an HDF5 file of robomimic")
    return read_confined(f"{__name__}:trial", path, "h5py")


def trial(path: bytes) -> bytes:
    """Read a file: what a process that is confined does with a stranger's. It opens no other files."""
    return _opened(Path(os.fsdecode(path))).to_bytes()


def _opened(path: Path) -> Dataset:
    h5py = needed("h5py")
    try:
        with h5py.File(path, "r") as file:
            confined.follow_no_files()
            return _read(path, h5py, file)
    except DatasetError:
        raise
    except Exception as error:  # whatever an HDF5 reader finds in a strange file
        raise DatasetError(f"{path}: can't be read as HDF5 ({printable(str(error))[:200]})") from None


def _read(path: Path, h5py: Any, file: Any) -> Dataset:
    where, budget = str(path), Budget(str(path))
    group = _inside(h5py, where, file, "data")
    if "traj_0" in file:
        raise DatasetError(
            f"{path}: holds traj_0, …, as ManiSkill's files; expected robomimic's data/demo_0, data/demo_1, …"
        )
    require(isinstance(group, h5py.Group), where, "data", _kind(group), "a group of demonstrations, data/demo_0, …")
    names = sorted((name for name in group if re.fullmatch("demo_[0-9]{1,9}", name)), key=lambda name: int(name[5:]))
    require(names, where, "data", sorted(group)[:5], "demo_0, demo_1, …")
    about = _about(where, group)
    episodes: list[dict[str, np.ndarray]] = []
    observed: list[str] | None = None
    left_out: set[str] = set()
    for name in names:
        place = f"{path}: {name}"
        demo = _inside(h5py, place, group, name)
        require(isinstance(demo, h5py.Group), place, name, type(demo).__name__, "a group")
        actions = _array(h5py, place, demo, "actions", budget)
        at_least = "numbers (steps, actions), at least one of each"
        require(actions.ndim == 2 and actions.size, place, "actions", actions.shape, at_least)
        steps, seen = len(actions), _inside(h5py, place, demo, "obs")
        if seen is None and "states" in demo:
            raise DatasetError(
                f"{place}: has states, as robosuite records them, but no obs; expected observations, which robomimic's "
                "dataset_states_to_obs.py makes of them"
            )
        require(isinstance(seen, h5py.Group) and len(seen), place, "obs", _kind(seen), "a group of data sets")
        parts = {}
        for key in sorted(seen):
            entry = _inside(h5py, place, seen, key)
            if not isinstance(entry, h5py.Dataset) or entry.ndim not in (1, 2) or entry.dtype.kind not in "fiub":
                left_out.add(key)
                continue
            value = _array(h5py, place, seen, key, budget)
            require(len(value) == steps, place, f"obs/{key}", value.shape, f"{steps} rows, as actions")
            parts[key] = value.reshape(steps, -1)
        columns = {f"obs/{key}": value for key, value in parts.items()} | {"actions": actions}
        for key in ("rewards", "dones"):
            value = _array(h5py, place, demo, key, budget) if key in demo else np.zeros(steps)
            require(value.shape == (steps,), place, key, value.shape, f"({steps},)")
            columns[key] = value
        ends = columns["dones"]
        require(np.isin(ends, (0, 1)).all(), place, "dones", ends, "0 or 1")
        widths = [f"{key}: {value.shape[1:]}" for key, value in columns.items()]
        require(observed in (None, widths), place, "obs and actions", widths, f"those of {names[0]}")
        observed = widths
        episodes.append(columns)
    joined = {key: np.concatenate([episode[key] for episode in episodes]) for key in episodes[0]}
    keys = [key for key in joined if key.startswith("obs/")]
    require(keys, where, "obs", sorted(left_out), "at least one data set of numbers that is no image")
    state = np.concatenate([joined[key] for key in keys], 1).astype("f4")
    elements = tuple(f"{printable(key[4:])}.{i}" for key in keys for i in range(joined[key].shape[1]))
    data = Dataset(
        task=about[0],
        robot=about[1],
        fps=about[2],
        episode=np.repeat(np.arange(len(episodes)), [len(episode["actions"]) for episode in episodes]),
        columns={
            "observation.state": state,
            "action": joined["actions"].astype("f4"),
            "next.reward": joined["rewards"].astype("f4"),
            "next.done": joined["dones"] != 0,
        },
        names={
            "observation.state": elements,
            "action": tuple(f"action.{i}" for i in range(joined["actions"].shape[1])),
        },
        left_out=tuple(sorted(printable(key) for key in left_out)),
    )
    data.check(where)
    return data


def _inside(h5py: Any, where: str, group: Any, key: str) -> Any:
    """A group or data set of this very file; None where there is none."""
    link = group.get(key, getlink=True) if key in group.keys() else None  # noqa: SIM118 ('in' follows links)
    good = link is None or isinstance(link, h5py.HardLink)
    require(good, where, key, type(link).__name__, "what is in the file itself, under its own name")
    return None if link is None else group[key]


def _array(h5py: Any, where: str, group: Any, key: str, budget: Budget) -> np.ndarray:
    entry = _inside(h5py, where, group, key)
    good = isinstance(entry, h5py.Dataset) and entry.dtype.kind in "fiub"
    require(good, where, key, _kind(entry), "a data set of numbers")
    require(entry.external is None and not entry.is_virtual, where, key, "kept in other files", "numbers in this file")
    budget.take(f"{key} {entry.shape}", entry.size * max(8, entry.dtype.itemsize))
    if entry.chunks is not None:
        most = math.prod(entry.chunks) * entry.dtype.itemsize
        require(most <= MOST_BYTES, where, f"{key}: chunks", entry.chunks, f"at most {MOST_BYTES} bytes each")
    stored = entry.size == 0 or entry.id.get_storage_size() > 0
    require(stored, where, key, "declared alone", "numbers: nothing is stored, so that they would read as zeros")
    found = np.asarray(entry[()])
    exact = (
        found.dtype.kind not in "iu" or found.size == 0 or max(abs(int(found.min())), abs(int(found.max()))) <= EXACT
    )
    require(exact, where, key, "integers that float32 rounds", f"integers of at most {EXACT}, or floats")
    return found


def _kind(entry: Any) -> str:
    return "missing" if entry is None else type(entry).__name__


def _about(where: str, group: Any) -> tuple[str, str, float]:
    """Name of the environment, of the robot, and the rate (Hz)."""
    text = group.attrs.get("env_args", "{}")
    try:
        told = loads_json(text)
    except (ValueError, TypeError):
        told = None
    require(isinstance(told, dict), where, "data: env_args", text, "a JSON object")
    chosen = told.get("env_kwargs")
    chosen = chosen if isinstance(chosen, dict) else {}
    rate, robots, name = chosen.get("control_freq", RATE), chosen.get("robots", ""), told.get("env_name", "")
    good = isinstance(rate, int | float) and not isinstance(rate, bool) and 1 <= rate <= 10_000
    require(good, where, "data: env_args: control_freq", rate, "1 to 10000 Hz")
    robot = robots[0] if isinstance(robots, list) and robots else robots
    words = [printable(x)[:200] if isinstance(x, str) else "" for x in (name, robot)]
    return words[0], words[1], float(rate)
