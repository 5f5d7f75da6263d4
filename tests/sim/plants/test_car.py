"""The car's physics, against scipy's integrator, textbook formulas and another package's model."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from robo_rl.sim.plants.car import CarPlant, CarState, advance, arctangent, nominal_parameters, one_step
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.car import CARD, CarCard

PERIOD = 0.025
GRAVITY = 9.81


@pytest.fixture(scope="module")
def card() -> CarCard:
    return load_robot("f1tenth", CARD)


def start(speed: float, n: int = 1) -> CarState:
    zero = torch.zeros(n, 1)
    return CarState(torch.zeros(n, 2), zero, torch.tensor([[speed, 0.0]]).repeat(n, 1), zero, zero, zero)


def rates(card: CarCard, y: np.ndarray, steering: float, speed: float) -> list[float]:
    """The equations in the text of ``robo_rl.sim.plants.car``, in double precision, with numpy's own functions."""
    _, _, psi, vx, vy, r, delta, a = y
    m, g, lf, lr, base = card.mass, GRAVITY, card.front_axle, card.rear_axle, card.wheelbase

    def tyre(along: float, across: float, drive: float, load: float, stiffness: float) -> tuple[float, float]:
        grip = card.friction * load
        drive = float(np.clip(drive, -0.95 * grip, 0.95 * grip))
        angle = np.arctan(across / np.hypot(along, 0.3))
        return drive, -np.sqrt(grip**2 - drive**2) * np.sin(card.tyre_shape * np.arctan(stiffness * angle))

    loads = m * (g * lr - a * card.height) / base, m * (g * lf + a * card.height) / base
    c, s, side = np.cos(delta), np.sin(delta), vy + lf * r
    xf, yf = tyre(vx * c + side * s, side * c - vx * s, card.front_drive * m * a, loads[0], card.front_stiffness)
    xr, yr = tyre(vx, vy - lr * r, (1 - card.front_drive) * m * a, loads[1], card.rear_stiffness)
    resistance = card.drag * vx * abs(vx) + card.rolling * m * g * vx / np.hypot(vx, 0.3)
    forward, left = xf * c - yf * s, yf * c + xf * s
    demand = np.clip(
        card.speed_gain * (speed - vx),
        -card.acceleration,
        card.acceleration * min(1.0, card.power_speed / max(vx, 1e-6)),
    )
    return [
        vx * np.cos(psi) - vy * np.sin(psi),
        vx * np.sin(psi) + vy * np.cos(psi),
        r,
        (forward + xr - resistance) / m + vy * r,
        (left + yr) / m - vx * r,
        (lf * left - lr * yr) / card.inertia,
        np.clip((steering - delta) / card.steering_time, -card.steering_rate, card.steering_rate),
        (demand - a) / card.motor_time,
    ]


@pytest.mark.parametrize("speed", [0.0, 0.7, 3.0, 7.0])
def test_racing_for_two_seconds_ends_within_a_centimetre_of_the_exact_solution(card: CarCard, speed: float) -> None:
    plant, ids, random = CarPlant(card, 1, PERIOD), torch.arange(1), np.random.default_rng(int(speed))
    plant.set_state(ids, start(speed))
    y = np.array([0, 0, 0, speed, 0, 0, 0, 0], dtype=float)
    steering, wanted = 0.0, speed
    for k in range(80):
        if k % 8 == 0:  # turn in, open, brake, accelerate: five commands a second
            steering, wanted = random.uniform(-0.3, 0.3), speed + random.uniform(-1.0, 3.0)
        plant.step({"steering_angle": torch.tensor([[steering]]), "speed": torch.tensor([[wanted]])})
        y = solve_ivp(
            lambda _, y, s=steering, w=wanted: rates(card, y, s, w),
            (0, PERIOD), y, method="Radau", rtol=1e-8, atol=1e-10,
        ).y[:, -1]  # fmt: skip
    found = plant.state(ids)
    assert np.hypot(*(found.position[0].double().numpy() - y[:2])) < 0.01
    turned = (float(found.heading) - y[2] + math.pi) % (2 * math.pi) - math.pi
    assert abs(math.degrees(turned)) < 0.1


def test_one_step_per_period_is_stable_at_every_speed(card: CarCard) -> None:
    speeds = torch.linspace(-5.0, 20.0, 251)
    state = start(0.0, 251)._replace(velocity=torch.stack([speeds, torch.full_like(speeds, 0.5)], -1))
    p = nominal_parameters(card)
    for k in range(200):
        steering = torch.full((251, 1), 0.3 if k % 40 < 20 else -0.4)
        state = one_step(state, steering, speeds[:, None], p, PERIOD)
    assert all(torch.isfinite(part).all() for part in state)
    assert float(state.velocity.norm(dim=1).max()) < 20.5
    assert float(state.yaw_rate.abs().max()) < 15.0
    still = start(0.0)._replace(yaw_rate=torch.tensor([[2.0]]), velocity=torch.tensor([[0.0, 0.4]]))
    for _ in range(40):
        still = one_step(still, torch.tensor([[0.2]]), torch.zeros(1, 1), p, PERIOD)
    assert abs(float(still.yaw_rate)) < 1e-3
    assert float(still.velocity.abs().max()) < 0.05


