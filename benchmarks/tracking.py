"""Figure-eight (5.5 s, ±1 m × ±0.5 m): policies of five seeds against the geometric controller, same flights.

Mass, inertia, thrust, motors, wind, forces, noise and latency are drawn as in training, per flight. Errors are root
mean squares over the flight from 1 s on, over the flights that stay within a metre of the set-point; those that
don't are counted as failures.

    python benchmarks/tracking.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from results import words, write

from robo_rl.commands.training.train import main as train
from robo_rl.evaluate.evaluation import Conditions, rollout
from robo_rl.policies.loading import load
from robo_rl.sim.tasks.loading import load_task

CONDITIONS = Conditions(episodes=1000, seconds=6.5, fixed=load_task("quadrotor-track").figure_eight)


def main() -> None:
    rows = []
    geometric = load("classical", "quadrotor-track")
    rows.append({"policy": "geometric", **rollout(geometric.task, geometric.policy, CONDITIONS).summary()})
    for seed in range(5):
        with tempfile.TemporaryDirectory() as folder:
            train("quadrotor-track", seed=seed, runs=Path(folder), episodes=0)
            (run,) = Path(folder).iterdir()
            loaded = load(str(run))
            rows.append({"policy": f"policy, seed {seed}", **rollout(loaded.task, loaded.policy, CONDITIONS).summary()})
    for row in rows:
        print(f"{row['policy']:<16} {100 * row['tracking_error_rms_m']:6.2f} cm   {row['success']:.1%} within 1 m")
    write("tracking", {"flights": CONDITIONS.episodes, "rows": rows})


if __name__ == "__main__":
    words(__doc__)
    main()
