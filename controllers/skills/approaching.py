"""How a base with two driven wheels brings something into the reach of the arm that it carries.

It turns to the place, drives there, and stands while the place is about where its arm works best; it backs off from
what is too near. Pure functions in components, as those of ``robo_rl.controllers.skills.placing``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from robo_rl.controllers.skills.placing import below, limited, size

TURNING, DRIVING = 2.0, 1.5
"""1/s: turn rate per bearing, and speed per distance that is left."""
AHEAD = 0.35
"""rad, of the bearing above which the base turns without driving, and over which that comes to be so."""
STILL = (0.012, 0.08)
"""m along and rad beside the wanted place, within which a base stands."""
SETTLED = (0.03, 0.2)
"""The same, within which a place is where the arm works, with a base that is about to stand."""
BACKWARDS = 0.3
"""Of the greatest speed, at most, in reverse."""
BEHIND = 0.02
"""m: keeps the turn rate finite where a place is right behind, or where the axle is."""


class Reach(NamedTuple):
    """Of an arm on a base."""

    middle: float
    """m ahead of the axle, where the arm works best."""
    speed: float
    """m/s, the greatest."""
    turn_rate: float
    """rad/s, the greatest."""


def approach(x: Any, y: Any, reach: Reach) -> tuple[Any, Any]:
    """Forward speed and turn rate, each as a part of the greatest one, towards a place (m, in the base's frame)."""
    along, bearing = _left(x, y, reach)
    turning = TURNING * _beyond(bearing, STILL[1]) / reach.turn_rate
    driving = DRIVING * _beyond(along, STILL[0]) / reach.speed
    facing = below(abs(bearing), AHEAD, AHEAD)
    driving = limited(driving, -BACKWARDS, 0.0) + limited(driving, 0.0, 1.0) * facing
    return driving, limited(turning, -1.0, 1.0)


def approach_all_ways(x: Any, y: Any, reach: Reach) -> tuple[Any, Any, Any]:
    """Forward speed, turn rate and lateral speed, each as a part of the greatest one, of a base on mecanum or omni
    wheels: straight towards the place, to the distance at which the arm works best, turning to it on the way.
    """
    along, bearing = _left(x, y, reach)
    turning = TURNING * _beyond(bearing, STILL[1]) / reach.turn_rate
    part = DRIVING * _beyond(along, STILL[0]) / reach.speed / (size(x, y) + BEHIND)
    forward, aside = limited(part * x, -1.0, 1.0), limited(part * y, -1.0, 1.0)
    return forward, limited(turning, -1.0, 1.0), aside


def settled(x: Any, y: Any, reach: Reach) -> Any:
    """1 where a place (m, in the base's frame) is in the middle of the arm's reach, 0 where the base is to go there."""
    along, bearing = _left(x, y, reach)
    return below(abs(along), SETTLED[0], SETTLED[0]) * below(abs(bearing), SETTLED[1], SETTLED[1])


def _left(x: Any, y: Any, reach: Reach) -> tuple[Any, Any]:
    """m that a place is too far away, and its bearing, about in rad: twice the tangent of the half of it."""
    distance = size(x, y)
    return distance - reach.middle, 2.0 * y / (distance + x + BEHIND)


def _beyond(value: Any, width: float) -> Any:
    """By how much a value is outside of ± ``width``."""
    return value - limited(value, -width, width)
