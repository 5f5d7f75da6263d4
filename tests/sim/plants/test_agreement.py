"""All engines give the same answer for the same robot and commands, within bounds that are stated here."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.legged import load_legged
from tests.suite import representatives

STEPS = 25  # half a second
SWINGS = {"joint": 0.3, "lift": 0.05, "swing": 0.3, "finger": 0.01}  # rad or m, about home

# Greatest differences from MuJoCo after every control step: of Warp, by float32; of Bullet, by other integration of
# friction, contacts and springs. Pose and joints in m and rad, velocities in m/s and rad/s, forces in N and N m.
BOUNDS: dict[str, tuple[dict[str, float], dict[str, float]]] = {
    "cart_pole": (
        {"position": 1e-5, "velocity": 1e-4, "force": 1e-4},
        {"position": 1e-6, "velocity": 1e-5, "force": 1e-5},
    ),
    "arm": (
        {"position": 1e-4, "velocity": 1e-3, "torque": 1e-2},
        {"position": 5e-3, "velocity": 0.15, "torque": 0.5},  # the drives' damping is implicit in MuJoCo
    ),
    "six_axes": (
        {"position": 1e-4, "orientation": 1e-4, "velocity": 1e-3, "torque": 1e-2},
        {"position": 5e-4, "orientation": 1e-4, "velocity": 1e-2, "torque": 0.1},
    ),
    "gripper": (
        {"position": 1e-4, "orientation": 1e-3, "velocity": 1e-2, "force": 0.1, "torque": 0.1},
        {"position": 3e-3, "orientation": 1e-3, "velocity": 0.3, "finger_force": 41.0, "force": 5.0, "torque": 1.5},
    ),
    "go2 in the air": (
        {"position": 1e-4, "orientation": 1e-4, "velocity": 1e-2, "torque": 1e-2, "force": 0.0},
        {"position": 1e-2, "orientation": 5e-3, "velocity": 0.2, "torque": 0.5, "force": 0.0},
    ),
}


def commands(plant: Any, k: int) -> dict[str, torch.Tensor]:
    """Every group swings about its home; a tool goes to the side."""
    phase = torch.sin(torch.tensor(0.3 * k))
    told = {}
    for group in plant.mechanism.groups:
        if group.law == "position":
            home = torch.tensor([[joint.home for joint in group.joints]])
            told[group.command] = home + SWINGS[group.name] * phase
        elif group.law == "torque":
            told[group.command] = torch.full((1, len(group.joints)), 2.0 * float(phase))
    for impedance in plant.mechanism.impedances:
        told[f"{impedance.name}_position_target"] = torch.tensor([[0.5, 0.15, 0.3]])
    return told


@pytest.mark.parametrize("name", representatives(list(BOUNDS), ["cart_pole", "gripper", "go2 in the air"]))
@pytest.mark.parametrize("engine", [pytest.param("warp", marks=pytest.mark.slow), "bullet"], indirect=True)
def test_engines_agree_within_their_bounds(machines, engine, request: pytest.FixtureRequest, name: str) -> None:
    mechanism = load_legged("go2").mechanism if name == "go2 in the air" else getattr(machines, name)()
    if name == "arm":
        mechanism = machines.arm(law="position")
    physics = Physics(timestep=0.001, contacts="all")
    plants = (engine(mechanism, 1, 0.02, physics), MujocoPlant(mechanism, 1, 0.02, physics, threads=1))
    for plant in plants:
        start = {"position": torch.tensor([[0.0, 0.0, 3.0]])} if name == "go2 in the air" else {}
        if mechanism.driven:
            plant.param("joint_friction")[:] = 0.0  # Bullet's is of another kind
        plant.place(torch.arange(1), **start)
    bounds = BOUNDS[name][request.node.callspec.params["engine"] == "bullet"]
    for k in range(STEPS):
        for plant in plants:
            plant.step(commands(plant, k))
        other, mujoco = (plant.truth() for plant in plants)
        for quantity, value in mujoco.items():
            bound = next(bound for part, bound in bounds.items() if quantity.endswith(part))
            apart = float((other[quantity] - value).abs().max())
            assert apart <= bound, f"step {k}: {quantity} is {apart:.2g} apart; expected at most {bound:g}"
