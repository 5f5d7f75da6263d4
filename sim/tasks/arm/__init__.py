"""Tasks of arms: to bring the tool to a place, to lift a cube and place it or stack it, to push, to insert a peg."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.tasks import Task


def tasks() -> tuple[type[Task], ...]:
    """All of them."""
    from sim.tasks.arm.insert import Insert
    from sim.tasks.arm.place import Place
    from sim.tasks.arm.place_depth import PlaceDepth
    from sim.tasks.arm.place_direct import PlaceDirect
    from sim.tasks.arm.push import Push
    from sim.tasks.arm.reach import Reach
    from sim.tasks.arm.stack import Stack

    return Reach, Place, PlaceDirect, PlaceDepth, Stack, Push, Insert
