"""A mobile base against scipy's integration and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.mobile_base import BaseState, advance, nominal_parameters
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.mobile_base import CARD
from robo_rl.sim.tasks.mobile_base.navigate import DiffNav

CARD_ = load_robot("turtlebot3", CARD)
PERIOD = 0.1


def rest(n: int = 1) -> BaseState:
    return BaseState(*(torch.zeros(n, k) for k in (2, 1, 1, 1, 3)))


def test_five_seconds_of_changing_commands_end_within_a_millimetre_of_solve_ivp() -> None:
    p = nominal_parameters(CARD_)._replace(speed_scale=torch.tensor([1.02]), turn_scale=torch.tensor([0.97]))
    random = np.random.default_rng(0)
    commands = np.column_stack([random.uniform(-0.1, 0.2, 50), random.uniform(-0.9, 0.9, 50)])
    commands[:, 0] = np.clip(commands[:, 0], -0.14, 0.14)  # within what both wheels can turn
    state = rest()
    for v, w in commands:
        given = torch.tensor([[v]], dtype=torch.float32), torch.tensor([[w]], dtype=torch.float32)
        state = advance(state, *given, p, PERIOD)

    def rates(time: float, s: np.ndarray, v: float, w: float) -> list[float]:
        dv = np.clip((v - s[3]) / CARD_.motor_time, -CARD_.acceleration, CARD_.acceleration)
        dw = np.clip((w - s[4]) / CARD_.motor_time, -CARD_.turn_acceleration, CARD_.turn_acceleration)
        return [1.02 * s[3] * math.cos(s[2]), 1.02 * s[3] * math.sin(s[2]), 0.97 * s[4], dv, dw]

    exact = np.zeros(5)
    for v, w in commands:
        exact = solve_ivp(rates, (0, PERIOD), exact, args=(v, w), rtol=1e-9, atol=1e-10, max_step=0.01).y[:, -1]
    np.testing.assert_allclose(state.position[0], exact[:2], atol=1e-3)
    assert float(state.heading) == pytest.approx(exact[2], abs=math.radians(0.5))


def test_at_steady_speed_it_drives_a_circle() -> None:
    p, state = nominal_parameters(CARD_), rest()
    speed, turn = torch.full((1, 1), 0.1), torch.full((1, 1), 0.5)
    for _ in range(20):
        state = advance(state, speed, turn, p, PERIOD)
    places = []
    for _ in range(126):
        state = advance(state, speed, turn, p, PERIOD)
        places.append(state.position[0].numpy().copy())
    around = np.array(places)
    middle = 0.5 * (around.max(0) + around.min(0))
    np.testing.assert_allclose(np.hypot(*(around - middle).T), 0.1 / 0.5, rtol=5e-3)


def test_no_wheel_turns_faster_than_it_can() -> None:
    p, state = nominal_parameters(CARD_), rest()
    for _ in range(50):
        state = advance(state, torch.full((1, 1), 0.22), torch.full((1, 1), 1.5), p, PERIOD)
    half = 0.5 * CARD_.wheel_separation
    left, right = float(state.speed - half * state.turn_rate), float(state.speed + half * state.turn_rate)
    assert right == pytest.approx(0.22, rel=1e-3)
    assert left == pytest.approx(0.22 - half * 1.5, rel=1e-3)


def test_odometry_drifts_by_the_scales_of_speed_and_turn_rate() -> None:
    p = nominal_parameters(CARD_)._replace(speed_scale=torch.tensor([1.02]))
    state = rest()
    for _ in range(100):
        state = advance(state, torch.full((1, 1), 0.2), torch.zeros(1, 1), p, PERIOD)
    assert float(state.position[0, 0] / state.odometer[0, 0]) == pytest.approx(1.02, rel=1e-4)


def test_a_state_that_is_restored_goes_on_bit_by_bit() -> None:
    env = VecEnv(DiffNav(), 8, 0)
    given = {"forward_speed": torch.full((8, 1), 0.15), "turn_rate": torch.full((8, 1), 0.3)}
    for _ in range(5):
        env.step(given)
    ids = torch.arange(8)
    saved = env.plant.save()
    saved = {name: value.clone() for name, value in saved.items()}
    state = env.state(ids)

    def driven() -> torch.Tensor:
        for _ in range(10):
            step = env.step(given)
        return torch.cat([env.plant.truth()["scan"], step.signals["scan"], step.reward[:, None]], 1).clone()

    first = driven()
    env.plant.load(saved)
    env.set_state(ids, state)
    assert torch.equal(driven(), first)
