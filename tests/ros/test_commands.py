"""Commands as the controllers that receive them accept them, and commands without effect, which are told."""

from __future__ import annotations

import time

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.contract import Command
from robo_rl.controllers.gate.config import GateConfig
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.ros.effects import EffectMonitor
from robo_rl.ros.reading import MessageError, read
from robo_rl.ros.wiring import WiringError, command_wires
from robo_rl.ros.writing import message_type, write
from robo_rl.zoo import located

ARM, BASE = (Bundle.read(located(f"zoo:{name}")).contract for name in ("arm-place-so101", "diff-nav"))
NOW = 1_700_000_000_123_000_000


def accepted(message, joints: list[str], now: float) -> str:
    """Why joint_trajectory_controller refuses a trajectory that arrives at ``now`` s; "" if it takes it.

    Rules of its documentation (control.ros.org, ros2_controllers, Jazzy, default parameters): all joints, each once;
    positions and no effort; times that grow; not the past, where there is a stamp.
    """
    stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
    times = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in message.points]
    if not times:
        return "no points"
    if stamp and stamp + times[-1] < now:
        return "it ends in the past"
    if sorted(message.joint_names) != sorted(joints):
        return "other joints"
    if any(b <= a for a, b in zip([0.0, *times], times, strict=False)):
        return "times do not grow"
    sizes = {len(p.positions) for p in message.points} | {len(p.effort) + len(joints) for p in message.points}
    return "" if sizes == {len(joints)} else "sizes"


@pytest.mark.parametrize("command", list(ARM.commands), ids=lambda c: c.name)
@pytest.mark.parametrize("period", [0.005, 0.02, 1.0])
def test_a_trajectory_is_accepted_whenever_it_arrives(command: Command, period: float) -> None:
    (wire,) = command_wires([command], "JointTrajectory")
    message = write(wire, command, command.lower, NOW, period=period)
    for late in (0.0, 0.001, 0.1, 5.0):
        assert accepted(message, list(command.elements), 1e-9 * NOW + late) == ""
    last = message.points[-1].time_from_start
    assert last.sec + 1e-9 * last.nanosec == pytest.approx(period)
    np.testing.assert_allclose(read(wire.kind, wire.field, message, command), command.lower, rtol=1e-6)


@pytest.mark.parametrize("unit", ["rad/s", "N*m"])
def test_trajectories_of_what_joint_trajectory_controller_does_not_take_are_refused(unit: str) -> None:
    command = Command("joint_target", ("a", "b"), unit, "joint", (-1.0,) * 2, (1.0,) * 2, (0.0,) * 2)
    with pytest.raises(WiringError, match="trajectories of positions"):
        command_wires([command], "JointTrajectory")


def test_a_trajectory_of_several_points_is_no_command_of_one() -> None:
    """Such as a planner's: its first point is where the robot is already."""
    command = ARM.command("joint_position_target")
    (wire,) = command_wires([command], "JointTrajectory")
    message = write(wire, command, command.lower, NOW)
    message.points = [*message.points] * 3
    with pytest.raises(MessageError, match="has 3 points; expected one"):
        read(wire.kind, wire.field, message, command)


def test_a_twist_carries_the_time_of_now_since_diff_drive_controller_drops_old_ones() -> None:
    message = None
    for wire, command in zip(command_wires(BASE.commands), BASE.commands, strict=True):
        message = write(wire, command, [0.1], NOW, message)
    assert message.header.stamp.sec * 10**9 + message.header.stamp.nanosec == NOW
    assert message.header.frame_id == "base_link"


def monitor(contract) -> tuple[EffectMonitor, GateConfig]:
    config = GateConfig.from_contract(contract)
    return EffectMonitor(contract, config), config


def signals_of(config: GateConfig, **given: list[float]) -> np.ndarray:
    flat = np.zeros(len(config.signal_lower))
    for watch in config.signals:
        if watch.name in given:
            flat[watch.offset : watch.offset + watch.size] = given[watch.name]
    return flat


@pytest.mark.parametrize("dead", [0, 3, 5])
def test_a_joint_that_does_not_follow_is_told_and_the_others_are_not(dead: int) -> None:
    effects, config = monitor(ARM)
    names = [*ARM.command("joint_position_target").elements, "gripper"]
    for k in range(2 * effects.steps):
        command = np.full(6, 0.4 * np.sin(0.1 * k))
        followed = command + np.random.default_rng(k).normal(0.0, 1e-3, 6)
        followed[dead] = 0.2
        effects.note(command, signals_of(config, joint_position=followed[:5], gripper_position=followed[5:]))
        if k < effects.steps - 1:
            assert effects.complaints() == []
    (told,) = effects.complaints()
    assert f"sent {effects.steps} commands in 1 s: '{names[dead]}'" in told
    assert "has not moved from 0.2 rad" in told


