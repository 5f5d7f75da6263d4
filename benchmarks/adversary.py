"""Robustness to the worst contexts: hovering trained against an adversary that chooses mass and latency.

Four ways to train, 5 seeds each, with as many samples: drawn at random (plain randomization), an adversary that does
its worst from the start on (RARL), one whose rationality rises (QARL), and one that is as rational as that all the
time. Every policy is then tried in 144 contexts, mass by latency, 200 episodes each; its worst decile is the mean
success in the tenth of the contexts in which it succeeds least. The first argument is a folder for the runs, which a
second start finds again.

    python benchmarks/adversary.py runs/adversary
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from results import FOLDER, last_json, words, write
from scipy.stats import t

from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, rollout
from robo_rl.evaluate.statistics import improvement
from robo_rl.learn.runs.table import found
from robo_rl.policy import PolicyGraph

MASS, DELAY = (0.7, 1.2), (0.0, 0.1)
"""Ranges: parts of the card's mass; s."""
WAYS = {"plain": (0.0, 0.0), "RARL": (20.0, 20.0), "QARL": (0.0, 5.0), "QARL without curriculum": (5.0, 5.0)}
"""Rationality at the first and at the last update; 5 was chosen with seeds 0 to 2."""
SEEDS, POINTS, EPISODES = [10, 11, 12, 13, 14], 12, 200
SWEEP = f"""
task = "quadrotor-hover"
seeds = {SEEDS}
[options]
episodes = 20
bounds = ["mass:{MASS[0]}:{MASS[1]}", "delay:{DELAY[0]}:{DELAY[1]}", "initial/tilt:0:0.5"]
"apg.updates" = 440
"apg.adversary" = ["mass", "delay"]
[vary]
"apg.rationality" = {json.dumps([list(pair) for pair in WAYS.values()])}
"""


def main() -> None:
    given = words(__doc__, most=1)
    folder = Path(given[0] if given else "runs/adversary")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "adversary.toml"
    file.write_text(SWEEP)
    command = [sys.executable, "-m", "robo_rl", "sweep", str(file), "--out", str(folder / "all"), "--json"]
    last_json(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True))
    by_rationality = {pair: name for name, pair in WAYS.items()}
    maps: dict[str, list[np.ndarray]] = {name: [] for name in WAYS}
    for row in found([folder / "all"]):
        name = by_rationality[tuple(row.run.hyperparameters["rationality"])]
        maps[name].append(successes(row.run.policy()[0]))
        print(
            f"{name:<24} seed {row.run.seed}: mean {maps[name][-1].mean():.3f}, worst decile {tail(maps[name][-1]):.3f}"
        )
    tails = {name: np.array([tail(one) for one in ones]) for name, ones in maps.items()}
    figures = {
        name: {
            "worst_decile": interval(tails[name]), "mean": interval(np.array([one.mean() for one in ones])),
            "better_than_plain": improvement(tails[name], tails["plain"]),
        }
        for name, ones in maps.items()
    }  # fmt: skip
    for name, figure in figures.items():
        print(f"{name:<24} worst decile {shown(figure['worst_decile'])}, mean {shown(figure['mean'])}")
    plot({name: np.mean(ones, 0) for name, ones in maps.items()}, tails)
    write("adversary", {"seeds": len(SEEDS), "contexts": POINTS**2, "episodes": EPISODES, "ways": figures})


def successes(policy: PolicyGraph) -> np.ndarray:
    """(points, points) success rates by mass and latency."""
    axes = [torch.linspace(*MASS, POINTS), torch.linspace(*DELAY, POINTS)]
    contexts = torch.cartesian_prod(*axes).repeat_interleave(EPISODES, 0)
    fixed = {"mass": contexts[:, 0], "delay": contexts[:, 1]}
    done = rollout(policy.task, GraphPolicy(policy), Conditions(len(contexts), fixed=fixed), title=None)
    return done.success.reshape(POINTS, POINTS, EPISODES).mean(-1)


def tail(rates: np.ndarray) -> float:
    """Mean of the worst tenth."""
    return float(np.sort(rates, axis=None)[: round(rates.size / 10)].mean())


def interval(values: np.ndarray) -> list[float]:
    """Mean, and its 95 % interval over seeds by Student's t."""
    half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
    return [float(values.mean()), float(values.mean() - half), float(values.mean() + half)]


def shown(figure: list[float]) -> str:
    return "{:.1%} ({:.1%} to {:.1%})".format(*figure)


def plot(maps: dict[str, np.ndarray], tails: dict[str, np.ndarray]) -> None:
    from matplotlib.figure import Figure

    from robo_rl.report.plots import COLOURS

    figure = Figure(figsize=(10.0, 2.9), layout="constrained")
    *places, last = figure.subplots(1, 4, width_ratios=(1, 1, 1, 1.2))
    for place, name in zip(places, ("plain", "RARL", "QARL"), strict=True):
        shown = place.imshow(
            maps[name], origin="lower", aspect="auto", vmin=0, vmax=1, cmap="viridis",
            extent=(1000 * DELAY[0], 1000 * DELAY[1], *MASS),
        )  # fmt: skip
        place.set_title(name, fontsize=9)
        place.set_xlabel("latency (ms)")
    places[0].set_ylabel("mass (×)")
    figure.colorbar(shown, ax=places, label="success", pad=0.01)
    for k, (colour, values) in enumerate(zip(COLOURS, tails.values(), strict=False)):
        mean, low, high = interval(values)
        last.bar(k, mean, color=colour, yerr=[[mean - low], [high - mean]], capsize=3)
        last.plot([k] * len(values), values, ".", color="black", markersize=3)
    names = [name.replace(" without ", "\nwithout\n") for name in tails]
    last.set_xticks(range(len(tails)), names, fontsize=7)
    last.set_ylabel("success in the worst decile")
    last.set_ylim(bottom=0)
    figure.savefig(FOLDER.parents[1] / "docs" / "images" / "adversary.png", dpi=100)


if __name__ == "__main__":
    main()
