"""Jobs of a sweep: many trainings, each an ordinary run, on any engine (``robo_rl.learn.distributed.engines``).

A job is the words of one training, and a digest of them and of the files that they name. Its state is its run's folder
in the sweep's folder: without run.json it is trained, with run.json resumed, with done.json it is done. So whoever sees
the folder can do a job, or go on with it: another process, another computer, the next start of the same sweep.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from robo_rl.files import HeldError, held, read_bytes, write
from robo_rl.files.escaping import file_name
from robo_rl.files.text import read_json

FILE = "sweep.json"
MOST_BYTES = 3 << 24
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
    origin: str | None = None
    """The folder of the run that this one begins from, relative to the sweep's."""

    def words(self, folder: Path) -> list[str]:
        """After ``robo-rl``: what begins it, or goes on with it, in the sweep's folder."""
        run = folder / self.name
        saved = self.origin is None or (run / "checkpoint.safetensors").is_file()  # what it begins from is only there
        if saved and (run / "run.json").is_file():
            return ["resume", str(run), *_words({k: v for k, v in self.options.items() if k in KEPT})]
        robot = [] if self.robot is None else ["--robot", self.robot]
        place = ["--seed", str(self.seed), "--runs", str(folder), "--name", self.name]
        origin = [] if self.origin is None else ["--begin-from", str(folder / self.origin)]
        return ["train", self.task, *robot, *place, *origin, *_words(self.options)]


def create(folder: Path, jobs: Sequence[Job]) -> None:
    """Write down what a sweep's folder is for. ValueError if it is another sweep's."""
    folder.mkdir(parents=True, exist_ok=True)
    told = [{name: x for name, x in vars(job).items() if name != "origin" or x is not None} for job in jobs]
    content = json.dumps({"jobs": told}, indent=1) + "\n"
    file = folder / FILE
    if file.is_file():
        if read_bytes(file, MOST_BYTES).decode(errors="replace") != content:
            raise ValueError(f"{file} is of other jobs; expected the same sweep as before, or another --out")
        return
    write(file, content)


def read(folder: Path) -> list[Job]:
    """The jobs of a sweep's folder."""
    file = folder / FILE
    if not file.is_file():
        raise ValueError(f"{file} does not exist; expected the folder of a sweep, written by 'robo-rl sweep'")
    try:
        jobs = [Job(**job) for job in read_json(file, MOST_BYTES)["jobs"]]
        for number, job in enumerate(jobs):
            _check(job, f"job {number}")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        said = str(error) if isinstance(error, ValueError) else repr(error)
        told = said if str(file) in said else f"{file}: {said}"
        raise ValueError(f"{told[:1000]}; expected a file written by 'robo-rl sweep'") from None
    return jobs


def _check(job: Job, where: str) -> None:
    """ValueError unless a job stays in the sweep's folder, and has options of a training alone.

    Its task and its robot may be files of a user's own, which are run: docs/security.md says so.
    """

    def require(good: object, field: str, value: object, expected: str) -> None:
        if not good:
            raise ValueError(f"{where}: {field} is {str(value)[:200]!r}; expected {expected}")

    require(_is_name(job.name), "name", job.name, "the name of a folder")
    for field, value, none in (("task", job.task, False), ("robot", job.robot, True)):
        good = (value is None and none) or (_is_text(value) and not str(value).startswith("-"))
        require(good, field, value, "a name, or a file's")
    require(type(job.seed) is int and job.seed >= 0, "seed", job.seed, "an integer, 0 or more")
    require(_is_text(job.files_digest), "files_digest", job.files_digest, "a text")
    origin = job.origin is None or (_is_text(job.origin) and _is_origin(job.origin))
    require(origin, "origin", job.origin, "a run's folder in this one, or in one beside it")
    require(isinstance(job.options, dict), "options", job.options, "words by option")
    for name, words in job.options.items():
        require(_is_name(name) and name not in OWN, "an option", name, f"one of train, not of {OWN}")
        good = isinstance(words, list) and all(_is_text(word) and not word.startswith("--") for word in words)
        require(good, f"options.{name}", words, "a list of words that are no options")


def _is_origin(value: str) -> bool:
    """NAME, NAME/NAME, …; or ../NAME/NAME, a run of an earlier round (``robo_rl.sweeps.population``)."""
    parts = value.split("/")
    return all(map(_is_name, parts[1:] if parts[0] == ".." and len(parts) == 3 else parts))


def _is_name(value: object) -> bool:
    return isinstance(value, str) and file_name(value) == value


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.isprintable()


def done(folder: Path, job: Job) -> bool:
    """Whether its training has ended and was evaluated."""
    return (folder / job.name / "done.json").is_file()


def work(folder: Path, index: int, run: Callable[[list[str]], int]) -> int:
    """Do a job, or what is left of it, in this process; returns an exit code, BUSY if another process has it.

    ``run`` carries out the words of a command, such as ["train", "quadrotor-hover"], and returns its exit code.
    """
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
                return 0 if done(folder, job) else _run(folder, job, run)
        except HeldError:
            if time.monotonic() - begun > PATIENCE:
                return BUSY
        time.sleep(0.2)


def _run(folder: Path, job: Job, run: Callable[[list[str]], int]) -> int:
    words = job.words(folder)
    if words[0] == "train":
        shutil.rmtree(folder / job.name, ignore_errors=True)  # of one that was killed before it wrote run.json
    return run(words)


def _words(options: dict[str, list[str]]) -> Iterator[str]:
    for name, words in options.items():
        yield f"--{name}"
        yield from words
