"""Time to fly: `robo-rl train quadrotor-hover` from the shell, cold, for five seeds; then 1,000 held-out flights each.

Cold means a new process and an empty compilation cache. Beside the figures of the bar (3 s of training, 30 s from
the shell prompt, 99 % of flights, 0.1 m) it prints how much of the time is compilation.

    python benchmarks/time_to_fly.py
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from results import last_json, words, write

SEEDS = range(5)


def main() -> None:
    rows = []
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "XDG_CACHE_HOME": str(Path(folder, "cache"))}
            train = ["robo-rl", "train", "quadrotor-hover", "--seed", str(seed), "--runs", folder, "--json"]
            trained = last_json(subprocess.run(train, env=environment, capture_output=True, text=True, check=True))
            evaluate = ["robo-rl", "evaluate", trained["run"], "--episodes", "1000", "--json"]
            flown = last_json(subprocess.run(evaluate, capture_output=True, text=True, check=True))
        keys = ("train_seconds", "compile_seconds", "wall_seconds", "environment_steps")
        row = {"seed": seed, **{key: trained[key] for key in keys}}
        row |= {key: flown[key] for key in ("success", "success_low", "success_high", "position_error_mean_m")}
        rows.append(row)
        print(
            f"seed {seed}: {row['train_seconds']:.2f} s of training, {row['wall_seconds']:.1f} s from the prompt; "
            f"{row['success']:.1%} of 1,000 flights, {100 * row['position_error_mean_m']:.1f} cm",
            flush=True,
        )
    write("time_to_fly", {"seeds": rows})


if __name__ == "__main__":
    words(__doc__)
    main()
