"""Does a bounded correction bring a frozen policy from two thirds of the episodes to nearly all?

`zoo:arm-reach` was trained with an empty hand. With up to 1.6 kg in it, which no signal tells, the arm hangs down by as
much as its stiffness gives, and a third of the episodes end beside their set-points. PPO learns a correction of at most
0.3 of an action beside it (`robo-rl train arm-reach --base zoo:arm-reach`), with three seeds. Base and corrected
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

from robo_rl.evaluation import Conditions, GraphPolicy, rollout
from robo_rl.policy import PolicyGraph
from robo_rl.runs import Run

TASK, BASE = "arm-reach", "zoo:arm-reach"
TRAIN = (
    "--base", BASE, "--bounds", "payload:0:1.6", "--ppo.initial-deviation", 0.2, "--ppo.updates", 120, "--episodes", 0,
)  # fmt: skip
EPISODES = 1000
SEEDS = 3


def evaluated(policy: PolicyGraph) -> dict[str, float]:
    """Success with its interval, and the error at the end (m)."""
    policy = policy.requires_grad_(False).eval()
    found = rollout(policy.task, GraphPolicy(policy), Conditions(episodes=EPISODES)).summary()
    return {name: found[name] for name in ("success", "success_low", "success_high", "tool_position_error_mean_m")}


def corrected(seed: int, folder: Path) -> dict[str, Any]:
    """The base, as which a correction begins, and the corrected policy."""
    trained = told("train", TASK, *TRAIN, "--seed", seed, "--runs", folder)
    run = Run.open(Path(trained["run"]))
    row = {
        "seed": seed, "control_steps": trained["environment_steps"], "train_seconds": trained["train_seconds"],
        "base": evaluated(run.new_policy()), "corrected": evaluated(run.policy()[0]),
    }  # fmt: skip
    print(f"seed {seed}: {row['base']['success']:.1%}, corrected {row['corrected']['success']:.1%}", flush=True)
    return row


def main(seeds: Sequence[int]) -> None:
    known = FOLDER / "residual.json"
    rows = json.loads(known.read_text())["rows"] if known.exists() else []
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            rows = [row for row in rows if row["seed"] != seed] + [corrected(seed, Path(folder))]
            command = " ".join(map(str, TRAIN))
            ordered = sorted(rows, key=lambda row: row["seed"])
            write("residual", {"task": TASK, "options": command, "episodes": EPISODES, "rows": ordered})


if __name__ == "__main__":
    main([int(word) for word in words(__doc__, 1)] or range(SEEDS))
