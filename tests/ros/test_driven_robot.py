"""A robot that the node drives itself, by the driver of the robot's own protocol, behind the same gate."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.controllers.gate.codes import Event, Request, Source, State
from robo_rl.deploy.emulate.go2.wire import FAULTS
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.drivers.driver import DriverError, ForLoop
from robo_rl.deploy.robot.drivers.dynamixel import registers as dynamixel
from robo_rl.deploy.robot.drivers.feetech import registers as feetech
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.deploy.robot.session import Decision, Session
from robo_rl.ros.control import Control
from robo_rl.ros.signal_buffer import SignalBuffer
from robo_rl.ros.wiring import signal_wires

sys.path.append(str(Path(__file__).parents[1] / "deploy/drivers"))
import emulated_arm
import emulated_car
import emulated_dynamixel
import emulated_go2
import emulated_ur
from emulated_go2 import AHEAD

CUBE = {"cube_position": (0.2, 0.0, 0.015), "cube_position_setpoint": (0.15, 0.1, 0.015)}  # m


class Node:
    """What the node does in every step, in virtual time, with an emulated robot."""

    def __init__(self, mode: str, policy: Any, driver: Any, world: Any, constants: dict[str, np.ndarray]) -> None:
        self.world, self.driver, contract = world, driver, policy.contract
        self.period = contract.control_period
        self.runner = Session(policy, mode)
        wires = [wire for wire in signal_wires(contract.signals) if wire.name not in (*driver.measured, *constants)]
        self.sent: list[np.ndarray] = []
        self.decisions: list[Decision] = []
        driver.connect()
        self.control = Control(
            self.runner, SignalBuffer(contract, wires), self.sent.append, self.decisions.append,
            clock=self.microseconds, constants=constants, robot=ForLoop(driver, contract, {}, constants),
        )  # fmt: skip
        self.control.watchdog._period = 60.0  # a busy computer is no fault of the policy

    def microseconds(self) -> int:
        return self.world.monotonic_ns() // 1000

    def steps(self, count: int, request: Request = Request.NONE, until: Callable[[], Any] = lambda: False) -> None:
        for _ in range(count):
            self.control._requests |= request
            request = Request.NONE
            now = self.microseconds()
            self.control._taken, self.control._operator = {}, now
            self.control._step(now)
            self.world.sleep(self.period)
            if until():
                return

    @property
    def state(self) -> State:
        return self.runner.gate.state

    def begin(self) -> None:
        """Arm, and let the policy take over."""
        self.steps(10)
        self.steps(2, Request.ARM)
        self.control.enable()
        self.steps(400, until=lambda: self.runner.reserve.arrived)
        self.steps(1, Request.ACTIVATE)
        assert self.state == State.ACTIVE


class Walking(Node):
    """With the emulated Go2."""

    def __init__(self, mode: str = "live") -> None:
        self.session = emulated_go2.Session()
        self.robot = self.session.robot
        super().__init__(mode, self.session.policy, self.session.driver, self.session.world, AHEAD)


def test_the_robot_walks_behind_the_nodes_gate_and_lies_down_when_it_is_disarmed() -> None:
    node = Walking()
    node.begin()
    node.steps(100)
    assert node.robot.truth["position"][0] > 0.5
    assert node.sent
    node.steps(1, Request.DISARM)
    node.control.enabled = False
    count = len(node.sent)
    node.steps(100)
    assert len(node.sent) == count
    assert not node.robot.stiff
    assert node.state == State.IDLE
    assert not node.session.driver.health().problems
    node.steps(2, Request.ARM)
    assert node.state == State.READY, "it was damped all the time, and can be armed again"


def test_a_fault_of_the_robot_stops_it_and_is_told_in_the_gates_sentence() -> None:
    node = Walking()
    node.begin()
    node.steps(20)
    FAULTS["motor hot"].at_once(node.robot)
    node.steps(10)
    assert node.state == State.FAULT
    assert not node.robot.stiff
    fault = next(d for d in node.decisions if d.output.events & Event.FAULTED)
    assert "FR_thigh_joint has 95 °C" in node.control.explain(fault)


@pytest.mark.parametrize("mode", ["dry_run", "shadow"])
def test_on_the_lower_rungs_of_the_ladder_the_robot_is_never_commanded(mode: str) -> None:
    node = Walking(mode)
    node.steps(10)
    node.steps(1, Request.ARM)
    node.control.enable()
    node.steps(200)
    assert node.decisions[-1].output.source != Source.SILENT
    assert not node.control.robot.enabled  # type: ignore[union-attr]
    assert node.world.links[-1].keeper.sent == 0


def test_a_driver_that_refuses_to_enable_leaves_the_gate_idle_and_commands_nothing_even_when_the_cause_goes() -> None:
    node = Walking()
    node.steps(10)
    joints = node.session.driver.joints
    node.session.driver.joints = tuple(type(j)(j.name, 0.5, j.upper, j.effort) for j in joints)
    node.steps(1, Request.ARM)
    node.control.enable()
    node.steps(3)
    refused = next(decision for decision in node.decisions if decision.doubt)
    assert "the driver refused: FR_hip_joint is at" in node.control.verdict(refused, State.READY)[1]
    node.session.driver.joints = joints  # a person has moved it
    node.steps(50)
    assert node.state == State.IDLE
    assert not node.control.robot.enabled  # type: ignore[union-attr]
    assert node.world.links[-1].keeper.sent == 0


@pytest.mark.parametrize("session", [emulated_arm.Session, emulated_dynamixel.Session])
def test_an_arm_of_bus_servos_places_a_cube_behind_the_nodes_gate_and_holds_when_it_is_unplugged(session: Any) -> None:
    policy = Policy.load("zoo:arm-place-so101", 50)
    arm = session(policy.contract)
    cube = {name: np.array(place, np.float32) for name, place in CUBE.items()}
    node = Node("live", policy, arm.driver, arm.clock, cube)
    node.begin()
    home = arm.arm.position
    node.steps(100)
    assert node.state == State.ACTIVE
    assert np.abs(arm.arm.position - home).max() > 0.2
    arm.wire.begin("unplugged")
    node.steps(15)
    assert node.state == State.FAULT
    fault = next(d for d in node.decisions if d.output.events & Event.FAULTED)
    assert "the port is gone" in node.control.explain(fault)
    node.steps(100)
    assert np.abs(arm.arm.velocity).max() < 0.05
    on = (dynamixel if session is emulated_dynamixel.Session else feetech).TORQUE_ENABLE
    assert all(servo.get(on) == 1 for servo in arm.arm.servos)


def test_an_arm_of_universal_robots_moves_behind_the_nodes_gate_and_rests_after_a_protective_stop() -> None:
    arm = emulated_ur.Session()
    node = Node("live", arm.policy, arm.driver, arm.world, arm.told)
    node.begin()
    home = arm.arm.joints.copy()
    node.steps(25)
    assert np.abs(arm.arm.joints - home).max() > 0.1
    arm.arm.stop_protectively()
    node.steps(15)
    assert node.state == State.FAULT
    fault = next(d for d in node.decisions if d.output.events & Event.FAULTED)
    assert "'protective stop'" in node.control.explain(fault)
    assert np.abs(arm.arm.rates).max() < 1e-3


def test_a_car_races_behind_the_nodes_gate_and_is_braked_when_the_node_dies() -> None:
    car = emulated_car.Session()
    node = Node("live", car.policy, car.driver, car.world, {})
    node.begin()
    node.steps(80)
    assert car.racer.speed > 3.0
    car.world.sleep(2.0)  # the node does nothing more
    assert car.racer.speed < 0.1
    assert car.racer.drive[0] == "brake"
    node.steps(3)
    assert node.state == State.FAULT


STATUE = """
import numpy as np
from robo_rl.deploy.robot.drivers.driver import Health, Identity, Silence

