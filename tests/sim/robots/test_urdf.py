"""URDF files against the models that they are written from: read by MuJoCo and by Bullet, they are the same robot."""

from __future__ import annotations

import math
from pathlib import Path
from tempfile import TemporaryDirectory

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from robo_rl.sim.robots.urdf import Style, roll_pitch_yaw, write_urdf

pytestmark = pytest.mark.filterwarnings("ignore:Inertia matrix is too close")  # joints side by side, about one axis
numbers = st.floats(-1.0, 1.0).map(lambda x: round(x, 3))
vectors = st.tuples(numbers, numbers, numbers)
quaternions = st.tuples(numbers, numbers, numbers, numbers).filter(lambda q: np.linalg.norm(q) > 0.1)
axes = vectors.filter(lambda v: np.linalg.norm(v) > 0.1)


@st.composite
def robots(draw) -> mujoco.MjModel:
    """A tree of bodies with turned frames and inertias, and 0 to 3 hinges and slides anywhere in each."""
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    bodies = []
    for k in range(draw(st.integers(1, 5))):
        parent = spec.worldbody if not bodies else draw(st.sampled_from(bodies))
        body = parent.add_body(name=f"b{k}", pos=draw(vectors), quat=draw(quaternions))
        a, b, c = (0.05 + abs(x) for x in draw(vectors))  # half lengths of a box whose inertia it has
        body.mass = 0.1 + abs(draw(numbers))
        body.inertia = body.mass / 3 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])
        body.ipos, body.iquat, body.explicitinertial = draw(vectors), draw(quaternions), True
        kind = draw(st.sampled_from(["BOX", "SPHERE", "CYLINDER", "CAPSULE"]))
        size, place = [0.1, 0.2, 0.3], {"pos": draw(vectors), "quat": draw(quaternions)}
        body.add_geom(name=f"g{k}", type=getattr(mujoco.mjtGeom, f"mjGEOM_{kind}"), size=size, **place)
        for j in range(draw(st.integers(0, 3))):
            slide = draw(st.booleans())
            kind = mujoco.mjtJoint.mjJNT_SLIDE if slide else mujoco.mjtJoint.mjJNT_HINGE
            offset = draw(st.one_of(st.just((0.0, 0.0, 0.0)), vectors))
            zero = draw(st.sampled_from([0.0, 0.3, -0.7]))
            joint = body.add_joint(name=f"b{k}j{j}", type=kind, axis=draw(axes), pos=offset, ref=zero)
            joint.limited, joint.range = draw(st.booleans()), [-3.0, 3.0]
        bodies.append(body)
    return spec.compile()


def read_by_mujoco(text: str) -> mujoco.MjModel:
    spec = mujoco.MjSpec.from_string(text)
    spec.compiler.fusestatic = spec.compiler.discardvisual = False
    spec.compiler.boundmass = spec.compiler.boundinertia = 1e-13  # it wants links to have some
    return spec.compile()


def mass_matrix(model: mujoco.MjModel, data: mujoco.MjData, order: list[int]) -> np.ndarray:
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, full)
    return full[np.ix_(order, order)]


def at(model: mujoco.MjModel, values: dict[str, float]) -> mujoco.MjData:
    """The model's data with its joints at ``values``."""
    data = mujoco.MjData(model)
    for name, value in values.items():
        data.qpos[model.joint(name).qposadr] = value
    mujoco.mj_forward(model, data)
    return data


