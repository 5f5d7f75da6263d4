"""Markers of tasks as things of viser's: the markers of one name are one, whatever the number of robots."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import viser

from robo_rl.sim.drawing import GOALS, Arrow, Color, Frame, Line, Sphere, Text, Trail
from robo_rl.viewer.live import FRAMES_PER_SECOND
from robo_rl.viewer.shapes import UNIT

LONGEST_TRAIL = 300  # points
GONE = 1e-6  # scale of what is not shown
AWAY = np.array([[0.0, 0.0, -1e4], [0.0, 0.0, -1e4 - 1.0]])
"""m, where arrows are put that are not shown: their heads have a size of their own."""


class Shown(ABC):
    """Markers of one name, as one thing of viser's."""

    def __init__(self, server: viser.ViserServer, path: str) -> None:
        self.server, self.path = server, path
        self.handle: Any = None

    def show(self, markers: Sequence[Any], offsets: np.ndarray, begun: np.ndarray, visible: bool) -> None:
        """Show markers with arrays (n, …) of one moment."""
        if self.handle is not None and self.handle.visible != visible:
            self.handle.visible = visible
        if visible or self.handle is None:
            self.draw(markers, offsets, begun)

    @abstractmethod
    def draw(self, markers: Sequence[Any], offsets: np.ndarray, begun: np.ndarray) -> None:
        """Make the handle, or move what it shows."""


class Spheres(Shown):
    """Balls. The goal of a robot that is alone has its name beside it, which no gripper hides."""

    _label: Any = None

    def draw(self, markers: Sequence[Sphere], offsets: np.ndarray, begun: np.ndarray) -> None:
        places = np.concatenate([marker.position + offsets for marker in markers]).astype(np.float32)
        radius = np.repeat([marker.radius for marker in markers], len(offsets))
        there = np.asarray(np.isfinite(places).all(axis=1))
        scales = np.where(there, radius, GONE).astype(np.float32)
        places = np.where(there[:, None], places, 0.0)
        if self.handle is None:
            ball, color = UNIT["ball"], markers[0].color
            self.handle = self.server.scene.add_batched_meshes_simple(
                self.path, np.asarray(ball.vertices, np.float32), np.asarray(ball.faces, np.uint32),
                batched_wxyzs=np.tile([1.0, 0.0, 0.0, 0.0], (len(places), 1)), batched_positions=places,
                batched_scales=scales, batched_colors=_rgb(color), opacity=color[3], lod="off", cast_shadow=False,
            )  # fmt: skip
            if len(places) == 1 and markers[0].name in GOALS:
                self._label = self.server.scene.add_label(f"{self.path}/name", "", font_screen_scale=0.8)
        else:
            self.handle.batched_positions = places
            self.handle.batched_scales = scales
        if self._label is not None:
            self._label.text = markers[0].name if there[0] else ""
            self._label.position = tuple(map(float, places[0]))


class Arrows(Shown):
    """Arrows, left out where they are hardly longer than wide."""

    def draw(self, markers: Sequence[Arrow], offsets: np.ndarray, begun: np.ndarray) -> None:
        starts = np.concatenate([marker.position + offsets for marker in markers])
        ends = starts + np.concatenate([marker.vector for marker in markers])
        points = np.stack([starts, ends], 1).astype(np.float32)
        width = markers[0].width
        there = np.isfinite(points).all((1, 2)) & (np.linalg.norm(points[:, 1] - points[:, 0], axis=1) > 2 * width)
        points = np.where(there[:, None, None], points, AWAY).astype(np.float32)
        if self.handle is None:
            self.handle = self.server.scene.add_arrows(
                self.path, points, _rgb(markers[0].color), shaft_radius=width, head_radius=2.2 * width,
                head_length=4.0 * width,
            )  # fmt: skip
        else:
            self.handle.points = points


