"""The sequential test of comparisons: how often it tells equals apart, and how many seeds a difference takes.

2,000 pairs of equal groups of normal scores, and 500 pairs that differ by 1.5 standard deviations; blocks of 5 seeds,
at most 30, level 5 %.

    python benchmarks/sequential.py
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from results import words, write

from robo_rl.evaluate.comparison import compare
from robo_rl.evaluate.proportion import wilson

NULL, DIFFERENT, OFFSET = 2000, 500, 1.5


def main() -> None:
    words(__doc__)
    null = [pair(trial, 0.0) for trial in range(NULL)]
    apart = sum(decision != "equal" for decision, _ in null)
    low, high = wilson(apart, NULL)
    print(f"{apart} of {NULL} null pairs were told apart: {apart / NULL:.1%} ({low:.1%} to {high:.1%})", flush=True)
    different = [pair(trial, OFFSET) for trial in range(NULL, NULL + DIFFERENT)]
    found = np.mean([decision == "larger" for decision, _ in different])
    seeds = np.mean([samples for _, samples in different])
    print(
        f"{found:.1%} of {DIFFERENT} differences of {OFFSET} standard deviations found, after {seeds:.1f} seeds of 30"
    )
    write("sequential", {"null_pairs": NULL, "told_apart": apart / NULL, "told_apart_interval": [low, high],
                         "different_pairs": DIFFERENT, "offset": OFFSET, "found": float(found),
                         "mean_seeds": float(seeds)})  # fmt: skip


def pair(trial: int, offset: float) -> tuple[str, int]:
    """Decision, and seeds of each group."""

    def score(salt: int, offset: float) -> Callable[[int], float]:
        return lambda seed: offset + float(np.random.default_rng([salt, trial, seed]).normal())

    outcome = compare({"a": score(0, offset), "b": score(1, 0.0)})
    return outcome["decision"], outcome["samples"]


if __name__ == "__main__":
    main()
