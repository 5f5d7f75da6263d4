"""Rays against segments of walls: what a lidar measures, by the layout and the mounting that a contract tells."""

from __future__ import annotations

from typing import Any

import numpy as np


class Lidar:
    """The scan of a contract."""

    def __init__(self, contract: dict[str, Any]) -> None:
        (signal,) = (s for s in contract["signals"] if s["name"] == "scan")
        layout, self.mount = signal["layout"], contract["facts"]["mounting"]["scan"]
        self.angles = layout["angle_min"] + layout["angle_increment"] * np.arange(signal["shape"][0])
        self.near, self.far = layout["range_min"], layout["range_max"]

    def ranges(self, pose: np.ndarray, walls: np.ndarray) -> np.ndarray:
        """(beams,) m from a robot at ``pose`` (x, y, heading) to ``walls`` (k, 2, 2) m; range_max where nothing is."""
        x, y, heading = pose
        cosine, sine = np.cos(heading), np.sin(heading)
        forward, left, _ = self.mount["position"]
        eye = np.array([x + cosine * forward - sine * left, y + sine * forward + cosine * left])
        turn = heading + self.mount["yaw"] + self.angles
        return np.clip(cast(eye, np.stack([np.cos(turn), np.sin(turn)], 1), walls), self.near, self.far)


def cast(eye: np.ndarray, ways: np.ndarray, walls: np.ndarray) -> np.ndarray:
    """(b,) m along ``ways`` (b, 2) to the nearest of the walls (k, 2, 2); infinite where there is none."""
    begin, along = walls[:, 0] - eye, walls[:, 1] - walls[:, 0]
    across = ways[:, :1] * along[None, :, 1] - ways[:, 1:] * along[None, :, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        far = (begin[:, 0] * along[:, 1] - begin[:, 1] * along[:, 0])[None] / across
        part = (begin[None, :, 0] * ways[:, 1:] - begin[None, :, 1] * ways[:, :1]) / across
        hit = (far >= 0) & (part >= 0) & (part <= 1)
    return np.where(hit, far, np.inf).min(1)


def distance(points: np.ndarray, walls: np.ndarray) -> float:
    """m, the least between points (p, 2) and walls (k, 2, 2)."""
    along, off = walls[:, 1] - walls[:, 0], points[:, None] - walls[None, :, 0]
    part = np.clip((off * along).sum(-1) / np.maximum((along**2).sum(-1), 1e-12), 0.0, 1.0)
    return float(np.linalg.norm(off - part[..., None] * along, axis=-1).min())


def closed(points: np.ndarray) -> np.ndarray:
    """(k, 2, 2): the sides of a polygon (k, 2)."""
    return np.stack([points, np.roll(points, -1, 0)], 1)
