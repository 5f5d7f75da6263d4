"""A clip at any time, as policies and rewards see it, turned to any heading."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from robo_rl.controllers.rotation import matrix
from robo_rl.sim.robots.legged import LeggedCard
from robo_rl.sim.tasks.legged.clips import PERIOD, Clip
from robo_rl.sim.tasks.legged.clips.bodies import relative_places
from robo_rl.sim.tasks.legged.clips.spline import Spline


class Pose(NamedTuple):
    """Of a robot in the clip, n of them."""

    joint_position: Any
    """(n, J) rad."""
    joint_velocity: Any
    """(n, J) rad/s."""
    axes: Any
    """(n, 6) the base's x and y axes in the world, one after the other."""


class Start(NamedTuple):
    """How a robot moves in frames of the clip, m of them; the heading is the clip's own."""

    position: torch.Tensor
    """(m, 3) m."""
    orientation: torch.Tensor
    """(m, 4) quaternion x, y, z, w."""
    linear_velocity: torch.Tensor
    """(m, 3) m/s."""
    angular_velocity: torch.Tensor
    """(m, 3) rad/s, base frame."""
    joint_position: torch.Tensor
    """(m, J) rad."""
    joint_velocity: torch.Tensor
    """(m, J) rad/s."""


class Reference:
    """A clip of one robot."""

    def __init__(self, clip: Clip, card: LeggedCard, bodies: tuple[str, ...]) -> None:
        """``bodies``: those whose places are wanted."""
        self.clip, self.joints = clip, len(clip.joints)
        x, y, z, w = clip.orientation.T
        turns: np.ndarray = np.array(matrix((x, y, z, w)))  # (3, 3, T)
        axes = turns[:, :2].transpose(2, 1, 0).reshape(len(clip), 6)
        columns = np.concatenate([clip.angles, clip.position, axes, relative_places(clip, card, bodies)], 1)
        self._spline = Spline(columns, PERIOD)
        self.misfit = float(self._spline.misfit[: self.joints].max())
        """rad, the most by which joints are off the frames."""
        rates = np.gradient(clip.orientation, PERIOD, axis=0)
        x_rate, y_rate, z_rate, w_rate = rates.T
        spin = 2 * np.stack(
            [
                w * x_rate - x * w_rate - y * z_rate + z * y_rate,
                w * y_rate - y * w_rate - z * x_rate + x * z_rate,
                w * z_rate - z * w_rate - x * y_rate + y * x_rate,
            ],
            -1,
        )
        self._frames = Start(
            *(
                torch.from_numpy(np.ascontiguousarray(part)).float()
                for part in (
                    clip.position,
                    clip.orientation,
                    np.gradient(clip.position, PERIOD, axis=0),
                    spin,
                    clip.angles,
                    np.gradient(clip.angles, PERIOD, axis=0),
                )
            )
        )

    def start(self, frames: torch.Tensor) -> Start:
        """The state in ``frames`` (m,), whole numbers."""
        rows = frames.long()
        return Start(*(part[rows] for part in self._frames))

    def pose(self, time: Any) -> Pose:
        """At ``time`` (n, 1) s."""
        joints = self.joints
        value, slope = self._spline.at(time, slice(0, joints + 9), joints)
        return Pose(value[:, :joints], slope, value[:, joints + 3 :])

    def all(self, time: Any) -> dict[str, Any]:
        """At ``time`` (n, 1) s, by name: what ``Pose`` has, and base and bodies (``relative_places``)."""
        joints = self.joints
        value, slope = self._spline.at(time, slice(None), joints + 3)
        return {
            "clip_joint_position": value[:, :joints],
            "clip_joint_velocity": slope[:, :joints],
            "clip_position": value[:, joints : joints + 3],
            "clip_velocity": slope[:, joints:],
            "clip_axes": value[:, joints + 3 : joints + 9],
            "clip_bodies": value[:, joints + 9 :],
        }


def turned_axes(axes: Any, cosine: Any, sine: Any) -> Any:
    """Two axes (n, 6), turned about the world's z axis by an angle of cosine and sine (n,)."""
    a, b, c, d, e, f = axes.unbind(-1)
    turned = [cosine * a - sine * b, sine * a + cosine * b, c, cosine * d - sine * e, sine * d + cosine * e, f]
    return torch.stack(turned, -1)


def seen_axes(axes: Any, orientation: Any) -> Any:
    """(n, 6) two axes (n, 6) of the world, row by row as seen from a base of ``orientation`` (n, 4): r00 r01 r10 r11
    r20 r21 of the rotation between the two."""
    rows = matrix(tuple(orientation.unbind(-1)))
    x, y = axes.unbind(-1)[:3], axes.unbind(-1)[3:]
    seen = [rows[0][k] * axis[0] + rows[1][k] * axis[1] + rows[2][k] * axis[2] for k in range(3) for axis in (x, y)]
    return torch.stack(seen, -1)


def angle_squared(seen: Any) -> Any:
    """(n,) rad², 2 (1 - cos) of the angle of a rotation whose first two columns (n, 6) are ``seen_axes``."""
    a, b, c, d, _, _ = seen.unbind(-1)
    return 3.0 - (a + d + (a * d - b * c))


def level(x: Any, y: Any) -> tuple[Any, Any]:
    """Cosine and sine (n,) of the heading of an axis whose level parts are x and y (n,)."""
    scale = 1.0 / torch.clamp(torch.sqrt(x * x + y * y), min=1e-6)
    return x * scale, y * scale
