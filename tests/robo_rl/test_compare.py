"""``robo-rl compare`` and ``runs``: groups, figures and refusals of runs that are done."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_rl.cli import main
from robo_rl.files import held
from robo_rl.learn.runs import checkpoint
from robo_rl.learn.runs.folder import Run
from robo_rl.learn.runs.table import found, groups


def runs(folder: Path, rate: float, success: list[float], versions: dict[str, str] | None = None) -> None:
    """As if trained: a run for each success rate."""
    hyperparameters = {"hidden": [8], "learning_rate": rate}
    for seed, value in enumerate(success):
        run = Run.create(folder, "quadrotor-hover", None, "apg", seed, hyperparameters)
        done: dict[str, Any] = {"success": value, "error": 1 - value, "versions": versions or {"torch": "1"}}
        done["configuration_digest"] = run.configuration_digest
        run.done_file.write_text(json.dumps(done))


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--json"])
    assert not ended.value.code
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_groups_are_of_runs_that_differ_in_the_seed_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generator = np.random.default_rng(0)
    runs(tmp_path / "a", 0.001, list(generator.normal(0.5, 0.05, 10)))
    runs(tmp_path / "b", 0.003, list(generator.normal(0.9, 0.05, 10)))
    first, second = told(capsys, "compare", str(tmp_path / "a"), str(tmp_path / "b"))["groups"]
    assert (first["label"], second["label"]) == ("learning_rate 0.001", "learning_rate 0.003")
    assert first["seeds"] == second["seeds"] == 10
    assert first["iqm_low"] < first["iqm"] < first["iqm_high"] < second["iqm_low"]
    assert second["better"] == 1.0
    assert second["decision"] == "better"
    lower = told(capsys, "compare", str(tmp_path), "--measure", "error", "--lower-is-better")["groups"][1]
    assert (lower["better"], lower["decision"]) == (1.0, "better")


def test_plot_and_table_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is missing: pip install 'robo-rl[scale]'")
    runs(tmp_path / "a", 0.001, [0.1, 0.2])
    runs(tmp_path / "b", 0.003, [0.3])
    files = ["--plot", str(tmp_path / "c.svg"), "--parquet", str(tmp_path / "c.parquet")]
    told(capsys, "compare", str(tmp_path), *files)
    assert "learning_rate 0.003" in (tmp_path / "c.svg").read_text()
    table = parquet.read_table(tmp_path / "c.parquet").to_pydict()
    assert table["success"] == [0.1, 0.2, 0.3]
    assert table["learning_rate"] == [0.001, 0.001, 0.003]
    assert table["seed"] == [0, 1, 0]


def test_runs_of_other_versions_are_not_compared_unless_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs(tmp_path / "a", 0.001, [0.1])
    runs(tmp_path / "b", 0.003, [0.3], {"torch": "1", "numerics": "AVX2"})
    with pytest.raises(SystemExit):
        main(["compare", str(tmp_path)])
    assert "numerics: None and AVX2" in capsys.readouterr().err
    assert len(told(capsys, "compare", str(tmp_path), "--mixed")["groups"]) == 2
    told(capsys, "runs", str(tmp_path), "--page", str(tmp_path / "page.html"))
    assert "Not to be compared:" in (tmp_path / "page.html").read_text()


def test_what_can_not_be_compared_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs(tmp_path, 0.001, [0.1])
    for words, said in (
        (["compare", str(tmp_path), "--measure", "speed"], "speed is None; expected a number, one of"),
        (["compare", str(tmp_path / "none")], "no run in it"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 1
        assert said in capsys.readouterr().err
    next(tmp_path.glob("*/done.json")).unlink()
    with pytest.raises(SystemExit):
        main(["compare", str(tmp_path)])
    assert "not finished; expected trained runs" in capsys.readouterr().err


def test_runs_are_listed_with_their_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs(tmp_path, 0.001, [0.1, 0.7])
    next(tmp_path.glob("*seed0*/done.json")).unlink()
    listed = told(capsys, "runs", str(tmp_path))["runs"]
    assert [(one["seed"], one["state"], one["success"]) for one in listed] == [(0, "new", None), (1, "done", 0.7)]
    assert len(told(capsys, "runs", str(tmp_path), "--state", "done")["runs"]) == 1
    assert list(groups(found([tmp_path]))) == ["quadrotor-hover"]


def test_a_run_that_was_stopped_is_listed_with_its_update_and_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run.create(tmp_path, "quadrotor-hover", None, "apg", 0, {"updates": 600})
    checkpoint.save(run.checkpoint_file, {}, {"done": 120})
    with held(run.folder):
        (one,) = told(capsys, "runs", str(tmp_path))["runs"]
        assert (one["state"], one["update"]) == ("running", None)
    (one,) = told(capsys, "runs", str(tmp_path), "--state", "stopped")["runs"]
    assert (one["state"], one["update"], one["updates"]) == ("stopped", 120, 600)
    with pytest.raises(SystemExit):
        main(["runs", str(tmp_path)])
    out = capsys.readouterr().out
    assert re.search(r"stopped +120/600", out)
    assert f"robo-rl resume {run.folder}" in out


def test_a_page_shows_the_state_of_all_runs_and_compares_those_that_are_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs(tmp_path / "a", 0.001, [0.1, 0.2, 0.15])
    runs(tmp_path / "b", 0.003, [0.3, 0.4])
    stopped = Run.create(tmp_path / "b", "quadrotor-hover", None, "apg", 9, {"hidden": [8], "learning_rate": 0.003})
    checkpoint.save(stopped.checkpoint_file, {}, {"done": 3})
    for run in (stopped, *(row.run for row in found([tmp_path / "a"]))):
        lines = [{"update": k, "environment_steps": 10 * k, "reward": k + run.seed} for k in range(1, 5)]
        (run.folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = tmp_path / "page.html"
    told(capsys, "runs", str(tmp_path), "--page", str(page))
    text = page.read_text()
    assert '<b id="done">5</b>' in text
    assert '<b id="stopped">1</b>' in text
    assert text.count("<svg") == 2
    assert "control steps" in text
    assert "https://" not in text
    figures = json.loads(text.split('id="figures">')[1].split("</script>")[0])
    expected = told(capsys, "compare", *(str(row.run.folder) for row in found([tmp_path]) if row.result))["groups"]
    assert figures["groups"] == expected


def test_a_page_of_runs_with_strange_names_has_no_elements_of_theirs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for value in (1, 2):
        shape = {"hidden": [8], "activation": "tanh"}
        run = Run.create(tmp_path, "quadrotor-hover", None, "apg", 0, shape, {"<b>$x$</b>": [0, value]})
        done = {"success": "<script>" if value == 1 else 0.5, "configuration_digest": run.configuration_digest}
        run.done_file.write_text(json.dumps({**done, "policy_digest": "<script>"}))
    words = ["runs", str(tmp_path), "--page", str(tmp_path / "page.html")]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 1
    assert "success is '<script>'; expected a number" in capsys.readouterr().out
    for file in tmp_path.glob("*/done.json"):
        file.unlink()
    told(capsys, *words)
    assert "<b>$x$" not in (tmp_path / "page.html").read_text()
