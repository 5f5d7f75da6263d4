"""Frames of messages against the frame that a contract names: the same by name, transformed by tf, or refused.

Names are those of REP 105 (map, odom, earth, base_link), REP 145 (imu_link) and of makers' robot descriptions; only
the last part of a name with a namespace counts. An empty frame_id is accepted as the contract's frame. A frame with
any other name is in the contract's frame only where its wire says so (``frame=NAME``). Nothing of ROS is imported.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

WORLD = ("world", "map", "odom", "earth")
"""Fixed frames: REP 105, and "world" of simulators and motion capture."""
BODY = ("base_link", "base_footprint", "base", "body", "trunk", "pelvis")
"""The robot's body: REP 105, the trunk of quadrupeds and the pelvis of humanoids."""
IMU = ("imu_link", "imu", "imu_frame")
"""An IMU's own frame (REP 145). Without tf it is taken to be turned as the body, as the doctor can verify."""
TWIST = ("teleop_twist_joy",)
"""The default frame_id of teleop_twist_joy, which commands velocities of the robot."""
ARM_BASE = re.compile(r"world|(\w+_)?link_?0|(\w+_)?link_base")
"""The base of an arm that stands still: panda_link0, lbr_link_0, link_base, or the world."""
OPTICAL = "optical_frame"
"""End of the names of frames whose z axis points ahead (REP 103)."""
LEVEL = 0.1
"""rad by which a lidar's plane may be inclined."""
ROBOT = ("body", "base", "heading")
"""Frames of contracts that are the robot's own."""


class FrameError(ValueError):
    """A frame is not the contract's. The message names it and what was expected."""


class Transform(NamedTuple):
    """Where a frame is in another one."""

    translation: Vector
    """m."""
    rotation: Quaternion
    """x, y, z, w."""

    def turn(self, v: Vector) -> Vector:
        """A vector of the frame, in the other one."""
        return rotate(self.rotation, v)

    def move(self, v: Vector) -> Vector:
        """A point of the frame, in the other one (m)."""
        x, y, z = self.turn(v)
        a, b, c = self.translation
        return x + a, y + b, z + c

    def inverse(self) -> Transform:
        """Where the other frame is in this one."""
        x, y, z, w = self.rotation
        back = (-x, -y, -z, w)
        a, b, c = rotate(back, self.translation)
        return Transform((-a, -b, -c), back)

    def within(self, outer: Transform) -> Transform:
        """In the frame in which ``outer`` is where this transform's own is."""
        return Transform(outer.move(self.translation), multiply(outer.rotation, self.rotation))


def cross(a: Sequence[float], b: Sequence[float]) -> Vector:
    """np.cross takes ten times as long."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def rotate(q: Quaternion, v: Sequence[float]) -> Vector:
    """A vector turned by a unit quaternion."""
    *axis, w = q
    across = [2.0 * x for x in cross(axis, v)]
    x, y, z = (a + w * b + c for a, b, c in zip(v, across, cross(axis, across), strict=True))
    return x, y, z


def multiply(p: Quaternion, q: Quaternion) -> Quaternion:
    """The rotation q, then p."""
    (*a, v), (*b, w) = p, q
    x, y, z = (v * j + w * i + k for i, j, k in zip(a, b, cross(a, b), strict=True))
    return x, y, z, v * w - sum(i * j for i, j in zip(a, b, strict=True))


def plain(frame: str) -> str:
    """A frame's name without namespaces."""
    return frame.strip("/").rpartition("/")[2]


Find = Callable[[Sequence[str], str], Transform | None]
"""Where the frame with the second name is, in the first of the names that tf connects it with; None if in none."""


@dataclass
class Frames:
    """What is known of frames beside their names, for all signals of a robot."""

    find: Find | None = None
    """Of tf; None: there is no tf."""
    world: str = ""
    """frame_id of the robot's own position; "" as long as it is not known."""
    drives: bool = False
    """Whether the robot's base moves: then the base of its arm is not the world."""
    put: Callable[[Any], None] = lambda message: None
    """Note a message of /tf, where there is tf."""
    stamp: Callable[[str, str], int | None] = lambda target, source: None
    """ns: how old a transform is, as ``TransformTree.stamp``."""


