"""Tasks of mobile bases."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from robo_rl.sim.tasks import Task


def tasks() -> tuple[type[Task], ...]:
    """All of them."""
    from robo_rl.sim.tasks.mobile_base.follow import DiffFollow
    from robo_rl.sim.tasks.mobile_base.maze import AgvMaze
    from robo_rl.sim.tasks.mobile_base.navigate import DiffNav

    return (DiffNav, DiffFollow, AgvMaze)
