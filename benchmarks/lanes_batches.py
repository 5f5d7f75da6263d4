"""What larger mini-batches do to learning to drive in traffic: a reward that multiplies, and one that adds.

    python benchmarks/lanes_batches.py          # all; what is in results/lanes_batches.json is not trained again
    python benchmarks/lanes_batches.py plot     # docs/images/lanes-batches.png

PPO on car-lanes, with the reward of CaRL (Jaeger et al. 2025) and with that of Roach (Zhang et al. 2021), with the same
samples and epochs in mini-batches of 256 to 16,384, five seeds each; then the driving score of held-out episodes.
"""

from __future__ import annotations

import dataclasses
import json
import time
from typing import Any

import torch
from lanes import endings
from results import FOLDER, words, write

from robo_rl.evaluate.evaluation import GraphPolicy
from robo_rl.learn.config import PpoConfig
from robo_rl.learn.ppo import Learner
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks.car.in_lanes import InLanes
from robo_rl.sim.tasks.car.lanes import CarLanes

SIZES = (256, 1024, 4096, 16384)
SEEDS = 5
ENVIRONMENTS, HORIZON, UPDATES = 512, 32, 32
OWN = {"environments": ENVIRONMENTS, "horizon": HORIZON, "updates": UPDATES, "anneal": 0.4, "entropy": 0.002}
EPISODES = 300


class Product(CarLanes):
    """With a reward that is a product; without the guard, which drives well whatever the network asks for."""

    command = InLanes.command


class Sum(Product):
    """With a reward that is a sum."""

    additive = True


TASKS = {"product": Product, "sum": Sum}


def measured(reward: str, size: int, seed: int) -> dict[str, Any]:
    """A training, and how held-out episodes end."""
    torch.manual_seed(seed)
    task = TASKS[reward]()
    samples = ENVIRONMENTS * HORIZON
    config = dataclasses.replace(PpoConfig(**task.settings["ppo"]), **OWN, mini_batches=samples // size)
    policy = PolicyGraph(task, config.hidden, config.activation, config.normalize)
    learner, begun = Learner(task, policy, config, seed), time.perf_counter()
    while learner.done < learner.total:
        learner.update()
    row = {"reward": reward, "size": size, "seed": seed, "steps": learner.environment_steps}
    found = endings(Product(), GraphPolicy(policy), EPISODES, seed=100)
    return {**row, "seconds": round(time.perf_counter() - begun, 1), **found}


def plot(rows: list[dict[str, Any]]) -> None:
    """Means over seeds, and the seeds."""
    from matplotlib.figure import Figure

    figure = Figure((7.0, 3.6), layout="constrained")
    axes = figure.subplots()
    for reward, label, color in (("product", "multiplicative (CaRL)", "C0"), ("sum", "additive (Roach)", "C1")):
        points = [[row["score"] for row in rows if (row["reward"], row["size"]) == (reward, size)] for size in SIZES]
        axes.plot(SIZES, [sum(p) / max(len(p), 1) for p in points], "-", color=color, label=label)
        for size, scores in zip(SIZES, points, strict=True):
            axes.plot([size] * len(scores), scores, "o", color=color, ms=4, alpha=0.6)
    axes.set_xscale("log", base=2)
    axes.set_xticks(SIZES, [f"{size:,}" for size in SIZES])
    axes.set_xlabel("samples in a mini-batch")
    axes.set_ylabel("driving score")
    axes.set_ylim(0.0, 1.0)
    axes.legend()
    figure.savefig(FOLDER.parents[1] / "docs/images/lanes-batches.png", dpi=130)


def main() -> None:
    given = words(__doc__ or "", 1)
    known = FOLDER / "lanes_batches.json"
    rows = json.loads(known.read_text())["rows"] if known.exists() else []
    if given == ["plot"]:
        plot(rows)
        return
    for seed in range(SEEDS):
        for size in SIZES:
            for reward in TASKS:
                if any((row["reward"], row["size"], row["seed"]) == (reward, size, seed) for row in rows):
                    continue
                rows.append(measured(reward, size, seed))
                print({key: rows[-1][key] for key in ("reward", "size", "seed", "score", "seconds")}, flush=True)
                write("lanes_batches", {"episodes": EPISODES, "rows": rows})


if __name__ == "__main__":
    main()
