"""How far from its set-point a quadrotor hovers: two recipes of five seeds each, and the geometric controller.

The short recipe is `robo-rl train quadrotor-hover` as it is, the long one trains for longer, and through longer
horizons. Distances are those at the end of 1,000 held-out episodes of 5 s, of the episodes that did not fail.

    python benchmarks/hovering.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from results import words, write

from robo_rl.commands.training.train import main as train
from robo_rl.evaluate.evaluation import Conditions, rollout
from robo_rl.learn.config import ApgConfig
from robo_rl.policies.loading import Loaded, load

EPISODES = 1000
RECIPES = {"short": ApgConfig(), "long": ApgConfig(updates=800, environments=128, horizon=64, learning_rate=0.024)}


def distances(policy: str, loaded: Loaded) -> dict[str, Any]:
    """Success rate, and how far (m) from the set-point the successful episodes end."""
    episodes = rollout(loaded.task, loaded.policy, Conditions(episodes=EPISODES))
    error = episodes.errors["position_error"][episodes.survived]
    summary = episodes.summary()
    row = {"policy": policy, **{name: summary[name] for name in ("success", "success_low", "success_high")}}
    row |= {"mean_m": float(error.mean()), "within_5_cm": float((error <= 0.05).mean())}
    return row | {f"p{part}_m": float(np.quantile(error, part / 100)) for part in (50, 90, 99)}


def main() -> None:
    rows = [distances("geometric", load("classical", "quadrotor-hover"))]
    for recipe, config in RECIPES.items():
        for seed in range(5):
            with tempfile.TemporaryDirectory() as folder:
                train("quadrotor-hover", seed=seed, runs=Path(folder), episodes=0, apg=config)
                (run,) = Path(folder).iterdir()
                rows.append(distances(f"{recipe}, seed {seed}", load(str(run))))
    for row in rows:
        print(
            f"{row['policy']:<14} {row['success']:.1%}, mean {100 * row['mean_m']:.2f} cm, "
            f"99 % within {100 * row['p99_m']:.1f} cm"
        )
    write("hovering", {"episodes": EPISODES, "rows": rows})


if __name__ == "__main__":
    words(__doc__)
    main()
