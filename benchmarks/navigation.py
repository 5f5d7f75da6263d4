"""Mobile bases: arrivals of a dynamic window, of MPPI and, if given, of policies, in the same unseen rooms.

    python benchmarks/navigation.py [--policy POLICY.onnx] [--episodes 500]
    python benchmarks/navigation.py --task omni-nav [--policy POLICY.onnx]
    python benchmarks/navigation.py --task diff-follow [--policy POLICY.onnx] [--without-plan DIFF_NAV.onnx] [--knowing]

All have the same signals, limits, goal (within 0.3 m; of diff-follow 0.25 m) and time (97 s). In diff-follow all have
the same planned path, and obstacles and people that the plan does not know; ``--without-plan`` drives a policy of
diff-nav in the same rooms, which is told the goal and not the path; ``--knowing`` a dynamic window that is told the
shortest way round everything but people: what the rules allow.

An episode is stuck where the robot does not get 0.5 m from where it was within 10 s, the rule of Nav2's progress
checker (SimpleProgressChecker, its default parameters): Nav2 would end it. It may still arrive here, so both are
counted: arrivals, and arrivals of episodes that were never stuck. ``--first`` is the number of the first room, so that
a long run can be made in parts.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from typing import Any

import torch
from first_episodes import Act, by_controller, by_policy, first_episodes
from results import write
from torch import Tensor

from robo_rl.evaluate.evaluation import HELD_OUT, ControllerPolicy
from robo_rl.evaluate.proportion import wilson
from robo_rl.policies.loading import load
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.mobile_base.among_people import BaseAmongPeople
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.loading import load_task
from robo_rl.sim.tasks.mobile_base.follow import BEAMS, PERIOD, DiffFollow
from robo_rl.sim.tasks.mobile_base.navigate import DiffNav, RoomNav

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


class WithGoal(DiffFollow):
    """diff-follow, whose robot also knows where the goal is: for a policy that is not told the path."""

    def __init__(self) -> None:
        super().__init__()
        (told,) = (signal for signal in DiffNav().spec.signals if signal.source == "operator")
        self.spec = dataclasses.replace(self.spec, signals=(*self.spec.signals, told))

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        return {**super().reference(time, goal), "position_setpoint": goal[:, :2]}


class KnowingPlant(BaseAmongPeople):
    """Whose robots are told a point of the shortest way, round all that the plan does not know."""

    def _measure_path(self, some: Any, pose: Tensor) -> None:
        super()._measure_path(some, pose)
        self.ahead[some] = self.rooms.located.ahead[some][:, None]


class KnowsTheWay(DiffFollow):
    """diff-follow with the shortest way in the place of the plan."""

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> BaseAmongPeople:
        return KnowingPlant(self.card, n, PERIOD, self.scan, BEAMS)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--task", choices=("diff-nav", "diff-follow", "omni-nav"), default="diff-nav")
    arguments.add_argument("--policy", help="a bundle or a run of the task, to drive too")
    arguments.add_argument("--without-plan", help="a bundle or a run of diff-nav, to drive in the rooms of diff-follow")
    arguments.add_argument("--knowing", action="store_true", help="of diff-follow: also who knows all obstacles")
    arguments.add_argument("--drivers", nargs="*", default=["dynamic-window", "mppi"], help="classical ones to drive")
    arguments.add_argument("--episodes", type=int, default=500, help="rooms")
    arguments.add_argument("--first", type=int, default=0, help="number of the first room")
    given = arguments.parse_args()
    task = load_task(given.task)
    assert isinstance(task, RoomNav | DiffFollow)
    drivers: dict[str, tuple[Task, Act]] = {}
    if given.policy is not None:
        drivers["policy"] = task, by_policy(load(given.policy, task).policy)
    if given.without_plan is not None:
        drivers["without plan"] = WithGoal(), by_policy(load(given.without_plan, DiffNav()).policy)
    for controller in (task.controller(), *task.controllers()):
        if controller.name in given.drivers:
            drivers[controller.name] = task, by_controller(ControllerPolicy(task, controller))
    if given.knowing:
        task = KnowsTheWay()
        drivers["knowing"] = task, by_controller(ControllerPolicy(task, task.controller()))
    rows = [{"driver": name, **drive(*how, name, given)} for name, how in drivers.items()]
    name = "navigation" if given.task == "diff-nav" else f"navigation-{given.task}"
    write(name, {"task": given.task, "rooms": given.episodes, "first": given.first, "drivers": rows})


def drive(task: Task, act: Act, name: str, given: argparse.Namespace) -> dict[str, Any]:
    """The first episode in each of so many rooms."""
    episodes, fixed = given.episodes, {"speed_limit": 1.0} if isinstance(task, DiffFollow) else {}
    env = VecEnv(task, episodes, seed=HELD_OUT, evaluation=True, fixed=fixed, first=given.first)
    progress, begun = Progress(episodes, task.spec.control_period), time.perf_counter()
    found = first_episodes(env, act, progress)
    arrived, never = int(found.succeeded.sum()), int((found.succeeded & ~progress.stuck).sum())
    row = {
        "arrived": arrived / episodes,
        "arrived_interval": wilson(arrived, episodes),
        "contact": float(found.failed.double().mean()),
        "arrived_never_stuck": never / episodes,
        "arrived_never_stuck_interval": wilson(never, episodes),
        "arrival_time_s": float(found.time[found.succeeded].mean()),
    }
    print(f"{name:<16}", json.dumps(row), f"in {time.perf_counter() - begun:.0f} s", flush=True)
    return row


if __name__ == "__main__":
    main()
