"""Tasks of multirotors."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from robo_rl.sim.tasks import Task


def tasks() -> tuple[type[Task], ...]:
    """All of them."""
    from robo_rl.sim.tasks.multirotor.quadrotor import QuadrotorHover, QuadrotorTrack
    from robo_rl.sim.tasks.multirotor.rates import QuadrotorRates

    return QuadrotorHover, QuadrotorTrack, QuadrotorRates
