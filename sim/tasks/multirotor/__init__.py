"""Tasks of multirotors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robo_rl.sim.tasks.beginning import Beginning

if TYPE_CHECKING:
    from robo_rl.sim.robots import Card
    from robo_rl.sim.tasks import Task


def tasks() -> tuple[type[Task], ...]:
    """All of them."""
    from robo_rl.sim.tasks.multirotor.formation import SwarmFormation
    from robo_rl.sim.tasks.multirotor.quadrotor import QuadrotorHover, QuadrotorTrack
    from robo_rl.sim.tasks.multirotor.rates import QuadrotorRates
    from robo_rl.sim.tasks.multirotor.successive import SwarmGoals
    from robo_rl.sim.tasks.multirotor.swarm import SwarmSwap

    return QuadrotorHover, QuadrotorTrack, QuadrotorRates, SwarmSwap, SwarmFormation, SwarmGoals


def beginning(card: Card) -> Beginning:
    """What a project for a robot of one's own begins with."""
    from robo_rl.sim.tasks.multirotor.quadrotor import QuadrotorHover

    return Beginning(QuadrotorHover, "hover", {"initial/tilt": 0.3})
