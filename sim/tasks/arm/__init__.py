"""Tasks of arms: to bring the tool to a place, to lift a cube and place it or stack it, to push, to insert a peg."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from robo_rl.sim.tasks import Task


def tasks() -> tuple[type[Task], ...]:
    """All of them."""
    from robo_rl.sim.tasks.arm.insert import Insert
    from robo_rl.sim.tasks.arm.place import Place
    from robo_rl.sim.tasks.arm.place_depth import PlaceDepth
    from robo_rl.sim.tasks.arm.place_direct import PlaceDirect
    from robo_rl.sim.tasks.arm.push import Push
    from robo_rl.sim.tasks.arm.reach import Reach
    from robo_rl.sim.tasks.arm.stack import Stack

    return Reach, Place, PlaceDirect, PlaceDepth, Stack, Push, Insert
