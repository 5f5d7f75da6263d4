"""The lane in a map of ROS's map_server: free cells around an island, between two walls.

The centre line is where both walls are equally near, smoothed; the walls are the outlines of the cells that are not
free (occupied or unknown).
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage
from scipy.spatial import cKDTree

from robo_rl.files import read_bytes, require_file
from robo_rl.files import sandbox as confined
from robo_rl.sim.scenes.tracks.courses import MAX_BYTES, MAX_POINTS, Course, CourseError, evenly, finished

MAX_CELLS = 1 << 24
MEMORY, SECONDS = 900 << 20, 8.0
"""Bytes, and s of processor time, for the largest maps."""
SPECK = 0.05
"""m²: what is smaller, and stands alone in the lane, is noise of the mapping, and left out."""
UNKNOWN = 205
"""The grey of cells that map_saver does not know, in its mode trinary. With the free_thresh that ROS 2's map_saver
writes, 0.25, it would be free by the rule of the thresholds (slam_toolbox, issue 587)."""
MOST_LISTS = 100
FIELDS = {"image", "resolution", "origin", "negate", "occupied_thresh", "free_thresh", "mode"}


def read_map(path: Path) -> Course:
    """The track in the map of a ``.yaml`` file, driven anticlockwise; CourseError with a sentence.

    Another process reads it, with ``MEMORY`` and ``SECONDS``.
    """
    try:
        data = confined.attempt(f"{__name__}:trial", os.fsencode(path), memory=MEMORY, seconds=SECONDS)
    except confined.Refused as error:
        said = str(error)
        raise CourseError(said if str(path.parent) in said else f"{path}: it can't be read: {said}") from None
    parts = np.frombuffer(data).reshape(3, -1, 2)
    return finished(path, *parts)


def trial(path: bytes) -> bytes:
    """Centre line and walls of a map: what a process that is confined does with a stranger's."""
    return np.stack(_lines(Path(os.fsdecode(path)))).tobytes()


def _lines(path: Path) -> tuple[np.ndarray, ...]:
    """Centre line, left and right wall, (k, 2) m each."""
    given = _description(path)
    free = _free_cells(path, given)
    resolution, (x, y, yaw) = given["resolution"], given["origin"]
    inner, outer = _walls(path, free, resolution)
    del free
    to_outer, to_inner = (ndimage.distance_transform_edt(~wall).astype(np.float32) for wall in (outer, inner))
    lane = ~(inner | outer)
    half_width = 0.5 * float(to_inner[lane].mean(dtype=np.float64) + to_outer[lane].mean(dtype=np.float64))
    to_outer -= to_inner
    del to_inner, lane
    centre = _smoothed(_outline(to_outer, path), half_width)
    del to_outer
    left, right = (_beside(centre, _outline(wall.astype(np.float32), path)) for wall in (inner, ~outer))

    def in_metres(cells: np.ndarray) -> np.ndarray:
        place = (cells + 0.5 - 1) * resolution  # the grid has one more row and column around it; cells have middles
        return np.stack(
            [x + math.cos(yaw) * place[:, 0] - math.sin(yaw) * place[:, 1],
             y + math.sin(yaw) * place[:, 0] + math.cos(yaw) * place[:, 1]], 1,
        )  # fmt: skip

    return tuple(map(in_metres, (centre, left, right)))


