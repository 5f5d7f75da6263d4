"""The learner's side of learning while a robot runs: steps in, an algorithm, and bundles that go to the robot.

All transitions go to the algorithm, with who made them. They come from files alone (``robo_rl.online.received``),
which stay,
so a learner that was killed reads them again, and goes on from its checkpoint. How much is learnt follows from how many
steps the robots made: the learner waits for them, they never wait.

What is exported, and kept as the run's policy, is a running mean of the weights, which varies less than they do.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from robo_rl.deploy.robot.bundle import Bundle, BundleError
from robo_rl.deploy.robot.successors import files, next_file
from robo_rl.files import open_own
from robo_rl.files.text import fits
from robo_rl.learn.experience.demonstrations import Transitions
from robo_rl.learn.finite import MOST_SKIPPED
from robo_rl.learn.runs import checkpoint
from robo_rl.learn.runs.checkpoint import part
from robo_rl.learn.runs.folder import Run
from robo_rl.learn.runs.training import NotFiniteError
from robo_rl.online.interventions import InterventionPolicy, export, export_again
from robo_rl.online.received import Received, StepFolder
from robo_rl.policy import PolicyGraph

ROBOT = "robot"
"""The folder in a run's folder that robots share."""
WINDOW = 600.0
"""s of robot time over which the rates in the metrics are taken."""
AVERAGING = 1e-3
"""Part of the new weights in the running mean, per mini-batch."""
ROUND = 100
"""Mini-batches between two looks for new steps."""
TOLD = 10.0
"""s between two sentences on how far it is."""
KEPT = 1000
"""Bundles in the folder; older ones are removed, but for the first."""


class Algorithm(Protocol):
    """What learns (``robo_rl.online.cloning``, ``live_sac``)."""

    policy: PolicyGraph
    first: int
    """Control steps before anything is learnt."""

    def graph(self, policy: PolicyGraph) -> InterventionPolicy:
        """What robots run, of a policy of the same shape."""
        ...

    def pretrain(self, told: Callable[[int, int], None]) -> None:
        """Learn from the demonstrations, before there are robots; ``told`` is called with what is done, and of what."""

    def add(self, transitions: Transitions, led: Tensor) -> None:
        """New transitions, and which of them the operator made (s,)."""

    def learn(self) -> dict[str, float]:
        """A mini-batch; metrics. "skipped", where it is among them, tells of how many mini-batches so far nothing was
        learnt, as their gradients were not finite."""
        ...

    def save(self) -> dict[str, Tensor]: ...

    def load(self, tensors: Mapping[str, Tensor]) -> None: ...


