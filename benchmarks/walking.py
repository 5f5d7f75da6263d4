"""Learning to walk: `robo-rl train go2-flat` from the shell for three seeds; then 1,000 held-out walks each.

A walk lasts 20 s: commands within ±1 m/s, ±0.6 m/s and ±1 rad/s that change every 5 s, two pushes, and a robot and a
ground drawn from all ranges. The bar: in 10 minutes of two cores at most 1 % of falls, and on average at most
0.15 m/s and 0.2 rad/s between commanded and measured velocity. Seeds on the command line are (re)done, others kept.

    python benchmarks/walking.py
    python benchmarks/walking.py 2
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from results import FOLDER, last_json, words, write

SEEDS = (0, 1, 2)
WALKS = 1000


def main() -> None:
    path = FOLDER / "walking.json"
    rows = {row["seed"]: row for row in json.loads(path.read_text())["seeds"]} if path.exists() else {}
    for seed in [int(word) for word in sys.argv[1:]] or SEEDS:
        trained = last_json(robo_rl("train", "go2-flat", "--seed", str(seed), "--episodes", "0", "--json"))
        walked = last_json(robo_rl("evaluate", trained["run"], "--episodes", str(WALKS), "--json"))
        rows[seed] = row(trained, walked)
        print(told(rows[seed]), flush=True)
        write("walking", {"walks": WALKS, "seeds": [rows[seed] for seed in sorted(rows)]})


def robo_rl(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "robo_rl", *words], capture_output=True, text=True, check=True)


def row(trained: dict[str, Any], walked: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a training and its evaluation."""
    kept = {key: trained[key] for key in ("seed", "train_seconds", "wall_seconds", "environment_steps")}
    kept |= {"falls": 1 - walked["success"], "falls_low": 1 - walked["success_high"]}
    kept["falls_high"] = 1 - walked["success_low"]
    errors = ("linear_velocity_error_mean_m_s", "yaw_rate_error_mean_rad_s")
    return {**kept, **{key: walked[key] for key in errors}}


def told(row: dict[str, Any]) -> str:
    """A row for people."""
    return (
        f"seed {row['seed']}: {row['environment_steps']:,} control steps in {row['train_seconds']:.0f} s; falls "
        f"{row['falls']:.1%} ({row['falls_low']:.1%} to {row['falls_high']:.1%}), "
        f"{row['linear_velocity_error_mean_m_s']:.3f} m/s, {row['yaw_rate_error_mean_rad_s']:.3f} rad/s"
    )


if __name__ == "__main__":
    words(__doc__, 100)
    main()
