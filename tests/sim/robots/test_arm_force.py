"""An arm with an impedance presses with a bounded force at rest: stiffness times clip. An impact has its own peak."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch

from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import GRASP
from robo_rl.sim.robots.arm import load_arm
from robo_rl.sim.tasks.arm.workspace import workspace

PERIOD, N = 0.02, 16
DEEP = 0.3  # m below the ground: far beyond the clip


def test_the_static_force_on_the_ground_is_at_most_stiffness_times_clip_wherever_it_presses() -> None:
    card = load_arm("panda")
    assert card.impedance is not None
    allowed = card.impedance.stiffness[0] * card.impedance.clip[0]  # N
    space = workspace(card)
    physics = dataclasses.replace(GRASP, contacts="model")
    plant = MujocoPlant(card.mechanism, N, PERIOD, physics, threads=1)
    ids, low = torch.arange(N), torch.linspace(0, len(space.places) - 1, N).long()
    plant.place(ids, joint_position=space.angles[low], gripper_position=torch.full((N, 1), card.gripper.joint.upper))
    target = space.places[low].clone()
    target[:, 2] = -DEEP
    told = {
        "tool_position_target": target,
        "gripper_position_target": torch.full((N, 1), card.gripper.joint.upper),
    }
    forces = []
    for _ in range(150):
        plant.step(told)
        forces.append(plant.truth()["pad_force"].sum(-1).numpy().copy())
    trace = np.array(forces)  # (steps, N) N, both pads on the ground
    static = trace[-50:].mean(0)
    assert static.max() <= 1.1 * allowed
    assert static.min() > 0.5 * allowed  # it does press
    assert trace.max() > static.max()  # the bound is not one of impacts
    print(f"static {static.min():.1f} to {static.max():.1f} N of {allowed:.1f}, peak {trace.max():.0f} N")
