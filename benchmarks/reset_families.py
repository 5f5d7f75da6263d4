"""Does a policy learn from states of all families what it does not learn from the task's own beginnings?

`arm-insert` by PPO without demonstrations, twice with each seed and as many control steps: all episodes begin as the
task's own do, or three quarters of them with the states of a file by `robo-rl reset-states` (beside the hole, on its
rim, partly in). Both are evaluated in held-out episodes that begin as the task's own do, with hole and peg known to
3 and 2 mm, as in training, and to 1 mm; the second also from each family, with states of another seed. Seeds alone
replace the rows of those seeds; one takes about 40 minutes of a core that others use too.

    python benchmarks/reset_families.py
    python benchmarks/reset_families.py 3
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from results import FOLDER, words, write

from robo_rl.cli import main as robo_rl
from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, rollout
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.learn.experience.reset_states import Starts, read, weights_of
from robo_rl.learn.runs.folder import Run
from robo_rl.sim.env import VecEnv
from robo_rl.sim.ranges import replaced
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.loading import load_task

TASK = "arm-insert"
TRAIN = ("--algorithm", "ppo", "--episodes", 0)
STATES = 500
"""Of each family."""
KNOWN = {
    "as in training": {},
    "1 mm": {"bias/hole_position": (-0.001, 0.001), "initial/grasp": (-0.001, 0.001)},
}
"""Bounds (m) of where the hole is beside where a camera sees it, and the peg in the hand."""
EPISODES, FROM_FAMILY = 500, 200
SEEDS = 3


def told(*options: object) -> dict[str, Any]:
    """What a command gives with --json."""
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        try:
            robo_rl([*map(str, options), "--json"])
        except SystemExit as end:
            if end.code:
                sys.exit(f"robo-rl {options}: exit code {end.code}")
    return json.loads(shown.getvalue().splitlines()[-1])


def task_within(known: str) -> Task:
    """The task with hole and peg known so well."""
    task = load_task(TASK)
    task.spec = dataclasses.replace(task.spec, ranges=replaced(task.spec.ranges, KNOWN[known]))
    return task


def measured(folder: Path) -> dict[str, Any]:
    """What a run's policy does in held-out episodes, and how its training went."""
    run = Run.open(folder)
    policy, provenance = run.policy()
    found: dict[str, Any] = {"environment_steps": provenance.environment_steps, "success": {}}
    for known in KNOWN:
        summary = rollout(task_within(known), GraphPolicy(policy), Conditions(episodes=EPISODES)).summary()
        found["success"][known] = [summary[name] for name in ("success", "success_low", "success_high")]
        print(f"  {folder.name}, {known}: {summary['success']:.1%}", flush=True)
    rows = run.metrics()
    names = [name for name in rows[-1] if name.startswith("success/")]  # none without reset states
    found["curves"] = {name: [[row["environment_steps"], row[name]] for row in rows] for name in names}
    return found


def from_families(folder: Path, states: Path) -> dict[str, float]:
    """Success of a run's policy by family, in episodes that begin with states."""
    (policy, _), task = Run.open(folder).policy(), load_task(TASK)
    env = LearningEnv(VecEnv(task, FROM_FAMILY, 1, evaluation=True))
    stored, found = read(states, task, env), {}
    for name in task.families:
        Starts(env, stored, weights_of([f"{name}:1"], task.families))
        won, over = torch.zeros(env.n), torch.zeros(env.n, dtype=torch.bool)
        with torch.no_grad():
            while not bool(over.all()):
                step = env.step(policy.network(policy.features(env.observation())))
                first = step.ids[~over[step.ids]]
                won[first], over[first] = step.succeeded[first].float(), True
        found[name] = float(won.mean())
        print(f"  from {name}: {found[name]:.1%}", flush=True)
    return found


def stored(folder: Path, name: str, seed: int, *options: object) -> Path:
    """A new file of reset states."""
    file = folder / f"{name}.safetensors"
    told("reset-states", TASK, "--states", STATES, "--out", file, "--seed", seed, *options)
    return file


def main(seeds: Sequence[int]) -> None:
    known = FOLDER / "reset_families.json"
    before = json.loads(known.read_text()) if known.exists() else {"rows": []}
    rows = [row for row in before["rows"] if row["seed"] not in seeds]
    for seed in seeds:
        print(f"seed {seed}", flush=True)
        with tempfile.TemporaryDirectory() as path:
            folder = Path(path)
            states = stored(folder, "states", seed)
            held_out = stored(folder, "held_out", 1000 + seed, "--bounds", *bounds())
            for name, options in (("families", ("--reset-states", states)), ("start", ())):
                told("train", TASK, *TRAIN, "--seed", seed, "--runs", folder, "--name", name, *options)
            row = {name: measured(folder / name) for name in ("families", "start")}
            row["families"]["from"] = from_families(folder / "families", held_out)
            rows.append({"seed": seed, **row})
        keep(rows)


def bounds() -> list[str]:
    """As --bounds takes them."""
    return [f"{name}:{low}:{high}" for name, (low, high) in KNOWN["1 mm"].items()]


def keep(rows: list[dict[str, Any]]) -> None:
    """Write what was measured."""
    about = {"task": TASK, "episodes": EPISODES, "states": STATES, "from_family": FROM_FAMILY}
    write("reset_families", {**about, "rows": sorted(rows, key=lambda row: row["seed"])})
    plot(rows)


def plot(rows: list[dict[str, Any]]) -> None:
    """docs/images/reset-families.png: success in training by where episodes began; held out without reset states."""
    from matplotlib.figure import Figure

    from robo_rl.report.plots import COLOURS

    figure = Figure(figsize=(6.0, 3.0), layout="constrained")
    place = figure.subplots()
    for row in rows:
        for colour, (name, points) in zip(COLOURS, row["families"]["curves"].items(), strict=False):
            label = name.removeprefix("success/") if row is rows[0] else None
            steps = [step / 1000 for step, _ in points]
            place.plot(steps, [100 * part for _, part in points], color=colour, label=label, linewidth=1)
        told = "no reset states, held out" if row is rows[0] else None
        alone = row["start"]["success"]["as in training"][0]
        place.plot(row["start"]["environment_steps"] / 1000, 100 * alone, "ko", label=told)
    place.set_xlabel("control steps (thousands)")
    place.set_ylabel("success in training (%)")
    place.set_ylim(0, 100)
    place.legend(fontsize=7, title="episodes that begin", title_fontsize=7)
    figure.savefig(FOLDER.parents[1] / "docs" / "images" / "reset-families.png", dpi=100)


if __name__ == "__main__":
    given = words(__doc__, SEEDS)
    main([int(word) for word in given] or range(SEEDS))
