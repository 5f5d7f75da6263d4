"""LeRobotDataset v3.0: episodes in a folder of Parquet files, with what they mean in JSON beside them.

    meta/info.json                            rate, numbers of episodes and steps, and what each column is ("features")
    meta/stats.json                           of each column: min, max, mean, std, count, quantiles
    meta/tasks.parquet                        what is done, in words
    meta/episodes/chunk-000/file-000.parquet  a row per episode: its length, where it lies, its own statistics
    data/chunk-000/file-000.parquet           a row per control step

After the format's description in LeRobot's documentation, and what its reader expects (release 0.4: columns with one
element are scalars; feature names have no slash). Videos are not written, and are left out when they are read.

Read is v2.1 too, and v2.0: a file ``data/chunk-000/episode_000000.parquet`` per episode, and ``meta/tasks.jsonl``.
"""

from __future__ import annotations

import itertools
import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from robo_rl.adapters.datasets import Budget, Dataset, DatasetError, needed, read_confined, require
from robo_rl.files.text import read_json
from robo_rl.sim.robots.figures import is_number

VERSION = "v3.0"
READ = ("v2.0", "v2.1", "v3.")
"""What versions that can be read begin with."""
CHUNK = 1000
"""Files in a folder at most."""
FILES_MB = {"data_files_size_in_mb": 100, "video_files_size_in_mb": 500}
DATA = "data/chunk-000/file-000.parquet"
EPISODES = "meta/episodes/chunk-000/file-000.parquet"
COUNTED = ("timestamp", "frame_index", "episode_index", "index", "task_index")
"""Columns that every data set has."""
QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
LATE = 1e-4
"""s, of a time stamp from its step, at most, as LeRobot checks."""
MOST = 100_000_000
"""Control steps that are read."""
MOST_FILES, MOST_TEXT = 100_000, 1 << 24
"""Parquet files, and bytes of the list of tasks."""
NUMBERS = {"float32": "f4", "float64": "f8", "int64": "i8", "int32": "i4", "bool": "?"}


def write(folder: Path, data: Dataset) -> None:
    """Write a data set into a new folder; ``meta/info.json`` is written last."""
    pa, parquet = needed("pyarrow"), needed("pyarrow.parquet")
    data.check(str(folder))
    require(data.fps == round(data.fps) and data.fps >= 1, str(folder), "rate", data.fps, "whole steps per second")
    steps, lengths = len(data.episode), data.lengths
    first = np.concatenate([[0], np.cumsum(lengths)])
    frame = np.arange(steps) - first[data.episode]
    counted = {
        "timestamp": (frame / data.fps).astype("f4"), "frame_index": frame, "episode_index": data.episode,
        "index": np.arange(steps), "task_index": np.zeros(steps, "i8"),
    }  # fmt: skip
    columns = {**{name: _squeezed(value) for name, value in data.columns.items()}, **counted}
    features = {
        name: {
            "dtype": str(value.dtype),
            "shape": [1 if value.ndim == 1 else value.shape[1]],
            "names": list(data.names[name]) if name in data.names else None,
        }
        for name, value in columns.items()
    }
    for name in columns:
        require("/" not in name, str(folder), "name of a column", name, "one without '/'")
    (folder / DATA).parent.mkdir(parents=True)
    (folder / EPISODES).parent.mkdir(parents=True)
    table = pa.table({name: _arrow(pa, value) for name, value in columns.items()})
    with parquet.ParquetWriter(folder / DATA, table.schema) as file:  # a row group per episode, as LeRobot has
        for start, length in zip(first, lengths, strict=False):
            file.write_table(table.slice(start, length))
    own = [_statistics({name: v[a:b] for name, v in columns.items()}) for a, b in pairwise(first)]
    count = len(lengths)
    rows: dict[str, Any] = {
        "episode_index": np.arange(count), "tasks": [[data.task]] * count, "length": lengths,
        "data/chunk_index": np.zeros(count, "i8"), "data/file_index": np.zeros(count, "i8"),
        "dataset_from_index": first[:-1], "dataset_to_index": first[1:],
        "meta/episodes/chunk_index": np.zeros(count, "i8"), "meta/episodes/file_index": np.zeros(count, "i8"),
    }  # fmt: skip
    rows |= {f"stats/{name}/{kind}": [stats[name][kind] for stats in own] for name in columns for kind in own[0][name]}
    parquet.write_table(pa.table(rows), folder / EPISODES)
    parquet.write_table(_tasks(pa, data.task), folder / "meta/tasks.parquet")
    (folder / "meta/stats.json").write_text(json.dumps(_statistics(columns), indent=4) + "\n")
    info = {
        "codebase_version": VERSION, "robot_type": data.robot or None, "total_episodes": count, "total_frames": steps,
        "total_tasks": 1, "chunks_size": CHUNK, **FILES_MB, "fps": round(data.fps), "splits": {"train": f"0:{count}"},
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet", "video_path": None,
        "features": features,
    }  # fmt: skip
    (folder / "meta/info.json").write_text(json.dumps(info, indent=4) + "\n")