@pytest.mark.parametrize(
    ("speed", "steering"),
    [
        (1.5, 0.2),
        pytest.param(3.0, 0.1, marks=pytest.mark.release),
        pytest.param(5.0, 0.05, marks=pytest.mark.release),
        (8.0, 0.01),
    ],
)
def test_gentle_cornering_has_the_yaw_rate_of_the_understeer_gradient(
    card: CarCard, speed: float, steering: float
) -> None:
    """Rajamani 2012, eq. 3.6: δ = L / R + K a_y, with cornering stiffness μ Z B C."""
    state, p = start(speed), nominal_parameters(card)._replace(drag=torch.zeros(1), rolling=torch.zeros(1))
    for _ in range(240):
        state = advance(state, torch.tensor([[steering]]), torch.tensor([[speed]]), p, PERIOD)
    weight, base = card.mass * GRAVITY, card.wheelbase
    front = card.friction * weight * card.rear_axle / base * card.front_stiffness * card.tyre_shape
    rear = card.friction * weight * card.front_axle / base * card.rear_stiffness * card.tyre_shape
    gradient = card.mass / base * (card.rear_axle / front - card.front_axle / rear)
    now = float(state.velocity[0, 0])
    expected = now * math.tan(steering) / (base + gradient * now**2)
    assert float(state.yaw_rate) == pytest.approx(expected, rel=0.03)


def test_braking_takes_the_distance_of_constant_deceleration(card: CarCard) -> None:
    speed = 7.0
    p = nominal_parameters(card)._replace(drag=torch.zeros(1), rolling=torch.zeros(1), height=torch.zeros(1))
    p = p._replace(front_drive=torch.tensor([card.rear_axle / card.wheelbase]), motor_time=torch.tensor([0.01]))
    p = p._replace(speed_gain=torch.tensor([100.0]), acceleration=torch.tensor([6.0]))
    state = start(speed)
    for _ in range(round(2.0 / 0.005)):
        state = advance(state, torch.zeros(1, 1), torch.zeros(1, 1), p, 0.005)
    assert float(state.position[0, 0]) == pytest.approx(speed**2 / (2 * 6.0) + speed * 0.01, rel=0.01)


def test_no_manoeuvre_corners_faster_than_friction_allows(card: CarCard) -> None:
    p, n = nominal_parameters(card), 64
    state = start(8.0, n)
    random = torch.Generator().manual_seed(0)
    for k in range(160):
        if k % 8 == 0:
            steering = torch.empty(n, 1).uniform_(-0.4, 0.4, generator=random)
        before = state
        state = advance(state, steering, torch.full((n, 1), 8.0), p, PERIOD)
        turned = torch.cat([before.heading, state.heading], 1)
        ways = [torch.stack([torch.cos(h), torch.sin(h)], -1) for h in turned.unbind(1)]
        world = [
            v.velocity[:, :1] * w + v.velocity[:, 1:] * torch.stack([-w[:, 1], w[:, 0]], -1)
            for v, w in zip((before, state), ways, strict=True)
        ]
        change = (world[1] - world[0]).norm(dim=1) / PERIOD
        assert float(change.max()) < 1.02 * (card.friction + card.rolling) * GRAVITY + card.drag * 70 / card.mass


def test_the_gradient_is_that_of_finite_differences(card: CarCard) -> None:
    p = nominal_parameters(card)

    def last(commands: torch.Tensor) -> torch.Tensor:
        state = start(4.0)
        for _ in range(8):
            state = advance(state, commands[:1, None], commands[1:, None], p, PERIOD)
        return state.position[0, 1] + 0.1 * state.heading[0, 0] + 0.1 * state.velocity[0, 0]

    commands = torch.tensor([0.1, 5.0], requires_grad=True)
    (gradient,) = torch.autograd.grad(last(commands), commands)
    with torch.no_grad():
        for i, step in enumerate((0.01, 0.1)):
            way = torch.eye(2)[i] * step
            difference = (last(commands + way) - last(commands - way)) / (2 * step)
            assert float(gradient[i]) == pytest.approx(float(difference), rel=0.02)


def test_the_compiled_step_is_the_one_of_torch(card: CarCard) -> None:
    plant, ids = CarPlant(card, 5, PERIOD), torch.arange(5)
    random = torch.Generator().manual_seed(1)
    state = CarState(*(torch.randn(part.shape, generator=random) for part in plant.current))
    plant.set_state(ids, state)
    commands = {"steering_angle": torch.linspace(-0.4, 0.4, 5)[:, None], "speed": torch.linspace(-1, 8, 5)[:, None]}
    plant.step(commands)
    expected = advance(state, *commands.values(), plant.parameters, PERIOD)
    for found, part in zip(plant.state(ids), expected, strict=True):
        torch.testing.assert_close(found, part, rtol=1e-5, atol=1e-5)


def test_arctangent_is_that_of_the_library() -> None:
    x = torch.linspace(-30, 30, 10_001)
    assert float((arctangent(x) - torch.atan(x)).abs().max()) < 3e-7
