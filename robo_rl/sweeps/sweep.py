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

from robo_rl.files import HeldError, held, write
from robo_rl.files.escaping import file_name

FILE = "sweep.json"
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
            origin = Path(job.origin or "x").name
            words = [word for words in job.options.values() for word in words]
            if file_name(job.name) != job.name or file_name(origin) != origin or not _texts(words):
                raise ValueError(f"job {job.name!r}")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{file}: {error!r}; expected a file written by 'robo-rl sweep'") from None
    return jobs


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


def _texts(words: Sequence[object]) -> bool:
    return all(isinstance(word, str) for word in words)


def _words(options: dict[str, list[str]]) -> Iterator[str]:
    for name, words in options.items():
        yield f"--{name}"
        yield from words
