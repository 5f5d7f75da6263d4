"""Controllers of ros2_control: they follow a policy only while it is in control, and others hold otherwise.

The node is tried against a stand-in for the controller manager where controller_manager_msgs is installed, as in a
distribution of ROS; PyPI has no such package.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from hypothesis import given
from hypothesis import strategies as st

from robo_rl.ros.following import Wanted, Watch, misfit

JOINTS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll")
ARM, JAW, HOLD = "forward_position_controller", "forward_gripper_controller", "joint_trajectory_controller"
FOLLOWING = sorted([ARM, JAW])
STATES = ("", "IDLE", "READY", "ACTIVE", "FAULT")


def test_controllers_follow_from_ready_on_and_hold_after_a_fault() -> None:
    watch = Watch(timeout=0.06, settle=0.5)
    assert watch.decide(0.0).wanted is Wanted.HOLD
    watch.gate("READY", 1.0)
    watch.command(1.0)
    assert watch.decide(1.0).wanted is Wanted.FOLLOW
    watch.following = True
    watch.gate("ACTIVE", 1.02)
    assert watch.decide(1.05).wanted is Wanted.FOLLOW
    watch.command(2.0)
    watch.gate("FAULT", 2.0)
    assert watch.decide(2.02).wanted is Wanted.FOLLOW  # the gate's own stop
    watch.command(2.5)
    told = watch.decide(2.51)
    assert (told.wanted, told.stop) == (Wanted.HOLD, False)


def test_a_policy_that_falls_silent_is_not_followed_and_is_told_to_stop() -> None:
    watch = Watch(timeout=0.06, settle=0.5)
    watch.gate("READY", 0.0)
    watch.command(0.0)
    watch.following = True
    watch.gate("ACTIVE", 0.0)
    told = watch.decide(0.07)
    assert (told.wanted, told.stop, told.reason) == (Wanted.HOLD, True, "no command for 70 ms")


def test_a_policy_that_was_engaged_before_the_controllers_followed_is_stopped() -> None:
    watch = Watch(timeout=0.06, settle=0.5)
    watch.gate("ACTIVE", 0.0)
    watch.command(0.0)
    told = watch.decide(0.0)
    assert (told.wanted, told.stop) == (Wanted.HOLD, True)
    assert "before the controllers followed" in told.reason


@given(state=st.sampled_from(STATES), silent=st.floats(0.0, 10.0), since=st.floats(0.0, 10.0), following=st.booleans())
def test_nothing_is_followed_in_silence_or_in_idle_nor_long_after_a_fault(state, silent, since, following) -> None:
    watch = Watch(timeout=0.06, settle=0.5)
    watch.gate(state, 20.0 - since)
    watch.command(20.0 - silent)
    watch.following = following
    told = watch.decide(20.0)
    if silent > 0.0601 or state in ("", "IDLE") or (state == "FAULT" and (since > 0.501 or not following)):
        assert told.wanted is Wanted.HOLD
    assert told.wanted is Wanted.HOLD or not told.stop
    assert (told.wanted, told.stop) != (Wanted.HOLD, False) or state != "ACTIVE"


@pytest.mark.parametrize(
    ("joints", "interface", "said"),
    [
        (list(JOINTS), "position", ""),
        (list(JOINTS), "", ""),  # position_controllers/JointGroupPositionController has no such parameter
        (list(reversed(JOINTS)), "position", "in this order"),
        (list(JOINTS[:-1]), "position", "has the joints"),
        ([], "", "has the joints"),
        (list(JOINTS), "velocity", "has the interface 'velocity'; expected 'position', for rad"),
    ],
)
def test_a_controller_with_other_joints_or_another_interface_is_refused(joints, interface, said) -> None:
    told = misfit(ARM, joints, interface, JOINTS, "rad")
    assert (said in told) if said else not told


class Manager:
    """Answers as a controller manager and its controllers do, within the test's own process. The arm obeys anyhow."""

    def __init__(self, flight: Any, joints: tuple[str, ...] = JOINTS) -> None:
        from controller_manager_msgs.srv import SwitchController
        from rclpy.node import Node
        from std_msgs.msg import Float64MultiArray

        operator = flight.operator
        self.active: list[str] = []
        self.switches: list[tuple[list[str], list[str]]] = []
        self.carried = 0
        self.willing = True
        self._nodes = []
        for name, own in ((ARM, joints), (JAW, ("gripper",))):
            node = Node(name, context=operator.context)
            node.declare_parameter("joints", list(own))
            node.declare_parameter("interface_name", "position")
            node.create_subscription(Float64MultiArray, "~/commands", self._carrier(name), 1)
            operator.executor.add_node(node)
            self._nodes.append(node)
        node = operator.node
        node.create_service(SwitchController, "controller_manager/switch_controller", self._on_switch)

    def _carrier(self, name: str) -> Any:
        def carry(message: Any) -> None:
            self.carried += name in self.active

        return carry

    def _on_switch(self, request: Any, response: Any) -> Any:
        response.ok = self.willing or HOLD in request.activate_controllers
        if response.ok:
            self.switches.append((list(request.activate_controllers), list(request.deactivate_controllers)))
            left = [name for name in self.active if name not in request.deactivate_controllers]
            self.active = sorted({*left, *request.activate_controllers})
        return response


