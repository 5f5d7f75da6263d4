"""The motion of a cart with a pole, differentiable, for thousands of them at once.

With x the cart's place, θ the pole's angle from upright (positive when it leans towards +x), M and m the masses, l half
of the pole's length, and J = 4/3 m l² about the pivot (Florian 2007, Correct equations for the dynamics of the
cart-pole system):

    (M + m) ẍ + m l (θ̈ cos θ − θ̇² sin θ) = F − b ẋ
    J θ̈ + m l ẍ cos θ = m g l sin θ

Classical Runge-Kutta, two steps per control period.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import mujoco
import numpy as np
import torch
from cartpole import CartPoleCard
from torch import Tensor

from robo_rl.sim.accelerate.fuse import empty_block, fuse

GRAVITY = 9.81  # m/s²
SUBSTEPS = 2


class State(NamedTuple):
    """Of n carts, (n, 1) each."""

    cart_position: Tensor
    """m."""
    cart_velocity: Tensor
    """m/s."""
    pole_angle: Tensor
    """rad from upright."""
    pole_rate: Tensor
    """rad/s."""


class Parameters(NamedTuple):
    """(n,) where they differ between carts, else (1,)."""

    cart_mass: Tensor
    """kg."""
    pole_mass: Tensor
    """kg."""
    pole_length: Tensor
    """m, half of the pole's."""
    friction: Tensor
    """N s/m."""
    gain: Tensor
    """Factor on the motor's force: battery, wear."""
    push: Tensor
    """N, on the cart from outside."""


def advance(state: State, force: Any, parameters: Parameters, period: float) -> State:
    """The state a control period (s) later, under a force (n, 1) N."""
    x, v, angle, rate = (part[:, 0] for part in state)
    now = (x, v, angle, rate)
    applied = parameters.gain * force[:, 0] + parameters.push
    h = period / SUBSTEPS
    for _ in range(SUBSTEPS):
        k1 = _derivative(now, applied, parameters)
        k2 = _derivative(_moved(now, k1, h / 2), applied, parameters)
        k3 = _derivative(_moved(now, k2, h / 2), applied, parameters)
        k4 = _derivative(_moved(now, k3, h), applied, parameters)
        now = tuple(s + h / 6 * (a + 2 * b + 2 * c + d) for s, a, b, c, d in zip(now, k1, k2, k3, k4, strict=True))
    return State(*(part[:, None] for part in now))


def _moved(state: tuple, rate: tuple, time: float) -> tuple:
    return tuple(s + time * r for s, r in zip(state, rate, strict=True))


def _derivative(state: tuple, force: Any, p: Parameters) -> tuple:
    _, v, angle, rate = state
    sine, cosine = torch.sin(angle), torch.cos(angle)
    lever = p.pole_mass * p.pole_length
    inertia = (4.0 / 3.0) * lever * p.pole_length
    pull = force - p.friction * v + lever * rate * rate * sine
    fall = lever * GRAVITY * sine
    mass = p.cart_mass + p.pole_mass
    per_determinant = 1.0 / (mass * inertia - (lever * cosine) * (lever * cosine))
    acceleration = (inertia * pull - lever * cosine * fall) * per_determinant
    turning = (mass * fall - lever * cosine * pull) * per_determinant
    return v, acceleration, rate, turning


class CartPolePlant:
    """n carts with state and parameters, stepped in place at one control rate."""

    def __init__(self, card: CartPoleCard, n: int, period: float, device: Any = "cpu") -> None:
        """``period`` is the control period in s."""
        self.card, self.n, self.period, self.device = card, n, period, torch.device(device)
        figures = (card.cart_mass, card.pole_mass, card.pole_length, card.friction, 1.0, 0.0)
        self.nominal = Parameters(*(torch.tensor([x], dtype=torch.float32, device=device) for x in figures))
        _, parts = empty_block(n, [()] * len(figures), device)
        self.parameters = Parameters(*parts)
        for mine, figure in zip(self.parameters, self.nominal, strict=True):
            mine[:] = figure
        self._block, state = empty_block(n, [(1,)] * 4, device)
        self.current = State(*state)
        _, (self._force,) = empty_block(n, [(1,)], device)
        step = fuse(lambda state, force, parameters: advance(state, force, parameters, period))
        self._run = step.bind(self.current, self._force, self.parameters, out=self.current)

    def dynamics(self, current: State, commands: Mapping[str, Any], parameters: Parameters) -> State:
        """The state one control period later, as a pure, differentiable function."""
        return advance(current, commands["cart_force"], parameters, self.period)

    def param(self, name: str) -> Tensor:
        """A live view (n,) of a physical parameter."""
        return getattr(self.parameters, name)

    def refresh(self, ids: Tensor) -> None:
        """Nothing follows from the parameters."""

    def truth(self) -> dict[str, Tensor]:
        """Every physical quantity by name, live views (n, 1)."""
        return self.current._asdict()

    def step(self, commands: Mapping[str, Tensor]) -> None:
        """One control period under ``cart_force`` (n, 1) N."""
        self._force.copy_(commands["cart_force"])
        self._run()

    def state(self, ids: Tensor) -> State:
        """A copy of the state of the carts ``ids`` (m,)."""
        return State(*(part[ids] for part in self.current))

    def set_state(self, ids: Tensor, state: State) -> None:
        """Put the carts ``ids`` (m,) into a state."""
        for mine, given in zip(self.current, state, strict=True):
            mine[ids] = given

    def push(self, ids: Tensor, velocity: Tensor) -> None:
        """Change the carts' velocity by what of ``velocity`` (3,) m/s is along the track."""
        self.current.cart_velocity[ids] += velocity[0]

    def save(self) -> dict[str, Tensor]:
        """All that changes, for a checkpoint."""
        return {"state": self._block, **self.parameters._asdict()}

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Continue from ``save``, bit by bit."""
        for name, value in saved.items():
            (self._block if name == "state" else self.param(name)).copy_(value)

    def drawing(self) -> mujoco.MjModel:
        """What a picture shows: track, cart and pole."""
        card = self.card
        return mujoco.MjModel.from_xml_string(f"""<mujoco>
          <worldbody>
            <geom type="capsule" fromto="{-card.track} 0 -.06 {card.track} 0 -.06" size=".012" rgba=".4 .42 .45 1"/>
            <body name="cart">
              <joint type="slide" axis="1 0 0"/>
              <geom type="box" size=".06 .04 .03" mass="1" rgba=".13 .35 .6 1"/>
              <body name="pole">
                <joint type="hinge" axis="0 1 0"/>
                <geom type="capsule" fromto="0 -.05 0 0 -.05 {2 * card.pole_length}" size=".008" mass="1"
                      rgba=".85 .45 .1 1"/>
              </body>
            </body>
          </worldbody>
        </mujoco>""")

    def poses(self, ids: Tensor) -> np.ndarray:
        """(m, 2, 7): place (m) and quaternion x, y, z, w of cart and pole."""
        x, half = (part[ids, 0].numpy() for part in (self.current.cart_position, 0.5 * self.current.pole_angle))
        found = np.zeros((len(ids), 2, 7))
        found[:, :, 0] = x[:, None]
        found[:, :, 6] = 1.0
        found[:, 1, 4], found[:, 1, 6] = np.sin(half), np.cos(half)
        return found
