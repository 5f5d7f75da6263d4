"""Tasks of legged robots: walking on flat and on rough ground and through rooms, getting up; on any legs: standing,
walking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robo_rl.sim.tasks.beginning import Beginning

if TYPE_CHECKING:
    from robo_rl.sim.robots.legged import LeggedCard
    from robo_rl.sim.tasks import Task


def tasks() -> tuple[type[Task], ...]:
    """All of them."""
    from robo_rl.sim.tasks.legged.legs_stand import LegsStand
    from robo_rl.sim.tasks.legged.legs_walk import LegsWalk
    from robo_rl.sim.tasks.legged.recover import Recover
    from robo_rl.sim.tasks.legged.rough import RoughTeacher, RoughWalk
    from robo_rl.sim.tasks.legged.track import LegsTrack, TrackWave
    from robo_rl.sim.tasks.legged.tunnel import TunnelWalk
    from robo_rl.sim.tasks.legged.walk import FlatWalk

    return FlatWalk, RoughWalk, RoughTeacher, Recover, TunnelWalk, LegsStand, LegsWalk, LegsTrack, TrackWave


def beginning(card: LeggedCard) -> Beginning:
    """What a project for a robot of one's own begins with."""
    from robo_rl.sim.tasks.legged.legs_walk import LegsWalk
    from robo_rl.sim.tasks.legged.walk import FlatWalk

    return Beginning(FlatWalk if (len(card.feet), len(card.joint_names)) == (4, 12) else LegsWalk, "walk")
