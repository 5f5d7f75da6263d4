"""Driving in traffic: simulated vehicles per second, beside highway-env in the same run.

    python benchmarks/lanes_rates.py            # pip install highway-env==1.12.1

An agent step is one vehicle, one step of 0.1 s. car-lanes: all that training has (the car's dynamics, sensors, reward,
resets), for each of its environments one car and 31 others, or 127. highway-env: highway-v0, as fast as it goes: 31
other vehicles, one step of simulation per decision, kinematic observations of 8 neighbours, no pictures; one
environment, as it has no batches. Commands are those of a car that follows its lane at 8 m/s.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from results import words, write

from robo_rl.evaluate.benchmark import rates
from robo_rl.evaluate.evaluation import ControllerPolicy
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.car.in_lanes import CarInLanes
from robo_rl.sim.tasks.car.lanes import PERIOD, CarLanes

ENVIRONMENTS = 1024
OTHERS = 31
Side = tuple[int, Callable[[], None]]


class Dense(CarLanes):
    """With as many vehicles as it can have."""

    vehicles = 127


def main() -> None:
    words(__doc__ or "")
    sides = {
        "highway-env": highway(), "car-lanes, 32 vehicles": environment(CarLanes()),
        "car-lanes, 128 vehicles": environment(Dense()), "world alone, 32 vehicles": world(CarLanes()),
    }  # fmt: skip
    found = rates(sides)
    for name, rate in found.items():
        print(f"{name:<26} {rate:12,.0f} agent steps/s, {rate / found['highway-env']:8.0f} x highway-env's")
    write("lanes_rates", {"rates": found, "threads": torch.get_num_threads()})


def environment(task: CarLanes) -> Side:
    """Every environment is full; cars follow their lanes, so that episodes are as long as trained ones."""
    env = VecEnv(task, ENVIRONMENTS, seed=1, fixed={"traffic/density": 1.0})
    policy = ControllerPolicy(task)
    given, _ = policy(env.signals(), policy.initial_state(env.n))
    given["speed"].fill_(8.0)

    def step() -> None:
        route = env.signals()["route"]
        given["steering_angle"][:, 0] = task.base * 2.0 * route[:, 1, 1] / route[:, 1].square().sum(-1)
        env.step(given)

    return ENVIRONMENTS * (task.vehicles + 1), step


def world(task: CarLanes) -> Side:
    """Cars and traffic without sensors, reward and resets; the cars stand."""
    env = VecEnv(task, ENVIRONMENTS, seed=1, fixed={"traffic/density": 1.0, "initial/speed": 0.0})
    plant: CarInLanes = env.plant
    given = {"steering_angle": torch.zeros(ENVIRONMENTS, 1), "speed": torch.zeros(ENVIRONMENTS, 1)}
    return ENVIRONMENTS * (task.vehicles + 1), lambda: plant.step(given)


def highway() -> Side:
    """highway-env's."""
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    try:
        import gymnasium
        import highway_env
    except ImportError as error:
        raise SystemExit(f"{error.name} is not installed; expected highway-env (pip install highway-env)") from error
    gymnasium.register_envs(highway_env)
    rate = round(1 / PERIOD)
    config: dict[str, Any] = {
        "simulation_frequency": rate, "policy_frequency": rate, "vehicles_count": OTHERS, "lanes_count": 4,
        "duration": 90, "action": {"type": "ContinuousAction"},
        "observation": {"type": "Kinematics", "vehicles_count": 9},
    }  # fmt: skip
    env = gymnasium.make("highway-v0", config=config)
    env.reset(seed=1)
    action = env.action_space.sample() * 0.0

    def step() -> None:
        _, _, over, late, _ = env.step(action)
        if over or late:
            env.reset()

    return OTHERS + 1, step


if __name__ == "__main__":
    main()
