"""What is shown above a motor: pointers of what it does and what it is to do, on a dial."""

from __future__ import annotations

from typing import Any

import torch

from robo_rl.sim.drawing import BLUE, GREEN, Arrow, Color, Marker
from robo_rl.sim.plants.motor.drawing import ABOVE, DISC, RADIUS

LOW, HIGH = ABOVE + 0.15 * RADIUS, ABOVE + 0.3 * RADIUS
"""m, heights of the two pointers."""
SWEEP = 2.1
"""rad, from the middle of a dial of one number to its greatest."""


def plane(name: str, value: Any, setpoint: Any, most: float) -> list[Marker]:
    """Pointers of vectors (n, 2), such as a current in d and q: d to world x, q to y; ``most`` is the disc's edge."""
    return [
        _pointer(name, value / most, LOW, 0.06 * RADIUS, BLUE),
        _pointer(f"commanded {name}", setpoint / most, HIGH, 0.04 * RADIUS, GREEN),
    ]


def dial(name: str, value: Any, setpoint: Any, most: float) -> list[Marker]:
    """Pointers of numbers (n, 1): 0 is along world y, and ±``most`` is ``SWEEP`` to the right and left."""

    def turned(x: Any) -> Any:
        angle = SWEEP * torch.clamp(x / most, -1.2, 1.2)
        return torch.cat([torch.sin(angle), torch.cos(angle)], -1)

    return plane(name, turned(value), turned(setpoint), 1.0)


def _pointer(name: str, end: Any, height: float, width: float, color: Color) -> Arrow:
    vector = torch.cat([DISC * end, torch.zeros_like(end[:, :1])], -1)
    return Arrow(name, torch.zeros_like(vector) + vector.new_tensor([0.0, 0.0, height]), vector, width, color)
