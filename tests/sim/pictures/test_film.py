"""Films, read back by other programs than those that wrote them."""

from __future__ import annotations

import imageio_ffmpeg
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from robo_rl.sim.pictures.film import captioned, film, since_start


def read(file) -> tuple[dict, list[np.ndarray]]:
    reader = imageio_ffmpeg.read_frames(str(file))
    information = next(reader)
    width, height = information["source_size"]
    return information, [np.frombuffer(data, np.uint8).reshape(height, width, 3).astype(int) for data in reader]


@pytest.mark.usefixtures("graphics")
def test_an_mp4_has_the_frames_it_should_and_they_move(falling, tmp_path):
    file = tmp_path / "flight.mp4"
    count = film(file, falling(), size=(160, 120), fps=20)
    information, frames = read(file)
    assert count == len(frames) == 20
    assert information["fps"] == 20
    assert information["source_size"] == (160, 120)
    assert min(image.std() for image in frames) > 5
    assert np.abs(frames[0] - frames[-1]).max() > 60


@pytest.mark.usefixtures("graphics")
def test_a_gif_plays_in_real_time(falling, tmp_path):
    file = tmp_path / "flight.gif"
    count = film(file, falling(0.5), size=(120, 90), fps=10)
    with Image.open(file) as image:
        assert image.n_frames == count == 5
        assert image.info["duration"] == 100
        assert np.asarray(image.convert("L")).std() > 5


@pytest.mark.usefixtures("graphics")
def test_what_takes_hundredths_of_a_second_is_shown_slower(falling, tmp_path):
    assert film(tmp_path / "brief.mp4", falling(0.06, robots=1), size=(120, 90), fps=4) == 16


@pytest.mark.usefixtures("graphics")
def test_a_strangers_robots_are_filmed_side_by_side_and_whole(swinging, tmp_path):
    film(tmp_path / "poles.mp4", swinging(robots=2), size=(320, 240), fps=10)
    _, frames = read(tmp_path / "poles.mp4")
    first = frames[0]
    red = (first[..., 0] > first[..., 1] + 80) & (first[..., 0] > first[..., 2] + 80)
    runs = np.diff(np.flatnonzero(np.diff(np.r_[0, red.any(0).astype(int), 0])))[::2]
    assert len(runs) == 2  # two upright poles
    for image in frames:
        red = (image[..., 0] > image[..., 1] + 80) & (image[..., 0] > image[..., 2] + 80)
        assert not red[[0, -1]].any()
        assert not red[:, [0, -1]].any()


@pytest.mark.parametrize(
    ("file", "size", "fps", "said"),
    [
        ("flight.avi", (64, 64), 30, "ends in .mp4 or .gif"),
        ("flight.mp4", (65, 64), 30, "even numbers"),
        ("flight.mp4", (64, 0), 30, "even numbers"),
        ("flight.mp4", (64, 64), 0, "expected 1 to 100"),
    ],
)
def test_a_film_that_cannot_be_written_is_refused_before_drawing(falling, tmp_path, file, size, fps, said):
    with pytest.raises(ValueError, match=said):
        film(tmp_path / file, falling(0.1), size=size, fps=fps)
    assert not list(tmp_path.iterdir())


@given(st.lists(st.integers(0, 1), min_size=1, max_size=30))
def test_a_trail_begins_after_the_last_restart(restarts):
    jump = 0.3
    points = np.cumsum([[0.01, 0, jump * 2 * restart] for restart in restarts], 0)
    trail = since_start(points, jump)
    assert np.array_equal(trail, points[len(points) - len(trail) :])
    assert (np.abs(np.diff(trail, axis=0)) < jump).all()
    last = max((k for k, restart in enumerate(restarts) if restart and k), default=0)
    assert len(trail) == len(points) - last


@pytest.mark.parametrize("behind", [0, 90, 255])
def test_a_caption_is_read_before_what_is_dark_or_light(behind: int) -> None:
    seen = captioned(np.full((120, 160, 3), behind, np.uint8), "t = 1 s").astype(int).mean(-1)
    assert seen.min() < 100
    assert seen.max() > 220
