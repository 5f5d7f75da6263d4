"""A car on a plane: single track with tyres that saturate, differentiable, for thousands at once.

Rajamani 2012 (Vehicle Dynamics and Control, chapter 2) has the equations, Pacejka 2012 (Tire and Vehicle Dynamics) the
tyres. With v = (v_x, v_y) of the centre of mass in the body's frame, yaw rate r, steering angle δ, and the motor's
acceleration a, which front and rear share as κ and 1 − κ:

    m (v̇_x − v_y r) = X_f cos δ − Y_f sin δ + X_r − drag v_x |v_x| − rolling m g v_x / w(v_x)
    m (v̇_y + v_x r) = Y_f cos δ + X_f sin δ + Y_r
    J ṙ = l_f (Y_f cos δ + X_f sin δ) − l_r Y_r
    Y = −√((μ Z)² − X²) sin(C atan(B α))      α = atan(v_across / w(v_along)) of each wheel, w(v) = √(v² + 0.3²)
    X_f = κ m a, X_r = (1 − κ) m a            no more than 0.95 μ Z (wheels do not lock or spin)
    Z_f = m (g l_r − a h) / L, Z_r = m (g l_f + a h) / L
    ȧ = (clip(k (v_command − v_x)) − a) / τ   at most the motor's acceleration, less above its power's speed
    δ̇ = clip((δ_command − δ) / τ_s, ± rate)   solved exactly

Slip is regularised by w, which makes slow tyres viscous: the equations hold at standstill and in reverse, and 5 % above
1 m/s they are the usual ones. (Linear tyres, as in many simulators of racing, let a policy corner at several g.)

Lateral motion is stiff: its eigenvalues grow as 1/v, to −400/s at standstill. The integrator is Euler's linearly
implicit method, with the stiffness of the tyres at the beginning of the period, extrapolated from 1, 2 and 3 steps to
the third order (Hairer, Wanner 1996, Solving Ordinary Differential Equations II, IV.9). One step per control period is
stable at every speed; what is not stiff is of third order too, and ``STEP`` makes it accurate.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from robo_rl.contract.gravity import GRAVITY
from robo_rl.sim.accelerate.fuse import Fused, empty_block, fuse
from robo_rl.sim.drawing import Poser
from robo_rl.sim.plants.car.drawing import draw_car, joints
from robo_rl.sim.plants.saving import ClosedForm
from robo_rl.sim.robots.car import CarCard

SLOW = 0.3  # m/s, below which tyres are viscous
STEP = 0.0085  # s: 2 s of racing end within 1 cm and 0.1 degrees of the exact solution; three in 25 ms
HELD = 0.95  # part of friction that the motor and the brakes may take


class CarState(NamedTuple):
    """State of n cars."""

    position: Tensor
    """(n, 2) m of the centre of mass, world."""
    heading: Tensor
    """(n, 1) rad, −π to π."""
    velocity: Tensor
    """(n, 2) m/s of the centre of mass, body: forward, to the left."""
    yaw_rate: Tensor
    """(n, 1) rad/s."""
    steering: Tensor
    """(n, 1) rad, of the front wheels, to the left."""
    drive: Tensor
    """(n, 1) m/s², that the motor or the brakes give."""


class CarParameters(NamedTuple):
    """Physical parameters, (n,) where they differ between cars, else (1,)."""

    mass: Tensor
    """kg."""
    inertia: Tensor
    """kg m²."""
    front_axle: Tensor
    """m from the centre of mass."""
    rear_axle: Tensor
    """m from the centre of mass."""
    height: Tensor
    """m, of the centre of mass."""
    friction: Tensor
    front_stiffness: Tensor
    """1/rad."""
    rear_stiffness: Tensor
    """1/rad."""
    tyre_shape: Tensor
    drag: Tensor
    """N s²/m²."""
    rolling: Tensor
    steering_rate: Tensor
    """rad/s."""
    steering_time: Tensor
    """s."""
    steering_gain: Tensor
    """Factor on the commanded angle: linkage."""
    steering_offset: Tensor
    """rad: trim."""
    acceleration: Tensor
    """m/s²."""
    power_speed: Tensor
    """m/s."""
    speed_gain: Tensor
    """1/s."""
    speed_scale: Tensor
    """Measured over true speed: radius of the wheels."""
    motor_time: Tensor
    """s."""
    front_drive: Tensor


class Slip(NamedTuple):
    """What tyres make of a state."""

    rates: tuple
    """Of v_x, v_y, r, drive, heading, x, y."""
    matrix: tuple
    """∂(v̇_y, ṙ)/∂(v_y, r) with the tyres' secant stiffness, row by row."""


