"""What metrics of episodes cost a training: updates with and without them, by turns, in one process.

    python benchmarks/metrics_cost.py quadrotor-hover apg --updates 60

Two learners of the same task and seed make one update each, in alternating order; metrics are read as often as
in a training of the algorithm's usual length.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import torch

from robo_rl.learn import new_learner
from robo_rl.learn.config import CONFIGS
from robo_rl.learn.runs import training
from robo_rl.learn.runs.folder import Run
from robo_rl.sim.tasks.loading import load_task


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("task")
    parser.add_argument("algorithm")
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--environments", type=int)
    given = parser.parse_args()
    settings = dict(load_task(given.task).settings.get(given.algorithm, {}))
    settings |= {"environments": given.environments} if given.environments else {}
    hyperparameters = vars(CONFIGS[given.algorithm](**settings))
    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(Path(folder), given.task, None, given.algorithm, 0, hyperparameters)
        learners = []
        for _ in range(2):
            torch.manual_seed(0)
            learners.append(new_learner(run, run.new_policy()))
        told = training.statistics(learners[1])
        _, every = training.reports(learners[1].total)
        times: list[list[float]] = [[], []]
        for k in range(given.updates):
            for which in (0, 1) if k % 2 else (1, 0):
                begun = time.perf_counter()
                learners[which].update()
                if which and told is not None and k % every == 0:
                    told.read()
                times[which].append(time.perf_counter() - begun)
    ratios = [b / a for a, b in zip(*times, strict=True)]
    without, with_them = (sum(one) for one in times)
    print(f"{given.task} {given.algorithm}: {1000 * without / given.updates:.1f} ms per update without metrics of")
    print(f"episodes, {1000 * with_them / given.updates:.1f} ms with them: {with_them / without - 1:+.2%} of the time,")
    print(f"{statistics.median(ratios) - 1:+.2%} in the median pair")


if __name__ == "__main__":
    main()
