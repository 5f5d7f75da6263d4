"""What diff-nav observes, against plain geometry."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.mobile_base import CARD
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.checking import require_contract
from robo_rl.sim.tasks.mobile_base.follow import DiffFollow
from robo_rl.sim.tasks.mobile_base.maze import AgvMaze
from robo_rl.sim.tasks.mobile_base.navigate import DiffNav


def test_it_observes_how_far_the_robot_has_moved_and_turned_since_the_scan_came() -> None:
    task = DiffNav()
    env = VecEnv(task, 4, seed=1)
    policy = PolicyGraph(task)
    state, came = policy.initial_state(4), [None] * 4
    scans = torch.zeros_like(env.signals()["scan"])
    held = 0
    for _ in range(15):
        signals = env.signals()
        seen = task.observe(signals, policy.unpack(state))[:, -4:]
        x, y = signals["position"].double().unbind(1)
        heading = 2 * torch.atan2(signals["orientation"][:, 2], signals["orientation"][:, 3]).double()
        for e in range(4):
            if not torch.equal(signals["scan"][e], scans[e]):
                came[e] = (float(x[e]), float(y[e]), float(heading[e]))
            dx, dy, turned = float(x[e]) - came[e][0], float(y[e]) - came[e][1], float(heading[e]) - came[e][2]
            cosine, sine = np.cos(float(heading[e])), np.sin(float(heading[e]))
            expected = [(cosine * dx + sine * dy) / 0.05, (cosine * dy - sine * dx) / 0.05]
            expected += [2 * np.sin(turned), 1 - np.cos(turned)]
            assert seen[e].tolist() == pytest.approx(expected, abs=1e-4)
            held += dx != 0.0
        scans = signals["scan"].clone()
        _, state = policy(signals, state)
        env.step({"forward_speed": torch.full((4, 1), 0.2), "turn_rate": torch.full((4, 1), 1.0)})
    assert held > 15


@pytest.mark.parametrize(("task", "period"), [(DiffNav, 0.1), (DiffFollow, 0.1), (AgvMaze, 0.2)])
def test_a_lidar_that_is_faster_than_the_policy_has_a_scan_for_every_step(task: type[Task], period: float) -> None:
    """A Hokuyo turns 40 times a second: a contract has no period below that of control."""
    for turn, told in ((0.025, None), (0.5, 0.5)):
        made = task(dataclasses.replace(load_robot("turtlebot3", CARD), lidar_period=turn))
        assert made.spec.control_period == period
        require_contract(made)
        (scan,) = (signal for signal in made.spec.signals if signal.name == "scan")
        assert scan.period == told


def test_what_is_left_where_no_way_leads_on_is_the_straight_line() -> None:
    """A fast base that drove into a wall has its middle where no robot fits: 1e6 m were left, and were in means."""
    truth = {
        "path": torch.tensor([[3.0], [1e6]]), "to_goal": torch.tensor([[1.5, 2.0], [0.3, 0.4]]),
        "time": torch.ones(2, 1),
    }  # fmt: skip
    assert DiffNav().errors(truth)["path_left"].tolist() == pytest.approx([3.0, 0.5])


def test_what_could_not_be_exported_is_refused_before_it_is_trained() -> None:
    task = DiffNav()
    scan = next(signal for signal in task.spec.signals if signal.name == "scan")
    signals = (dataclasses.replace(scan, period=0.01), *(s for s in task.spec.signals if s is not scan))
    task.spec = dataclasses.replace(task.spec, signals=signals)
    with pytest.raises(ValueError, match=r"'diff-nav' for the robot 'turtlebot3' can't be exported: .*period is 0\.01"):
        require_contract(task)
