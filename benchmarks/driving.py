"""Cars: simulated steps per second.

    OMP_NUM_THREADS=2 python benchmarks/driving.py

Of cars with randomized parameters at random commands: the plant alone, with its lidar of 64 and 1,080 beams, and the
environment of car-race (sensors, reward, resets, new tracks). benchmarks/racing.py has laps.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from results import words, write
from torch import Tensor

from robo_rl.evaluate.benchmark import rates
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.car import CarPlant
from robo_rl.sim.plants.car.on_track import CarOnTrack
from robo_rl.sim.tasks.car.race import AHEAD, PERIOD, CarRace
from robo_rl.sim.tasks.loading import load_task

CARS = 4096
Side = tuple[int, Callable[[], None]]


def main() -> None:
    words(__doc__ or "")
    task = load_task("car-race")
    assert isinstance(task, CarRace)
    sides = {"plant": plant_stepper(task), "64 beams": scan_stepper(task, 64), "1080 beams": scan_stepper(task, 1080)}
    found = rates({**sides, "environment": environment_stepper(task)}, rounds=4)
    for name, rate in found.items():
        print(f"{name:<14} {rate:12,.0f} steps/s")
    write("driving", {"rates": found})


def commands(n: int, top: float) -> dict[str, Tensor]:
    """At random."""
    return {"steering_angle": torch.empty(n, 1).uniform_(-0.4, 0.4), "speed": torch.empty(n, 1).uniform_(0.5, top)}


def plant_stepper(task: CarRace) -> Side:
    """The plant, without a track."""
    plant, given = CarPlant(task.card, CARS, PERIOD), commands(CARS, 8.0)
    plant.param("friction").uniform_(0.6, 1.1)
    plant.param("mass").uniform_(3.0, 4.5)

    return CARS, lambda: plant.step(given)


def scan_stepper(task: CarRace, beams: int) -> Side:
    """The plant on tracks with a lidar; cars creep in circles, so that they stay near their tracks."""
    env = VecEnv(task, 512, seed=1)
    plant = CarOnTrack(task.card, 512, PERIOD, task.scan, beams, AHEAD)
    task.place(plant, torch.arange(512), env.drawn, torch.zeros(512, 1))
    given = {"steering_angle": torch.full((512, 1), 0.4), "speed": torch.full((512, 1), 0.2)}

    return 512, lambda: plant.step(given)


def environment_stepper(task: CarRace) -> Side:
    """All that training has, under commands at random."""
    env, given = VecEnv(task, CARS, seed=1), commands(CARS, 2.0)

    def step() -> None:
        env.step(given)

    return CARS, step


if __name__ == "__main__":
    main()
