"""A script that inserts a held peg into a hole whose place is known to some millimetres: above it, down, and a spiral.

Where the peg meets the rim, it is pressed on it lightly and led along an Archimedean spiral about the place where the
hole is thought to be, until it falls in (blind search: Chhatpar and Branicky 2001, Search Strategies for Peg-in-Hole
Assemblies with Position Uncertainty). Where the peg was pressed tells the rim's height better than a camera does. What
presses is an impedance, so the force is known from the displacement. Pure functions in components, of one robot
(numbers) or a batch (arrays of numpy or torch, symbols of ``robo_rl.sim.accelerate.fuse``).
"""

from __future__ import annotations

import math
from typing import Any

from robo_rl.controllers.rotation import Vector
from robo_rl.controllers.skills.placing import below, limited, size

PITCH = 0.001
"""m between two turns of the spiral: what the tightest hole leaves to both sides together."""
SPEED = 0.022
"""m/s along the spiral: 4 N on the 4 kg of a hand need 45 ms for 1 mm down, the way across the tightest hole."""
WIDEST = 0.0053
"""m, the radius at which it turns back to the middle: what is known of the hole, and of the peg in the hand."""
SEARCH_TIME = 2.0 * math.pi * WIDEST**2 / (PITCH * SPEED)
"""s for the spiral there and back: each way is the area over the pitch."""
WIDEST_TURN = 2.0 * math.pi * WIDEST / PITCH
"""rad that the spiral has turned at its widest."""
ABOVE = 0.008
"""m above the rim, where the peg goes across."""
PRESS, PUSH = 0.004, 0.012
"""m that the target is below the tool while it searches, and once the peg is in."""
INSIDE = 0.004
"""m below the rim, at which a peg is in."""
SOFT = 0.002
"""m over which decisions change."""
TOUCHING, FIRM = 0.003, 0.001
"""m by which an impedance that is told to go down by PRESS is deflected where something is in the way, and over which
that comes to be so."""
SINKING = 0.02
"""m/s downwards, at which nothing is in the way."""
UNTOUCHED = 0.1
"""m by which a height is lowered at which nothing was touched."""
NEAR = 0.003
"""m from the point of the spiral, up to which the hand presses. Where an edge that has dipped into the hole is in the
way, it lifts the peg: to pull on would turn it in the hand."""
FRICTION, ALIGNED = 0.0015, 0.0004
"""m, of deflection that overcomes some of the friction on the rim, and of a way that is worth it."""

FAST, RUBBING = 0.015, 0.006
"""m that the target is beside the tool at most, in the air and on the rim: more would turn the peg in the hand."""


def spiral(time: Any, sine: Any, cosine: Any) -> tuple[Any, Any]:
    """The point (m, m) of the spiral at ``time`` (s), by the ``sine`` and ``cosine`` of arrays of that sort.

    It turns on in the same sense on its way back, so that it crosses its own track. After that it begins again.
    """
    time = SEARCH_TIME - abs(SEARCH_TIME - time)
    back = time - 0.5 * SEARCH_TIME  # s, above 0 on the way back
    out = 0.5 * SEARCH_TIME - abs(back)
    turned = (4.0 * math.pi * SPEED / PITCH * abs(out) + 1e-6) ** 0.5  # rad: half of pitch/2π · turned² is the way
    radius = PITCH / (2.0 * math.pi) * turned
    returning = 1.0 - below(back, 0.0, 1e-3)
    angle = turned + returning * 2.0 * (WIDEST_TURN - turned)
    return radius * cosine(angle), radius * sine(angle)


def pressed(deflection: Any, speed: Any, above: Any) -> Any:
    """1 where the rim is in the way of a tool that is ``deflection`` (m) above its target, else 0.

    ``speed`` (m/s) is upwards, and ``above`` (m) how far the peg's end is above the rim as a camera has it.
    """
    resting = below(-speed, SINKING, 0.5 * SINKING) * below(above, ABOVE, SOFT)
    return (1.0 - below(deflection, TOUCHING, FIRM)) * resting


def touched(height: Any, tool: Any, touching: Any) -> Any:
    """The greatest height (m) of the tool at which the peg was pressed, with one more: ``tool``, if ``touching``."""
    return _greater(height, tool - UNTOUCHED * (1.0 - touching))


def below_rim(tool: Any, height: Any, seen: Any) -> Any:
    """How far (m) the peg's end is below the rim: by the ``height`` that was ``touched``, or before that, by the
    ``seen`` one at which it would touch, and then rather too little.
    """
    return _greater(height, seen - ABOVE) - tool


def searched(time: Any, touching: Any, depth: Any, period: float) -> Any:
    """The search's clock (s) after a control period: it runs while the peg is pressed on the rim."""
    on_rim = below(depth, INSIDE, SOFT) * (1.0 - below(depth, -ABOVE, SOFT))
    return limited(time + period * touching * on_rim, 0.0, 2.0 * SEARCH_TIME)


def insert(away: Vector, depth: Any, point: tuple[Any, Any]) -> tuple[Any, Any, Any]:
    """How far ahead of the tool its target is to be (m).

    ``away`` (m) is the way from the peg's end to the middle of the rim as a camera has it, to which ``point`` (m, m) of
    the spiral is added, and ``depth`` (m) how far the end is ``below_rim``.
    """
    aside = tuple(x + offset for x, offset in zip(away, point, strict=False))
    loose = below(depth, INSIDE, SOFT)
    rubbing = 1.0 - below(depth, -SOFT, SOFT)
    over = below(size(*aside), NEAR, 0.5 * SOFT)
    above = away[2] + ABOVE
    far = limited(0.6 * (above + ABOVE), -0.01, 0.0)  # in the air it goes down faster
    down = (1.0 - over) * limited(0.6 * above, -0.01, 0.01) + over * (far - PRESS)
    across = tuple(2.5 * x + rubbing * FRICTION * limited(x / ALIGNED, -1.0, 1.0) for x in aside)
    most = FAST + rubbing * (RUBBING - FAST)
    return (
        loose * limited(across[0], -most, most),
        loose * limited(across[1], -most, most),
        loose * down - (1.0 - loose) * PUSH,
    )


def _greater(a: Any, b: Any) -> Any:
    return 0.5 * (a + b + abs(a - b))
