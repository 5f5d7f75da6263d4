"""How far places about a robot are from what its last scans have hit: what it would touch there.

Beams of a lidar miss the corners between them; those of several scans, from different places, miss fewer. So the last
SCANS are kept, each with the odometry's pose of when it was taken, and the points that they hit are moved into the
robot's frame of now.
"""

from __future__ import annotations

import ctypes
import functools
import math
from pathlib import Path
from typing import Any

import torch

from robo_rl.contract import Scan, StateBlock
from robo_rl.sim.accelerate.fuse.native import build
from robo_rl.sim.tasks.mobile_base.seen_map import LATE, address, native

SCANS = 3
PLACES = (20, (0.07, 0.15, 0.25))
"""Directions and distances (m, of a robot of TurtleBot3's size) of places about the robot; it is one itself."""
COUNT = PLACES[0] * len(PLACES[1]) + 1
NEVER = 0.05
"""m, a range below any that is measured: of scans that have not come yet."""
BEYOND = 10.0  # m, added to such ranges
EDGE = 0.005  # m over which something comes to be in the way
UNIT, LEAST, MOST = 0.1, -1.0, 3.0
"""m, of TurtleBot3's size, that a clearance of 1 is; and what it is seen as at least and at most."""


class Clearance:
    """What is kept of n robots, and what they see by it."""

    def __init__(self, radius: float, wide: float, scan: Scan, beams: int, forward: float) -> None:
        """``radius`` (m) of the robot, so many times as ``wide`` as TurtleBot3; a lidar so far ``forward`` (m)."""
        self.radius, self.wide, self.forward = radius, wide, forward
        angles = scan.angle_min + scan.angle_increment * torch.arange(beams)
        self.beams, self.cosines, self.sines = beams, torch.cos(angles), torch.sin(angles)
        count, distances = PLACES
        turns = 2 * math.pi / count * torch.arange(count)
        ring = torch.stack([torch.cos(turns), torch.sin(turns)], -1)
        self.places = torch.cat([torch.zeros(1, 2), *(wide * r * ring for r in distances)]).T.contiguous()
        """(2, COUNT) m, ahead and to the left."""

    @functools.cached_property
    def memory(self) -> tuple[StateBlock, ...]:
        """Blocks: the last scans, the newest first, and their poses: x, y (m), cosine and sine of the heading."""
        return (
            StateBlock("scans", (SCANS, self.beams), (0.0,) * (SCANS * self.beams)),
            StateBlock("scan_poses", (SCANS, 4), (0.0, 0.0, 1.0, 0.0) * SCANS),
        )

    def remember(self, memory: Any, scan: Any, pose: Any, changed: Any, speed: Any, turning: Any) -> dict[str, Any]:
        """The blocks with a ``scan`` (n, beams) m, if it has ``changed`` (n, 1).

        ``pose`` (n, 4): x, y (m), cosine and sine; ``speed`` (n, 1) m/s ahead, or (n, 2) to the left, too, and
        ``turning`` (n, 1) rad/s of now.
        """
        x, y, cosine, sine = pose.split(1, -1)
        late = LATE * turning
        way, *left = (LATE * speed).split(1, -1)
        x, y = x - way * cosine, y - way * sine
        if left:
            x, y = x + left[0] * sine, y - left[0] * cosine
        then = torch.cat([x, y, cosine + late * sine, sine - late * cosine], -1)
        scans = torch.cat([scan[:, None], memory["scans"][:, :-1]], 1)
        poses = torch.cat([then[:, None], memory["scan_poses"][:, :-1]], 1)
        changed = changed[..., None]
        return {
            "scans": torch.where(changed, scans, memory["scans"]),
            "scan_poses": torch.where(changed, poses, memory["scan_poses"]),
        }

    def _points(self, memory: Any, pose: Any) -> tuple[Any, Any]:
        """(n, k) m each, ahead and to the left of ``pose`` (n, 4): what the scans in ``memory`` have hit."""
        scans, poses = memory["scans"], memory["scan_poses"]
        x, y, cosine, sine = (part[..., None] for part in pose.split(1, -1))
        then_x, then_y, then_cosine, then_sine = poses.split(1, -1)
        dx, dy = then_x - x, then_y - y
        ahead, left = cosine * dx + sine * dy, cosine * dy - sine * dx
        turned_cosine, turned_sine = cosine * then_cosine + sine * then_sine, cosine * then_sine - sine * then_cosine
        ranges = torch.where(scans > NEVER, scans, scans + BEYOND)
        px, py = ranges * self.cosines + self.forward, ranges * self.sines
        x = (ahead + turned_cosine * px - turned_sine * py).flatten(1)
        y = (left + turned_sine * px + turned_cosine * py).flatten(1)
        return x, y

    def free_ways(self, memory: Any, pose: Any, turned: Any, margin: float) -> Any:
        """(n, 2) m, not negative: how far the robot may go straight ahead, and back, until it is ``margin`` (m) from
        what the scans hit; 0 until all of them have come.

        Straight ahead is the direction that is ``turned`` (n, 1) rad, a small angle, from that of its ``pose`` (n, 4).
        """
        x, y = self._points(memory, pose)
        x, y = x + turned * y, y - turned * x
        wide = self.radius + margin
        within = torch.clamp(wide * wide - y * y, min=0.0)
        before = torch.sqrt(within)
        passed = torch.clamp(1.0 - within / (2.0 * wide * EDGE), min=0.0)  # what is beside the way
        free = []
        for way in (x, -x):
            out = torch.maximum(passed, torch.clamp(1.0 - way / EDGE, 0.0, 1.0))
            free.append((way - before + BEYOND * out).amin(-1, keepdim=True))
        come = memory["scans"].flatten(1).amin(-1, keepdim=True) > NEVER
        ways = torch.clamp(torch.cat(free, -1), min=0.0)
        return torch.where(come, ways, 0.0 * ways)

    def seen(self, memory: Any, pose: Any) -> Any:
        """(n, COUNT) how far a robot at the places about its ``pose`` (n, 4) is from what ``memory``'s scans hit."""
        x, y = self._points(memory, pose)
        apart = torch.sqrt(self._nearest(x, y))
        return torch.clamp((apart - self.radius) / (UNIT * self.wide), LEAST, MOST)

    def _nearest(self, x: Any, y: Any) -> Any:
        """(n, COUNT) m², from the places to the nearest of the points x, y (n, k) m."""
        if native(x):
            x, y = x.contiguous(), y.contiguous()
            found = torch.empty(len(x), COUNT)
            _library().nearest(*x.shape, *map(address, (x, y, self.places, found)))
            return found
        dx = self.places[0][:, None] - x[:, None]
        dy = self.places[1][:, None] - y[:, None]
        return (dx * dx + dy * dy).amin(-1)


@functools.cache
def _library() -> Any:
    library = build(Path(__file__).with_name("clearance.cpp").read_text(), f"-DCOUNT={COUNT}", "-O3")
    library.nearest.argtypes = [ctypes.c_int64] * 2 + [ctypes.c_void_p] * 4
    library.nearest.restype = None
    return library
