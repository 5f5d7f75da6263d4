"""An omnidirectional base against the kinematics of textbooks, scipy's integration and closed forms of slip."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from robo_rl.sim.accelerate.fuse import Fused, fuse
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.mobile_base import STEP
from robo_rl.sim.plants.omni_wheels import (
    GRAVITY,
    Contact,
    OmniParameters,
    OmniState,
    advance,
    contacts,
    nominal_parameters,
)
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.omni_base import CARD, OmniBaseCard
from robo_rl.sim.tasks.omni_base.navigate import OmniNav

XL = load_robot("rosbot_xl", CARD)
THREE = tuple(math.radians(angle) for angle in (60.0, 180.0, 300.0))
KIWI = dataclasses.replace(
    XL, wheel_x=tuple(0.2 * math.cos(a) for a in THREE), wheel_y=tuple(0.2 * math.sin(a) for a in THREE),
    wheel_heading=tuple(a + math.pi / 2 for a in THREE), roller_angle=(0.0, 0.0, 0.0),
)  # fmt: skip
"""Three omni wheels around a circle, each rolling along it."""
CARDS = {"mecanum": XL, "three": KIWI}


def rest(n: int = 1) -> OmniState:
    return OmniState(*(torch.zeros(n, k) for k in (2, 1, 2, 1, 3, 3)))


@functools.cache
def compiled(wheels: tuple[Contact, ...]) -> Fused:
    def step(state: OmniState, command: torch.Tensor, parameters: OmniParameters) -> OmniState:
        return advance(state, command.split(1, 1), parameters, wheels)

    return fuse(step)


def driven(
    card: OmniBaseCard, twists: np.ndarray, steps: int, state: OmniState | None = None, **parameters: float
) -> OmniState:
    """The state after ``steps`` under each of ``twists`` (k, 3)."""
    state, step = state or rest(), compiled(contacts(card))
    changed = {name: torch.tensor([value]) for name, value in parameters.items()}
    p = nominal_parameters(card)._replace(**changed)
    for twist in twists:
        given = torch.tensor(twist[None], dtype=torch.float32)
        for _ in range(steps):
            state = step(state, given, p)
    return state


def test_rims_turn_as_textbooks_have_it_for_mecanum_wheels_and_for_three_omni_wheels() -> None:
    random = np.random.default_rng(0)
    for vx, vy, w in random.uniform(-1, 1, (20, 3)):
        lever = 0.085 + 0.135  # half of what separates the wheels, along and across
        expected = [vx - vy - lever * w, vx + vy + lever * w, vx + vy - lever * w, vx - vy + lever * w]
        np.testing.assert_allclose(XL.speeds_of_wheels @ [vx, vy, w], expected, atol=1e-12)
        expected = [-math.sin(a) * vx + math.cos(a) * vy + 0.2 * w for a in THREE]
        np.testing.assert_allclose(KIWI.speeds_of_wheels @ [vx, vy, w], expected, atol=1e-12)


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
def test_without_resistance_of_the_rollers_it_moves_as_its_wheels_turn(card: OmniBaseCard) -> None:
    """Rims turn as for a twist; the least-squares twist of these rims is the robot's."""
    twist = np.array([0.2, -0.15, 0.4])
    state = driven(card, twist[None], 300, roller_friction=0.0)
    rims = card.speeds_of_wheels @ np.concatenate([state.speed[0], state.turn_rate[0]])
    expected, *_ = np.linalg.lstsq(card.speeds_of_wheels, rims, rcond=None)
    np.testing.assert_allclose(expected, twist, atol=1e-5)
    np.testing.assert_allclose(state.velocity[0], expected, atol=2e-3)  # turning, it is pushed outwards


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
def test_three_seconds_of_changing_commands_end_within_millimetres_of_solve_ivp(card: OmniBaseCard) -> None:
    random = np.random.default_rng(1)
    commands = random.uniform([-0.25, -0.25, -0.5], [0.25, 0.25, 0.5], (30, 3))
    state = driven(card, commands, 10, speed_scale=1.02, turn_scale=0.97)
    speeds, inertia, most = card.speeds_of_wheels, card.gyration**2, [1.0, 1.0, 4.0]
    places = np.array([card.wheel_x, card.wheel_y])
    ways = np.array([[math.cos(a), math.sin(a)] for a in card.wheel_heading])
    axles = np.array([[math.cos(a), math.sin(a)] for a in np.add(card.wheel_heading, card.roller_angle)])

    def rates(time: float, s: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        heading, wheels, (vx, vy, w) = s[2], s[3:6], s[6:9]
        change = np.clip((wanted - wheels) / card.motor_time, [-x for x in most], most)
        rims = speeds @ (wheels * [1.02, 1.02, 0.97])
        hubs = np.array([vx - w * places[1], vy + w * places[0]]).T
        force, torque = np.zeros(2), 0.0
        for hub, rim, way, axle, place in zip(hubs, rims, ways, axles, places.T, strict=True):
            slip = hub - rim * way
            for axis, friction in ((axle, card.grip), (np.array([-axle[1], axle[0]]), card.roller_friction)):
                along = slip @ axis
                f = -GRAVITY / len(rims) * friction * along / math.hypot(along, card.slip_speed) * axis
                force, torque = force + f, torque + place[0] * f[1] - place[1] * f[0]
        cosine, sine = math.cos(heading), math.sin(heading)
        moved = [cosine * vx - sine * vy, sine * vx + cosine * vy, w]
        return np.array([*moved, *change, force[0] + w * vy, force[1] - w * vx, torque / inertia])

    exact = np.zeros(9)
    for wanted in commands:
        exact = solve_ivp(rates, (0, 0.1), exact, "LSODA", args=(wanted,), rtol=1e-7, atol=1e-9).y[:, -1]
    np.testing.assert_allclose(state.position[0], exact[:2], atol=3e-3)
    assert float(state.heading) == pytest.approx(exact[2], abs=math.radians(0.5))
    np.testing.assert_allclose(state.velocity[0], exact[6:], atol=0.01)


def test_mecanum_wheels_lose_speed_to_the_side_by_the_closed_form_and_none_forward() -> None:
    """To the side rollers roll, each with μ_r N across them; along them μ s / √(s² + u₀²) holds that at a slip s."""
    ahead, aside = driven(XL, np.array([[0.4, 0.0, 0.0]]), 400), driven(XL, np.array([[0.0, 0.4, 0.0]]), 400)
    assert float(ahead.velocity[0, 0]) == pytest.approx(0.4, abs=1e-4)
    across = XL.roller_friction / math.sqrt(1 + (XL.slip_speed / (0.4 * math.sqrt(2))) ** 2)
    slip = XL.slip_speed * across / math.sqrt(XL.grip**2 - across**2)
    assert float(aside.velocity[0, 1]) == pytest.approx(0.4 - slip * math.sqrt(2), abs=1e-3)
    assert float(aside.odometer[0, 1] - aside.position[0, 1]) == pytest.approx(slip * math.sqrt(2) * 4.0, abs=0.015)


def test_on_a_slippery_floor_it_gains_speed_no_faster_than_grip_allows() -> None:
    state = driven(XL, np.array([[0.5, 0.0, 0.0]]), 20, grip=0.05, roller_friction=0.0)
    assert float(state.speed[0, 0]) > 0.15
    assert float(state.velocity[0, 0]) <= 0.05 * GRAVITY * 20 * STEP + 1e-6


def test_no_wheel_turns_faster_than_it_can_and_the_direction_stays() -> None:
    state = driven(XL, np.array([[0.8, 0.8, 0.0]]), 300)
    rims = XL.speeds_of_wheels @ np.concatenate([state.speed[0], state.turn_rate[0]])
    assert np.abs(rims).max() == pytest.approx(XL.speed_max, rel=1e-3)
    assert float(state.speed[0, 0]) == pytest.approx(float(state.speed[0, 1]), rel=1e-4)


def test_it_is_stable_from_any_speed_and_comes_to_rest() -> None:
    """Hundred times as fast as it can drive, with the least slip speed: linear equations at any step."""
    state, energy = rest()._replace(velocity=torch.tensor([[80.0, -50.0, 30.0]])), math.inf
    for _ in range(150):
        state = driven(XL, np.zeros((1, 3)), 20, state, slip_speed=1e-3)
        v = state.velocity[0].double()
        now = float(v[:2].square().sum() + (XL.gyration * v[2]) ** 2)
        assert now <= energy * (1 + 1e-6)
        energy = now
    assert energy < 1e-6


def test_its_gradient_is_that_of_differences_and_the_compiled_step_is_the_same() -> None:
    wheels, p = contacts(XL), nominal_parameters(XL)

    def end(command: torch.Tensor) -> torch.Tensor:
        """Where it is after ten steps at a command (1, 3)."""
        state = OmniState(*(part.to(command.dtype) for part in rest()))
        figures = type(p)(*(x.to(command.dtype) for x in p))
        for _ in range(10):
            state = advance(state, command.split(1, 1), figures, wheels)
        return state.position[0, 0] + 2 * state.position[0, 1] + 3 * state.heading[0, 0]

    command = torch.tensor([[0.05, -0.08, 0.1]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(end, (command,), atol=1e-6)

    state, given = driven(XL, np.array([[0.3, 0.2, 0.5]]), 20), torch.tensor([[0.1, 0.2, -0.4]])
    plain = advance(state, given.split(1, 1), p, wheels)
    for a, b in zip(plain, compiled(wheels)(state, given, p), strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)


def test_a_state_that_is_restored_goes_on_bit_by_bit() -> None:
    env = VecEnv(OmniNav(), 4, 0)
    names = ("forward_speed", "lateral_speed", "turn_rate")
    given = {name: torch.full((4, 1), x) for name, x in zip(names, (0.3, -0.2, 0.3), strict=True)}
    for _ in range(5):
        env.step(given)
    ids = torch.arange(4)
    saved, state = {name: value.clone() for name, value in env.plant.save().items()}, env.state(ids)

    def after() -> torch.Tensor:
        for _ in range(5):
            step = env.step(given)
        return torch.cat([env.plant.truth()["scan"], env.plant.truth()["velocity"], step.reward[:, None]], 1).clone()

    first = after()
    env.plant.load(saved)
    env.set_state(ids, state)
    assert torch.equal(after(), first)