def read(folder: Path) -> Dataset:
    """The numbers of a data set; DatasetError where it is damaged, or not of this format.

    Another process reads it, with ``MEMORY`` and ``SECONDS`` of ``robo_rl.adapters.datasets``.
    """
    return read_confined(f"{__name__}:trial", folder, "pyarrow.parquet")


def trial(folder: bytes) -> bytes:
    """Read a data set: what a process that is confined does with a stranger's."""
    return _read(Path(os.fsdecode(folder))).to_bytes()


def _read(folder: Path) -> Dataset:
    parquet, budget = needed("pyarrow.parquet"), Budget(str(folder))
    needed("pyarrow").set_memory_pool(needed("pyarrow").system_memory_pool())  # others reserve more than they need
    path = folder / "meta/info.json"
    if not path.is_file() and any(folder.glob("data/*/*.parquet")):
        raise DatasetError(
            f"{folder}: meta/info.json is missing, beside data/*/*.parquet; expected a LeRobotDataset whose recording "
            "was finalized (LeRobot: dataset.finalize())"
        )
    require(path.is_file(), str(folder), "meta/info.json", "missing", f"a LeRobotDataset, v2.1 or {VERSION}")
    try:
        info = read_json(path)
    except ValueError as error:
        raise DatasetError(f"{error}; expected a LeRobotDataset {VERSION}") from None
    version, fps, features = (info.get(name) for name in ("codebase_version", "fps", "features"))
    known = isinstance(version, str) and version.startswith(READ)
    require(known, str(path), "codebase_version", version, f"v2.0, v2.1 or {VERSION}; LeRobot converts older ones")
    require(is_number(fps) and 0 < fps <= 1e6, str(path), "fps", fps, "a positive number")  # type: ignore[operator]
    good = isinstance(features, dict) and all(isinstance(name, str) for name in features)
    require(good, str(path), "features", features, "a table of columns by name")
    files = sorted(itertools.islice(folder.glob("data/*/*.parquet"), MOST_FILES + 1))
    require(len(files) <= MOST_FILES, str(folder), "files in data", len(files), f"at most {MOST_FILES}")
    require(files, str(folder), "data/*/*.parquet", "missing", "at least one file")
    shapes = {name: _shape(path, name, feature) for name, feature in features.items()}  # type: ignore[union-attr]
    numeric = {name: kind for name, kind in shapes.items() if kind is not None}
    parts: list[dict[str, np.ndarray]] = []
    for file in files:
        try:
            require(file.is_file(), str(file), "file", "a folder, pipe or device", "a file")
            opened = parquet.ParquetFile(file)
            require(opened.metadata.num_rows <= MOST, str(file), "rows", opened.metadata.num_rows, f"at most {MOST}")
            there = opened.schema_arrow.names
            table = opened.read([name for name in numeric if name in there], use_threads=False)
            budget.take(str(file), table.nbytes)
        except DatasetError:
            raise
        except Exception as error:  # whatever a Parquet reader finds in a strange file
            raise DatasetError(f"{file}: can't be read as Parquet ({str(error)[:200]})") from None
        parts.append({name: _column(file, table, name, *kind) for name, kind in numeric.items()})
    columns = {name: np.concatenate([part[name] for part in parts]) for name in numeric}
    for name in COUNTED:
        require(name in columns and columns[name].ndim == 1, str(path), "features", sorted(columns), f"one is '{name}'")
    episode, frame, time = (columns[name] for name in ("episode_index", "frame_index", "timestamp"))
    task, robot = _task(folder), info.get("robot_type")
    names = {name: found for name in numeric if (found := _names(features[name], columns[name]))}  # type: ignore[index]
    kept = {name: value for name, value in columns.items() if name not in COUNTED}
    left_out = tuple(name for name, kind in shapes.items() if kind is None)
    robot = robot if isinstance(robot, str) else ""
    data = Dataset(task, robot, float(fps), episode.astype("i8"), kept, names, left_out)  # type: ignore[arg-type]
    data.check(str(folder))
    first = np.concatenate([[0], np.cumsum(data.lengths)])[data.episode]
    expected = np.arange(len(episode)) - first
    if not (frame == expected).all():
        at = int(np.argmax(frame != expected))
        where = f"{folder}: episode {data.episode[at]}"
        require(
            False, where, f"frame_index of its row {expected[at]}", frame[at], f"{expected[at]}: 0, 1, …, none missing"
        )
    off = np.abs(time.astype("f8") - expected / data.fps)
    at = int(off.argmax())
    where = f"{folder}: episode {data.episode[at]}"
    told = f"{off[at]:.3g} s off"
    require(off[at] <= LATE, where, f"timestamp of frame {expected[at]}", told, f"frame_index / fps within {LATE} s")
    for name, count in (("total_frames", len(episode)), ("total_episodes", len(data.lengths))):
        require(info.get(name) == count, str(path), name, info.get(name), f"{count}, as in data/")
    return data


