"""Checkpoints, metrics and results that somebody has planted, with digests that are right: a sentence, nothing trained.

Whoever can compute a digest can put any numbers and tensors into a checkpoint.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from robo_rl.commands.many_runs.runs import main as list_runs
from robo_rl.files.text import loads_json, read_json
from robo_rl.learn import new_learner
from robo_rl.learn.config import ApgConfig
from robo_rl.learn.runs import checkpoint, training
from robo_rl.learn.runs.checkpoint import CheckpointError
from robo_rl.learn.runs.folder import Run, RunError
from robo_rl.learn.runs.table import Row
from robo_rl.report.general import read_transfer
from robo_rl.sim.tasks.loading import load_task
from robo_rl.sweeps import contexts

SMALL = dataclasses.asdict(ApgConfig(updates=2, environments=8, horizon=4, hidden=(8,)))
Change = Callable[[dict[str, Tensor], dict[str, Any]], object]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Any]:
    """A run after an update, and its learner."""
    made = Run.create(tmp_path_factory.mktemp("runs"), "quadrotor-hover", None, "apg", 0, SMALL)
    learner = new_learner(made, made.new_policy())
    learner.update()
    training.save(made, learner)
    return made, learner


@pytest.fixture
def run(trained: tuple[Run, Any]) -> Run:
    return trained[0]


def numbers(**changed: Any) -> Change:
    return lambda tensors, told: told.update(changed)


def tensor(name: str, change: Callable[[Tensor], Tensor | None]) -> Change:
    def make(tensors: dict[str, Tensor], told: dict[str, Any]) -> None:
        new = change(tensors.pop(name))
        if new is not None:
            tensors[name] = new

    return make


WEIGHT = "policy/network.0.weight"
PLANTED: dict[str, Change] = {
    "done is a text": numbers(done="1"), "done is below 0": numbers(done=-1), "done is beyond the end": numbers(done=3),
    "done is a part": numbers(done=1.5), "done is true": numbers(done=True), "done is a list": numbers(done=[1]),
    "done is not a number": numbers(done=math.nan), "done is 10^400": numbers(done=10**400),
    "diverged is a text": numbers(diverged="many"), "skipped is below 0": numbers(skipped=-5),
    "no numbers": lambda tensors, told: told.clear(), "no tensors": lambda tensors, told: tensors.clear(),
    "a weight that would be stretched": tensor(WEIGHT, lambda x: x[:1, :1].clone()),
    "a weight of another shape": tensor(WEIGHT, lambda x: x.T.contiguous()),
    "no weight": tensor(WEIGHT, lambda x: None), "a weight that is not finite": tensor(WEIGHT, lambda x: x / 0.0),
    "a generator's state of another length": tensor("torch_generator", lambda x: x[:10]),
    "a generator's state of another type": tensor("torch_generator", lambda x: x.float()),
    "an optimizer's state by another name": lambda tensors, told: tensors.update({"optimizer/x/y": torch.zeros(1)}),
    "an optimizer's state without a name": lambda tensors, told: tensors.update({"optimizer/1": torch.zeros(1)}),
}  # fmt: skip


def planted(run: Run, folder: Path, change: Change) -> Run:
    """The run in another folder, with a checkpoint that was changed and sealed again."""
    copy = Run.open(shutil.copytree(run.folder, folder / "run"))
    tensors, told = checkpoint.load(copy.checkpoint_file)
    change(tensors, told)
    checkpoint.save(copy.checkpoint_file, tensors, told)
    return copy


@pytest.mark.parametrize("what", PLANTED)
def test_a_checkpoint_that_does_not_fit_is_refused(what: str, trained: tuple[Run, Any], tmp_path: Path) -> None:
    run, learner = trained
    with pytest.raises(CheckpointError, match=r"checkpoint\.safetensors"):
        training.resume(planted(run, tmp_path, PLANTED[what]), learner)


@pytest.mark.parametrize("value", ["7", -1, 1.5, None, True, math.inf])
def test_a_policy_of_steps_that_are_no_number_is_refused(value: Any, run: Run, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"environment_steps is .*expected an integer"):
        planted(run, tmp_path, numbers(environment_steps=value)).policy()
    with pytest.raises(CheckpointError, match="done is"):
        Row(planted(run, tmp_path / "2", numbers(done="x")), None).update  # noqa: B018 (a property)


LINE = {"update": 1, "environment_steps": 10, "reward": 0.5}


@pytest.mark.parametrize(
    "changed",
    [{"update": "1"}, {"update": None}, {"update": -1}, {"update": math.nan}, {"update": 0.5},
     {"environment_steps": []}, {"update": True}, {"\x1b[2J": 1.0}, {"reward": "x"}, {"reward": [1]},
     {"reward": 1e308}],
)  # fmt: skip
def test_a_line_of_metrics_that_is_none_is_named_and_left_out_where_a_training_goes_on(
    changed: dict[str, Any], trained: tuple[Run, Any], tmp_path: Path
) -> None:
    run, learner = trained
    copy = Run.open(shutil.copytree(run.folder, tmp_path / "run"))
    (copy.folder / "metrics.jsonl").write_text(json.dumps(LINE) + "\n" + json.dumps(LINE | changed) + "\n")
    with pytest.raises(RunError, match=r"metrics\.jsonl, line 2: .*expected numbers by name"):
        copy.metrics()
    if "update" in changed:
        learner.done = 1
        with training._Log(copy, learner):
            assert (copy.folder / "metrics.jsonl").read_text() in (
                json.dumps(LINE) + "\n", json.dumps(LINE) + "\n" + json.dumps(LINE | changed) + "\n"
            )  # fmt: skip


@pytest.mark.parametrize("line", [b"{}", b"", b'{"update":1,"environment_steps":1}'])
def test_millions_of_short_lines_of_metrics_are_refused_before_they_fill_the_memory(
    line: bytes, trained: tuple[Run, Any], tmp_path: Path
) -> None:
    run, learner = trained
    copy = Run.open(shutil.copytree(run.folder, tmp_path / "run"))
    (copy.folder / "metrics.jsonl").write_bytes((line + b"\n") * (2_100_000 if not line else 1_050_000))
    with pytest.raises(ValueError, match=r"metrics\.jsonl: some \d+ values; expected at most 2000000"):
        copy.metrics()
    with pytest.raises(ValueError, match=r"metrics\.jsonl: some"), training._Log(copy, learner):
        pass


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"versions": []}, r"versions is \[\]; expected texts"), ({"versions": None}, "versions is None"),
        ({"versions": {"torch": 2}}, "versions is"), ({"success": math.nan}, "success is nan; expected a number"),
        ({"success": -1.0}, "success is -1.0"), ({"success": "1"}, "success is '1'"), ({"success": 5}, "success is 5"),
        ({"reward": math.inf}, "reward is inf; expected a finite"), ({"reward": 1e308}, r"reward is 1e\+308"),
    ],
)  # fmt: skip
def test_a_result_that_no_training_has_is_refused(
    changed: dict[str, Any], sentence: str, trained: tuple[Run, Any], tmp_path: Path
) -> None:
    copy = Run.open(shutil.copytree(trained[0].folder, tmp_path / "run"))
    copy.finish({"success": 0.5})
    copy.done_file.write_text(json.dumps({**(copy.done() or {}), **changed}))
    with pytest.raises(RunError, match=rf"done\.json: {sentence}"):
        copy.done()


def test_what_a_list_of_runs_refuses_is_told_below_it(
    trained: tuple[Run, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("good", "none", "pipe", "stopped", "metrics"):
        copy = Run.open(shutil.copytree(trained[0].folder, tmp_path / name))
        if name != "stopped":
            copy.finish({"success": 0.5})
    (tmp_path / "none" / "run.json").write_text("[]")
    (tmp_path / "pipe" / "done.json").unlink()
    os.mkfifo(tmp_path / "pipe" / "done.json")
    (tmp_path / "stopped" / "checkpoint.safetensors").write_bytes(b"x")
    (tmp_path / "metrics" / "metrics.jsonl").unlink(missing_ok=True)
    (tmp_path / "metrics" / "metrics.jsonl").mkdir()
    assert list_runs(tmp_path, page=tmp_path / "page.html") == 1
    told = capsys.readouterr().out
    assert [Path(line.split()[0]).name for line in told.splitlines()[1:4]] == ["good", "metrics", "stopped"]
    refused = [line for line in told.splitlines() if line.startswith("REFUSED: ")]
    places = ("none/run.json", "pipe/done.json", "stopped/checkpoint.safetensors", "metrics/metrics.jsonl")
    for place, line in zip(places, refused, strict=True):
        assert f"{tmp_path / place}" in line
    assert "<b>Not drawn:</b>" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("success", [["0.5", "0.5"], [0.5, 2.0], 7])
def test_scores_of_contexts_that_are_none_are_measured_again(
    success: Any, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Run.open(shutil.copytree(run.folder, tmp_path / "run"))
    copy.finish({})
    done = copy.done()
    assert done is not None
    values = np.array([0.0, 0.01])
    asked = {"range": "delay", "values": values.tolist(), "episodes": 5, "policy": done["policy_digest"]}
    (copy.folder / contexts.FILE).write_text(json.dumps({"asked": asked, "success": success}))
    measured = contexts._scores(copy, "delay", values, 5)
    assert measured.shape == (2,)
    assert ((measured >= 0.0) & (measured <= 1.0)).all()
    assert read_json(copy.folder / contexts.FILE)["success"] == measured.tolist()


HOME = {"success": 0.9, "success_low": 0.8, "success_high": 1.0, "episodes": 9}
ENGINE = HOME | {"engine": "pybullet", "summary": "of rigid bodies", "kept": 0.9}
TRANSFER = {"task": "quadrotor-hover", "robot": "crazyflie", "home": HOME, "engines": [ENGINE],
            "perturbations": {"delay": [HOME | {"value": 0.01}]}}  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [{"home": []}, {"home": HOME | {"success": "0.9"}}, {"home": HOME | {"success": 7.0}}, {"engines": {}},
     {"engines": [5]}, {"engines": [ENGINE | {"engine": 7}]}, {"engines": [ENGINE | {"kept": "all"}]},
     {"engines": [HOME]}, {"perturbations": []}, {"perturbations": {"delay": [HOME]}},
     {"perturbations": {"delay": 3}}, {"perturbations": {"unknown": []}}],
)  # fmt: skip
def test_results_of_transfer_of_other_types_are_refused(changed: dict[str, Any], tmp_path: Path) -> None:
    file, task = tmp_path / "transfer.json", load_task("quadrotor-hover")
    file.write_text(json.dumps(TRANSFER))
    assert read_transfer(file, task).least_kept == 0.9
    file.write_text(json.dumps(TRANSFER | changed))
    with pytest.raises(ValueError, match=r"transfer\.json"):
        read_transfer(file, task)


def test_a_field_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the field 'seed' is there twice"):
        loads_json('{"seed": 1, "task": {"a": 1}, "seed": 2}')
    (tmp_path / "run.json").write_text('{"a": 1, "a": 2}')
    with pytest.raises(ValueError, match=r"run\.json: not JSON \(the field 'a' is there twice"):
        read_json(tmp_path / "run.json")
