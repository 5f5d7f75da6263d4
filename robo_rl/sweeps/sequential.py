"""Comparisons that train no more seeds than it takes: AdaStop (Mathieu et al. 2023) stops a sweep.

    seeds = 30               # at most
    [vary]
    "apg.learning-rate" = [0.001, 0.003, 0.01]
    [stop]
    measure = "success"      # of 'robo-rl evaluate --json'
    lower_is_better = false
    block = 5                # seeds of each setting that are trained before each look
    level = 0.05             # probability of a wrong decision, among all

After every block of seeds the test decides what it can. A setting about which all is decided is trained no further.
Only whole blocks decide: were it the seeds that ended first, it would be those of fast trainings.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np

from robo_rl.evaluate.comparison import sequential_test
from robo_rl.sweeps.rounds import Outcome, Round, Rounds, new_round
from robo_rl.sweeps.sweep import Job
from robo_rl.sweeps.sweep_file import Description, Measured, require

MOST_GROUPS = 10
"""The test keeps 10,000 permutations of every pair."""
MOST_LOOKS = 20


def plan(description: Description, folder: Path) -> tuple[int, Rounds]:
    """How many jobs there are at most, and their rounds: blocks of seeds."""
    table, file = "stop", description.file
    description.only(table, "measure", "lower_is_better", "block", "level")
    block = description.count(table, "block", 5, 2, 1000)
    level = description.number(table, "level", 0.05, 0.0001, 0.5)
    seeds = len(description.seeds)
    fits = seeds % block == 0 and 1 <= seeds // block <= MOST_LOOKS
    require(fits, file, "seeds", seeds, f"one to {MOST_LOOKS} times stop.block, {block}")
    jobs = description.jobs(description.settings)
    groups = [jobs[start : start + seeds] for start in range(0, len(jobs), seeds)]
    require(2 <= len(groups) <= MOST_GROUPS, file, "settings", len(groups), f"2 to {MOST_GROUPS} to compare")
    return len(jobs), _blocks(folder, groups, block, level, description.measure(table))


def _blocks(folder: Path, groups: list[list[Job]], block: int, level: float, measure: Measured) -> Rounds:
    jobs = [job for group in groups for job in group]
    new_round(folder, jobs)
    seeds = len(groups[0])
    names = _labels(groups)
    test = sequential_test(block, seeds // block, level)
    scores: dict[str, list[float]] = {name: [] for name in names}
    trained = list(range(len(groups)))
    for start in range(0, seeds, block):
        indices = [group * seeds + seed for group in trained for seed in range(start, start + block)]
        yield Round(folder, jobs, indices)
        for group in trained:
            scores[names[group]] += [_figure(measure, folder, job) for job in groups[group][start : start + block]]
        test.partial_compare({name: np.array(values) for name, values in scores.items()}, verbose=False)
        if test.is_finished:
            break
        trained = sorted({int(group) for pair in test.current_comparisons for group in pair})
    said = {"larger": "better than", "smaller": "worse than", "equal": "not told apart from"}
    pairs = [tuple(int(group) for group in pair) for pair in test.comparisons]
    decisions = [
        {"first": names[a], "second": names[b], "decision": said[test.decisions[str(pair)]]}
        for (a, b), pair in zip(pairs, test.comparisons, strict=True)
    ]
    used = sum(map(len, scores.values()))
    lines = [f"{one['first']}: {one['decision']} {one['second']}" for one in decisions]
    lines.append(f"Decided by {used} trainings of {len(jobs)}, {measure.name}, at level {level:g}")
    return Outcome(lines, {"decisions": decisions, "trainings": used, "seeds": {n: len(s) for n, s in scores.items()}})


def _figure(measure: Measured, folder: Path, job: Job) -> float:
    score = measure.score(folder, job)
    if math.isinf(score):
        raise ValueError(f"{folder / job.name} has no {measure.name}: none survived; expected stop.measure success")
    return score


def _labels(groups: list[list[Job]]) -> list[str]:
    """What tells the groups apart."""
    told = [
        {"task": job.task, "robot": str(job.robot), **{name: " ".join(words) for name, words in job.options.items()}}
        for job, *_ in groups
    ]
    names = list(dict.fromkeys(itertools.chain.from_iterable(told)))
    telling = [name for name in names if len({one.get(name) for one in told}) > 1]
    return [", ".join(f"{name} {one[name]}" for name in telling if name in one) for one in told]