def arctangent(x: Any) -> Any:
    """atan, within 1e-7 (Hastings 1955, Approximations for Digital Computers; 4.4.49 of Abramowitz and Stegun)."""
    size = abs(x)
    large = size > 1.0
    u = torch.where(large, 1.0 / torch.clamp(size, min=1.0), size)
    s = u * u
    series: Any = 0.0028662257
    for coefficient in (-0.0161657367, 0.0429096138, -0.0752896400, 0.1065626393, -0.1420889944, 0.1999355085):
        series = series * s + coefficient
    angle = u + u * s * (series * s - 0.3333314528)
    angle = torch.where(large, 0.5 * np.pi - angle, angle)
    return torch.where(x < 0.0, -angle, angle)


def advance(state: CarState, steering: Any, speed: Any, p: CarParameters, period: float) -> CarState:
    """The state one control period (s) later under constant commands (n, 1), rad and m/s."""
    steps = math.ceil(period / STEP - 1e-6)
    for _ in range(steps):
        state = one_step(state, steering, speed, p, period / steps)
    return state


def one_step(state: CarState, steering: Any, speed: Any, p: CarParameters, period: float) -> CarState:
    """One step of the integrator, over a time ``period`` (s)."""
    x, y = state.position.unbind(-1)
    vx, vy = state.velocity.unbind(-1)
    heading, rate, drive, begun = (v[:, 0] for v in (state.heading, state.yaw_rate, state.drive, state.steering))
    target = steering[:, 0] * p.steering_gain + p.steering_offset
    wanted = speed[:, 0]
    angles = [_steering(begun, target, p, part * period) for part in (1 / 3, 1 / 2, 2 / 3, 1)]
    start = (vx, vy, rate, drive, heading)
    first = _motion(start, begun, wanted, p, stiff=True)
    totals = []
    for steps, middle in ((1, ()), (2, angles[1:2]), (3, (angles[0], angles[2]))):
        h = period / steps
        solve = _implicit(first.matrix, h)
        change = solve(first.rates)
        for angle in middle:
            now = tuple(a + b for a, b in zip(start, change, strict=False))
            step = solve(_motion(now, angle, wanted, p).rates)
            change = tuple(a + b for a, b in zip(change, step, strict=True))
        totals.append(change)
    dvx, dvy, dr, da, dheading, dx, dy = (0.5 * a - 4.0 * b + 4.5 * c for a, b, c in zip(*totals, strict=True))
    turned = heading + dheading
    turned = turned - torch.where(turned > np.pi, 2 * np.pi, 0.0) + torch.where(turned < -np.pi, 2 * np.pi, 0.0)
    return CarState(
        position=torch.stack([x + dx, y + dy], -1),
        heading=turned[:, None],
        velocity=torch.stack([vx + dvx, vy + dvy], -1),
        yaw_rate=(rate + dr)[:, None],
        steering=angles[3][:, None],
        drive=(drive + da)[:, None],
    )


