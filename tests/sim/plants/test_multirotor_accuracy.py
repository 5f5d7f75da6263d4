"""The multirotor against independent solutions of its equations: scipy's, MuJoCo's, and its order of convergence."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from robo_rl.sim.plants.multirotor import (
    MultirotorParameters,
    MultirotorPlant,
    MultirotorState,
    advance,
    nominal_parameters,
)
from robo_rl.sim.robots import load_robot

G = 9.81
SIZES = (3, 4, 3, 3, 4)  # position, quaternion, velocity, body rates, rotor speeds


def derivative(y: np.ndarray, command: np.ndarray, p: dict[str, np.ndarray]) -> np.ndarray:
    """ẏ of n vehicles (n, 17), from the equations in the module's docstring, with matrices and cross products."""
    _, q, v, omega, speed = np.split(y, np.cumsum(SIZES)[:-1], axis=1)
    R = Rotation.from_quat(q).as_matrix()
    e_z = np.array([0.0, 0.0, 1.0])
    tau = np.where(command > speed, p["rise_time"][:, None], p["fall_time"][:, None])
    speed_dot = (command - speed) / tau
    c0, c1, c2 = np.moveaxis(p["thrust"], -1, 0)
    T = p["thrust_scale"] * (c0 + c1 * speed + c2 * speed**2)
    spin, ratio, J_r = p["spin"], p["torque_ratio"], p["rotor_inertia"][:, None]
    torque = np.cross(p["rotor_position"], T[..., None] * e_z).sum(1)
    torque = torque - ((spin * ratio * T) + spin * J_r * speed_dot).sum(1)[:, None] * e_z + p["torque"]
    momentum = p["inertia"] * omega + (spin * J_r * speed).sum(1)[:, None] * e_z
    omega_dot = (torque - np.cross(omega, momentum)) / p["inertia"]

    air = v - p["wind"]
    air_body = np.einsum("nji,nj->ni", R, air)
    drag = np.concatenate([np.repeat(p["rotor_drag"][:, :1], 2, 1), p["rotor_drag"][:, 1:]], 1)
    drag_body = -drag * speed.sum(1)[:, None] * air_body
    body_drag = -p["body_drag"][:, None] * np.linalg.norm(air, axis=1)[:, None] * air
    force = np.einsum("nij,nj->ni", R, T.sum(1)[:, None] * e_z + drag_body) + body_drag + p["force"]
    acceleration = force / p["mass"][:, None] - G * e_z
    x, y_, z, w = q.T
    a, b, c = omega.T
    q_dot = 0.5 * np.stack(
        [w * a + y_ * c - z * b, w * b + z * a - x * c, w * c + x * b - y_ * a, -x * a - y_ * b - z * c], 1
    )
    return np.concatenate([v, q_dot, acceleration, omega_dot, speed_dot], 1)


def exact(y: np.ndarray, command: np.ndarray, p: dict[str, np.ndarray], duration: float) -> np.ndarray:
    """The state (n, 17) after ``duration`` under a constant command."""
    solution = solve_ivp(
        lambda _, flat: derivative(flat.reshape(y.shape), command, p).ravel(),
        (0, duration), y.ravel(), method="DOP853", rtol=1e-10, atol=1e-10,
    )  # fmt: skip
    return solution.y[:, -1].reshape(y.shape)


