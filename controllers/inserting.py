"""A script that inserts a held peg into a hole whose place is known to some millimetres: above it, down, and a spiral.

Where the peg meets the rim, it is pressed on it lightly and led along an Archimedean spiral about the place where the
hole is thought to be, until it falls in (blind search: Chhatpar and Branicky 2001, Search Strategies for Peg-in-Hole
Assemblies with Position Uncertainty). What presses is an impedance, so the force is known from the displacement. Pure
functions in components, of one robot (numbers) or a batch (arrays of numpy or torch, symbols of ``sim.fuse``).
"""

from __future__ import annotations

import math
from typing import Any

from controllers.placing import below, limited, size
from controllers.rotation import Vector

PITCH = 0.001
"""m between two turns of the spiral: less than what the tightest hole leaves to both sides together."""
SPEED = 0.03
"""m/s along the spiral."""
WIDEST = 0.0045
"""m, the radius at which it turns back to the middle: what is known of the hole, and a little more."""
SEARCH_TIME = 2.0 * math.pi * WIDEST**2 / (PITCH * SPEED)
"""s for the spiral there and back: each way is the area over the pitch."""
ABOVE = 0.008
"""m above the rim, where the peg goes across."""
PRESS, PUSH = 0.004, 0.012
"""m that the target is below the tool while it searches, and once the peg is in."""
INSIDE = 0.005
"""m below the rim, at which a peg is in: more than the errors of its place in the hand and of a camera's height."""
SOFT = 0.002
"""m over which decisions change."""
TOUCHING = 0.002
"""m by which an impedance that is told to go down is deflected where something is in the way."""


def spiral(time: Any, sine: Any, cosine: Any) -> tuple[Any, Any]:
    """The point (m, m) of the spiral at ``time`` (s), by the ``sine`` and ``cosine`` of arrays of that sort."""
    out = 0.5 * SEARCH_TIME - abs(0.5 * SEARCH_TIME - time)  # s, and from half of the time on, back
    turned = (4.0 * math.pi * SPEED / PITCH * abs(out) + 1e-6) ** 0.5  # rad: half of pitch/2π · turned² is the way
    radius = PITCH / (2.0 * math.pi) * turned
    return radius * cosine(turned), radius * sine(turned)


def searched(time: Any, deflection: Any, depth: Any, period: float) -> Any:
    """The search's clock (s) after a control period: it runs while the peg is pressed on the rim.

    ``deflection`` (m) is how far the tool is above its target, ``depth`` (m) how far the peg is below the rim.
    """
    pressed = 1.0 - below(deflection, TOUCHING, SOFT)
    on_rim = below(depth, INSIDE, SOFT) * (1.0 - below(depth, -ABOVE, SOFT))
    return limited(time + period * pressed * on_rim, 0.0, SEARCH_TIME)


def insert(away: Vector, point: tuple[Any, Any]) -> tuple[Any, Any, Any]:
    """How far ahead of the tool its target is to be (m).

    ``away`` (m) is the way from the peg's end to the middle of the rim, and ``point`` (m, m) of the spiral is added.
    """
    aside = tuple(x + offset for x, offset in zip(away, point, strict=False))
    inside = 1.0 - below(away[2], INSIDE, SOFT)
    over = below(size(*aside), 0.004, SOFT)
    across = away[2] + ABOVE
    down = (1.0 - over) * limited(0.6 * across, -0.01, 0.01) - over * PRESS
    loose = 1.0 - inside
    return (
        loose * limited(2.5 * aside[0], -0.015, 0.015),
        loose * limited(2.5 * aside[1], -0.015, 0.015),
        loose * down - inside * PUSH,
    )
