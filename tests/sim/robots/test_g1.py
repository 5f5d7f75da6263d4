"""Unitree's G1 against published figures, and what its gains can do."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from robo_rl.controllers.rotation import body_z
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.legged import LeggedCard, load_legged
from robo_rl.sim.tasks.legged.limbs import find_limbs, standing

SEGMENTS = {"hip_pitch": 0.1027, "hip_roll": 0.0305, "hip_yaw": 0.1241, "knee": 0.1773, "ankle_pitch": 0.3000}
"""m, of the joint below the one before it, in the axes of the link above (unitree_ros, g1_29dof_rev_1_0)."""


@pytest.fixture(scope="module")
def card() -> LeggedCard:
    return load_legged("g1")


def test_it_weighs_what_unitree_publishes(card: LeggedCard) -> None:
    model, _, _ = standing(card)
    assert float(model.body_mass.sum()) == pytest.approx(33.341, abs=0.002)
    legs = [model.body(i).mass[0] for i in range(model.nbody) if model.body(i).name.startswith("left_")]
    assert sum(legs) == pytest.approx(1.35 + 1.52 + 1.702 + 1.932 + 0.074 + 0.608)


def test_its_legs_are_as_long_as_unitree_publishes(card: LeggedCard) -> None:
    model, data, indices = standing(card)
    for name, length in SEGMENTS.items():
        assert abs(float(model.body(f"left_{name}_link").pos[2])) == pytest.approx(length, abs=1e-4)
    data.qpos[indices.position] = 0.0
    mujoco.mj_kinematics(model, data)
    soles = data.site("left_foot").xpos
    assert soles[2] == pytest.approx(-0.793, abs=0.002)  # the pelvis stands 0.793 m high there with straight legs
    assert soles[1] == pytest.approx(0.0645 + 0.052 + 0.0021, abs=1e-3)


def test_every_link_has_a_possible_inertia(card: LeggedCard) -> None:
    model, _, _ = standing(card)
    moments = model.body_inertia[1:]
    assert (moments > 0).all()
    assert (2 * moments.max(1) <= moments.sum(1) * (1 + 1e-9)).all()  # no moment exceeds the sum of the two others


def test_twelve_leg_joints_are_driven_in_the_order_of_the_sdk_and_the_hardware_mode_is_told(card: LeggedCard) -> None:
    limbs = find_limbs(card)
    assert limbs.legs == (tuple(range(6)), tuple(range(6, 12)))
    assert limbs.others == ()
    assert limbs.signs == (1.0, -1.0, -1.0, 1.0, 1.0, -1.0) * 2  # roll and yaw are mirrored
    assert card.facts().facts["hardware"] == {"mode_machine": 5.0}


def test_the_gains_of_the_hold_stand_and_those_of_the_walk_fall(card: LeggedCard) -> None:
    """m g h is about 200 N m/rad: two ankles of 40 N m/rad each can't hold it, two of 300 N m/rad can."""
    lasted = {}
    for name in ("stiffness", "hold_stiffness"):
        plant = MujocoPlant(card.mechanism, 2, 0.02, physics=Physics(contacts="points"))
        for parameter in ("stiffness", "damping"):
            gains = [getattr(joint, name.replace("stiffness", parameter)) for joint in card.joints]
            plant.param(parameter)[:] = torch.tensor(gains, dtype=torch.float64)
        plant.place(torch.arange(2))
        stand = torch.tensor([[joint.stand for joint in card.joints]]).repeat(2, 1)
        for step in range(400):
            if step == 50 and name == "hold_stiffness":
                plant.push(torch.tensor([1]), torch.tensor([0.0, 0.15, 0.0]))
            plant.step({"joint_position_target": stand})
            if float(body_z(plant.truth()["orientation"].unbind(-1))[2].min()) < 0.5:
                break
            lasted[name] = 0.02 * (step + 1)
    assert lasted["stiffness"] < 2.5
    assert lasted["hold_stiffness"] == pytest.approx(8.0)
    np.testing.assert_allclose(plant.truth()["foot_force"].sum(1), 33.341 * 9.81, rtol=0.05)