class Statue:
    silence, guard = Silence.STOPS, ""
    measured = ("orientation", "angular_velocity", "joint_position", "joint_velocity")
    def __init__(self, contract):
        self.contract = contract
    def connect(self):
        return Identity("statue", {"height": "2 m"})
    def read(self, now):
        values = {name: np.full(self.contract.signal(name).size, 0.5, np.float32) for name in self.measured}
        return {name: (value, now) for name, value in values.items()}
    def enable(self): pass
    def write(self, commands, mode): pass
    def disable(self): pass
    def health(self):
        return Health((), {"height m": 2.0})
    def close(self): pass

def make(contract, settings):
    return Statue(contract)
"""


@pytest.fixture
def node(tmp_path: Path, domain: int) -> Iterator[Callable[..., Any]]:
    """``node(use_sim_time=…)``: a node with the parameters of the policy's, whose driver is a file's."""
    import rclpy
    from rclpy.parameter import Parameter

    from robo_rl.ros.parameters import declare

    (tmp_path / "statue.py").write_text(STATUE)
    rclpy.init(domain_id=domain)
    made = []

    def make(**parameters: Any) -> Any:
        given = {"driver": str(tmp_path / "statue.py"), **parameters}
        overrides = [Parameter(name, value=value) for name, value in given.items()]
        made.append(rclpy.create_node("policy", parameter_overrides=overrides))
        declare(made[-1])
        return made[-1]

    yield make
    for one in made:
        one.destroy_node()
    rclpy.shutdown()


def test_what_a_users_driver_measures_is_published_with_its_time(node) -> None:
    import rclpy
    from sensor_msgs.msg import Imu, JointState

    from robo_rl.ros import quality
    from robo_rl.ros.driven import DrivenRobot

    contract = Bundle.read("zoo:go2-flat").contract
    one = node()
    driven = DrivenRobot(one, contract, AHEAD, signal_wires(contract.signals))
    heard: dict[str, Any] = {}
    for kind, topic in ((Imu, "imu"), (JointState, "joint_states")):
        one.create_subscription(
            kind, topic, lambda message, topic=topic: heard.update({topic: message}), quality.SENSOR
        )
    now = 5_000_000
    while len(heard) < 2:
        now += 1000
        driven.publish(driven.robot.read(now), now + 250, 10_000_000_000)
        rclpy.spin_once(one, timeout_sec=0.1)
    imu, joints = heard["imu"], heard["joint_states"]
    assert (imu.header.stamp.sec, imu.header.stamp.nanosec) == (9, 999_750_000)
    assert imu.header.frame_id == "base_link"
    assert [imu.orientation.w, imu.angular_velocity.z] == [0.5, 0.5]
    assert imu.orientation_covariance[0] == 0.0
    assert imu.angular_velocity_covariance[0] == 0.0
    assert imu.linear_acceleration_covariance[0] == -1.0
    assert list(joints.name) == list(contract.signal("joint_position").elements)
    assert list(joints.position) == list(joints.velocity) == [0.5] * 12
    driven.close()


def test_a_driven_robot_has_no_simulated_time_and_needs_all_signals(node) -> None:
    from robo_rl.ros.driven import DrivenRobot

    contract = Bundle.read("zoo:go2-flat").contract
    wires = signal_wires(contract.signals)
    with pytest.raises(DriverError, match="'use_sim_time' is true, but a driver's robot is in real time"):
        DrivenRobot(node(use_sim_time=True), contract, AHEAD, wires)
    with pytest.raises(DriverError, match="a simulated robot for ROS is 'robo-rl ros twin'"):
        DrivenRobot(node(driver="simulated"), contract, AHEAD, wires)
    with pytest.raises(DriverError, match=r"nothing gives the signals \['linear_velocity_command'\]"):
        DrivenRobot(node(), contract, ["yaw_rate_command"], wires)
