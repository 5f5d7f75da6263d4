"""Simulation of a quadrotor: control steps per second beside l2f (C++, PyPI) in one run, and the error of a step.

Speed: batches with parameters drawn per vehicle, 100 Hz, both sides in turns, best of the rounds.
Error: one second of aggressive flight (a new random command every control step) against scipy's ``solve_ivp``
(DOP853, tolerance 1e-10) on the equations written out again in double precision.

    pip install -e '.[bench]'          # compiles l2f for a quarter of an hour
    python benchmarks/simulation.py [--device cuda]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch
from results import write
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from robo_rl.evaluate.benchmark import env_stepper, plant_stepper, rates
from robo_rl.evaluate.multirotor import l2f_stepper
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.loading import load_task

FLIGHTS = 20
GRAVITY = 9.81  # m/s², as the plant has it


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--device", default="cpu")
    device = arguments.parse_args().device
    task = load_task("quadrotor-hover")
    n = 16384 if device == "cpu" else 1 << 22
    sides = {"plant": plant_stepper(task, device, n), "environment": env_stepper(task, device, n)}
    peer = l2f_stepper()
    if peer is not None:
        sides["l2f"] = peer
    found = rates(sides)
    for name, rate in found.items():
        print(f"{name:<12} {rate / 1e6:10.1f} million control steps/s")
    if peer is not None:
        print(f"plant over l2f: {found['plant'] / found['l2f']:.1f}")
    errors = flight_errors()
    print(f"position after 1 s of aggressive flight: off by at most {1000 * errors.max():.3f} mm in {FLIGHTS} flights")
    write(f"simulation_{device}", {"device": device, "steps_per_second": found, "error_max_m": float(errors.max())})


def flight_errors() -> np.ndarray:
    """(flights,) distance in m between the plant and the reference after 1 s."""
    env = VecEnv(load_task("quadrotor-hover"), FLIGHTS, seed=1, evaluation=True)
    plant, generator = env.plant, torch.Generator().manual_seed(0)
    plant.current.angular_velocity[:] = 10 * torch.randn(FLIGHTS, 3, generator=generator)
    top = plant.card.rotor_speed_max
    commands = top * torch.rand(100, FLIGHTS, len(plant.card.rotors), generator=generator)
    start = [{name: value[i].double().numpy().copy() for name, value in plant.truth().items()} for i in range(FLIGHTS)]
    for command in commands:
        plant.step({"rotor_speed": command})
    errors = []
    for i in range(FLIGHTS):
        parameters = {k: v[min(i, len(v) - 1)].double().numpy() for k, v in plant.parameters._asdict().items()}
        exact = fly_exactly(start[i], commands[:, i].double().numpy(), parameters, plant.period)
        errors.append(np.linalg.norm(exact[:3] - plant.current.position[i].numpy()))
    return np.array(errors)


def fly_exactly(start: dict[str, np.ndarray], commands: np.ndarray, p: dict[str, Any], period: float) -> np.ndarray:
    """Position, orientation, velocity, rates and rotor speeds after the commands, held for a period each."""
    names = ("position", "orientation", "linear_velocity", "angular_velocity", "rotor_speed")
    state = np.concatenate([start[name] for name in names])
    for command in commands:
        rising = command > state[13:]
        lag = np.where(rising, p["rise_time"], p["fall_time"])
        found = solve_ivp(
            lambda _, y, command=command, lag=lag: derivative(y, command, lag, p),
            (0.0, period),
            state,
            method="DOP853",
            rtol=1e-10,
            atol=1e-12,
        )
        state = found.y[:, -1]
    return state


def derivative(y: np.ndarray, command: np.ndarray, lag: np.ndarray, p: dict[str, Any]) -> np.ndarray:
    """The equations of motion in ``sim/plants/multirotor/__init__.py``, with rotation matrices."""
    velocity, omega, speed = y[7:10], y[10:13], y[13:]
    turn = Rotation.from_quat(y[3:7]).as_matrix()
    spin_up = (command - speed) / lag
    thrust = p["thrust_scale"] * (p["thrust"] * np.stack([speed**0, speed, speed**2], -1)).sum(-1)
    air = turn.T @ (velocity - p["wind"])
    in_plane, axial = p["rotor_drag"]
    drag = -speed.sum() * np.array([in_plane, in_plane, axial]) * air
    drag -= p["body_drag"] * np.linalg.norm(air) * air
    force = turn @ (drag + np.array([0, 0, thrust.sum()])) + p["force"] - [0, 0, p["mass"] * GRAVITY]
    torque = np.cross(p["rotor_position"], np.stack([0 * thrust, 0 * thrust, thrust], -1)).sum(0) + p["torque"]
    torque[2] -= (p["spin"] * (p["torque_ratio"] * thrust + p["rotor_inertia"] * spin_up)).sum()
    momentum = p["inertia"] * omega + [0, 0, (p["spin"] * p["rotor_inertia"] * speed).sum()]
    x, y_, z, w = y[3:7]
    a, b, c = omega
    turning = 0.5 * np.array(
        [w * a + y_ * c - z * b, w * b + z * a - x * c, w * c + x * b - y_ * a, -(x * a + y_ * b + z * c)]
    )
    return np.concatenate(
        [velocity, turning, force / p["mass"], (torque - np.cross(omega, momentum)) / p["inertia"], spin_up]
    )


if __name__ == "__main__":
    main()
