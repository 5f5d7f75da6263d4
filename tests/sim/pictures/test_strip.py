"""Which moments a strip shows, and what is in it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from PIL import Image

from robo_rl.sim.drawing import Line, Motion
from robo_rl.sim.pictures.strip import _others_move, span, strip
from robo_rl.sim.plants.mobile_base.drawing import draw_base
from robo_rl.sim.robots import load_robot


def orange(file) -> np.ndarray:
    with Image.open(file) as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    return (pixels[..., 0] > pixels[..., 2] + 60) & (pixels[..., 0] > pixels[..., 1] + 25)


@pytest.mark.usefixtures("graphics")
def test_what_needs_no_ground_is_in_one_scene_in_which_a_fall_goes_down_from_left_to_right(falling, tmp_path):
    shown = strip(tmp_path / "strip.png", falling(robots=1), 0.5)
    assert (shown.moments, shown.robots) == (9, 1)
    seen = orange(tmp_path / "strip.png")
    assert seen.shape == (300, 600)
    rows = [np.nonzero(seen[:, third])[0].mean() for third in (slice(0, 200), slice(200, 400), slice(400, 600))]
    assert rows[0] < rows[1] < rows[2]


@pytest.mark.usefixtures("graphics")
def test_a_strangers_robot_with_a_rail_is_shown_in_panels(swinging, tmp_path):
    shown = strip(tmp_path / "strip.png", swinging(), 0.4)
    with Image.open(tmp_path / "strip.png") as image:
        assert image.size == (6 * 120, 120)
        panels = np.split(np.asarray(image.convert("RGB")).astype(int), 6, axis=1)
    assert (shown.moments, shown.robots) == (6, 1)
    assert all((panel[..., 0] > panel[..., 1] + 80).sum() > 20 for panel in panels)  # the red pole


def test_what_comes_to_rest_is_shown_until_then_and_what_goes_on_in_its_middle(swinging):
    going_on = swinging(robots=1, steps=400)
    begin, end = span(going_on)
    assert (begin, end) == (199 - 25, 199 + 25)
    poses = going_on.poses.copy()
    poses[100:] = poses[100]
    begin, end = span(dataclasses.replace(going_on, poses=poses))
    assert begin == 0
    assert 85 <= end <= 110


def test_a_picture_of_another_format_is_refused(falling, tmp_path):
    with pytest.raises(ValueError, match=r"ends in \.png"):
        strip(tmp_path / "strip.jpg", falling())


@pytest.mark.usefixtures("graphics")
def test_a_robot_among_walls_is_shown_from_above_with_them_and_its_whole_way(tmp_path):
    """A base drives 2 m along a wall; the wall is seen, and the robot at nine places from left to right."""
    model = draw_base(load_robot("turtlebot3"))
    steps = 100
    poses = np.zeros((steps, 1, model.nbody - 1, 7))
    poses[..., 0], poses[..., 6] = np.linspace(0, 2, steps)[:, None, None], 1.0
    wall = np.tile([[[[-0.5, 0.5, 0.0], [2.5, 0.5, 0.0]]]], (steps, 1, 1, 1))
    motion = Motion(model, poses, (Line("wall", wall, (1.0, 0.0, 0.0, 1.0)),), 0.1)
    shown = strip(tmp_path / "strip.png", motion, 0.5)
    assert (shown.moments, shown.robots, shown.begin) == (9, 1, 0.0)
    assert shown.end == pytest.approx(0.999 * 9.9, abs=0.11)
    with Image.open(tmp_path / "strip.png") as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    red = (pixels[..., 0] > pixels[..., 1] + 60) & (pixels[..., 0] > pixels[..., 2] + 60)
    rows, columns = np.nonzero(red)
    assert np.ptp(columns) > 0.7 * 600
    assert rows.mean() < 150  # to the left of the robot's way, which is up


def test_others_that_move_are_shown_side_by_side(swinging):
    assert not _others_move(swinging())
    assert _others_move(dataclasses.replace(swinging(), poses=_driven_away(swinging().poses)))


def _driven_away(poses: np.ndarray) -> np.ndarray:
    poses = poses.copy()
    poses[:, :, 1, 0] += np.linspace(0, 20, len(poses))[:, None]
    return poses
