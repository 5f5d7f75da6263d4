"""The URDF files are what the robot cards say, and MuJoCo reads them."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from robo_rl.sim.robots import load_robot, robot_names
from robo_rl.sim.robots.car import CarCard
from robo_rl.sim.robots.legged import LeggedCard
from robo_rl.sim.robots.multirotor import MultirotorCard

PACKAGE = Path(__file__).parents[2] / "ros2_ws/src/robo_rl_description"
LEGGED = [name for name in robot_names() if isinstance(load_robot(name), LeggedCard)]
MULTIROTORS = [name for name in robot_names() if isinstance(load_robot(name), MultirotorCard)]


@pytest.mark.parametrize("name", robot_names())
def test_the_urdf_in_the_package_is_the_one_of_the_card(name: str):
    assert (PACKAGE / f"urdf/{name}.urdf").read_text() == load_robot(name).urdf()


@pytest.mark.parametrize("name", MULTIROTORS)
def test_mujoco_finds_mass_inertia_and_rotors_of_the_card_in_the_urdf(name: str):
    card = load_robot(name)
    assert isinstance(card, MultirotorCard)
    spec = mujoco.MjSpec.from_string((PACKAGE / f"urdf/{name}.urdf").read_text())
    spec.compiler.fusestatic = False
    spec.compiler.discardvisual = False
    base = spec.body("base_link")
    assert base.mass == card.mass
    np.testing.assert_allclose(np.sort(base.fullinertia[:3]), np.sort(card.inertia), rtol=1e-6)
    names = [joint.name for joint in spec.joints]
    assert names == list(card.rotor_names)
    for rotor in card.rotors:
        np.testing.assert_allclose(spec.body(f"{rotor.name}_link").pos, rotor.position)


def test_mujoco_finds_wheels_and_lidar_of_a_car_where_its_card_has_them():
    card = load_robot("f1tenth")
    assert isinstance(card, CarCard)
    spec = mujoco.MjSpec.from_string((PACKAGE / "urdf/f1tenth.urdf").read_text())
    spec.compiler.fusestatic = False
    assert spec.body("base_link").mass == card.mass
    np.testing.assert_allclose(spec.body("base_link").ipos, [card.rear_axle, 0.0, card.height])
    for side in ("left", "right"):
        assert spec.body(f"{side}_front_wheel").pos[0] == pytest.approx(card.wheelbase)
    np.testing.assert_allclose(spec.body("laser").pos[0], card.rear_axle + card.lidar_position[0])
    low, middle, high = np.sort(spec.body("base_link").fullinertia[:3])
    assert low + middle >= high  # as of every body
    assert card.inertia in (low, middle, high)
    assert [joint.range[1] for joint in spec.joints] == [card.steering_limit] * 2


@pytest.mark.parametrize("name", LEGGED)
def test_mujoco_finds_bodies_joints_and_feet_of_the_model_in_the_urdf(name: str):
    """The base of a URDF is fixed to the world, so feet are compared relative to the base, in the stand pose."""
    card = load_robot(name)
    assert isinstance(card, LeggedCard)
    own = mujoco.MjModel.from_xml_path(str(card.model))
    spec = mujoco.MjSpec.from_string((PACKAGE / f"urdf/{name}.urdf").read_text())
    spec.compiler.fusestatic = False
    spec.compiler.discardvisual = False
    read = spec.compile()
    for body in map(own.body, range(1, own.nbody)):
        other = read.body(body.name)
        np.testing.assert_allclose(other.mass, body.mass, rtol=1e-6)
        np.testing.assert_allclose(other.ipos, body.ipos, atol=1e-7)
        np.testing.assert_allclose(other.inertia, body.inertia, rtol=1e-4)
    for joint in card.joints:
        np.testing.assert_allclose(read.joint(joint.name).range, (joint.lower, joint.upper), rtol=1e-6)
        np.testing.assert_allclose(read.joint(joint.name).axis, own.joint(joint.name).axis, atol=1e-9)
    places = []
    for model in (own, read):
        data = mujoco.MjData(model)
        for joint in card.joints:
            data.qpos[model.joint(joint.name).qposadr] = joint.stand
        mujoco.mj_forward(model, data)
        base = data.body(card.base).xpos
        sites = {model.site(k).name for k in range(model.nsite)}
        feet = [
            (data.body if model is read else data.site if foot in sites else data.geom)(foot).xpos for foot in card.feet
        ]
        places.append(np.array(feet) - base)
    np.testing.assert_allclose(places[0], places[1], atol=1e-6)
