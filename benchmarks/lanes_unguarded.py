"""What a policy of car-lanes learns that no guard bounds: the same task, signals, reward and network.

robo-rl train benchmarks/lanes_unguarded.py:Unguarded
python benchmarks/lanes.py RUN              # the run's folder
"""

from __future__ import annotations

from typing import Any

from sim.tasks import Tensors
from sim.tasks.car.in_lanes import InLanes
from sim.tasks.car.lanes import CarLanes


class Unguarded(CarLanes):
    """A route in traffic, by what the network asks for."""

    name = "lanes-unguarded"
    summary = "drive a route among other cars, without the guard of car-lanes"

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        return InLanes.command(self, action, memory)