@dataclass(frozen=True)
class View:
    """How the messages of one wire are read."""

    own: str = ""
    """A frame_id that is the contract's frame by another name, as the wire says."""
    mounted: bool = False
    """Whether the wire says how a lidar is mounted: then tf is not asked."""
    nothing: tuple[str, ...] = ("zero",)
    """What a lidar gives where nothing is within its range: see ``robo_rl.deploy.robot.scans.NOTHING``."""
    frames: Frames = field(default_factory=Frames)
    child: str = ""
    """Of a pose that tf tells, the frame whose place in ``own`` it is."""

    def into(self, name: str, frame: str, wanted: str, also: Sequence[str] = ()) -> Transform | None:
        """From ``frame`` into the contract's frame ``wanted`` of signal ``name``; None: they are the same.

        ``also`` are names that this type of message gives to the robot's frame. FrameError where it is not known.
        """
        if not frame or frame == self.own:
            return None
        if plain(frame) in also and (found := self._find(frame, wanted)) is not None:
            return found
        if self._same(frame, wanted, also):
            return None
        if (found := self._find(frame, wanted)) is not None:
            return found
        raise FrameError(f"'{name}': frame_id is '{frame}'; {self._expected(wanted)}")

    def pose(self, name: str) -> Transform:
        """Where the frame ``child`` is in the frame ``own``, by tf. FrameError where it does not tell."""
        found = None if self.frames.find is None else self.frames.find((self.own,), self.child)
        if found is None:
            raise FrameError(
                f"'{name}': tf does not tell where '{self.child}' is in '{self.own}': no chain of transforms that came "
                "within the last second connects them"
            )
        return found

    def mounting(self, name: str, frame: str) -> tuple[float, bool] | None:
        """(yaw in rad, upside down) of a lidar on the robot, by tf; None where tf does not tell, or need not.

        FrameError for one that is inclined: its beams meet the ground or the ceiling.
        """
        found = None if self.mounted or self.frames.find is None else self.frames.find(BODY, frame)
        if found is None:
            return None
        up, ahead = found.turn((0.0, 0.0, 1.0)), found.turn((1.0, 0.0, 0.0))
        if math.hypot(up[0], up[1]) > LEVEL:
            tilt = math.degrees(math.asin(min(1.0, math.hypot(up[0], up[1]))))
            raise FrameError(
                f"'{name}': by tf its frame '{frame}' is inclined by {tilt:.0f} degrees; expected a level lidar"
            )
        return math.atan2(ahead[1], ahead[0]), up[2] < 0

    def _same(self, frame: str, wanted: str, also: Sequence[str]) -> bool:
        found = plain(frame)
        if wanted == "world":
            known = self.frames.world.strip("/")
            return frame.strip("/") == known if known else found in WORLD
        if wanted in ROBOT:
            arm = wanted == "base" and not also and not (found in WORLD and self.frames.drives)
            return found in BODY or found in also or (arm and bool(ARM_BASE.fullmatch(found)))
        return found == wanted

    def _find(self, frame: str, wanted: str) -> Transform | None:
        if self.frames.find is None:
            return None
        targets: Sequence[str] = BODY if wanted in ROBOT else (wanted,)
        if wanted == "world":
            targets = (self.frames.world,) if self.frames.world else WORLD
        return self.frames.find(targets, frame)

    def _expected(self, wanted: str) -> str:
        if wanted == "world" and self.frames.world:
            expected = f"the robot's position comes in '{self.frames.world}': expected that frame, or tf between them"
        else:
            names = {"world": WORLD, **dict.fromkeys(ROBOT, BODY)}.get(wanted, ())
            expected = f"expected the frame '{wanted}'" + (f" ({', '.join(names)})" if names else "")
        return f"{expected}. If it is that frame by another name, add frame=NAME to the wire"


def require_robot(name: str, frame: str, own: str = "") -> None:
    """FrameError unless ``frame``, which a message is about, is the robot's body."""
    if frame and frame != own and plain(frame) not in BODY:
        raise FrameError(
            f"'{name}': child_frame_id is '{frame}'; expected the robot's own frame ({', '.join(BODY)}). If it is that "
            "frame by another name, add frame=NAME to the wire"
        )


def require_scanner(name: str, frame: str, own: str = "") -> None:
    """FrameError if ``frame`` can't be that of a lidar, whose z axis points up."""
    if frame != own and (plain(frame).endswith(OPTICAL) or plain(frame) in WORLD):
        raise FrameError(
            f"'{name}': frame_id is '{frame}'; expected the frame of a lidar, whose beams turn about its z axis. If it "
            "is one, add frame=NAME to the wire"
        )
