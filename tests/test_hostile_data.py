"""Hostile data sets, robot files, sweeps, runs, maps and tensors: a sentence each, little memory and time, no hang."""

from __future__ import annotations

import json
import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_rl.adapters.datasets import lerobot, robomimic
from robo_rl.adapters.foreign.adopting import find
from robo_rl.deploy.robot.bundle.signing import read_trusted, sign
from robo_rl.deploy.robot.drivers.bus_servos import calibration, robot_file
from robo_rl.deploy.robot.drivers.vesc.robot_file import read_robot_file as read_car_file
from robo_rl.deploy.robot.logs.reader import read_log
from robo_rl.learn.runs import checkpoint
from robo_rl.learn.runs.folder import Run
from robo_rl.report.general import read_transfer
from robo_rl.sim.env import VecEnv
from robo_rl.sim.env_state import EnvState
from robo_rl.sim.models import read_model
from robo_rl.sim.scenes.tracks.courses import read_course
from robo_rl.sim.tasks.legged.clips.files import read_clip
from robo_rl.sim.tasks.loading import load_task
from robo_rl.sweeps import sweep
from tests.test_hostile_files import RUN, refuse  # noqa: F401 (a fixture)

Make = Callable[[Path], Path]
GIGABYTES = 1 << 37


def written(name: str, data: str | bytes) -> Make:
    def make(folder: Path) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    return make


def pipe(name: str) -> Make:
    def make(folder: Path) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(path)
        return path

    return make


def hole(name: str, head: bytes = b"") -> Make:
    """A file of 128 GB, of which the beginning is on the disk."""

    def make(folder: Path) -> Path:
        path = written(name, head)(folder)
        with path.open("ab") as file:
            file.truncate(GIGABYTES)
        return path

    return make


def device(name: str) -> Make:
    def make(folder: Path) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to("/dev/zero")
        return path

    return make


# --- robomimic ------------------------------------------------------------------------------------------------


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
    "nothing": written("demo.hdf5", b""), "noise": written("demo.hdf5", bytes(range(256)) * 64),
    "a pipe": pipe("demo.hdf5"), "a device": device("demo.hdf5"),
    "a hole": hole("demo.hdf5", b"\x89HDF\r\n\x1a\n"),
}  # fmt: skip


@pytest.mark.parametrize("what", HDF5)
def test_files_of_robomimic(what: str, refuse: Any) -> None:  # noqa: F811
    assert refuse(robomimic.read, HDF5[what])


# --- LeRobotDataset -------------------------------------------------------------------------------------------

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


# --- files of drivers -----------------------------------------------------------------------------------------

TOML = {
    "lists in lists": "a = " + "[" * 30_000, "deep keys": ".".join(["a"] * 30_000) + " = 1",
    "keys again and again": "\n".join(f"{'.'.join(['a'] * k)}.b{k} = 1" for k in range(1, 300)),
    "a number of 60,000 digits": "a = " + "9" * 60_000, "noise": bytes(range(256)), "a date": "a = 1979-05-27",
    "larger than it may be": "a = 1\n" * 20_000,
}  # fmt: skip
DRIVER_FILES: dict[str, Make] = {
    **{what: written("robot.toml", text) for what, text in TOML.items()}, "a pipe": pipe("robot.toml"),
    "a device": device("robot.toml"), "a hole": hole("robot.toml", b"a = 1\n"),
}  # fmt: skip


@pytest.mark.parametrize("what", DRIVER_FILES)
@pytest.mark.parametrize("kind", ["car", "arm", "calibration"])
def test_robot_files_of_drivers(kind: str, what: str, refuse: Any) -> None:  # noqa: F811
    read = {
        "car": lambda path: read_car_file(str(path)),
        "arm": lambda path: robot_file.read_robot_file(str(path), ["a", "b"]),
        "calibration": lambda path: calibration.read_calibration(path, calibration.FEETECH_OFFSET),
    }[kind]
    assert refuse(read, DRIVER_FILES[what])


# --- sweeps and runs ------------------------------------------------------------------------------------------

JOB = {"name": "a", "task": "quadrotor-hover", "robot": None, "seed": 0, "options": {}, "files_digest": ""}


def jobs(**changed: Any) -> Make:
    return written("sweep.json", json.dumps({"jobs": [{**JOB, **changed}]}))


