"""A robot on legs over DDS: it is examined joint by joint, and moves as in simulation, however it orders its joints."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.contract import Network, Provenance
from robo_rl.deploy.robot.doctor import healthy
from robo_rl.deploy.robot.joints import JointTestError, examine_joints, find_joints
from robo_rl.sim.tasks.loading import load_task
from tests.suite import representatives

pytestmark = pytest.mark.slow
TROT = 1.0
"""s"""
FORWARD = {"linear_velocity_command": (0.5, 0.0), "yaw_rate_command": (0.0,)}
"""m/s and rad/s, what the operator wants all the time."""
NOISE = 0.02
"""Part of training's noise: enough that no signal looks frozen, and too little to matter."""
NOBODY, NETWORK = Provenance("none", 0, 0, "0" * 64), Network((8,), "tanh", False)


def examine() -> list[Any]:
    """The joints of the robot on DDS, held against the contract of the Go2's task."""
    from robo_rl.ros.joint_test import wiggle
    from robo_rl.ros.signal_check import SignalCheck

    contract = load_task("go2-flat").spec.contract(NOBODY, NETWORK)
    patient = dataclasses.replace(contract.safety, signal_timeout=5.0)  # a busy computer keeps that
    with SignalCheck(dataclasses.replace(contract, safety=patient)) as check:
        check.discover(60.0)
        motion = wiggle(check, "", lambda name: None)
    return examine_joints(find_joints(contract)[0], motion)


@pytest.fixture
def hung(flight) -> Any:
    """``hung(mistake)``: the Go2 in the air, in real time, assembled with a mistake."""

    def start(mistake: str = "") -> None:
        flight.start(
            "twin",
            "--real-time",
            "--task",
            "go2-flat",
            "--parameter",
            "timeout:=5.0",
            "hung:=true",
            f"miswired:=['{mistake}']",
        )
        flight.until(lambda: flight.truth, "the twin")

    return start


@pytest.mark.parametrize(
    ("mistake", "wrong"),
    [
        pytest.param("", {}, marks=pytest.mark.release),
        pytest.param(
            "swap FL_hip_joint RR_hip_joint",
            {"FL_hip_joint": "reported as 'RR_hip_joint'", "RR_hip_joint": "reported as 'FL_hip_joint'"},
            marks=pytest.mark.release,
        ),
        pytest.param("reverse FR_hip_joint", {"FR_hip_joint": "in the opposite direction"}, marks=pytest.mark.release),
        pytest.param("offset RL_hip_joint 0.3", {"RL_hip_joint": "its zero is off"}, marks=pytest.mark.release),
    ],
)
def test_each_joint_that_is_miswired_is_named(hung, mistake: str, wrong: dict[str, str]):
    hung(mistake)
    findings = examine()
    found: dict[str, str] = {}
    for finding in findings:
        if not finding.good:
            found[finding.subject] = f"{found.get(finding.subject, '')} {finding.sentence}"
    assert set(found) == set(wrong), found
    assert all(said in found[name] for name, said in wrong.items()), found
    assert healthy(findings) == (not mistake)


def test_joints_are_not_moved_while_another_node_could_command_them(hung, flight):
    from sensor_msgs.msg import JointState

    hung()
    flight.operator.node.create_publisher(JointState, "command/joint_position_target", 1)
    with pytest.raises(JointTestError, match="policy_node included"):
        examine()


@pytest.fixture(scope="session")
def trotting_file(scripted: Callable[..., Path]) -> Path:
    """A bundle for the Go2 of the gait that its task begins with."""
    return scripted("go2-flat")


