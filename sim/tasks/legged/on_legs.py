"""What all tasks of robots on legs have in common: simulators, randomization, velocities and falls.

For any number of legs and joints. A task's ``spec`` and what it learns are its own.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.controllers.rotation import body_z, heading, turn_back
from robo_rl.sim.drawing import GREEN, Arrow, Marker, Sphere, corners, size_of
from robo_rl.sim.engines import Engine
from robo_rl.sim.plants import Articulated
from robo_rl.sim.plants.drawing import at_rest
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.legged import LeggedCard
from robo_rl.sim.tasks import Task, Tensors, any_of
from robo_rl.sim.tasks.legged.ranges import PUSH_TIME, PUSHES, joints_facts

PERIOD = 0.02  # s
LATENESS = 0.01  # s, of targets: whole steps of the usual physics, the same in every engine
ABOVE = 0.3  # of a robot's reach, of arrows above its highest shape
ARROW = 0.5  # m of an arrow per m/s
THIN, THICK = 0.018, 0.027  # of a robot's reach, the widths of arrows
LOADED = 5.0  # N on a foot that is seen to stand
CONTACT = (0.95, 0.75, 0.1, 0.35)  # colour of a foot that stands


def with_commands(facts: dict[str, Any]) -> dict[str, Any]:
    """The ``facts`` of a task in which an operator commands velocities."""
    commands = {
        "linear_velocity_command": "of the base in the heading frame: z up, x where the base's x points, level",
        "yaw_rate_command": "about the base's z, to the left positive",
    }
    return facts | {"references": facts["references"] | commands}


class OnLegs(Task[Articulated]):
    """A task of a robot on legs."""

    survival = "no fall"
    card_type = LeggedCard
    plants: tuple[str, ...] = ("mujoco", "warp")
    devices: tuple[str, ...] = ("cpu", "cuda")
    contacts = "points"
    """What can touch the ground: the feet alone, or all shapes."""
    perturbed: tuple[str, ...] = (
        "payload",
        "ground_friction",
        "strength",
        "stiffness",
        "command_delay",
        "delay",
        "noise",
    )
    pushes: int = PUSHES
    """In an episode: a goal tells of each when it begins (s), and its force along x and y (N, world)."""
    pushed: int
    """Where a goal begins to tell of pushes."""
    card: LeggedCard
    size: float
    """Of the robot, where a Go2 is 1."""
    foot_radius: float
    """m, of the spheres that mark feet on the ground."""
    lowest: float
    """m, of the base above the ground: below it has fallen."""

    def facts(self) -> dict[str, Any]:
        """What the contract tells of the task."""
        return {
            "joints": joints_facts(self.card),
            "references": {"orientation": "of the base: x ahead, y left, z up"},
            "success": {"base_higher_than_m": self.lowest, "tilt_below_rad": math.pi / 3},
        }

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> Articulated:
        if self.plant == "warp" or torch.device(device).type != "cpu":
            from robo_rl.sim.plants.warp import WarpPlant

            return self.simulate(WarpPlant, n, device=device, physics=self.physics)
        from robo_rl.sim.plants.mujoco_cpu import MujocoPlant

        return self.simulate(MujocoPlant, n, physics=self.physics)

    @property
    def physics(self) -> Physics:
        """Of the engine."""
        return Physics(contacts=self.contacts)

    def engines(self) -> list[Engine]:
        from robo_rl.sim.tasks.legged import engines

        return engines.engines(self)

    def simulate(self, engine: Callable[..., Articulated], n: int, **settings: Any) -> Articulated:
        """n robots on the task's ground in an engine, a class of ``robo_rl.sim.plants``."""
        return engine(self.card.mechanism, n, PERIOD, **settings)

    def randomize(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        nominal = plant.nominal
        mass = plant.param("mass")
        mass[ids] = nominal.mass.repeat(len(ids), 1)
        base = plant.indices.trunk - 1  # the world has no mass
        mass[ids, base] = nominal.mass[:, base] * drawn["base_mass"] + drawn["payload"]
        centers = nominal.center_of_mass.repeat(len(ids), 1, 1)
        centers[:, base] += drawn["center_of_mass"]
        plant.param("center_of_mass")[ids] = centers
        plant.param("ground_friction")[ids] = drawn["ground_friction"].to(mass)
        for name in ("joint_friction", "armature", "stiffness", "damping"):
            plant.param(name)[ids] = getattr(nominal, name) * drawn[name].to(mass)[:, None]
        plant.param("resistance")[ids] = nominal.resistance / drawn["strength"].to(mass)[:, None]
        late = LATENESS * (drawn["command_delay"].to(mass) / LATENESS).round()
        plant.param("command_delay")[ids] = late[:, None]

    def disturb(self, time: Any, goal: Any) -> dict[str, Any]:
        start = self.pushed
        force = torch.zeros(len(goal), 3, device=goal.device)
        for k in range(self.pushes):
            begun, x, y = goal[:, start + 3 * k : start + 3 * k + 3].unbind(-1)
            pushing = (time >= begun) & (time < begun + PUSH_TIME)
            force[:, 0] += torch.where(pushing, x, 0.0)
            force[:, 1] += torch.where(pushing, y, 0.0)
        return {"force": force}

    def errors(self, truth: Tensors) -> dict[str, Any]:
        return self.tracking_errors(truth)

    def tracking_errors(self, truth: Tensors) -> dict[str, Any]:
        """How far the velocities are from the commanded ones, (n,) each: m/s and rad/s."""
        x, y, yaw = self._velocities(truth)
        wanted = truth["linear_velocity_command"]
        error = (x - wanted[:, 0]) ** 2 + (y - wanted[:, 1]) ** 2
        return {
            "linear_velocity_error": torch.sqrt(error),
            "yaw_rate_error": abs(yaw - truth["yaw_rate_command"][:, 0]),
        }

    def _velocities(self, truth: Tensors) -> tuple[Any, Any, Any]:
        """Forward and leftward velocity (m/s) in the heading frame, and rate of turn about the base's z axis."""
        cosine, sine = heading(truth["orientation"].unbind(-1))
        x, y, _ = turn_back(truth["linear_velocity"].unbind(-1), cosine, sine)
        return x, y, truth["angular_velocity"][:, 2]

    @staticmethod
    def _down(orientation: Any) -> Any:
        """(n, 3) the world's z axis in the base frame."""
        x, y, z, w = orientation.unbind(-1)
        return torch.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1)

    def foot_height(self, truth: Tensors) -> Any:
        """(n, 4) m, of the feet's centres above the ground."""
        return truth["foot_position"][:, 2::3]

    def base_height(self, truth: Tensors) -> Any:
        """(n, 1) m, of the base above the ground."""
        return truth["position"][:, 2:]

    def failed(self, truth: Tensors) -> Any:
        return any_of(self.failures(truth))

    def failures(self, truth: Tensors) -> dict[str, Any]:
        up = body_z(truth["orientation"].unbind(-1))
        return {"tilts over 60 degrees": up[2] < 0.5, "base too low": self.base_height(truth)[:, 0] < self.lowest}

    @functools.cached_property
    def _reach(self) -> tuple[float, float]:
        """m: how far the shapes reach from their middle, and how high from the base, as the robot stands."""
        model, poses = at_rest(self.card.mechanism)
        return size_of(model, poses), float(corners(model, poses)[..., 2].max() - poses[0, 2])

    def markers(self, truth: Tensors) -> list[Marker]:
        """Arrows above the robot for the commanded and the true velocity, and feet that carry a load."""
        reach, top = self._reach
        above = truth["position"] + truth["position"].new_tensor([0.0, 0.0, top + ABOVE * reach])
        level = truth["linear_velocity"] * truth["position"].new_tensor([1.0, 1.0, 0.0])
        found: list[Marker] = [Arrow("velocity", above, ARROW * level, THIN * reach)]
        if "linear_velocity_command" in truth:
            cosine, sine = heading(truth["orientation"].unbind(-1))
            x, y = truth["linear_velocity_command"].unbind(-1)
            wanted = torch.stack([cosine * x - sine * y, sine * x + cosine * y, 0.0 * x], -1)
            found.append(Arrow("commanded velocity", above, ARROW * wanted, THICK * reach, GREEN))
        places = truth["foot_position"].unflatten(-1, (-1, 3)).unbind(1)
        for place, load in zip(places, truth["foot_force"].unbind(-1), strict=True):
            bearing = torch.where(load[:, None] > LOADED, place, float("nan"))
            found.append(Sphere("foot on the ground", bearing, 1.6 * self.foot_radius, CONTACT))
        return found
