"""What plants give to be drawn, against MuJoCo's kinematics of their physical models and against closed forms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import mujoco
import numpy as np
import pytest
import torch

from robo_rl.sim.drawing import (
    Arrow,
    Sphere,
    Trail,
    centers,
    drawn,
    has_ground,
    has_terrain,
    read_shapes,
    seen,
    size_of,
)
from robo_rl.sim.plants.bullet import BulletPlant
from robo_rl.sim.plants.drawing import at_rest, draw
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.multirotor import MultirotorPlant
from robo_rl.sim.plants.multirotor.drawing import SLOWDOWN, draw_multirotor
from robo_rl.sim.plants.multirotor.mujoco import FlyingMujoco
from robo_rl.sim.robots.legged import load_legged
from robo_rl.sim.robots.multirotor import load_multirotor
from robo_rl.sim.scenes.terrain import rough_ground
from robo_rl.sim.tasks.loading import load_task

if TYPE_CHECKING:
    from robo_rl.sim.plants.warp import WarpPlant

EVERYONE = torch.arange(2)
GO2 = load_legged("go2").mechanism


def in_warp() -> WarpPlant:
    from robo_rl.sim.plants.warp import WarpPlant  # takes seconds

    return WarpPlant(GO2, 2, 0.02, device="cpu")


ENGINES = {
    "mujoco": lambda: MujocoPlant(GO2, 2, 0.02),
    "warp": in_warp,
    "bullet": lambda: BulletPlant(GO2, 2, 0.02, processes=1),
}


def attitude(degrees: float) -> torch.Tensor:
    """A turn about an axis that is none of the coordinates'."""
    axis = np.array([0.6, 0.0, 0.8])
    half = np.radians(degrees) / 2
    return torch.tensor([[*(np.sin(half) * axis), np.cos(half)]])


