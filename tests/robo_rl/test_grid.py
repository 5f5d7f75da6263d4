"""Grids of conditions: the same totals for any number of processes, and cells that share no episode."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from robo_rl.cli import main
from robo_rl.evaluate.evaluation import Conditions, rollout
from robo_rl.policies import grid
from robo_rl.policies.grid import Target, axis, evaluate
from robo_rl.policies.loading import load

HOVER = Target("zoo:quadrotor-hover", seconds=0.5)
AXES = {"mass": [0.8, 1.2], "delay": [0.0, 0.02, 0.04]}


def test_values_are_read_as_a_range_or_a_list() -> None:
    assert axis("mass", "0.8:1.2:5") == pytest.approx([0.8, 0.9, 1.0, 1.1, 1.2])
    assert axis("delay", "0,0.02") == [0.0, 0.02]
    for wrong in ("", "a", "1:2", "0:1:0", "0:1:-2", "nan", "1:inf:3", "0:1:2:3"):
        with pytest.raises(ValueError, match="expected LOW:HIGH:COUNT"):
            axis("mass", wrong)


def test_a_grid_of_one_cell_is_an_evaluation() -> None:
    (cell,) = evaluate(HOVER, {"mass": [1.1]}, 200, 1)
    loaded = load(HOVER.target)
    alone = rollout(loaded.task, loaded.policy, Conditions(200, seconds=0.5, fixed={"mass": 1.1}))
    assert cell.success == alone.success.sum()
    assert grid.table(HOVER, {"mass": [1.1]}, [cell])["cells"][0]["success"] == alone.summary()["success"]
    for measure in alone.measures:
        key = measure.key
        assert grid.table(HOVER, {"mass": [1.1]}, [cell])["cells"][0][key] == pytest.approx(alone.summary()[key])


@pytest.mark.slow
def test_totals_are_the_same_for_any_number_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robo_rl.policies.grid.BATCH", 256)  # so that the episodes of a cell are two parts
    alone = evaluate(HOVER, AXES, 6 * 300, 1)
    assert alone == evaluate(HOVER, AXES, 6 * 300, 2)
    assert [cell.episodes for cell in alone] == [300] * 6


@pytest.mark.slow
def test_a_worker_that_is_killed_ends_the_evaluation_in_a_sentence() -> None:
    """As the kernel does when memory runs out."""
    words = ["evaluate", HOVER.target, "--grid", "mass", "0.8:1.2:4", "--episodes", "4000000", "--workers", "2"]
    running = subprocess.Popen([sys.executable, "-m", "robo_rl", *words], stderr=subprocess.PIPE, text=True)
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    end = time.monotonic() + 120
    while not (workers := [int(pid) for pid in children.read_text().split() if _evaluates(pid)]):
        assert time.monotonic() < end
        time.sleep(0.05)
    os.kill(workers[0], signal.SIGKILL)
    assert running.wait(timeout=120) == 1
    assert running.stderr is not None
    last = running.stderr.read().splitlines()[-1]
    assert "a process that evaluated was killed" in last


def _evaluates(pid: str) -> bool:
    try:
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # a compiler that has ended
        return False


def test_cells_do_not_draw_the_same_episodes() -> None:
    """Of equal conditions, two cells differ as two samples do."""
    first, second = evaluate(HOVER, {"mass": [1.0, 1.0]}, 400, 1)
    assert first.duration != second.duration or first.errors != second.errors


def test_a_grid_is_told_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--grid", "mass", "0.8:1.2:2", "delay", "0", "--episodes", "100", "--seconds", "0.5", "--json"]
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", "zoo:quadrotor-hover", *words, "--heat-map", str(tmp_path / "map.svg")])
    assert not ended.value.code
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [cell["values"] for cell in told["cells"]] == [{"mass": 0.8, "delay": 0.0}, {"mass": 1.2, "delay": 0.0}]
    assert told["episodes"] == 100
    assert "success rate" in (tmp_path / "map.svg").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--grid", "mas", "1"], "'mas' is not one of the task's ranges"),
        (["--grid", "mass", "0:1:200000"], "expected at most 10000"),
        (["--grid", "mass", "1", "--sweep"], "--sweep and --grid exclude each other"),
        (["--grid", "mass", "1", "--workers", "0"], "--workers is 0"),
    ],
)
def test_what_is_no_grid_is_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", "zoo:quadrotor-hover", *words])
    assert ended.value.code == 1
    assert said in capsys.readouterr().err
