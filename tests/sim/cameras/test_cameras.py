"""Depth images, against MuJoCo's own rays through the same scene."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from robo_rl.sim.cameras import View, rays
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.drawing import draw
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.robots.arm import load_arm
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.mechanism import DepthCamera
from robo_rl.sim.tasks.arm.place_depth import NAME, PlaceDepth

SHAPES = """
<mujoco><worldbody>
  <geom type="plane" size="9 9 .1" pos="0 0 -.2" euler="7 0 0"/>
  <geom type="box" size=".1 .2 .05" pos=".3 .1 1" euler="20 30 40"/>
  <geom type="sphere" size=".15" pos="-.3 -.3 1.2"/>
  <geom type="capsule" size=".06 .2" pos="-.2 .3 .9" euler="50 10 0"/>
  <geom type="cylinder" size=".1 .15" pos=".1 -.35 .8" euler="30 40 0"/>
  <geom type="cylinder" size=".1 .02" pos="0 .05 .5"/>
  <body name="eye" pos=".02 -.03 2"><freejoint/><geom type="box" size=".02 .02 .02" pos=".2 0 -.35" mass="1"/></body>
</worldbody></mujoco>
"""
DOWN = (1.0, 0.0, 0.0, 0.0)  # a half turn about x: the optical axis looks down


def by_mujoco(
    model: mujoco.MjModel, data: mujoco.MjData, camera: DepthCamera, place: np.ndarray, turn: Any
) -> np.ndarray:
    """(pixels,) m along the optical axis, of a camera at ``place`` (3,) m with axes ``turn`` (3, 3) in the world."""
    x, y = rays(camera.shape, camera.fov).reshape(2, -1)
    ways = np.stack([x, y, np.ones_like(x)], -1) @ np.asarray(turn).T
    lengths = np.linalg.norm(ways, axis=1)
    units, geom = ways / lengths[:, None], np.zeros(1, np.int32)
    # one by one: mj_multiRay misses parts of shapes close to the origin (seen in MuJoCo 4.0.0)
    found = np.array([mujoco.mj_ray(model, data, place, unit, None, 1, -1, geom) for unit in units])
    depth = np.where(found < 0, np.inf, found / lengths)
    return np.where(depth < camera.nearest, 0.0, np.minimum(depth, camera.longest))


def on_an_edge(depth: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """(pixels,) whether a pixel beside one is on something else, or the depth is where the camera's reach ends."""
    image = np.pad(depth.reshape(shape), 1, mode="edge")
    beside = np.stack([image[1:-1, :-2], image[1:-1, 2:], image[:-2, 1:-1], image[2:, 1:-1]])
    return (np.abs(beside - depth.reshape(shape)) > 0.01).any(0).ravel()


@pytest.mark.parametrize("seed", range(4))
def test_pixels_of_every_kind_of_shape_are_those_of_mujoco_s_rays(seed: int) -> None:
    model = mujoco.MjModel.from_xml_string(SHAPES)
    random, data = np.random.default_rng(seed), mujoco.MjData(model)
    camera = DepthCamera("depth", "eye", (48, 64), 1.3, (0.01, 0.02, 0.0), DOWN, 0.3, 2.1)
    view = View(camera, model, {}, 1)
    off = Rotation.from_rotvec(random.uniform(-0.35, 0.35, 3))
    x, y, z, w = off.as_quat()
    data.qpos[:] = [*(np.array([0.02, -0.03, 2.0]) + random.uniform(-0.2, 0.2, 3)), w, x, y, z]
    mount = np.concatenate([random.uniform(-0.01, 0.01, 3), random.uniform(-0.02, 0.02, 3)])
    mujoco.mj_kinematics(model, data)
    view.render(data.xpos[None].copy(), data.xmat[None].copy(), None, torch.from_numpy(mount[None].copy()))
    body, eye = Rotation.from_matrix(data.xmat[model.body("eye").id].reshape(3, 3)), Rotation.from_quat(DOWN)
    place = data.xpos[model.body("eye").id] + body.apply(camera.position + eye.apply(mount[:3]))
    turn = (body * eye * Rotation.from_rotvec(mount[3:])).as_matrix()
    expected, found = by_mujoco(model, data, camera, place, turn), view.image[0].numpy().ravel()
    away = ~on_an_edge(expected, camera.shape)
    assert away.mean() > 0.5
    assert len(np.unique(expected.round(3))) > 200
    np.testing.assert_allclose(found[away], expected[away], atol=3e-6)
    assert (np.abs(found - expected) > 1e-4).mean() < 2e-3  # on edges, the last bits of a ray decide