@settings(max_examples=60)
@given(robots(), st.integers(0, 1000))
def test_mujoco_finds_the_same_poses_and_the_same_inertia_in_the_urdf(own: mujoco.MjModel, seed: int) -> None:
    read = read_by_mujoco(write_urdf(own, "robot", "b0", style=Style(visual=False)))
    names = [own.joint(j).name for j in range(own.njnt)]
    values = dict(zip(names, np.random.default_rng(seed).uniform(-1, 1, own.njnt), strict=True))
    one, other = at(own, values), at(read, values)
    for body in map(own.body, range(1, own.nbody)):
        np.testing.assert_allclose(other.body(body.name).xpos, one.body(body.name).xpos, atol=1e-9)
        np.testing.assert_allclose(other.body(body.name).xmat, one.body(body.name).xmat, atol=1e-9)
    order = [int(read.joint(name).dofadr[0]) for name in names]
    mine = mass_matrix(own, one, [int(own.joint(name).dofadr[0]) for name in names])
    np.testing.assert_allclose(mass_matrix(read, other, order), mine, atol=1e-9 * max(1.0, np.abs(mine).max(initial=0)))
    assert read.ngeom == own.ngeom
    gaps = np.linalg.norm(one.geom_xpos[:, None] - other.geom_xpos[None], axis=2)
    assert gaps.min(1).max() < 1e-9


@settings(max_examples=40)
@given(robots(), st.integers(0, 1000))
def test_bullet_finds_the_same_poses_and_the_same_inertia_in_the_urdf(own: mujoco.MjModel, seed: int) -> None:
    pybullet = pytest.importorskip("pybullet", reason="pybullet is missing: pip install 'robo-rl[dev]'")
    from pybullet_utils.bullet_client import BulletClient

    client = BulletClient(pybullet.DIRECT)
    with TemporaryDirectory() as folder:
        path = Path(folder, "robot.urdf")
        path.write_text(write_urdf(own, "robot", "b0", style=Style(visual=False, zeros=True)))
        robot = client.loadURDF(str(path), useFixedBase=True, flags=pybullet.URDF_USE_INERTIA_FROM_FILE)
    found = [client.getJointInfo(robot, k) for k in range(client.getNumJoints(robot))]
    joints, links = ({info[i].decode(): info[0] for info in found} for i in (1, 12))
    names = [own.joint(j).name for j in range(own.njnt)]
    values = dict(zip(names, np.random.default_rng(seed).uniform(-1, 1, own.njnt), strict=True))
    for name, value in values.items():
        client.resetJointState(robot, joints[name], value)
    data = at(own, values)
    for body in map(own.body, range(1, own.nbody)):
        state = client.getLinkState(robot, links[body.name], computeForwardKinematics=1)
        np.testing.assert_allclose(state[4], data.body(body.name).xpos, atol=1e-5)
        turn = np.array(client.getMatrixFromQuaternion(state[5]))
        np.testing.assert_allclose(turn, data.body(body.name).xmat, atol=1e-5)
    moving = [info[0] for info in found if info[2] != pybullet.JOINT_FIXED]
    if moving:
        positions = [client.getJointState(robot, k)[0] for k in moving]
        matrix = np.array(client.calculateMassMatrix(robot, positions))
        order = [moving.index(joints[name]) for name in names]
        mine = mass_matrix(own, data, [int(own.joint(name).dofadr[0]) for name in names])
        np.testing.assert_allclose(matrix[np.ix_(order, order)], mine, atol=1e-6 * max(1.0, np.abs(mine).max()))
    client.disconnect()


@given(quaternions)
def test_roll_pitch_and_yaw_turn_as_the_rotation_does(quaternion: tuple[float, ...]) -> None:
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, np.array(quaternion) / np.linalg.norm(quaternion))
    assert_turns_as(turn.reshape(3, 3))


@pytest.mark.parametrize("pitch", [math.pi / 2, -math.pi / 2])
def test_roll_pitch_and_yaw_are_exact_where_the_pitch_is_a_right_angle(pitch: float) -> None:
    half = 0.5 * pitch
    for spin in (0.0, 0.7, -2.0):
        turn, quaternion = np.zeros(9), np.zeros(4)
        about = np.array([math.cos(0.5 * spin), math.sin(0.5 * spin), 0.0, 0.0])
        mujoco.mju_mulQuat(quaternion, np.array([math.cos(half), 0.0, math.sin(half), 0.0]), about)
        mujoco.mju_quat2Mat(turn, quaternion)
        assert_turns_as(turn.reshape(3, 3))


