"""Robots that are no quadruped, in all engines, against equations of motion that no engine has a part in."""

from __future__ import annotations

import functools
import xml.etree.ElementTree as Xml
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import Physics

GRAVITY = 9.81
FINE = Physics(timestep=0.001)


def drive(plant, commands: dict[str, float], steps: int) -> list[dict[str, np.ndarray]]:
    """Steps of all robots under numbers for all of them; what is true after each."""
    given = {name: torch.full((plant.n, 1), value) for name, value in commands.items()}
    found = []
    for _ in range(steps):
        plant.step(given)
        found.append({name: value.double().numpy().copy() for name, value in plant.truth().items()})
    return found


def cart_pole_acceleration(state: np.ndarray, force: float) -> np.ndarray:
    """Of a cart of 1 kg and a rod of 0.1 kg whose centre is 0.5 m up, Lagrange's equations by hand."""
    _, angle, speed, rate = state
    cart, pole, reach, inertia = 1.0, 0.1, 0.5, 0.01
    sine, cosine = np.sin(angle), np.cos(angle)
    matrix = np.array([[cart + pole, pole * reach * cosine], [pole * reach * cosine, inertia + pole * reach**2]])
    load = np.array([force + pole * reach * rate**2 * sine, pole * GRAVITY * reach * sine])
    return np.concatenate([[speed, rate], np.linalg.solve(matrix, load)])


def cart_pole_after(time: float, angle: float, force: float) -> np.ndarray:
    solved = solve_ivp(
        lambda _, y: cart_pole_acceleration(y, force), (0, time), [0, angle, 0, 0], rtol=1e-10, atol=1e-12
    )
    return solved.y[:, -1]


def test_a_cart_with_a_pole_moves_as_lagrange_s_equations_say(machines, engine) -> None:
    plant = engine(machines.cart_pole(), 1, 0.02, FINE)
    plant.place(torch.arange(1), pole_position=torch.tensor([[0.4]]))
    last = drive(plant, {"cart_force_target": 1.5}, 25)[-1]
    expected = cart_pole_after(0.5, 0.4, 1.5)
    found = [float(last[name][0, 0]) for name in ("cart_position", "pole_position", "cart_velocity", "pole_velocity")]
    np.testing.assert_allclose(found, expected, atol=5e-3)  # first order in a step of 1 ms
    assert last["cart_force"][0, 0] == pytest.approx(1.5)


def test_the_error_of_a_cart_with_a_pole_is_of_first_order_in_the_step_and_of_fourth_with_runge_kutta(machines) -> None:
    def error(physics: Physics) -> float:
        plant = MujocoPlant(machines.cart_pole(), 1, 0.02, physics)
        plant.place(torch.arange(1), pole_position=torch.tensor([[0.4]], dtype=torch.float64))
        drive(plant, {"cart_force_target": 1.5}, 25)
        return float(np.abs(plant.batch.qpos[0] - cart_pole_after(0.5, 0.4, 1.5)[:2]).max())

    one, half, fourth = error(FINE), error(Physics(timestep=0.0005)), error(Physics(timestep=0.002, integrator="rk4"))
    assert one / half == pytest.approx(2.0, rel=0.05)
    assert fourth < 1e-8 < half