class Lines(Shown):
    """Lines, and trails, which are lines through where their points have been."""

    def __init__(self, server: viser.ViserServer, path: str) -> None:
        super().__init__(server, path)
        self._past: dict[tuple[int, int], deque[np.ndarray]] = {}
        self._begun: np.ndarray | None = None

    def draw(self, markers: Sequence[Trail | Line], offsets: np.ndarray, begun: np.ndarray) -> None:
        ways = [way for number, marker in enumerate(markers) for way in self._ways(number, marker, offsets, begun)]
        self._begun = begun
        parts = [np.stack([way[:-1], way[1:]], 1) for way in ways if len(way) > 1]
        segments = np.concatenate(parts) if parts else np.zeros((0, 2, 3))
        segments = segments[np.isfinite(segments).all((1, 2))].astype(np.float32)
        if not len(segments):
            segments = np.zeros((1, 2, 3), np.float32)
        if self.handle is None:
            self.handle = self.server.scene.add_line_segments(
                self.path, segments, _rgb(markers[0].color), thickness=2.5, thickness_units="screen"
            )
        else:
            self.handle.points = segments

    def _ways(self, number: int, marker: Trail | Line, offsets: np.ndarray, begun: np.ndarray) -> list[np.ndarray]:
        if isinstance(marker, Line):
            return list(marker.points + offsets[:, None])
        most = LONGEST_TRAIL if marker.seconds is None else max(2, round(marker.seconds * FRAMES_PER_SECOND))
        found = []
        for robot, place in enumerate(marker.position + offsets):
            past = self._past.setdefault((number, robot), deque(maxlen=most))
            if self._begun is not None and begun[robot] != self._begun[robot]:
                past.clear()
            if marker.seconds is not None or not past or np.linalg.norm(place - past[-1]) > 1e-3:
                past.append(place)
            found.append(np.array(past))
        return found


class FrameAxes(Shown):
    """Coordinate frames."""

    def draw(self, markers: Sequence[Frame], offsets: np.ndarray, begun: np.ndarray) -> None:
        places = np.concatenate([marker.position + offsets for marker in markers]).astype(np.float32)
        turns = np.concatenate([marker.orientation for marker in markers])[:, [3, 0, 1, 2]].astype(np.float32)
        there = np.asarray(np.isfinite(np.concatenate([places, turns], 1)).all(axis=1))
        places = np.where(there[:, None], places, 0.0)
        turns = np.where(there[:, None], turns, (1.0, 0.0, 0.0, 0.0)).astype(np.float32)
        scales = np.where(there, 1.0, GONE).astype(np.float32)
        if self.handle is None:
            size = markers[0].size
            self.handle = self.server.scene.add_batched_axes(
                self.path, turns, places, scales, axes_length=size, axes_radius=0.04 * size
            )
        else:
            self.handle.batched_positions, self.handle.batched_wxyzs = places, turns
            self.handle.batched_scales = scales


class Texts(Shown):
    """A label per robot."""

    def draw(self, markers: Sequence[Text], offsets: np.ndarray, begun: np.ndarray) -> None:
        if self.handle is None:
            self.handle = self.server.scene.add_frame(self.path, show_axes=False)
            self._labels = [
                self.server.scene.add_label(f"{self.path}/{i}", "") for i in range(len(markers) * len(offsets))
            ]
        texts = [str(text) for marker in markers for text in marker.text]
        places = np.concatenate([marker.position + offsets for marker in markers])
        for label, text, place in zip(self._labels, texts, places, strict=True):
            there = bool(np.isfinite(place).all())
            label.text = text if there else ""
            if there:
                label.position = tuple(place)


SHOWN: dict[type, type[Shown]] = {
    Sphere: Spheres, Arrow: Arrows, Trail: Lines, Line: Lines, Frame: FrameAxes, Text: Texts,
}  # fmt: skip


def _rgb(color: Color) -> tuple[int, int, int]:
    return tuple(round(255 * part) for part in color[:3])  # type: ignore[return-value]