def _squeezed(value: np.ndarray) -> np.ndarray:
    return value[:, 0] if value.ndim == 2 and value.shape[1] == 1 else value


def _arrow(pa: Any, value: np.ndarray) -> Any:
    if value.ndim == 1:
        return pa.array(value)
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(value).reshape(-1)), value.shape[1])


def _tasks(pa: Any, task: str) -> Any:
    """A table whose index, for pandas, are the words."""
    kinds = {"task_index": ("int64", "int64"), "task": ("unicode", "object")}
    about = {
        "index_columns": ["task"],
        "column_indexes": [],
        "columns": [
            {"name": name, "field_name": name, "pandas_type": kind, "numpy_type": numpy, "metadata": None}
            for name, (kind, numpy) in kinds.items()
        ],
        "pandas_version": "2.2.0",
    }
    table = pa.table({"task_index": pa.array([0]), "task": pa.array([task])})
    return table.replace_schema_metadata({"pandas": json.dumps(about)})


def _statistics(columns: dict[str, np.ndarray]) -> dict[str, dict[str, list[float]]]:
    """Of each column, over all rows, a list with a number per element."""
    found = {}
    for name, value in columns.items():
        rows = value.astype("f8").reshape(len(value), -1)
        kinds = {"min": rows.min(0), "max": rows.max(0), "mean": rows.mean(0), "std": rows.std(0)}
        kinds |= {kind: np.quantile(rows, part, axis=0) for kind, part in QUANTILES.items()}
        found[name] = {kind: numbers.tolist() for kind, numbers in kinds.items()} | {"count": [len(rows)]}
    return found


def _shape(path: Path, name: str, feature: Any) -> tuple[str, int] | None:
    """Type and number of elements of a column; None where it holds no numbers, or images."""
    good = (
        isinstance(feature, dict) and isinstance(feature.get("dtype"), str) and isinstance(feature.get("shape"), list)
    )
    require(good, str(path), f"features: {name}", feature, "dtype and shape")
    kind, shape = feature["dtype"], feature["shape"]
    if kind not in NUMBERS or len(shape) > 1:
        return None
    good = all(type(size) is int and 0 < size <= 1_000_000 for size in shape)
    require(good, str(path), f"features: {name}: shape", shape, "positive integers")
    return kind, shape[0] if shape else 1


