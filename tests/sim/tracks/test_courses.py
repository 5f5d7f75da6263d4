"""Tracks from files, against circles and rectangles, and rays that are marched through the map's image."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy.spatial import cKDTree

from robo_rl.sim.scenes.tracks import Body, Lidar, Tracks
from robo_rl.sim.scenes.tracks.courses import Course, CourseError, points_of, read_course

HEADER = "# x_m, y_m, w_tr_right_m, w_tr_left_m\n"
BEAMS, CELL = 90, 0.05
CORRIDOR = (4.0, 28.0, 3.0, 19.0), (6.0, 26.0, 5.0, 17.0)  # m: outer and inner wall, x from and to, y from and to


def circle(radius: float, right: float, left: float, points: int = 40) -> str:
    turn = 2 * np.pi * np.arange(points) / points
    rows = np.stack([radius * np.cos(turn), radius * np.sin(turn), 0 * turn + right, 0 * turn + left], 1)
    return HEADER + "\n".join(", ".join(f"{x:.6f}" for x in row) for row in rows)


def corridor(folder: Path, description: str = "", island: bool = True, pillar: int = 0) -> Path:
    """A map of 32 m × 22 m with a rectangular lane, 2 m wide; ``pillar`` cells wide an obstacle in it."""
    grey = np.full((440, 640), 205, np.uint8)
    for (x0, x1, y0, y1), value in zip(CORRIDOR, (254, 0 if island else 254), strict=True):
        grey[round(y0 / CELL) : round(y1 / CELL), round(x0 / CELL) : round(x1 / CELL)] = value
    grey[78 : 78 + pillar, 300 : 300 + pillar] = 0
    Image.fromarray(grey[::-1]).save(folder / "map.pgm")
    fields = f"image: map.pgm\nresolution: {CELL}\norigin: [-1.0, -2.0, 0.0]\nnegate: 0\nfree_thresh: 0.196\n"
    (folder / "map.yaml").write_text(fields + "occupied_thresh: 0.65\n" + description)
    return folder / "map.yaml"


def written(folder: Path, text: str) -> Path:
    (folder / "track.csv").write_text(text)
    return folder / "track.csv"


def on(course: Course, pose: list[list[float]], station: list[float]) -> Tracks:
    """Cars at ``pose`` (x, y, heading) on the course."""
    n = len(pose)
    tracks = Tracks(n, Lidar(BEAMS, -2.35, 4.7 / (BEAMS - 1), 0.02, 60.0), Body(0.0, 0.5, 0.3), (1.0,), [course])
    tracks.lay(torch.arange(n), torch.zeros(n), torch.ones(n))
    zero = torch.zeros(n)
    tracks.measure(torch.tensor(pose).mT.contiguous(), torch.tensor(station), zero, zero)
    return tracks


def read_or_refused(path: Path) -> None:
    """If it is read, a car on the centre line sees walls all around, and touches none unless the track is narrow."""
    try:
        course = read_course(path)
    except CourseError as error:
        told = str(error)
        assert told.startswith(str(path.parent))
        return
    tracks = on(course, [[*map(float, course.centre[0]), 0.0]], [0.0])
    assert ((tracks.ranges > 0) & (tracks.ranges <= 60)).all()
    assert abs(tracks.located.offset.item()) < 0.1 * float(course.width.max())
    assert tracks.located.clearance.item() > 0 or float(course.width.min()) < 0.6


def test_a_circle_of_a_file_is_a_circle(tmp_path: Path) -> None:
    course = read_course(written(tmp_path, circle(6.0, 1.2, 0.8)))
    assert course.length == pytest.approx(12 * math.pi, rel=1e-4)
    for part, radius in zip(course.at(points_of([course])), (6.0, 5.2, 7.2), strict=True):
        assert np.hypot(*part.T) == pytest.approx(radius, abs=2e-3)  # chords of the spline's points
    tracks = on(course, [[6.3, 0.0, 0.5 * math.pi]], [0.0])
    assert tracks.located.offset.item() == pytest.approx(-0.3, abs=2e-3)
    assert tracks.located.clearance.item() == pytest.approx(7.2 - math.hypot(6.3 + 0.15, 0.25), abs=3e-3)
    for turn, seen in zip(np.linspace(-2.35, 2.35, BEAMS), tracks.ranges[0].tolist(), strict=True):
        d, o = np.array([-math.sin(turn), math.cos(turn)]), np.array([6.3, 0.0])
        found, half = [], d @ o
        for radius in (5.2, 7.2):
            inside = half**2 - o @ o + radius**2
            if inside > 0:
                found += [t for t in (-half - math.sqrt(inside), -half + math.sqrt(inside)) if t > 0]
        if abs(half**2 - o @ o + 5.2**2) > 0.2:  # else it grazes the inner wall, which has corners
            assert seen == pytest.approx(min(found), abs=0.01)


def test_a_course_can_be_driven_backwards(tmp_path: Path) -> None:
    course = read_course(written(tmp_path, circle(6.0, 1.2, 0.8)))
    back = course.backwards()
    assert np.hypot(*back.left.T) == pytest.approx(7.2, abs=2e-3)
    for line, sense in ((course.centre, 1.0), (back.centre, -1.0)):
        x, y = line[:2].T
        assert sense * (x[0] * y[1] - x[1] * y[0]) > 0


def test_walls_of_a_map_are_where_its_cells_are(tmp_path: Path) -> None:
    course = read_course(corridor(tmp_path))
    for wall, (x0, x1, y0, y1) in zip((course.right, course.left), CORRIDOR, strict=True):
        x, y = wall[:, 0] + 1, wall[:, 1] + 2  # the origin
        apart = np.minimum(np.minimum(abs(x - x0), abs(x - x1)), np.minimum(abs(y - y0), abs(y - y1)))
        assert apart.max() < 0.1  # corners are cut by less
        assert (x.min(), x.max(), y.min(), y.max()) == pytest.approx((x0, x1, y0, y1), abs=CELL)
    to_left, to_right = (cKDTree(wall).query(course.centre)[0] for wall in (course.left, course.right))
    assert np.abs(to_left - to_right).max() < 0.35  # a corner is rounded
    assert np.median(np.abs(to_left - to_right)) < CELL


def test_beams_on_a_map_are_those_of_rays_through_its_image(tmp_path: Path) -> None:
    course = read_course(corridor(tmp_path))
    free = np.asarray(Image.open(tmp_path / "map.pgm"))[::-1] > 250
    stations = [0.1, 0.3, 0.42, 0.7, 0.9]
    pose, at = [], []
    for part in stations:
        k = int(part * len(course.centre))
        way = course.centre[k + 5] - course.centre[k]
        pose.append([*map(float, course.centre[k]), math.atan2(way[1], way[0]) + 0.2])
        at.append(part * course.length)
    tracks = on(course, pose, at)
    off = []
    for (x, y, heading), seen in zip(pose, tracks.ranges.tolist(), strict=True):
        for turn, distance in zip(np.linspace(-2.35, 2.35, BEAMS), seen, strict=True):
            steps = np.arange(0, 60, 0.002)
            column = ((x + 1 + steps * math.cos(heading + turn)) / CELL).astype(int)
            row = ((y + 2 + steps * math.sin(heading + turn)) / CELL).astype(int)
            inside = (row >= 0) & (row < free.shape[0]) & (column >= 0) & (column < free.shape[1])
            blocked = ~inside | ~free[np.clip(row, 0, 439), np.clip(column, 0, 639)]
            off.append(abs(steps[blocked.argmax()] - distance))
    assert np.median(off) < 0.02
    assert np.quantile(off, 0.95) < 0.3  # beams along a wall


def test_a_map_is_where_its_origin_says(tmp_path: Path) -> None:
    plain = read_course(corridor(tmp_path))
    turned = read_course(corridor(tmp_path, "origin: [3.0, 1.0, 1.5707963267948966]\n"))
    x, y = (plain.centre + np.array([1.0, 2.0])).T
    assert turned.centre == pytest.approx(np.stack([3 - y, 1 + x], 1), abs=1e-6)


def test_specks_in_the_lane_are_left_out_and_obstacles_refused(tmp_path: Path) -> None:
    course = read_course(corridor(tmp_path, pillar=3))
    assert course.length == pytest.approx(read_course(corridor(tmp_path)).length)
    with pytest.raises(CourseError, match=r"another one of 0\.16 m², at column 30"):
        read_course(corridor(tmp_path, pillar=8))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (HEADER, "has 0 points"),
        (circle(6, 1, 1, 7), "has 7 points"),
        (circle(6, 1, 1).replace("1.000000", "1.0, 2", 1), "line 2 is"),
        (circle(6, 1, 1).replace("1.000000", "nan", 1), "line 2 is"),
        (circle(6, 1, 1).replace("1.000000", "-1", 1), "point 1 is -1 m from a wall"),
        (circle(6, 1, 7), "at .* a bend is tighter than the track is wide on the left"),
        (circle(0.3, 0.1, 0.1), "1.885 m long; expected 3 to"),
        (circle(6, 1, 1).replace("w_tr_right_m, w_tr_left_m", "w_tr_left_m, w_tr_right_m"), "line 1: the columns are"),
        ("\n".join(circle(6, 1, 1).splitlines()[:25]), "is 11.* m from the first, .* expected a closed track"),
        (
            HEADER + "\n".join(f"{8 * math.sin(t)}, {4 * math.sin(2 * t)}, 1, 1" for t in np.linspace(0, 6.2, 60)),
            "the track meets itself",
        ),
    ],
)
def test_files_without_a_track_are_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(CourseError, match=rf"track\.csv: .*{told}"):
        read_course(written(tmp_path, text))


@pytest.mark.parametrize(
    ("description", "told"),
    [
        ("image: ../map.pgm\n", "image is '../map.pgm'; expected the name of an image beside this file"),
        ("image: /dev/zero\n", "image is '/dev/zero'"),
        ("resolution: .nan\n", "resolution is 'nan'"),
        ("origin: [1, 2]\n", "origin is"),
        ("mode: raw\n", "mode is 'raw'"),
        ("negate: 1\n", "map.yaml: no free cells go round an island"),
        ("a: [\n", "can't be read"),
        ("a: &a [1, 1]\norigin: [*a, *a, *a]\n", "anchors of YAML"),
        ("a: " + 9000 * "[", "can't be read"),
        ("#" + 20000 * "x", "larger than 16 KiB"),
        ("resolution: " + 5000 * "9" + "\n", "can't be read"),
        ("image: map.yaml\n", "map.yaml: can't be read .* expected an image"),
    ],
)
def test_maps_that_are_none_are_refused(tmp_path: Path, description: str, told: str) -> None:
    with pytest.raises(CourseError, match=told):
        read_course(corridor(tmp_path, description))


def test_a_map_without_an_island_and_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="no free cells go round an island"):
        read_course(corridor(tmp_path, island=False))
    with pytest.raises(CourseError, match="expected a centre line"):
        read_course(tmp_path / "map.pgm")
    with pytest.raises(CourseError, match="can't be read"):
        read_course(tmp_path / "none.csv")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,  # by a spreadsheet
        lambda text: text.replace("# ", "").replace("\n", "\r\n"),  # by pandas, on Windows
        lambda text: text.replace(", ", ";"),
        lambda text: text.replace(", ", "\t"),
        lambda text: text.replace(HEADER, "").replace(", ", "  "),  # by numpy.savetxt
        lambda text: text + "\n6.003, 0.002, 1.2, 0.8\n",  # the first point once more, as it was measured
    ],
)
def test_centre_lines_of_other_programs_are_read(tmp_path: Path, change: Callable[[str], str]) -> None:
    text = circle(6.0, 1.2, 0.8)
    (tmp_path / "track.CSV").write_bytes(change(text).encode())
    assert read_course(tmp_path / "track.CSV").centre == pytest.approx(read_course(written(tmp_path, text)).centre)


@pytest.mark.parametrize(
    ("suffix", "told"),
    [
        (".csv", r"at \(400006, 5000000\) m; expected one within 20 km of the origin"),
        (".yaml", r"expected one within 20 km of the origin"),
    ],
)
def test_a_track_in_coordinates_of_the_earth_is_refused(tmp_path: Path, suffix: str, told: str) -> None:
    """Single precision has 0.5 m there."""
    if suffix == ".csv":
        rows = [row.split(", ", 2) for row in circle(6.0, 1.2, 0.8).splitlines()[1:]]
        path = written(tmp_path, "\n".join(f"{4e5 + float(x)}, {5e6 + float(y)}, {w}" for x, y, w in rows))
    else:
        path = corridor(tmp_path, "origin: [400000.0, 500000.0, 0.0]\n")
    with pytest.raises(CourseError, match=told):
        read_course(path)


def test_a_line_of_a_race_is_refused_by_its_columns(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match=r"line 2: the columns are \['s_m', 'x_m', .*expected \['x_m'"):
        read_course(
            written(tmp_path, "# 2f1c\n# s_m; x_m; y_m; psi_rad; kappa_radpm; vx_mps; ax_mps2\n0;6;0;1;0;3;0\n")
        )


@pytest.mark.parametrize("kind", ["16 bits", "PGM of 1000", "palette", "transparent", "colours"])
def test_pictures_of_a_map_of_any_kind_are_the_same_map(tmp_path: Path, kind: str) -> None:
    plain = read_course(corridor(tmp_path))
    grey = np.asarray(Image.open(tmp_path / "map.pgm"))
    if kind == "PGM of 1000":
        numbers = np.round(grey / 255 * 1000).astype(">u2").tobytes()
        (tmp_path / "map.pgm").write_bytes(b"P5\n# by hand\n640 440\n1000\n" + numbers)
        given = ""
    else:
        white = np.where(grey == 205, 255, grey)  # what is transparent is unknown, whatever its colour
        picture = {
            "16 bits": Image.fromarray(grey.astype(np.uint16) * 257),
            "palette": Image.fromarray(grey).convert("P"),
            "transparent": Image.fromarray(
                np.dstack([white, white, white, np.where(grey == 205, 0, 255)]).astype(np.uint8)
            ),
            "colours": Image.fromarray(np.dstack([grey] * 3)),
        }[kind]
        picture.save(tmp_path / "map.png")
        given = "image: map.png\n"
    assert read_course(corridor_again(tmp_path, given)).centre == pytest.approx(plain.centre)


def corridor_again(folder: Path, description: str) -> Path:
    """The description of ``corridor``, of a picture that was changed."""
    (folder / "map.yaml").write_text((folder / "map.yaml").read_text() + description)
    return folder / "map.yaml"


def test_unknown_cells_are_not_free_by_the_thresholds_of_ros_2(tmp_path: Path) -> None:
    """Nav2's map_saver writes grey 205 for unknown, and a free_thresh of 0.25, by which that grey would be free."""
    plain = read_course(corridor(tmp_path))
    assert read_course(corridor(tmp_path, "free_thresh: 0.25\n")).centre == pytest.approx(plain.centre)
    assert read_course(corridor(tmp_path, "# *** & ***\n")).centre == pytest.approx(plain.centre)


