"""Simulation and training of arms: control steps per second of ``arm-place``, and what each contact setting costs.

All episodes are drawn as at the start of a training, where over a third of the cubes are in a hand, and actions are
random about the script's. Sides run in turns, best of the rounds.

    OMP_NUM_THREADS=2 python benchmarks/manipulation.py
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
from results import words, write

from robo_rl.algorithms.config import PpoConfig
from robo_rl.algorithms.ppo import Learner
from robo_rl.benchmark import rates
from robo_rl.learning_env import LearningEnv
from robo_rl.policy import PolicyGraph
from sim.env import VecEnv
from sim.plants.mujoco_cpu import MujocoPlant
from sim.plants.physics import Physics
from sim.tasks.arm.place import Place

ARMS = 256
STEPS = 25
"""Of one measurement."""


def main() -> None:
    task = Place()
    usual: Physics = task.make_plant(1).physics
    sides = {
        "environment": environment_stepper(task, usual),
        "training": training_stepper(task),
        "environment, impratio 100": environment_stepper(task, dataclasses.replace(usual, impratio=100.0)),
        "environment, pyramidal cones": environment_stepper(
            task, dataclasses.replace(usual, cone="pyramidal", impratio=1.0)
        ),
    }
    found = rates(sides)
    for name, rate in found.items():
        print(f"{name:<30} {rate:10,.0f} control steps/s")
    write("manipulation", {"arms": ARMS, "threads": torch.get_num_threads(), "steps_per_second": found})


def environment_stepper(task: Place, physics: Physics) -> tuple[int, Callable[[], None]]:
    """Simulation with observations, reward and resets."""
    env = LearningEnv(VecEnv(task, ARMS, 0, make_plant=lambda n: task.simulate(MujocoPlant, n, physics=physics)))
    generator = torch.Generator().manual_seed(0)

    def run() -> None:
        for _ in range(STEPS):
            env.step(0.3 * torch.randn(ARMS, task.action_size, generator=generator))

    return ARMS * STEPS, run


def training_stepper(task: Place) -> tuple[int, Callable[[], None]]:
    """One update of the task's own training."""
    config = PpoConfig(**task.settings["ppo"])
    learner = Learner(task, PolicyGraph(task, config.hidden, config.activation, config.normalize), config, 0)
    return config.environments * config.horizon, lambda: learner.update() and None


if __name__ == "__main__":
    words(__doc__)
    main()
