"""How robots are arranged and followed, by their poses alone."""

from __future__ import annotations

import dataclasses
import itertools

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_rl.sim.drawing import Line, Motion, Poser, Sphere, corners
from robo_rl.sim.pictures.camera import (
    APART,
    JUMP,
    arrange,
    as_many_as_seen,
    distance_of,
    followed,
    frame,
    headings,
    points_of,
    spread,
    whole,
)
from robo_rl.sim.pictures.stage import FIELD_OF_VIEW
from robo_rl.sim.plants.drawing import at_rest, draw
from robo_rl.sim.robots.legged import load_legged
from robo_rl.sim.scenes.terrain import rough_ground

GO2 = load_legged("go2").mechanism


def walking(speed: float, robots: int = 1, ground=None) -> Motion:
    """A standing robot that glides along y for 2 s."""
    model, poses = at_rest(GO2)
    poses = np.tile(poses, (100, robots, 1, 1))
    poses[..., 1] += speed * np.arange(100)[:, None, None] * 0.02
    return Motion(model if ground is None else draw(GO2, ground), poses, (), 0.02)


@given(n=st.integers(1, 16), reach=st.floats(0, 3), size=st.floats(0.02, 0.5))
def test_robots_side_by_side_stay_apart_and_around_the_middle(n, reach, size):
    way = np.zeros((8, n, 3))
    way[1::2, :, :2] = reach
    offset = spread(way, size)
    assert offset.shape == (n, 3)
    apart = np.linalg.norm(offset[:, None] - offset[None], axis=-1) + 1e9 * np.eye(n)
    assert n == 1 or apart.min() > 0.99 * APART * size
    assert np.abs(offset.max(0) + offset.min(0)).max() < 1e-9


def test_robots_of_a_team_keep_their_places_to_each_other_and_teams_do_not_overlap():
    way = np.random.default_rng(0).uniform(-2, 2, (8, 12, 3))
    places = (way + spread(way, 0.1, team=4)).reshape(8, 3, 4, 3)
    offsets = (places - way.reshape(8, 3, 4, 3)).swapaxes(0, 1)
    np.testing.assert_allclose(offsets, np.broadcast_to(offsets[:, :1, :1], offsets.shape), atol=1e-12)
    low, high = places.min((0, 2))[:, :2], places.max((0, 2))[:, :2]
    for one, other in itertools.combinations(range(3), 2):
        assert ((high[one] < low[other]) | (high[other] < low[one])).any()


def test_who_walks_away_is_followed_and_who_stands_is_not():
    assert arrange(walking(1.0)).follow
    assert not arrange(walking(0.0)).follow


def test_robots_on_common_terrain_are_not_moved_apart():
    assert arrange(walking(0.0, robots=2)).offsets is not None
    assert arrange(walking(0.0, robots=2, ground=rough_ground(rows=1))).offsets is None


def test_the_camera_stays_near_a_walker_and_jumps_with_one_that_begins_again():
    motion = walking(1.0)
    scene = arrange(motion)
    away = np.linalg.norm(followed(motion, scene, 2.0)[:, 0, :2] - motion.poses[:, 0, 0, :2], axis=-1)
    assert away.max() < 0.5
    poses = motion.poses.copy()
    poses[50:, ..., 0] += 10.0
    at = followed(dataclasses.replace(motion, poses=poses), scene, 2.0)
    assert JUMP * scene.size < 10.0
    assert abs(at[50, 0, 0] - poses[50, 0, 0, 0]) < 0.2


