"""Multirotors that take body rates and thrust: the rate loop against its closed form, and MuJoCo's rigid bodies."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from robo_rl.contract import Network, Provenance
from robo_rl.controllers.multirotor import Landing, RatesController
from robo_rl.sim.plants.multirotor.rates import STEP, FlyingMujocoByRates, MultirotorByRates
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.multirotor import CARD, GRAVITY
from robo_rl.sim.tasks.loading import load_task

PERIOD = 0.02
CARDS = ["x500", "crazyflie", "hummingbird"]


def told(rates: list[float], thrust: float, n: int = 1) -> dict[str, torch.Tensor]:
    return {"body_rate": torch.tensor([rates] * n), "thrust": torch.full((n, 1), thrust)}


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("card", CARDS)
def test_rates_follow_as_the_rate_gain_says(card: str, axis: int) -> None:
    """With rotors that follow at once, a part of 1 − K h of the error is left after each step of the loop. Within it
    the plant takes thrusts to change along a parabola, which is late by a sixth of a step."""
    plant = MultirotorByRates(load_robot(card, CARD), 1, PERIOD)
    for name in ("rise_time", "fall_time", "rotor_inertia"):
        plant.param(name)[:] = 0.0 if name == "rotor_inertia" else 1e-4
    gain, wanted = float(plant.nominal.rate_gain[0, axis]), 0.2
    command = told([wanted if i == axis else 0.0 for i in range(3)], GRAVITY)
    for count in range(1, 11):
        plant.step(command)
        left = (1 - gain * STEP) ** (count * round(PERIOD / STEP))
        assert float(plant.current.angular_velocity[0, axis]) == pytest.approx(wanted * (1 - left), rel=0.05)


@pytest.mark.parametrize(("slope", "thrust"), [(1.0, 9.81), (1.0, 12.0), (1.5, 11.0), (0.8, 8.0)])
def test_thrust_changes_as_its_slope_says(slope: float, thrust: float) -> None:
    plant = MultirotorByRates(load_robot("x500", CARD), 1, PERIOD)
    plant.param("thrust_slope")[:] = slope
    for name in ("rise_time", "fall_time"):
        plant.param(name)[:] = 1e-4
    plant.step(told([0.0] * 3, thrust))
    climb = float(plant.current.linear_velocity[0, 2])
    acting = PERIOD - STEP / 6  # Simpson's rule: the thrust of the first instant is the old one
    assert climb == pytest.approx(slope * (thrust - GRAVITY) * acting, rel=0.01, abs=1e-4)


def test_mujoco_moves_it_alike() -> None:
    card = load_robot("x500", CARD)
    ours, theirs = MultirotorByRates(card, 3, PERIOD), FlyingMujocoByRates(card, 3, PERIOD)
    commands = {
        "body_rate": torch.tensor([[1.0, -0.5, 0.2], [-0.3, 2.0, -0.4], [0.0, 0.0, 1.0]]),
        "thrust": torch.tensor([[9.0], [12.0], [14.0]]),
    }
    for _ in range(25):
        ours.step(commands)
        theirs.step(commands)
    for mine, other in zip(ours.current[:4], theirs.current[:4], strict=True):
        torch.testing.assert_close(mine, other, atol=0.01, rtol=0.01)


def test_a_period_that_is_no_multiple_of_the_loop_s_is_refused() -> None:
    with pytest.raises(ValueError, match=r"0\.012 s; expected a multiple of the rate loop's 0\.005 s"):
        MultirotorByRates(load_robot("x500", CARD), 1, 0.012).step(told([0.0] * 3, GRAVITY))


@pytest.mark.parametrize("card", CARDS)
def test_the_task_commands_hover_by_zero_and_its_limits_by_the_extremes(card: str) -> None:
    task = load_task("quadrotor-rates", card)
    assert torch.allclose(task.command(torch.zeros(1, 4))["thrust"], torch.tensor(GRAVITY))
    for action, side in ((-1e3, "lower"), (1e3, "upper")):
        given = task.command(torch.full((1, 4), action))
        for command in task.spec.commands:
            torch.testing.assert_close(given[command.name][0], torch.tensor(getattr(command, side)))


@pytest.mark.parametrize("card", CARDS)
def test_the_classical_controller_hovers_and_the_fallback_lands(card: str) -> None:
    task = load_task("quadrotor-rates", card)
    controller = task.controller()
    assert isinstance(controller, RatesController)
    plant = MultirotorByRates(task.card, 1, PERIOD, ground=True)
    plant.current.position[:] = torch.tensor([[0.3, -0.2, 1.0]])
    state = controller.first_state(1)
    goal = {"position_setpoint": np.zeros((1, 3), np.float32), "linear_velocity_setpoint": np.zeros((1, 3), np.float32)}
    goal["position_setpoint"][0, 2] = 1.0

    def fly(commands: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        plant.step({name: torch.from_numpy(np.asarray(value)).float() for name, value in commands.items()})
        return {name: value.numpy().copy() for name, value in plant.truth().items()}

    truth = {name: value.numpy().copy() for name, value in plant.truth().items()}
    for _ in range(400):
        commands, state = controller({**truth, **goal}, state)
        truth = fly(commands)
    np.testing.assert_allclose(truth["position"][0], [0.0, 0.0, 1.0], atol=0.02)
    landing = Landing(task.spec.contract(Provenance("apg", 0, 1, "0" * 64), Network((8,), "tanh", False)))
    assert Landing.suits(landing.contract)
    landing.ground = 0.0
    for count in range(1000):
        sent = landing.land({name: value[0] for name, value in truth.items()}, count * PERIOD)
        if sent is None:
            break
        landing.follow(sent)
        truth = fly({"body_rate": sent[None, :3], "thrust": sent[None, 3:]})
        assert truth["linear_velocity"][0, 2] > -1.0
    assert truth["position"][0, 2] < 0.06
