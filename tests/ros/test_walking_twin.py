"""A robot on legs over DDS: it is examined joint by joint, and walks, however it orders its joints."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from deploy.doctor import healthy
from deploy.joints import WiggleError, examine_joints, find_joints
from robo_rl.contract import Provenance
from sim.tasks import load_task

pytestmark = pytest.mark.slow
NOBODY = Provenance("none", 0, 0, "0" * 64, (8,), "tanh", False)


def examine() -> list[Any]:
    """The joints of the robot on DDS, held against the contract of the Go2's task."""
    from robo_rl_ros.examination import Examination
    from robo_rl_ros.wiggling import wiggle

    contract = load_task("go2-flat").spec.contract(NOBODY)
    patient = dataclasses.replace(contract.safety, signal_timeout=5.0)  # a busy computer keeps that
    with Examination(dataclasses.replace(contract, safety=patient)) as examination:
        examination.discover(60.0)
        motion = wiggle(examination, "", lambda name: None)
    return examine_joints(find_joints(contract)[0], motion)


@pytest.fixture
def hung(flight) -> Any:
    """``hung(mistake)``: the Go2 in the air, in real time, assembled with a mistake."""

    def start(mistake: str = "") -> None:
        flight.start(
            "twin", "--task", "go2-flat", "--parameter", "timeout:=5.0", "hung:=true", f"miswired:=['{mistake}']"
        )
        flight.until(lambda: flight.truth, "the twin")

    return start


@pytest.mark.parametrize(
    ("mistake", "wrong"),
    [
        ("", {}),
        (
            "swap FL_hip_joint RR_hip_joint",
            {"FL_hip_joint": "reported as 'RR_hip_joint'", "RR_hip_joint": "reported as 'FL_hip_joint'"},
        ),
        ("reverse FR_hip_joint", {"FR_hip_joint": "the other way"}),
        ("offset RL_hip_joint 0.3", {"RL_hip_joint": "its zero is off"}),
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
    with pytest.raises(WiggleError, match="policy_node included"):
        examine()


@pytest.fixture(scope="session")
def trotting_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle for the Go2 whose network adds next to nothing to the gait that its task begins with."""
    import torch

    from deploy.export import export
    from robo_rl.policy import PolicyGraph

    policy = PolicyGraph(load_task("go2-flat"), (8,))
    with torch.no_grad():
        for weights in policy.network.parameters():
            weights.normal_(std=1e-6)  # zeros would be folded away, and the export refuses that
    out = tmp_path_factory.mktemp("trot") / "trot.onnx"
    export(policy, NOBODY, out)
    return out


@pytest.mark.realtime
@pytest.mark.parametrize("fault", ["", "reorder joint_states"])
def test_the_go2_walks_through_both_nodes_whatever_the_order_of_its_joints(
    flight, trotting_file: Path, tmp_path: Path, vary, fault: str
):
    """The gait that the task begins with goes forward by itself; with joints mixed up it would fall at once."""
    bundle = vary(trotting_file, tmp_path / "patient.onnx", signal_timeout=5.0, operator_timeout=None)
    flight.start("twin", "--task", "go2-flat", "--use-sim-time")
    flight.start("policy", str(bundle), "--use-sim-time")
    flight.until(lambda: flight.truth, "the twin")
    flight.operator.do("configure")
    flight.operator.fault(fault)
    flight.patiently("activate")
    flight.patiently("engage")
    begun, start = flight.truth[-1]
    flight.until(lambda: flight.truth[-1][0] > begun + 5.0 or flight.state == "FAULT", "5 s")
    assert flight.state == "ACTIVE", flight.gates[-1]
    assert flight.truth[-1][1][0] - start[0] > 0.3
    heights = np.array([place[2] for _, place in flight.truth])
    assert heights.min() > 0.2
