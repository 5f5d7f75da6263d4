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
    policies: dict[str, list[dict]] = {}
    for row in json.loads(FIGURES.read_text())["rows"]:
        if "task" not in row:
            policies.setdefault(row["policy"], []).append(row)
    figure, axes = plt.subplots(1, 2, figsize=(8, 0.9 + 0.4 * len(policies)), layout="constrained", sharey=True)
    for axis, columns in zip(axes, COLUMNS, strict=True):
        for place, rows in enumerate(reversed(policies.values())):
            robots = [100 * row[columns]["robots_without_fault"] for row in rows]
            within = [100 * row[columns]["robots_within"] for row in rows]
            heights = [place + 0.09 * (seed - (len(rows) - 1) / 2) for seed in range(len(rows))]
            color = "C0" if "seed" in rows[0] else "0.4"
            axis.errorbar(robots, heights, xerr=within, fmt="o", ms=3.5, lw=1, color=color, capsize=2)
            mean = sum(robots) / len(robots)
            axis.annotate(f"{mean:.1f} %", (1.02, place), xycoords=axis.get_yaxis_transform(), va="center", fontsize=8)
        axis.set(title=columns, xlabel="robots without fault, %", ylim=(-0.6, len(policies) - 0.4))
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(policies)), [label(rows) for rows in reversed(policies.values())])
    out = HERE / "swarm-figures.png"
    figure.savefig(out, dpi=110, facecolor="white")
    Image.open(out).convert("RGB").quantize(32).save(out, optimize=True)


def label(rows: list[dict]) -> str:
    """A variant and how many seeds of it were trained, or a baseline's name."""
    if "seed" not in rows[0]:
        return rows[0]["policy"]
    return f"{rows[0]['policy']}, {len(rows)} seed{'s' if len(rows) > 1 else ''}"


if __name__ == "__main__":
    main()
