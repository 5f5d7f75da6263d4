"""Processes that are late collect less, so that the others need not wait: DD-PPO's (Wijmans et al. 2020)."""

from __future__ import annotations

from robo_rl.learn.config import PpoConfig
from robo_rl.learn.distributed import processes

CUT_AFTER = 0.25
"""Part of a horizon that every process collects (DD-PPO's)."""


class Stragglers:
    """Counts the processes that have collected all of an update's horizon."""

    def __init__(self, config: PpoConfig, robots: int) -> None:
        """``robots`` are those of this process."""
        self.robots, self.horizon, self.part = robots, config.horizon, config.cut
        self.mini_batches, self.cuts = config.mini_batches, config.cut > 0.0 and processes.count() > 1

    def late(self, update: int, steps: int) -> bool:
        """Whether so many others have collected their horizon that this process is to end its own after ``steps``."""
        enough = steps >= CUT_AFTER * self.horizon and steps * self.robots >= self.mini_batches
        return self.cuts and enough and processes.counted(f"collected/{update}", 0) >= self.part * processes.count()

    def finish(self, update: int, steps: int) -> dict[str, float]:
        """This process has collected ``steps``; returns metrics."""
        if self.cuts and steps == self.horizon:
            processes.counted(f"collected/{update}", 1)
        return {"collected": steps / self.horizon} if self.cuts else {}
