"""A robot on legs over DDS: it is examined joint by joint, and walks, however it orders its joints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from deploy.bundle import Bundle
from deploy.doctor import healthy
from deploy.joints import WiggleError, examine_joints, find_joints

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def trotting_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle for the Go2 whose network adds nothing to the gait that its task begins with."""
    import torch

    from deploy.export import export
    from robo_rl.contract import Provenance
    from robo_rl.policy import PolicyGraph
    from sim.tasks import load_task

    policy = PolicyGraph(load_task("go2-flat"), (8,))
    with torch.no_grad():
        for weights in policy.network.parameters():
            weights.zero_()
    out = tmp_path_factory.mktemp("trot") / "trot.onnx"
    export(policy, Provenance("none", 0, 0, "0" * 64, (8,), "tanh", False), out)
    return out


@pytest.fixture
def patient_file(trotting_file: Path, tmp_path: Path, vary) -> Path:
    """The same with a time limit that a busy computer keeps."""
    return vary(trotting_file, tmp_path / "patient.onnx", signal_timeout=5.0, operator_timeout=None)


def examine(bundle: Path) -> list[Any]:
    from robo_rl_ros.examination import Examination
    from robo_rl_ros.wiggling import wiggle

    contract = Bundle.read(bundle).contract
    with Examination(contract) as examination:
        examination.discover(60.0)
        motion = wiggle(examination, "", lambda name: None)
    return examine_joints(find_joints(contract)[0], motion)


@pytest.mark.parametrize(
    ("miswired", "wrong"),
    [
        ("", {}),
        (
            "swap FL_hip_joint RR_thigh_joint",
            {"FL_hip_joint": "reported as 'RR_thigh_joint'", "RR_thigh_joint": "reported as 'FL_hip_joint'"},
        ),
        ("reverse FR_hip_joint", {"FR_hip_joint": "the other way"}),
        ("offset RL_hip_joint 0.3", {"RL_hip_joint": "its zero is off"}),
    ],
)
def test_each_joint_that_is_miswired_is_named(flight, patient_file: Path, miswired: str, wrong: dict[str, str]):
    flight.start("twin", "--task", "go2-flat", "--parameter", "timeout:=5.0", "hung:=true", f"miswired:=['{miswired}']")
    flight.until(lambda: flight.truth, "the twin")
    findings = examine(patient_file)
    found = {finding.subject: finding.sentence for finding in findings if not finding.good}
    assert set(found) == set(wrong), found
    assert all(said in found[name] for name, said in wrong.items()), found
    assert healthy(findings) == (not miswired)


def test_joints_are_not_moved_while_a_policy_could_command_them(flight, patient_file: Path):
    flight.start("twin", "--task", "go2-flat", "--parameter", "timeout:=5.0")
    flight.start("policy", str(patient_file))
    flight.until(lambda: flight.truth, "the twin")
    flight.operator.do("configure")
    with pytest.raises(WiggleError, match="policy_node included"):
        examine(patient_file)


@pytest.mark.parametrize("fault", ["", "reorder joint_states"])
def test_the_go2_walks_through_both_nodes_whatever_the_order_of_its_joints(flight, patient_file: Path, fault: str):
    """The gait that the task begins with goes forward by itself; with joints mixed up it would fall at once."""
    flight.start("twin", "--task", "go2-flat", "--use-sim-time")
    flight.start("policy", str(patient_file), "--use-sim-time")
    flight.until(lambda: flight.truth, "the twin")
    flight.operator.do("configure")
    flight.operator.fault(fault)
    flight.patiently("activate")
    flight.patiently("engage")
    begun, start = flight.truth[-1]
    flight.until(lambda: flight.truth[-1][0] > begun + 5.0 or flight.state == "FAULT", "5 s")
    assert flight.state == "ACTIVE", flight.gates[-1]
    went = flight.truth[-1][1] - start
    assert went[0] > 0.3, went
    heights = np.array([place[2] for _, place in flight.truth])
    assert heights.min() > 0.2
