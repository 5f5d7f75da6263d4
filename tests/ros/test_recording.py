"""A session's log holds everything, is readable by other tools, and flies again."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")
pytest.importorskip("mcap", reason="mcap is missing: pip install 'robo-rl[ros]'")

from robo_rl.deploy.robot.logs.cdr import NamedNumbers
from robo_rl.deploy.robot.logs.reader import read_log
from robo_rl.deploy.robot.logs.replay import plot, replay

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory, bundle_file: Path, make_flight) -> Path:
    """The log of a flight of 2 s that ended with a fault."""
    folder = tmp_path_factory.mktemp("session")
    with make_flight(folder / "logs") as flight:
        flight.start("twin", "--use-sim-time")
        flight.start("policy", str(bundle_file), "--use-sim-time", "--record", str(folder))
        flight.fly(until=2.0)
        flight.operator.fault("nan imu")
        flight.fault()
        flight.operator.do("deactivate")
        flight.operator.do("cleanup")
    (file,) = folder.glob("*.mcap")
    return file


def test_a_session_flies_again_bit_by_bit(session: Path, bundle_file: Path, read_whole_log, tmp_path: Path):
    found = replay(session, bundle_file)
    assert found.whole
    assert found.same_bundle
    assert found.steps == len(read_whole_log(session).steps)
    assert found.steps > 200
    assert found.policy is None, found.policy
    assert found.gate is None, found.gate
    assert len(found.faults) == 1
    assert "angular_velocity" in found.faults[0]
    plot(session, tmp_path / "signals.png")
    assert (tmp_path / "signals.png").stat().st_size > 10_000


def test_other_tools_read_the_log(session: Path):
    from mcap_ros2.reader import read_ros2_messages

    messages = list(read_ros2_messages(str(session)))
    topics = {message.channel.topic for message in messages}
    assert {"/policy/signals", "/policy/sent", "/policy/gate", "/policy/contract"} <= topics
    sent = [m.ros_msg for m in messages if m.channel.topic == "/policy/sent"]
    assert sent[-1].name == ["rotor_speed/m1", "rotor_speed/m2", "rotor_speed/m3", "rotor_speed/m4"]
    stamps = [m.log_time_ns for m in messages]
    assert stamps == sorted(stamps)


def test_a_log_without_its_end_is_read_up_to_there(session: Path, bundle_file: Path, read_whole_log, tmp_path: Path):
    cut = tmp_path / "cut.mcap"
    data = session.read_bytes()
    cut.write_bytes(data[: len(data) - len(data) // 5])
    assert len(read_whole_log(cut, cut_off=True).steps) > 50
    found = replay(cut, bundle_file)
    assert not found.whole
    assert found.policy is None


def test_a_changed_record_is_found_at_its_step(session: Path, bundle_file: Path):
    log = read_log(session)
    step = log.steps[150]
    signals = step.signals.copy()
    signals[10] += 0.5  # angular_velocity/x
    log.steps[150] = dataclasses.replace(step, signals=signals)
    found = replay(log, bundle_file)
    assert found.policy is not None
    assert found.policy.step == 150
    assert found.policy.what.startswith("rotor_speed/")


@pytest.mark.parametrize("names", [[], ["a"], ["ab", "position/x", "long_name_of_a_joint"]])
def test_named_numbers_are_what_rclpy_reads(names):
    from rclpy.serialization import deserialize_message
    from sensor_msgs.msg import JointState

    values = np.arange(len(names)) + 0.5
    message = deserialize_message(NamedNumbers(names).encode(5_000_000_007, values), JointState)
    assert message.name == names
    assert list(message.position) == list(values)
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (5, 7)
