"""Tasks of electric motors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robo_rl.sim.tasks.beginning import Beginning

if TYPE_CHECKING:
    from robo_rl.sim.robots.motor import MotorCard
    from robo_rl.sim.tasks import Task


def tasks() -> tuple[type[Task], ...]:
    """All of them."""
    from robo_rl.sim.tasks.motor.current import PmsmCurrent
    from robo_rl.sim.tasks.motor.six_step import BldcSpeed
    from robo_rl.sim.tasks.motor.speed import DcSpeed, PmsmSpeed

    return PmsmCurrent, PmsmSpeed, DcSpeed, BldcSpeed


def beginning(card: MotorCard) -> Beginning:
    """What a project for a robot of one's own begins with."""
    from robo_rl.sim.tasks.motor.current import PmsmCurrent
    from robo_rl.sim.tasks.motor.six_step import BldcSpeed
    from robo_rl.sim.tasks.motor.speed import DcSpeed

    by_machine = {
        "dc": Beginning(DcSpeed, "speed"), "bldc": Beginning(BldcSpeed, "speed"),
        "pmsm": Beginning(PmsmCurrent, "current"),
    }  # fmt: skip
    return by_machine[card.machine]