@pytest.fixture(scope="module")
def env() -> VecEnv:
    return VecEnv(PlaceDepth(), 12, seed=2)


def test_an_arm_s_own_hand_its_cube_and_the_ground_are_those_of_mujoco_s_rays(env: VecEnv) -> None:
    task, plant = env.task, env.plant
    model = draw(plant.mechanism)
    data, camera = mujoco.MjData(model), task.camera
    eye = Rotation.from_quat(camera.orientation)
    sizes, mounts = plant.param("object_size"), plant.param("camera_mount")
    images = plant.truth()[NAME].numpy()
    for e in range(env.n):
        data.qpos[:] = plant.state(torch.tensor([e])).qpos[0].numpy()
        cube = model.geom("cube").id
        model.geom_size[cube] = sizes[e, 0].numpy()
        model.geom_rbound[cube] = float(sizes[e, 0].norm())
        mujoco.mj_kinematics(model, data)
        site, error = model.site(camera.at).id, mounts[e, 0].numpy()
        tool = Rotation.from_matrix(data.site_xmat[site].reshape(3, 3))
        place = data.site_xpos[site] + tool.apply(np.array(camera.position) + eye.apply(error[:3]))
        turn = (tool * eye * Rotation.from_rotvec(error[3:])).as_matrix()
        expected, found = by_mujoco(model, data, camera, place, turn), images[e].ravel()
        away = ~on_an_edge(expected, camera.shape)
        np.testing.assert_allclose(found[away], expected[away], atol=3e-6)
        assert (np.abs(found - expected) > 1e-4).mean() < 2e-3


def test_a_pixel_is_the_depth_along_the_axis_and_not_the_distance(env: VecEnv) -> None:
    """Above level ground, a camera that looks straight down sees the same number everywhere."""
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom type="plane" size="9 9 1"/><body name="eye" pos="0 0 .7"/></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    view = View(DepthCamera("depth", "eye", (5, 8), 1.5, orientation=DOWN), model, {}, 1)
    view.render(data.xpos[None].copy(), data.xmat[None].copy(), None, None)
    np.testing.assert_allclose(view.image.numpy(), 0.7, atol=1e-6)


def test_images_of_some_robots_are_those_of_all(env: VecEnv) -> None:
    plant = env.plant
    before = plant.truth()[NAME].clone()
    plant.truth()[NAME].zero_()
    ids = torch.tensor([7, 3])
    plant._look(ids)
    found = plant.truth()[NAME].clone()
    assert torch.equal(found[ids], before[ids])
    assert not found[0].any()
    plant._look()
    assert torch.equal(plant.truth()[NAME], before)


def test_a_state_that_was_gone_back_to_looks_as_it_did_and_goes_on_bit_by_bit() -> None:
    task = PlaceDepth()
    env, ids = VecEnv(task, 4, seed=1), torch.arange(4)
    commands = task.command(torch.zeros(4, task.action_size), task.first_memory(4))
    for _ in range(4):
        env.step(commands)
    kept = env.state(ids)
    first = [env.step(commands).signals[NAME].clone() for _ in range(6)]
    other = VecEnv(task, 4, seed=9)
    other.set_state(ids, kept)
    assert all(torch.equal(other.step(commands).signals[NAME], image) for image in first)
    assert not torch.equal(first[0], first[-1])


def test_a_mesh_that_a_camera_would_look_at_is_refused(tmp_path: Path) -> None:
    spec = mujoco.MjSpec()
    spec.add_mesh(name="thing", uservert=[0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1])
    spec.worldbody.add_geom(name="thing", type=mujoco.mjtGeom.mjGEOM_MESH, meshname="thing")
    spec.worldbody.add_body(name="eye")
    with pytest.raises(CardError, match="shape 'thing' is a mesh; expected boxes, spheres, capsules, cylinders"):
        View(DepthCamera("depth", "eye", (4, 4), 1.0), spec.compile(), {}, 1)


def test_a_camera_on_a_body_that_is_not_there_is_refused() -> None:
    mechanism = dataclasses.replace(load_arm("panda").mechanism, cameras=(DepthCamera("depth", "nose", (4, 4), 1.0),))
    with pytest.raises(CardError, match=r"\['nose'\] of the robot's cameras are not in it"):
        MujocoPlant(mechanism, 1, 0.02)
