"""A script that pushes a block to a place with a closed hand: behind it, down, and towards the place.

Behind is where the block lies between hand and place. The hand goes there above the block, comes down, and pushes
along the line to the place while it corrects what it is beside that line; where the block has turned away, it lifts and
begins again. It has no state. Pure functions in components, as those of ``robo_rl.controllers.skills.placing``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from robo_rl.controllers.rotation import Vector
from robo_rl.controllers.skills.placing import below, limited, size

SOFT = 0.006
"""m over which decisions change."""
AHEAD = 0.012
"""m that the target is ahead of a hand that pushes, at most: it stops within less."""
BACK = 2.0
"""Of the way back to the line, per way beside it."""
SHORT = 0.004
"""m: a line that is not longer has no direction."""
THERE = 0.006
"""m from its place, within which a block is left alone."""
OLD = 0.25
"""s, of a place of the block, with which the hand does not push on."""


class Sizes(NamedTuple):
    """m."""

    half: float
    """Half width of the block."""
    gap: float
    """From the block's middle to a hand that comes down behind it."""
    low: float
    """Height of a hand that pushes."""
    high: float
    """Height of a hand that goes across."""


def line(tool: Vector, block: Vector, goal: Vector) -> tuple[Any, Any, Any, Any, Any]:
    """Seen along the line from a block to its place: its direction (x, y), and its length; how far ahead of the block
    the tool is, and how far to the left of the line, in m."""
    x, y = goal[0] - block[0], goal[1] - block[1]
    left = size(x, y)
    x, y = x / size(left, SHORT), y / size(left, SHORT)
    dx, dy = tool[0] - block[0], tool[1] - block[1]
    return x, y, left, dx * x + dy * y, dy * x - dx * y


def push(tool: Vector, block: Vector, goal: Vector, age: Any, sizes: Sizes) -> tuple[Any, Any, Any]:
    """How far ahead of the tool its target is to be (m). ``age`` (s) is how long ago the block was seen."""
    x, y, left, along, beside = line(tool, block, goal)
    behind = below(along, 0.3 * sizes.half - sizes.gap, SOFT) * below(abs(beside), 0.5 * sizes.half, SOFT)
    down = below(tool[2], 0.5 * (sizes.low + sizes.high), SOFT)
    lowered = below(along, -sizes.half, SOFT) * below(abs(beside), 0.7 * sizes.half, SOFT) * down
    keep = 0.5 * (behind + lowered + abs(behind - lowered))  # the greater one: what is down stays down for longer
    up = sizes.high + keep * (sizes.low - sizes.high) - tool[2]
    pushing = keep * below(abs(tool[2] - sizes.low), 0.012, SOFT)
    go_on = below(THERE, left, 0.5 * THERE) * below(age, OLD, 0.5 * OLD)
    forward = go_on * limited(left + 0.5 * AHEAD, 0.0, AHEAD)
    # otherwise to the place behind the block, once it is high enough
    free = below(sizes.high - tool[2], 0.3 * (sizes.high - sizes.low), SOFT)
    free = 0.5 * (free + keep + abs(free - keep))
    to_behind = -sizes.gap - along
    ahead = pushing * forward + (1.0 - pushing) * free * to_behind
    aside = -beside * (pushing * BACK * go_on + (1.0 - pushing) * free)
    idle = below(left, THERE, 0.5 * THERE)
    return (ahead * x - aside * y) * (1.0 - idle), (ahead * y + aside * x) * (1.0 - idle), up * (1.0 - idle)
