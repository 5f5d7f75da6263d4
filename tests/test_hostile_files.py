"""A hundred and more hostile files: nothing in them runs, no traceback, little memory and time, a sentence each."""

from __future__ import annotations

import gc
import json
import os
import resource
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from onnx import ModelProto

from robo_rl.deploy.robot.bundle import CONTRACT_KEY, GOLDEN_KEY, Bundle
from robo_rl.deploy.robot.logs.replay import replay
from robo_rl.learn.runs.folder import Run
from robo_rl.sim.models import require_bearable
from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.ranges import read_ranges
from robo_rl.sim.robots import load_robot
from robo_rl.zoo import located
from tests import hostile_files as files
from tests.deploy.hostile_bundles import allocates, allocates_at_work, computes, entry, resealed
from tests.deploy.test_onnx_file import HOSTILE as GRAPHS
from tests.robo_rl.contract.test_names import HOSTILE as NAMES
from tests.suite import representatives

MOST_MEMORY, MOST_TIME = 1 << 20, 10.0
"""KiB, and s of processor time, of reading one file."""
RUN = {
    "task_name": "quadrotor-hover", "robot": None, "algorithm": "apg", "seed": 0, "hyperparameters": {"updates": 3},
    "ranges": {}, "begun_from": None, "plant": None, "source_digest": "", "versions": {},
}  # fmt: skip


class Outcome(NamedTuple):
    """What came of reading a file: a sentence, or "" where it was taken."""

    sentence: str
    trace: str
    kibibytes: int
    """That it took in addition to what the process had."""
    seconds: float


