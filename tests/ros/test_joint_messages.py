"""Joints of one robot in one message or in several, in any order, and ones that are missing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from sensor_msgs.msg import JointState

from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.ros.signal_buffer import SignalBuffer
from robo_rl.ros.wiring import signal_wires
from robo_rl.zoo import located

CONTRACT = Bundle.read(located("zoo:arm-place-so101")).contract
ARM = CONTRACT.signal("joint_position").elements
KEY = ("joint_states", "sensor_msgs/msg/JointState")
SECOND = 1_000_000


def state(names, value: float, seconds: float, velocity: bool = True) -> JointState:
    made = JointState(name=list(names), position=[value + i for i in range(len(names))])
    made.velocity = [0.1] * len(names) if velocity else []
    made.header.stamp.sec, made.header.stamp.nanosec = int(seconds), round(1e9 * (seconds % 1))
    return made


def put(buffer: SignalBuffer, message: JointState, seconds: float) -> None:
    """It arrives 5 ms after its stamp."""
    buffer.put(KEY, message, round(SECOND * seconds) + 5000, round(1e9 * seconds) + 5_000_000)


def heard(*messages: tuple[tuple[str, ...], float, float]) -> SignalBuffer:
    buffer = SignalBuffer(CONTRACT, signal_wires(CONTRACT.signals))
    for names, value, seconds in messages:
        put(buffer, state(names, value, seconds, velocity=names != ("gripper",)), seconds)
    return buffer


@pytest.mark.parametrize("order", list(itertools.permutations(range(2))))
def test_an_arm_and_its_gripper_may_come_in_two_messages(order: tuple[int, ...]) -> None:
    parts = ((ARM, 0.0, 10.0), (("gripper",), 0.7, 10.01))
    buffer = heard(*(parts[i] for i in order))
    np.testing.assert_allclose(buffer.samples["joint_position"][0], np.arange(5))
    np.testing.assert_allclose(buffer.samples["gripper_position"][0], [0.7])
    assert buffer.samples["joint_position"][1] == 10 * SECOND
    assert buffer.samples["gripper_position"][1] == round(10.01 * SECOND)
    put(buffer, state(ARM, 1.0, 10.02), 10.02)
    assert buffer.complaints() == []  # the gripper's message is on its way


def test_joints_of_one_signal_in_two_messages_have_the_stamp_of_the_older() -> None:
    buffer = heard((ARM[:2], 0.0, 10.0), (ARM[2:], 2.0, 10.02))
    value, stamp = buffer.samples["joint_position"]
    np.testing.assert_allclose(value, np.arange(5))
    assert stamp == 10 * SECOND
    put(buffer, state(ARM[2:], 7.0, 10.04), 10.04)
    assert buffer.samples["joint_position"][1] == 10 * SECOND  # one half alone is no new sample
    put(buffer, state(ARM[:2], 5.0, 10.05), 10.05)
    value, stamp = buffer.samples["joint_position"]
    np.testing.assert_allclose(value, np.arange(5) + 5)
    assert stamp == round(10.04 * SECOND)


def test_joints_that_never_come_and_those_that_stay_away_are_named() -> None:
    buffer = heard((ARM, 0.0, 10.0))
    assert any("'gripper_position': no element ['gripper'] in the message" in told for told in buffer.complaints())
    put(buffer, state(("gripper",), 0.7, 10.01, velocity=False), 10.01)
    assert buffer.complaints() == []
    late = 10.01 + CONTRACT.safety.signal_timeout
    put(buffer, state(ARM, 0.0, late), late)
    assert any("no element ['gripper']" in told for told in buffer.complaints())


def test_names_and_values_that_do_not_fit_are_refused_in_a_part_too() -> None:
    buffer = heard()
    broken = state(ARM[:2], 0.0, 10.0)
    broken.position = [0.0]
    put(buffer, broken, 10.0)
    assert any("2 names but 1 values" in told for told in buffer.complaints())
    assert buffer.samples == {}