@given(
    text=st.text("0123456789.,;-# \neinfa_xywtrgh", max_size=300)
    | st.lists(st.tuples(*[st.floats(-20, 20, width=32)] * 4), max_size=30).map(
        lambda rows: "\n".join(",".join(map(str, row)) for row in rows)
    )
)
def test_any_text_is_a_course_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = written(tmp_path_factory.getbasetemp(), text)
    read_or_refused(path)


@given(
    fields=st.dictionaries(
        st.sampled_from(["image", "resolution", "origin", "negate", "occupied_thresh", "free_thresh", "mode"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.integers()),
        max_size=4,
    ),
    picture=st.none() | st.binary(max_size=80),
    blobs=st.lists(st.tuples(*[st.integers(0, 40)] * 4), max_size=6),
)
def test_any_map_is_a_course_or_refused(
    tmp_path_factory: pytest.TempPathFactory,
    fields: dict[str, object],
    picture: bytes | None,
    blobs: list[tuple[int, int, int, int]],
) -> None:
    import yaml

    folder = tmp_path_factory.getbasetemp()
    grey = np.full((48, 48), 0, np.uint8)
    for k, (x, y, w, h) in enumerate(blobs):
        grey[y : y + h, x : x + w] = 0 if k % 2 else 255
    Image.fromarray(grey).save(folder / "any.png")
    if picture is not None:
        (folder / "any.png").write_bytes(b"P5\n8 8\n255\n" + picture)
    plain = {"image": "any.png", "resolution": 0.2, "origin": [0, 0, 0], "negate": 0}
    (folder / "any.yaml").write_text(yaml.safe_dump({**plain, **fields}))
    read_or_refused(folder / "any.yaml")
