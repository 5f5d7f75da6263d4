"""Speed control of motors: what the symmetric optimum promises, and where policies begin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from robo_rl.controllers.motor import SpeedPI, SymmetricOptimum
from robo_rl.evaluate.evaluation import Conditions, ControllerPolicy, GraphPolicy, rollout
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks.checking import check
from robo_rl.sim.tasks.loading import load_task
from robo_rl.sim.tasks.motor.speed import CURRENT_TIME, PERIOD


@pytest.mark.parametrize(("task", "robot"), [("pmsm-speed", None), ("pmsm-speed", "cheetah_bldc"), ("dc-speed", None)])
def test_it_fits_the_motors(task: str, robot: str | None) -> None:
    check(load_task(task, robot))


def speeds(task: Any, setpoint: float, load: float, steps: int) -> np.ndarray:
    """(steps,) rad/s under the symmetric optimum, without noise; the load comes half-way."""
    card, controller = task.card, SpeedPI(SymmetricOptimum.of(task.card.facts(), PERIOD, CURRENT_TIME, task.limit))
    drive = task.make_plant(1)
    drive.param("load")[:], drive.param("load_time")[:] = load * card.torque_factor * task.limit, 0.5 * steps * PERIOD
    state, found = torch.from_numpy(controller.first_state(1)), []
    for _ in range(steps):
        signals = {"rotor_speed": drive.current.rotor_speed.clone(), "rotor_speed_setpoint": torch.tensor([[setpoint]])}
        commands, state = controller(signals, state)
        drive.step(commands)
        found.append(float(drive.current.rotor_speed))
    return np.array(found)


def test_the_symmetric_optimum_overshoots_by_some_8_percent_and_leaves_no_error_under_a_load() -> None:
    """8.1 % with a set-point filter of 4 T (Schröder 2015, 3.2), for a small step that needs no limit."""
    found = speeds(load_task("pmsm-speed"), 2.0, 0.2, 600) / 2.0
    assert 1.02 < found[:300].max() < 1.15
    assert found[250:300] == pytest.approx(1.0, abs=0.01)
    assert found[300:].min() < 0.99
    assert found[-20:] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("name", ["pmsm-speed", "dc-speed"])
def test_an_untrained_policy_is_pi_control(name: str) -> None:
    task = load_task(name)
    policy = PolicyGraph(task, (8,))
    with torch.no_grad():
        for parameter in policy.network.parameters():
            parameter.zero_()
    conditions = Conditions(episodes=32, seed=5)
    found, expected = (
        rollout(task, one, conditions, None).summary()["speed_error_mean_rad_s"]
        for one in (GraphPolicy(policy), ControllerPolicy(task))
    )
    assert found == pytest.approx(expected, rel=1e-3)