@pytest.fixture(scope="module")
def script_file(scripted: Callable[..., Path]) -> Path:
    """A bundle of the SO-101's placing by its script."""
    pytest.importorskip("controller_manager_msgs", reason="no controller_manager_msgs: source a ROS distribution")
    return scripted("arm-place", "so101")


WATCHED = ("--parameter", f"following:=[joint_position_target={ARM}, gripper_position_target={JAW}]",
           f"holding:=[{HOLD}]", "timeout:=2.0")  # fmt: skip
"""A busy computer is no fault of its own."""


@pytest.fixture
def arm(flight, script_file: Path) -> Iterator[Any]:
    """A simulated arm behind controllers, and the policy's node; in lockstep, so that no signal is ever late."""
    array = ("--parameter", "command_message:=Float64MultiArray")
    topics = [f"command/{name}_position_target:=/{c}/commands" for name, c in (("joint", ARM), ("gripper", JAW))]
    flight.start("twin", "--task", "arm-place", "--robot", "so101", "--use-sim-time", *array, "--remap", *topics)
    flight.start("policy", str(script_file), "--use-sim-time", *array, "--remap", *topics)
    flight.until(lambda: flight.applied, "the twin")
    flight.operator.do("configure")
    flight.until(lambda: flight.gates, "the gate")
    return flight


@pytest.mark.slow
def test_controllers_of_an_arm_follow_its_policy_and_hold_when_it_is_killed(arm) -> None:
    manager = Manager(arm)
    arm.start("controllers", *WATCHED)
    arm.until(lambda: manager.active == [HOLD], "controllers that hold")
    arm.patiently("activate")
    arm.until(lambda: manager.active == FOLLOWING, "controllers that follow")
    arm.patiently("engage")
    arm.until(lambda: arm.state == "ACTIVE", "the policy's turn")
    carried = manager.carried
    arm.until(lambda: manager.carried > carried + 20, "commands that were carried out")
    arm.operator.do("stop")
    arm.until(lambda: manager.active == [HOLD], "controllers that hold after a fault")
    arm.operator.do("reset")
    arm.patiently("arm")
    arm.until(lambda: manager.active == FOLLOWING, "controllers that follow again")
    arm.processes["policy"].send_signal(signal.SIGKILL)
    arm.until(lambda: manager.active == [HOLD], "controllers that hold when the policy is gone")
    assert "no command for" in arm.log("controllers")


@pytest.mark.slow
def test_controllers_hold_when_their_watch_ends_and_a_policy_is_stopped_that_they_do_not_follow(arm) -> None:
    manager = Manager(arm)
    manager.willing = False  # to follow
    arm.start("controllers", *WATCHED)
    arm.until(lambda: manager.active == [HOLD], "controllers that hold")
    arm.patiently("activate")
    arm.until(lambda: arm.state == "FAULT", "the stop of a policy that nothing follows")
    manager.willing = True
    arm.operator.do("reset")
    arm.patiently("arm")
    arm.until(lambda: manager.active == FOLLOWING, "controllers that follow")
    arm.processes["controllers"].terminate()
    arm.until(lambda: manager.active == [HOLD], "controllers that hold at the end")
    arm.until(lambda: arm.processes["controllers"].poll() is not None, "the end")
    assert arm.processes["controllers"].returncode == 0


@pytest.mark.slow
def test_a_second_sender_of_commands_is_not_followed(arm) -> None:
    from std_msgs.msg import Float64MultiArray

    manager = Manager(arm)
    arm.start("controllers", *WATCHED)
    arm.patiently("activate")
    arm.until(lambda: manager.active == FOLLOWING, "controllers that follow")
    arm.operator.node.create_publisher(Float64MultiArray, f"{ARM}/commands", 1)
    arm.until(lambda: manager.active == [HOLD], "controllers that hold")
    arm.until(lambda: arm.state == "FAULT", "the policy's stop")
    assert f"another node publishes on {ARM}/commands" in arm.log("controllers")


@pytest.mark.slow
@pytest.mark.parametrize("order", [tuple(reversed(JOINTS)), (*JOINTS[:-1], "wrist")], ids=["order", "name"])
def test_controllers_with_other_joints_are_not_activated(arm, order) -> None:
    manager = Manager(arm, order)
    arm.start("controllers", *WATCHED)
    arm.until(lambda: arm.processes["controllers"].poll() is not None, "the refusal")
    assert arm.processes["controllers"].returncode == 1
    assert "in this order" in arm.log("controllers")
    assert manager.active == []
