"""Classical control of arms: one law in numpy, in torch and in the plant; inverse kinematics that arrives."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from robo_rl.controllers.arm import Impedance, clipped, impedance_torques, inverse, nullspace_torques, pointing_step
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.arm import ArmCard, load_arm
from robo_rl.sim.robots.mechanism import Frame, JointGroup

number = st.floats(-1.0, 1.0)


@pytest.fixture(scope="module")
def panda() -> ArmCard:
    return load_arm("panda")


def law(card: ArmCard) -> Impedance:
    assert card.impedance is not None
    return Impedance(card.impedance.stiffness, card.impedance.damping, card.impedance.clip)


@given(st.tuples(number, number, number), st.floats(0.01, 2.0))
def test_a_clipped_vector_keeps_its_direction_and_is_no_longer_than_said(
    vector: tuple[float, float, float], longest: float
) -> None:
    found, given_ = np.array(clipped(vector, longest)), np.array(vector)
    assert np.linalg.norm(found) <= longest * (1 + 1e-9)
    expected = given_ * min(1.0, longest / max(np.linalg.norm(given_), 1e-9))
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_a_far_target_pulls_a_robot_at_rest_with_the_stiffness_times_the_clip(panda: ArmCard) -> None:
    of, home = law(panda), [float(angle) for angle in panda.home]
    pose = panda.chain.pose(home)
    turned = Rotation.from_matrix(np.array([pose.x, pose.y, pose.z]).T).as_quat()
    far = (pose.position[0], pose.position[1], pose.position[2] - 3.0)
    torques = np.array(impedance_torques(panda.chain, of, home, [0.0] * 7, far, tuple(turned)))
    linear, angular = pose.jacobian()
    jacobian = np.concatenate([np.array(linear).T, np.array(angular).T])
    wrench = np.linalg.lstsq(jacobian.T, torques, rcond=None)[0]
    np.testing.assert_allclose(wrench, [0, 0, -of.stiffness[0] * of.clip[0], 0, 0, 0], atol=1e-6)


def test_one_robot_in_numpy_and_a_batch_in_torch_get_the_same_torques(panda: ArmCard) -> None:
    random = np.random.default_rng(2)
    joints = np.array(panda.home) + 0.2 * random.normal(size=(5, 7))
    rates, targets = random.normal(size=(5, 7)), random.normal(size=(5, 3))
    quaternions = random.normal(size=(5, 4))
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    batch = [tuple(torch.from_numpy(x).unbind(1)) for x in (joints, rates, targets, quaternions)]
    found = torch.stack(impedance_torques(panda.chain, law(panda), *batch), 1).numpy()
    for k in range(5):
        one = [tuple(map(float, x[k])) for x in (joints, rates, targets, quaternions)]
        np.testing.assert_allclose(found[k], impedance_torques(panda.chain, law(panda), *one), atol=1e-9)


def test_the_controllers_torques_move_the_arm_as_the_plants_own_impedance(panda: ArmCard) -> None:
    fine = Physics(timestep=0.0005, contacts="model")
    own = MujocoPlant(panda.mechanism, 1, 0.02, fine, threads=1)
    armature, damping = own.model.dof_armature, own.model.dof_damping  # of the model, which drives of a card replace
    joints = tuple(dataclasses.replace(j, armature=float(a)) for j, a in zip(panda.joints, armature, strict=False))
    groups = (JointGroup("joint", joints, law="torque"), panda.mechanism.groups[1])
    by_torque = dataclasses.replace(
        panda.mechanism, groups=groups, impedances=(), frames=(Frame("tool", panda.tool, panda.base),)
    )
    other = MujocoPlant(by_torque, 1, 0.0005, fine, threads=1)
    truth = own.truth()
    start, turned = truth["tool_position"].clone(), tuple(truth["tool_orientation"][0].double().tolist())
    target = start + torch.tensor([[0.05, 0.1, -0.08]])
    for _ in range(15):
        own.step({"tool_position_target": target})
        for _ in range(40):
            now = other.truth()
            angles, rates = (now[f"joint_{name}"][0].double().tolist() for name in ("position", "velocity"))
            goal = tuple(target[0].double().tolist())
            torques = impedance_torques(panda.chain, law(panda), angles, rates, goal, turned)
            torques = [float(x) - d * v for x, d, v in zip(torques, damping, rates, strict=False)]
            other.step({"joint_torque_target": torch.tensor([torques])})
    moved = float((own.truth()["tool_position"] - start).norm())
    apart = float((own.truth()["tool_position"] - other.truth()["tool_position"]).norm())
    assert moved > 0.03
    assert apart < 0.02 * moved


def test_the_nullspace_brings_joints_home_and_puts_no_force_on_the_tool(panda: ArmCard) -> None:
    joints = np.array(panda.home) + 0.3
    torques = nullspace_torques(panda.chain, 10.0, joints, np.zeros(7), panda.home)
    linear, angular = panda.chain.pose([float(x) for x in joints]).jacobian()
    jacobian = np.concatenate([np.array(linear).T, np.array(angular).T])
    assert np.linalg.norm(torques) > 0.1
    np.testing.assert_allclose(np.linalg.pinv(jacobian.T) @ torques, 0.0, atol=1e-9)


def test_steps_of_inverse_kinematics_bring_a_five_jointed_arm_to_a_place_with_its_tool_pointing_down() -> None:
    card = load_arm("so101")
    places = np.array([[0.2, 0.05, 0.03], [0.25, -0.08, 0.05]])
    limits = np.array([(joint.lower, joint.upper) for joint in card.joints]).T
    found, missed = inverse(card.chain, places, np.array(card.home), None, *limits)
    assert missed.max() < 1e-6
    pose = card.chain.pose(list(found.T))
    np.testing.assert_allclose(np.stack(pose.position, 1), places, atol=1e-6)
    np.testing.assert_allclose(pose.z[2], -1.0, atol=1e-9)


def test_a_step_of_inverse_kinematics_stays_small_where_the_arm_is_stretched() -> None:
    card = load_arm("so101")
    straight = [0.0, 0.0, 0.0, 0.0, 0.0]
    outwards = tuple(0.02 * x for x in card.chain.pose(straight).z)
    step = np.array([float(x) for x in pointing_step(card.chain, straight, outwards)])
    assert np.isfinite(step).all()
    assert np.abs(step).max() < 3.2  # pointing down from here is a quarter turn
