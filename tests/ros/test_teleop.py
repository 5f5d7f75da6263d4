"""Steering: from keys, sticks and Twists to the set-points that a contract asks for, and to nothing when let go."""

from __future__ import annotations

import dataclasses
import os
import pty
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from geometry_msgs.msg import Twist, TwistStamped
from hypothesis import given, settings
from hypothesis import strategies as st
from sensor_msgs.msg import Joy

from robo_rl.contract import Signal
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.ros.message_encoding import compose
from robo_rl.ros.reading import read
from robo_rl.ros.teleoperation import LEASH, Teleoperation, TeleoperationError
from robo_rl.ros.wiring import WiringError, signal_wires
from tests.suite import representatives

XYZ = ("x", "y", "z")
BODY = "base_link"


def operator(name: str, elements: tuple[str, ...], unit: str, bound: float, **more: Any) -> Signal:
    low, high = (-bound,) * len(elements), (bound,) * len(elements)
    return Signal(name, elements, unit, "body", low, high, source="operator", **more)


WALK = (operator("linear_velocity_command", ("x", "y"), "m/s", 3.0), operator("yaw_rate_command", ("z",), "rad/s", 3.0))


def steered(bundle: Path, signals: tuple[Signal, ...], speed: float = 0.5, turn: float = 1.0) -> Teleoperation:
    contract = Bundle.read(bundle).contract
    sensed = tuple(s for s in contract.signals if s.source == "sensor")
    changed = dataclasses.replace(contract, signals=(*sensed, *signals))
    return Teleoperation(changed, tuple(s.name for s in signals), speed, turn)


def test_a_walking_robot_gets_the_wished_velocities_and_zero_when_let_go(bundle_file: Path):
    robot = steered(bundle_file, WALK)
    values = robot.setpoints(np.array([0.3, -0.2, 9.0, 0.7]), 0.05, {})
    np.testing.assert_allclose(values["linear_velocity_command"], [0.3, -0.2])
    np.testing.assert_allclose(values["yaw_rate_command"], [0.7])
    still = robot.setpoints(np.zeros(4), 0.05, {})
    assert all((value == 0).all() for value in still.values())


def test_no_more_is_asked_for_than_training_met(bundle_file: Path):
    met = tuple(dataclasses.replace(s, seen_low=(-0.4,) * s.size, seen_high=(0.25,) * s.size) for s in WALK)
    values = steered(bundle_file, met).setpoints(np.array([5.0, -5.0, 0.0, 5.0]), 0.05, {})
    np.testing.assert_allclose(values["linear_velocity_command"], [0.25, -0.25])
    np.testing.assert_allclose(values["yaw_rate_command"], [0.25])


def test_a_flying_robot_gets_a_place_that_moves_from_where_it_is_and_stays_when_let_go(bundle_file: Path):
    contract = Bundle.read(bundle_file).contract
    robot = Teleoperation(contract, ("position_setpoint", "linear_velocity_setpoint"), 0.5, 1.0)
    assert robot.setpoints(np.array([1, 0, 0, 0]), 0.05, {}) == {}  # where it is is not known
    here = {"position": np.array([1.0, 2.0, 3.0])}
    first = robot.setpoints(np.zeros(4), 0.05, here)["position_setpoint"]
    np.testing.assert_allclose(first, [1, 2, 3])
    for _ in range(20):
        moved = robot.setpoints(np.array([0.0, 0.0, 0.5, 0.0]), 0.05, here)["position_setpoint"]
    np.testing.assert_allclose(moved, [1, 2, 3.5])
    for _ in range(20):
        stays = robot.setpoints(np.zeros(4), 0.05, {"position": np.array([7.0, 7.0, 7.0])})["position_setpoint"]
    np.testing.assert_allclose(stays, moved)


@given(wishes=st.lists(st.tuples(*[st.floats()] * 4), min_size=1, max_size=40))
@settings(max_examples=50, deadline=None)
def test_no_wish_leads_out_of_the_contract_or_off_the_leash(bundle_file: Path, wishes: list[tuple[float, ...]]):
    contract = Bundle.read(bundle_file).contract
    robot = Teleoperation(contract, ("position_setpoint", "linear_velocity_setpoint"), 2.0, 1.0)
    for wish in wishes:
        values = robot.setpoints(np.array(wish), 0.5, {"position": np.zeros(3)})
        for name, value in values.items():
            signal = contract.signal(name)
            assert ((value >= signal.lower) & (value <= signal.upper)).all()
        assert np.linalg.norm(values["position_setpoint"]) <= LEASH + 1e-6


def test_what_is_neither_velocity_nor_place_is_refused(bundle_file: Path):
    with pytest.raises(TeleoperationError, match="neither a velocity nor a position"):
        steered(bundle_file, (operator("stiffness", ("hip",), "N*m/rad", 1.0),))
    with pytest.raises(TeleoperationError, match="teleop is not needed"):
        steered(bundle_file, ())


