"""A script that lifts an object and places it with a gripper that points down: rules on where tool and object are.

It has hardly any state, so that an object that slips or is moved away is simply grasped again. Pure functions in
components, of one robot (numbers) or a batch (arrays of numpy or torch, symbols of ``robo_rl.sim.accelerate.fuse``):
a policy holds it as
the movement that its network corrects, and an evaluation runs it alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from robo_rl.controllers.rotation import Vector

GAIN = 0.6
"""Of the way that is left, how much a target is ahead of the tool."""
RATE = 0.2
"""Of the estimate whether something is held, per step."""
SURE, UNSURE = 0.8, 0.1
"""Above which that counts, and over which part of the estimate it comes to count."""
NEAR, BESIDE = 0.032, 0.024
"""m level, and in height: an object farther from the tool is not in its gripper. What is carried seems to be behind the
tool by the way that it makes while a camera looks."""
OLD = 0.25
"""s, of a place of the object, with which the hand moves half as fast; a half more, and it does not move."""
SOFT = 0.2
"""Half edges over which a decision by a distance goes from one to the other. A decision within less would be one by
the last bits of a sum, which no two computers add alike; where a tool's place is itself a long sum, of joint angles,
``Sizes.soft`` is more."""


class Sizes(NamedTuple):
    """m, but for the gripper's positions."""

    half: float
    """Half edge of the object."""
    hop: float
    """How high the object is carried above its place."""
    above: float
    """How high the tool is above the object before it goes down to it."""
    gripped: float
    """The gripper's position below which it is closed on the object."""
    empty: float
    """The gripper's position above which, when it is closed, something is between its pads."""
    soft: float
    """Over which decisions by the tool's distance from the object go from one to the other."""
    slack: float
    """Over which of the gripper's positions that comes to be so."""
    drop: float
    """How high above its place the object is let go at most."""
    opened: float
    """The gripper's position when it is open."""
    aside: float
    """How far from the middle the object is in an open gripper of which one jaw moves."""
    arriving: float
    """Over which decisions by the object's distance from its place, level, go from one to the other."""
    still: float = 0.0
    """By how much the gripper moves per step, below which it stands still."""
    press: float = 0.0
    """Told to close by more than that beyond where it stands, the gripper presses on something."""
    half_open: float = 0.0
    """The gripper's position half way between closed and open; a command below it closes the gripper."""
    least: float = 0.0
    """Half edge of the smallest object, as ``half`` without one: pads that meet at its edge shoot it away."""
    gain: float = GAIN


class Grasp(NamedTuple):
    """What a gripper tells by itself, each 0 to 1."""

    closed: Any
    """It is closed on an object, if there is one."""
    felt: Any
    """It is, and something is between its pads."""


def by_width(gripper: Any, sizes: Sizes) -> Grasp:
    """Of a gripper at a position, for objects and pads whose sizes are known: as far closed as on the object."""
    closed = below(gripper, sizes.gripped, sizes.slack)
    return Grasp(closed, closed * below(sizes.empty, gripper, sizes.slack))


def by_standstill(gripper: Any, pace: Any, target: Any, sizes: Sizes) -> Grasp:
    """Of a gripper whose object and pads may have any size: it is commanded to close further, and no longer moves.

    ``gripper`` is its position, ``pace`` its smoothed change per step and ``target`` the last command, in the gripper's
    unit. ``felt`` also needs a position: one between that of the empty gripper and that of the smallest object.
    """
    told = below(target, sizes.half_open, sizes.press) * below(target, gripper - sizes.press, sizes.press)
    closed = told * below(abs(pace), sizes.still, sizes.still)
    return Grasp(closed, closed * below(sizes.empty, gripper, sizes.slack))


def place(
    tool: Vector, object_at: Vector, goal: Vector, gripper: Any, grip: Any, age: Any, sizes: Sizes,
    facing: Vector | None = None, grasp: Grasp | None = None,
) -> tuple[tuple[Any, Any, Any], Any, Any]:  # fmt: skip
    """How far ahead of the tool its target is to be (m); 1 where the gripper is to open, 0 where to close; and the
    new estimate, 0 to 1, whether the object is held.

    ``tool``, ``object_at`` and ``goal`` are places (m) in one frame with z up, ``gripper`` is its position and ``grip``
    the last estimate. ``age`` (s) is how long ago the object was seen: while that is too long, the hand stays where it
    is and keeps what it holds. Of a gripper with one jaw that moves, ``facing`` is the direction from the pad that does
    not to the one that does: it goes down with the object nearer to the moving one, and centres it while it closes.
    ``grasp`` is what the gripper tells, by its width without one.
    """
    away = tuple(there - here for there, here in zip(object_at, tool, strict=True))
    if facing is not None:
        wide = sizes.aside * limited((gripper - sizes.gripped) / (sizes.opened - sizes.gripped), 0.0, 1.0)
        away = tuple(x - wide * axis for x, axis in zip(away, facing, strict=True))
    way = tuple(there - here for there, here in zip(goal, object_at, strict=True))
    aside, left = size(away[0], away[1]), size(way[0], way[1])
    half, soft = sizes.half, SOFT * sizes.half
    least = sizes.least or half
    between = below(aside, 0.5 * least, sizes.soft) * below(abs(away[2]), 0.5 * half, sizes.soft)
    near = below(aside, NEAR, sizes.soft) * below(abs(away[2]), BESIDE, sizes.soft)
    there = below(left, 0.6 * half, sizes.arriving) * below(-way[2], sizes.drop, soft)
    grasp = grasp or by_width(gripper, sizes)
    near = _greater(near, grasp.felt)
    grip = grip + RATE * (grasp.closed * near * (1.0 - there) - grip)
    held = below(SURE, grip, UNSURE)
    # with the object: up, across, and down as its place comes near
    high = sizes.hop * limited((left - 0.5 * sizes.half) / sizes.hop, 0.0, 1.0)
    up = way[2] + high
    across = limited(1.0 - up / (0.5 * sizes.hop), 0.0, 1.0)
    carry = (across * way[0], across * way[1], up)
    # without it: above it, and down as the tool comes over it
    above = sizes.above * limited((aside - 0.3 * sizes.half) / sizes.half, 0.0, 1.0)
    fetch = (away[0], away[1], away[2] + above)
    idle = 1.0 - there * near
    still = (idle, idle, idle) if facing is None else (1.0, 1.0, idle)  # a jaw that does not open leaves the object
    seen = sizes.gain * below(age, OLD, 0.5 * OLD)
    target = tuple(seen * (held * c + (1.0 - held) * s * f) for c, s, f in zip(carry, still, fetch, strict=True))
    to_close = (1.0 - there) * _greater(between, near * held)
    return target, 1.0 - to_close, grip


def size(x: Any, y: Any) -> Any:
    """Of a vector, and its derivative finite where that is 0."""
    return (x * x + y * y + 1e-12) ** 0.5


def below(x: Any, limit: Any, soft: float) -> Any:
    """1 where x is below, else 0, and in between over a width ``soft``, by arithmetic that every kind of number has."""
    return limited(0.5 + (limit - x) / soft, 0.0, 1.0)


def _greater(a: Any, b: Any) -> Any:
    return 0.5 * (a + b + abs(a - b))


def limited(x: Any, low: float, high: float) -> Any:
    """Between two numbers."""
    x = 0.5 * (x + low + abs(x - low))
    return 0.5 * (x + high - abs(x - high))
