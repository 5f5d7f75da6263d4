"""A robot on mecanum or omni wheels, as a pure function: wheels that follow commands, and slip.

The commanded velocity, slowed down where a wheel would have to turn faster than it can, is followed by the wheels as by
those of ``robo_rl.sim.plants.mobile_base``. A wheel at (x, y), that rolls along d and whose rollers on the ground have
axles along a, drives without slip where the ground goes by along a as fast as its rim does:

    rim = (a · v + (x a_y − y a_x) w) / (a · d)

It slips over the ground with u = (v + w × r) − rim d, along a against the grip μ, across it (b) against what the
rollers' bearings take, μ_r, each with an N-th of the robot's weight on N wheels and full friction from about u₀ on:

    F = −(m g / N) [μ (u·a) / √((u·a)² + u₀²) a + μ_r (u·b) / √((u·b)² + u₀²) b]     m v̇ = Σ F     J ẇ = Σ r × F

So a robot on mecanum wheels loses speed to the side, where its rollers roll, and not forward. These fractions are taken
at the step's beginning and u at its end, which is three linear equations: stable at any speed and for any step.
Odometry is what the wheels do; it differs from the robot's way by slip and by systematic errors, as there.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from robo_rl.contract.gravity import GRAVITY
from robo_rl.sim.accelerate.fuse import Fused, fuse
from robo_rl.sim.plants.mobile_base import STEP, clipped, wrapped
from robo_rl.sim.robots.omni_wheels import OnRollers


class OmniState(NamedTuple):
    """State of n robots."""

    position: Tensor
    """(n, 2) m of the middle of the wheels, world."""
    heading: Tensor
    """(n, 1) rad, −π to π."""
    speed: Tensor
    """(n, 2) m/s forward and to the left, by the wheels."""
    turn_rate: Tensor
    """(n, 1) rad/s, by the wheels."""
    velocity: Tensor
    """(n, 3) m/s, m/s, rad/s: forward, to the left and round, as the robot moves."""
    odometer: Tensor
    """(n, 3) m, m, rad: the pose by odometry."""


class OmniParameters(NamedTuple):
    """Physical parameters, (n,) each."""

    speed_max: Tensor
    """m/s, of a wheel's rim."""
    acceleration: Tensor
    """m/s²."""
    turn_acceleration: Tensor
    """rad/s²."""
    motor_time: Tensor
    """s."""
    speed_scale: Tensor
    """True over measured speed, without slip."""
    turn_scale: Tensor
    """True over measured turn rate, without slip."""
    grip: Tensor
    roller_friction: Tensor
    slip_speed: Tensor
    """m/s."""
    gyration: Tensor
    """m."""


class Contact(NamedTuple):
    """A wheel's directions: the axles of its rollers, across them, and which way it rolls; m for levers."""

    along: tuple[float, float, float]
    """x, y and lever of the rollers' axles."""
    across: tuple[float, float, float]
    cosine: float
    """Of the angle between the wheel's way and the axles: how much of the rim's speed goes along them."""
    sine: float
    """How much goes across them."""


def contacts(card: OnRollers) -> tuple[Contact, ...]:
    """The wheels of a card."""
    found = []
    for wheel, roller in zip(card.wheels, card.roller_angle, strict=True):
        angle = wheel.heading + roller
        ax, ay, bx, by = math.cos(angle), math.sin(angle), -math.sin(angle), math.cos(angle)
        along, across = (ax, ay, wheel.x * ay - wheel.y * ax), (bx, by, wheel.x * by - wheel.y * bx)
        found.append(Contact(along, across, math.cos(roller), -math.sin(roller)))
    return tuple(found)


def nominal_parameters(card: OnRollers) -> OmniParameters:
    """The card's figures, (1,) each."""
    figures = (
        card.speed_max,
        card.acceleration,
        card.turn_acceleration,
        card.motor_time,
        1.0,
        1.0,
        card.grip,
        card.roller_friction,
        card.slip_speed,
        card.gyration,
    )
    return OmniParameters(*(torch.tensor([x], dtype=torch.float32) for x in figures))


