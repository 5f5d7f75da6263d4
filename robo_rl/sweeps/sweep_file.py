"""The file that describes a sweep, checked field by field, and the jobs that it stands for.

    task = "quadrotor-hover"              # or a list of tasks
    robot = ["crazyflie", "my/card.toml"] # optional; one or a list
    seeds = 5                             # 0 to 4; or a list
    [options]                             # of 'robo-rl train', the same for all
    episodes = 500
    [vary]                                # options with several values: all combinations
    "apg.learning-rate" = [0.001, 0.003]

A table [stop], [search], [population] or [contexts] says how later jobs follow from the results of earlier ones, and
[space] from what they are chosen: see ``robo_rl.sweeps.rounds``.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robo_rl.files.escaping import file_name
from robo_rl.files.text import read_toml
from robo_rl.sweeps.sweep import OWN, Job

MOST_JOBS = 100_000
STRATEGIES = ("stop", "search", "population", "contexts")


@dataclass(frozen=True)
class Description:
    """What a sweep's file says."""

    file: Path
    tasks: list[str]
    robots: list[str | None]
    seeds: list[int]
    settings: list[dict[str, list[str]]]
    """Words after each option, of all combinations of [vary]."""
    tables: dict[str, dict[str, Any]]
    """[space] and a strategy's, by name, as they are in the file."""

    def jobs(
        self, settings: Iterable[Mapping[str, list[str]]], seeds: Iterable[int] | None = None, origin: str | None = None
    ) -> list[Job]:
        """Of all tasks, robots and ``seeds`` (the file's) with each of the settings."""
        chosen = self.seeds if seeds is None else list(seeds)
        return [
            _job(task, robot, seed, dict(told), origin, self.file)
            for task, robot, told, seed in itertools.product(self.tasks, self.robots, settings, chosen)
        ]

    def number(self, table: str, name: str, default: float, low: float, high: float) -> float:
        """A number of a strategy's table."""
        value: Any = self.tables[table].get(name, default)
        good = type(value) in (int, float) and low <= value <= high
        require(good, self.file, f"{table}.{name}", value, f"a number from {low:g} to {high:g}")
        return float(value)

    def count(self, table: str, name: str, default: int, low: int, high: int) -> int:
        """An integer of a strategy's table."""
        value: Any = self.tables[table].get(name, default)
        good = type(value) is int and low <= value <= high
        require(good, self.file, f"{table}.{name}", value, f"an integer from {low} to {high}")
        return int(value)

    def measure(self, table: str) -> Measured:
        """What a strategy's table says is to be large, or small."""
        told = self.tables[table]
        name, lower = told.get("measure", "success"), told.get("lower_is_better", False)
        good = isinstance(name, str) and bool(name)
        require(good, self.file, f"{table}.measure", name, "a figure of 'robo-rl evaluate --json'")
        require(isinstance(lower, bool), self.file, f"{table}.lower_is_better", lower, "true or false")
        return Measured(name, lower)

    def only(self, table: str, *names: str) -> None:
        """ValueError if a strategy's table has other fields than these."""
        told = self.tables[table]
        require(told.keys() <= set(names), self.file, f"{table}: fields", sorted(told), f"some of {sorted(names)}")


@dataclass(frozen=True)
class Measured:
    """A figure of done.json that jobs are judged by."""

    name: str
    lower_is_better: bool

    def score(self, folder: Path, job: Job) -> float:
        """The larger the better; -inf where there is no figure, as of errors when no episode survived.

        ValueError if the job is not done, or has no such figure.
        """
        from robo_rl.learn.runs.folder import Run

        run = Run.open(folder / job.name)
        found = run.done()
        if found is None:
            raise ValueError(f"{run.folder} is not done; expected a training that has ended")
        if self.name not in found:
            known = sorted(name for name, value in found.items() if isinstance(value, float))
            raise ValueError(f"{run.done_file}: no figure {self.name!r}; expected one of {known}")
        value = found[self.name]
        if value is None:
            return -math.inf
        if type(value) not in (int, float):
            raise ValueError(f"{run.done_file}: {self.name} is {str(value)[:80]!r}; expected a number")
        return -float(value) if self.lower_is_better else float(value)

    def value(self, score: float) -> float | None:
        """The figure of a score; None where there was none."""
        return None if math.isinf(score) else -score if self.lower_is_better else score