SWEEPS: dict[str, Make] = {
    "a name elsewhere": jobs(name="../../ESCAPED"), "a name upwards": jobs(name=".."),
    "a name of nothing": jobs(name=""),
    "a name that is a number": jobs(name=7), "an absolute name": jobs(name="/tmp/ESCAPED"),
    "other runs": jobs(options={"runs": ["/tmp/ESCAPED"]}), "another name": jobs(options={"name": ["ESCAPED"]}),
    "an option in a word": jobs(options={"episodes": ["5", "--runs", "/tmp/ESCAPED"]}),
    "an option in a word with =": jobs(options={"episodes": ["--runs=/tmp/ESCAPED"]}),
    "an option in a name": jobs(options={"episodes --runs": ["/tmp/ESCAPED"]}),
    "an option in =": jobs(options={"runs=/tmp/ESCAPED": []}), "a robot in options": jobs(options={"robot": ["x"]}),
    "a task that is an option": jobs(task="--runs=/tmp/ESCAPED"), "a task that is a list": jobs(task=["a"]),
    "a robot that is an option": jobs(robot="--help"), "a robot that is a number": jobs(robot=5),
    "an origin elsewhere": jobs(origin="../../ESCAPED"), "an absolute origin": jobs(origin="/etc/passwd"),
    "a seed of text": jobs(seed="--help"), "options that are text": jobs(options="--help"),
    "words that are numbers": jobs(options={"episodes": [5]}), "unknown fields": jobs(evil=1),
    "deep": written("sweep.json", '{"jobs":' + "[" * 200_000), "a list": written("sweep.json", "[]"),
    "millions of lists": written("sweep.json", '{"jobs": [' + "[]," * 12_000_000 + "[]]}"),
    "a pipe": pipe("sweep.json"), "a hole": hole("sweep.json"), "a device": device("sweep.json"),
}  # fmt: skip


@pytest.mark.parametrize("what", SWEEPS)
def test_sweeps(what: str, refuse: Any) -> None:  # noqa: F811
    assert refuse(lambda path: sweep.read(path.parent), SWEEPS[what])


