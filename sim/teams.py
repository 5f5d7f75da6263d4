"""Robots that share an environment: what they have to do with each other, and that they end together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from robo_rl.sim.accelerate.fuse import empty_block
from robo_rl.sim.episode import Ended
from robo_rl.sim.tasks import Task


class Teams:
    """Of n robots of a team task, a row each, teams one after the other."""

    def __init__(self, task: Task, truth: Mapping[str, Tensor]) -> None:
        """``truth`` are the plant's quantities (n, …)."""
        self.task, self.size = task, task.spec.team
        found = self._related(truth)
        first = next(iter(truth.values()))
        _, parts = empty_block(len(first), [value.shape[1:] for value in found.values()], first.device)
        self.neighbours = dict(zip(found, parts, strict=True))
        """(n, …) by name: ``Task.neighbours`` now."""

    def _related(self, truth: Mapping[str, Tensor]) -> dict[str, Tensor]:
        teams = {name: value.unflatten(0, (-1, self.size)) for name, value in truth.items()}
        return {name: value.flatten(0, 1) for name, value in self.task.neighbours(teams).items()}

    def update(self, truth: Mapping[str, Tensor], ids: Any = slice(None)) -> dict[str, Tensor]:
        """``neighbours`` of the robots ``ids`` (m,), whole teams, or of all, in the state ``truth`` (m, …)."""
        found = self._related(truth)
        for name, value in found.items():
            self.neighbours[name][ids] = value
        return found

    def ended(self, ended: Ended, step: Tensor, limit: Tensor) -> Ended:
        """Robots of a team end together, after ``limit`` (1,) control steps at the latest; ``step`` is (n,)."""
        failed, succeeded, _, finite, _ = (value.unflatten(0, (-1, self.size)) for value in ended)
        failed = self.task.team_failed(failed) | ~finite.all(1)
        succeeded = self.task.team_succeeded(succeeded) & ~failed
        timeout = (step[:: self.size] >= limit) & ~failed & ~succeeded
        whole = failed, succeeded, timeout, failed | succeeded | timeout
        failed, succeeded, timeout, any_of = (value.repeat_interleave(self.size) for value in whole)
        return Ended(failed, succeeded, timeout, ended.finite, any_of)