def random_parameters(card, n: int, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Every parameter different for every vehicle, with wind, drag of all kinds, and disturbances."""
    nominal = nominal_parameters(card)._asdict()
    p = {name: np.repeat(value.numpy().astype(float), n, 0) for name, value in nominal.items()}
    for name in ("mass", "inertia", "thrust_scale", "torque_ratio", "rotor_inertia", "rotor_drag"):
        p[name] *= random.uniform(0.7, 1.3, p[name].shape)
    for name in ("rise_time", "fall_time"):
        p[name] *= random.uniform(1.0, 1.5, p[name].shape)
    p["rotor_position"] += random.uniform(-0.1, 0.1, p["rotor_position"].shape) * card.arm
    weight = card.mass * G
    top = card.rotor_speed_max
    p["thrust"][..., 0] = random.uniform(0, 0.02, (n, 4)) * weight
    p["thrust"][..., 1] = random.uniform(0, 0.05, (n, 4)) * weight / top
    p["body_drag"] = random.uniform(0.2, 1.0, n) * weight / 100  # the weight at 10 to 22 m/s
    p["wind"] = random.uniform(-3, 3, (n, 3))
    p["force"] = random.uniform(-0.2, 0.2, (n, 3)) * weight
    p["torque"] = random.uniform(-0.002, 0.002, (n, 3)) * weight * card.arm
    return p


def random_states(card, n: int, random: np.random.Generator, rate: float) -> np.ndarray:
    axis = random.normal(size=(n, 3))
    omega = rate * axis / np.linalg.norm(axis, axis=1, keepdims=True)
    q = Rotation.random(n, random).as_quat()
    speed = random.uniform(0, 1, (n, 4)) * card.rotor_speed_max
    return np.concatenate([random.normal(size=(n, 3)), q, 3 * random.normal(size=(n, 3)), omega, speed], 1)


def as_state(y: np.ndarray, dtype=torch.float64) -> MultirotorState:
    return MultirotorState(*torch.tensor(y, dtype=dtype).split(SIZES, 1))


def as_parameters(p: dict[str, np.ndarray], dtype=torch.float64) -> MultirotorParameters:
    return MultirotorParameters(**{name: torch.tensor(value, dtype=dtype) for name, value in p.items()})


@pytest.mark.parametrize("robot", ["crazyflie", "hummingbird"])
@pytest.mark.parametrize("seed", [0, 1])
def test_position_is_within_a_millimetre_of_the_exact_one_after_a_second_of_aggressive_flight(robot, seed):
    random, card, n = np.random.default_rng(seed), load_robot(robot), 4
    p, y = random_parameters(card, n, random), random_states(card, n, random, rate=20.0)
    plant = MultirotorPlant(card, n, 0.01)
    for name, value in p.items():
        plant.param(name)[:] = torch.tensor(value)
    for part, value in zip(plant.current, as_state(y), strict=True):
        part[:] = value
    fastest = 0.0
    for _ in range(100):
        command = random.uniform(0, card.rotor_speed_max, (n, 4))
        plant.step({"rotor_speed": torch.tensor(command, dtype=torch.float32)})
        y = exact(y, command, p, 0.01)
        fastest = max(fastest, np.linalg.norm(y[:, 10:13], axis=1).max())
    assert fastest > 20.0
    assert np.linalg.norm(plant.current.position.numpy() - y[:, :3], axis=1).max() < 1e-3
    turn = Rotation.from_quat(plant.current.orientation.numpy()) * Rotation.from_quat(y[:, 3:7]).inv()
    assert turn.magnitude().max() < 5e-3
    np.testing.assert_allclose(plant.current.linear_velocity, y[:, 7:10], atol=5e-3)
    np.testing.assert_allclose(plant.current.angular_velocity, y[:, 10:13], atol=0.1)
    np.testing.assert_allclose(plant.current.rotor_speed, y[:, 13:], rtol=1e-5)


def test_the_error_falls_with_the_fourth_power_of_the_period_and_with_the_third_where_drag_acts():
    random, card = np.random.default_rng(3), load_robot("crazyflie")
    p, y = random_parameters(card, 6, random), random_states(card, 6, random, rate=15.0)
    p["rotor_drag"][:3], p["body_drag"][:3] = 0.0, 0.0
    command = random.uniform(0.3, 1, (6, 4)) * card.rotor_speed_max
    expected = np.split(exact(y, command, p, 0.16), np.cumsum(SIZES)[:-1], 1)
    errors = []
    for steps in (16, 32, 64):
        state = as_state(y)
        for _ in range(steps):
            state = advance(state, torch.tensor(command), as_parameters(p), 0.16 / steps)
        errors.append(
            [
                [np.abs(x.numpy() - e)[i].max() for i in (range(3), range(3, 6))]
                for x, e in zip(state, expected, strict=True)
            ]
        )
    orders = np.log2(np.array(errors[:-1]) / errors[1:])[:, :4]
    assert orders[..., 0].min() > 3.7
    assert orders[..., 1].min() > 2.9
    assert np.max(errors, axis=(0, 2))[4] < 1e-9 * card.rotor_speed_max, "motors are solved exactly at any period"


@pytest.mark.parametrize("robot", ["crazyflie", "hummingbird"])
def test_mujoco_moves_the_same_body_to_the_same_place(robot):
    card, random = load_robot(robot), np.random.default_rng(5)
    plant = MultirotorPlant(card, 1, 0.01)
    for name in ("rotor_inertia", "rotor_drag", "body_drag"):
        plant.param(name)[:] = 0.0
    plant.current.angular_velocity[:] = torch.tensor([3.0, -4.0, 2.0])
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="0.0005" gravity="0 0 -{G}" integrator="RK4"/><worldbody><body name="vehicle">
        <freejoint/><inertial pos="0 0 0" mass="{card.mass}" diaginertia="{" ".join(map(str, card.inertia))}"/>
        </body></worldbody></mujoco>"""
    )
    data = mujoco.MjData(model)
    data.qvel[3:] = 3.0, -4.0, 2.0
    places = np.array([rotor.position for rotor in card.rotors])
    spins = np.array([1.0 if rotor.spin == "ccw" else -1.0 for rotor in card.rotors])
    speed = np.full(4, card.hover_speed)
    for _ in range(50):
        command = card.hover_speed * random.uniform(0.8, 1.2, 4)
        plant.step({"rotor_speed": torch.tensor(command[None], dtype=torch.float32)})
        for _ in range(20):
            lag = np.where(command > speed, card.rise_time, card.fall_time)
            middle = command + (speed - command) * np.exp(-0.00025 / lag)
            speed = command + (speed - command) * np.exp(-0.0005 / lag)
            T = card.thrust[2] * middle**2
            torque = np.array([places[:, 1] @ T, -places[:, 0] @ T, -spins @ (card.torque_ratio * T)])
            R = Rotation.from_quat(data.qpos[3:], scalar_first=True).as_matrix()
            data.xfrc_applied[1] = np.concatenate([R @ [0, 0, T.sum()], R @ torque])
            mujoco.mj_step(model, data)
    travelled = np.linalg.norm(data.qpos[:3])
    assert travelled > 0.1
    assert np.linalg.norm(plant.current.position[0].numpy() - data.qpos[:3]) < 0.01
    turn = (
        Rotation.from_quat(plant.current.orientation[0].numpy())
        * Rotation.from_quat(data.qpos[3:], scalar_first=True).inv()
    )
    assert turn.magnitude() < 0.05
    np.testing.assert_allclose(plant.current.angular_velocity[0], data.qvel[3:], atol=0.1)
