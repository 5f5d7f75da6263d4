"""Tasks of electric motors."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from robo_rl.sim.tasks import Task


def tasks() -> tuple[type[Task], ...]:
    """All of them."""
    from robo_rl.sim.tasks.motor.current import PmsmCurrent
    from robo_rl.sim.tasks.motor.speed import DcSpeed, PmsmSpeed

    return PmsmCurrent, PmsmSpeed, DcSpeed
