"""Tasks of cars."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.tasks import Task


def tasks() -> tuple[type[Task], ...]:
    """All of them."""
    from sim.tasks.car.lanes import CarLanes
    from sim.tasks.car.practice import CarPractice
    from sim.tasks.car.race import CarRace
    from sim.tasks.car.traffic import CarTraffic
    from sim.tasks.car.traffic_lidar import CarTrafficLidar

    return (CarLanes, CarPractice, CarRace, CarTraffic, CarTrafficLidar)