def read_description(file: Path) -> Description:
    """What a sweep's file says. ValueError names the file and the field."""
    data = read_toml(file)
    known = {"task", "robot", "seeds", "options", "vary", "space", *STRATEGIES}
    require(not data.keys() - known, file, "fields", sorted(data), f"some of {sorted(known)}")
    tasks, robots = (_listed(data.get(name), file, name) for name in ("task", "robot"))
    require(bool(tasks), file, "task", data.get("task"), "a task's name, or a list of them")
    seeds = data.get("seeds", 1)
    seeds = list(range(seeds)) if type(seeds) is int and 0 < seeds <= MOST_JOBS else seeds
    good = isinstance(seeds, list) and all(type(seed) is int for seed in seeds) and len(set(seeds)) == len(seeds)
    require(good and bool(seeds), file, "seeds", seeds, "a number of seeds, or a list of different ones")
    fixed = {name: option(value, file, f"options.{name}") for name, value in _table(data, "options", file).items()}
    axes = {}
    for name, values in _table(data, "vary", file).items():
        require(isinstance(values, list) and bool(values), file, f"vary.{name}", values, "a list of values")
        axes[name] = [option(value, file, f"vary.{name}") for value in values]
    tables = {name: _table(data, name, file) for name in ("space", *STRATEGIES) if name in data}
    for name in (*fixed, *axes, *tables.get("space", {})):
        require(name not in OWN and file_name(name) == name, file, name, name, f"an option of train, not of {OWN}")
    strategies = [name for name in STRATEGIES if name in tables]
    require(len(strategies) <= 1, file, "fields", strategies, f"one of {STRATEGIES}")
    spacious = strategies in (["search"], ["population"])
    require(spacious == ("space" in tables), file, "fields", sorted(data), "[space] with [search] or [population]")
    require(not (spacious and axes), file, "vary", sorted(axes), "none beside [space]")
    count = len(tasks) * max(1, len(robots)) * len(seeds) * math.prod(map(len, axes.values()))
    require(count <= MOST_JOBS, file, "jobs", count, f"at most {MOST_JOBS}")
    settings = [fixed | dict(zip(axes, chosen, strict=True)) for chosen in itertools.product(*axes.values())]
    chosen_robots: list[str | None] = [*robots] or [None]
    return Description(file, tasks, chosen_robots, seeds, settings, tables)


def plan(file: Path) -> list[Job]:
    """The jobs of a sweep's file that are known from the start. ValueError names the file and the field."""
    description = read_description(file)
    return description.jobs(description.settings)


def option(value: Any, file: Path, field: str) -> list[str]:
    """The words after an option: of true none, which is a flag's."""
    values = value if isinstance(value, list) else [] if value is True else [value]
    good = all(isinstance(x, str | int | float) and x is not False and not str(x).startswith("--") for x in values)
    require(good, file, field, value, "true, numbers, texts, or a list of them")
    return [str(x) for x in values]


def require(condition: bool, file: Path, field: str, value: object, expected: str) -> None:
    """ValueError, unless a field of a file is as expected."""
    if not condition:
        raise ValueError(f"{file}: {field} is {str(value)[:200]}; expected {expected}")


def _job(task: str, robot: str | None, seed: int, options: dict[str, list[str]], origin: str | None, file: Path) -> Job:
    task, robot, files = _located(task, robot, file.parent)
    told: list[Any] = [task, robot, seed, sorted(options.items()), files]
    digest = hashlib.sha256(json.dumps(told if origin is None else [*told, origin]).encode()).hexdigest()
    label = file_name(f"{task.rpartition(':')[2]}-{Path(robot).stem if robot else ''}-seed{seed}".replace("--", "-"))
    return Job(f"{label}-{digest[:8]}", task, robot, seed, options, files, origin)


def _located(task: str, robot: str | None, beside: Path) -> tuple[str, str | None, str]:
    """Task and robot with the full paths of a user's own files, which are beside the sweep's, and these's digest."""
    from robo_rl.sim.tasks import loading

    if loading.FILE.fullmatch(task):
        file, _, name = task.rpartition(":")
        task = f"{(beside / file).resolve()}:{name}"
    if robot is not None and robot.endswith(".toml"):
        robot = str((beside / robot).resolve())
    loaded = loading.load_task(task, robot)
    digest = hashlib.sha256((loaded.source.digest if loaded.source else "").encode())
    if robot is not None and robot.endswith(".toml"):
        from robo_rl.sim.robots import load_robot

        for path in (Path(robot), *load_robot(robot, loaded.card_type).files()):
            digest.update(path.read_bytes())
    return task, robot, digest.hexdigest()


def _listed(value: Any, file: Path, field: str) -> list[str]:
    values = [] if value is None else value if isinstance(value, list) else [value]
    require(all(isinstance(x, str) and x for x in values), file, field, value, "a text or a list of texts")
    return values


def _table(data: dict[str, Any], name: str, file: Path) -> dict[str, Any]:
    table = data.get(name, {})
    require(isinstance(table, dict), file, name, table, f"a table [{name}]")
    return table