def test_a_command_that_has_just_changed_has_its_time() -> None:
    effects, config = monitor(ARM)
    for k in range(2 * effects.steps):
        late = k > 2 * effects.steps - effects.steps // 3
        effects.note(np.full(6, 0.5 * late), signals_of(config, joint_position=[0.0] * 5, gripper_position=[0.0]))
    assert effects.complaints() == []


def test_a_gripper_that_something_stops_is_no_complaint_and_one_that_never_moved_is() -> None:
    effects, config = monitor(ARM)
    for blocked in (0.6, 1.5):
        effects.note(None, signals_of(config))
        told = []
        for k in range(4 * effects.steps):
            command = np.append(np.zeros(5), 1.5 - 0.3 * k / effects.steps)
            measured = [min(1.5, max(command[5], blocked))]
            effects.note(command, signals_of(config, joint_position=[0.0] * 5, gripper_position=measured))
            told += effects.complaints() if k % effects.steps == 0 else []
        assert bool(told) == (blocked == 1.5), told


def test_a_joint_that_is_held_somewhere_else_by_its_load_is_no_complaint() -> None:
    effects, config = monitor(ARM)
    for _ in range(2 * effects.steps):
        effects.note(np.full(6, 0.3), signals_of(config, joint_position=[0.15] * 5, gripper_position=[0.0]))
    assert effects.complaints() == []


@pytest.mark.parametrize("moves", [False, True])
def test_a_joint_that_is_told_one_place_far_away_and_never_moves_is_told(moves: bool) -> None:
    """Such as by a controller that refuses every trajectory, of a policy that wants one place."""
    effects, config = monitor(ARM)
    for k in range(3 * effects.steps):
        place = 1.2 if not moves else max(0.6, 1.2 - 0.1 * k)  # on its way until something is in it
        places = {"joint_position": [place] + [0.0] * 4, "gripper_position": [0.0]}
        effects.note(np.append(-0.5, np.zeros(5)), signals_of(config, **places))
        told = effects.complaints() if k % effects.steps == effects.steps - 1 else []
    assert [sentence.partition(":")[2].split()[0] for sentence in told] == ([] if moves else ["'shoulder_pan'"])


def test_a_base_that_stands_though_it_is_told_to_drive_is_told() -> None:
    effects, config = monitor(BASE)
    for _ in range(effects.steps):
        effects.note(np.array([0.15, 0.0]), signals_of(config, wheel_speed=[0.0], yaw_rate=[0.001]))
    (told,) = effects.complaints()
    assert "'vx' was told 0.15 to 0.15 m/s" in told
    effects.note(None, signals_of(config))
    assert effects.complaints() == []
    for _ in range(effects.steps):
        effects.note(np.array([0.15, 0.0]), signals_of(config, wheel_speed=[0.12], yaw_rate=[0.0]))
    assert effects.complaints() == []


def test_a_subscriber_of_another_type_and_a_topic_without_any_are_told(domain: int) -> None:
    import rclpy

    from robo_rl.ros.receivers import Receivers

    context, another = rclpy.Context(), rclpy.Context()  # a participant of DDS has one type for a topic
    for one in (context, another):
        one.init(domain_id=domain)
    try:
        node = rclpy.create_node("policy", context=context)
        publisher = node.create_publisher(message_type("geometry_msgs/msg/TwistStamped"), "cmd_vel", 1)
        receivers = Receivers(node, [publisher], monitor(BASE)[0])
        assert receivers.look(commanding=False) == []
        assert receivers.look(commanding=True) == ["nobody subscribes to '/cmd_vel': no command arrives"]
        base = rclpy.create_node("diff_drive_controller", context=another)
        base.create_subscription(message_type("geometry_msgs/msg/Twist"), "cmd_vel", lambda _: None, 1)
        end = time.monotonic() + 90
        while not any("diff_drive_controller" in told for told in receivers.look(True)) and time.monotonic() < end:
            time.sleep(0.05)
        (told,) = receivers.look(commanding=True)
        assert (
            "subscribes to '/cmd_vel' as geometry_msgs/msg/Twist; this node sends geometry_msgs/msg/TwistStamped"
            in told
        )
    finally:
        context.try_shutdown()
        another.try_shutdown()


def test_a_robot_hears_commands_of_a_node_that_offers_no_deadline_and_finds_their_silence_itself(flight) -> None:
    """A foreign node commands the simulated robot, and falls silent."""
    flight.start("twin", "--real-time", "--task", "diff-nav", "--parameter", "operator:=false")
    node = flight.operator.node
    publisher = node.create_publisher(message_type("geometry_msgs/msg/TwistStamped"), "cmd_vel", 1)  # no deadline
    message = None
    for wire, command in zip(command_wires(BASE.commands), BASE.commands, strict=True):
        message = write(wire, command, [0.2 if wire.name == "forward_speed" else 0.0], time.time_ns(), message)

    def driven() -> bool:
        publisher.publish(message)
        return bool(flight.applied) and abs(flight.applied[-1][1][0]) > 0.1

    flight.until(driven, "a command that arrives")
    flight.until(lambda: flight.status.get("watchdog", "").startswith("no command for"), "the robot's watchdog")
