"""Engines and physics that a task's policy has not been trained in, each as a plant of the same quantities.

A robot is none of them. What a policy can do in all of them does not rest on how one engine solves contacts or takes
its time steps.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sim.plants.physics import Physics
from sim.robots import LeggedCard
from sim.tasks import Task

SOLVERS = ("newton", "cg", "pgs")


@dataclass(frozen=True)
class Engine:
    """One way to simulate a task's robot."""

    name: str
    summary: str
    make_plant: Callable[[int], Any]
    part: float = 1.0
    """Of the flights that are flown here: less than all where it is slow."""


def engines(task: Task) -> list[Engine]:
    """All that are installed, the task's own left out."""
    return _legged(task) if isinstance(task.spec.robot, LeggedCard) else _flying(task)


def _legged(task: Task) -> list[Engine]:
    from sim.plants.mujoco_cpu import MujocoPlant
    from sim.tasks.legged.walk import FlatWalk

    assert isinstance(task, FlatWalk)
    home: Physics = task.make_plant(1, "cpu").physics
    cone = "elliptic" if home.cone == "pyramidal" else "pyramidal"
    fine = Physics(timestep=0.001, solver="newton", cone="elliptic", contacts="all")
    variants: dict[str, tuple[str, dict[str, Any]]] = {
        f"{cone} cones": ("MuJoCo, other friction cones", {"cone": cone}),
        **{f"{name} solver": ("MuJoCo, another solver", {"solver": name}) for name in SOLVERS if name != home.solver},
        "half the time step": (f"MuJoCo at {500 * home.timestep:g} ms", {"timestep": home.timestep / 2}),
        "all contacts": ("MuJoCo, every shape can touch the ground", {"contacts": "all"}),
        "fine": ("MuJoCo at 1 ms, elliptic cones, every shape", dataclasses.asdict(fine)),
    }

    def of(physics: Physics) -> Callable[[int], Any]:
        return lambda n: task.simulate(MujocoPlant, n, physics=physics)

    found = [
        Engine(name, summary, of(dataclasses.replace(home, **changes)), 0.5 if name == "fine" else 1.0)
        for name, (summary, changes) in variants.items()
        if dataclasses.replace(home, **changes) != home
    ]
    if importlib.util.find_spec("pybullet") is not None:
        from sim.plants.bullet import BulletPlant

        found.append(Engine("bullet", "PyBullet at 1 ms", lambda n: task.simulate(BulletPlant, n), 0.25))
    return found


def _flying(task: Task) -> list[Engine]:
    from sim.plants.flying_mujoco import FlyingMujoco

    card, period = task.spec.multirotor, task.spec.control_period
    return [Engine("mujoco", "MuJoCo at 1 ms", lambda n: FlyingMujoco(card, n, period))]
