"""Tracks that exist: a centre line with widths from a CSV file, or a lane in a map of ROS's map_server.

A file is parsed, and refused in a sentence that names it, unless it is one closed lane between two walls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.spatial import cKDTree

from robo_rl.files import read_bytes

COLUMNS = ("x_m", "y_m", "w_tr_right_m", "w_tr_left_m")
"""Of a CSV file, as TUM's racetrack-database and the F1TENTH racetracks have them."""
UNITS = ("_m", "_rad", "_mps", "_mps2", "_radpm")
"""By which names of columns end."""
MAX_BYTES = 16 << 20
LENGTH = (3.0, 10_000.0)
"""m, of a track."""
FAR = 20_000.0
"""m from the origin, within which a track must be: single precision has 1 mm there."""
CLOSED = 0.1
"""Of the usual distance of points, within which the last one is the first once more."""
SPACING = 0.08
"""Between points of a track, in widths of it, where it is short enough; see ``MAX_POINTS``."""
MAX_POINTS = 1024
NEAR = 9
"""Points by which a wall may be ahead of the centre line or behind it; ``kernel.cpp`` looks at 16."""


class CourseError(ValueError):
    """A file has no track that can be raced on. The message names the file, what was found and what was expected."""


@dataclass(frozen=True, eq=False)
class Course:
    """A closed track, driven in the order of its points. All arrays are (k, 2) m in the frame of its file."""

    name: str
    centre: np.ndarray
    """At even distances."""
    left: np.ndarray
    """The wall on the left, beside the centre line's points."""
    right: np.ndarray
    length: float
    """m, of the centre line."""

    @property
    def width(self) -> np.ndarray:
        """(k,) m: twice the distance from the centre line's points to the nearer wall."""
        return 2 * np.minimum(*(cKDTree(wall).query(self.centre)[0] for wall in (self.left, self.right)))

    def at(self, points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Centre, left and right with so many ``points``, (points, 2) m each."""
        return tuple(_resampled(part, points) for part in (self.centre, self.left, self.right))  # type: ignore[return-value]

    def backwards(self) -> Course:
        """The same track in the other direction."""
        return Course(self.name, self.centre[::-1], self.right[::-1], self.left[::-1], self.length)


def read_course(path: str | Path) -> Course:
    """The track in a ``.csv`` (centre line) or ``.yaml`` (map) file; CourseError with a sentence."""
    path = Path(path)
    if path.suffix.lower() == ".csv":
        return read_centre_line(path)
    if path.suffix.lower() in (".yaml", ".yml"):
        from robo_rl.sim.scenes.tracks.maps import read_map

        return read_map(path)
    raise CourseError(f"{path}: expected a centre line (.csv) or a map of map_server (.yaml)")


def read_centre_line(path: Path) -> Course:
    """Lines of x, y and the distances to the wall on the right and on the left, all m; # begins a comment.

    The columns are parted by commas, semicolons or blanks, and may have their names above. The points are joined by a
    periodic cubic spline.
    """
    rows = _rows(path)
    apart = np.hypot(*np.diff(rows[:, :2], axis=0).T)
    if len(rows) > 1 and np.hypot(*(rows[0] - rows[-1])[:2]) <= max(1e-6, CLOSED * np.median(apart)):
        rows = rows[:-1]
    if len(rows) < 8:
        raise CourseError(f"{path}: has {len(rows)} points; expected 8 or more")
    steps = np.hypot(*(np.roll(rows, -1, 0) - rows)[:, :2].T)
    if steps.min() <= 1e-6:
        raise CourseError(f"{path}: point {int(steps.argmin()) + 1} stands twice; expected points that differ")
    if steps[-1] > 5 * np.median(steps):
        raise CourseError(
            f"{path}: the last point is {steps[-1]:.2f} m from the first, others {np.median(steps):.2f} m apart; "
            "expected a closed track"
        )
    if rows[:, 2:].min() <= 0:
        at = int(rows[:, 2:].min(1).argmin())
        raise CourseError(f"{path}: point {at + 1} is {rows[at, 2:].min():g} m from a wall; expected more than 0")
    along = np.concatenate([[0.0], np.cumsum(steps)])
    spline = CubicSpline(along, np.concatenate([rows, rows[:1]]), bc_type="periodic")
    fine = np.linspace(0, along[-1], 8 * MAX_POINTS, endpoint=False)
    centre = evenly(spline(fine)[:, :2], 4 * MAX_POINTS)
    near = fine[cKDTree(spline(fine)[:, :2]).query(centre)[1]]
    to_right, to_left = (np.interp(near, along, np.append(rows[:, k], rows[0, k])) for k in (2, 3))
    way = np.roll(centre, -1, 0) - np.roll(centre, 1, 0)
    way /= np.hypot(*way.T)[:, None]
    normal = np.stack([-way[:, 1], way[:, 0]], 1)
    left, right = centre + to_left[:, None] * normal, centre - to_right[:, None] * normal
    for side, wall in (("left", left), ("right", right)):
        ahead = ((np.roll(wall, -1, 0) - wall) * way).sum(1)
        if ahead.min() <= 0:
            x, y = centre[int(ahead.argmin())]
            raise CourseError(f"{path}: at ({x:.2f}, {y:.2f}) m a bend is tighter than the track is wide on the {side}")
    for wall, apart in ((left, to_left), (right, to_right)):
        least = cKDTree(centre).query(wall)[0] / apart
        if least.min() < 0.5:
            x, y = wall[int(least.argmin())]
            raise CourseError(f"{path}: the track meets itself at ({x:.2f}, {y:.2f}) m; expected one that does not")
    return finished(path, centre, left, right)


def finished(path: Path, centre: np.ndarray, left: np.ndarray, right: np.ndarray) -> Course:
    """A course of lines with as many points each, the centre's at even distances; CourseError as above."""
    length = float(np.hypot(*(np.roll(centre, -1, 0) - centre).T).sum())
    if not LENGTH[0] <= length <= LENGTH[1]:
        raise CourseError(f"{path}: the track is {length:.4g} m long; expected {LENGTH[0]:g} to {LENGTH[1]:,.0f} m")
    if np.abs(centre).max() > FAR:
        x, y = centre[0]
        raise CourseError(
            f"{path}: the track is at ({x:.0f}, {y:.0f}) m; expected one within {FAR / 1000:.0f} km of the origin: "
            "subtract a place beside it"
        )
    course = Course(path.stem, centre, left, right, length)
    points = points_of([course])
    centre, *walls = course.at(points)
    for side, wall in zip(("left", "right"), walls, strict=True):
        nearest = cKDTree(centre).query(wall)[1] - np.arange(points)
        astray = np.abs((nearest + points // 2) % points - points // 2)
        if astray.max() > NEAR:
            x, y = wall[int(astray.argmax())]
            raise CourseError(
                f"{path}: the wall on the {side} has a bay or a spur at ({x:.2f}, {y:.2f}) m, "
                f"{astray.max() * length / points:.1f} m off; expected walls that follow the track"
            )
    return course


def points_of(courses: Sequence[Course]) -> int:
    """How many points describe each of them."""
    most = max(course.length / (SPACING * course.width.mean()) for course in courses)
    return min(MAX_POINTS, 64 * math.ceil(most / 64))


def evenly(line: np.ndarray, points: int) -> np.ndarray:
    """A closed ``line`` (k, 2) as ``points`` at even distances."""
    closed = np.concatenate([line, line[:1]])
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(closed, axis=0).T))])
    at = np.linspace(0, along[-1], points, endpoint=False)
    return np.stack([np.interp(at, along, closed[:, k]) for k in range(2)], 1)


