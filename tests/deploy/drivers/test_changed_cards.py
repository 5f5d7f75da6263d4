"""A changed card changes what a driver allows: the contract of a task with it, not a contract that was changed by hand.

Those of the Dynamixel arm, UR and Crazyflie are in the tests of their refusals.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from robo_rl.contract import Contract, Network, Provenance
from robo_rl.deploy.emulate.so101 import Arm
from robo_rl.deploy.robot.drivers.bus_servos.joints import joints_of
from robo_rl.deploy.robot.drivers.bus_servos.robot_file import RobotFile
from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.fci.mapping import Names
from robo_rl.deploy.robot.drivers.fci.robot_file import FrankaFile
from robo_rl.deploy.robot.drivers.feetech.mapping import setup, within_hardware
from robo_rl.deploy.robot.drivers.feetech.registers import P
from robo_rl.deploy.robot.drivers.go2 import JOINTS as LEGS
from robo_rl.deploy.robot.drivers.mavlink.mapping import enough_thrust
from robo_rl.deploy.robot.drivers.so101 import JOINTS
from robo_rl.deploy.robot.drivers.unitree.mapping import mapping
from robo_rl.deploy.robot.drivers.vesc.car import within_hardware as car_within_hardware
from robo_rl.deploy.robot.drivers.vesc.robot_file import CarFile
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.arm import load_arm
from robo_rl.sim.robots.car import CarCard
from robo_rl.sim.robots.legged import load_legged
from robo_rl.sim.robots.multirotor import load_multirotor
from robo_rl.sim.tasks.arm.reach import Reach
from robo_rl.sim.tasks.car.race import CarRace
from robo_rl.sim.tasks.legged.walk import FlatWalk
from robo_rl.sim.tasks.multirotor.rates import QuadrotorRates


def contract(task: Any) -> Contract:
    return task.spec.contract(Provenance("none", 0, 0, "0" * 64), Network((8,), "elu", False))


def test_so101_sets_the_cards_stiffness_and_refuses_a_wider_range() -> None:
    card, calibration = load_arm("so101"), Arm().calibration

    def gains(**changes: Any) -> list[int]:
        joints = tuple(dataclasses.replace(j, **{k: f(j) for k, f in changes.items()}) for j in card.joints)
        of = contract(Reach(dataclasses.replace(card, joints=joints)))
        found = joints_of(of, calibration, RobotFile(), JOINTS, reversed_here=True)
        within_hardware(of, found)
        return [dict(setup(joint))[P] for joint in found][:5]

    assert gains(stiffness=lambda j: j.stiffness) == [16] * 5
    assert gains(stiffness=lambda j: 0.5 * j.stiffness) == [8] * 5
    with pytest.raises(DriverError, match=r"this servo can have a multiple of"):
        gains(stiffness=lambda j: 0.01 * j.stiffness)
    with pytest.raises(DriverError, match=r"calibrate it again over its whole range"):
        gains(upper=lambda j: j.upper + 0.4)


def test_go2_sends_the_cards_gains_and_refuses_stronger_motors() -> None:
    card = load_legged("go2")

    def kp(**changes: float) -> list[float]:
        joints = tuple(dataclasses.replace(j, **changes) for j in card.joints)
        return mapping(contract(FlatWalk(dataclasses.replace(card, joints=joints))), LEGS).kp.tolist()

    assert kp(stiffness=28.0) == [28.0] * 12
    with pytest.raises(DriverError, match="trained with 150 N m/rad"):
        kp(stiffness=150.0)
    with pytest.raises(DriverError, match=r"the policy was trained with 60 N m; the motor has"):
        kp(effort=60.0)


def test_f1tenth_steers_and_drives_as_far_as_the_card_where_the_car_can() -> None:
    card, shipped = load_robot("f1tenth", CarCard), CarFile()
    with pytest.raises(DriverError, match="this car's servo reaches"):
        car_within_hardware(contract(CarRace(card)), shipped)
    with pytest.raises(DriverError, match=r"speed_max of the robot file is 5\.04 m/s"):
        car_within_hardware(contract(CarRace(dataclasses.replace(card, steering_limit=0.26))), shipped)
    car_within_hardware(contract(CarRace(dataclasses.replace(card, steering_limit=0.26, speed_max=5.0))), shipped)


def test_px4_wants_a_vehicle_with_the_thrust_of_the_card() -> None:
    card = load_multirotor("x500")
    enough_thrust(contract(QuadrotorRates(card)), 0.6)
    with pytest.raises(DriverError, match=r"commands up to 14\.9 m/s\^2; .* 0\.88 of its thrust gives 11\.1 m/s\^2"):
        enough_thrust(contract(QuadrotorRates(card)), 0.88)
    heavy = dataclasses.replace(card, mass=1.15 * card.mass)
    enough_thrust(contract(QuadrotorRates(heavy)), 0.88)


def test_franka_pushes_as_hard_as_the_card_within_the_collision_threshold() -> None:
    card = load_arm("panda")
    assert card.impedance is not None
    assert Names(contract(Reach(card)), FrankaFile()).law.clip[0] == pytest.approx(card.impedance.clip[0])
    wider = dataclasses.replace(card.impedance, clip=tuple(3.0 * x for x in card.impedance.clip))
    pushing = contract(Reach(dataclasses.replace(card, impedance=wider)))
    force = wider.stiffness[0] * wider.clip[0]
    with pytest.raises(DriverError, match=f"the law pushes with up to {force:g} N; force_threshold, 30"):
        Names(pushing, FrankaFile())
    assert Names(pushing, FrankaFile(force_threshold=math.ceil(force) + 1.0))
