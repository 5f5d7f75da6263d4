"""Does a bounded correction bring a frozen policy from two thirds of the episodes to nearly all?

`zoo:arm-reach` was trained with an empty hand. With up to 1.55 kg in it, which no signal tells, the arm hangs down by
as much as its stiffness gives, and a third of the episodes end beside their set-points. PPO learns a correction of at
most 0.6 of an action beside it (`robo-rl train arm-reach --base zoo:arm-reach`), with three seeds. Base and corrected
policies are evaluated in the same 1,000 held-out episodes. Seeds alone replace the rows of those seeds.

    python benchmarks/residual.py
    python benchmarks/residual.py 3
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reset_families import told
from results import FOLDER, words, write

from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, rollout
from robo_rl.learn.runs.folder import Run
from robo_rl.policy import PolicyGraph

TASK, BASE = "arm-reach", "zoo:arm-reach"
TRAIN = (
    "--base", BASE, "--bounds", "payload:0:1.55", "--ppo.bound", 0.6, "--ppo.gamma", 0.97,
    "--ppo.initial-deviation", 0.2, "--ppo.updates", 160, "--episodes", 0,
)  # fmt: skip
EPISODES = 1000
SEEDS = 3


def evaluated(policy: PolicyGraph) -> dict[str, float]:
    """Success with its interval, and the error at the end (m)."""
    policy = policy.requires_grad_(False).eval()
    found = rollout(policy.task, GraphPolicy(policy), Conditions(episodes=EPISODES)).summary()
    return {name: found[name] for name in ("success", "success_low", "success_high", "tool_position_error_mean_m")}


def main(seeds: Sequence[int]) -> None:
    known = FOLDER / "residual.json"
    found: dict[str, Any] = json.loads(known.read_text()) if known.exists() else {"rows": []}
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            trained = told("train", TASK, *TRAIN, "--seed", seed, "--runs", folder)
            run = Run.open(Path(trained["run"]))
            if "base" not in found:
                found["base"] = evaluated(run.new_policy())  # a correction that has learnt nothing
            row = {"seed": seed, "corrected": evaluated(run.policy()[0])}
        row |= {"control_steps": trained["environment_steps"], "train_seconds": trained["train_seconds"]}
        print(f"seed {seed}: {found['base']['success']:.1%}, corrected {row['corrected']['success']:.1%}", flush=True)
        rows = [*(other for other in found["rows"] if other["seed"] != seed), row]
        found |= {"task": TASK, "options": " ".join(map(str, TRAIN)), "episodes": EPISODES}
        found["rows"] = sorted(rows, key=lambda other: other["seed"])
        write("residual", found)


if __name__ == "__main__":
    main([int(word) for word in words(__doc__, 1)] or range(SEEDS))
