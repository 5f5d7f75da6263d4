"""Trainings that end early because their reward is too low, and trainings that begin with an earlier one's network."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from robo_rl.cli import main
from robo_rl.commands.training.train import floors_of
from robo_rl.learn.runs import checkpoint
from robo_rl.learn.runs.folder import Run, policy_digest
from robo_rl.sim.ranges import Range, parse_bounds

SMALL = ["--apg.updates", "6", "--apg.environments", "16", "--apg.horizon", "8", "--apg.hidden", "8", "--episodes", "4"]


def trained(runs: Path, *words: str) -> Run:
    with pytest.raises(SystemExit) as ended:
        main(["train", "quadrotor-hover", "--runs", str(runs), *SMALL, *words])
    assert not ended.value.code
    (folder,) = runs.iterdir()
    return Run.open(folder)


def test_a_training_below_its_floor_ends_there_and_one_above_goes_on(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole")
    rewards = {line["update"]: line["reward"] for line in whole.metrics()}
    low, high = f"2:{rewards[2] - 1e-3!r}", f"4:{rewards[4] + 1e-3!r}"
    ended = trained(tmp_path / "ended", "--stop-below", low, high)
    done = ended.done()
    assert done is not None
    assert done["stopped_at"] == 4
    assert done["interrupted"] is False
    assert [line["reward"] for line in ended.metrics()] == [rewards[update] for update in (1, 2, 3, 4)]
    assert ended.stop_below == {"2": rewards[2] - 1e-3, "4": rewards[4] + 1e-3}
    kept = trained(tmp_path / "kept", "--stop-below", low)
    digests = [policy_digest(checkpoint.load(run.checkpoint_file)[0]) for run in (whole, kept, ended)]
    assert digests[0] == digests[1] != digests[2]


def test_a_training_that_was_ended_and_killed_before_its_evaluation_is_not_trained_further(tmp_path: Path) -> None:
    ended = trained(tmp_path / "ended", "--stop-below", "3:1e9")
    before = ended.checkpoint_file.read_bytes()
    ended.done_file.unlink()
    with pytest.raises(SystemExit) as resumed:
        main(["resume", str(ended.folder), "--episodes", "4"])
    assert not resumed.value.code
    assert policy_digest(checkpoint.load(ended.checkpoint_file)[0]) == policy_digest(_tensors(before, tmp_path))
    assert json.loads(ended.done_file.read_text())["stopped_at"] == 3


def _tensors(data: bytes, folder: Path) -> dict[str, torch.Tensor]:
    file = folder / "before.safetensors"
    file.write_bytes(data)
    return checkpoint.load(file)[0]


def test_a_run_without_floors_has_the_configuration_digest_of_earlier_releases(tmp_path: Path) -> None:
    run = Run.create(tmp_path, "quadrotor-hover", None, "apg", 0, {"hidden": [8], "activation": "tanh"})
    assert "stop_below" not in run.description()
    other = Run.create(tmp_path, "quadrotor-hover", None, "apg", 0, dict(run.hyperparameters), stop_below={"3": 0.5})
    assert other.configuration_digest != run.configuration_digest
    assert Run.open(other.folder).stop_below == {"3": 0.5}


@pytest.mark.parametrize("text", ["", "3", "3:", ":1", "-3:1", "3:nan", "3:inf", "²:1", "3:1:2", "1.5:2"])
def test_a_floor_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected UPDATE:REWARD"):
        floors_of([text])


def test_an_analytic_training_begins_with_the_network_of_another(tmp_path: Path) -> None:
    first = trained(tmp_path / "first")
    second = trained(
        tmp_path / "second", "--begin-from", str(first.folder), "--seed", "7", "--apg.learning-rate", "1e-12"
    )
    before, after = (checkpoint.load(run.checkpoint_file)[0] for run in (first, second))
    weights = [name for name in before if name.startswith("policy/network") and name.endswith("weight")]
    assert weights
    for name in weights:
        torch.testing.assert_close(before[name], after[name], rtol=0, atol=1e-9)
    assert second.begun_from is not None


@given(st.text(max_size=30) | st.builds("delay:{}:{}".format, st.floats(), st.floats()))
def test_bounds_of_ranges_are_two_finite_numbers_or_refused(word: str) -> None:
    known = {"delay": Range.fixed(0.0, 0.02, unit="s")}
    try:
        low, high = parse_bounds([word], "quadrotor-hover", known)["delay"]
    except ValueError:
        return
    assert -math.inf < low <= high < math.inf
    assert word.startswith("delay:")


def test_a_training_keeps_the_bounds_that_it_was_told(tmp_path: Path) -> None:
    run = trained(tmp_path, "--bounds", "delay:0.01:0.01", "mass:0.5:2")
    assert run.ranges == {"delay": [0.01, 0.01], "mass": [0.5, 2.0]}
    assert run.task().spec.ranges["mass"].end == (0.5, 2.0)