class LiveLearner:
    """One run's."""

    def __init__(self, run: Run, algorithm: Algorithm, folder: Path, ratio: float, say: Callable[[str], None]) -> None:
        """``folder``: what robots share; ``ratio``: mini-batches per step of a robot."""
        self.run, self.algorithm, self.folder, self.ratio, self.say = run, algorithm, folder, ratio, say
        self.average = run.new_policy().requires_grad_(False)
        self.graph = algorithm.graph(self.average).eval()
        self.learnt, self._in_a_row = 0, 0
        """Mini-batches since the first bundle."""
        self.metrics: dict[str, float] = {}
        self._led: list[np.ndarray] = []
        self._outcomes: list[tuple[int, bool]] = []
        self.steps = 0
        """Of all robots."""
        self._told = time.monotonic()
        self.bundle: Bundle | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def begin(self) -> None:
        """From the run's checkpoint, or, if there is none, from the demonstrations."""
        if self.run.checkpoint_file.is_file():
            self._load()
        else:
            self.algorithm.pretrain(self._tell)
            self.average.load_state_dict(self.algorithm.policy.state_dict())
        self.bundle = self._newest() or self._export_first()
        self._steps = StepFolder(self.folder, self.graph, self.bundle.contract, self.say)
        self.receive()
        self.save()
        self.say(f"for the robot:  robo-rl run {self.bundle.path} --learn {self.folder} --driver simulated")

    def _tell(self, done: int, total: int) -> None:
        if time.monotonic() - self._told > TOLD:
            self.say(f"learning from the demonstrations: {done:,} of {total:,} updates")
            self._told = time.monotonic()

    def receive(self) -> int:
        """Take what robots have told; the number of new transitions."""
        new: Received = self._steps.new()
        self.algorithm.add(new.transitions, new.led)
        self._outcomes += [(self.steps + i, won) for i, won in new.outcomes]
        self._led.append(new.led.numpy())
        self.steps += len(new.led)
        return len(new.led)

    @property
    def owed(self) -> int:
        """Mini-batches that are due."""
        return int(self.ratio * max(0, self.steps - self.algorithm.first)) - self.learnt

    def learn(self) -> None:
        """Some of the mini-batches that are due.

        NotFiniteError after ``MOST_SKIPPED`` in a row whose gradients were not finite; the newest checkpoint and the
        newest policy for the robot stay.
        """
        for _ in range(min(ROUND, self.owed)):
            before = self.metrics.get("skipped", 0.0)
            self.metrics = self.algorithm.learn()
            self.learnt += 1
            self._in_a_row = self._in_a_row + 1 if self.metrics.get("skipped", 0.0) > before else 0
            if self._in_a_row == MOST_SKIPPED:
                raise NotFiniteError(
                    f"{self.run.folder}: the gradients of {MOST_SKIPPED} mini-batches in a row were not finite; the "
                    "checkpoint and the robot's policy of before stay, and 'robo-rl learn' goes on from there"
                )
            average(self.average, self.algorithm.policy)

    def publish(self) -> None:
        """A bundle of the present policy for the robots, a checkpoint, and a line of metrics."""
        assert self.bundle is not None
        self.save()  # refuses what is not finite, before a robot gets it
        out = next_file(self.folder, self.bundle.path)
        self.bundle = export_again(self.graph, self.bundle, out)
        line = {"update": self.learnt, "environment_steps": self.steps, **self.rates(), **self.metrics}
        with open_own(self.run.folder / "metrics.jsonl", "a") as file:
            file.write(json.dumps(line) + "\n")
        for path in files(self.folder)[1:-KEPT]:
            if path != out:  # whatever higher numbers others have planted
                path.unlink(missing_ok=True)

    def rates(self) -> dict[str, float]:
        """Minutes of robot time so far, and over the last ``WINDOW``: interventions, per step, and success."""
        period = self.average.task.spec.control_period
        first = self.steps - round(WINDOW / period)
        led = np.concatenate(self._led)[max(0, first) :] if self._led else np.zeros(0)
        won = [won for last, won in self._outcomes if last >= first]
        return {
            "intervention_rate": float(led.mean()) if len(led) else 0.0,
            "success": float(np.mean(won)) if won else 0.0,
            "minutes": self.steps * period / 60.0,
        }

    def _newest(self) -> Bundle | None:
        for path in reversed(files(self.folder)):
            try:
                return Bundle.read(path)
            except (BundleError, OSError) as error:
                self.say(f"left out: {error}")
        return None

    def _export_first(self) -> Bundle:
        return export(self.graph, self.run.provenance(0), self.folder / "policy-000001.onnx")

    def save(self) -> None:
        """Write the run's checkpoint. CheckpointError for a number that is not finite: the file of before stays."""
        policy = {f"policy/{name}": value for name, value in self.average.state_dict().items()}
        live = {f"live/{name}": value for name, value in self.algorithm.save().items()}
        numbers = {"environment_steps": self.steps, "finished": False, "learnt": self.learnt}
        tensors = {**policy, **live, "torch_generator": torch.get_rng_state()}
        file = self.run.checkpoint_file
        checkpoint.require_finite(file, tensors, "nothing was written, and the checkpoint of before stays")
        checkpoint.save(file, tensors, numbers)

    def _load(self) -> None:
        file = self.run.checkpoint_file
        tensors, numbers = checkpoint.load(file)
        checkpoint.require_finite(file, tensors, "what it learnt is lost; expected another run")
        with fits(file, "what 'robo-rl learn' writes", checkpoint.CheckpointError):
            self.average.load_state_dict(part(tensors, "policy/"))
            self.algorithm.load(part(tensors, "live/"))
            torch.set_rng_state(tensors["torch_generator"])
        self.learnt = checkpoint.require_count(file, numbers, "learnt")


@torch.no_grad()
def average(mean: PolicyGraph, policy: PolicyGraph) -> None:
    """A step of the running mean of a policy's weights."""
    for kept, new in zip(mean.parameters(), policy.parameters(), strict=True):
        kept.lerp_(new, AVERAGING)


def learn(learner: LiveLearner, every: float, ended: Callable[[], bool]) -> None:
    """Learn from robots until ``ended``, and give them a policy every ``every`` s in which something was learnt.

    The learner has begun.
    """
    published, learnt = time.monotonic(), learner.learnt
    while not ended():
        new = learner.receive()
        learner.learn()
        if learner.learnt > learnt and time.monotonic() - published >= every:
            learner.publish()
            published, learnt = time.monotonic(), learner.learnt
            learner.say(shown(learner))
        if not new and not learner.owed:
            time.sleep(0.1)
    if learner.learnt > learnt:
        learner.publish()


def shown(learner: LiveLearner) -> str:
    """How it goes, for people."""
    rates: dict[str, Any] = learner.rates()
    return (
        f"{rates['minutes']:.1f} min of robot time, {learner.learnt:,} mini-batches: the operator had the robot in "
        f"{rates['intervention_rate']:.1%} of the last 10 minutes, {rates['success']:.1%} of their episodes succeeded"
    )
