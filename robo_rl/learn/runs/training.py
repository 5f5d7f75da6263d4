"""The training loop: progress, metrics, checkpoints and interruption, the same for every algorithm."""

from __future__ import annotations

import io
import json
import math
import os
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any, Protocol

import torch
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter
from torch import Tensor

from robo_rl.console import Progress
from robo_rl.files import open_own, room_for, write
from robo_rl.files.text import fits
from robo_rl.learn.distributed import processes
from robo_rl.learn.finite import MOST_SKIPPED
from robo_rl.learn.runs import checkpoint
from robo_rl.learn.runs.folder import Run
from robo_rl.learn.runs.results import metrics_lines
from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.episode import LARGEST
from robo_rl.sim.episode_statistics import EpisodeStatistics

REPORTS = 100  # lines of metrics per training
SELDOM = 5
"""Updates between two lines that tell of episodes, at least: where an update takes milliseconds, they would cost more
than 2 % of the time."""


class NotFiniteError(ValueError):
    """A training ended because nothing finite could be learnt. The message says where, and what is kept."""


class Learner(Protocol):
    """What an algorithm gives to the loop."""

    policy: PolicyGraph
    total: int
    done: int
    collect_seconds: float
    """s in which robots acted, since the learner was made; the rest is learning. 0 where the two are not told apart."""
    diverged: int
    """Episodes that have ended because a number was not finite, or too large (``robo_rl.sim.episode.within``)."""
    skipped: int
    """Steps of optimisers that were not taken, along gradients that were not finite (``robo_rl.learn.finite``)."""

    @property
    def environments(self) -> VecEnv | None:
        """Whose episodes metrics tell of; None where other processes simulate, or nobody."""
        ...

    @property
    def environment_steps(self) -> int: ...

    def update(self) -> dict[str, float]:
        """Metrics; the first is shown as the training goes on."""
        ...

    def save(self) -> tuple[dict[str, Tensor], dict[str, Any]]: ...

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True)
class Trained:
    """How a training ended."""

    interrupted: bool
    seconds: float
    stopped: bool
    """Before its last update, as its reward was too low (``Run.stop_below``)."""
    rates: dict[str, float]
    """Control steps per second of this part of the training: steps_per_second, and, where robots and learning are told
    apart, simulation_steps_per_second, of the time in which robots acted."""


def train(run: Run, learner: Learner, seconds_between_checkpoints: float) -> Trained:
    """Update until the learner is done, or until Ctrl-C, which saves and stops after the update under way.

    NotFiniteError after ``MOST_SKIPPED`` updates in a row with steps that were skipped; the newest checkpoint is then
    that of before them, and stays.

    Metrics go to ``metrics.jsonl`` and to TensorBoard in the run's folder. Both, and the checkpoint, continue a
    training that was resumed. WriteError when the disk is full; the newest checkpoint then is whole.
    """
    every, seldom = reports(learner.total)
    episodes = statistics(learner)
    with (
        room_for(run.folder, "the training stopped, and 'robo-rl resume' goes on"),
        _Interruption() as interruption,
        Progress("training", learner.total, learner.done) as progress,
        _Log(run, learner) as log,
    ):
        start = saved = time.perf_counter()
        before, in_a_row = learner.environment_steps, 0
        stopped = any(too_low(run, int(line["update"]), line["reward"]) for line in run.metrics() if "reward" in line)
        while learner.done < learner.total and not processes.any_of(interruption.asked or stopped):
            skipped = learner.skipped
            metrics = learner.update()
            metrics |= {"diverged": learner.diverged, "skipped": learner.skipped}
            in_a_row = in_a_row + 1 if learner.skipped > skipped else 0
            name, value = next(iter(metrics.items()))
            progress.update(learner.done, f"{name} {value:.3f}{_unsound(learner)}")
            if in_a_row == MOST_SKIPPED:
                log.write(learner.done, learner.environment_steps, metrics)
                raise NotFiniteError(_given_up(run, learner))
            stopped = too_low(run, learner.done, metrics.get("reward", math.inf))
            last = learner.done == learner.total or stopped
            if learner.done % every == 0 or last:
                metrics |= episodes.read() if episodes and (learner.done % seldom == 0 or last) else {}
                log.write(learner.done, learner.environment_steps, metrics)
                if last or learner.done % seldom == 0:
                    progress.show(metrics)
            due = time.perf_counter() - saved > seconds_between_checkpoints and learner.done < learner.total
            if due and not in_a_row:
                save(run, learner)
                saved = time.perf_counter()
        save(run, learner)
        seconds = time.perf_counter() - start
    steps = learner.environment_steps - before
    rates = {"steps_per_second": steps / seconds} if steps else {}
    if steps and learner.collect_seconds:
        rates["simulation_steps_per_second"] = steps / learner.collect_seconds
    return Trained(learner.done < learner.total and not stopped, seconds, stopped, rates)