def _steering(begun: Any, target: Any, p: CarParameters, time: float) -> Any:
    """The angle after a time: at its greatest rate while the servo saturates, then exponentially to the target."""
    gap = target - begun
    near = p.steering_rate * p.steering_time
    size = abs(gap)
    saturated = torch.clamp(size - near, min=0.0) / p.steering_rate  # s
    left = torch.minimum(size, near) * torch.exp(-torch.clamp(time - saturated, min=0.0) / p.steering_time)
    left = left + torch.clamp(saturated - time, min=0.0) * p.steering_rate
    return target - torch.where(gap < 0.0, -left, left)


def _motion(state: tuple, angle: Any, wanted: Any, p: CarParameters, stiff: bool = False) -> Slip:
    """Rates of change at a steering angle, towards a ``wanted`` speed; with ``stiff``, also the tyres' matrix."""
    vx, vy, rate, drive, heading = state
    cosine, sine = torch.cos(angle), torch.sin(angle)
    base = p.front_axle + p.rear_axle
    weight, shift = p.mass * GRAVITY, p.mass * drive * p.height
    front_load = torch.maximum(weight * p.rear_axle - shift, 0.05 * weight * base) / base
    rear_load = torch.maximum(weight * p.front_axle + shift, 0.05 * weight * base) / base
    side = vy + p.front_axle * rate
    along, across = vx * cosine + side * sine, side * cosine - vx * sine
    force = p.mass * drive
    front = _tyre(along, across, p.front_drive * force, front_load, p.front_stiffness, p, stiff)
    rear = _tyre(vx, vy - p.rear_axle * rate, force - p.front_drive * force, rear_load, p.rear_stiffness, p, stiff)
    front_x = front[0] * cosine - front[1] * sine
    front_y = front[1] * cosine + front[0] * sine
    per_mass, per_inertia = 1.0 / p.mass, 1.0 / p.inertia
    slow = torch.sqrt(vx * vx + SLOW * SLOW)
    resistance = p.drag * vx * abs(vx) + p.rolling * weight * vx / slow
    measured = p.speed_scale * vx
    most = p.acceleration * torch.clamp(p.power_speed / torch.maximum(measured, p.power_speed), max=1.0)
    demand = torch.minimum(torch.maximum(p.speed_gain * (wanted - measured), -p.acceleration), most)
    turn_cosine, turn_sine = torch.cos(heading), torch.sin(heading)
    rates = (
        (front_x + rear[0] - resistance) * per_mass + vy * rate,
        (front_y + rear[1]) * per_mass - vx * rate,
        (p.front_axle * front_y - p.rear_axle * rear[1]) * per_inertia,
        (demand - drive) / p.motor_time,
        rate,
        vx * turn_cosine - vy * turn_sine,
        vx * turn_sine + vy * turn_cosine,
    )
    if not stiff:
        return Slip(rates, ())
    kf, kr = front[2] * cosine * cosine, rear[2]
    moment = p.front_axle * kf - p.rear_axle * kr
    second = p.front_axle * p.front_axle * kf + p.rear_axle * p.rear_axle * kr
    matrix = (-(kf + kr) * per_mass, -moment * per_mass - vx, -moment * per_inertia, -second * per_inertia)
    return Slip(rates, matrix)


def _tyre(
    along: Any, across: Any, drive: Any, load: Any, stiffness: Any, p: CarParameters, stiff: bool
) -> tuple[Any, Any, Any]:
    """Forces (N) along and across a wheel, and, with ``stiff``, what the latter is per speed across (N s/m)."""
    grip = p.friction * load
    held = torch.minimum(torch.maximum(drive, -HELD * grip), HELD * grip)
    left = torch.sqrt(grip * grip - held * held)
    slow = torch.sqrt(along * along + SLOW * SLOW)
    slip = stiffness * arctangent(across / slow)
    bend = p.tyre_shape * arctangent(slip)
    force = -left * torch.sin(bend)
    if not stiff:
        return held, force, ()
    part = torch.where(abs(slip) < 1e-3, 1.0, torch.sin(bend) / (p.tyre_shape * torch.where(slip == 0.0, 1.0, slip)))
    return held, force, left * p.tyre_shape * stiffness * part / slow