class Chain:
    """A chain of bodies read from its MJCF: its energies, and Lagrange's equations of them."""

    def __init__(self, text: str) -> None:
        self.links, body = [], Xml.fromstring(text).find("worldbody/body")
        while body is not None:
            turn = Rotation.from_euler("XYZ", numbers(body, "euler")).as_matrix()
            self.links.append((numbers(body, "pos"), turn, body.find("joint"), body.find("inertial")))
            body = body.find("body")

    def energies(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mass matrix, and the weight's torque on every joint."""
        place, turn, joints = np.zeros(3), np.eye(3), []
        matrix, weight = np.zeros((len(q), len(q))), np.zeros(len(q))
        for offset, inner, joint, inertial in self.links:
            place, turn = place + turn @ offset, turn @ inner
            if joint is None:
                continue
            anchor, axis = (numbers(joint, name) for name in ("pos", "axis"))
            axis /= np.linalg.norm(axis)
            joints.append((place + turn @ anchor, turn @ axis))
            spin = Rotation.from_rotvec(q[len(joints) - 1] * axis).as_matrix()
            place, turn = place + turn @ (anchor - spin @ anchor), turn @ spin
            axes = turn @ Rotation.from_quat(np.roll(numbers(inertial, "quat"), -1)).as_matrix()
            center, mass = place + turn @ numbers(inertial, "pos"), float(inertial.get("mass"))
            forward, about = np.zeros((3, len(q))), np.zeros((3, len(q)))
            for k, (where, along) in enumerate(joints):
                forward[:, k], about[:, k] = np.cross(along, center - where), along
            inertia = (axes * numbers(inertial, "diaginertia")) @ axes.T
            matrix += mass * forward.T @ forward + about.T @ inertia @ about
            weight += mass * GRAVITY * forward[2]
        return matrix, weight

    def acceleration(self, q: np.ndarray, rates: np.ndarray) -> np.ndarray:
        matrix, weight = self.energies(q)
        steps = 1e-5 * np.eye(len(q))
        slope = np.stack([(self.energies(q + h)[0] - self.energies(q - h)[0]) / 2e-5 for h in steps], 2)
        momentum = np.einsum("ijk,j,k->i", slope, rates, rates)
        energy = 0.5 * np.einsum("ijk,i,j->k", slope, rates, rates)
        return np.linalg.solve(matrix, energy - momentum - weight)


def numbers(element: Xml.Element, name: str) -> np.ndarray:
    return np.array([float(x) for x in element.get(name, "0 0 0").split()])


@functools.cache
def fallen(model: Path) -> np.ndarray:
    """Joint angles and rates of the arm 0.3 s after it began to fall."""
    chain = Chain(model.read_text())
    solved = solve_ivp(
        lambda _, y: np.concatenate([y[3:], chain.acceleration(y[:3], y[3:])]),
        (0, 0.3), [0.3, -0.5, 0.8, 0.5, -0.4, 1.0], method="DOP853", rtol=1e-7, atol=1e-9,
    )  # fmt: skip
    return solved.y[:, -1]


def test_an_arm_with_turned_frames_falls_as_lagrange_s_equations_say(machines, engine) -> None:
    mechanism = machines.arm()
    start, expected = np.array([0.3, -0.5, 0.8]), fallen(mechanism.model)
    plant = engine(mechanism, 1, 0.02, FINE)
    speeds = torch.tensor([[0.5, -0.4, 1.0]])
    plant.place(torch.arange(1), joint_position=torch.tensor(start, dtype=torch.float64)[None], joint_velocity=speeds)
    last = drive(plant, {}, 15)[-1]
    np.testing.assert_allclose(last["joint_position"][0], expected[:3], atol=8e-3)
    np.testing.assert_allclose(last["joint_velocity"][0], expected[3:], atol=8e-2)
    if isinstance(plant, MujocoPlant):  # without the error of the step
        exact = MujocoPlant(mechanism, 1, 0.02, Physics(timestep=0.002, integrator="rk4"))
        position = torch.tensor(start, dtype=torch.float64)[None]
        exact.place(torch.arange(1), joint_position=position, joint_velocity=speeds.double())
        drive(exact, {}, 15)
        np.testing.assert_allclose(exact.batch.qpos[0], expected[:3], atol=1e-5)


def test_drives_that_hold_an_arm_bear_its_weight(machines, engine) -> None:
    mechanism = machines.arm(law="position")
    plant = engine(mechanism, 1, 0.02, Physics(timestep=0.005))
    hold = torch.tensor([[0.3, -0.5, 0.8]])
    plant.place(torch.arange(1), joint_position=hold)
    for _ in range(60):
        plant.step({"joint_position_target": hold})
    truth = {name: value[0].double().numpy() for name, value in plant.truth().items()}
    assert np.abs(truth["joint_velocity"]).max() < 1e-3
    _, weight = Chain(mechanism.model.read_text()).energies(truth["joint_position"])
    np.testing.assert_allclose(truth["joint_torque"], weight, atol=2e-3 * np.abs(weight).max())
    sag = weight / 60.0  # stiffness of the drives
    np.testing.assert_allclose(hold[0].double().numpy() - truth["joint_position"], sag, atol=1e-3)


def test_a_velocity_drive_reaches_its_velocity_and_is_limited_in_its_effort(machines, engine) -> None:
    from robo_rl.sim.robots.mechanism import DrivenJoint, JointGroup

    rail = DrivenJoint("rail", effort=3.0, damping=400.0)
    groups = (
        JointGroup("cart", (rail,), law="velocity", slides=True),
        JointGroup("pole", (DrivenJoint("pivot", friction=1e6),), law="none"),  # 1.1 kg in all
    )
    plant = engine(machines.cart_pole(groups=groups), 1, 0.02, FINE)
    first = drive(plant, {"cart_velocity_target": 0.5}, 5)
    assert first[-1]["cart_velocity"][0, 0] == pytest.approx(3.0 / 1.1 * 0.1, rel=0.02)  # at full effort so far
    assert first[-1]["cart_force"][0, 0] == pytest.approx(3.0)
    last = drive(plant, {"cart_velocity_target": 0.5}, 20)[-1]
    assert last["cart_velocity"][0, 0] == pytest.approx(0.5, rel=1e-3)


def test_a_dc_motor_on_a_slide_loses_its_force_on_a_straight_line_to_its_greatest_speed(machines, engine) -> None:
    from robo_rl.sim.robots.mechanism import DrivenJoint, JointGroup

    rail = DrivenJoint("rail", lower=-100.0, upper=100.0, effort=11.0, velocity=2.0)
    groups = (
        JointGroup("cart", (rail,), law="torque", slides=True, dc_motor=True),
        JointGroup("pole", (DrivenJoint("pivot", friction=1e6),), law="none"),
    )
    plant = engine(machines.cart_pole(groups=groups), 1, 0.02, FINE)
    last = drive(plant, {"cart_force_target": 100.0}, 10)[-1]
    slope, time = 11.0 / (1.1 * 2.0), 0.2  # m v' = F (1 - v / v0)
    assert last["cart_velocity"][0, 0] == pytest.approx(2.0 * (1 - np.exp(-slope * time)), rel=5e-3)


def test_passive_damping_of_the_model_slows_a_joint_in_every_engine(machines, engine) -> None:
    plant = engine(machines.six_axes(impedances=(), weightless=True), 1, 0.02, FINE)
    plant.place(torch.arange(1), joint_velocity=torch.tensor([[0, 0, 0, 0, 0, 2.0]]))
    last = drive(plant, {}, 5)[-1]
    inertia = 0.05 + 2 / 5 * 0.5 * 0.03**2  # rotor, and a ball of 0.5 kg about its own axis
    assert last["joint_velocity"][0, 5] == pytest.approx(2.0 * np.exp(-0.3 / inertia * 0.1), rel=0.02)
