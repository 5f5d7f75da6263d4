"""Bounds that a car keeps whatever its policy asks for: they are part of the policy's graph.

*Steering*: towards another lane no faster than traffic moves across, and no farther than ``ASIDE`` from the middle of
its own while that one is taken: while the gap ahead or behind in it is shorter than a braking that MOBIL allows needs.
*Speed*: at most the safe speed of Krauss (1998, Microscopic modeling of traffic flow): that from which the car can stop
behind whoever is in its way, should that one brake as hard; and before a light that it can't pass in time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from robo_rl.controllers.car.traffic import Idm, Mobil
from robo_rl.sim.scenes.lanes import VEHICLE, WIDE
from robo_rl.sim.scenes.lanes.around import CROSSING, IN_WAY, TURNED, across_of, middle_at

ASIDE = 0.3  # m from the middle of the lane, which are free in any case
SHIFT = 1.6  # m to the side, at most, of the place that steering leads to; LaneDriver has the same
LOOK = (4.0, 0.7)  # m, and s at the car's speed: how far ahead that place is; as LaneDriver's
BRAKING = Mobil().safe_braking  # m/s², of the safe speed
REACTION = 1.2  # s, until the speed has followed: 1 / speed_gain, and what signals and the motor are late
STANDSTILL = Idm().standstill  # m
FORESIGHT = 1.0  # s: who will be in the way then is so now
YELLOW, SPARE = 3.0, 0.4  # s: of yellow, and what of it is not counted on
EASY, BEFORE = 2.5, 2.0  # m/s², m: of a stop before a light


class Bounds(NamedTuple):
    """Of n cars."""

    taken: Any
    """(n, 2): 1 where the lane to the left, and that to the right, is taken."""
    stop: Any
    """(n, 1): 1 where the next light can't be passed in time."""
    steering: Any
    """(n, 2) rad: the least and the greatest angle."""
    speed: Any
    """(n, 1) m/s: the greatest command."""


class _Others(NamedTuple):
    """Neighbours, (n, k) each, in the frame of the lane."""

    valid: Any
    ahead: Any
    gap: Any  # m between bumpers
    faster: Any  # m/s along
    across: Any  # m to the left of the lane's middle
    moves: Any  # m/s across
    wide: Any  # m across, within which it is in the way


@dataclass(frozen=True)
class Guard:
    """Of one kind of car."""

    front: float
    """m from the middle to the bumper."""
    base: float
    """m between axles."""
    rear: float
    """m from the rear axle to the middle."""
    steering_limit: float
    """rad."""
    top: float
    """m/s."""

    def bounds(self, signals: Mapping[str, Any], yellow: Any) -> Bounds:
        """By what the policy sees, and for how long (n, 1) s the light has been yellow."""
        speed = torch.clamp(signals["wheel_speed"], min=0.0)
        others = self._others(signals, speed)
        taken, stop = _taken(others), must_stop(signals, speed, yellow)
        aside = torch.where(taken > 0.5, ASIDE, WIDE)
        steering = self.pursuit(signals, speed, torch.cat([-aside[:, 1:], aside[:, :1]], -1))
        light = safe_speed(signals["light_distance"] - BEFORE, 0.0 * speed, EASY)
        light = torch.where(stop > 0.5, light, self.top)
        behind = self._behind_leaders(signals, speed, others)
        bound = torch.clamp(torch.minimum(light, behind), 0.0, self.top)
        return Bounds(taken, stop, steering, bound)

    def _others(self, signals: Mapping[str, Any], speed: Any) -> _Others:
        x, velocity = signals["neighbour_position"][:, :, 0], signals["neighbour_velocity"]
        across, slope = across_of(signals)
        faster, crosses = velocity[:, :, 0], abs(signals["neighbour_heading"]) > TURNED
        gap = abs(x) - self.front - torch.where(crosses, 0.5 * VEHICLE[1], 0.5 * VEHICLE[0])
        moves = velocity[:, :, 1] - slope * (speed + faster)
        wide = torch.where(crosses, CROSSING, IN_WAY)
        return _Others(signals["neighbour_valid"] > 0.5, x > 0.0, gap, faster, across, moves, wide)

    def pursuit(self, signals: Mapping[str, Any], speed: Any, aside: Any) -> Any:
        """(n, k) rad: to places ``aside`` (n, k) m to the left of the lane's middle, or on the way to them."""
        x, offset = LOOK[0] + LOOK[1] * speed, signals["lane_offset"]
        y = middle_at(signals, x)[0] + torch.maximum(torch.minimum(aside, offset + SHIFT), offset - SHIFT)
        steering = 2.0 * self.base * y / ((x + self.rear).square() + y * y)
        return torch.clamp(steering, -self.steering_limit, self.steering_limit)

    def _behind_leaders(self, signals: Mapping[str, Any], speed: Any, others: _Others) -> Any:
        """(n, 1) m/s: the least safe speed behind those in the car's way, now or soon."""
        aside = others.across - signals["lane_offset"]
        then = aside + FORESIGHT * (others.moves - speed * signals["lane_heading"])
        there = others.valid & others.ahead & ((abs(aside) < others.wide) | (abs(then) < others.wide))
        safe = safe_speed(others.gap - STANDSTILL, torch.clamp(speed + others.faster, min=0.0), BRAKING)
        return torch.where(there, safe, self.top).amin(1, keepdim=True)


def safe_speed(gap: Any, leader: Any, braking: float) -> Any:
    """m/s, by the gap (m), the leader's speed (m/s) and the braking (m/s²) of both."""
    lost = braking * REACTION
    return torch.sqrt(lost * lost + leader * leader + 2.0 * braking * torch.clamp(gap, min=0.0)) - lost


def yellow_age(signals: Mapping[str, Any], yellow: Any, period: float) -> Any:
    """(n, 1) s for which the light has been yellow, a period (s) after it was so for ``yellow`` (n, 1) s."""
    on = signals["light_state"][:, 1:] > 0.5
    return torch.where(on, torch.clamp(yellow + period, max=YELLOW), 0.0)


def must_stop(signals: Mapping[str, Any], speed: Any, yellow: Any) -> Any:
    """(n, 1): 1 where the light is red, or has been yellow for ``yellow`` (n, 1) s and can't be passed in time."""
    light, state = signals["light_distance"], signals["light_state"]
    late = light > speed * torch.clamp(YELLOW - SPARE - yellow, min=0.0)
    stop = (state[:, :1] > 0.5) | ((state[:, 1:] > 0.5) & late)
    return torch.where(stop & (light > 0.0), 1.0, 0.0)


def _taken(others: _Others) -> Any:
    """(n, 2): 1 where somebody is, or soon will be, in the lane to the left, and to the right, and too near."""
    closing = torch.clamp(torch.where(others.ahead, -others.faster, others.faster), min=0.0)
    close = others.valid & (others.gap < STANDSTILL + closing + closing * closing / (2.0 * BRAKING))
    then = others.across + FORESIGHT * others.moves
    found = []
    for lane in (WIDE, -WIDE):
        there = (abs(others.across - lane) < others.wide) | (abs(then - lane) < others.wide)
        found.append(torch.where(close & there, 1.0, 0.0).amax(1, keepdim=True))
    return torch.cat(found, -1)
