"""Mobile bases over DDS: a Twist drives them to their goals, and whatever is wrong with their signals stops them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.contract import Network, Provenance
from robo_rl.ros.message_encoding import compose
from robo_rl.ros.reading import read
from robo_rl.ros.wiring import command_wires, signal_wires
from robo_rl.ros.writing import write
from robo_rl.sim.tasks.mobile_base.navigate import DiffNav
from robo_rl.zoo import located
from tests.ros.fault_rows import BASE, over_dds

PERIOD = 0.1
DEADLINE = 0.3 + 0.2
"""s: the contract's signal_timeout, and for the scan its period as well."""
OF_OMNI = [fault for fault in BASE if fault[0] in ("drop scan", "nan odom", "delay odom 0.6")]
SMALL = ("--ppo.updates", "2", "--ppo.environments", "32", "--ppo.horizon", "8")
RECURRENT = ("--ppo.hidden", "8", "--ppo.recurrent", "8")


@pytest.fixture(scope="module", params=["base", "omni base"])
def base(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    trained: Callable[..., Path],
    exported: Callable[[Path], Path],
    make_flight,
) -> Iterator:
    """An included policy, or one of two updates where there is none, and the simulated base, in simulated time."""
    known = request.param == "base"
    bundle = located("zoo:diff-nav") if known else exported(trained("omni-nav", *SMALL, *RECURRENT))
    with make_flight(tmp_path_factory.mktemp("logs")) as flight:
        flight.start("twin", str(bundle), "--use-sim-time")
        flight.start("policy", str(bundle), "--use-sim-time")
        flight.fly(until=0.5)
        yield flight


@pytest.mark.release  # with every change a base with differential drive; it trains and exports a policy first
@pytest.mark.parametrize("base", ["omni base"], indirect=True)
def test_a_twist_drives_an_omnidirectional_base_to_the_side(base) -> None:
    """Odometry tells a speed to the left like that of the Twist, which this policy hardly changes."""
    from geometry_msgs.msg import TwistStamped
    from nav_msgs.msg import Odometry

    from robo_rl.ros import quality

    told, measured = [], []
    node = base.operator.node
    node.create_subscription(TwistStamped, "/cmd_vel", lambda m: told.append(m.twist), quality.SENSOR)
    node.create_subscription(Odometry, "/odom", lambda m: measured.append(m.twist.twist), quality.SENSOR)
    base.take_off_again()
    base.until(lambda: len(told) > 10 and len(measured) > 10, "commands and odometry")
    for twist in told[-3:]:
        assert 0.0 < abs(twist.linear.y) < 0.8
        assert abs(measured[-1].linear.y - twist.linear.y) < 0.1
        assert abs(measured[-1].linear.x - twist.linear.x) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("base", ["base"], indirect=True)  # alone, so that all cases have the same one
@pytest.mark.parametrize(("fault", "reason", "name"), over_dds(BASE))
def test_a_base_stops_within_its_deadline_whatever_is_wrong_with_its_signals(
    base, fault_table, fault: str, reason: str, name: str
) -> None:
    passed, found = stopped(base, fault, reason, name)
    fault_table.add(f"base: {fault}", passed, found["source"], found["reason"], found["sentence"])


@pytest.mark.release  # with every change a base with differential drive; it trains and exports a policy first
@pytest.mark.parametrize("base", ["omni base"], indirect=True)
@pytest.mark.parametrize(("fault", "reason", "name"), over_dds(OF_OMNI))
def test_so_does_an_omnidirectional_base(base, fault_table, fault: str, reason: str, name: str) -> None:
    passed, found = stopped(base, fault, reason, name)
    fault_table.add(f"omni base: {fault}", passed, found["source"], found["reason"], found["sentence"])


def stopped(base, fault: str, reason: str, name: str) -> tuple[float, dict[str, Any]]:
    """How long the base took to stop (s) after a fault, and what it told of it."""
    for _ in range(5):  # a busy computer may be the first fault
        base.take_off_again()
        base.operator.fault(fault)
        found = base.fault()
        if found["reason"] != "OVERRUN":
            break
    base.until(lambda: base.status.get("since_us") and base.status["fault"], "the fault's time")
    since = base.status["since_us"] * 1e-6
    passed = found["time"] - since
    assert found["reason"] == reason
    assert name in found["sentence"]
    assert found["source"] == "SAFE"
    allowed = DEADLINE + (2 * PERIOD if reason == "SIGNAL_FROZEN" else 0)  # from the first that repeats
    assert passed <= allowed + 1e-6
    end = max(base.applied[-1][0], since + allowed)
    base.until(lambda: base.applied[-1][0] > end + 2 * PERIOD, "more commands")
    driven = [t for t, command in base.applied if (command != 0).any()]
    assert driven[-1] - since <= allowed + PERIOD + 1e-6  # and the message's way
    return passed, found


def test_goal_and_odometry_come_where_ros_has_them_and_a_twist_goes_out() -> None:
    contract = DiffNav().spec.contract(Provenance("none", 0, 0, "0" * 64), Network((8,), "tanh", False))
    wires = {wire.name: wire for wire in signal_wires(contract.signals)}
    assert {name: str(wire) for name, wire in wires.items()} == {
        "scan": "scan sensor_msgs/msg/LaserScan ranges",
        "position": "odom nav_msgs/msg/Odometry position",
        "orientation": "odom nav_msgs/msg/Odometry orientation",
        "wheel_speed": "odom nav_msgs/msg/Odometry linear_velocity",
        "yaw_rate": "imu sensor_msgs/msg/Imu angular_velocity",
        "position_setpoint": "setpoint/pose geometry_msgs/msg/PoseStamped position",
    }
    signals = {signal.name: signal for signal in contract.signals}
    values = {
        "position": np.array([1.5, -2.5]), "orientation": np.array([0.0, 0.0, 0.6, 0.8]),
        "wheel_speed": np.array([0.125]), "position_setpoint": np.array([3.0, 4.0]),
    }  # fmt: skip
    for topic in (("position", "orientation", "wheel_speed"), ("position_setpoint",)):
        group = [wires[name] for name in topic]
        message = compose(group, signals, values, 0)
        for wire in group:
            found = read(wire.kind, wire.field, message, signals[wire.name])
            np.testing.assert_array_equal(found, values[wire.name].astype(np.float32))
    message = None
    for wire, value in zip(command_wires(contract.commands), (0.2, -0.7), strict=True):
        assert (wire.topic, wire.kind) == ("cmd_vel", "geometry_msgs/msg/TwistStamped")
        message = write(wire, contract.command(wire.name), [value], 5, message)
    assert (message.twist.linear.x, message.twist.angular.z) == (0.2, -0.7)
