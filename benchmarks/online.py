"""Does a cloned policy get better while it acts, without getting worse on the way?

`arm-reach`, cloned from 20 episodes of its script with an empty hand, goes on by SAC with a hand that carries up to
1.2 kg, of which the policy isn't told: critics alone learn at first, then the policy too, near the clone for a while.
As it goes on, its mean is evaluated in the same held-out episodes. Beside it, the same without warm-up and anchor. The
plot goes into docs/images.

    python benchmarks/online.py
    python benchmarks/online.py 300     # episodes of an evaluation
"""

from __future__ import annotations

import copy
import dataclasses
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from reset_families import told
from results import FOLDER, words, write

from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, rollout
from robo_rl.learn.config import SacConfig
from robo_rl.learn.runs.folder import Run
from robo_rl.learn.runs.warm_start import begin_from
from robo_rl.learn.sac import Learner

TASK = "arm-reach"
SHOWN = ("--episodes", 20)
CARRIED = ("--bounds", "payload:0:1.2")
"""kg."""
ANCHORED = SacConfig(
    updates=30, warm_up=6, anchor=2.0, anchor_part=1.0, initial_deviation=0.1, target_entropy=-1.0, gamma=0.95,
    gradient_steps=4,
)  # fmt: skip
CASES = {
    "warm-up and anchor": ANCHORED,
    "neither": dataclasses.replace(ANCHORED, warm_up=0, anchor=0.0),
}
EVERY = 5
"""Rounds between evaluations."""


def evaluated(learner: Learner, episodes: int) -> list[float]:
    """Success of the policy's mean, with its interval; nothing is drawn from the training's random numbers."""
    state = torch.get_rng_state()
    policy = copy.deepcopy(learner.policy).requires_grad_(False)
    found = rollout(policy.task, GraphPolicy(policy), Conditions(episodes=episodes)).summary()
    torch.set_rng_state(state)
    return [found[name] for name in ("success", "success_low", "success_high")]


def measured(clone: Run, config: SacConfig, episodes: int) -> list[dict[str, Any]]:
    """Evaluations from the clone on."""
    torch.manual_seed(0)
    policy = clone.new_policy()
    learner = Learner(policy.task, policy, config, 0)
    begin_from(learner, clone)
    rows = []
    while True:
        if learner.done % EVERY == 0:
            rows.append({"control_steps": learner.environment_steps, "success": evaluated(learner, episodes)})
            print(f"  {rows[-1]['control_steps']:>7,}: {rows[-1]['success'][0]:.1%}", flush=True)
        if learner.done == learner.total:
            return rows
        learner.update()


def plot(found: dict[str, list[dict[str, Any]]]) -> None:
    """docs/images/online.png: success over control steps, with intervals."""
    from matplotlib.figure import Figure

    from robo_rl.report.plots import COLOURS

    figure = Figure(figsize=(6.0, 3.0), layout="constrained")
    place = figure.subplots()
    for colour, (name, rows) in zip(COLOURS, found.items(), strict=False):
        steps = [row["control_steps"] / 1000 for row in rows]
        success, low, high = (
            [100 * part for part in parts] for parts in zip(*(r["success"] for r in rows), strict=True)
        )
        place.plot(steps, success, color=colour, label=name, linewidth=1, marker="o", markersize=3)
        place.fill_between(steps, low, high, color=colour, alpha=0.15, linewidth=0)
    first = 100 * next(iter(found.values()))[0]["success"][0]
    place.axhline(first - 5, color="0.6", linestyle=":", linewidth=1, label="5 points below the clone")
    place.set_xlabel("control steps (thousands)")
    place.set_ylabel("success of the mean (%)")
    place.set_ylim(0, 100)
    place.legend(fontsize=7)
    figure.savefig(FOLDER.parents[1] / "docs" / "images" / "online.png", dpi=100)


def main(episodes: int) -> None:
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        shown = folder / "shown.safetensors"
        told("demonstrate", TASK, *SHOWN, "--out", shown)
        bc = ("--algorithm", "bc", "--demonstrations", shown, "--episodes", 0, *CARRIED)
        told("train", TASK, *bc, "--runs", folder, "--name", "clone")
        clone, found = Run.open(folder / "clone"), {}
        for name, config in CASES.items():
            print(name, flush=True)
            found[name] = measured(clone, config, episodes)
            plot(found)
            write("online", {"task": TASK, "episodes": episodes, "every_rounds": EVERY, "evaluations": found})


if __name__ == "__main__":
    given = words(__doc__, 1)
    if given and not (given[0].isdecimal() and 0 < int(given[0]) <= 10_000):
        sys.exit(f"online.py: {given[0]}: expected a number of episodes")
    main(int(given[0]) if given else 500)