def read(function: Callable[[Path], object], path: Path, empty: Path) -> Outcome:
    """Read a file in a process of its own that is in the folder ``empty``, and measure it and its children."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        gc.disable()  # what it would collect may wait for threads, which are not in this process
        os.chdir(empty)
        said = {"sentence": "", "trace": "", "before": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}
        try:
            function(path)
        except (ValueError, OSError) as error:  # what the command line turns into a sentence
            said["sentence"] = str(error)
        except BaseException:
            said["trace"] = traceback.format_exc()
        os.write(theirs, json.dumps(said).encode()[:60_000])
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        answer = pipe.read()
    _, status, used = os.wait4(child, 0)
    assert status == 0, f"the reading process ended with {status}"
    found = json.loads(answer)
    taken = used.ru_maxrss - found["before"]  # a fork begins with the memory of this process
    return Outcome(found["sentence"], found["trace"], taken, used.ru_utime + used.ru_stime)


@pytest.fixture
def refuse(tmp_path: Path) -> Iterator[Callable[[Callable[[Path], object], files.Make], str]]:
    """``refuse(function, make)``: the sentence with which a file is refused."""
    empty, folder = tmp_path / "empty", tmp_path / "given" / "file"
    empty.mkdir()
    folder.mkdir(parents=True)

    def check(function: Callable[[Path], object], make: files.Make) -> str:
        path = make(folder)
        before = sorted(tmp_path.rglob("*"))
        outcome = read(function, path, empty)
        assert not outcome.trace, outcome.trace[-3000:]
        assert sorted(tmp_path.rglob("*")) == before  # nothing was written, above all no canary
        assert outcome.kibibytes < MOST_MEMORY
        assert outcome.seconds < MOST_TIME
        assert len(outcome.sentence) < 5000
        assert outcome.sentence == "" or "file" in outcome.sentence  # the folder's name: the sentence names the file
        return outcome.sentence

    yield check
    assert not list(tmp_path.rglob("ESCAPED"))


def card(path: Path) -> object:
    found = load_robot(str(path))
    return found.facts(), found.urdf()


@pytest.mark.parametrize("what", files.CARDS)
def test_cards(what: str, refuse: Any) -> None:
    assert refuse(card, files.CARDS[what])


def ranges(path: Path) -> object:
    from robo_rl.sim.tasks.loading import load_task

    return read_ranges(path, "go2-flat", load_task("go2-flat").spec.ranges)


@pytest.mark.parametrize("what", files.RANGES)
def test_ranges(what: str, refuse: Any) -> None:
    assert refuse(ranges, files.RANGES[what])


def model(path: Path) -> object:
    found: Any = load_robot(str(path))
    require_bearable(found.model)
    return assemble(found.mechanism, Physics())


@pytest.mark.parametrize("what", files.MODELS)
def test_models(what: str, refuse: Any) -> None:
    assert refuse(model, files.MODELS[what])


FLOWN = "zoo:quadrotor-hover"
LOGS = files.logs(Bundle.read(FLOWN).contract)


def replayed(path: Path) -> object:
    return replay(path, FLOWN)


@pytest.mark.parametrize("what", LOGS)
def test_logs(what: str, refuse: Any) -> None:
    sentence = refuse(replayed, LOGS[what])
    if what.startswith(("no ", "nothing", "the magic", "another", "a type", "too ", "a gate", "a time", "stamps")):
        assert sentence


RUNS = files.runs(RUN)


def run(path: Path) -> object:
    return Run.open(path).new_policy()


@pytest.mark.parametrize("what", RUNS)
def test_runs(what: str, refuse: Any) -> None:
    assert refuse(run, RUNS[what])


def contract(change: Callable[[dict[str, Any]], object]) -> Callable[[ModelProto], object]:
    def changed(model: ModelProto) -> None:
        data = json.loads(entry(model, CONTRACT_KEY).value)
        change(data)
        entry(model, CONTRACT_KEY).value = json.dumps(data)

    return changed


def text(key: str, value: str) -> Callable[[ModelProto], object]:
    return lambda model: setattr(entry(model, key), "value", value)


SPELLED = [name for name in NAMES if name != "\ud800"]
BUNDLES: dict[str, Callable[[ModelProto], object]] = {
    **{f"graph: {what}": change for what, (change, _) in GRAPHS.items()},
    **{
        f"task: {name[:30]!r}": contract(lambda d, name=name: d.update(task=name)) for name in NAMES if name != "\ud800"
    },
    "robot is a file": contract(lambda d: d["robot"].update(name="robot.toml")),
    "task is a file": contract(lambda d: d.update(task="evil.py:Evil")),
    "a wide network": contract(lambda d: d["network"].update(hidden=[65536, 65536])),
    "a large signal": contract(lambda d: d["signals"][0].update(shape=[1 << 20, 1 << 20])),
    "memory of a million blocks": contract(
        lambda d: d["state"].extend([{"name": "a", "shape": [1 << 20], "initial": []}] * 10_000)
    ),
    "facts in facts": text(CONTRACT_KEY, '{"a":' * 100_000 + "1" + "}" * 100_000),
    "a contract of lists": text(CONTRACT_KEY, "[" + "[]," * 300_000 + "[]]"),
    "a contract of a megabyte of digits": text(CONTRACT_KEY, "9" * 1_000_000),
    "golden lists in lists": text(GOLDEN_KEY, "[" * 100_000),
    "golden objects": text(GOLDEN_KEY, '{"steps": 1, "a": [' + "{}," * 5_000_000 + "{}]}"),
    "golden digits": text(GOLDEN_KEY, '{"steps": ' + "9" * 5000 + "}"),
    "4 GB in a constant": lambda m: allocates(m, 1 << 30),
    "4 GB in every step": lambda m: allocates_at_work(m, 1 << 30),
    "hours in a step": lambda m: computes(m, 3000, 200),
}


def made(change: Callable[[ModelProto], object]) -> files.Make:
    return lambda folder: resealed(folder / "policy.onnx", change)


@pytest.mark.parametrize("what", BUNDLES)
def test_bundles(what: str, refuse: Any) -> None:
    assert refuse(Bundle.read, made(BUNDLES[what]))


def test_there_are_a_hundred_and_fifty_files() -> None:
    assert sum(map(len, (files.CARDS, files.RANGES, files.MODELS, LOGS, RUNS, BUNDLES))) >= 150


COMMANDS: dict[str, tuple[tuple[str, ...], files.Make]] = {
    "inspect": (("inspect", "FILE"), made(GRAPHS["loop"][0])),
    "firmware": (("firmware", "FILE"), made(BUNDLES["4 GB in a constant"])),
    "replay": (("replay", "FILE", str(located("zoo:quadrotor-hover"))), LOGS["a chunk of a GB of zeros"]),
    "robots": (("robots", "FILE"), files.CARDS["TOML: arrays in arrays"]),
    "evaluate": (("evaluate", "FILE"), RUNS["a task's file beside it"]),
    "robots with a model": (("robots", "FILE"), files.MODELS["a billion replicas"]),
}


@pytest.mark.parametrize("what", representatives(list(COMMANDS), ["inspect", "robots", "evaluate"]))
def test_commands_refuse_in_a_sentence_on_standard_error(what: str, tmp_path: Path) -> None:
    words, make = COMMANDS[what]
    path = make(tmp_path)
    command = [str(path) if word == "FILE" else word for word in words]
    done = subprocess.run([sys.executable, "-m", "robo_rl", *command], cwd=tmp_path, capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith(f"robo-rl {command[0]}: ")
    assert not list(tmp_path.rglob("ESCAPED"))
