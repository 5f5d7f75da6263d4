"""Simulation and training of the quadruped: control steps per second, and what each physics choice costs.

All robots are randomized and walk at random about the task's own trot, so feet touch down and lift off as in training.
Sides run in turns, best of the rounds.

    OMP_NUM_THREADS=2 python benchmarks/rigid.py
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from results import words, write

from robo_rl.evaluate.benchmark import rates
from robo_rl.learn.config import PpoConfig
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.learn.ppo import Learner
from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.loading import load_task

ROBOTS = 512
CHOICES = {
    "plant, all shapes touch": Physics(contacts="all"),
    "plant, elliptic cones": Physics(cone="elliptic"),
    "plant, 5 ms steps": Physics(timestep=0.005),
}


def main() -> None:
    task = load_task("go2-flat")
    sides = {"plant": plant_stepper(task), "environment": environment_stepper(task), "training": training_stepper(task)}
    sides |= {name: plant_stepper(task, physics) for name, physics in CHOICES.items()}
    found = rates(sides)
    for name, rate in found.items():
        print(f"{name:<26} {rate:10,.0f} control steps/s")
    print(f"training over plant: {found['training'] / found['plant']:.2f}")
    write("rigid", {"robots": ROBOTS, "threads": torch.get_num_threads(), "steps_per_second": found})


def walks(task: Task, steps: int) -> list[dict[str, torch.Tensor]]:
    """Commands of ``ROBOTS`` robots that trot on the spot with joints jittering by about 0.1 rad."""
    memory = task.first_memory(ROBOTS)
    signals = {signal.name: torch.zeros(ROBOTS, signal.size) for signal in task.spec.signals}
    signals["linear_velocity_command"][:, 0] = 0.3
    generator, given = torch.Generator().manual_seed(0), []
    for _ in range(steps):
        given.append(task.command(0.25 * torch.randn(ROBOTS, task.action_size, generator=generator), memory))
        memory = task.remember(memory, signals, given[-1])
    return given


def plant_stepper(task: Task, physics: Physics | None = None) -> tuple[int, Callable[[], None]]:
    """Simulation alone; robots that fell are put back every half second, as an environment does."""
    env = VecEnv(task, ROBOTS, 0)
    plant = env.plant
    if physics is not None:
        plant = MujocoPlant(plant.mechanism, ROBOTS, plant.period, physics)
    start, commands = plant.save(), walks(task, 25)
    start = {name: value.clone() for name, value in start.items()}

    def walk() -> None:
        plant.load(start)
        for command in commands:
            plant.step(command)

    return ROBOTS * len(commands), walk


def environment_stepper(task: Task) -> tuple[int, Callable[[], None]]:
    """Observation, reward, failure, resets and randomization too."""
    env = LearningEnv(VecEnv(task, ROBOTS, 0))
    actions = 0.25 * torch.randn(ROBOTS, task.action_size, generator=torch.Generator().manual_seed(0))
    return ROBOTS, lambda: env.step(actions) and None


def training_stepper(task: Task) -> tuple[int, Callable[[], None]]:
    """Collecting and learning, as ``robo-rl train go2-flat`` does."""
    config = PpoConfig(**task.settings["ppo"])
    policy = PolicyGraph(task, config.hidden, config.activation, config.normalize)
    learner = Learner(task, policy, config, seed=0)
    return config.environments * config.horizon, lambda: learner.update() and None


if __name__ == "__main__":
    words(__doc__)
    main()