def _resampled(part: np.ndarray, points: int) -> np.ndarray:
    closed = np.concatenate([part, part[:1]])
    at = np.linspace(0, len(part), points, endpoint=False)
    return np.stack([np.interp(at, np.arange(len(closed)), closed[:, k]) for k in range(2)], 1)


def _rows(path: Path) -> np.ndarray:
    """(k, 4) m."""
    try:
        lines = read_bytes(path, MAX_BYTES).decode("utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise CourseError(f"{path}: can't be read ({error})") from None
    rows: list[list[float]] = []
    for number, line in enumerate(lines, 1):
        text, _, comment = line.partition("#")
        columns = _parts(text or comment)
        if columns and not rows and any(part.endswith(UNITS) for part in columns):
            if tuple(columns[:4]) != COLUMNS or (len(columns) > 4 and text):
                raise CourseError(f"{path}: line {number}: the columns are {columns}; expected {list(COLUMNS)}")
            continue
        if not text.strip():
            continue
        try:
            row = [float(part) for part in _parts(text)]
        except ValueError:
            row = []
        if len(row) != len(COLUMNS) or not np.isfinite(row).all() or np.abs(row).max() > 1e8:
            raise CourseError(f"{path}: line {number} is {line[:80]!r}; expected four numbers, {', '.join(COLUMNS)}")
        rows.append(row)
    return np.array(rows, dtype=float).reshape(-1, len(COLUMNS))


def _parts(text: str) -> list[str]:
    """What commas, semicolons or blanks part, without quotes; a comma or semicolon at the end parts nothing."""
    text = text.strip().replace(";", ",").removesuffix(",")
    return [part.strip().strip("\"'") for part in (text.split(",") if "," in text else text.split())]