def reports(total: int) -> tuple[int, int]:
    """Of so many updates: every how many there is a line of metrics, and every how many it tells of episodes too."""
    every = max(1, total // REPORTS)
    return every, every * math.ceil(SELDOM / every)


def statistics(learner: Learner) -> EpisodeStatistics | None:
    """Of the episodes of the learner's environments, from now on."""
    env = learner.environments
    return env.keep_statistics() if env is not None else None


def _unsound(learner: Learner) -> str:
    """What was left out so far, for people; "" where that is nothing."""
    parts = {"diverged": learner.diverged, "steps skipped": learner.skipped}
    return "".join(f", {count:,} {name}" for name, count in parts.items() if count)


def _given_up(run: Run, learner: Learner) -> str:
    kept = "there is no checkpoint"
    if run.checkpoint_file.is_file():
        done = checkpoint.load(run.checkpoint_file)[1].get("done")
        kept = f"the checkpoint of update {done} stays, and 'robo-rl resume' goes on from there"
    return (
        f"{run.folder}: nothing finite could be learnt in {MOST_SKIPPED} updates in a row, the last of which is "
        f"{learner.done} of {learner.total} (diverged episodes: {learner.diverged:,}, skipped steps: "
        f"{learner.skipped:,}); {kept}. Expected states, rewards and observations that are finite and at most "
        f"{LARGEST:g}: look for divisions by 0, roots and logarithms, or train with a smaller learning rate"
    )


def too_low(run: Run, update: int, reward: float) -> bool:
    """Whether a training is to end after an update in which the mean reward was this; NaN is too low as well."""
    floor = run.stop_below.get(str(update))
    return floor is not None and not reward >= floor


def assist(learner: Learner) -> None:
    """The same updates in a process beside the first, which writes nothing."""
    in_a_row = 0
    with _Interruption() as interruption:
        while learner.done < learner.total and not processes.any_of(interruption.asked):
            skipped = learner.skipped
            learner.update()
            in_a_row = in_a_row + 1 if learner.skipped > skipped else 0
            if in_a_row == MOST_SKIPPED:  # of which the first process tells
                return


def save(run: Run, learner: Learner) -> None:
    """Write the run's checkpoint. CheckpointError for a number that is not finite: the file of before then stays."""
    tensors, numbers = learner.save()
    policy = {f"policy/{name}": value for name, value in learner.policy.state_dict().items()}
    torch_generator = {"torch_generator": torch.get_rng_state()}
    numbers = {**numbers, "environment_steps": learner.environment_steps, "finished": learner.done >= learner.total}
    numbers |= {"diverged": learner.diverged, "skipped": learner.skipped}
    tensors = {**policy, **tensors, **torch_generator}
    checkpoint.require_finite(run.checkpoint_file, tensors, "nothing was written, and the checkpoint of before stays")
    checkpoint.save(run.checkpoint_file, tensors, numbers)


def resume(run: Run, learner: Learner) -> None:
    """Put a learner where the run's checkpoint left off."""
    tensors, numbers = checkpoint.load(run.checkpoint_file)
    statistics(learner)  # which go on as well
    checkpoint.require_finite(run.checkpoint_file, tensors, "its training had diverged; expected another run")
    where = run.folder / "run.json"
    own = {f"policy/{name}": value for name, value in learner.policy.state_dict().items()}
    checkpoint.require_shapes(run.checkpoint_file, tensors, own, where)
    checkpoint.require_count(run.checkpoint_file, numbers, "done", learner.total)
    counted = {"diverged": 0, "skipped": 0} | numbers  # earlier releases tell neither
    with fits(run.checkpoint_file, str(where), checkpoint.CheckpointError):
        with torch.no_grad():
            for name, value in own.items():
                value.copy_(tensors[name])
        learner.load(tensors, numbers)
        torch.set_rng_state(tensors["torch_generator"])
    learner.diverged = checkpoint.require_count(run.checkpoint_file, counted, "diverged")
    learner.skipped = checkpoint.require_count(run.checkpoint_file, counted, "skipped")


class _Interruption:
    """Ctrl-C or SIGTERM sets ``asked``; a second one ends the process as usual."""

    def __enter__(self) -> _Interruption:
        self.asked = False
        self._before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._ask)
        return self

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        signal.signal(number, self._before[number])

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


class _Log:
    """Metrics as JSON lines and TensorBoard events, appended."""

    def __init__(self, run: Run, learner: Learner) -> None:
        self.folder = run.folder
        self.file = run.folder / "metrics.jsonl"
        self.done = learner.done

    def __enter__(self) -> _Log:
        lines = metrics_lines(self.file) if self.file.exists() else []
        kept = [line for line in lines if _update_of(line) <= self.done]  # later ones will come again
        write(self.file, "".join(line + "\n" for line in kept))
        self._lines = open_own(self.file, "ab")
        self._board = _Board(self.folder)
        return self

    def write(self, update: int, environment_steps: int, metrics: Mapping[str, float]) -> None:
        line = json.dumps({"update": update, "environment_steps": environment_steps, **metrics}) + "\n"
        _write_all(self._lines, line.encode())
        self._board.write(environment_steps, metrics)

    def __exit__(self, *error: object) -> None:
        self._lines.close()
        self._board.close()


class _Board:
    """A file of events for TensorBoard. Torch's own writer is a thread, which a full disk ends with a traceback."""

    def __init__(self, folder: Path) -> None:
        name = f"events.out.tfevents.{time.time_ns() // 10**6}.{os.getpid()}"
        self._file = (folder / name).open("xb", buffering=0)
        self._write(Event(wall_time=time.time(), file_version="brain.Event:2"))

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        values = [Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
        self._write(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))

    def _write(self, event: Event) -> None:
        record = io.BytesIO()
        RecordWriter(record).write(event.SerializeToString())
        _write_all(self._file, record.getvalue())

    def close(self) -> None:
        self._file.close()


def _write_all(file: IO[bytes], data: bytes) -> None:
    """Write all of ``data`` to a file without a buffer, or raise why not."""
    while data:
        data = data[file.write(data) :]


def _update_of(line: str) -> float:
    """The update that a line of metrics is about; infinite for a line that was cut off in the middle of writing."""
    try:
        update = json.loads(line)["update"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return math.inf
    return update if type(update) is int else math.inf
