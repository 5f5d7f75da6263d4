"""What the episodes of a training come to: rewards by term, ends, lengths, causes of failure, errors.

``VecEnv`` records every episode as it ends; ``read`` gives means since it was last called. To record costs a few
indexing operations per control step in which episodes end, the rest is computed when it is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from robo_rl.sim.env import VecEnv

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Of the lengths of episodes."""
MOST_BINS = 4096
"""Of the histogram of lengths; longer episodes share bins."""
SAMPLED, ROWS = 8, 64
"""Causes are looked at in one of so many steps with failures, of so many robots at most."""
LIMIT = 1e-4
"""Of a command's range: what is so near to a limit is at it."""


class EpisodeStatistics:
    """Of one environment, since ``read`` was last called."""

    def __init__(self, env: VecEnv) -> None:
        self.env, self.terms = env, list(env.task.spec.reward)
        self.last = torch.zeros(0, len(self.terms))
        """(m, t) what the episodes that were recorded last had earned by term."""
        self._each = -(-env.episode_steps // MOST_BINS)
        self._ended: list[tuple[Tensor, ...]] = []
        self._sums = torch.zeros(len(self.terms) + 1, dtype=torch.float64)
        """What ended episodes earned by term, and their control steps."""
        self._counts = torch.zeros(3, dtype=torch.float64)
        """Episodes that ended, failed, succeeded."""
        self._lengths = torch.zeros(env.episode_steps // self._each + 1, dtype=torch.float64)
        self._causes: dict[str, float] = {}
        self._examined, self._calls, self._diverged = 0.0, SAMPLED, 0
        self._finite = [name for name, value in env.truth().items() if value.isfinite().all()]
        """Not what a room's walls are padded with."""
        self._before = self._running()

    def _running(self) -> Tensor:
        """What the episodes under way have earned by term, and their control steps: a sum over robots."""
        sums, step = self.env.kept.sums, self.env.episode.step
        return torch.cat([sums.sum(0, dtype=torch.float64), step.sum(dtype=torch.float64)[None]]).cpu()

    def record(self, ids: Tensor, over: bool) -> None:
        """The episodes of ``ids`` (m,) end now, or, if not ``over``, are broken off."""
        past = self.env.past
        lost, won = past.marks
        self.last = past.sums[ids]
        self._ended.append((self.last, past.step[ids], lost[ids], won[ids], *(() if over else (ids,))))
        if over:
            self._calls += 1
            if self._calls >= SAMPLED:
                self._examine(ids[self._ended[-1][2] > 0.5][:ROWS])

    def _examine(self, failed: Tensor) -> None:
        """Count the causes for which ``failed`` (m,) failed."""
        if not len(failed):
            return
        self._calls = 0
        truth = self.env.truth(failed)
        causes = self.env.task.failures(truth)
        size = torch.stack([truth[name].flatten(1).abs().sum(-1) for name in self._finite]).sum(0)
        causes = {**causes, "state not finite": ~torch.isfinite(size)}
        if self.env.team == 1:
            causes["other"] = ~torch.stack(list(causes.values())).any(0)
        for name, found in causes.items():
            self._causes[name] = self._causes.get(name, 0.0) + float(found.sum())
        self._examined += float(torch.stack(list(causes.values())).any(0).sum())  # robots of a team end together

    def _flush(self) -> None:
        """Add up what was recorded."""
        for sums, step, lost, won, *broken in self._ended:
            self._sums += torch.cat([sums.sum(0, dtype=torch.float64), step.sum(dtype=torch.float64)[None]]).cpu()
            if not broken:
                bins = (step / self._each).long().cpu().clamp(max=len(self._lengths) - 1)
                self._counts += torch.stack([torch.ones_like(lost).sum(), lost.sum(), won.sum()]).double().cpu()
                self._lengths += torch.bincount(bins, minlength=len(self._lengths))
        self._ended.clear()

    @torch.no_grad()
    def read(self) -> dict[str, float]:
        """Means since the last call, by name; those of episodes only where any ended.

        ``reward/TERM``: weighted, per control step. ``episode/``: ``count``, ``failure``, ``success`` and ``timeout``
        (parts of the episodes), ``length_s`` (mean) and its quantiles ``length_p50_s``, ``diverged`` (robots).
        ``failure/CAUSE``: part of the failures, of a sample. ``error/MEASURE`` and ``at_limit/COMMAND`` (part of the
        elements): of all robots at this moment.
        """
        self._flush()
        running, period = self._running(), self.env.task.spec.control_period
        *earned, steps = (self._sums + running - self._before).tolist()
        found = {f"reward/{name}": value / max(steps, 1.0) for name, value in zip(self.terms, earned, strict=True)}
        count, failed, succeeded = self._counts.tolist()
        if count:
            done = self.env.task.knows_success
            found |= {
                "episode/count": count,
                "episode/failure": failed / count,
                **({"episode/success": succeeded / count} if done else {}),
                "episode/timeout": (count - failed - (succeeded if done else 0.0)) / count,
                "episode/length_s": period * self._sums[-1].item() / count,
            }
            parts = self._lengths.cumsum(0) / count
            for q in QUANTILES:
                steps_of_it = self._each * int((parts >= q - 1e-9).nonzero()[0])
                found[f"episode/length_p{round(100 * q):02d}_s"] = period * steps_of_it
        found["episode/diverged"] = float(self.env.diverged - self._diverged)
        for name, number in sorted(self._causes.items()) if self._examined else ():
            found[f"failure/{name}"] = number / self._examined
        truth = self.env.truth()
        found |= {f"error/{name}": float(value.mean()) for name, value in self.env.task.errors(truth).items()}
        found |= self._at_limits()
        self._restart(running)
        return found

    def _at_limits(self) -> dict[str, float]:
        found = {}
        for command in self.env.task.spec.commands:
            sent = self.env.episode.previous[command.name]
            low, high = (torch.tensor(x, device=sent.device) for x in (command.lower, command.upper))
            near = LIMIT * (high - low)
            found[f"at_limit/{command.name}"] = float(((sent <= low + near) | (sent >= high - near)).float().mean())
        return found

    def _restart(self, running: Tensor) -> None:
        for total in (self._sums, self._counts, self._lengths):
            total.zero_()
        self._causes, self._examined, self._calls, self._before = {}, 0.0, SAMPLED, running
        self._diverged = self.env.diverged

    # --- saving and restoring --------------------------------------------------------------------------------------

    def save(self) -> dict[str, Tensor]:
        """For a checkpoint, so that metrics go on as well."""
        self._flush()
        numbers = [self._examined, self._calls, self.env.diverged - self._diverged]
        causes = {f"causes/{name}": torch.tensor(x, dtype=torch.float64) for name, x in self._causes.items()}
        totals = {"sums": self._sums, "counts": self._counts, "lengths": self._lengths, "before": self._before}
        return {**{k: v.clone() for k, v in totals.items()}, **causes, "numbers": torch.tensor(numbers).double()}

    def load(self, saved: dict[str, Tensor]) -> None:
        """Go on from ``save``; from nothing where it is empty, of a checkpoint of an earlier release."""
        self._ended.clear()
        self._restart(self._running())
        if not saved:
            return
        for name, mine in (("sums", self._sums), ("counts", self._counts), ("lengths", self._lengths)):
            mine.copy_(saved[name])
        self._before = saved["before"].clone()
        self._causes = {k.removeprefix("causes/"): float(v) for k, v in saved.items() if k.startswith("causes/")}
        examined, calls, diverged = saved["numbers"].tolist()
        self._examined, self._calls, self._diverged = examined, int(calls), self.env.diverged - int(diverged)
