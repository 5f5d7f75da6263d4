"""Policies for contexts, one training after the other, each where ``mbtl`` expects the most of it.

    task = "quadrotor-hover"
    seeds = 5                # each a study of its own
    [contexts]
    range = "delay"          # of the task: a context is a value of it
    low = 0.0
    high = 0.04
    count = 9                # contexts, evenly spaced
    trainings = 4            # of each seed
    choose = "mbtl"          # or "equidistant", "random", "all"
    episodes = 200           # in each context, to score a policy: its success rate

Every training is in one context. Its policy is then tried in all of them; what serves a context is the best policy so
far, and the mean of that over the contexts is the score.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from robo_rl.files import write
from robo_rl.files.text import read_json
from robo_rl.learn.runs.folder import Run
from robo_rl.sim.robots.figures import is_number
from robo_rl.sweeps import mbtl
from robo_rl.sweeps.rounds import Outcome, Rounds, new_round
from robo_rl.sweeps.sweep_file import Description, require

FILE = "contexts.json"
"""In a run's folder: its policy's success rates."""
MOST = 1000
Choose = Callable[[list[int], np.ndarray], int]
"""The next context, of those trained (k) and the scores of their policies in all contexts (k, n)."""


def plan(description: Description, folder: Path) -> tuple[int, Rounds]:
    """How many jobs there are, and their rounds: a training of each seed."""
    table, file = "contexts", description.file
    description.only(table, "range", "low", "high", "count", "trainings", "choose", "episodes")
    alone = len(description.tasks) == len(description.robots) == len(description.settings) == 1
    asked = (description.tasks, description.robots, len(description.settings))
    require(alone, file, "task, robot, vary", asked, "one task and robot, and no [vary]")
    name = description.tables[table].get("range")
    known = _ranges(description)
    require(isinstance(name, str) and name in known, file, "contexts.range", name, f"one of {known}")
    low = description.number(table, "low", 0.0, -1e9, 1e9)
    high = description.number(table, "high", 1.0, -1e9, 1e9)
    require(low < high, file, "contexts.high", high, f"more than contexts.low, {low:g}")
    count = description.count(table, "count", 9, 2, MOST)
    choose = description.tables[table].get("choose", "mbtl")
    ways = ("mbtl", "equidistant", "random", "all")
    require(choose in ways, file, "contexts.choose", choose, f"one of {ways}")
    trainings = count if choose == "all" else description.count(table, "trainings", 4, 1, count)
    episodes = description.count(table, "episodes", 200, 1, 100_000)
    values = np.linspace(low, high, count)
    return trainings * len(description.seeds), _trainings(
        description, folder, str(name), values, trainings, str(choose), episodes
    )


def _trainings(
    description: Description, folder: Path, name: str, values: np.ndarray, trainings: int, choose: str, episodes: int
) -> Rounds:
    (fixed,) = description.settings
    ways = {seed: way(choose, values, trainings, seed) for seed in description.seeds}
    trained: dict[int, list[int]] = {seed: [] for seed in ways}
    found = {seed: np.zeros((0, len(values))) for seed in ways}
    for number in range(trainings):
        jobs = []
        for seed, choice in ways.items():
            trained[seed].append(choice(trained[seed], found[seed]))
            value = float(values[trained[seed][-1]])
            jobs += description.jobs([fixed | {"bounds": [f"{name}:{value!r}:{value!r}"]}], [seed])
        part = new_round(folder / f"training-{number}", jobs)
        yield part
        for (seed, rows), job in zip(found.items(), jobs, strict=True):
            scores = _scores(Run.open(part.folder / job.name), name, values, episodes)
            found[seed] = np.vstack([rows, scores])
    curves = {seed: np.maximum.accumulate(rows).mean(1).tolist() for seed, rows in found.items()}
    last = float(np.mean([curve[-1] for curve in curves.values()]))
    lines = [f"seed {seed}: {name} {', '.join(f'{values[k]:.4g}' for k in trained[seed])}: {curve[-1]:.1%}"
             for seed, curve in curves.items()]  # fmt: skip
    return Outcome(
        [*lines, f"Mean success over {len(values)} contexts, by the best of {trainings} policies: {last:.1%}"],
        {"contexts": values.tolist(), "trained": trained, "curves": curves,
         "scores": {seed: rows.tolist() for seed, rows in found.items()}},
    )  # fmt: skip


def way(choose: str, values: np.ndarray, trainings: int, seed: int) -> Choose:
    """How one seed chooses its next context."""
    if choose == "mbtl":
        return lambda trained, found: mbtl.choose(values, trained, found)
    order = {
        "all": list(range(len(values))),
        "random": np.random.default_rng(seed).permutation(len(values)).tolist(),
        "equidistant": mbtl.equidistant(len(values), trainings),
    }[choose]
    return lambda trained, found: int(order[len(trained)])


def _scores(run: Run, name: str, values: np.ndarray, episodes: int) -> np.ndarray:
    """(n,) success rates of a run's policy, from its folder if they are there."""
    from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, rollout

    result, file = run.done(), run.folder / FILE
    if result is None:
        raise ValueError(f"{run.folder} is not done; expected a training that has ended")
    asked = {"range": name, "values": values.tolist(), "episodes": episodes, "policy": result["policy_digest"]}
    if file.is_file():
        kept = read_json(file)
        rates = kept.get("success")
        if (
            isinstance(rates, list) and len(rates) == len(values) and kept.get("asked") == asked
            and all(is_number(rate) and 0.0 <= rate <= 1.0 for rate in rates)
        ):  # fmt: skip
            return np.array(rates, float)
    policy, _ = run.policy()
    each = torch.tensor(np.repeat(values, episodes), dtype=torch.float32)
    done = rollout(policy.task, GraphPolicy(policy), Conditions(len(each), fixed={name: each}), title=None)
    success = done.success.reshape(len(values), episodes).mean(1)
    write(file, json.dumps({"asked": asked, "success": success.tolist()}) + "\n")
    return success


def _ranges(description: Description) -> list[str]:
    from robo_rl.sim.tasks.loading import load_task

    return list(load_task(description.tasks[0], description.robots[0]).spec.ranges)
