"""A policy of rates and thrust through MAVLink against plain simulation: flights of 10 s, and their error.

    python benchmarks/px4_wire.py [--episodes 100] [--policy zoo:quadrotor-rates]

On one side the driver, MAVLink's bytes and the emulated PX4, from the ground; every vehicle hovers at another part of
full thrust, on another curve, and its robot file says a hover thrust that is up to 10 % off. On the other the task's
own plant, in the air from the beginning. The set-point stands for 4 s and goes to a place drawn within 0.5 m then; a
flight fails that is ever more than a metre from it after the first 4 s, which are the way up. Time is virtual on both.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch
from results import write

from robo_rl.controllers.gate.codes import Request, State
from robo_rl.deploy.emulate.px4 import Vehicle
from robo_rl.deploy.emulate.px4.virtual import World
from robo_rl.deploy.robot.drivers.driver import ForLoop
from robo_rl.deploy.robot.drivers.mavlink.px4 import Px4
from robo_rl.deploy.robot.drivers.mavlink.robot_file import VehicleFile
from robo_rl.deploy.robot.loop import Loop, Step
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.sim.tasks.loading import load_task

PERIOD, CLIMB, SECONDS, HEIGHT = 0.02, 4.0, 10.0, 1.5
PATIENCE = 60.0  # s of real time for a control period of virtual time
READY = 10  # steps before it is armed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--policy", default="zoo:quadrotor-rates")
    given = parser.parse_args()
    torch.set_num_threads(1)
    policy, random = Policy.load(given.policy, 1 / PERIOD), np.random.default_rng(0)
    goals = [np.append(random.uniform(-0.5, 0.5, 2), random.uniform(1.0, 2.0)) for _ in range(given.episodes)]
    vehicles = [random.uniform((0.5, 1.0, 0.9), (0.75, 1.7, 1.1)) for _ in goals]
    found: dict[str, Any] = {"episodes": given.episodes}
    sides = {
        "wire": [through_the_wire(policy, goal, *vehicles[seed], seed) for seed, goal in enumerate(goals)],
        "simulation": [simulated(policy, goal, seed) for seed, goal in enumerate(goals)],
    }
    for name, flights in sides.items():
        good = [f for f in flights if f is not None]
        found[name] = {"success": len(good) / len(flights), "error_m": float(np.mean(good))}
        print(
            f"{name}: {len(good)} of {len(flights)} flights, {100 * np.mean(good):.1f} cm from the set-point at the end"
        )
    write("px4_wire", found)


def judged(places: list[np.ndarray], goals: list[np.ndarray]) -> float | None:
    """m from the set-point in the last second; None where it failed."""
    far = np.linalg.norm(np.array(places) - np.array(goals), axis=1)
    after = far[round(CLIMB / PERIOD) :]
    return None if len(far) < round(SECONDS / PERIOD) or after.max() > 1.0 else float(far[-round(1 / PERIOD) :].mean())


def goal_at(time: float, goal: np.ndarray) -> np.ndarray:
    return goal if time > CLIMB else np.array([0.0, 0.0, HEIGHT])


def through_the_wire(
    policy: Policy, goal: np.ndarray, hover: float, curve: float, off: float, seed: int
) -> float | None:
    """The robot file's hover thrust is ``off`` times the true one."""
    world = World(Vehicle(seed=seed, hover=hover, curve=curve))
    driver = Px4(world, policy.contract, VehicleFile(hover_thrust=float(hover * off)), world.now)
    told = {"position_setpoint": np.zeros(3, np.float32), "linear_velocity_setpoint": np.zeros(3, np.float32)}
    driver.connect()
    places: list[np.ndarray] = []
    goals: list[np.ndarray] = []

    def note(step: Step) -> None:
        told["position_setpoint"][:] = goal_at(len(places) * PERIOD, goal)
        if step.number == READY:
            loop.request(Request.ARM)
        elif step.output.state == State.READY and loop.reserve.arrived:
            loop.request(Request.ACTIVATE)
        if world.vehicle.armed and world.vehicle.time - world.vehicle._armed_at > 1.0:
            places.append(world.vehicle.truth["position"])
            goals.append(told["position_setpoint"].copy())
        if len(places) >= round(SECONDS / PERIOD) or step.output.state == State.FAULT:
            loop.end()

    loop = Loop(policy, ForLoop(driver, policy.contract, told), note, world, PATIENCE)
    loop.run(60.0)
    return judged(places, goals)


def simulated(policy: Policy, goal: np.ndarray, seed: int) -> float | None:
    """By the same exported policy, on the plant with parameters of the ranges."""
    task = load_task("quadrotor-rates")
    plant, random = task.make_plant(1, "cpu"), np.random.default_rng(seed)
    plant.param("thrust_scale")[:] = random.uniform(0.8, 1.2)
    plant.param("thrust_slope")[:] = random.uniform(0.8, 1.7)
    plant.current.position[0] = torch.tensor([0.0, 0.0, HEIGHT])
    noise = {s.name: np.array(s.noise) for s in policy.contract.signals if s.source != "operator"}
    policy.reset()
    places, goals = [], []
    for count in range(round(SECONDS / PERIOD)):
        truth = {name: plant.truth()[name][0].numpy().copy() for name in noise}
        wanted = goal_at(count * PERIOD, goal)
        places.append(truth["position"])
        goals.append(wanted)
        measured = {name: value + noise[name] * random.standard_normal(value.shape) for name, value in truth.items()}
        measured["orientation"] /= np.linalg.norm(measured["orientation"])
        told = {"position_setpoint": wanted, "linear_velocity_setpoint": np.zeros(3)}
        commands = policy.step({**measured, **told})
        plant.step({name: torch.from_numpy(value[None]).float() for name, value in commands.items()})
    return judged(places, goals)


if __name__ == "__main__":
    main()
