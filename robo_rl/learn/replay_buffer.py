"""What robots have met, in a file beside the run that is memory as long as it is open.

Rows that were written are in the file also when the process is killed. A checkpoint keeps how many there were; those
that came later are written again by the training that goes on from it. So a training is the same with or without the
break as long as the file has room for all of it; after that, the oldest rows are replaced.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from robo_rl.learn.experience.demonstrations import Transitions

FILE_NAME = "replay.f32"
"""In the folder of a run: rows of float32, as many columns as a transition has numbers."""


class ReplayBuffer:
    """At most ``capacity`` transitions with observations of k and actions of a numbers."""

    def __init__(self, capacity: int, observation: int, action: int, folder: Path | None) -> None:
        """In ``folder``, going on with a file that is there; in memory where that is None."""
        self.capacity, self.written = capacity, 0
        self.widths = (observation, action, 1, 1, observation)
        shape = (capacity, sum(self.widths))
        if folder is None:
            self._file: np.memmap | None = None
            self._rows = torch.zeros(shape)
            return
        path = folder / FILE_NAME
        size = 4 * shape[0] * shape[1]
        if not path.is_file() or path.stat().st_size != size:
            with path.open("wb") as file:
                file.truncate(size)  # takes no room on the disk before it is written
        self._file = np.memmap(path, np.float32, "r+", shape=shape)
        self._rows = torch.from_numpy(self._file)

    def __len__(self) -> int:
        return min(self.written, self.capacity)

    def add(self, new: Transitions) -> None:
        """Write transitions (n) after the last ones; n may be 0."""
        pairs = zip(new, self.widths, strict=True)
        rows = torch.cat([value.reshape(len(value), width) for value, width in pairs], 1)
        places = (self.written + torch.arange(len(rows))) % self.capacity
        self._rows[places] = rows
        self.written += len(rows)

    def sample(self, count: int) -> Transitions:
        """``count`` of them, drawn with replacement."""
        return self.at(torch.randint(len(self), (count,)))

    def at(self, ids: Tensor) -> Transitions:
        """Those in the rows ``ids`` (m,)."""
        seen, action, reward, ended, later = self._rows[ids].split(self.widths, 1)
        return Transitions(seen, action, reward[:, 0], ended[:, 0], later)

    def flush(self) -> None:
        """Bring everything to the disk."""
        if self._file is not None:
            self._file.flush()
