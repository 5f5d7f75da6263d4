"""A mobile base with differential drive, as a pure function: wheels that follow commands, and odometry that drifts.

With the commanded speeds of the wheels v ± w b / 2 (b apart), each within the fastest that a wheel can turn, speed and
turn rate follow with a lag and a greatest acceleration, and the robot moves along arcs:

    v̇ = clip((v_command − v) / τ, ± a)     ẇ = clip((w_command − w) / τ, ± α)
    ẋ = s_v v cos θ     ẏ = s_v v sin θ     θ̇ = s_w w

Odometry integrates the same without s_v and s_w, which are what wheels of another radius, at another distance or that
slip make of it: the systematic errors of Borenstein and Feng 1996 (Measurement and correction of systematic odometry
errors in mobile robots). Steps of 10 ms; the lag is solved exactly, arcs by their chords.

Wheels in two rows or tracks, which can't steer, skid in turns (Mandow et al. 2007, Experimental kinematics for wheeled
skid-steer mobile robots): each side turns about a centre of its own, beyond its wheels. So b is the distance of the two
centres, ``icr_width`` times that of the wheels, as the robot's own controller has it. On another ground it is another,
and the robot turns at ``turn_gain`` of what was wanted; it turns about a point ``icr_forward`` ahead of its middle,
which so moves sideways:

    ẇ as above, with turn_gain w_command     ẏ_body = −icr_forward θ̇

Its wheels can't tell how it turns, so w is a gyroscope's, and what moves sideways the odometry does not see.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from robo_rl.sim.robots.mobile_base import MobileBaseCard
from robo_rl.sim.robots.mobile_manipulator import Drive

STEP = 0.01  # s


class BaseState(NamedTuple):
    """State of n robots."""

    position: Tensor
    """(n, 2) m of the middle of the axle, world."""
    heading: Tensor
    """(n, 1) rad, −π to π."""
    speed: Tensor
    """(n, 1) m/s, of the wheels' mean."""
    turn_rate: Tensor
    """(n, 1) rad/s, by the wheels' difference."""
    odometer: Tensor
    """(n, 3) m, m, rad: the pose by odometry."""


class BaseParameters(NamedTuple):
    """Physical parameters, (n,) each."""

    speed_max: Tensor
    """m/s, of a wheel's rim."""
    separation: Tensor
    """m between the wheels."""
    acceleration: Tensor
    """m/s²."""
    turn_acceleration: Tensor
    """rad/s²."""
    motor_time: Tensor
    """s."""
    speed_scale: Tensor
    """True over measured speed."""
    turn_scale: Tensor
    """True over measured turn rate."""
    turn_gain: Tensor
    """Turn rate over that wanted, of a base that skids."""
    icr_forward: Tensor
    """m, ahead of its middle, of the point about which it turns on the spot."""


def nominal_parameters(card: MobileBaseCard | Drive) -> BaseParameters:
    """The card's figures, (1,) each."""
    figures = (
        card.speed_max,
        card.wheel_separation * (card.icr_width if isinstance(card, MobileBaseCard) else 1.0),
        card.acceleration,
        card.turn_acceleration,
        card.motor_time,
        1.0,
        1.0,
        1.0,
        card.icr_forward if isinstance(card, MobileBaseCard) else 0.0,
    )
    return BaseParameters(*(torch.tensor([x], dtype=torch.float32) for x in figures))


def advance(state: BaseState, speed: Any, turn: Any, p: BaseParameters, period: float) -> BaseState:
    """The state a ``period`` (s) later, under commanded ``speed`` (n, 1) m/s and ``turn`` (n, 1) rad/s."""
    half = 0.5 * p.separation
    top = p.speed_max
    left, right = clipped(speed[:, 0] - half * turn[:, 0], top), clipped(speed[:, 0] + half * turn[:, 0], top)
    forward, turning = 0.5 * (left + right), p.turn_gain * (0.5 * (right - left) / half)
    steps = max(1, round(period / STEP))
    h = period / steps
    kept = torch.exp(-h / p.motor_time)
    x, y, heading = state.position[:, 0], state.position[:, 1], state.heading[:, 0]
    ox, oy, odometer = (state.odometer[:, k] for k in range(3))
    v, w = state.speed[:, 0], state.turn_rate[:, 0]
    for _ in range(steps):
        dv = clipped((1.0 - kept) * (forward - v), p.acceleration * h)
        dw = clipped((1.0 - kept) * (turning - w), p.turn_acceleration * h)
        way, angle = h * (v + 0.5 * dv), h * (w + 0.5 * dw)
        middle, seen = heading + 0.5 * p.turn_scale * angle, odometer + 0.5 * angle
        cosine, sine, aside = torch.cos(middle), torch.sin(middle), p.icr_forward * p.turn_scale * angle
        x, y = x + p.speed_scale * way * cosine + aside * sine, y + p.speed_scale * way * sine - aside * cosine
        ox, oy = ox + way * torch.cos(seen), oy + way * torch.sin(seen)
        heading, odometer = heading + p.turn_scale * angle, odometer + angle
        v, w = v + dv, w + dw
    return BaseState(
        torch.stack([x, y], -1),
        wrapped(heading)[:, None],
        v[:, None],
        w[:, None],
        torch.stack([ox, oy, wrapped(odometer)], -1),
    )


def clipped(x: Any, most: Any) -> Any:
    """``x`` within ± ``most``."""
    return torch.minimum(torch.maximum(x, -most), most)


def wrapped(angle: Any) -> Any:
    """−π to π, of an angle within a turn of it."""
    angle = torch.where(angle > torch.pi, angle - 2 * torch.pi, angle)
    return torch.where(angle < -torch.pi, angle + 2 * torch.pi, angle)
