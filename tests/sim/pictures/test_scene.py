"""Pictures against MuJoCo's own compiled model and against what must be seen in them."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack

import mujoco
import numpy as np
import pytest
import torch

from sim.pictures.film import frame
from sim.pictures.scene import RenderingError, Scene, model_text, open_context
from sim.pictures.walking import Stage
from sim.robots import load_robot
from sim.tasks.loading import load_task

SIZE = (320, 240)
LEVEL = np.array([[0.0, 0.0, 0.0, 1.0]])


@pytest.fixture(scope="module", autouse=True)
def graphics() -> None:
    try:
        open_context((32, 32)).free()
    except RenderingError as error:
        pytest.skip(str(error))


def card(name: str):
    robot = load_robot(name)
    assert hasattr(robot, "rotors")
    return robot


def is_green(pixels: np.ndarray) -> np.ndarray:
    red, green, blue = np.moveaxis(pixels.astype(int), -1, 0)
    return (green > red + 25) & (green > blue + 5)


@pytest.mark.parametrize("name", ["crazyflie", "hummingbird"])
def test_rotor_discs_are_where_the_card_has_its_rotors_and_as_large(name):
    robot = card(name)
    model = mujoco.MjModel.from_xml_string(model_text(robot, 1, SIZE, -1.0, 1.0))
    discs = [i for i in range(model.ngeom) if 0 < model.geom_rgba[i, 3] < 1]
    assert len(discs) == len(robot.rotors)
    np.testing.assert_allclose(model.geom_size[discs, 0], robot.propeller_radius, rtol=1e-3)
    found = model.geom_pos[discs][:, :2]
    np.testing.assert_allclose(found, [rotor.position[:2] for rotor in robot.rotors], atol=1e-4)


def test_front_rotors_have_another_colour_than_rear_ones():
    robot = card("crazyflie")
    model = mujoco.MjModel.from_xml_string(model_text(robot, 1, SIZE, -1.0, 1.0))
    discs = [i for i in range(model.ngeom) if 0 < model.geom_rgba[i, 3] < 1]
    front = {tuple(model.geom_rgba[i].round(3)) for i in discs if model.geom_pos[i, 0] > 0}
    rear = {tuple(model.geom_rgba[i].round(3)) for i in discs if model.geom_pos[i, 0] < 0}
    assert len(front) == len(rear) == 1
    assert front != rear


def test_a_card_figure_seen_from_above_covers_its_span_in_the_picture():
    """Scale: the vehicle's extent in pixels is that of a pinhole camera with the model's field of view."""
    robot, distance = card("hummingbird"), 2.0
    with Scene(robot, 1, SIZE, floor=-20.0, extent=5.0) as scene:
        scene.look(np.zeros(3), distance, 90, -90)
        scene.place(np.zeros((1, 3)), LEVEL, np.zeros((1, 4)))
        full = scene.draw([], [], np.empty((0, 3))).astype(int)
        scene.place(np.full((1, 3), 50.0), LEVEL, np.zeros((1, 4)))
        empty = scene.draw([], [], np.empty((0, 3))).astype(int)
    columns = np.flatnonzero((np.abs(full - empty).sum(-1) > 10).any(0))
    span = 2 * (robot.arm + robot.propeller_radius)
    hub = robot.rotors[0].position[2] + 0.4 * robot.body_size[2]
    expected = SIZE[1] / 2 / np.tan(np.radians(16)) * span / (distance - hub)
    assert columns.max() - columns.min() + 1 == pytest.approx(expected, rel=0.04)


def test_a_higher_vehicle_is_higher_in_the_picture():
    robot = card("crazyflie")
    rows = []
    with Scene(robot, 1, SIZE, floor=-1.0, extent=1.0) as scene:
        scene.look(np.zeros(3), 1.0, 90, -10)
        for height in (-0.1, 0.1):
            scene.place(np.array([[0.0, 0.0, height]]), LEVEL, np.zeros((1, 4)))
            dark = scene.draw([], [], np.empty((0, 3))).max(-1) < 90
            rows.append(np.flatnonzero(dark.any(1)).mean())
    assert rows[1] < rows[0] - 20


@pytest.mark.parametrize("angles", [(120.0, -20.0), (90.0, -24.0), (0.0, -60.0), (200.0, 5.0)])
def test_the_camera_frames_all_points(angles):
    points = np.array([[0.6, 0.1, 0.2], [-0.5, -0.4, 0.0], [0.0, 0.9, -0.3], [0.1, -0.2, 0.5]])
    at, distance = frame(points, 0.1, SIZE, *angles)
    with Scene(card("crazyflie"), 1, SIZE, floor=-20.0, extent=3.0) as scene:
        scene.look(at, distance, *angles)
        scene.place(np.full((1, 3), 50.0), LEVEL, np.zeros((1, 4)))
        for point in points:
            green = is_green(scene.draw([], [], point[None]))
            assert green.any()
            assert not green[[0, -1]].any()
            assert not green[:, [0, -1]].any()


def test_without_a_working_renderer_the_error_names_the_packages():
    code = "from sim.pictures.scene import open_context; open_context((32, 32))"
    environment = {**os.environ, "MUJOCO_GL": "egl", "MUJOCO_EGL_DEVICE_ID": "99"}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode != 0
    assert "apt-get install libegl1 libgl1-mesa-dri" in result.stderr


def test_several_stages_at_once_draw_their_own_ground() -> None:
    task = load_task("go2-rough")
    card, middles = task.spec.robot, task.ground.start(torch.tensor([0.9, 0.9]), torch.tensor([0.1, 0.5]))
    recording = {
        "position": (middles.numpy() + np.array([0.0, 0.0, 0.3]))[None],
        "orientation": np.tile([0.0, 0.0, 0.0, 1.0], (1, 2, 1)),
        "joint_position": np.tile([joint.stand for joint in card.joints], (1, 2, 1)),
        "linear_velocity": np.zeros((1, 2, 3)),
    }

    def drawn(stage: Stage, robot: int) -> np.ndarray:
        stage.place(recording, 0, robot)
        return stage.picture(stage.middle)

    alone = []
    for robot in (0, 1):
        with Stage(card, SIZE, recording["position"][:, robot], task.ground) as stage:
            alone.append(drawn(stage, robot))
    with ExitStack() as stack:
        stages = [stack.enter_context(Stage(card, SIZE, recording["position"][:, i], task.ground)) for i in (0, 1)]
        together = [drawn(stage, robot) for robot, stage in enumerate(stages)]
    for mine, other in zip(together, alone, strict=True):
        np.testing.assert_array_equal(mine, other)
