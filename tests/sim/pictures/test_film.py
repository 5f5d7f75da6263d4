"""Films and strobe pictures, read back by other programs than those that wrote them."""

from __future__ import annotations

import imageio_ffmpeg
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sim.pictures.film import JUMP, film, moves, since_start, spread, strobe
from sim.pictures.scene import RenderingError, open_context
from sim.robots import load_robot

PERIOD = 0.01


@pytest.fixture(scope="module")
def graphics() -> None:
    try:
        open_context((32, 32)).free()
    except RenderingError as error:
        pytest.skip(str(error))


def falling(seconds: float = 1.0, flights: int = 2) -> dict[str, np.ndarray]:
    """Vehicles that fall freely and turn about body x, from 90 degrees to level, in that time."""
    steps = round(seconds / PERIOD)
    time = np.arange(steps) * PERIOD
    position = np.zeros((steps, flights, 3))
    position[..., 2] = 0.4 - 0.6 * time[:, None] ** 2
    half = np.radians(45) * (1 - time / seconds)
    orientation = np.zeros((steps, flights, 4))
    orientation[..., 0], orientation[..., 3] = np.sin(half)[:, None], np.cos(half)[:, None]
    speed = np.full((steps, flights, 4), 1500.0)
    return {
        "position": position,
        "orientation": orientation,
        "rotor_speed": speed,
        "position_setpoint": np.zeros((steps, flights, 3)),
    }


def test_an_mp4_has_the_frames_it_should_and_they_move(graphics, tmp_path):
    file = tmp_path / "flight.mp4"
    count = film(file, load_robot("crazyflie"), falling(), PERIOD, size=(160, 120), fps=20)
    reader = imageio_ffmpeg.read_frames(str(file))
    information = next(reader)
    frames = [np.frombuffer(data, np.uint8).reshape(120, 160, 3).astype(int) for data in reader]
    assert count == len(frames) == 20
    assert information["fps"] == 20
    assert information["source_size"] == (160, 120)
    assert min(image.std() for image in frames) > 5
    assert np.abs(frames[0] - frames[-1]).max() > 60


def test_a_gif_plays_in_real_time(graphics, tmp_path):
    file = tmp_path / "flight.gif"
    count = film(file, load_robot("crazyflie"), falling(0.5), PERIOD, size=(120, 90), fps=10)
    with Image.open(file) as image:
        assert image.n_frames == count == 5
        assert image.info["duration"] == 100
        assert np.asarray(image.convert("L")).std() > 5


def test_in_a_strobe_picture_a_fall_goes_down_from_left_to_right(graphics, tmp_path):
    file = tmp_path / "strobe.png"
    strobe(file, load_robot("crazyflie"), falling(flights=1), PERIOD, seconds=1.0, size=(600, 300))
    with Image.open(file) as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    orange = (pixels[..., 0] > pixels[..., 2] + 60) & (pixels[..., 0] > pixels[..., 1] + 25)
    rows = [np.nonzero(orange[:, third])[0].mean() for third in (slice(0, 200), slice(200, 400), slice(400, 600))]
    assert rows[0] < rows[1] < rows[2]


@pytest.mark.parametrize(
    ("file", "size", "fps", "said"),
    [
        ("flight.avi", (64, 64), 30, "ends in .mp4 or .gif"),
        ("flight.mp4", (65, 64), 30, "even numbers"),
        ("flight.mp4", (64, 0), 30, "even numbers"),
        ("flight.mp4", (64, 64), 0, "expected 1 to 100"),
    ],
)
def test_a_film_that_cannot_be_written_is_refused_before_drawing(tmp_path, file, size, fps, said):
    with pytest.raises(ValueError, match=said):
        film(tmp_path / file, load_robot("crazyflie"), falling(0.1), PERIOD, size=size, fps=fps)
    assert not list(tmp_path.iterdir())


@given(n=st.integers(1, 16), reach=st.floats(0, 3), arm=st.floats(0.02, 0.5))
def test_flights_side_by_side_stay_apart_and_around_the_middle(n, reach, arm):
    setpoint = np.zeros((5, n, 3))
    setpoint[2, :, :2] = reach
    offset = spread(setpoint, arm)
    assert offset.shape == (n, 3)
    apart = np.linalg.norm(offset[:, None] - offset[None], axis=-1) + 1e9 * np.eye(n)
    assert n == 1 or apart.min() > 2 * (reach + 2 * arm)
    assert np.abs(offset.max(0) + offset.min(0)).max() < 1e-9


@given(st.lists(st.integers(0, 1), min_size=1, max_size=30))
def test_a_trail_begins_after_the_last_restart(restarts):
    points = np.cumsum([[0.01, 0, JUMP * 2 * restart] for restart in restarts], 0)
    trail = since_start(points)
    assert np.array_equal(trail, points[len(points) - len(trail) :])
    assert (np.abs(np.diff(trail, axis=0)) < JUMP).all()
    last = max((k for k, restart in enumerate(restarts) if restart and k), default=0)
    assert len(trail) == len(points) - last


def test_a_setpoint_that_stays_does_not_move():
    still = np.broadcast_to([0.1, 0.2, 0.3], (50, 2, 3))
    assert not moves(still)
    assert moves(still + np.linspace(0, 0.1, 50)[:, None, None])