def put(plant) -> None:
    """Two robots at places and in attitudes of their own, legs bent differently."""
    joints = torch.tensor([[joint.home for joint in GO2.joints]]).repeat(2, 1) + torch.tensor([[0.1], [-0.2]])
    plant.place(
        EVERYONE,
        position=torch.tensor([[0.5, -1.0, 0.6], [2.0, 0.3, 0.9]]),
        orientation=torch.cat([attitude(50.0), attitude(-20.0)]),
        linear_velocity=torch.zeros(2, 3),
        angular_velocity=torch.zeros(2, 3),
        joint_position=joints,
        joint_velocity=torch.zeros_like(joints),
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_feet_are_drawn_where_the_engine_has_them(engine):
    plant = ENGINES[engine]()
    put(plant)
    model, poses = plant.drawing(), plant.poses(EVERYONE)
    assert poses.shape == (2, model.nbody - 1, 7)
    shapes = list(seen(model)[model.geom_bodyid[seen(model)] > 0])
    feet = [shapes.index(model.geom(foot).id) for foot in GO2.points]
    wanted = plant.truth()["foot_position"].unflatten(1, (-1, 3))
    np.testing.assert_allclose(centers(model, poses)[:, feet], wanted, atol=2e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_push_changes_the_velocity_of_the_pushed_robot_alone(engine):
    plant = ENGINES[engine]()
    put(plant)
    before = plant.truth()["linear_velocity"].clone()
    plant.push(torch.tensor([1]), torch.tensor([0.5, -0.25, 1.0]))
    change = plant.truth()["linear_velocity"] - before
    np.testing.assert_allclose(change, [[0.0, 0.0, 0.0], [0.5, -0.25, 1.0]], atol=1e-6)


@pytest.mark.parametrize("make", [MultirotorPlant, FlyingMujoco])
def test_a_pushed_vehicle_flies_on_with_the_velocity_that_it_was_given(make):
    plant = make(load_multirotor("crazyflie"), 2, 0.01)
    plant.param("body_drag")[:] = 0.0
    plant.param("rotor_drag")[:] = 0.0
    plant.push(torch.tensor([0]), torch.tensor([1.0, 0.0, 0.0]))
    plant.step({"rotor_speed": plant.truth()["rotor_speed"].clone()})
    np.testing.assert_allclose(plant.truth()["position"][:, 0], [0.01, 0.0], atol=1e-6)


@pytest.mark.parametrize("name", ["crazyflie", "hummingbird"])
def test_rotor_discs_are_where_the_card_has_its_rotors_and_as_large(name):
    card = load_multirotor(name)
    model = draw_multirotor(card)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    discs = [model.geom(f"{rotor.name} disc").id for rotor in card.rotors]
    np.testing.assert_allclose(model.geom_size[discs, 0], card.propeller_radius)
    np.testing.assert_allclose(data.geom_xpos[discs][:, :2], [rotor.position[:2] for rotor in card.rotors], atol=1e-9)
    front = {tuple(model.geom_rgba[disc]) for disc in discs if data.geom_xpos[disc, 0] > 0}
    rear = {tuple(model.geom_rgba[disc]) for disc in discs if data.geom_xpos[disc, 0] < 0}
    assert len(front) == len(rear) == 1
    assert front != rear


def test_blades_turn_as_the_card_says_and_slower_than_they_are():
    card = load_multirotor("crazyflie")
    plant = MultirotorPlant(card, 1, 0.01)
    before = plant.poses(torch.arange(1))[0]
    after = plant.poses(torch.arange(1))[0]
    turned = 2 * (np.arctan2(after[1:, 5], after[1:, 6]) - np.arctan2(before[1:, 5], before[1:, 6]))
    turned = (turned + np.pi) % (2 * np.pi) - np.pi
    speed = card.hover_speed * 0.01 / SLOWDOWN
    np.testing.assert_allclose(turned, [speed * (1 if r.spin == "ccw" else -1) for r in card.rotors], rtol=1e-3)


def test_the_body_of_a_vehicle_is_drawn_where_it_is():
    plant = MultirotorPlant(load_multirotor("crazyflie"), 2, 0.01)
    plant.current.position[1] = torch.tensor([1.0, 2.0, 3.0])
    plant.current.orientation[1] = attitude(70.0)
    np.testing.assert_allclose(plant.poses(torch.tensor([1]))[0, 0], [1.0, 2.0, 3.0, *attitude(70.0)[0]], atol=1e-6)


def test_a_standing_robot_touches_the_ground_with_its_feet():
    model, poses = at_rest(GO2)
    shapes = list(seen(model)[model.geom_bodyid[seen(model)] > 0])
    feet = [model.geom(foot).id for foot in GO2.points]
    lowest = centers(model, poses)[[shapes.index(foot) for foot in feet], 2] - model.geom_size[feet, 0]
    np.testing.assert_allclose(lowest.min(), 0.0, atol=1e-6)


def test_terrain_is_told_from_a_plane_and_from_a_table():
    flat, rough = draw(GO2), draw(GO2, rough_ground(rows=1))
    size = size_of(flat, at_rest(GO2)[1])
    assert has_ground(flat)
    assert not has_terrain(flat, size)
    assert has_terrain(rough, size)
    table = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom type='box' size='.8 .8 .4'/>"
        "<body><joint/><geom size='.3'/></body></worldbody></mujoco>"
    )
    assert has_ground(table)
    assert not has_terrain(table, 0.3)
    assert not has_ground(draw_multirotor(load_multirotor("crazyflie")))


def test_rough_ground_is_drawn_as_high_as_it_is():
    """By rays of MuJoCo from above onto the drawing, against the heights of the ground's grid."""
    ground = rough_ground(rows=2)
    model = draw(GO2, ground)
    data = mujoco.MjData(model)
    data.qpos[:2] = 500.0  # the robot is out of the way
    mujoco.mj_forward(model, data)
    random = np.random.default_rng(0)
    reach = np.array(ground.reach) - 1.0
    for x, y in random.uniform(-reach, reach, (200, 2)):
        hit = mujoco.mj_ray(model, data, [x, y, 5.0], [0.0, 0.0, -1.0], None, 1, -1, np.zeros(1, np.int32), None)
        height = float(ground.height(torch.tensor(x), torch.tensor(y)))
        near = ground.height(torch.tensor([x - 0.02, x + 0.02, x, x]), torch.tensor([y, y, y - 0.02, y + 0.02]))
        if np.ptp(near.numpy()) < 0.03:  # not at an edge
            assert 5.0 - hit == pytest.approx(height, abs=0.01)


URDF = """<robot name="r"><link name="base"><inertial><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry><sphere radius="0.3"/></geometry></visual>
<collision><geometry><box size="0.3 0.2 0.1"/></geometry></collision></link></robot>"""


def test_of_a_urdf_the_visual_shape_is_seen_and_the_collision_shape_is_not(tmp_path: Path):
    (tmp_path / "r.urdf").write_text(URDF)
    model = drawn(read_shapes(tmp_path / "r.urdf"))
    assert model.ngeom == 2
    assert [int(model.geom_type[shape]) for shape in seen(model)] == [int(mujoco.mjtGeom.mjGEOM_SPHERE)]


def test_of_a_urdf_whose_visual_mesh_is_missing_the_collision_shape_is_seen(tmp_path: Path):
    mesh = '<mesh filename="package://elsewhere/base.dae"/>'
    (tmp_path / "r.urdf").write_text(URDF.replace('<sphere radius="0.3"/>', mesh))
    model = drawn(read_shapes(tmp_path / "r.urdf"))
    assert [int(model.geom_type[shape]) for shape in seen(model)] == [int(mujoco.mjtGeom.mjGEOM_BOX)]


def test_the_markers_of_a_hovering_vehicle_are_its_set_point_and_ways():
    task = load_task("quadrotor-track")
    truth = {name: torch.full((3, 3), value) for name, value in (("position", 1.0), ("position_setpoint", 2.0))}
    sphere, planned, flown = task.markers(truth)
    assert isinstance(sphere, Sphere)
    assert isinstance(planned, Trail)
    assert isinstance(flown, Trail)
    assert planned.seconds is None
    for marker, place in ((sphere, 2.0), (planned, 2.0), (flown, 1.0)):
        np.testing.assert_array_equal(marker.position, np.full((3, 3), place))


def test_the_markers_of_a_walker_are_velocities_in_the_world_and_feet_that_bear_it():
    """A robot that heads along world y and is told to go ahead: the arrow points along y."""
    task = load_task("go2-flat")
    truth = {
        "position": torch.tensor([[1.0, 2.0, 0.3]]),
        "orientation": torch.tensor([[0.0, 0.0, 0.5**0.5, 0.5**0.5]]),
        "linear_velocity": torch.tensor([[0.3, 0.4, 5.0]]),
        "linear_velocity_command": torch.tensor([[1.0, 0.0]]),
        "foot_position": torch.arange(12.0)[None],
        "foot_force": torch.tensor([[40.0, 0.0, 40.0, 0.0]]),
    }
    true, wanted, *feet = task.markers(truth)
    assert isinstance(true, Arrow)
    assert isinstance(wanted, Arrow)
    direction = [wanted.vector[0] / wanted.vector[0].norm(), true.vector[0] / true.vector[0].norm()]
    np.testing.assert_allclose(direction[0], [0.0, 1.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(direction[1], [0.6, 0.8, 0.0], atol=1e-6)
    places = np.stack([foot.position[0] for foot in feet])
    np.testing.assert_array_equal(np.isfinite(places).all(1), [True, False, True, False])
    np.testing.assert_array_equal(places[2], [6.0, 7.0, 8.0])
