"""Driving in traffic: how episodes of car-lanes end, for a policy and for IDM with MOBIL on the same roads.

Beside them, what the guard of the policy is worth alone: a driver that asks for the speed limit and for the lane of the
route, and leaves the rest to it.

    python benchmarks/lanes.py [POLICY]         # a run's folder or a bundle

Driving score: the part of the route that was completed, times 0.6 for a collision and 0.7 for a red light (the
leaderboard of CARLA), averaged over all episodes. lanes_rates.py has the simulation's speed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from results import words, write
from torch import Tensor

from robo_rl.evaluate.evaluation import ControllerPolicy
from robo_rl.policies.loading import load
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.car.in_lanes import CarInLanes
from robo_rl.sim.scenes.lanes import WIDE
from robo_rl.sim.scenes.lanes.guard import yellow_age
from robo_rl.sim.tasks.car.in_lanes import GO
from robo_rl.sim.tasks.car.lanes import LIMIT, PERIOD, CarLanes

EPISODES = 1000
COLLISION, RED = 0.6, 0.7


class Eager:
    """Asks for the speed limit and for the route's lane, within the bounds of the guard."""

    def __init__(self, task: CarLanes) -> None:
        self.task = task

    def initial_state(self, n: int) -> Tensor:
        """(n, 4): the age of yellow, s, bounds of the steering angle, rad, and of the speed, m/s."""
        return torch.tensor([[0.0, 0.0, 0.0, self.task.top]]).expand(n, -1)

    def __call__(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        guard, (yellow, least, most, top) = self.task.guard, state.split(1, 1)
        side = WIDE * signals["lane_count"][:, 2:].round().sign()
        speed = signals["wheel_speed"].clamp(min=0.0)
        steering = torch.minimum(torch.maximum(guard.pursuit(signals, speed, side), least), most)
        wanted = (speed + GO / self.task.card.speed_gain).clamp(max=LIMIT)  # no harder than the policy can
        bounds = guard.bounds(signals, yellow)
        state = torch.cat([yellow_age(signals, yellow, PERIOD), bounds.steering, bounds.speed], 1)
        return {"steering_angle": steering, "speed": torch.minimum(wanted, top)}, state


class Watched(CarInLanes):
    """Cars whose state before a new episode begins is kept."""

    def step(self, commands: Mapping[str, Tensor]) -> None:
        super().step(commands)
        names = ("collision", "red_run", "edge", "route_left", "progress")
        self.last = {name: value[:, 0].clone() for name, value in self.truth().items() if name in names}


def endings(task: CarLanes, policy: Any, n: int = EPISODES, seed: int = 1) -> dict[str, float]:
    """How ``n`` held-out episodes end: parts of them, and means."""
    env = VecEnv(task, n, seed, evaluation=True, make_plant=lambda k: Watched(task.card, k, PERIOD, task.vehicles))
    state, signals = policy.initial_state(n), env.signals()
    begun, under_way = env.drawn["traffic/density"].clone(), torch.ones(n, dtype=torch.bool)
    found: dict[str, Any] = {name: torch.zeros(n) for name in ("success", "collision", "red", "road", "exit", "time")}
    score, completion, duration = torch.zeros(3, n).unbind(0)
    for k in range(env.episode_steps):
        commands, state = policy(signals, state)
        step = env.step(commands)
        signals, last = step.signals, env.plant.last
        over = under_way & (step.failed | step.succeeded | step.timeout)
        hit, red = (last[name] > 0.5 for name in ("collision", "red_run"))
        kinds = {
            "success": step.succeeded, "time": step.timeout, "collision": step.failed & hit,
            "red": step.failed & red & ~hit, "exit": step.failed & ~hit & ~red & (last["route_left"] <= 0),
        }  # fmt: skip
        kinds["road"] = ~torch.stack(list(kinds.values())).any(0)
        for name, value in kinds.items():
            found[name] += (over & value).float()
        factor = torch.where(hit, COLLISION, 1.0) * torch.where(red, RED, 1.0)
        score = torch.where(over, last["progress"] * factor, score)
        completion = torch.where(over, last["progress"], completion)
        duration = torch.where(over & step.succeeded, (k + 1) * PERIOD, duration)
        under_way &= ~over
        if not under_way.any():
            break
    dense = begun > begun.median()
    parts = {name: float(value.mean()) for name, value in found.items()}
    won = found["success"] > 0.5
    return {
        **parts, "collision_sparse": float(found["collision"][~dense].mean()),
        "collision_dense": float(found["collision"][dense].mean()), "score": float(score.mean()),
        "completion": float(completion.mean()), "trip_time": float(duration[won].mean()) if won.any() else float("nan"),
    }  # fmt: skip


def main() -> None:
    given = words(__doc__ or "", 1)
    task = CarLanes()
    sides = [("policy", load(word).policy) for word in given]
    sides += [("idm", ControllerPolicy(task)), ("guard", Eager(task))]
    found = {name: endings(task, policy) for name, policy in sides}
    for name, figures in found.items():
        print(f"{name:<8}" + "  ".join(f"{key} {value:.3f}" for key, value in figures.items()))
    write("lanes", {"episodes": EPISODES, "endings": found})


if __name__ == "__main__":
    main()
