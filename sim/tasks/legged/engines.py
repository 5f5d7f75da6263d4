"""Other engines and other physics for the walking tasks."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from robo_rl.sim.engines import Engine
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import Physics

if TYPE_CHECKING:
    from robo_rl.sim.tasks.legged.on_legs import OnLegs

SOLVERS = ("newton", "cg", "pgs")


def engines(task: OnLegs) -> list[Engine]:
    """All that are installed, the task's own left out."""
    home = task.physics
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
        from robo_rl.sim.plants.bullet import BulletPlant

        found.append(Engine("bullet", "PyBullet at 1 ms", lambda n: task.simulate(BulletPlant, n), 0.25))
    return found
