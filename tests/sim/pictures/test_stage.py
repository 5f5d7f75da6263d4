"""Pictures against what a pinhole camera and MuJoCo's own kinematics say, and against what must be seen in them."""

from __future__ import annotations

import os
import subprocess
import sys

import mujoco
import numpy as np
import pytest

from robo_rl.sim.drawing import Arrow, Frame, Line, Sphere, Text
from robo_rl.sim.pictures.camera import frame
from robo_rl.sim.pictures.stage import FIELD_OF_VIEW, Stage
from robo_rl.sim.plants.multirotor.drawing import at_rest
from robo_rl.sim.robots import load_robot

pytestmark = pytest.mark.usefixtures("graphics")
SIZE = (320, 240)
SHAPES = """
<mujoco>
  <asset>
    <mesh name="wedge" vertex="0 0 0  .3 0 0  0 .2 0  0 0 .1"/>
    <hfield name="hill" nrow="3" ncol="4" size="1 1 .5 .1" elevation="0 1 2 3  4 5 6 7  8 9 10 11"/>
    <texture name="dots" type="2d" builtin="checker" rgb1="1 0 0" rgb2="0 0 1" width="8" height="8"/>
    <material name="dotted" texture="dots"/>
  </asset>
  <worldbody>
    <geom type="hfield" hfield="hill" pos="0 0 -1"/>
    <body name="a" pos="1 2 3"><freejoint/>
      <geom type="mesh" mesh="wedge" pos=".1 0 0" euler="20 30 40"/>
      <geom type="box" size=".1 .1 .1" material="dotted"/>
      <body name="b" pos="0 0 .5"><joint axis="0 0 1"/><geom type="cylinder" size=".1 .2" euler="0 90 0"/></body>
    </body>
  </worldbody>
</mujoco>
"""


def is_green(pixels: np.ndarray) -> np.ndarray:
    red, green, blue = np.moveaxis(pixels.astype(int), -1, 0)
    return (green > red + 25) & (green > blue + 5)


def at(*place: float) -> np.ndarray:
    """Poses of a vehicle at a place, level."""
    _, poses = at_rest(load_robot("crazyflie"))
    return (poses + np.array([*place, 0.0, 0.0, 0.0, 0.0]))[None]


def test_every_shape_of_a_model_stands_where_mujoco_itself_puts_it():
    """Meshes, height fields and primitive shapes of a drawing, moved by poses, against mj_kinematics of the drawing."""
    model = mujoco.MjModel.from_xml_string(SHAPES)
    data = mujoco.MjData(model)
    data.qpos[:] = [0.4, -0.3, 0.9, 0.5, 0.5, -0.5, 0.5, 0.8]
    mujoco.mj_kinematics(model, data)
    poses = np.concatenate([data.xpos[1:], data.xquat[1:][:, (1, 2, 3, 0)]], 1)
    with Stage(model, 1, (32, 32), 1.0) as stage:
        stage.place(poses[None])
        stage.begin()
        for shape in range(model.ngeom):
            kind = int(model.geom_type[shape])
            (mine,) = np.flatnonzero(stage.stage.geom_type == kind)
            if kind == mujoco.mjtGeom.mjGEOM_MESH:  # its axes may have turned: compare the corners
                corners = [
                    d.geom_xpos[g] + m.mesh_vert @ d.geom_xmat[g].reshape(3, 3).T
                    for m, d, g in ((model, data, shape), (stage.stage, stage.data, mine))
                ]
                for corner in corners[0]:
                    assert np.linalg.norm(corners[1] - corner, axis=1).min() < 1e-6
            else:
                np.testing.assert_allclose(stage.data.geom_xpos[mine], data.geom_xpos[shape], atol=1e-9)
                np.testing.assert_allclose(stage.data.geom_xmat[mine], data.geom_xmat[shape], atol=1e-9)
        np.testing.assert_array_equal(stage.stage.hfield_data, model.hfield_data)


def test_a_shapes_texture_is_drawn():
    with Stage(mujoco.MjModel.from_xml_string(SHAPES), 1, SIZE, 1.0) as stage:
        poses = np.array([[[0, 0, 0, 0, 0, 0, 1], [0, 0, 9, 0, 0, 0, 1]]], float)
        stage.place(poses)
        stage.look(np.zeros(3), 0.6, 30.0, -30.0)
        pixels = stage.marked((), ()).astype(int)
    red, green, blue = np.moveaxis(pixels, -1, 0)
    assert ((red > green + 60) & (red > blue + 60)).sum() > 100
    assert ((blue > green + 60) & (blue > red + 60)).sum() > 100


def test_a_robot_seen_from_above_covers_its_span_in_the_picture():
    """Scale: the vehicle's extent in pixels is that of a pinhole camera with the picture's field of view."""
    robot, distance = load_robot("hummingbird"), 2.0
    model, poses = at_rest(robot)
    with Stage(model, 1, SIZE, 5.0) as stage:
        stage.look(np.zeros(3), distance, 90, -90)
        pictures = []
        for away in (0.0, 50.0):
            stage.place((poses + np.array([away, 0, 0, 0, 0, 0, 0]))[None])
            pictures.append(stage.marked((), ()).astype(int))
    columns = np.flatnonzero((np.abs(pictures[0] - pictures[1]).sum(-1) > 10).any(0))
    span = 2 * (robot.arm + robot.propeller_radius)
    hub = robot.rotors[0].position[2] + 0.4 * robot.body_size[2]
    expected = SIZE[1] / 2 / np.tan(np.radians(FIELD_OF_VIEW / 2)) * span / (distance - hub)
    assert columns.max() - columns.min() + 1 == pytest.approx(expected, rel=0.04)