@pytest.mark.parametrize("direction", [0.0, 70.0, 200.0])
@pytest.mark.parametrize("away", [3.0, 9.0])
def test_a_robot_among_walls_and_its_goal_are_both_in_the_picture(direction, away):
    motion = walking(1.0)
    turn, steps = np.radians(direction), len(motion)
    goal = np.tile([away * np.cos(turn), away * np.sin(turn), 0.2], (steps, 1, 1))
    walls = np.zeros((steps, 1, 2, 3))
    motion = dataclasses.replace(motion, markers=(Line("obstacles", walls), Sphere("goal", goal, 0.1)))
    scene, distance = arrange(motion), distance_of(motion, (480, 320))
    at = followed(motion, scene, distance)[0, 0]
    a, e = np.radians(scene.azimuth[0]), np.radians(scene.elevation)
    ahead = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.array([np.sin(a), -np.cos(a), 0.0])
    slope = np.tan(np.radians(FIELD_OF_VIEW / 2))
    for place in (motion.poses[0, 0, 0, :3], goal[0, 0]):
        seen = place - (at - distance * ahead)
        assert abs(seen @ np.cross(right, ahead)) < slope * (seen @ ahead)
        assert abs(seen @ right) < 1.5 * slope * (seen @ ahead)


ARM = """
<mujoco>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body name="base"><geom type="box" size=".1 .1 .1" pos="0 0 .1"/>
      <body name="column" pos="0 0 .2"><joint axis="0 0 1"/><geom type="box" size=".06 .06 .3" pos="0 0 .3"/>
        <body name="hand" pos="0 0 .6"><joint axis="0 1 0"/><geom type="box" size=".2 .04 .04" pos=".3 0 -.3"/>
          <body name="finger" pos=".5 0 -.35"><geom type="box" size=".01 .01 .03"/></body>
        </body></body></body>
    <body name="cube" pos=".5 .2 .02"><freejoint/><geom type="box" size=".02 .02 .02"/></body>
  </worldbody>
</mujoco>
"""


def test_of_an_arm_that_moves_a_cube_the_camera_sees_cube_place_and_hand_from_near() -> None:
    model = mujoco.MjModel.from_xml_string(ARM)
    rows = np.tile(model.qpos0, (20, 1))
    rows[:, 0] = np.linspace(-0.4, 0.4, 20)
    rows[:, 3] += np.linspace(0.0, 0.1, 20)
    poses = np.repeat(Poser(model).poses(rows)[:, None], 4, axis=1)
    place = np.tile([0.45, -0.2, 0.02], (20, 4, 1))
    motion = as_many_as_seen(Motion(model, poses, (Sphere("place", place, 0.02),), 0.02), (640, 480))
    assert motion.robots == 1, "cubes of four arms side by side are specks"
    scene = arrange(motion)
    at, distance, azimuth, elevation = whole(motion, scene, (640, 480))
    all_of_it = corners(model, motion.poses).reshape(-1, 3)
    assert distance < 0.75 * frame(all_of_it, 0.15 * scene.size, (640, 480), azimuth, elevation)[1]
    a, e = np.radians(azimuth), np.radians(elevation)
    ahead = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.array([np.sin(a), -np.cos(a), 0.0])
    slope, seen = np.tan(np.radians(FIELD_OF_VIEW / 2)), points_of(motion, scene) - (at - distance * ahead)
    cube = model.body("cube").id - 1
    for point in (poses[0, 0, cube, :3], poses[-1, 0, cube, :3], place[0, 0]):
        assert np.abs(points_of(motion, scene) - point).sum(-1).min() < 0.1
    assert (np.abs(seen @ np.cross(right, ahead)) < slope * (seen @ ahead)).all()
    assert (np.abs(seen @ right) < 4 / 3 * slope * (seen @ ahead)).all()


def test_the_heading_of_a_walker_is_its_way():
    assert headings(walking(1.0))[0] == pytest.approx(90.0)


def test_robots_that_would_be_too_small_together_are_shown_alone(falling):
    motion = falling(robots=4)
    assert as_many_as_seen(motion, (640, 480)).robots == 4
    poses = motion.poses.copy()
    poses[..., 0] += 5.0 * np.sin(np.arange(len(poses)))[:, None, None]
    assert as_many_as_seen(dataclasses.replace(motion, poses=poses), (640, 480)).robots == 1