@pytest.mark.parametrize(("kind", "message"), [("Twist", Twist), ("TwistStamped", TwistStamped)])
def test_cmd_vel_of_either_type_is_read_by_element(kind: str, message: type):
    wires = signal_wires(WALK, twist=kind)
    assert {wire.topic for wire in wires} == {"cmd_vel"}
    values = {"linear_velocity_command": np.array([0.3, -0.1]), "yaw_rate_command": np.array([0.5])}
    sent = compose(wires, {s.name: s for s in WALK}, values, 5)
    assert isinstance(sent, message)
    twist = sent.twist if kind == "TwistStamped" else sent
    assert (twist.linear.x, twist.linear.y, twist.angular.z) == (0.3, -0.1, 0.5)
    for wire, signal in zip(wires, WALK, strict=True):
        np.testing.assert_allclose(read(wire.kind, wire.field, sent, signal), values[signal.name], rtol=1e-6)


def test_an_unknown_type_of_cmd_vel_is_refused():
    with pytest.raises(WiringError, match="expected one of"):
        signal_wires(WALK, twist="Vector3")


class Hand:
    """A person at a terminal: ``robo-rl ros teleop`` with a keyboard of its own."""

    def __init__(self, flight: Any, *arguments: str) -> None:
        self._keys, theirs = pty.openpty()
        flight.start("teleop", *arguments, stdin=theirs)
        os.close(theirs)

    def press(self, key: str) -> None:
        os.write(self._keys, key.encode())


@pytest.fixture
def grounded(flight, bundle_file: Path) -> Any:
    """A quadrotor in simulated time that nobody gives set-points to."""
    flight.start("twin", "--use-sim-time", "--parameter", "operator:=false")
    flight.start("policy", str(bundle_file), "--use-sim-time")
    flight.until(lambda: flight.truth, "the twin")
    flight.operator.do("configure")
    return flight


def height(flight: Any) -> float:
    return flight.truth[-1][1][2]


@pytest.mark.slow
def test_keys_lift_a_quadrotor_and_the_space_key_stops_it(grounded):
    hand = Hand(grounded, "--use-sim-time")
    grounded.until(lambda: "STOP" in grounded.log("teleop"), "teleop")
    grounded.patiently("activate")
    grounded.patiently("engage")

    def lifted() -> bool:
        hand.press("r")
        return height(grounded) > 0.5

    grounded.until(lifted, "half a metre")
    assert grounded.state == "ACTIVE"

    def stays() -> bool:
        """Over a second. Keys may still be under way for a while, and then the vehicle has to get there."""
        end = grounded.truth[-1][0]
        places = [place[2] for time, place in grounded.truth if time > end - 1.0]
        return end > begun + 1.0 and len(places) > 10 and np.ptp(places) < 0.1

    begun = grounded.truth[-1][0]
    grounded.until(stays, "a height that stays without a key")
    assert grounded.state == "ACTIVE"
    hand.press(" ")
    assert grounded.fault()["reason"] == "OPERATOR_STOP"


@pytest.mark.slow
@pytest.mark.parametrize("source", representatives(["joy", "Twist"], ["joy"]))
def test_sticks_and_twists_lift_a_quadrotor(grounded, source: str):
    grounded.start("teleop", "--source", source, "--use-sim-time")
    node = grounded.operator.node
    topic, kind = ("joy", Joy) if source == "joy" else ("cmd_vel", Twist)
    publisher = node.create_publisher(kind, topic, 1)
    grounded.until(lambda: "steering" in grounded.log("teleop"), "teleop")
    grounded.patiently("activate")
    grounded.patiently("engage")

    def push(enabled: bool, stick: float = 1.0) -> None:
        message = kind()
        if source == "joy":
            message.axes, message.buttons = [0.0, 0.0, 0.0, 0.0, stick], [0, 0, 0, 0, int(enabled)]
        elif enabled:
            message.linear.z = 0.5
        publisher.publish(message)

    def lifted() -> bool:
        push(False, stick=0.0)  # an axis counts once it was seen at rest; a busy computer may miss messages
        grounded.operator.wait(lambda: False, 0.1)
        push(True)
        grounded.operator.wait(lambda: False, 0.1)
        return height(grounded) > 0.5

    for _ in range(20):
        push(False)  # the enabling button is not held
        grounded.operator.wait(lambda: False, 0.05)
    assert height(grounded) < 0.2
    grounded.until(lifted, "half a metre")
    assert grounded.state == "ACTIVE"


def test_a_velocity_that_is_not_repeated_is_zero_after_half_a_second(bundle_file: Path):
    """Against the record of what the policy was given, by a control thread on a clock that the test moves."""
    from robo_rl.deploy.robot.runtime import Policy
    from robo_rl.deploy.robot.session import Decision, Session
    from robo_rl.ros.control import Control
    from robo_rl.ros.signal_buffer import SignalBuffer

    runner = Session(Policy.load(bundle_file, 100))
    contract = runner.contract
    buffer = SignalBuffer(contract, signal_wires(contract.signals))
    seen: list[tuple[int, np.ndarray]] = []
    place = next(w.offset for w in runner.config.signals if w.name == "linear_velocity_setpoint")

    def note(decision: Decision) -> None:
        seen.append((decision.time, decision.inputs.signals[place : place + 3].copy()))

    name = "linear_velocity_setpoint"
    control = Control(runner, buffer, lambda command: None, note, perishable=[name], lasting=0.5)
    buffer.samples[name] = (np.array([0.4, 0, 0], np.float32), 1_000_000)
    control._taken = dict(buffer.samples)
    control._operator = -1
    for now in (1_000_000, 1_490_000, 1_500_000, 1_510_000):
        control._step(now)
    np.testing.assert_allclose([value[0] for _, value in seen], [0.4, 0.4, 0.4, 0.0], rtol=1e-6)