def assert_turns_as(turn: np.ndarray) -> None:
    read = Rotation.from_euler("xyz", roll_pitch_yaw(turn)).as_matrix()
    np.testing.assert_allclose(read, turn, atol=1e-12)


FINGERS = """
<mujoco>
  <worldbody>
    <body name="hand">
      <geom type="sphere" size="0.02"/>
      <body name="one"><joint name="one" type="slide" range="0 0.04"/><geom size="0.01"/></body>
      <body name="two"><joint name="two" type="slide" ref="0.01"/><geom size="0.01"/></body>
    </body>
  </worldbody>
  <equality><joint joint1="two" joint2="one" polycoef="0.003 -2 0 0 0"/></equality>
</mujoco>
"""


def test_a_joint_that_follows_another_is_a_mimic_of_it() -> None:
    model = mujoco.MjModel.from_xml_string(FINGERS)
    text = write_urdf(model, "hand", "hand", limits={"one": (40.0, 0.2)}, style=Style(digits=6))
    assert '<mimic joint="one" multiplier="-2" offset="0.013" />' in text
    assert '<limit lower="0" upper="0.04" effort="40" velocity="0.2" />' in text
    data, moved = mujoco.MjData(model), 0.02
    two = 0.01 + 0.003 - 2 * moved  # where MuJoCo's constraint is met, and the mimic says it is
    data.qpos[:] = [moved, two]
    mujoco.mj_forward(model, data)
    assert abs(data.efc_pos[0]) < 1e-12
    assert two == pytest.approx(-2.0 * moved + 0.013)


TETRAHEDRON = "v 0 0 0\nv 0.3 0 0\nv 0 0.2 0\nv 0.05 0.05 0.4\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"


def test_a_mesh_is_where_its_file_has_it_though_mujoco_moves_it_to_its_centre(tmp_path: Path) -> None:
    (tmp_path / "part.obj").write_text(TETRAHEDRON)
    xml = """<mujoco><asset><mesh name="part" file="part.obj" scale="2 1 1"/></asset><worldbody>
    <body name="b" pos="0.1 0.2 0.3" quat="0.5 0.5 -0.1 0.2">
      <joint axis="0 0 1"/><geom type="mesh" mesh="part" pos="0.3 0 0.1" quat="0.9 0.1 0.3 0"/></body>
    </worldbody></mujoco>"""
    (tmp_path / "robot.xml").write_text(xml)
    own = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    with pytest.raises(ValueError, match="mesh, and it is not said how the reader finds its file"):
        write_urdf(own, "robot", "b")
    path = tmp_path / "robot.urdf"
    path.write_text(write_urdf(own, "robot", "b", style=Style(mesh=lambda file: file.name)))
    read = mujoco.MjModel.from_xml_path(str(path))
    clouds = []
    for model in (own, read):
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        mesh = model.geom_dataid[0]
        first, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
        points = model.mesh_vert[first : first + count] @ data.geom_xmat[0].reshape(3, 3).T + data.geom_xpos[0]
        clouds.append(points[np.lexsort(points.T)])
    np.testing.assert_allclose(clouds[0], clouds[1], atol=1e-6)


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ('<joint name="wrist" type="ball"/><geom size="0.1"/>', "joint 'wrist' is of type ball"),
        ('<joint axis="0 0 1"/><geom name="egg" type="ellipsoid" size="0.1 0.2 0.3"/>', "shape 'egg' is a ellipsoid"),
    ],
)
def test_what_a_urdf_can_not_have_is_refused_in_a_sentence(inside: str, message: str) -> None:
    model = mujoco.MjModel.from_xml_string(f'<mujoco><worldbody><body name="b">{inside}</body></worldbody></mujoco>')
    with pytest.raises(ValueError, match=message):
        write_urdf(model, "robot", "b")
