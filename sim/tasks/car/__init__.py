"""Tasks of cars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robo_rl.sim.tasks.beginning import Beginning

if TYPE_CHECKING:
    from robo_rl.sim.robots import Card
    from robo_rl.sim.tasks import Task


def tasks() -> tuple[type[Task], ...]:
    """All of them."""
    from robo_rl.sim.tasks.car.lanes import CarLanes
    from robo_rl.sim.tasks.car.practice import CarPractice
    from robo_rl.sim.tasks.car.race import CarRace
    from robo_rl.sim.tasks.car.traffic import CarTraffic
    from robo_rl.sim.tasks.car.traffic_lidar import CarTrafficLidar

    return (CarLanes, CarPractice, CarRace, CarTraffic, CarTrafficLidar)


def beginning(card: Card) -> Beginning:
    """What a project for a robot of one's own begins with."""
    from robo_rl.sim.tasks.car.race import CarRace

    return Beginning(CarRace, "race")
