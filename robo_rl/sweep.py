"""Sweeps: many trainings that one file describes, each an ordinary run, on any engine (``robo_rl.engines``).

    task = "quadrotor-hover"              # or a list of tasks
    robot = ["crazyflie", "my/card.toml"] # optional; one or a list
    seeds = 5                             # 0 to 4; or a list
    [options]                             # of 'robo-rl train', the same for all
    episodes = 500
    [vary]                                # options with several values: all combinations
    "apg.learning-rate" = [0.001, 0.003]

A job is the words of one training, and a digest of them and of the files that they name. Its state is its run's folder
in the sweep's folder: without run.json it is trained, with run.json resumed, with done.json it is done. So whoever sees
the folder can do a job, or go on with it: another process, another computer, the next start of the same sweep.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robo_rl.escaping import file_name
from robo_rl.files import HeldError, held, write
from robo_rl.text_files import read_toml

FILE = "sweep.json"
MOST_JOBS = 100_000
OWN = ("task", "robot", "seed", "runs", "name", "json", "help")
"""Options of 'robo-rl train' that a sweep gives itself."""
KEPT = ("episodes", "device", "checkpoint-seconds")
"""Options that 'robo-rl resume' has too."""
BUSY = 75
"""Exit code where another process works on the job (EX_TEMPFAIL of sysexits.h)."""
PATIENCE = 30.0
"""s to wait for another process that works on it: one that was told to end still saves."""


@dataclass(frozen=True)
class Job:
    """One training of a sweep."""

    name: str
    """Of its run's folder."""
    task: str
    robot: str | None
    seed: int
    options: dict[str, list[str]]
    """Words after each option."""
    files_digest: str
    """Of the task's and the robot's own files."""

    def words(self, folder: Path) -> list[str]:
        """After ``robo-rl``: what begins it, or goes on with it, in the sweep's folder."""
        run = folder / self.name
        if (run / "run.json").is_file():
            return ["resume", str(run), *_words({k: v for k, v in self.options.items() if k in KEPT})]
        robot = [] if self.robot is None else ["--robot", self.robot]
        place = ["--seed", str(self.seed), "--runs", str(folder), "--name", self.name]
        return ["train", self.task, *robot, *place, *_words(self.options)]


def plan(file: Path) -> list[Job]:
    """The jobs of a sweep's file. ValueError names the file and the field."""
    data = read_toml(file)
    known = {"task", "robot", "seeds", "options", "vary"}
    _require(not data.keys() - known, file, "fields", sorted(data), f"some of {sorted(known)}")
    tasks, robots = (_listed(data.get(name), file, name) for name in ("task", "robot"))
    _require(bool(tasks), file, "task", data.get("task"), "a task's name, or a list of them")
    seeds = data.get("seeds", 1)
    seeds = list(range(seeds)) if type(seeds) is int and 0 < seeds <= MOST_JOBS else seeds
    good = isinstance(seeds, list) and all(type(seed) is int for seed in seeds) and len(set(seeds)) == len(seeds)
    _require(good and bool(seeds), file, "seeds", seeds, "a number of seeds, or a list of different ones")
    fixed = {name: _value(value, file, f"options.{name}") for name, value in _table(data, "options", file).items()}
    axes = {}
    for name, values in _table(data, "vary", file).items():
        _require(isinstance(values, list) and bool(values), file, f"vary.{name}", values, "a list of values")
        axes[name] = [_value(value, file, f"vary.{name}") for value in values]
    for name in (*fixed, *axes):
        _require(name not in OWN and file_name(name) == name, file, name, name, f"an option of train, not of {OWN}")
    settings = [dict(zip(axes, chosen, strict=True)) for chosen in itertools.product(*axes.values())]
    count = len(tasks) * max(1, len(robots)) * len(seeds) * len(settings)
    _require(count <= MOST_JOBS, file, "jobs", count, f"at most {MOST_JOBS}")
    chosen_robots: list[str | None] = [*robots] or [None]
    return [
        _job(task, robot, seed, fixed | chosen, file)
        for task, robot, chosen, seed in itertools.product(tasks, chosen_robots, settings, seeds)
    ]


def create(folder: Path, jobs: Sequence[Job]) -> None:
    """Write down what a sweep's folder is for. ValueError if it is another sweep's."""
    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps({"jobs": [vars(job) for job in jobs]}, indent=1) + "\n"
    file = folder / FILE
    if file.is_file():
        if file.read_text() != content:
            raise ValueError(f"{file} is of other jobs; expected the same sweep as before, or another --out")
        return
    write(file, content)


