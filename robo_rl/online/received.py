"""Transitions out of what robots tell (``robo_rl.deploy.robot.logs.step_log``), as learners take them.

A transition is two frames, one after the other: what was seen and done, and what came of it. Observations are the
task's, computed of the signals and the memory that the policy on the robot had; the action is that which was taken, as
the memory of the next step tells it. Rewarded is success alone. Steps with values that can't be learnt from
(``robo_rl.learn.experience.recorded_values``) are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from robo_rl.contract import Contract
from robo_rl.deploy.robot.logs.step_log import Flag, StepLogError, StepReader, files
from robo_rl.learn.experience.demonstrations import Transitions
from robo_rl.learn.experience.recorded_values import faults
from robo_rl.online.interventions import DONE, InterventionPolicy

MOST_DAMAGED = 1000
"""Frames of a file after which it is given up."""


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
        self._told: set[Path] = set()
        """Files of which something was left out."""
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
                frames = self._frames(reader)
            except StepLogError as error:
                self._refuse(path, str(error))
                continue
            except OSError as error:  # the next look may find it again
                self._tell(path, f"{path}: {error.strerror or error}; tried again with every look")
                continue
            if reader.left_out > MOST_DAMAGED:
                self._refuse(path, f"{path}: {reader.left_out} frames are damaged; it is not read any more")
            if len(frames):
                before = self._left.get(path, frames[:0])
                parts.append(self._transitions(np.concatenate([before, frames]), path))
                self._left[path] = frames[-1:].copy()
        return _joined(parts, self._policy)

    def _frames(self, reader: StepReader) -> np.ndarray:
        """What is new in a file. A frame that is damaged when it is read a second time is left out, the rest is not."""
        again = bool(reader.damage)
        frames = reader.new(over_damage=again)
        if reader.damage:
            self._tell(
                reader.path, f"{reader.damage.rpartition(';')[0]}; it is read again, and left out if it stays so"
            )
        return frames

    def _tell(self, path: Path, sentence: str) -> None:
        """Once for each file."""
        if path not in self._told:
            self._told.add(path)
            self._say(sentence)

    def _refuse(self, path: Path, sentence: str) -> None:
        self._say(sentence)
        self._readers[path] = None

    def _transitions(self, frames: np.ndarray, path: Path) -> Received:
        flags = frames["flags"]
        with torch.no_grad():
            signals, memory, seen = self._observed(frames)
        good = self._usable(frames, {**signals, **memory, "observation": seen}, path)
        follows = np.diff(frames["number"].astype(np.int64)) == 1
        begins = np.flatnonzero(((flags[:-1] & Flag.LAST) == 0) & follows & good[:-1] & good[1:])
        after = begins + 1
        succeeded, failed = ((flags & flag) != 0 for flag in (Flag.SUCCEEDED, Flag.FAILED))
        last = (flags[after] & Flag.LAST) != 0
        transitions = Transitions(
            seen[begins], memory[DONE][after].clone(), _float(succeeded[after]), _float((succeeded | failed)[after]),
            seen[after],
        )  # fmt: skip
        outcomes = [(int(i), bool(succeeded[after[i]])) for i in np.flatnonzero(last)]
        return Received(transitions, torch.from_numpy((flags[begins] & Flag.OPERATOR) != 0), outcomes)

    def _usable(self, frames: np.ndarray, values: Mapping[str, Tensor], path: Path) -> np.ndarray:
        """(s,) which frames can be learnt from; says once of each file why others can't."""
        good = (frames["flags"] & ~sum(Flag)) == 0
        sentence = "" if good.all() else f"step {frames['number'][np.argmin(good)]} has unknown flags"
        commands = {f"command[{i}]": value for i, value in enumerate(frames["command"].T)}
        for fault in faults(self._contract.signals, {**{n: v.numpy() for n, v in values.items()}, **commands}):
            good = good & ~fault.rows
            sentence = sentence or f"step {frames['number'][fault.first]}: {fault.sentence}"
        if sentence:
            self._tell(path, f"{path}: {sentence}; this step, and others like it, are left out")
        return good

    def _observed(self, frames: np.ndarray) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        flat, place, signals = torch.from_numpy(frames["signals"].copy()), 0, {}
        for signal in self._contract.signals:
            signals[signal.name] = flat[:, place : place + signal.size].unflatten(1, signal.dimensions)
            place += signal.size
        memory = self._policy.unpack(torch.from_numpy(frames["memory"].copy()))
        return signals, memory, self._policy.task.observe(signals, memory)


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