def _names(feature: Any, column: np.ndarray) -> tuple[str, ...]:
    """Of a column's elements, where there is one for each."""
    names = feature.get("names")
    if isinstance(names, dict) and len(names) == 1:  # {"motors": [...]}, as v2.0 may have them
        (names,) = names.values()
    size = column.shape[1] if column.ndim == 2 else 1
    good = isinstance(names, list) and len(names) == size and all(isinstance(name, str) for name in names)
    return tuple(names) if good else ()


def _column(file: Path, table: Any, name: str, kind: str, size: int) -> np.ndarray:
    """(s,) of one element, else (s, size), in the type that the data set tells."""
    require(name in table.column_names, str(file), f"column '{name}'", "missing", "all that meta/info.json tells of")
    column = table.column(name).combine_chunks()
    require(column.null_count == 0, str(file), f"column '{name}'", "empty in places", "a value in every row")
    rows, types = len(column), needed("pyarrow").types
    lists = types.is_list(column.type) or types.is_large_list(column.type) or types.is_fixed_size_list(column.type)
    if lists or size > 1:
        lengths = sorted(needed("pyarrow.compute").list_value_length(column).unique().to_pylist()) if lists else []
        told = f"{lengths[:5]} numbers in its rows" if lists else column.type
        require(lengths == [size] or not rows, str(file), f"column '{name}'", told, f"{size} in each row")
    if lists:
        column = column.flatten()
        require(column.null_count == 0, str(file), f"column '{name}'", "empty in places", "a value in every row")
    try:
        value = np.asarray(column.to_numpy(zero_copy_only=False))
    except Exception as error:  # of a type that numpy does not have
        raise DatasetError(f"{file}: column '{name[:100]}' can't be read ({str(error)[:200]})") from None
    require(value.dtype.kind in "fiub", str(file), f"column '{name}'", value.dtype, kind)
    told, value = value, _typed(value, kind)
    if value.dtype.kind != "f" and not (same := value == told).all():
        require(False, str(file), f"column '{name}'", told[int(np.argmin(same))], kind)
    return value.reshape(rows, size) if size > 1 else value


def _typed(value: np.ndarray, kind: str) -> np.ndarray:
    """The same numbers in the type that the data set tells, rounded where that is a coarser one."""
    with np.errstate(over="ignore", invalid="ignore"):  # what does not fit is found by who compares, or is not finite
        return value.astype(NUMBERS[kind])


def _task(folder: Path) -> str:
    """What is done: the first task, and how many others there are; "" where it is not told."""
    parquet = needed("pyarrow.parquet")
    file = folder / "meta/tasks.parquet"
    if not file.is_file():
        return _task_of_lines(folder / "meta/tasks.jsonl")
    try:
        opened = parquet.ParquetFile(file)
        words = [name for name in opened.schema_arrow.names if name != "task_index"]
        first = next(opened.iter_batches(1, columns=words[:1], use_threads=False))
        return _and_others(str(first.column(0)[0].as_py()), opened.metadata.num_rows - 1)
    except Exception as error:  # as above
        raise DatasetError(f"{file}: can't be read as a table of tasks ({str(error)[:200]})") from None


def _task_of_lines(file: Path) -> str:
    """The same of v2.1: a line of JSON for each task."""
    if not file.is_file():
        return ""
    try:
        with file.open("rb") as lines:
            first = str(json.loads(lines.readline(1_000_000))["task"])
            others = lines.read(MOST_TEXT).splitlines()
            return _and_others(first, sum(bool(line.strip()) for line in others))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DatasetError(f"{file}: line 1 can't be read as a task ({str(error)[:200]})") from None


def _and_others(first: str, others: int) -> str:
    return first[:10_000] + (f" (and {others} other task{'s' * (others > 1)})" if others else "")
