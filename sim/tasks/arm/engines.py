"""Other engines and other contacts for the tasks of arms."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from robo_rl.sim.engines import Engine
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.tasks.arm.physical import physics_of

if TYPE_CHECKING:
    from robo_rl.sim.tasks.arm.physical import Simulated


def engines(task: Simulated) -> list[Engine]:
    """All that are installed, the task's own left out."""
    home = physics_of(task)
    variants: dict[str, tuple[str, dict[str, Any]]] = {
        "half the time step": (f"MuJoCo at {500 * home.timestep:g} ms", {"timestep": home.timestep / 2}),
        "firm grasp": ("MuJoCo, friction 100 times as hard as the normal force", {"impratio": 100.0}),
        "rolling friction": ("MuJoCo, contacts that resist rolling too", {"condim": 6}),
        "stiff contacts": ("MuJoCo at 2 ms, contacts 2.5 times as stiff", {"timestep": 0.002, "solref": (0.004, 1.0)}),
        "pyramidal cones": (
            "MuJoCo, cones in which what is held creeps",
            {"cone": "pyramidal", "impratio": 1.0},
        ),
    }

    def of(physics: Physics) -> Callable[[int], Any]:
        return lambda n: task.simulate(MujocoPlant, n, physics=physics)

    found = [
        Engine(name, summary, of(dataclasses.replace(home, **changes)), 0.5)
        for name, (summary, changes) in variants.items()
    ]
    if importlib.util.find_spec("pybullet") is not None:
        from robo_rl.sim.plants.bullet import BulletPlant

        found.append(Engine("bullet", "PyBullet at 1 ms", lambda n: task.simulate(BulletPlant, n), 0.1))
    return found
