"""Tools held by springs: the force is what it is said to be at most, in all engines, and the law is the textbook's."""

from __future__ import annotations

import dataclasses
import re

import mujoco
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.impedance import Springs, rotation_vector, wrench
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.mechanism import ContactPoints, DrivenJoint, JointGroup, Mechanism

FINE = Physics(timestep=0.002)
numbers = st.floats(-1.0, 1.0)
quaternions = st.tuples(numbers, numbers, numbers, numbers).filter(lambda q: np.linalg.norm(q) > 0.05)


@given(quaternions, quaternions)
def test_the_rotation_vector_is_that_of_scipy(target: tuple[float, ...], orientation: tuple[float, ...]) -> None:
    expected = (Rotation.from_quat(target) * Rotation.from_quat(orientation).inv()).as_rotvec()
    found = rotation_vector(*(torch.tensor(q, dtype=torch.float64) for q in (target, orientation))).numpy()
    same = np.allclose(found, expected, atol=1e-9)
    assert same or np.isclose(np.linalg.norm(expected), np.pi, atol=1e-6)  # half a turn is one either way round
    np.testing.assert_allclose(np.linalg.norm(found), np.linalg.norm(expected), atol=1e-7)


def test_no_deflection_pulls_harder_than_the_stiffness_times_the_clip() -> None:
    springs = Springs(torch.tensor([[[1000.0, 30.0]]]), torch.tensor([[0.01, 0.1]]))
    target = torch.tensor([[[3.0, -4.0, 0.0, 0.0, 0.0, 1.0, 0.0]]])
    pose = torch.tensor([[[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]]])
    torch.testing.assert_close(wrench(springs, target, pose)[0, 0, :3], torch.tensor([6.0, -8.0, 0.0]))
    assert float(wrench(springs, target, pose)[0, 0, 3:].norm()) == pytest.approx(3.0)
    near = pose + torch.tensor([0.001, 0.002, 0.0, 0.0, 0.0, 0.0, 0.0])
    torch.testing.assert_close(wrench(springs, near, pose)[0, 0, :3], torch.tensor([1.0, 2.0, 0.0]))


def test_a_tool_that_is_told_to_be_far_below_the_ground_presses_on_it_with_the_stiffness_times_the_clip(
    machines, engine
) -> None:
    plant = engine(machines.six_axes(contacts=(ContactPoints("ball", ("flange",)),)), 2, 0.02, FINE)
    told = plant.truth()["tool_position"].clone()
    told[:, 2] = torch.tensor([-0.3, -3.0])
    for _ in range(85):
        plant.step({"tool_position_target": told})
    truth = plant.truth()
    np.testing.assert_allclose(truth["ball_force"][:, 0].numpy(), 1000.0 * 0.01, rtol=0.02)
    np.testing.assert_allclose(truth["tool_position"][:, 2].numpy(), 0.03, atol=2e-3)  # the ball's radius


def test_a_tool_goes_where_it_is_told_and_turns_as_it_is_told(machines, engine) -> None:
    plant = engine(machines.six_axes(), 1, 0.02, FINE)
    place, turn = plant.truth()["tool_position"].clone(), plant.truth()["tool_orientation"].double()
    told = Rotation.from_rotvec([0.2, -0.1, 0.4]) * Rotation.from_quat(turn[0].numpy())
    place += torch.tensor([[-0.05, 0.08, 0.1]])
    quaternion = 3.0 * torch.from_numpy(told.as_quat())[None].float()  # of any length
    for _ in range(80):
        plant.step({"tool_position_target": place, "tool_orientation_target": quaternion})
    truth = plant.truth()
    np.testing.assert_allclose(truth["tool_position"].numpy(), place.numpy(), atol=1e-3)
    found = Rotation.from_quat(truth["tool_orientation"][0].double().numpy())
    assert (found.inv() * told).magnitude() < 5e-3


