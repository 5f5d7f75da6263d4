"""Meshes of the live page against MuJoCo's own geometry."""

from __future__ import annotations

import mujoco
import numpy as np
import trimesh
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from robo_rl.sim.drawing import rotated
from robo_rl.viewer.scene import joint_axes
from robo_rl.viewer.shapes import Instance, color_of, instances, mesh_of, turned

MODEL = """
<mujoco>
  <asset>
    <mesh name="wedge" vertex="0 0 0  .3 0 0  0 .2 0  0 0 .1"/>
    <hfield name="hill" nrow="3" ncol="4" size="1 2 .5 .1" elevation="0 1 2 3  4 5 6 7  8 9 10 11"/>
    <texture name="red" type="2d" builtin="flat" rgb1="1 0 0" width="8" height="8"/>
    <material name="painted" texture="red"/>
  </asset>
  <worldbody>
    <geom type="plane" size="0 0 1"/>
    <geom type="hfield" hfield="hill" pos="0 0 -1"/>
    <body name="a" pos="1 2 3">
      <joint type="slide" axis="0 1 0"/>
      <geom type="mesh" mesh="wedge" pos=".1 0 0" euler="20 30 40"/>
      <geom type="box" size=".1 .2 .3" material="painted"/>
      <geom type="sphere" size=".2" pos="1 0 0" rgba="0 1 0 .5"/>
      <geom type="ellipsoid" size=".1 .2 .3" euler="10 20 30"/>
      <geom type="cylinder" size=".1 .4" euler="0 90 0"/>
      <geom type="capsule" size=".1 .4" euler="90 0 0" pos="0 0 1"/>
      <geom type="box" size="1 1 1" group="3"/>
      <geom type="box" size="1 1 1" rgba="1 1 1 0"/>
      <body name="b" pos="0 0 .5"><joint axis="0 0 1" pos=".1 0 0"/><geom size=".05"/></body>
    </body>
  </worldbody>
</mujoco>
"""


def model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(MODEL)


def solid(of: mujoco.MjModel, instance: Instance) -> trimesh.Trimesh:
    """The mesh as viser places it, in its body's frame."""
    vertices, faces = mesh_of(of, instance.mesh)
    placed = rotated(instance.orientation, vertices * instance.scale) + instance.position
    found = trimesh.Trimesh(placed, faces)
    found.merge_vertices()
    return found


def test_every_shape_that_is_shown_is_there_once_and_hidden_ones_are_not():
    names = [instance.mesh for instance in instances(model())]
    assert sorted(names) == ["ball"] * 5 + ["box", "cylinder", "cylinder", "field 0", "mesh 0"]


def test_shapes_are_as_large_as_mujoco_has_them():
    """Volumes, by trimesh, of closed forms and of the mesh that MuJoCo compiled."""
    of = model()
    volumes = [(i.mesh, solid(of, i).volume) for i in instances(of) if i.body and i.mesh != "ball"]
    expected = {"box": 8 * 0.1 * 0.2 * 0.3, "cylinder": np.pi * 0.1**2 * 0.8, "mesh 0": 0.3 * 0.2 * 0.1 / 6}
    for name, volume in volumes:
        np.testing.assert_allclose(volume, expected[name], rtol=0.02)
    balls = [solid(of, i).volume for i in instances(of) if i.mesh == "ball"]
    radii = [0.2**3, 0.1 * 0.2 * 0.3, 0.1**3, 0.1**3, 0.05**3]
    np.testing.assert_allclose(balls, 4 / 3 * np.pi * np.array(radii), rtol=0.07)  # of 320 triangles


def test_shapes_are_where_mujoco_has_them():
    """Corners lie within the boxes that MuJoCo computed around its own shapes, and reach their sides."""
    of = model()
    shapes = [s for s in range(of.ngeom) if of.geom_bodyid[s] and of.geom_group[s] < 3 and of.geom_rgba[s, 3] > 0]
    parts = [i for i in instances(of) if i.body]
    capsule = next(s for s in shapes if of.geom_type[s] == mujoco.mjtGeom.mjGEOM_CAPSULE)
    for shape in shapes:
        mine = [p for p in parts if p.body == of.geom_bodyid[shape] and _belongs(of, p, shape)]
        points = np.concatenate([solid(of, part).vertices for part in mine])
        turn = Rotation.from_quat(of.geom_quat[shape][[1, 2, 3, 0]])
        local = turn.inv().apply(points - of.geom_pos[shape])
        middle, half = of.geom_aabb[shape, :3], of.geom_aabb[shape, 3:]
        assert (np.abs(local - middle) <= half + 1e-6).all()
        np.testing.assert_allclose(np.ptp(local, axis=0), 2 * half, rtol=0.06)
    assert sum(_belongs(of, p, capsule) for p in parts) == 3


