"""Mobile bases: arrivals of a dynamic window, of MPPI and, if one is given, of a policy, in the same unseen rooms.

    python benchmarks/navigation.py [--policy POLICY.onnx] [--episodes 500]

All have the same signals, limits, goal (within 0.3 m) and time (97 s). An episode is stuck where the robot does not get
0.5 m from where it was within 10 s, the rule of Nav2's progress checker (SimpleProgressChecker, its default
parameters): Nav2 would end it. It may still arrive here, so both are counted: arrivals, and arrivals of episodes that
were never stuck.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import torch
from first_episodes import Act, by_controller, by_policy, first_episodes, interval
from results import write
from torch import Tensor

from robo_rl.evaluation import HELD_OUT, ControllerPolicy
from robo_rl.loading import load
from sim.env import VecEnv
from sim.tasks.loading import load_task
from sim.tasks.mobile_base.navigate import DiffNav

MOVED, WITHIN = 0.5, 10.0
"""m and s: required_movement_radius and movement_time_allowance of Nav2's SimpleProgressChecker."""


class Progress:
    """Whether a robot was ever within MOVED of one place for longer than WITHIN."""

    def __init__(self, n: int, period: float) -> None:
        self.place, self.since, self.period = torch.full((n, 2), torch.inf), torch.zeros(n), period
        self.stuck = torch.zeros(n, dtype=torch.bool)

    def __call__(self, env: VecEnv, running: Tensor) -> None:
        place = env.plant.truth()["place"]
        moved = (place - self.place).norm(dim=-1) > MOVED
        self.place = torch.where(moved[:, None], place, self.place)
        self.since = torch.where(moved, 0.0, self.since + self.period)
        self.stuck |= running & (self.since > WITHIN)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--policy", help="a bundle or a run of diff-nav, to drive too")
    arguments.add_argument("--episodes", type=int, default=500, help="rooms")
    given = arguments.parse_args()
    task = load_task("diff-nav")
    assert isinstance(task, DiffNav)
    drivers: dict[str, Act] = {}
    if given.policy is not None:
        drivers["policy"] = by_policy(load(given.policy, task).policy)
    drivers["dynamic window"] = by_controller(ControllerPolicy(task))
    drivers["MPPI"] = by_controller(ControllerPolicy(task, task.controllers()[0]))
    rows = [{"driver": name, **drive(task, name, given.episodes, act)} for name, act in drivers.items()]
    write("navigation", {"rooms": given.episodes, "drivers": rows})


def drive(task: DiffNav, name: str, episodes: int, act: Act) -> dict[str, Any]:
    """The first episode in each of so many rooms."""
    env = VecEnv(task, episodes, seed=HELD_OUT, evaluation=True)
    progress, begun = Progress(episodes, task.spec.control_period), time.perf_counter()
    found = first_episodes(env, act, progress)
    arrived, never = int(found.succeeded.sum()), int((found.succeeded & ~progress.stuck).sum())
    row = {
        "arrived": arrived / episodes,
        "arrived_interval": interval(arrived, episodes),
        "contact": float(found.failed.double().mean()),
        "arrived_never_stuck": never / episodes,
        "arrived_never_stuck_interval": interval(never, episodes),
        "arrival_time_s": float(found.time[found.succeeded].mean()),
    }
    print(f"{name:<16}", json.dumps(row), f"in {time.perf_counter() - begun:.0f} s", flush=True)
    return row


if __name__ == "__main__":
    main()