def test_the_impedance_is_the_transposed_jacobian_times_a_cut_spring_and_a_damper(machines) -> None:
    """Torques computed by hand outside of the plant, at every physics step, move the arm alike."""
    mechanism = undamped(machines.six_axes())
    own = MujocoPlant(mechanism, 1, 0.02, Physics(timestep=0.0005))
    joints = tuple(DrivenJoint(j.name, home=j.home, armature=j.armature) for j in mechanism.joints)
    by_torque = undamped(machines.six_axes(groups=(JointGroup("joint", joints, law="torque"),), impedances=()))
    other = MujocoPlant(by_torque, 1, 0.0005, Physics(timestep=0.0005))
    model = assemble(by_torque, Physics())
    data, goal = mujoco.MjData(model), np.array([0.45, 0.15, 0.35])
    turned = Rotation.from_rotvec([0.3, 0.2, -0.5]) * Rotation.from_quat(own.truth()["tool_orientation"][0].numpy())
    told = {
        "tool_position_target": torch.from_numpy(goal)[None],
        "tool_orientation_target": torch.from_numpy(turned.as_quat())[None],
    }
    for _ in range(15):
        own.step(told)
        for _ in range(40):
            data.qpos[:], data.qvel[:] = other.batch.qpos[0], other.batch.qvel[0]
            mujoco.mj_forward(model, data)
            other.step({"joint_torque_target": torch.from_numpy(by_hand(model, data, goal, turned))[None]})
    difference = np.abs(own.batch.qpos - other.batch.qpos).max()
    moved = np.abs(own.batch.qpos[0] - [j.home for j in mechanism.joints]).max()
    assert moved > 0.1
    assert difference < 5e-3 * moved


def undamped(mechanism: Mechanism) -> Mechanism:
    """Without the damping that the file has, which counts for joints that no drive of a card is in."""
    path = mechanism.model.with_name("undamped.xml")
    path.write_text(re.sub(r' damping="[^"]*"', "", mechanism.model.read_text()))
    return dataclasses.replace(mechanism, model=path)


def by_hand(model: mujoco.MjModel, data: mujoco.MjData, goal: np.ndarray, turned: Rotation) -> np.ndarray:
    """N m: Jᵀ (K clip(x_d − x) − D v)."""
    forward, about = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    mujoco.mj_jacSite(model, data, forward, about, model.site("tool").id)
    away = goal - data.site("tool").xpos
    spin = (turned * Rotation.from_matrix(data.site("tool").xmat.reshape(3, 3)).inv()).as_rotvec()
    away *= min(1.0, 0.01 / np.linalg.norm(away))
    spin *= min(1.0, 0.1 / np.linalg.norm(spin))
    force = 1000.0 * away - 80.0 * forward @ data.qvel
    torque = 30.0 * spin - 3.0 * about @ data.qvel
    return forward.T @ force + about.T @ torque


def test_a_target_that_is_late_moves_the_tool_that_much_later(machines, engine) -> None:
    plant = engine(machines.six_axes(), 2, 0.02, FINE)
    plant.param("impedance_delay")[1] = 0.04
    plant.place(torch.arange(2))
    told, heights = plant.truth()["tool_position"] + torch.tensor([0.0, 0.0, 0.05]), []
    for _ in range(6):
        plant.step({"tool_position_target": told})
        heights.append(plant.truth()["tool_position"][:, 2].clone())
    prompt, late = torch.stack(heights).unbind(1)
    torch.testing.assert_close(late[2:], prompt[:4], atol=2e-5, rtol=0.0)
    assert float((late[1] - late[0]).abs()) < 1e-5 < float(prompt[0] - late[0])


def test_the_way_to_a_far_target_is_as_fast_as_the_gains_of_each_robot_say(machines, engine) -> None:
    plant = engine(machines.six_axes(), 2, 0.02, FINE)
    plant.param("impedance_stiffness")[1, 0, 0] = 500.0
    plant.param("impedance_damping")[1, 0, 0] = 50.0
    plant.place(torch.arange(2))
    told = plant.truth()["tool_position"] + torch.tensor([0.0, 0.0, 0.3])
    for _ in range(15):
        plant.step({"tool_position_target": told})
    speed = plant.truth()["tool_linear_velocity"][:, 2].numpy()
    np.testing.assert_allclose(speed, [1000.0 * 0.01 / 80.0, 500.0 * 0.01 / 50.0], rtol=0.1)  # losses of the joints