def read(folder: Path) -> list[Job]:
    """The jobs of a sweep's folder."""
    file = folder / FILE
    if not file.is_file():
        raise ValueError(f"{file} does not exist; expected the folder of a sweep, written by 'robo-rl sweep'")
    try:
        jobs = [Job(**job) for job in json.loads(file.read_text())["jobs"]]  # ours, and larger than a stranger's may be
        for job in jobs:
            if file_name(job.name) != job.name or not all(isinstance(w, str) for v in job.options.values() for w in v):
                raise ValueError(f"job {job.name!r}")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{file}: {error!r}; expected a file written by 'robo-rl sweep'") from None
    return jobs


def done(folder: Path, job: Job) -> bool:
    """Whether its training has ended and was evaluated."""
    return (folder / job.name / "done.json").is_file()


def work(folder: Path, index: int) -> int:
    """Do a job, or what is left of it, in this process; returns an exit code, BUSY if another process has it."""
    jobs = read(folder)
    if not 0 <= index < len(jobs):
        raise ValueError(f"index is {index}; expected 0 to {len(jobs) - 1}")
    job = jobs[index]
    lease = folder / "leases" / job.name
    lease.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    while True:
        try:
            with held(lease):
                return 0 if done(folder, job) else _run(folder, job)
        except HeldError:
            if time.monotonic() - begun > PATIENCE:
                return BUSY
        time.sleep(0.2)


def _run(folder: Path, job: Job) -> int:
    import tyro

    from robo_rl.commands import resume, train

    name, *rest = job.words(folder)
    if name == "train":
        shutil.rmtree(folder / job.name, ignore_errors=True)  # of one that was killed before it wrote run.json
    command = train.command(rest) if name == "train" else resume.main
    return tyro.cli(command, prog=f"robo-rl {name}", args=rest, config=(tyro.conf.FlagCreatePairsOff,))


def _job(task: str, robot: str | None, seed: int, options: dict[str, list[str]], file: Path) -> Job:
    task, robot, files = _located(task, robot, file.parent)
    content = json.dumps([task, robot, seed, sorted(options.items()), files])
    digest = hashlib.sha256(content.encode()).hexdigest()
    label = file_name(f"{task.rpartition(':')[2]}-{Path(robot).stem if robot else ''}-seed{seed}".replace("--", "-"))
    return Job(f"{label}-{digest[:8]}", task, robot, seed, options, files)


def _located(task: str, robot: str | None, beside: Path) -> tuple[str, str | None, str]:
    """Task and robot with the full paths of a user's own files, which are beside the sweep's, and these's digest."""
    from sim.tasks import loading

    if loading.FILE.fullmatch(task):
        file, _, name = task.rpartition(":")
        task = f"{(beside / file).resolve()}:{name}"
    if robot is not None and robot.endswith(".toml"):
        robot = str((beside / robot).resolve())
    loaded = loading.load_task(task, robot)
    digest = hashlib.sha256((loaded.source.digest if loaded.source else "").encode())
    if robot is not None and robot.endswith(".toml"):
        from sim.robots import load_robot

        for path in (Path(robot), *load_robot(robot, loaded.card_type).files()):
            digest.update(path.read_bytes())
    return task, robot, digest.hexdigest()


def _words(options: dict[str, list[str]]) -> Iterator[str]:
    for name, words in options.items():
        yield f"--{name}"
        yield from words


def _value(value: Any, file: Path, field: str) -> list[str]:
    """The words after an option: of true none, which is a flag's."""
    values = value if isinstance(value, list) else [] if value is True else [value]
    good = all(isinstance(x, str | int | float) and x is not False and not str(x).startswith("--") for x in values)
    _require(good, file, field, value, "true, numbers, texts, or a list of them")
    return [str(x) for x in values]


def _listed(value: Any, file: Path, field: str) -> list[str]:
    values = [] if value is None else value if isinstance(value, list) else [value]
    _require(all(isinstance(x, str) and x for x in values), file, field, value, "a text or a list of texts")
    return values


def _table(data: dict[str, Any], name: str, file: Path) -> dict[str, Any]:
    table = data.get(name, {})
    _require(isinstance(table, dict), file, name, table, f"a table [{name}]")
    return table


def _require(condition: bool, file: Path, field: str, value: object, expected: str) -> None:
    if not condition:
        raise ValueError(f"{file}: {field} is {str(value)[:200]}; expected {expected}")
