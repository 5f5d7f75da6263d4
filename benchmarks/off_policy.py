"""Soft actor-critic with its robots in turns with learning, and beside it: two Ray actors. 2 seeds each.

The task is examples/own_kind/balance.py. Each pair of trainings has the same seed and as many samples and steps of the
optimiser; they are compared by the part of 500 held-out episodes in which the pole stays up. Wall-clock time depends on
what else the computer does: compare it in pairs.

    pip install 'robo-rl[scale]'
    python benchmarks/off_policy.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from results import last_json, words, write

from robo_rl.learn.runs.folder import Run

SEEDS = 2
BALANCE = Path(__file__).parents[1] / "examples" / "own_kind" / "balance.py"
SETTINGS = "--sac.updates 25 --sac.gradient-steps 8 --sac.learning-rate 1e-3 --sac.target-rate 0.01"
NETWORKS = "--sac.hidden 64 64 --sac.critic-hidden 64 64"


def main() -> None:
    words(__doc__)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(SEEDS):
            for actors in (0, 2):
                rows.append(trained(Path(folder), seed, actors))
                print(", ".join(f"{name} {value:.4g}" for name, value in rows[-1].items()), flush=True)
    means = {
        name: [float(np.mean([row[name] for row in rows if row["actors"] == actors])) for actors in (0, 2)]
        for name in ("success", "seconds")
    }
    print(f"success in turns and beside: {means['success']}; seconds: {means['seconds']}")
    write("off_policy", {"seeds": SEEDS, "trainings": rows, "in_turns_and_beside": means})


def trained(folder: Path, seed: int, actors: int) -> dict[str, float]:
    """What came of a training."""
    command = [sys.executable, "-m", "robo_rl", "train", f"{BALANCE}:Balance", "--algorithm", "sac", "--json"]
    command += ["--seed", str(seed), "--runs", str(folder), "--sac.actors", str(actors), "--episodes", "500"]
    command += [*SETTINGS.split(), *NETWORKS.split()]
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    done = last_json(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment))
    metrics = Run.open(done["run"]).metrics()
    lags = [line["lag"] for line in metrics if "lag" in line]
    beside = {"lag": float(np.mean(lags)), "dropped": metrics[-1]["dropped"]} if lags else {}
    told = {"seed": seed, "actors": actors, "success": done["success"], "seconds": done["train_seconds"]}
    rates = {name: done[name] for name in ("steps_per_second", "simulation_steps_per_second")}
    return told | rates | beside


if __name__ == "__main__":
    main()
