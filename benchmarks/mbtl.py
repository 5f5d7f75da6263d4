"""How many trainings it takes until the best of the policies serves all contexts: MBTL, equidistant and random choice.

A multirotor hovers with 13 latencies from 0 to 60 ms. Policies are trained for every one, with 5 seeds, and each is
tried in all. From these scores follows what any choice of contexts would have given, for the same seed gives the same
policy. The first argument is a folder for the runs, which a second start finds again.

    python benchmarks/mbtl.py runs/mbtl
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from results import FOLDER, last_json, words, write

from robo_rl.sweeps import mbtl
from robo_rl.sweeps.contexts import way

SWEEP = """
task = "quadrotor-hover"
seeds = 5
[options]
episodes = 20
[contexts]
range = "delay"
low = 0.0
high = 0.06
count = 13
choose = "all"
"""
DRAWS = 200
"""Of random choices, for each seed."""


def main() -> None:
    given = words(__doc__, most=1)
    folder = Path(given[0] if given else "runs/mbtl")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "delays.toml"
    file.write_text(SWEEP)
    command = [sys.executable, "-m", "robo_rl", "sweep", str(file), "--out", str(folder / "all"), "--json"]
    found = last_json(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True))
    values = np.array(found["contexts"])
    tables = {int(seed): np.array(rows) for seed, rows in found["scores"].items()}
    n = len(values)
    exhaustive = {seed: float(table.max(0).mean()) for seed, table in tables.items()}
    curves: dict[str, np.ndarray] = {
        "MBTL": np.array([_followed(values, table) for table in tables.values()]),
        "equidistant": np.array(
            [
                [table[mbtl.equidistant(n, count)].max(0).mean() for count in range(1, n + 1)]
                for table in tables.values()
            ]
        ),
        "random": np.array([_drawn(table, seed) for seed, table in tables.items()]),
    }
    best = np.array(list(exhaustive.values()))
    shares = {name: curve.mean(0) / best.mean() for name, curve in curves.items()}
    needed = {name: int(np.argmax(share >= 0.9)) + 1 for name, share in shares.items()}
    for name, share in shares.items():
        print(
            f"{name:<12} {needed[name]} trainings to 90 % of all {n}; share by trainings:", np.round(share, 3).tolist()
        )
    _plot(curves, float(best.mean()))
    write("mbtl", {"contexts": n, "seeds": len(tables), "exhaustive": float(best.mean()),
                   "trainings_to_90_percent": needed,
                   "share_by_trainings": {name: share.tolist() for name, share in shares.items()}})  # fmt: skip


def _followed(values: np.ndarray, table: np.ndarray) -> list[float]:
    """Scores after each training that MBTL chooses."""
    choice, trained = way("mbtl", values, len(values), 0), list[int]()
    for _ in values:
        trained.append(choice(trained, table[trained]))
    return np.maximum.accumulate(table[trained]).mean(1).tolist()


def _drawn(table: np.ndarray, seed: int) -> np.ndarray:
    """Mean over random orders."""
    generator = np.random.default_rng(seed)
    orders = [generator.permutation(len(table)) for _ in range(DRAWS)]
    return np.mean([np.maximum.accumulate(table[order]).mean(1) for order in orders], axis=0)


def _plot(curves: dict[str, np.ndarray], best: float) -> None:
    from matplotlib.figure import Figure

    from robo_rl.report.plots import COLOURS

    figure = Figure(figsize=(6.0, 3.2), layout="constrained")
    plot = figure.subplots()
    for colour, (name, curve) in zip(COLOURS, curves.items(), strict=False):
        trainings = np.arange(1, curve.shape[1] + 1)
        plot.plot(trainings, curve.mean(0), color=colour, label=name)
        plot.fill_between(trainings, curve.min(0), curve.max(0), color=colour, alpha=0.15, linewidth=0)
    plot.axhline(0.9 * best, color="grey", linestyle=":", label="90 % of all")
    plot.set_xlabel("trainings")
    plot.set_ylabel("mean success over contexts")
    plot.legend(fontsize=8)
    figure.savefig(FOLDER.parents[1] / "docs" / "images" / "contexts.png", dpi=100)


if __name__ == "__main__":
    main()
