"""Hyperparameters that can't be are refused, wherever they come from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from robo_rl.cli import main
from robo_rl.learn.config import ApgConfig, DistillConfig, PpoConfig
from robo_rl.learn.runs.folder import Run, RunError


@pytest.mark.parametrize(
    ("config", "wrong", "sentence"),
    [
        (PpoConfig, {"updates": 0}, "updates is 0; expected at least 1"),
        (PpoConfig, {"gamma": 1.5}, "gamma is 1.5; expected 0 to 1"),
        (PpoConfig, {"anneal": float("nan")}, "anneal is nan; expected 0 to 1"),
        (PpoConfig, {"entropy": -0.1}, "entropy is -0.1; expected 0 or a positive number"),
        (PpoConfig, {"recurrent": -1}, "recurrent is -1; expected at least 0"),
        (PpoConfig, {"environments": 4, "horizon": 3, "mini_batches": 13}, "mini_batches is 13; expected at most 12"),
        (
            PpoConfig,
            {"environments": 4, "mini_batches": 5, "recurrent": 8},
            "mini_batches is 5; expected at most 4",
        ),
        (ApgConfig, {"learning_rate": float("inf")}, "learning_rate is inf; expected a positive number"),
        (ApgConfig, {"betas": (0.9, 1.0)}, "betas is (0.9, 1.0); expected two numbers, 0 to below 1"),
        (ApgConfig, {"hidden": (64, 0)}, "hidden is (64, 0); expected widths of layers, each at least 1"),
        (DistillConfig, {"hidden": (8,), "activation": "elu", "mixed": -1}, "mixed is -1; expected at least 0"),
    ],
)
def test_a_hyperparameter_that_cannot_be_is_refused(config: Any, wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(sentence)):
        config(**wrong)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("updates", 1), ("gamma", 1.0), ("lam", 0.0), ("anneal", 1.0), ("entropy", 0.0), ("recurrent", 0),
        ("hidden", ()), ("mini_batches", 1024 * 32),
    ],
)  # fmt: skip
def test_what_lies_at_a_bound_is_taken(name: str, value: Any) -> None:
    assert getattr(PpoConfig(**{name: value}), name) == value


def test_the_command_line_refuses_before_a_run_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = tmp_path / "runs"
    with pytest.raises(SystemExit) as ended:
        main(["train", "go2-flat", "--ppo.environments", "0", "--runs", str(runs)])
    assert ended.value.code == 2
    assert "environments is 0; expected 1 to 1000000" in capsys.readouterr().err
    assert not runs.exists()


def test_a_run_s_file_is_held_to_the_same(tmp_path: Path) -> None:
    run = Run.create(tmp_path, "quadrotor-hover", None, "apg", 0, vars(ApgConfig()))
    file = run.folder / "run.json"
    data = json.loads(file.read_text())
    data["hyperparameters"]["horizon"] = 0
    file.write_text(json.dumps(data))
    with pytest.raises(RunError, match=r"run\.json: .*horizon is 0; expected at least 1"):
        Run.open(run.folder)
