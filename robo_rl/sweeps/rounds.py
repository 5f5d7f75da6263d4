"""Rounds of a sweep: jobs that can run at once, after which it is decided what to train next.

A strategy is a generator: it yields rounds, and reads what has come of one when it is asked for the next. Decisions
follow from whole rounds, from seeds and from nothing else, so they are the same for any engine and number of processes.
And as a round's jobs are in a folder, a sweep that was killed at any moment comes to the same decisions again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robo_rl.sweeps.sweep import Job, create
from robo_rl.sweeps.sweep_file import Description


@dataclass(frozen=True)
class Round:
    """Jobs of a folder, as ``robo-rl work`` finds them there."""

    folder: Path
    jobs: list[Job]
    """Of the folder."""
    indices: list[int]
    """Of the jobs that are to be done now."""


@dataclass(frozen=True)
class Outcome:
    """What a strategy has found."""

    lines: list[str] = field(default_factory=list)
    """For people."""
    found: dict[str, Any] = field(default_factory=dict)
    """For machines."""


Rounds = Generator[Round, None, Outcome]


def new_round(folder: Path, jobs: Sequence[Job]) -> Round:
    """A round in a folder of its own, in which jobs that are alike are one."""
    alone = list({job.name: job for job in jobs}.values())
    create(folder, alone)
    return Round(folder, alone, list(range(len(alone))))


def rounds(description: Description, folder: Path) -> tuple[int, Rounds]:
    """How many jobs a sweep has at most, and its rounds."""
    from robo_rl.sweeps import contexts, population, search, sequential

    strategies: dict[str, Callable[[Description, Path], tuple[int, Rounds]]] = {
        "contexts": contexts.plan,
        "population": population.plan,
        "search": search.plan,
        "stop": sequential.plan,
    }
    for name, strategy in strategies.items():
        if name in description.tables:
            return strategy(description, folder)
    jobs = description.jobs(description.settings)
    return len(jobs), _all(folder, jobs)


def _all(folder: Path, jobs: Sequence[Job]) -> Rounds:
    yield new_round(folder, jobs)
    return Outcome()
