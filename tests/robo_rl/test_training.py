"""The training loop: interruption, kill -9, resuming to the bit, metrics. Real processes, real signals."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from robo_rl.cli import main
from robo_rl.learn import new_learner
from robo_rl.learn.runs import checkpoint, training
from robo_rl.learn.runs.checkpoint import CheckpointError
from robo_rl.learn.runs.folder import Run
from tests.holding import held, started
from tests.suite import representatives

LONG = {
    "apg": ["--apg.updates", "400", "--apg.environments", "24", "--apg.horizon", "16", "--apg.hidden", "16", "16"],
    "ppo": ["--ppo.updates", "30", "--ppo.environments", "24", "--ppo.horizon", "16", "--ppo.hidden", "16"],
    "walk": ["--ppo.updates", "30", "--ppo.environments", "16", "--ppo.horizon", "12", "--ppo.hidden", "16"],
}
"""Trainings of about two seconds."""
TASKS = {"apg": ("quadrotor-hover", "apg"), "ppo": ("quadrotor-hover", "ppo"), "walk": ("go2-flat", "ppo")}
"""The task and the algorithm of each."""


def arguments(label: str, runs: Path) -> list[str]:
    task, algorithm = TASKS[label]
    common = ["train", task, "--algorithm", algorithm, "--runs", str(runs), "--episodes", "0", "--json"]
    return [*common, "--checkpoint-seconds", "0.2", *LONG[label]]


def command(*words: str) -> int:
    """Run ``robo-rl`` in this process; its exit code."""
    with pytest.raises(SystemExit) as exit:
        main(list(words))
    return int(exit.value.code or 0)


def policy_tensors(run: Path) -> dict[str, torch.Tensor]:
    tensors = safetensors.torch.load_file(run / "checkpoint.safetensors")
    return {name: value for name, value in tensors.items() if name.startswith("policy/")}


def only_run(runs: Path) -> Path:
    (run,) = runs.iterdir()
    return run


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The run of a training that was left in peace, by its label."""

    @cache
    def run(label: str) -> Path:
        runs = tmp_path_factory.mktemp(label)
        assert command(*arguments(label, runs)) == 0
        return only_run(runs)

    return run


def assert_same_training(run: Path, expected: Path) -> None:
    """Same policy, optimiser, environments and generators, to the bit, and the same metrics."""
    mine, theirs = (safetensors.torch.load_file(folder / "checkpoint.safetensors") for folder in (run, expected))
    assert set(mine) == set(theirs)
    assert any(name.startswith("policy/") for name in mine)
    for name, value in theirs.items():
        assert mine[name].numpy().tobytes() == value.numpy().tobytes(), name
    assert (run / "metrics.jsonl").read_text() == (expected / "metrics.jsonl").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("label", representatives(list(LONG), ["apg", "walk"]))
def test_after_kill_9_a_resumed_training_ends_as_if_it_had_never_been_killed(
    label: str, uninterrupted: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    process = started(arguments(label, tmp_path / "runs"), tmp_path / "holding")
    held(process, tmp_path / "holding")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    run = only_run(tmp_path / "runs")
    _, numbers = checkpoint.load(run / "checkpoint.safetensors")
    assert not numbers["finished"]
    with open(run / "metrics.jsonl", "a") as file:
        file.write('{"update": 3')  # a line that the kill cut off
    assert command("resume", str(run), "--episodes", "0", "--json") == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["run"] == str(run)
    assert not result["interrupted"]
    assert_same_training(run, uninterrupted(label))


@pytest.mark.slow
def test_ctrl_c_saves_and_says_how_to_resume(uninterrupted: Callable[[str], Path], tmp_path: Path) -> None:
    process = started(arguments("apg", tmp_path / "runs"), tmp_path / "holding")
    held(process, tmp_path / "holding")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=300)
    run = only_run(tmp_path / "runs")
    assert process.returncode == 130
    result = json.loads(out.splitlines()[-1])
    assert result["interrupted"]
    assert f"To continue:  robo-rl resume {run}" in err
    assert "Traceback" not in err
    _, numbers = checkpoint.load(run / "checkpoint.safetensors")
    assert numbers["environment_steps"] == result["environment_steps"]
    assert 0 < numbers["done"] < 400
    assert command("resume", str(run), "--episodes", "0") == 0
    assert_same_training(run, uninterrupted("apg"))


