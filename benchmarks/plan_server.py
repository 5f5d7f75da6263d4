"""Placing a cube through a plan server with latency, beside the same policy in the robot's own process.

    .venv/bin/python benchmarks/plan_server.py --episodes 400

Both in the same episodes, in simulated time. The server's plans are those of ``robo-rl emulate plan-server``; a request
is made when the one before is answered, and takes a time that is drawn for each. The bundle that follows the plans, and
what is checked of them, are those of ``robo-rl run --plan``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import results
import torch
import tyro
from torch import Tensor

from robo_rl.deploy.build.verify import BundlePolicy
from robo_rl.deploy.emulate.plans import Planner
from robo_rl.deploy.emulate.plans.serve import steps_of
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.plans.source import Checks
from robo_rl.deploy.robot.plans.terms import Plan, PlanError
from robo_rl.evaluate.evaluation import Conditions, Episodes, rollout
from robo_rl.sim.tasks.loading import load_task


class Following:
    """n robots that follow the plans of one server, each with its own latency."""

    def __init__(self, bundle: Bundle, policy: Bundle, latency: tuple[float, float], seed: int = 0) -> None:
        self.follower, self.policy, self.latency = BundlePolicy(bundle), policy, latency
        self.contract, self.random = bundle.contract, np.random.default_rng(seed)
        self.refused = self.plans = 0

    def initial_state(self, n: int) -> Tensor:
        """Begin with n robots."""
        self.checks = [Checks(self.contract) for _ in range(n)]
        terms = self.checks[0].terms
        every = round(terms.dt / self.contract.control_period)
        self.planner = Planner(self.policy, terms.rows, every, steps_of(self.latency[1], self.contract), n)
        self.due, self.asked = np.full(n, np.inf), np.zeros(n, int)
        self.answers: dict[int, np.ndarray] = {}
        self.last: list[np.ndarray | None] = [None] * n
        self.now = 10_000_000
        return self.follower.initial_state(n)

    def __call__(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """As a policy of the robots without plans."""
        self.now += round(1e6 * self.contract.control_period)
        given = {name: value.numpy() for name, value in signals.items()}
        for i in np.flatnonzero(self.due <= self.now):
            self._take(int(i))
        who = np.flatnonzero(np.isinf(self.due))
        if len(who):
            rows = self.planner.plan(
                {name: value[who] for name, value in given.items()}, np.full(len(who), 1e-6 * self.now), who
            )
            self.answers |= dict(zip(who.tolist(), rows, strict=True))
            self.asked[who] = self.now
            self.due[who] = self.now + 1e6 * self.random.uniform(*self.latency, len(who))
        plans, flown = self._plans(), np.array([check.plan is not None for check in self.checks])
        with_plans = {**signals, **{name: torch.from_numpy(value) for name, value in plans.items()}}
        commands, following = self.follower(with_plans, state)
        following[~flown] = state[~flown]
        stopped = {c.name: _measured(self.contract, c, signals) for c in self.contract.commands}
        sent = {n: torch.where(torch.from_numpy(flown)[:, None], v, stopped[n]) for n, v in commands.items()}
        flat = torch.cat([sent[c.name] for c in self.contract.commands], 1).numpy().astype(np.float64)
        self.last = list(flat)
        return sent, following

    def _take(self, i: int) -> None:
        start = int(self.asked[i])
        try:
            self.plans += self.checks[i].take(Plan(0, start, self.answers[i]), self.now, start, self.last[i])
        except PlanError as error:
            self.refused += 1
            self.checks[i].holding = str(error)
        self.due[i] = np.inf

    def _plans(self) -> dict[str, np.ndarray]:
        found = [{name: value for name, (value, _) in check.samples(self.now).items()} for check in self.checks]
        blank = {name: np.zeros(self.contract.signal(name).dimensions, np.float32) for name in self.checks[0].names}
        blank[self.checks[0].age_name] = np.zeros(1, np.float32)
        return {name: np.stack([one.get(name, value) for one in found]) for name, value in blank.items()}


def _measured(contract: Any, command: Any, signals: Mapping[str, Tensor]) -> Tensor:
    value = torch.stack([signals[name][:, i] for name, i in contract.feedback(command)], 1)
    return torch.minimum(torch.maximum(value, torch.tensor(command.lower)), torch.tensor(command.upper))


def followed(folder: Path, task: str) -> Bundle:
    """The bundle that follows plans for a task's robot."""
    from robo_rl.deploy.build.plans import export_follower

    return export_follower(load_task(f"{task}-plans"), folder / "follow.onnx")


def main(episodes: int = 400, seed: int = 1, seconds: float = 8.0, latency: float = 0.3, spread: float = 0.2) -> None:
    """Success of both, with intervals.

    Args:
        episodes: Number of episodes of each.
        seed: Random seed of the episodes.
        seconds: Length of an episode, in which the first plan is waited for, too. The task's own is 6 s.
        latency: s, from a request to its answer, in the middle.
        spread: s, to either side of it.
    """
    torch.set_num_threads(1)
    policy, task = Bundle.read("zoo:arm-place"), load_task("arm-place")
    conditions = Conditions(episodes=episodes, seed=seed, seconds=seconds)
    local = figures(rollout(task, BundlePolicy(policy), conditions, "local"))
    with tempfile.TemporaryDirectory() as folder:
        bundle = followed(Path(folder), "arm-place")
        following = Following(bundle, policy, (latency - spread, latency + spread))
        served = figures(rollout(task, following, conditions, "through the plan server"))
    print(
        f"local {local['success']:.1%}, through the plan server {served['success']:.1%}, of {episodes} in {seconds:g} s"
    )
    print(f"{following.plans} plans followed, {following.refused} refused")
    results.write(
        "plan_server",
        {
            "policy": "zoo:arm-place", "seconds": seconds, "latency_s": [latency - spread, latency + spread],
            "local": local, "server": served, "plans": following.plans, "refused": following.refused,
        },
    )  # fmt: skip


def figures(episodes: Episodes) -> dict[str, Any]:
    """Of both: success, with its interval, in the time that is given and in the task's own 6 s."""
    in_time = (episodes.success & (episodes.duration <= 6.0)).mean()
    return {**episodes.summary(), "success_in_6_s": float(in_time)}


if __name__ == "__main__":
    tyro.cli(main)
