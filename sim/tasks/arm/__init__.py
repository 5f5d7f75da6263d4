"""Tasks of arms: to bring the tool to a place, to lift a cube and place it or stack it, to push, to insert a peg."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robo_rl.sim.tasks.beginning import Beginning

if TYPE_CHECKING:
    from robo_rl.sim.robots import Card
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


def beginning(card: Card) -> Beginning:
    """What a project for a robot of one's own begins with."""
    from robo_rl.sim.tasks.arm.reach import Reach

    return Beginning(Reach, "reach")
