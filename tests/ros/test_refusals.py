"""What must not fly is refused before it can: at configure or at activate, with a sentence."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

pytestmark = pytest.mark.slow


def refused(flight, action: str) -> str:
    with pytest.raises(ValueError, match=action) as caught:
        flight.operator.do(action)
    return str(caught.value)


def test_damaged_and_foreign_bundles_are_refused_at_configure(flight, bundle_file: Path, tmp_path: Path, fault_table):
    whole = bundle_file.read_bytes()
    middle = len(whole) // 2
    files = {
        "truncated": whole[: -len(whole) // 4],
        "tampered": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
        "empty": b"",
        "text": b"this is no bundle\n" * 100,
    }
    for name, data in files.items():
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(data)
        flight.start("policy", str(path))
        sentence = refused(flight, "configure")
        assert str(path) in sentence
        fault_table.add(f"bundle: {name}", None, "not started", "refused", sentence.replace(str(tmp_path) + "/", ""))


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        pytest.param("robot:=hummingbird", "expected 'hummingbird'", marks=pytest.mark.release),
        pytest.param("digest:='0123'", "expected 0123", marks=pytest.mark.release),
        pytest.param("mode:=fast", "mode is 'fast'", marks=pytest.mark.release),
        pytest.param("command_message:=Twist", "a Twist holds", marks=pytest.mark.release),
        ("wires:=['speed=odom nav_msgs/msg/Odometry position']", "the contract has"),
        pytest.param("setpoints:=['position=0 0 1']", "which is measured", marks=pytest.mark.release),
        ("cmd_vel_timeout:=.inf", "parameter 'cmd_vel_timeout' is inf s; expected 0 to 3600"),
    ],
)
def test_what_does_not_fit_the_contract_is_refused_at_configure(flight, bundle_file, parameter, words, fault_table):
    flight.start("policy", str(bundle_file), "--parameter", parameter)
    sentence = refused(flight, "configure")
    assert words in sentence
    fault_table.add(f"`{parameter}`", None, "not started", "refused", sentence.split("/")[-1])


def test_a_bundle_that_nobody_trusted_signed_is_refused_at_configure(flight, bundle_file: Path, tmp_path: Path):
    pytest.importorskip("cryptography", reason="cryptography is missing: pip install 'robo-rl[sign]'")
    from robo_rl.deploy.robot.bundle.signing import new_key, sign

    path = Path(shutil.copy(bundle_file, tmp_path / "policy.onnx"))
    new_key(tmp_path / "alice", "alice")
    words = "--parameter", f"trusted_keys:={tmp_path / 'alice.pub'}"
    flight.start("policy", str(path), *words)
    assert "policy.onnx: not signed; expected a signature by a key in" in refused(flight, "configure")
    sign(path, tmp_path / "alice")
    flight.start("policy", str(path), *words)
    flight.operator.do("configure")


def test_without_signals_the_gate_does_not_arm(flight, bundle_file: Path, fault_table):
    flight.start("policy", str(bundle_file))
    flight.operator.do("configure")
    sentence = refused(flight, "activate")
    assert "'position': it never arrived" in sentence
    fault_table.add("no robot", None, "not armed", "refused", sentence)


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory, make_flight) -> Iterator:
    """A stand-in robot in simulated time."""
    with make_flight(tmp_path_factory.mktemp("logs")) as flight:
        flight.start("twin", "--use-sim-time")
        yield flight


def test_a_quaternion_in_another_order_is_refused_before_arming(robot, bundle_file: Path, fault_table):
    robot.operator.fault("quaternion odom")
    robot.start("policy", str(bundle_file), "--use-sim-time")
    robot.operator.do("configure")
    robot.until(lambda: robot.truth, "the twin")
    for _ in range(200):
        sentence = refused(robot, "activate")
        if "never arrived" not in sentence and "too old" not in sentence:
            break
    assert "x, y, z, w" in sentence
    fault_table.add("quaternion odom, before arming", None, "not armed", "refused", sentence)


def test_an_incompatible_quality_of_service_is_refused_at_activate(robot, bundle_file: Path, fault_table):
    from sensor_msgs.msg import JointState

    from robo_rl.ros import quality

    robot.operator.fault("")
    robot.start("policy", str(bundle_file), "--use-sim-time")
    robot.operator.do("configure")
    profile = quality.command(deadline=0.001)
    robot.operator.node.create_subscription(JointState, "/command/rotor_speed", lambda _: None, profile)
    robot.until(lambda: "incompatible quality" in robot.log("policy"), "the event")
    sentence = refused(robot, "activate")
    assert "incompatible quality of service" in sentence
    fault_table.add("command subscriber with another deadline", None, "not armed", "refused", sentence[:100])