def small_run(root: Path, updates: int = 6) -> Run:
    chosen = {
        "updates": updates,
        "environments": 8,
        "horizon": 4,
        "learning_rate": 0.01,
        "betas": [0.8, 0.9],
        "gradient_norm": 0.1,
        "hidden": [8],
        "activation": "tanh",
    }
    return Run.create(root, "quadrotor-hover", None, "apg", 0, chosen)


class Interrupting:
    """A learner that is interrupted by a real signal during its third update."""

    def __init__(self, learner: Any, number: int) -> None:
        self.learner, self.number = learner, number

    def __getattr__(self, name: str) -> Any:
        return getattr(self.learner, name)

    def update(self) -> dict[str, float]:
        if self.learner.done == 2:
            os.kill(os.getpid(), self.number)
        return self.learner.update()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_update_is_finished_and_saved(tmp_path: Path, number: int) -> None:
    run = small_run(tmp_path)
    learner = Interrupting(new_learner(run, run.new_policy()), number)
    before = signal.getsignal(number)
    trained = training.train(run, learner, 1e9)  # type: ignore[arg-type]
    assert trained.interrupted
    assert checkpoint.load(run.checkpoint_file)[1]["done"] == 3
    assert signal.getsignal(number) is before


def test_a_finished_training_is_left_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = small_run(tmp_path)
    learner = new_learner(run, run.new_policy())
    assert not training.train(run, learner, 1e9).interrupted
    before, metrics = policy_tensors(run.folder), (run.folder / "metrics.jsonl").read_text()
    assert command("resume", str(run.folder), "--episodes", "0") == 0
    assert "is trained; what is left is its evaluation" in capsys.readouterr().out  # killed before done.json
    assert command("resume", str(run.folder), "--episodes", "0") == 0
    assert "is finished; there is nothing to resume" in capsys.readouterr().out
    after = policy_tensors(run.folder)
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    assert (run.folder / "metrics.jsonl").read_text() == metrics


def test_a_checkpoint_of_another_run_is_refused_by_name(tmp_path: Path) -> None:
    run = small_run(tmp_path)
    other = Run.create(tmp_path, "quadrotor-track", None, "apg", 0, run.hyperparameters)
    training.train(other, new_learner(other, other.new_policy()), 1e9)
    shutil.copy(other.checkpoint_file, run.folder)
    with pytest.raises(CheckpointError, match=r"checkpoint\.safetensors does not fit .*run\.json"):
        training.resume(run, new_learner(run, run.new_policy()))


def scalars(run: Path) -> Iterator[tuple[str, list[tuple[int, float]]]]:
    events = EventAccumulator(str(run))
    events.Reload()
    for tag in events.Tags()["scalars"]:
        yield tag, [(event.step, event.value) for event in events.Scalars(tag)]


def test_metrics_are_the_same_in_the_file_and_in_tensorboard(tmp_path: Path) -> None:
    run = small_run(tmp_path)
    training.train(run, new_learner(run, run.new_policy()), 1e9)
    lines = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["update"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert [line["environment_steps"] for line in lines] == [32 * k for k in range(1, 7)]
    board = dict(scalars(run.folder))
    terms = {f"reward/{name}" for name in run.task().spec.reward}
    assert set(board) >= {
        "reward",
        "alive",
        "gradient_norm",
        "level/initial/tilt",
        "diverged",
        "skipped",
        "error/position_error",
        *terms,
    }
    for tag, points in board.items():
        told = [line for line in lines if tag in line]
        assert [step for step, _ in points] == [line["environment_steps"] for line in told]
        np.testing.assert_allclose([value for _, value in points], [line[tag] for line in told], rtol=1e-6)
