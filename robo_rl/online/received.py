"""Transitions out of what robots tell (``robo_rl.deploy.robot.logs.step_log``), as learners take them.

A transition is two frames, one after the other: what was seen and done, and what came of it. Observations are the
task's, computed of the signals and the memory that the policy on the robot had; the action is that which was taken, as
the memory of the next step tells it. Rewarded is success alone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from robo_rl.contract import Contract
from robo_rl.deploy.robot.logs.step_log import Flag, StepLogError, StepReader, files
from robo_rl.learn.experience.demonstrations import Transitions
from robo_rl.online.interventions import DONE, InterventionPolicy


class Received(NamedTuple):
    """What robots have done since it was asked last."""

    transitions: Transitions
    led: Tensor
    """(s,) bool: the operator had the robot."""
    outcomes: list[tuple[int, bool]]
    """Of each episode that ended: which of the transitions was its last, and whether it succeeded."""


class StepFolder:
    """The files of all robots that write into a folder."""

    def __init__(
        self, folder: Path, policy: InterventionPolicy, contract: Contract, say: Callable[[str], None]
    ) -> None:
        """``say`` gets a sentence for each file that can't be used, or no further."""
        self.folder, self._policy, self._contract, self._say = folder, policy, contract, say
        self._readers: dict[Path, StepReader | None] = {}
        self._left: dict[Path, np.ndarray] = {}
        """By file, the last frame, whose transition is not known yet."""

    def new(self) -> Received:
        """All transitions that are complete by now, and were not given before."""
        parts = []
        for path in files(self.folder):
            if path not in self._readers:
                self._readers[path] = StepReader(path, self._contract)
            reader = self._readers[path]
            if reader is None:
                continue
            try:
                frames = reader.new()
            except (StepLogError, OSError) as error:
                self._refuse(path, str(error))
                continue
            if reader.damage:
                self._refuse(path, reader.damage)
            if len(frames):
                before = self._left.get(path, frames[:0])
                parts.append(self._transitions(np.concatenate([before, frames])))
                self._left[path] = frames[-1:].copy()
        return _joined(parts, self._policy)

    def _refuse(self, path: Path, sentence: str) -> None:
        self._say(sentence)
        self._readers[path] = None

    def _transitions(self, frames: np.ndarray) -> Received:
        flags = frames["flags"]
        begins = np.flatnonzero(((flags[:-1] & Flag.LAST) == 0) & (np.diff(frames["number"].astype(np.int64)) == 1))
        after = begins + 1
        with torch.no_grad():
            seen, memory = self._observed(frames)
        succeeded, failed = ((flags & flag) != 0 for flag in (Flag.SUCCEEDED, Flag.FAILED))
        last = (flags[after] & Flag.LAST) != 0
        transitions = Transitions(
            seen[begins], memory[DONE][after].clone(), _float(succeeded[after]), _float((succeeded | failed)[after]),
            seen[after],
        )  # fmt: skip
        outcomes = [(int(i), bool(succeeded[after[i]])) for i in np.flatnonzero(last)]
        return Received(transitions, torch.from_numpy((flags[begins] & Flag.OPERATOR) != 0), outcomes)

    def _observed(self, frames: np.ndarray) -> tuple[Tensor, dict[str, Tensor]]:
        flat, place, signals = torch.from_numpy(frames["signals"].copy()), 0, {}
        for signal in self._contract.signals:
            signals[signal.name] = flat[:, place : place + signal.size].unflatten(1, signal.dimensions)
            place += signal.size
        memory = self._policy.unpack(torch.from_numpy(frames["memory"].copy()))
        return self._policy.task.observe(signals, memory), memory


def _float(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values.astype(np.float32))


def _joined(parts: list[Received], policy: InterventionPolicy) -> Received:
    if not parts:
        seen, acted = torch.zeros(0, policy.task.observation_size), torch.zeros(0, policy.task.action_size)
        none = torch.zeros(0)
        return Received(Transitions(seen, acted, none, none, seen), none > 0.0, [])
    outcomes, count = [], 0
    for part in parts:
        outcomes += [(count + i, won) for i, won in part.outcomes]
        count += len(part.led)
    columns = zip(*(part.transitions for part in parts), strict=True)
    return Received(Transitions(*map(torch.cat, columns)), torch.cat([part.led for part in parts]), outcomes)
