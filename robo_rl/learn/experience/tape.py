"""What is recorded of a rollout, step by step."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


class Tape:
    """Arrays by name, with a row for each step.

    All room is taken at once, and filled as it is needed. Rows that are kept one by one would lie between the large
    arrays that a controller makes and frees in each step, so that their room could not be used again: the memory of a
    process grew by these arrays in every step.
    """

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self._rows: dict[str, np.ndarray] = {}

    def note(self, step: int, moment: Mapping[str, np.ndarray]) -> None:
        """Keep what is so at a step."""
        for name, value in moment.items():
            if name not in self._rows:
                self._rows[name] = np.empty((self.steps, *value.shape), value.dtype)
            self._rows[name][step] = value

    def until(self, step: int) -> dict[str, np.ndarray]:
        """What was noted of all steps before this one."""
        return {name: rows[:step] for name, rows in self._rows.items()}