def joints_in_plain_simulation(bundle: Path, armed: float, engaged: float, end: float) -> dict[float, np.ndarray]:
    """What joints report by time (s): twin, policy and gate in one process, with nothing between them.

    The gate is asked to arm and to engage at the given times (s).
    """
    from robo_rl.controllers.gate.codes import Request
    from robo_rl.deploy.robot.runtime import Policy
    from robo_rl.deploy.robot.session import Session
    from robo_rl.ros.twin_node import EPOCH
    from robo_rl.ros.twins import make_twin

    twin = make_twin("go2-flat", noise=NOISE)
    runner = Session(Policy.load(bundle, rate_hz=1 / twin.period))
    requests = {round(1e6 * armed): Request.ARM, round(1e6 * engaged): Request.ACTIVATE}
    reported = {}
    while True:
        now = round(1e-3 * EPOCH + 1e6 * twin.time)
        if now > 1e6 * end:
            return reported
        signals = {**twin.measure(), **{name: np.array(value, np.float32) for name, value in FORWARD.items()}}
        reported[round(1e-6 * now, 3)] = signals["joint_position"]
        samples = {name: (value, now) for name, value in signals.items()}
        decision = runner.step(now, samples, requests.get(now, Request.NONE))
        (command,) = runner.contract.commands
        twin.step(None if decision.send is None else {command.name: decision.send})  # None: not yet armed


@pytest.mark.parametrize("fault", representatives(["", "reorder joint_states"], ["reorder joint_states"]))
def test_the_go2_moves_through_both_nodes_as_in_plain_simulation_whatever_the_order_of_its_joints(
    flight, trotting_file: Path, tmp_path: Path, vary, fault: str
):
    from sensor_msgs.msg import JointState

    from robo_rl.ros import quality

    bundle = vary(trotting_file, tmp_path / "patient.onnx", signal_timeout=5.0, operator_timeout=None)
    joints = load_task("go2-flat").spec.contract(NOBODY, NETWORK).signal("joint_position").elements
    reported: dict[float, list[float]] = {}

    def note(message: Any) -> None:
        at = dict(zip(message.name, message.position, strict=True))
        stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        reported[round(stamp, 3)] = [at[name] for name in joints]

    flight.operator.node.create_subscription(JointState, "joint_states", note, quality.LISTENER)
    alone = ("--parameter", f"noise:={NOISE}", "timeout:=5.0", "operator:=false")
    flight.start("twin", "--task", "go2-flat", "--use-sim-time", *alone)
    given = [f"{name}={' '.join(map(str, value))}" for name, value in FORWARD.items()]
    flight.start("policy", str(bundle), "--use-sim-time", "--parameter", f"setpoints:={given}")
    flight.until(lambda: flight.truth, "the twin")
    flight.operator.do("configure")
    flight.operator.fault(fault)
    flight.patiently("activate")
    flight.until(lambda: flight.state == "READY", "the gate")
    armed = flight.gates[-1]["time"]
    flight.patiently("engage")
    flight.until(lambda: flight.state == "ACTIVE", "the policy's turn")
    engaged = flight.gates[-1]["time"]
    flight.until(lambda: max(reported) > engaged + TROT or flight.state == "FAULT", f"{TROT} s")
    assert flight.state == "ACTIVE", flight.gates[-1]
    plain = joints_in_plain_simulation(bundle, armed, engaged, engaged + TROT)
    heard = [t for t in plain if t > engaged and t in reported]
    found, expected = (np.array([one[t] for t in heard]) for one in (reported, plain))
    assert len(heard) >= 10  # of 50: a busy computer loses samples, which nobody sends again
    assert np.ptp(expected, axis=0).min() > 0.1  # every joint moves
    # Noise, and a request heard one period sooner or later, leave 0.03 rad; legs in each other's place 0.14 and more.
    np.testing.assert_array_less(np.sqrt(np.mean((found - expected) ** 2, axis=0)), 0.07)


@pytest.mark.parametrize("robot", ["go2", "a1"])
def test_a_robot_that_nobody_commands_lies_down_on_the_ground(robot: str) -> None:
    """Its motors damp, its legs give way: what then touches the ground is not its feet alone."""
    from robo_rl.ros.twins import make_twin

    twin = make_twin("go2-flat", robot, noise=NOISE)
    heights = []
    for _ in range(250):
        twin.step(None)
        heights.append(float(twin.truth()["position"][2]))
    assert heights[0] > 0.2
    assert 0.03 < min(heights) < 0.1
