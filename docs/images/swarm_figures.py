"""Make swarm-figures.png: how many robots of swarm-swap are without fault, with intervals, with one command:

python docs/images/swarm_figures.py
"""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib.pyplot as plt
from PIL import Image

HERE = Path(__file__).parent
FIGURES = HERE.parents[1] / "benchmarks" / "results" / "swarm.json"
COLUMNS = ("columns 10 %", "columns 20 %")


def main() -> None:
    """Write the picture beside this file."""
    rows = [row for row in json.loads(FIGURES.read_text())["rows"] if "task" not in row]
    figure, axes = plt.subplots(1, 2, figsize=(7.5, 0.9 + 0.35 * len(rows)), layout="constrained", sharey=True)
    for axis, columns in zip(axes, COLUMNS, strict=True):
        for place, row in enumerate(reversed(rows)):
            told = row[columns]
            robots, within = 100 * told["robots_without_fault"], 100 * told["robots_within"]
            color = "C0" if "seed" in row else "0.4"
            axis.errorbar(robots, place, xerr=within, fmt="o", color=color, capsize=3)
            axis.annotate(
                f"{robots:.1f} %", (robots, place), (0, 6), textcoords="offset points", ha="center", fontsize=8
            )
        axis.set(title=columns, xlabel="robots without fault, %", ylim=(-0.6, len(rows) - 0.2))
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(rows)), [label(row) for row in reversed(rows)])
    out = HERE / "swarm-figures.png"
    figure.savefig(out, dpi=110, facecolor="white")
    Image.open(out).convert("RGB").quantize(32).save(out, optimize=True)


def label(row: dict) -> str:
    """A policy's variant and seed, or a baseline's name."""
    return f"{row['policy']}, seed {row['seed']}" if "seed" in row else row["policy"]


if __name__ == "__main__":
    main()