def _belongs(of: mujoco.MjModel, part: Instance, shape: int) -> bool:
    """Whether a part is of a shape, by how far its middle is from the shape's."""
    reach = of.geom_size[shape, 1] if of.geom_type[shape] == mujoco.mjtGeom.mjGEOM_CAPSULE else 1e-6
    kinds = {
        mujoco.mjtGeom.mjGEOM_CAPSULE: ("cylinder", "ball"), mujoco.mjtGeom.mjGEOM_BOX: ("box",),
        mujoco.mjtGeom.mjGEOM_SPHERE: ("ball",), mujoco.mjtGeom.mjGEOM_ELLIPSOID: ("ball",),
        mujoco.mjtGeom.mjGEOM_CYLINDER: ("cylinder",), mujoco.mjtGeom.mjGEOM_MESH: ("mesh 0",),
    }[mujoco.mjtGeom(int(of.geom_type[shape]))]  # fmt: skip
    radius = part.scale[0] == of.geom_size[shape, 0] or part.mesh in ("box", "mesh 0")
    near = np.linalg.norm(part.position - of.geom_pos[shape]) <= reach + 1e-6
    return bool(part.body == of.geom_bodyid[shape] and part.mesh in kinds and near and radius)


def test_a_height_field_is_as_high_as_mujocos_rays_find_it():
    of = model()
    data = mujoco.MjData(of)
    mujoco.mj_forward(of, data)
    vertices, _ = mesh_of(of, "field 0")
    field = next(i for i in instances(of) if i.mesh == "field 0")
    for x, y, z in 0.999 * vertices.reshape(-1, 3) + field.position:
        hit = mujoco.mj_rayHfield(of, data, 1, np.array([x, y, 5.0]), np.array([0.0, 0.0, -1.0]), None)
        np.testing.assert_allclose(5.0 - hit, z, atol=0.02)


def test_colours_are_those_of_the_material_its_texture_or_the_shape():
    of = model()
    found = {i.mesh: i.color for i in instances(of)}
    np.testing.assert_allclose(found["box"], (1.0, 0.0, 0.0, 1.0), atol=0.01)
    glassy = [i for i in instances(of) if i.color[3] < 1]
    assert [i.color for i in glassy] == [(0.0, 1.0, 0.0, 0.5)]
    assert color_of(of, 0) == (0.5, 0.5, 0.5, 1.0)


def test_joint_axes_are_those_of_mujocos_kinematics():
    of = model()
    data = mujoco.MjData(of)
    data.qpos[:] = [0.3, 0.7]
    mujoco.mj_kinematics(of, data)
    poses = np.concatenate([data.xpos[1:], data.xquat[1:][:, (1, 2, 3, 0)]], 1)
    lines = joint_axes(of, poses, 0.4)
    slide, hinge = lines.mean(1) - data.xanchor
    np.testing.assert_allclose(np.cross(slide, data.xaxis[0]), 0.0, atol=1e-6)  # somewhere on its line
    np.testing.assert_allclose(hinge, 0.0, atol=1e-6)
    np.testing.assert_allclose((lines[:, 1] - lines[:, 0]) / 0.4, data.xaxis, atol=1e-6)


@given(st.lists(st.floats(-1, 1), min_size=11, max_size=11))
def test_turns_are_those_of_scipy(numbers):
    first, second, vector = np.array(numbers[:4]), np.array(numbers[4:8]), np.array(numbers[8:])
    if min(np.linalg.norm(first), np.linalg.norm(second)) < 1e-3:
        return
    first, second = first / np.linalg.norm(first), second / np.linalg.norm(second)
    turns = Rotation.from_quat(first), Rotation.from_quat(second)
    np.testing.assert_allclose(rotated(first, vector), turns[0].apply(vector), atol=1e-9)
    both = Rotation.from_quat(turned(first, second))
    np.testing.assert_allclose(both.apply(vector), (turns[0] * turns[1]).apply(vector), atol=1e-9)
