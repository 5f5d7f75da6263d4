"""A clip as a sum that policies, simulators and microcontrollers evaluate at any time: uniform cubic B-splines.

    f(t) = f_0 + sum over k of B(t / h - k) c_k,   B(u) = ((2 - |u|)+^3 - 4 (1 - |u|)+^3) / 6

(de Boor 1978). Knots are h = 0.2 s apart, or 0.1 s where that loses too much; coefficients c_k are least squares over
the frames. Numbers of a motion go together, so c = U V has a low rank, by its singular values: a few courses over time
U, and what each number takes of them. Velocities are the sum's own derivative. Outside of the clip its first or last
value holds, at rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

KNOTS = (0.2, 0.1)  # s, between knots: the first that loses less than half of what may be lost
LOST = 5e-3
"""By which numbers may be off the frames, in m or rad; what no rank keeps is told by ``Spline.misfit``."""


class Spline:
    """Columns (T, C) of numbers over time."""

    def __init__(self, values: np.ndarray, period: float) -> None:
        """``values`` (T, C) at multiples of ``period`` (s), at least two of them."""
        times, moved = period * np.arange(len(values)), values - values[0]
        self.duration = float(times[-1])
        """s."""
        for self.knot in KNOTS:
            count = int(np.ceil(self.duration / self.knot - 1e-9)) + 3
            self._knots = torch.arange(count, dtype=torch.float32)[None] - 1.0
            basis = self._basis(torch.from_numpy(times)[:, None].double())[0].numpy()
            found = np.linalg.lstsq(basis, moved, rcond=None)[0]
            if np.abs(basis @ found - moved).max() <= 0.5 * LOST:
                break
        courses, sizes, shares = np.linalg.svd(found, full_matrices=False)
        courses = courses * sizes
        for rank in range(1, len(sizes) + 1):
            self.misfit = np.abs(basis @ courses[:, :rank] @ shares[:rank] - moved).max(0)
            """(C,) the most by which each column's sum is off the frames."""
            if self.misfit.max() <= LOST:
                break
        self._first = torch.from_numpy(values[:1]).float()
        self.courses, self.shares = (torch.from_numpy(x).float() for x in (courses[:, :rank], shares[:rank]))
        """(K, R) and (R, C)."""

    def _basis(self, time: Any) -> tuple[Any, Any]:
        """(n, K) the values at ``time`` (n, 1) s within the clip, and their derivatives (1/s)."""
        u = time / self.knot - self._knots
        far = torch.clamp(2.0 - abs(u), min=0.0)
        near = torch.clamp(1.0 - abs(u), min=0.0)
        slope = (2.0 * near * near - 0.5 * far * far) / self.knot
        return (far * far * far - 4.0 * near * near * near) / 6.0, torch.where(u < 0.0, -slope, slope)

    def at(self, time: Any, columns: slice = slice(None), moving: int = 0) -> tuple[Any, Any]:
        """Values (n, c) of some columns at ``time`` (n, 1) s, and the velocities (n, moving) of the first of them."""
        value, slope = self._basis(torch.clamp(time, 0.0, self.duration))
        slope = torch.where(time < self.duration, slope, 0.0)
        shares = self.shares[:, columns]
        value, slope = _times(value, self.courses), _times(slope, self.courses)
        return self._first[:, columns] + _times(value, shares), _times(slope, shares[:, :moving])


def _times(vectors: Any, table: torch.Tensor) -> Any:
    """(n, c) of vectors (n, k) and a table (k, c), which is no layer of a network."""
    return (vectors.unsqueeze(-1) * table[None]).sum(1)
