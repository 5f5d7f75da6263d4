"""The report page of a robot on legs: its figures are those of the walks, and it shows what it was given."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import numpy as np
import pytest

from robo_rl.contract import Network, Provenance
from robo_rl.evaluation import Conditions, StopPolicy, rollout, sweep
from robo_rl.loading import Loaded
from robo_rl.report.legged import Findings, read_transfer, write
from robo_rl.report.legged_plots import falls, gait
from robo_rl.report.page import Subject
from robo_rl.transfer import kept
from sim.tasks.loading import load_task

TASK = load_task("go2-flat")
PILOT = Loaded("standing", TASK, StopPolicy(TASK))


def transfer_file(folder: Path, **changed: object) -> Path:
    """What 'robo-rl transfer --json' prints, after other lines."""
    home = {"success": 1.0, "success_low": 0.9, "success_high": 1.0, "episodes": 40}
    there = {"success": 0.9, "success_low": 0.8, "success_high": 0.95, "episodes": 40}
    row = {"engine": "bullet", "summary": "PyBullet", **there, **kept(home, there)}
    steps = [{"value": value, **there, **kept(home, there)} for value in (3.0, 4.0)]
    found = {"task": "go2-flat", "robot": "go2", "home": home, "engines": [row], "perturbations": {"payload": steps}}
    path = folder / "transfer.json"
    path.write_text("go2-flat: 40/40\n" + json.dumps(found | changed))
    return path


@pytest.mark.slow
def test_the_page_shows_the_figures_of_the_walks_and_of_the_transfer(tmp_path: Path) -> None:
    conditions = Conditions(episodes=20, seconds=1.5, recorded=1)
    flights = rollout(TASK, PILOT.policy, conditions)
    made, network = Provenance("ppo", 0, 1_500_000, "0" * 64), Network((8,), "elu", False)
    metrics = [
        {"environment_steps": 1000.0 * k, "reward": 0.1 * k, "alive": 1.0, "level/push/x": 0.2 * k} for k in range(3)
    ]
    subject = Subject("runs/standing", PILOT, flights, TASK.spec.contract(made, network), metrics=metrics)
    swept = sweep(TASK, PILOT.policy, {"payload": [0.0, 2.0]}, Conditions(episodes=20, seconds=1.5))
    there = read_transfer(transfer_file(tmp_path), TASK)
    crossed = {"walks": 4, "crossed_low": 0.3, "crossed_high": 0.95, "fell": 0.25}
    grounds = [{"kind": "gaps", "height": f"{10 * k} cm", "crossed": 1.0 - 0.25 * k, **crossed} for k in (0, 1)]
    findings = Findings(TASK, conditions, [subject], swept, 20, there, grounds)
    out = tmp_path / "report.html"
    assert write(findings, out) == out.stat().st_size
    page = out.read_text()
    shown = re.search(r'id="success">(.*?)</b>', page)
    assert shown is not None
    assert html.unescape(shown[1]) == f"{100 * float(np.mean(flights.survived)):.1f} %"
    told = re.search(r'id="figures">(.*?)</script>', page, re.DOTALL)
    assert told is not None
    assert json.loads(told[1])["least_kept"] == pytest.approx(0.9)
    assert re.search(r"gaps</th>.*?100 %.*?0 cm.*?75 %.*?10 cm", page, re.DOTALL)
    assert "evaluate runs/standing --episodes 20 --seed 0 --ground" in page
    assert "level of the curriculum" in page
    assert "PyBullet" in page
    assert set(re.findall(r'(?:src|href)="(\w*)', page)) <= {"data", ""}  # nothing from anywhere else


def test_the_gait_diagram_has_a_bar_for_each_time_that_a_foot_is_on_the_ground() -> None:
    force = np.zeros((50, 2))
    force[5:10, 0] = force[20:50, 0] = 30.0
    force[:, 1] = 0.5  # too little to stand on
    both = gait(force, ("FR_foot", "FL_foot"), 0.02)
    force[12:15, 0] = 30.0
    more = gait(force, ("FR_foot", "FL_foot"), 0.02)
    assert more.count("<path d=") == both.count("<path d=") + 1


def test_the_plot_of_falls_takes_the_first_fall_before_the_second() -> None:
    drawn = falls(np.array([True, False, False]), np.array([20.0, 5.0, 2.0]), 20.0)
    assert drawn.startswith("<svg")
    assert "still walking" in drawn


def test_a_transfer_of_another_task_or_a_broken_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"transfer\.json: it is of go2-rough and go2; expected what 'robo-rl transfer"
    ):
        read_transfer(transfer_file(tmp_path, task="go2-rough"), TASK)
    broken = tmp_path / "broken.json"
    broken.write_text("flying 3/4\n")
    with pytest.raises(
        ValueError, match=r"broken\.json: JSONDecodeError.*expected what 'robo-rl transfer --json' prints"
    ):
        read_transfer(broken, TASK)
    with pytest.raises(ValueError, match="there is no such file"):
        read_transfer(tmp_path / "none.json", TASK)
