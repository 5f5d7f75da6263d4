"""Where frames are in each other, from tf's messages: the newest of each, as a tree. Nothing of ROS here.

tf2's own buffer is C++ that PyPI has not; what signals need of it is this: the newest transform between two frames, and
none where a part of the way between them is older than ``LASTING``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from robo_rl.ros.frames import Transform

LASTING = 1.0
"""s for which a transform holds that does not come as static: publishers of moving frames send 10 to 100 a second."""
DEEPEST = 200
"""Frames from one to the root at most: more is a ring."""
MOST = 2000
"""Frames that are kept."""
UNIT = 0.01
"""By how much a rotation's norm may differ from 1."""


class _Link(NamedTuple):
    parent: str
    transform: Transform
    arrived: float
    """s; infinite for a static one."""
    stamp: int
    """ns of ROS time."""


class TransformTree:
    """The transforms that tf's messages have told."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._links: dict[str, _Link] = {}
        self.refused = ""
        """What was wrong with the last transform that was not taken; "" if nothing."""

    def put(self, message: Any, static: bool) -> None:
        """A tf2_msgs/TFMessage, of /tf_static or of /tf."""
        arrived = math.inf if static else self._clock()
        for one in message.transforms[:MOST]:
            parent, child = one.header.frame_id.strip("/"), one.child_frame_id.strip("/")
            way, turn = one.transform.translation, one.transform.rotation
            numbers = (way.x, way.y, way.z, turn.x, turn.y, turn.z, turn.w)
            norm = math.hypot(*numbers[3:])
            if not parent or not child or parent == child or not all(map(math.isfinite, numbers)):
                self.refused = f"tf from '{parent}' to '{child}' is {numbers}; expected two frames and finite numbers"
            elif abs(norm - 1.0) > UNIT:
                self.refused = f"tf from '{parent}' to '{child}' has a rotation of norm {norm:.3f}; expected 1"
            elif child in self._links or len(self._links) < MOST:
                x, y, z, w = (number / norm for number in numbers[3:])
                stamp = one.header.stamp.sec * 1_000_000_000 + one.header.stamp.nanosec
                self._links[child] = _Link(parent, Transform((way.x, way.y, way.z), (x, y, z, w)), arrived, stamp)

    def find(self, targets: Sequence[str], source: str) -> Transform | None:
        """Where the frame ``source`` is in the first of ``targets`` that it is connected with; None if with none."""
        source = source.strip("/")
        up = dict(self._up(source))
        for target in targets:
            for frame, there in self._up(target.strip("/")):
                if frame in up:
                    return up[frame].within(there.inverse())
        return None

    def stamp(self, target: str, source: str) -> int | None:
        """ns of ROS time: of the oldest transform between the two frames that is not static; None where all are.

        tf2 calls it the latest common time.
        """
        ways = [[frame for frame, _ in self._up(end.strip("/"))] for end in (target, source)]
        both = set(ways[0]) & set(ways[1])
        moving = (self._links[frame] for way in ways for frame in way if frame not in both)
        return min((link.stamp for link in moving if link.arrived < math.inf), default=None)

    def _up(self, frame: str) -> Iterator[tuple[str, Transform]]:
        """(frame, where the first one is in it), from itself to the root or to what is too old."""
        found = Transform((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
        for _ in range(DEEPEST):
            yield frame, found
            link = self._links.get(frame)
            if link is None or self._clock() - link.arrived > LASTING:
                return
            frame, found = link.parent, found.within(link.transform)
