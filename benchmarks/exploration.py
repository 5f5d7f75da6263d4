"""Whether a maze is learnt in which only the end is rewarded: with random network distillation and without.

`robo-rl train agv-maze` as it is, and with `--ppo.rnd 0`, each with five seeds and as many steps; then 500 held-out
episodes of each policy. A pair takes a few minutes; a seed alone replaces the rows of that seed.

    python benchmarks/exploration.py
    python benchmarks/exploration.py 3
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from results import FOLDER, words, write

from robo_rl.commands.training.train import main as train
from robo_rl.evaluate.evaluation import Conditions, rollout
from robo_rl.learn.config import PpoConfig
from robo_rl.policies.loading import load
from robo_rl.sim.tasks.loading import load_task

EPISODES = 500
SEEDS = 5


def measured(weight: float, seed: int) -> dict[str, Any]:
    """A training with such a weight of novelty, and how many held-out episodes reach the end of the maze."""
    settings = load_task("agv-maze").settings["ppo"]
    config = dataclasses.replace(PpoConfig(**settings), rnd=weight)
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            train("agv-maze", algorithm="ppo", seed=seed, runs=Path(folder), episodes=0, ppo=config, json=True)
        told = json.loads(shown.getvalue().splitlines()[-1])
        loaded = load(told["run"])
        summary = rollout(loaded.task, loaded.policy, Conditions(episodes=EPISODES)).summary()
    row = {"rnd": weight, "seed": seed, "steps": told["environment_steps"], "seconds": told["train_seconds"]}
    return row | {name: summary[name] for name in ("success", "success_low", "success_high")}


def main(seeds: Sequence[int]) -> None:
    own = load_task("agv-maze").settings["ppo"]["rnd"]
    known = FOLDER / "exploration.json"
    rows = json.loads(known.read_text())["rows"] if known.exists() else []
    rows = [row for row in rows if row["seed"] not in seeds]
    for seed in seeds:
        for weight in (own, 0.0):
            rows.append(measured(weight, seed))
            steps = rows[-1]["steps"] / 1e6
            print(f"seed {seed}, rnd {weight:g}: {rows[-1]['success']:.1%} after {steps:.2f} M steps", flush=True)
    write("exploration", {"episodes": EPISODES, "rows": sorted(rows, key=lambda row: (row["seed"], -row["rnd"]))})


if __name__ == "__main__":
    given = words(__doc__, 1)
    main([int(word) for word in given] or range(SEEDS))
