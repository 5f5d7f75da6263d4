"""Hostile sweeps, runs, tensors, logs, keys and results: a sentence each, little memory and time, no hang."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from robo_rl.deploy.robot.bundle.signing import read_trusted, sign
from robo_rl.deploy.robot.logs.reader import read_log
from robo_rl.learn.runs import checkpoint
from robo_rl.learn.runs.folder import Run
from robo_rl.report.general import read_transfer
from robo_rl.sim.env import VecEnv
from robo_rl.sim.env_state import EnvState
from robo_rl.sim.tasks.loading import load_task
from robo_rl.sweeps import sweep
from tests.planted import Make, device, hole, pipe, written
from tests.test_hostile_files import RUN, refuse  # noqa: F401 (a fixture)

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
    "an origin elsewhere": jobs(origin="../../ESCAPED"), "two up": jobs(origin="../../a/b"),
    "up in the middle": jobs(origin="a/../b"), "an absolute origin": jobs(origin="/etc/passwd"),
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


# --- tensors, logs, keys, results ------------------------------------------------------------------------------------

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