def test_a_job_of_ours_is_read(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    job = sweep.Job("a-1", "quadrotor-hover", None, 3, {"episodes": ["5"], "apg.learning-rate": ["1e-3"]}, "0f", "g1/b")
    sweep.create(tmp_path / "s", [job])
    assert sweep.read(tmp_path / "s") == [job]


def ranges(**bounds: Any) -> Make:
    return written("run.json", json.dumps({**RUN, "ranges": {name.replace("_", "/"): b for name, b in bounds.items()}}))


RANGES: dict[str, Make] = {
    "a range that is not the task's": ranges(evil=[0, 1]), "hours of latency": ranges(delay=[0, 10_000]),
    "1e30": ranges(mass=[0, 1e30]),
    "endless": written("run.json", json.dumps({**RUN, "ranges": {"mass": [0, 1e999]}})),
    "the wrong way round": ranges(mass=[2, 1]), "text": ranges(mass=["0", "1"]),
    "minutes of latency": ranges(delay=[0, 100]),
    "metrics that are a pipe": ranges(), "deep": written("run.json", '{"ranges":' * 3000), "a pipe": pipe("run.json"),
    "a hole": hole("run.json"),
}  # fmt: skip


@pytest.mark.parametrize("what", RANGES)
def test_ranges_of_runs(what: str, refuse: Any) -> None:  # noqa: F811
    def read(path: Path) -> None:
        run = Run.open(path.parent)
        VecEnv(run.task(), 64)
        os.mkfifo(path.parent / "metrics.jsonl")
        try:
            run.metrics()
        finally:
            (path.parent / "metrics.jsonl").unlink()
        raise ValueError("file: it was taken")  # only of the last a part is what it should be

    sentence = refuse(read, RANGES[what])
    assert sentence
    assert "it was taken" not in sentence or what == "metrics that are a pipe"


# --- pictures and meshes of models ----------------------------------------------------------------------------


def zeros(width: int, height: int) -> bytes:
    """A PNG file of so many black pixels."""

    def part(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    packer, row = zlib.compressobj(1), bytes(1 + 3 * width)
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", data) + part(b"IEND", b"")


def model(asset: str, make: Make, body: str = '<geom size="1"/>') -> Make:
    def both(folder: Path) -> Path:
        make(folder)
        text = f"<mujoco><asset>{asset}</asset><worldbody><body>{body}</body></worldbody></mujoco>"
        return written("model.xml", text)(folder)

    return both


TEXTURE = '<texture name="a" type="2d" file="a.png"/>'
MESH, MESHED = '<mesh name="a" file="{}"/>', '<geom type="mesh" mesh="a"/>'
ASSETS: dict[str, Make] = {
    "half a gigabyte of black pixels": model(TEXTURE, lambda folder: written("a.png", zeros(14_000, 14_000))(folder)),
    "a pipe for a picture": model(TEXTURE, pipe("a.png")), "a pipe for a mesh": model(
        MESH.format("a.stl"), pipe("a.stl"), MESHED
    ), "four billion triangles": model(MESH.format("a.stl"), written("a.stl", bytes(80) + b"\xff" * 4), MESHED),
    "a device": model(MESH.format("/dev/zero"), written("a.stl", ""), MESHED),
}  # fmt: skip


@pytest.mark.parametrize("what", ASSETS)
def test_pictures_and_meshes_of_models(what: str, refuse: Any) -> None:  # noqa: F811
    def read(path: Path) -> None:
        read_model(path, seen=True).compile()

    said = refuse(read, ASSETS[what])
    assert said or what == "a pipe for a picture"  # pictures that are no files are left out


# --- maps -----------------------------------------------------------------------------------------------------

YAML = "image: map.png\nresolution: 0.05\norigin: [0, 0, 0]\nnegate: 0\noccupied_thresh: 0.65\nfree_thresh: 0.25\n"


def cells(shape: tuple[int, int], fill: Callable[[np.ndarray], None], mode: str = "L") -> Make:
    def make(folder: Path) -> Path:
        from PIL import Image

        grey = np.zeros(shape, np.uint8)
        fill(grey)
        Image.fromarray(grey).convert(mode).save(folder / "map.png", compress_level=1)
        return written("map.yaml", YAML)(folder)

    return make


def free(grey: np.ndarray) -> None:
    grey[:] = 254


def noise(grey: np.ndarray) -> None:
    grey[:] = 254 * np.random.default_rng(0).integers(2, size=grey.shape, dtype=np.uint8)


def rings(grey: np.ndarray) -> None:
    """Many lanes round many islands."""
    middle = np.array(grey.shape) // 2
    for k in range(20, min(middle), 20):
        grey[middle[0] - k : middle[0] + k, middle[1] - k : middle[1] + k] = 254 * (k // 20 % 2)


def image(make: Make) -> Make:
    def both(folder: Path) -> Path:
        make(folder)
        return written("map.yaml", YAML)(folder)

    return both


MAPS: dict[str, Make] = {
    "all free": cells((4096, 4096), free), "noise": cells((4096, 4096), noise),
    "all free, in colours": cells((4096, 4096), free, "RGBA"), "rings": cells((4096, 4096), rings),
    "more cells than there may be": cells((4096, 4097), free), "one line": cells((1, 1 << 20), free),
    "a pipe for cells": image(pipe("map.png")), "a device for cells": image(device("map.png")),
    "a hole for cells": image(hole("map.png", b"\x89PNG\r\n\x1a\n")),
    "noise for cells": image(written("map.png", b"\x89PNG" * 99)),
    "a pipe": pipe("map.yaml"), "a hole": hole("map.yaml", YAML.encode()),
    "lists in lists": written("map.yaml", "[" * 8000),
    "deep tables": written("map.yaml", "".join(f"{' ' * k}a:\n" for k in range(150))),
    "a tag of Python": written("map.yaml", "!!python/object/apply:os.system ['touch ESCAPED']"),
    "a centre line that is a pipe": pipe("line.csv"), "a centre line that is a hole": hole("line.csv"),
}  # fmt: skip


@pytest.mark.parametrize("what", MAPS)
def test_maps(what: str, refuse: Any) -> None:  # noqa: F811
    sentence = refuse(read_course, MAPS[what])
    assert sentence or what == "rings"


# --- tensors, logs, keys, results -----------------------------------------------------------------------------

HEADER = json.dumps({"x": {"dtype": "F32", "shape": [1 << 34], "data_offsets": [0, 1 << 36]}}).encode()
TENSORS: dict[str, Make] = {
    "64 GB of zeros": hole("x.safetensors", len(HEADER).to_bytes(8, "little") + HEADER),
    "a header of exabytes": written("x.safetensors", b"\xff" * 8 + b"{}"), "deep": written(
        "x.safetensors", (200_000).to_bytes(8, "little") + b"[" * 200_000
    ), "a pipe": pipe("x.safetensors"), "a device": device("x.safetensors"), "nothing": written("x.safetensors", b""),
}  # fmt: skip


@pytest.mark.parametrize("what", TENSORS)
@pytest.mark.parametrize("kind", ["checkpoint", "states"])
def test_tensors(kind: str, what: str, refuse: Any) -> None:  # noqa: F811
    assert refuse(checkpoint.load if kind == "checkpoint" else EnvState.load, TENSORS[what])


@pytest.mark.parametrize("make", [pipe("x.mcap"), device("x.mcap"), hole("x.mcap", b"\x89MCAP0\r\n")])
def test_logs(make: Make, refuse: Any) -> None:  # noqa: F811
    assert refuse(read_log, make)


@pytest.mark.parametrize(
    "make", [pipe("keys"), device("keys"), hole("keys", b"# keys\n"), written("keys", b"\xff" * 9999)]
)
def test_keys(make: Make, refuse: Any) -> None:  # noqa: F811
    pytest.importorskip("cryptography")
    assert refuse(read_trusted, make)
    assert refuse(lambda path: sign(path, path), lambda folder: next(folder.iterdir()))


@pytest.mark.parametrize("make", [pipe("t"), device("t"), hole("t"), written("t", "[" * 100_000), written("t", "")])
def test_results_of_transfer(make: Make, refuse: Any) -> None:  # noqa: F811
    task = load_task("quadrotor-hover")
    assert refuse(lambda path: read_transfer(path, task), make)


# --- clips, and policies of other trainers ----------------------------------------------------------------------


def header(shape: tuple[int, ...], kind: str = "<f8") -> bytes:
    """Of a .npy file."""
    text = str({"descr": kind, "fortran_order": False, "shape": shape})
    text += " " * (63 - (len(text) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def packed(name: str, members: dict[str, bytes]) -> Make:
    def make(folder: Path) -> Path:
        path = folder / name
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for member, data in members.items():
                file.writestr(member, data)
        return path

    return make


CODE = b"\x80\x04cos\nsystem\n(S'touch ESCAPED'\ntR."
CLIPS = {
    "bomb": packed("c.npz", {"position.npy": header((50, 10**7)) + bytes(1 << 25)}),
    "endless": packed("c.npz", {"position.npy": header((10**15, 3))}),
    "code": packed("c.npz", {"position.npy": CODE, "time.npy": header((9,), "__import__('os').abort()")}),
    "elsewhere": packed("c.npz", {"../../ESCAPED": b"x"}),
    "lines": written("c.csv", "\n" * (1 << 22)),
    "a field": written("c.csv", 'time,x\n"' + "1" * (1 << 22)),
    "pipe": pipe("c.npz"),
    "device": device("c.csv"),
    "hole": hole("c.npz", b"PK\x03\x04"),
}  # fmt: skip


@pytest.mark.parametrize("what", CLIPS)
def test_clips(what: str, refuse: Any) -> None:  # noqa: F811
    assert refuse(lambda path: read_clip(path, ("a", "b")), CLIPS[what])


def claimed(shape: list[int]) -> bytes:
    """A tensor in the header of safetensors, and none after it."""
    head = json.dumps({"actor.0.weight": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}).encode()
    return struct.pack("<Q", len(head)) + head


POLICIES = {
    "code": written("p.pt", CODE),
    "bomb": packed("p.pt", {"archive/data.pkl": bytes(1 << 27), "archive/version": b"3"}),
    "bomb of stable-baselines3": packed("p.zip", {"data": b"{}", "policy.pth": bytes(1 << 27)}),
    "endless": written("p.safetensors", claimed([10**6, 10**6])),
    "negative": written("p.safetensors", claimed([-1, 4])),
    "aliases": written("p.yaml", "a0: &a0 [x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))),
    "deep": written("p.yaml", "a: " + "[" * 4_000),
    "tag": written("p.yaml", "models: !!python/object/apply:os.system ['touch ESCAPED']\npipeline: {}\n"),
    "pipe": pipe("p.pt"),
    "device": device("p.yaml"),
    "hole": hole("p.safetensors"),
}  # fmt: skip


@pytest.mark.parametrize("what", POLICIES)
def test_policies_of_other_trainers(what: str, refuse: Any) -> None:  # noqa: F811
    assert refuse(lambda path: find(path, {}), POLICIES[what])
