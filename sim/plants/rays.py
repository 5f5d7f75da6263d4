"""Rays of robots in MuJoCo's batch: distances to what they meet."""

from __future__ import annotations

import numpy as np
import torch
from mujoco.batch import Batch
from torch import Tensor

from robo_rl.sim.plants.indices import ModelIndices
from robo_rl.sim.robots.mechanism import Mechanism, Rays


def bundle(rays: Rays) -> tuple[np.ndarray, np.ndarray]:
    """Origins (R, 3) m and unit directions (R, 3), in the frame of the place that the rays start from."""
    directions = np.array(rays.directions, dtype=float)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.broadcast_to(np.array(rays.origins, dtype=float), directions.shape), directions


def limits(mechanism: Mechanism) -> tuple[list[float], list[float]]:
    """The longest distance of every ray (m), and what it tells when it meets nothing."""
    each = [(rays.longest, rays.miss) for rays in mechanism.rays for _ in rays.directions]
    return [longest for longest, _ in each], [miss for _, miss in each]


class RayCaster:
    """All rays of n robots, from where their newest state has them."""

    def __init__(self, batch: Batch, mechanism: Mechanism, indices: ModelIndices) -> None:
        self._batch, self._sites = batch, list(indices.origins)
        self._place, self._turn = batch.bind("site_xpos"), batch.bind("site_xmat")
        self._bundles = [bundle(rays) for rays in mechanism.rays]
        counts = [len(directions) for _, directions in self._bundles]
        self._own = np.repeat(batch.model.site_bodyid[self._sites], counts)
        self._longest, self._miss = map(np.array, limits(mechanism))

    def ranges(self, ids: Tensor | None = None) -> Tensor:
        """(m, rays) m."""
        chosen = slice(None) if ids is None else ids.numpy()
        starts, ways = [], []
        for site, (origins, directions) in zip(self._sites, self._bundles, strict=True):
            turn = self._turn[chosen, site].reshape(-1, 3, 3).transpose(0, 2, 1)
            starts.append(self._place[chosen, site][:, None] + origins @ turn)
            ways.append(directions @ turn)
        found, _ = self._batch.ray(
            np.concatenate(starts, 1), np.concatenate(ways, 1), bodyexclude=self._own,
            ids=None if ids is None else ids.numpy(),
        )  # fmt: skip
        met = (found >= 0) & (found <= self._longest)
        return torch.from_numpy(np.where(met, found, self._miss))
