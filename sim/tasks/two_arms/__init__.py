"""Tasks of robots with two arms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robo_rl.sim.tasks.beginning import Beginning

if TYPE_CHECKING:
    from robo_rl.sim.robots import Card
    from robo_rl.sim.tasks import Task


def tasks() -> tuple[type[Task], ...]:
    """All of them."""
    from robo_rl.sim.tasks.two_arms.reach import ReachBoth

    return (ReachBoth,)


def beginning(card: Card) -> Beginning:
    """What a project for a robot of one's own begins with."""
    from robo_rl.sim.tasks.two_arms.reach import ReachBoth

    return Beginning(ReachBoth, "reach-both")
