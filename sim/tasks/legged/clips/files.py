"""Clips as files: columns by name, so that the order of joints and of quaternions is declared.

CSV: a line of names, then a line of numbers for each frame: ``time`` (s), ``x y z`` (m, of the base, world),
``qx qy qz qw`` (its quaternion, to world) and every joint by its name in the robot's card (rad), in any order.

NPZ: ``time`` (T,), or ``fps``; ``position`` (T, 3); ``orientation`` (T, 4) with ``quaternion``, "xyzw" or "wxyz";
``joint_names`` (J,) and ``joint_position`` (T, J).

Frames are resampled to the control period. A stranger's file is parsed by a process of its own, and never unpickled.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robo_rl.files import read_bytes, replacing, sandbox
from robo_rl.sim.tasks.legged.clips import LONGEST, PERIOD, Clip, ClipError, resampled

MOST_BYTES = 1 << 25
MOST_JOINTS = 100
FASTEST, SLOWEST = 1e-3, 0.2
"""s between frames."""
LARGEST = 1e3
"""m and rad."""
BASE = ("time", "x", "y", "z", "qx", "qy", "qz", "qw")
QUATERNIONS = {"xyzw": (0, 1, 2, 3), "wxyz": (1, 2, 3, 0)}
UNIT = 0.05
"""By which quaternions may be off their length of 1."""


def read_clip(path: Path, joints: Sequence[str]) -> Clip:
    """The clip in a file, of a robot with these joints; ClipError says what is wrong."""
    kind = path.suffix.lower()
    if kind not in (".csv", ".npz"):
        raise ClipError(f"{path}: a clip is a file NAME.csv or NAME.npz")
    try:
        found = sandbox.attempt(f"{__name__}:parsed", read_bytes(path, MOST_BYTES), kind.encode())
    except FileNotFoundError:
        raise ClipError(f"{path}: the file does not exist; expected a clip") from None
    except (OSError, ValueError) as error:
        raise ClipError(f"{path}: {error}") from None
    head, _, data = found.partition(b"\n")
    columns = json.loads(head)
    frames = np.frombuffer(data, "<f8").reshape(-1, len(columns))
    try:
        return _clip(path, columns, frames, tuple(joints))
    except ValueError as error:
        raise ClipError(f"{path}: {error}") from None


def write_clip(path: Path, clip: Clip) -> None:
    """Write a clip as NPZ."""
    arrays: dict[str, Any] = {
        "time": PERIOD * np.arange(len(clip)), "position": clip.position, "orientation": clip.orientation,
        "quaternion": np.array("xyzw"), "joint_names": np.array(clip.joints), "joint_position": clip.angles,
    }  # fmt: skip
    with replacing(path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, **arrays)


def _clip(path: Path, columns: list[str], frames: np.ndarray, joints: tuple[str, ...]) -> Clip:
    by_name = {name: frames[:, number] for number, name in enumerate(columns)}
    for name in (*BASE, *joints):
        if name not in by_name:
            what = "joint" if name in joints else "column"
            raise ValueError(f"{what} '{name}' is missing; it has {columns[:40]}")
    if unknown := sorted(set(columns) - {*BASE, *joints}):
        raise ValueError(f"'{unknown[0]}' is no joint of the robot; expected {list(joints)}")
    if not np.isfinite(frames).all() or np.abs(frames).max() > LARGEST:
        row, column = np.argwhere(~(np.abs(frames) <= LARGEST))[0]
        raise ValueError(f"'{columns[column]}' is {frames[row, column]} in frame {row}; expected at most {LARGEST:g}")
    times = by_name["time"] - by_name["time"][0]
    steps = np.diff(times)
    if len(times) < 4 or steps.min() < FASTEST or steps.max() > SLOWEST:
        between = f", {steps.min():.4g} to {steps.max():.4g} s apart" if len(steps) else ""
        raise ValueError(
            f"it has {len(times)} frames{between}; expected 4 or more, {FASTEST} to {SLOWEST} s apart, in order"
        )
    if times[-1] > PERIOD * (LONGEST - 1):
        raise ValueError(f"it lasts {times[-1]:.1f} s; expected at most {PERIOD * (LONGEST - 1):.0f} s")
    position, orientation = (np.stack([by_name[name] for name in part], -1) for part in (BASE[1:4], BASE[4:]))
    lengths = np.linalg.norm(orientation, axis=1)
    if np.abs(lengths - 1.0).max() > UNIT:
        frame = int(np.abs(lengths - 1.0).argmax())
        raise ValueError(f"the quaternion of frame {frame} has the length {lengths[frame]:.3f}; expected 1")
    angles = np.stack([by_name[name] for name in joints], -1)
    return Clip(path.stem, joints, *resampled(times, position, orientation, angles), f"file: {path.name}")


def parsed(data: bytes, kind: bytes) -> bytes:
    """Names of columns as JSON, a line feed, and the frames as little-endian float64; ValueError says what is wrong."""
    columns, frames = _of_csv(data) if kind == b".csv" else _of_npz(data)
    if len(set(columns)) != len(columns) or len(columns) > len(BASE) + MOST_JOINTS:
        raise ValueError(f"its columns are {columns[:40]}; expected names that differ, at most {MOST_JOINTS} joints")
    return json.dumps(columns).encode() + b"\n" + frames.astype("<f8").tobytes()


def _of_csv(data: bytes) -> tuple[list[str], np.ndarray]:
    rows = csv.reader(io.StringIO(data.decode("utf-8-sig")))
    columns = [name.strip() for name in next(rows, [])]
    frames = []
    for number, row in enumerate(rows, 2):
        if not row:
            continue
        if len(row) != len(columns):
            raise ValueError(f"line {number} has {len(row)} numbers; expected {len(columns)}, one for each name")
        try:
            frames.append([float(cell) for cell in row])
        except ValueError:
            raise ValueError(f"line {number} is {str(row)[:100]}; expected numbers") from None
    if not frames:
        raise ValueError(f"it has no frames; expected a line of names {[*BASE, 'JOINT …']} and lines of numbers")
    return columns, np.array(frames)


def _of_npz(data: bytes) -> tuple[list[str], np.ndarray]:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as packed:
            arrays = {name: packed[name] for name in packed.files}
    except (OSError, EOFError, KeyError) as error:
        raise ValueError(f"it can't be read as NPZ ({error})") from None
    lacking = {"position", "orientation", "quaternion", "joint_names", "joint_position"} - set(arrays)
    if lacking or not {"time", "fps"} & set(arrays):
        raise ValueError(f"it has the arrays {sorted(arrays)}; {sorted(lacking) or ['time or fps']} is missing")
    order = str(arrays["quaternion"].reshape(-1)[0])
    if order not in QUATERNIONS:
        raise ValueError(f"quaternion is {order[:40]!r}; expected one of {list(QUATERNIONS)}")
    names = [str(name) for name in arrays["joint_names"].reshape(-1)]
    count = len(arrays["position"]) if arrays["position"].ndim else 0
    shapes = {"position": (count, 3), "orientation": (count, 4), "joint_position": (count, len(names))}
    for name, shape in shapes.items():
        if arrays[name].shape != shape or arrays[name].dtype.kind not in "fiu":
            raise ValueError(f"{name} is {arrays[name].dtype} {arrays[name].shape}; expected numbers {shape}")
    times = arrays["time"] if "time" in arrays else np.arange(count) / float(arrays["fps"].reshape(-1)[0])
    if times.shape != (count,) or times.dtype.kind not in "fiu":
        raise ValueError(f"time is {times.dtype} {times.shape}; expected numbers {(count,)}")
    orientation = arrays["orientation"][:, QUATERNIONS[order]]
    packed = np.concatenate([times[:, None], arrays["position"], orientation, arrays["joint_position"]], 1)
    return [*BASE, *names], packed.astype(np.float64)