def test_a_higher_robot_is_higher_in_the_picture():
    rows = []
    with Stage(at_rest(load_robot("crazyflie"))[0], 1, SIZE, 1.0, floor=-1.0) as stage:
        stage.look(np.zeros(3), 1.0, 90, -10)
        for height in (-0.1, 0.1):
            stage.place(at(0.0, 0.0, height))
            dark = stage.marked((), ()).max(-1) < 90
            rows.append(np.flatnonzero(dark[: SIZE[1] * 3 // 4].any(1)).mean())
    assert rows[1] < rows[0] - 20


def test_a_robot_casts_a_shadow_below_it():
    with Stage(at_rest(load_robot("crazyflie"))[0], 1, SIZE, 0.5, floor=-0.3) as stage:
        stage.look(np.array([0.0, 0.0, -0.3]), 0.6, 90, -89)
        bright = []
        for height in (5.0, 0.0):  # behind the camera, and seen
            stage.place(at(0.3, 0.3, height))
            bright.append(stage.marked((), ())[110:130, 150:170].mean())
        stage.place(at(-0.08, 0.06, 0.0))
        shaded = stage.marked((), ()).astype(int)
    assert abs(bright[0] - bright[1]) < 1
    assert (shaded.max(-1) < 0.6 * bright[0]).sum() > 50


@pytest.mark.parametrize("angles", [(120.0, -20.0), (90.0, -24.0), (0.0, -60.0), (200.0, 5.0)])
def test_the_camera_frames_all_points(angles):
    points = np.array([[0.6, 0.1, 0.2], [-0.5, -0.4, 0.0], [0.0, 0.9, -0.3], [0.1, -0.2, 0.5]])
    place, distance = frame(points, 0.1, SIZE, *angles)
    with Stage(at_rest(load_robot("crazyflie"))[0], 1, SIZE, 3.0, floor=-20.0) as stage:
        stage.look(place, distance, *angles)
        stage.place(at(50.0, 50.0, 0.0))
        for point in points:
            green = is_green(stage.marked([Sphere("point", point[None], 0.03, (0.0, 0.62, 0.45, 1.0))], [0]))
            assert green.any()
            assert not green[[0, -1]].any()
            assert not green[:, [0, -1]].any()


def test_markers_of_every_kind_are_seen_and_those_without_a_place_are_not():
    here, nowhere = np.zeros((1, 3)), np.full((1, 3), np.nan)
    vector = np.array([[0.2, 0.0, 0.0]])
    markers = {
        "sphere": lambda place: Sphere("s", place, 0.05),
        "arrow": lambda place: Arrow("a", place, vector, 0.02),
        "line": lambda place: Line("l", np.stack([place, place + vector], 1)),
        "frame": lambda place: Frame("f", place, np.array([[0.0, 0.0, 0.0, 1.0]]), 0.1),
        "text": lambda place: Text("t", place, ["0.3 m/s"]),
    }
    with Stage(at_rest(load_robot("crazyflie"))[0], 1, SIZE, 1.0, floor=-0.5) as stage:
        stage.look(np.zeros(3), 0.6, 90, -30)
        stage.place(at(50.0, 0.0, 0.0))
        empty = stage.marked((), ()).astype(int)
        for kind, make in markers.items():
            shown, hidden = (stage.marked([make(place)], [0]).astype(int) for place in (here, nowhere))
            assert (np.abs(shown - empty).sum(-1) > 30).sum() > 20, kind
            np.testing.assert_allclose(hidden, empty, atol=3, err_msg=kind)  # renderers round


def test_robots_in_worlds_of_their_own_have_their_own_tables():
    """A finite shape of the world is copied with each robot's offset; a plane is not."""
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom type='plane' size='0 0 1'/><geom type='box' size='.2 .2 .1'/>"
        "<body><joint/><geom type='sphere' size='.05'/></body></worldbody></mujoco>"
    )
    offsets = np.array([[0.0, -1.0, 0.0], [0.0, 1.0, 0.0]])
    with Stage(model, 2, (32, 32), 1.0, offsets) as stage:
        stage.place(np.tile([0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0], (2, 1, 1)))
        stage.begin()
        kinds, places = stage.stage.geom_type, stage.data.geom_xpos
        assert (kinds == mujoco.mjtGeom.mjGEOM_PLANE).sum() == 1
        np.testing.assert_allclose(places[kinds == mujoco.mjtGeom.mjGEOM_BOX], offsets)
        np.testing.assert_allclose(places[kinds == mujoco.mjtGeom.mjGEOM_SPHERE], offsets + np.array([0.0, 0.0, 0.3]))


def test_without_a_working_renderer_the_error_names_the_packages():
    code = "from robo_rl.sim.pictures.canvas import open_context; open_context((32, 32))"
    environment = {**os.environ, "MUJOCO_GL": "egl", "MUJOCO_EGL_DEVICE_ID": "99"}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode != 0
    assert "apt-get install libegl1 libgl1-mesa-dri" in result.stderr


def test_several_stages_at_once_draw_what_each_draws_alone():
    models = [load_robot(name).drawing() for name in ("crazyflie", "go2")]

    def drawn(stage: Stage, poses: np.ndarray) -> np.ndarray:
        stage.place(poses[None])
        stage.look(poses[0, :3], 2.0, 40.0, -20.0)
        return stage.marked((), ())

    alone = []
    for model, poses in models:
        with Stage(model, 1, SIZE, 1.0) as stage:
            alone.append(drawn(stage, poses))
    with Stage(models[0][0], 1, SIZE, 1.0) as first, Stage(models[1][0], 1, SIZE, 1.0) as second:
        together = [drawn(first, models[0][1]), drawn(second, models[1][1])]
    for mine, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(mine.astype(int), other.astype(int), atol=3)  # renderers round