def advance(
    state: OmniState, commands: tuple[Any, Any, Any], p: OmniParameters, wheels: tuple[Contact, ...]
) -> OmniState:
    """The state STEP later. ``commands`` (n, 1): forward, to the left (m/s) and round (rad/s)."""
    forward, left, round_ = (command[:, 0] for command in commands)
    fastest = 0.0 * forward
    for rim in _rims(wheels, forward, left, round_):
        fastest = torch.maximum(fastest, torch.abs(rim))
    slower = torch.where(fastest > p.speed_max, p.speed_max / torch.clamp(fastest, min=1e-6), torch.ones_like(fastest))
    part = 1.0 - torch.exp(-STEP / p.motor_time)
    before = (state.speed[:, 0], state.speed[:, 1], state.turn_rate[:, 0])
    most = (p.acceleration, p.acceleration, p.turn_acceleration)
    wanted = (slower * forward, slower * left, slower * round_)
    now = tuple(old + clipped(part * (new - old), STEP * a) for old, new, a in zip(before, wanted, most, strict=True))
    turned = STEP * state.velocity[:, 2]
    cosine, sine = torch.cos(turned), torch.sin(turned)
    vx, vy, w = (state.velocity[:, k] for k in range(3))
    carried = (cosine * vx + sine * vy, cosine * vy - sine * vx, w)  # the same velocity, in the frame that has turned
    moved = _sliding(carried, (p.speed_scale * now[0], p.speed_scale * now[1], p.turn_scale * now[2]), p, wheels)
    true, seen = ((vx, vy, w), moved), (before, now)
    position, heading = _driven(state.position, state.heading[:, 0], true)
    place, angle = _driven(state.odometer[:, :2], state.odometer[:, 2], seen)
    return OmniState(
        position,
        heading[:, None],
        torch.stack(now[:2], -1),
        now[2][:, None],
        torch.stack(moved, -1),
        torch.cat([place, angle[:, None]], -1),
    )


def _rims(wheels: tuple[Contact, ...], vx: Any, vy: Any, w: Any) -> list[Any]:
    """(n,) m/s each: how fast the rims of wheels go by the robot, without slip."""
    return [(vx * a[0] + vy * a[1] + w * a[2]) / cosine for a, _, cosine, _ in wheels]


def _sliding(v: tuple[Any, ...], driven: tuple[Any, ...], p: OmniParameters, wheels: tuple[Contact, ...]) -> Any:
    """Velocity (3 of (n,)) a step after ``v``, where wheels turn as for ``driven`` without slip."""
    weight = STEP * GRAVITY / len(wheels)
    least = p.slip_speed.square()
    moment = p.gyration.square()
    rows: list[list[Any]] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, moment]]
    right = [v[0], v[1], moment * v[2]]
    for (along, across, cosine, sine), rim in zip(wheels, _rims(wheels, *driven), strict=True):
        for way, part, friction in ((along, cosine, p.grip), (across, sine, p.roller_friction)):
            goal = part * rim
            slip = v[0] * way[0] + v[1] * way[1] + v[2] * way[2] - goal
            k = weight * friction * torch.rsqrt(slip.square() + least)
            for i in range(3):
                right[i] = right[i] + (way[i] * k) * goal
                for j in range(i, 3):
                    rows[i][j] = rows[i][j] + (way[i] * way[j]) * k
    return _solved(rows, right)


def _solved(rows: Any, right: Any) -> tuple[Any, Any, Any]:
    """x of three equations A x = b, of whose symmetric A the ``rows`` are given from the diagonal on."""
    (a, b, c), (_, d, e), (_, _, f) = rows
    x, y, z = right
    aa, ab, ac = d * f - e * e, c * e - b * f, b * e - c * d
    bb, bc, cc = a * f - c * c, b * c - a * e, a * d - b * b
    scale = 1.0 / (a * aa + b * ab + c * ac)
    return (
        (aa * x + ab * y + ac * z) * scale,
        (ab * x + bb * y + bc * z) * scale,
        (ac * x + bc * y + cc * z) * scale,
    )


def _driven(place: Any, heading: Any, ends: tuple[tuple[Any, ...], tuple[Any, ...]]) -> tuple[Any, Any]:
    """Place (n, 2) m and heading (n,) rad a step later, at velocities in the frame from one to another."""
    x, y, angle = (0.5 * STEP * (a + b) for a, b in zip(*ends, strict=True))
    cosine, sine = torch.cos(heading + 0.5 * angle), torch.sin(heading + 0.5 * angle)
    way = torch.stack([cosine * x - sine * y, sine * x + cosine * y], -1)
    return place + way, wrapped(heading + angle)


@functools.cache
def fused_advance(wheels: tuple[Contact, ...]) -> Fused:
    """Shared by all plants of a process with such wheels, so each program is traced once."""

    def omni_step(state: OmniState, commands: tuple[Tensor, ...], parameters: OmniParameters) -> OmniState:
        forward, left, turn = commands
        return advance(state, (forward, left, turn), parameters, wheels)

    return fuse(omni_step)
