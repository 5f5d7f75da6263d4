"""What reports on legged robots have of their own: plots of what was recorded, and a table of rough ground."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from robo_rl.contract import Network, Provenance
from robo_rl.evaluate.evaluation import Conditions, StopPolicy, rollout, sweep
from robo_rl.policies.loading import Loaded
from robo_rl.report.findings import Findings, Subject
from robo_rl.report.general import figures_of, write
from robo_rl.report.legged import ground, motion
from robo_rl.report.legged.plots import gait, velocities
from robo_rl.sim.tasks.loading import load_task

TASK = load_task("go2-flat")
POLICY = Loaded("standing", TASK, StopPolicy(TASK))


@pytest.fixture(scope="module")
def findings() -> Findings:
    """Of a policy that stands still."""
    conditions = Conditions(episodes=20, seconds=1.5, recorded=1)
    episodes = rollout(TASK, POLICY.policy, conditions)
    contract = TASK.spec.contract(Provenance("ppo", 0, 1_500_000, "0" * 64), Network((8,), "elu", False))
    subject = Subject("runs/standing", POLICY, episodes, contract)
    few = Conditions(episodes=20, seconds=1.5)
    swept = sweep(TASK, POLICY.policy, {"payload": [0.0, 2.0]}, few)
    return Findings(TASK, conditions, [subject], sweeps={"policy": swept}, few=20)


@pytest.mark.slow
def test_velocities_and_gait_are_those_of_the_first_recorded_episode(findings: Findings) -> None:
    (subject,) = findings.subjects
    recording = subject.episodes.recording
    speeds, feet = (plot.figure for plot in motion(findings).plots)
    steps = round(subject.episodes.duration[0] / TASK.spec.control_period)
    turning, commanded = speeds.axes[2].lines
    np.testing.assert_array_equal(turning.get_ydata(), recording["angular_velocity"][:steps, 0, 2])
    np.testing.assert_array_equal(commanded.get_ydata(), recording["yaw_rate_command"][:steps, 0, 0])
    down = (recording["foot_force"][:steps, 0] > 1.0).sum() * TASK.spec.control_period
    bars = [path.get_extents().width for bar in feet.axes[0].collections for path in bar.get_paths()]
    assert sum(bars) == pytest.approx(down)


def test_velocities_are_drawn_in_the_heading_frame() -> None:
    """A robot that looks along world y and moves along world y moves forward."""
    still, half = np.zeros(4), np.sqrt(0.5)
    course = {
        "position": np.zeros((4, 3)),
        "orientation": np.tile([0.0, 0.0, half, half], (4, 1)),
        "linear_velocity": np.tile([0.1, 0.7, 0.0], (4, 1)),
        "angular_velocity": np.zeros((4, 3)),
        "linear_velocity_command": np.tile([0.5, -0.2], (4, 1)),
        "yaw_rate_command": np.zeros((4, 1)),
    }
    forward, left, turn = ([line.get_ydata() for line in axes.lines] for axes in velocities(course, 0.02).axes)
    np.testing.assert_allclose(forward, [still + 0.7, still + 0.5], atol=1e-12)
    np.testing.assert_allclose(left, [still - 0.1, still - 0.2], atol=1e-12)
    np.testing.assert_allclose(turn, [still, still], atol=1e-12)


def test_the_gait_diagram_has_a_bar_for_each_time_that_a_foot_is_on_the_ground() -> None:
    force = np.zeros((50, 2))
    force[5:10, 0] = force[20:50, 0] = 30.0
    force[:, 1] = 0.5  # too little to stand on
    (axes,) = gait(force, ("FR_foot", "FL_foot"), 0.02).axes
    bars = [[path.get_extents() for path in row.get_paths()] for row in axes.collections]
    assert [(bar.x0, bar.x1) for bar in bars[0]] == [pytest.approx((0.1, 0.2)), pytest.approx((0.4, 1.0))]
    assert bars[1] == []
    assert [label.get_text() for label in axes.get_yticklabels()] == ["FR", "FL"]


@pytest.mark.slow
def test_the_page_has_a_row_for_each_kind_of_rough_ground(findings: Findings, tmp_path: Path) -> None:
    crossed = {"walks": 4, "crossed_low": 0.3, "crossed_high": 0.95, "fell": 0.25}
    rows = [{"kind": "gaps", "height": f"{10 * k} cm", "crossed": 1.0 - 0.25 * k, **crossed} for k in (0, 1)]
    sections = [motion(findings), ground(findings, rows)]
    out = tmp_path / "report.html"
    assert write(findings, sections, out) == out.stat().st_size
    page = out.read_text()
    assert re.search(r"gaps</th>.*?100 %.*?0 cm.*?75 %.*?10 cm", page, re.DOTALL)
    assert "evaluate runs/standing --episodes 20 --seed 0 --ground" in page
    assert figures_of(findings, sections)["crossings"] == rows
