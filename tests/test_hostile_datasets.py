"""Hostile data sets of LeRobot and robomimic: a sentence each, little memory and time, no hang."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_rl.adapters.datasets import lerobot, robomimic
from tests.planted import Make, device, hole, pipe, written
from tests.test_hostile_files import refuse  # noqa: F401 (a fixture)


def demonstrations(change: Callable[[Any, Path], None]) -> Make:
    """An HDF5 file with one episode, and what ``change`` does to it."""

    def make(folder: Path) -> Path:
        h5py = pytest.importorskip("h5py")
        path = folder / "demo.hdf5"
        with h5py.File(path, "w") as file:
            demo = file.create_group("data/demo_0")
            demo["actions"], demo["obs/state"] = np.zeros((5, 2), "f4"), np.zeros((5, 3), "f4")
            change(file, folder)
        return path

    return make


def replace(name: str, **options: Any) -> Callable[[Any, Path], None]:
    def change(file: Any, folder: Path) -> None:
        del file[f"data/demo_0/{name}"]
        file.create_dataset(f"data/demo_0/{name}", **options)

    return change


def again_and_again(file: Any, folder: Path) -> None:
    """A little data, of which there are ten thousand episodes by name."""
    del file["data/demo_0/actions"]
    options = {"chunks": (10_000, 2), "compression": "gzip"}
    file.create_dataset("data/demo_0/actions", (1_000_000, 2), "f4", **options)
    del file["data/demo_0/obs/state"]
    file.create_dataset("data/demo_0/obs/state", (1_000_000, 2), "f4", **options)
    for name in ("actions", "obs/state"):
        file[f"data/demo_0/{name}"][0] = 1.0  # what is stored nowhere is refused for that
    for k in range(1, 10_000):
        file[f"data/demo_{k}"] = file["data/demo_0"]


def in_a_pipe(file: Any, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    replace("actions", shape=(5, 2), dtype="f4", external=[(str(folder / "pipe"), 0, 40)])(file, folder)


def in_a_device(file: Any, folder: Path) -> None:
    replace("actions", shape=(5, 2), dtype="f4", external=[("/dev/zero", 0, 40)])(file, folder)


def linked(file: Any, folder: Path) -> None:
    import h5py

    os.mkfifo(folder / "other.hdf5")
    del file["data/demo_0/obs/state"]
    file["data/demo_0/obs/state"] = h5py.ExternalLink("other.hdf5", "/x")


def group_linked(file: Any, folder: Path) -> None:
    import h5py

    os.mkfifo(folder / "other.hdf5")
    del file["data"]
    file["data"] = h5py.ExternalLink("other.hdf5", "/data")


def round_and_round(file: Any, folder: Path) -> None:
    import h5py

    del file["data/demo_0/obs"]
    file["data/demo_0/obs"] = h5py.SoftLink("/data/demo_0/obs")


def virtual(file: Any, folder: Path) -> None:
    import h5py

    layout = h5py.VirtualLayout((5, 2), "f4")
    layout[:] = h5py.VirtualSource(str(folder / "secret.hdf5"), "x", (5, 2))
    del file["data/demo_0/actions"]
    file.create_virtual_dataset("data/demo_0/actions", layout)


HDF5: dict[str, Make] = {
    "a terabyte that is not there": demonstrations(
        replace("actions", shape=(1 << 38, 1), dtype="f4", chunks=(1024, 1))
    ),
    "gzip of a gigabyte": demonstrations(
        replace("actions", shape=(1 << 27, 2), dtype="f4", chunks=(1 << 20, 2), compression="gzip")
    ),
    "one chunk of two gigabytes": demonstrations(
        replace("actions", shape=(5, 2), maxshape=(None, 2), dtype="f4", chunks=(1 << 28, 2), compression="gzip")
    ),
    "one episode ten thousand times": demonstrations(again_and_again),
    "numbers in a pipe": demonstrations(in_a_pipe), "numbers in a device": demonstrations(in_a_device),
    "a link to another file": demonstrations(linked), "all in another file": demonstrations(group_linked),
    "a link to itself": demonstrations(round_and_round), "numbers of another file": demonstrations(virtual),
    "wide names": demonstrations(lambda file, _: file["data"].attrs.update({"env_args": "[" * 30_000})),
    "a rate twice": demonstrations(lambda file, _: file["data"].attrs.update(
        {"env_args": '{"env_kwargs": {"control_freq": 20, "control_freq": 50}}'})),
    "nothing that is stored": demonstrations(replace("actions", shape=(5, 2), dtype="f4", chunks=(5, 2))),
    "no action": demonstrations(replace("actions", data=np.zeros((5, 0)))),
    "integers that would be rounded": demonstrations(replace("actions", data=np.full((5, 2), (1 << 24) + 1))),
    "nothing": written("demo.hdf5", b""), "noise": written("demo.hdf5", bytes(range(256)) * 64),
    "a pipe": pipe("demo.hdf5"), "a device": device("demo.hdf5"),
    "a hole": hole("demo.hdf5", b"\x89HDF\r\n\x1a\n"),
}  # fmt: skip


@pytest.mark.parametrize("what", HDF5)
def test_files_of_robomimic(what: str, refuse: Any) -> None:  # noqa: F811
    assert refuse(robomimic.read, HDF5[what])


# --- LeRobotDataset --------------------------------------------------------------------------------------------------

FEATURES = {
    name: {"dtype": kind, "shape": [1]}
    for name, kind in {
        "timestamp": "float32", "frame_index": "int64", "episode_index": "int64", "index": "int64",
        "task_index": "int64", "action": "float32",
    }.items()
}  # fmt: skip
INFO = {"codebase_version": "v3.0", "fps": 10, "features": FEATURES, "total_frames": 5, "total_episodes": 1}


def data_set(change: Callable[[Path], None], info: str | bytes = json.dumps(INFO), **columns: Any) -> Make:
    def make(folder: Path) -> Path:
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        whole = {
            "timestamp": pa.array(np.arange(5, dtype="f4") / 10), "frame_index": pa.array(np.arange(5)),
            "episode_index": pa.array([0] * 5), "index": pa.array(np.arange(5)), "task_index": pa.array([0] * 5),
            "action": pa.array(np.zeros(5, "f4")),
        }  # fmt: skip
        table = pa.table({**whole, **{name: make_column(pa) for name, make_column in columns.items()}})
        path = folder / "data/chunk-000/file-000.parquet"
        path.parent.mkdir(parents=True)
        parquet.write_table(table, path)
        written("meta/info.json", info)(folder)
        change(folder)
        return folder

    return make


def nothing_more(folder: Path) -> None:
    return None


def rows(count: int) -> Callable[[Path], None]:
    """So many rows of zeros, which take some kilobytes."""

    def change(folder: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as parquet

        kinds = {"float32": pa.float32(), "int64": pa.int64()}
        schema = pa.schema([(name, kinds[one["dtype"]]) for name, one in FEATURES.items()])
        part = pa.table([pa.array(np.zeros(1 << 20, "f4" if one.type == kinds["float32"] else "i8")) for one in schema],
                        schema=schema)  # fmt: skip
        with parquet.ParquetWriter(folder / "data/chunk-000/file-000.parquet", schema) as file:
            for _ in range(count >> 20):
                file.write_table(part)

    return change


def put(make: Make) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / "data/chunk-000/file-000.parquet").unlink()
        make(folder)

    return change


def beside(make: Make, *, gone: str = "") -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        if gone:
            (folder / gone).unlink()
        make(folder)

    return change


PARQUET, INFO_FILE = "data/chunk-000/file-000.parquet", "meta/info.json"
DATA_SETS: dict[str, Make] = {
    "thirty million rows of zeros": data_set(rows(30 << 20)),
    "a pipe for numbers": data_set(put(pipe(PARQUET))), "a device for numbers": data_set(put(device(PARQUET))),
    "a hole for numbers": data_set(put(hole(PARQUET, b"PAR1"))),
    "a folder for numbers": data_set(put(written(f"{PARQUET}/x", ""))),
    "a pipe that tells": data_set(beside(pipe(INFO_FILE), gone=INFO_FILE)),
    "a pipe for tasks": data_set(beside(pipe("meta/tasks.parquet"))),
    "a hole for tasks": data_set(beside(hole("meta/tasks.parquet", b"PAR1"))),
    "a hole that tells": data_set(beside(hole(INFO_FILE), gone=INFO_FILE)),
    "deep": data_set(nothing_more, '{"a":' * 5000 + "1" + "}" * 5000),
    "another type": data_set(nothing_more, action=lambda pa: pa.array(["x" * 100] * 5)),
    "lists in lists": data_set(nothing_more, action=lambda pa: pa.array([[[[1.0]]]] * 5)),
}  # fmt: skip


@pytest.mark.parametrize("what", DATA_SETS)
def test_data_sets_of_lerobot(what: str, refuse: Any) -> None:  # noqa: F811
    sentence = refuse(lerobot.read, DATA_SETS[what])
    assert sentence or what == "a pipe for tasks"


def test_columns_that_nobody_declared_are_not_read(refuse: Any) -> None:  # noqa: F811
    """Of 100 texts of a megabyte, each thousands of times: 500 GB from a few kilobytes."""

    def bomb(pa: Any) -> Any:
        return pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, 4], pa.int32()), pa.array(["a" * (40 << 20)] * 5))

    assert refuse(lerobot.read, data_set(nothing_more, bomb=bomb)) == ""