def _implicit(matrix: tuple, h: float) -> Any:
    """Rates to changes over a time h: explicit, but implicit in the matrix for v_y and r."""
    a, b, c, d = (h * x for x in matrix)
    per = 1.0 / ((1.0 - a) * (1.0 - d) - b * c)

    def change(rates: tuple) -> tuple:
        across, turning = h * rates[1], h * rates[2]
        lateral = ((1.0 - d) * across + b * turning) * per
        turn = (c * across + (1.0 - a) * turning) * per
        return (h * rates[0], lateral, turn, *(h * x for x in rates[3:]))

    return change


def nominal_parameters(card: CarCard, device: Any = None) -> CarParameters:
    """The card's figures, (1,) each."""
    own = {"steering_gain": 1.0, "steering_offset": 0.0, "speed_scale": 1.0}
    figures = [own.get(name, getattr(card, name, 0.0)) for name in CarParameters._fields]
    return CarParameters(*(torch.tensor([x], dtype=torch.float32, device=device) for x in figures))


class CarPlant(ClosedForm):
    """n cars with state and parameters, stepped in place at one control rate."""

    current: CarState

    def __init__(self, card: CarCard, n: int, period: float, device: str | torch.device = "cpu") -> None:
        """``period`` is the control period in s."""
        shapes = [(2,), (1,), (2,), (1,), (1,), (1,)]
        super().__init__(n, nominal_parameters(card, device), CarState, shapes, device)
        self.card, self.period = card, period
        _, self._commands = empty_block(n, [(1,), (1,)], device)
        self._run: Any = None

    @property
    def pose(self) -> Tensor:
        """(3, n): x, y (m) and heading (rad), live."""
        return self.block[:3]

    def dynamics(self, state: CarState, commands: Mapping[str, Any], parameters: CarParameters) -> CarState:
        """The state one control period later, as a pure, differentiable function."""
        return advance(state, commands["steering_angle"], commands["speed"], parameters, self.period)

    def step(self, commands: Mapping[str, Tensor]) -> None:
        """One control period under ``steering_angle`` (n, 1) rad and ``speed`` (n, 1) m/s, held constant."""
        for name, buffer in zip(("steering_angle", "speed"), self._commands, strict=True):
            buffer.copy_(commands[name])
        if self._run is None:
            fused = _fused_advance(self.period)
            self._run = fused.bind(self.current, *self._commands, self.parameters, out=self.current)
        self._run()

    def state(self, ids: Tensor) -> CarState:
        return super().state(ids)

    def push(self, ids: Tensor, velocity: Tensor) -> None:
        """Change the cars' velocity by what of ``velocity`` (3,) m/s, world, is along the ground."""
        cosine, sine = torch.cos(self.current.heading[ids, 0]), torch.sin(self.current.heading[ids, 0])
        x, y, _ = velocity
        self.current.velocity[ids] += torch.stack([cosine * x + sine * y, cosine * y - sine * x], -1)

    def drawing(self) -> Any:
        """A MuJoCo model of how a car looks."""
        return self._poser.model

    def poses(self, ids: Tensor) -> np.ndarray:
        """(m, bodies, 7) m and quaternion x, y, z, w: of the bodies of ``drawing``."""
        places = [self.current.position[ids], self.current.heading[ids], self.current.steering[ids]]
        return self._poser.poses(joints(torch.cat(places, 1).numpy()))

    @functools.cached_property
    def _poser(self) -> Poser:
        return Poser(draw_car(self.card))


@functools.cache
def _fused_advance(period: float) -> Fused:
    """Shared by all plants of a process, so each program is traced once."""

    def car_step(state: CarState, steering: Tensor, speed: Tensor, parameters: CarParameters) -> CarState:
        return advance(state, steering, speed, parameters, period)

    return fuse(car_step)
