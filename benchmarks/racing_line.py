"""Racing lines within tracks, and points of a line ahead of cars, for controllers that are told a path."""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import least_squares
from torch import Tensor

EVERY = 2  # points of the centre line that are one of the racing line


def racing_line(centre: np.ndarray, half: float) -> np.ndarray:
    """(p, 2) m: the closed line of least squared curvature, nowhere farther than ``half`` (m) from ``centre``.

    Offsets along the normals of ``centre`` (p, 2) m minimise the integral of the squared curvature, which Heilmeier et
    al. 2020 (Minimum curvature trajectory planning and control for an autonomous race car) approximate by a quadratic
    programme; here it is solved as a bounded non-linear least-squares problem.
    """
    count = len(centre)
    way = np.roll(centre, -1, 0) - np.roll(centre, 1, 0)
    normal = np.column_stack([-way[:, 1], way[:, 0]]) / np.linalg.norm(way, axis=1, keepdims=True)
    near = np.eye(count) + np.roll(np.eye(count), 1, 1) + np.roll(np.eye(count), -1, 1)

    def bends(offset: np.ndarray) -> np.ndarray:
        line = centre + offset[:, None] * normal
        return curvature(line) * np.sqrt(np.linalg.norm(np.roll(line, -1, 0) - line, axis=1))

    found = least_squares(bends, np.zeros(count), bounds=(-half, half), jac_sparsity=near, ftol=1e-4, max_nfev=60)
    return centre + found.x[:, None] * normal


def curvature(line: np.ndarray) -> np.ndarray:
    """(p,) 1/m at the points of a closed line (p, 2) m: that of the circle through each and its neighbours."""
    a, b = line - np.roll(line, 1, 0), np.roll(line, -1, 0) - line
    sides = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1) * np.linalg.norm(a + b, axis=1)
    return 2 * (a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]) / sides


class Lines:
    """Closed lines of n cars, and what lies ahead on them."""

    def __init__(self, points: Tensor, distances: Tensor) -> None:
        """``points`` (n, p, 2) m; ``distances`` (k,) m ahead of the car, along the line, of what is told."""
        self.points, self.distances = points, distances
        steps = (points.roll(-1, 1) - points).norm(dim=-1)
        self.length = steps.sum(1)
        """(n,) m."""
        self.station = steps.cumsum(1) - steps
        self.steps = steps

    def ahead(self, place: Tensor, heading: Tensor) -> Tensor:
        """(n, k, 2) m in the frames of cars at ``place`` (n, 2) m with ``heading`` (n, 1) rad."""
        n, p, _ = self.points.shape
        nearest = (self.points - place[:, None]).square().sum(-1).argmin(1, keepdim=True)
        wanted = (self.station.gather(1, nearest) + self.distances) % self.length[:, None]
        after = torch.searchsorted(self.station, wanted, right=True)
        index = (after - 1).clamp(0, p - 1)
        part = (wanted - self.station.gather(1, index)) / self.steps.gather(1, index)
        every = torch.arange(n)[:, None]
        a, b = self.points[every, index], self.points[every, (index + 1) % p]
        x, y = (a + part[..., None] * (b - a) - place[:, None]).unbind(-1)
        cosine, sine = heading.cos(), heading.sin()
        return torch.stack([cosine * x + sine * y, cosine * y - sine * x], -1)


def racing_lines(centre: Tensor, half: Tensor) -> Tensor:
    """(n, p, 2) m of tracks with ``centre`` (n, points, 2) m, no farther than ``half`` (n,) m from them."""
    lines = [racing_line(c[::EVERY].double().numpy(), float(h)) for c, h in zip(centre, half, strict=True)]
    return torch.tensor(np.array(lines), dtype=torch.float32)
