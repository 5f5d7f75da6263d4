"""Runs that are done in trackers of experiments, which their own readers find again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from robo_rl.cli import main
from robo_rl.commands.training.train import published
from robo_rl.learn.runs.folder import Run
from robo_rl.learn.runs.table import found
from robo_rl.learn.runs.trackers import PublishingError, to_mlflow, to_wandb


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two that are done and one that is not."""
    folder = tmp_path / "rates"
    for seed in range(3):
        run = Run.create(folder, "quadrotor-hover", None, "apg", seed, {"hidden": [8], "activation": "tanh"})
        lines = [{"update": k, "environment_steps": 10 * k, "reward": k + seed} for k in range(1, 4)]
        (run.folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        if seed < 2:
            done = {
                "success": 0.5 + 0.5 * seed,
                "interrupted": False,
                "position_error_mean_m": None,
                "policy_digest": "abc",
            }
            run.done_file.write_text(json.dumps({**done, "configuration_digest": run.configuration_digest}))
    return folder


@pytest.mark.parametrize("tracker", ["wandb", "mlflow"])
def test_a_tracker_that_is_not_installed_is_named(
    runs: Path, tracker: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, tracker, None)
    with pytest.raises(SystemExit) as ended:
        main(["runs", str(runs), f"--{tracker}", "x"])
    assert ended.value.code == 1
    assert "pip install 'robo-rl[track]'" in capsys.readouterr().err


def test_mlflow_finds_settings_metrics_and_files_of_runs_once_each(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tracking = pytest.importorskip("mlflow.tracking", reason="mlflow is missing: pip install 'robo-rl[track]'")
    monkeypatch.chdir(runs.parent)
    done = [row for row in found([runs]) if row.result]
    uri = f"sqlite:///{runs.parent}/tracked.db"
    assert [to_mlflow(done, uri, "rates") for _ in range(2)] == [2, 0]
    client = tracking.MlflowClient(uri)
    told = client.search_runs([client.get_experiment_by_name("rates").experiment_id])
    assert {run.data.params["seed"]: run.data.metrics["result/success"] for run in told} == {"0": 0.5, "1": 1.0}
    for run in told:
        curve = [(one.step, one.value) for one in client.get_metric_history(run.info.run_id, "reward")]
        assert curve == [(k, k + int(run.data.params["seed"])) for k in (1, 2, 3)]
        assert {file.path for file in client.list_artifacts(run.info.run_id)} == {"run.json", "done.json"}


class Recorded(ModuleType):
    """A stand-in for the package wandb: what was published; it refuses a project called "closed"."""

    def __init__(self) -> None:
        super().__init__("wandb")
        self.errors = ModuleType("wandb.errors")
        self.errors.Error = type("Error", (Exception,), {})
        self.runs: list[dict[str, Any]] = []

    def init(self, **told: Any) -> Recorded:
        if told["project"] == "closed":
            raise self.errors.Error("permission denied\nDetails: none")
        self.runs.append({**told, "lines": [], "files": []})
        self.summary: dict[str, float] = {}
        return self

    def log(self, line: dict[str, float], step: int) -> None:
        self.runs[-1]["lines"].append((step, line))

    def save(self, file: str, **_: Any) -> None:
        self.runs[-1]["files"].append(Path(file).name)

    def finish(self) -> None:
        pass


@pytest.mark.slow
def test_a_training_is_published_when_it_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded()
    monkeypatch.setitem(sys.modules, "wandb", recorded)
    words = ["train", "quadrotor-hover", "--runs", str(tmp_path), "--apg.updates", "3", "--episodes", "0"]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--wandb", "hover"])
    assert not ended.value.code
    (run,) = recorded.runs
    assert (run["project"], run["group"], run["name"]) == ("hover", "quadrotor-hover", "quadrotor-hover-seed0-1")
    assert [line["reward"] for _, line in run["lines"]] == [
        one["reward"] for one in Run.open(tmp_path / run["name"]).metrics()
    ]
    assert recorded.summary["environment_steps"] > 0
    assert run["files"] == ["run.json", "done.json"]


def test_a_run_that_was_not_published_can_be_published_later(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded()
    monkeypatch.setitem(sys.modules, "wandb", recorded)
    done = next(row.run.folder for row in found([runs]) if row.result)
    with pytest.raises(PublishingError, match=r"the run is done, but .* permission denied; .*") as refused:
        published(done, "closed", False)
    hint = str(refused.value).split("to publish it:  ")[1].replace("closed", "open")
    with pytest.raises(SystemExit) as ended:
        main(hint.split()[1:])
    assert not ended.value.code
    assert [run["name"] for run in recorded.runs] == [done.name]


@pytest.mark.slow
def test_wandb_keeps_a_file_for_each_run(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="wandb is missing: pip install 'robo-rl[track]'")
    monkeypatch.setenv("WANDB_MODE", "offline")
    done = [row for row in found([runs]) if row.result]
    assert to_wandb(done, "hover", "rates") == 2
    kept = [path.name for path in runs.glob("wandb/offline-run-*/*.wandb")]
    assert sorted(kept) == sorted(f"run-{row.run.configuration_digest[:32]}.wandb" for row in done)