def _description(path: Path) -> dict[str, Any]:
    import yaml

    try:
        if path.stat().st_size > 1 << 14:
            raise CourseError(f"{path}: is larger than 16 KiB; expected the description of a map")
        text = read_bytes(path, 1 << 14).decode("utf-8-sig")
        if text.count("[") + text.count("{") > MOST_LISTS:  # one in another, they take the parser quadratic time
            raise CourseError(f"{path}: can't be read: it has more than {MOST_LISTS} lists; expected one, the origin")
        if any(isinstance(token, yaml.AnchorToken | yaml.AliasToken) for token in yaml.scan(text)):
            raise CourseError(f"{path}: has & or *, anchors of YAML that may unfold to anything; expected none")
        given = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, CourseError):
            raise
        raise CourseError(f"{path}: can't be read ({' '.join(str(error).split())[:200]})") from None
    if not isinstance(given, dict):
        raise CourseError(f"{path}: expected the fields {sorted(FIELDS)}")
    found = {"negate": 0, "free_thresh": 0.25, "occupied_thresh": 0.65, "mode": "trinary", **given}

    def require(field: str, good: bool, expected: str) -> None:
        if not good:
            raise CourseError(f"{path}: {field} is {str(found.get(field))[:80]!r}; expected {expected}")

    def number(value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e6

    image = found.get("image")
    beside = isinstance(image, str) and 0 < len(image) < 200 and Path(image).name == image
    require(
        "image",
        beside and (path.parent / str(image)).is_file(),
        "the name of an image beside this file, without a folder",
    )
    require("resolution", number(found.get("resolution")) and 1e-3 <= found["resolution"] <= 10, "m per cell")
    origin = found.get("origin")
    require("origin", isinstance(origin, list) and len(origin) == 3 and all(map(number, origin)), "[x, y, yaw]")
    require("negate", found["negate"] in (0, 1), "0 or 1")
    for field in ("free_thresh", "occupied_thresh"):
        require(field, number(found[field]) and 0 <= found[field] <= 1, "0 to 1")
    require("mode", found["mode"] in ("trinary", "scale"), "trinary or scale")
    return found


def _free_cells(path: Path, given: dict[str, Any]) -> np.ndarray:
    """(rows, columns): row 0 is the lowest, with one row and column of what is not free all around."""
    from PIL import Image

    image = path.parent / given["image"]
    try:
        require_file(image, MAX_BYTES)
        with Image.open(image, formats=("PPM", "PNG", "BMP")) as opened:
            if opened.width * opened.height > MAX_CELLS:
                raise CourseError(
                    f"{image}: has {opened.width} × {opened.height} cells; expected {MAX_CELLS:,} at most"
                )
            grey, opaque = _cells(opened)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        if isinstance(error, CourseError):
            raise
        raise CourseError(f"{image}: can't be read ({str(error)[:200]}); expected an image, PGM, PNG or BMP") from None
    occupied = grey / 255 if given["negate"] else 1 - grey / 255
    free = opaque & (occupied < given["free_thresh"]) & (occupied <= given["occupied_thresh"])
    if given["mode"] == "trinary" and not given["negate"]:
        free &= grey != UNKNOWN
    return np.pad(free[::-1], 1)


def _cells(image: Any) -> tuple[np.ndarray, np.ndarray]:
    """(rows, columns), row 0 the uppermost: the mean of the colours, 0 to 255, and whether the image is opaque."""
    if image.mode == "F":
        raise ValueError("its pixels are fractions; expected 8 or 16 bits")
    if image.mode.startswith("I"):  # 16 bits: converted to L, all above 255 would be white
        return np.asarray(image, dtype=np.float32) / 257, np.array(True)
    if image.mode in ("1", "L") and "transparency" not in image.info:
        return np.asarray(image.convert("L"), dtype=np.float32), np.array(True)
    colours = np.asarray(image.convert("RGBA"))
    return colours[..., :3].mean(-1, dtype=np.float32), colours[..., 3] == 255


def _walls(path: Path, free: np.ndarray, resolution: float) -> tuple[np.ndarray, np.ndarray]:
    """Cells of the island that the lane goes round, and of all that is outside the lane."""
    parts, _ = ndimage.label(free)
    sizes = np.bincount(parts.ravel())[1:]
    for part in 1 + np.argsort(sizes)[::-1][:16]:
        blocked, _ = ndimage.label(parts != part, structure=np.ones((3, 3)))
        islands = np.bincount(blocked.ravel()) * resolution**2
        islands[[0, blocked[0, 0]]] = 0
        if islands.max() <= SPECK:
            continue
        inner = int(islands.argmax())
        others = np.flatnonzero((islands > SPECK) & (np.arange(len(islands)) != inner))
        if len(others):
            row, column = ndimage.center_of_mass(blocked == others[0])
            raise CourseError(
                f"{path}: beside the island that the track goes round there is another one of "
                f"{islands[others[0]]:.2g} m², at column {column:.0f}, row {free.shape[0] - 1 - row:.0f}; expected a "
                "lane between two walls"
            )
        return blocked == inner, blocked == blocked[0, 0]
    known = free[1:-1, 1:-1]
    raise CourseError(
        f"{path}: no free cells go round an island; expected a closed lane between two walls. By the thresholds, "
        f"{known.sum():,} of {known.size:,} cells are free"
    )


def _outline(height: np.ndarray, path: Path) -> np.ndarray:
    """The longest closed line, anticlockwise, (k, 2) of column and row, where ``height`` passes half or nothing."""
    from contourpy import contour_generator

    level = 0.0 if height.min() < 0 else 0.5
    found = [np.asarray(line, dtype=float) for line in contour_generator(z=height).lines(level)]
    lines = [line for line in found if np.array_equal(line[0], line[-1])]
    if not lines:
        raise CourseError(f"{path}: no closed lane between two walls")
    line = max(lines, key=len)[:-1]
    x, y = line.T
    return line if np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) > 0 else line[::-1]


def _smoothed(line: np.ndarray, width: float) -> np.ndarray:
    """Without the steps of cells: a weighted mean along the line over about a quarter of ``width`` (cells)."""
    length = np.hypot(*(np.roll(line, -1, 0) - line).T).sum()
    points = 4 * MAX_POINTS
    smooth = ndimage.gaussian_filter1d(evenly(line, points), 0.25 * width / length * points, axis=0, mode="wrap")
    return evenly(smooth, points)


def _beside(centre: np.ndarray, wall: np.ndarray) -> np.ndarray:
    """A wall as points beside those of the centre line: half by the nearest of these, half by the way along it.

    By the nearest alone, an outer corner, all of which is nearest to one point, would be cut off.
    """
    wall = evenly(wall, 2 * len(centre))
    k = len(centre)
    start = int(np.argmin(np.hypot(*(wall - centre[0]).T)))
    wall = np.roll(wall, -start, 0)
    nearest = cKDTree(centre).query(wall)[1].astype(float)
    turns = np.unwrap(nearest, period=k)
    turns = np.maximum.accumulate(turns - k * round(turns[0] / k))
    along = k * np.arange(len(wall)) / len(wall)
    place = 0.5 * (np.clip(turns, 0, k) + along)
    place = np.append(place, place[0] + k)
    closed = np.concatenate([wall, wall[:1]])
    at = np.arange(k) + place[0]
    return np.stack([np.interp(at, place, closed[:, axis]) for axis in range(2)], 1)
