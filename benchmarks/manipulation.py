"""Simulation and training of arms: control steps per second of each task, and what each contact setting costs.

Simulation is with observations, reward and resets; episodes are drawn as at the start of a training (of `arm-place`
over a third of the cubes are in a hand then) and actions are random. With learning it is an update of the task's own
training: ppo, and sac for `arm-insert`. Sides run in turns, best of the rounds; tasks alone replace their rows.

    OMP_NUM_THREADS=2 python benchmarks/manipulation.py
    OMP_NUM_THREADS=2 python benchmarks/manipulation.py arm-place
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import torch
from results import FOLDER, words, write

from robo_rl.evaluate.benchmark import rates
from robo_rl.learn import ppo, sac
from robo_rl.learn.config import PpoConfig, SacConfig
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.arm.place import Place
from robo_rl.sim.tasks.loading import load_task

ARMS = 256
STEPS = 25
"""Of one measurement."""
TASKS = (
    ("arm-reach", "panda"), ("arm-place", "panda"), ("arm-place", "so101"), ("arm-place-direct", "panda"),
    ("arm-stack", "panda"), ("arm-insert", "panda"), ("arm-push", "panda"), ("mobile-place", "turtlebot3_manipulation"),
)  # fmt: skip


def main(named: str) -> None:
    known = FOLDER / "manipulation.json"
    before = json.loads(known.read_text())["steps_per_second"] if known.exists() else {}
    sides: dict[str, tuple[int, Callable[[], None]]] = {}
    for name, robot in TASKS:
        if name.startswith(named):
            task = load_task(name, robot)
            sides[f"{name} {robot}, simulation"] = environment_stepper(task, None)
            sides[f"{name} {robot}, with learning"] = training_stepper(task)
    if "arm-place".startswith(named):
        place = Place()
        usual: Physics = place.make_plant(1).physics
        for words_of, physics in (
            ("impratio 100", dataclasses.replace(usual, impratio=100.0)),
            ("pyramidal cones", dataclasses.replace(usual, cone="pyramidal", impratio=1.0)),
        ):
            sides[f"arm-place panda, simulation, {words_of}"] = environment_stepper(place, physics)
    found = rates(sides)
    for name, rate in found.items():
        print(f"{name:<45} {rate:10,.0f} control steps/s")
    about = {"arms": ARMS, "threads": torch.get_num_threads()}
    write("manipulation", {**about, "steps_per_second": {**before, **found}})


def environment_stepper(task: Task, physics: Physics | None) -> tuple[int, Callable[[], None]]:
    """Simulation with observations, reward and resets."""

    def plant(n: int) -> Any:
        return task.simulate(MujocoPlant, n, physics=physics) if isinstance(task, Place) and physics else make(n, "cpu")

    make = task.make_plant
    env = LearningEnv(VecEnv(task, ARMS, 0, make_plant=plant))
    generator = torch.Generator().manual_seed(0)

    def run() -> None:
        for _ in range(STEPS):
            env.step(0.3 * torch.randn(ARMS, task.action_size, generator=generator))

    return ARMS * STEPS, run


def training_stepper(task: Task) -> tuple[int, Callable[[], None]]:
    """One update of the task's own training."""
    if "sac" in task.algorithms and "ppo" not in task.settings:
        chosen = SacConfig(steps=5, first=100)
        learner = sac.Learner(task, PolicyGraph(task, chosen.hidden, chosen.activation), chosen, 0)
        learner.total = 1_000_000  # it goes on for as long as is measured
        return chosen.environments * chosen.steps, lambda: learner.update() and None
    config = PpoConfig(**task.settings["ppo"])
    trained = ppo.Learner(task, PolicyGraph(task, config.hidden, config.activation, config.normalize), config, 0)
    return config.environments * config.horizon, lambda: trained.update() and None


if __name__ == "__main__":
    given = words(__doc__, 1)
    main(given[0] if given else "")
