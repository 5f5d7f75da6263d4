"""Current control of a synchronous machine: its set-points, its guard, and where its policy begins."""

from __future__ import annotations

import math

import pytest
import torch

from robo_rl.controllers.motor import PmsmModel
from robo_rl.evaluate.evaluation import Conditions, ControllerPolicy, GraphPolicy, rollout
from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.tasks.checking import check
from robo_rl.sim.tasks.loading import load_task
from robo_rl.sim.tasks.motor import current as motor_current
from robo_rl.sim.tasks.motor.current import FARTHEST, FEASIBLE, PmsmCurrent

TASK = load_task("pmsm-current")
assert isinstance(TASK, PmsmCurrent)


@pytest.mark.parametrize("robot", ["traction_pmsm", "cheetah_bldc"])
def test_it_fits_both_machines(robot: str) -> None:
    check(load_task("pmsm-current", robot))


def test_pointers_show_the_current_and_its_set_point_on_one_scale() -> None:
    truth = VecEnv(TASK, 4, seed=0).truth()
    is_, should = TASK.markers(truth)
    per_ampere = should.vector[:, :2] / truth["current_setpoint"]
    assert float(per_ampere.min()) > 0
    torch.testing.assert_close(per_ampere, per_ampere[0, 0].expand_as(per_ampere))
    torch.testing.assert_close(is_.vector[:, :2], per_ampere[0, 0] * truth["stator_current"])


def test_a_dc_motor_is_refused_by_name() -> None:
    with pytest.raises(CardError, match=r"machine is 'dc'; expected one of \['pmsm'\]"):
        load_task("pmsm-current", "gearmotor_37d")


def test_set_points_are_such_as_the_voltage_holds() -> None:
    env = VecEnv(TASK, 512, seed=3, evaluation=True)
    card, drawn = TASK.card, env.drawn
    for time in (0.0, 0.02, 0.055):
        moment = torch.full((512,), time)
        d, q = TASK.reference(moment, env.draws.goal)["current_setpoint"].unbind(-1)
        assert torch.hypot(d, q).max() <= FARTHEST * card.current_nominal + 0.1
        omega = card.pole_pairs * (card.speed_max * drawn["speed"] + drawn["acceleration"] * moment)
        u_d = card.resistance * d - omega * card.inductance_q * q
        u_q = card.resistance * q + omega * (card.inductance_d * d + card.flux)
        most = FEASIBLE * drawn["supply_voltage"] * card.supply_voltage / math.sqrt(3)
        assert (torch.hypot(u_d, u_q) <= most + 0.5).all()


def test_an_untrained_policy_is_deadbeat_control() -> None:
    policy = PolicyGraph(TASK, (8,))
    with torch.no_grad():
        for parameter in policy.network.parameters():
            parameter.zero_()
    conditions = Conditions(episodes=64, seed=5)
    found = rollout(TASK, GraphPolicy(policy), conditions, None).summary()
    expected = rollout(TASK, ControllerPolicy(TASK), conditions, None).summary()
    key = "current_error_mean_A"
    assert found[key] == pytest.approx(expected[key], rel=1e-3)


def times_over(monkeypatch: pytest.MonkeyPatch, guarded: bool = True) -> int:
    """How often the current passes its limit under random voltages, as large as the inverter has, for 1 ms each."""
    monkeypatch.setattr(motor_current, "CORRECTION", 1.0)
    monkeypatch.setattr(PmsmModel, "deadbeat", lambda self, current, goal, omega: (0.0 * omega, 0.0 * omega))
    if not guarded:
        monkeypatch.setattr(PmsmCurrent, "guarded", lambda self, voltage, *rest: voltage)
    env = VecEnv(TASK, 256, seed=1, evaluation=True)
    memory, signals = TASK.first_memory(256), env.reset()
    generator = torch.Generator().manual_seed(0)
    action, over = torch.zeros(256, 2), 0
    for step in range(300):
        if step % 10 == 0:
            action = 20.0 * torch.randn(256, 2, generator=generator)
        commands, memory = TASK.act(action, signals, memory)
        step_output = env.step(commands)
        signals, over = step_output.signals, over + int(step_output.failed.sum())
    return over


def test_whatever_a_policy_wants_the_guard_keeps_the_current_within_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert times_over(monkeypatch) == 0


def test_without_the_guard_it_would_pass_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert times_over(monkeypatch, guarded=False) > 100
