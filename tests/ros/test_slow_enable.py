"""The node's driver takes seconds to enable its robot: that succeeds, and whatever stops meanwhile is heard at once."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.zoo import located

DRIVER = """
import os
import time
import numpy as np
from robo_rl.deploy.robot.drivers.driver import DriverError, Health, Identity, Silence

class Statue:
    silence, guard = Silence.STOPS, ""
    def __init__(self, contract):
        self.contract, self.noise = contract, np.random.default_rng(0)
        self.measured = tuple(s.name for s in contract.signals if s.source == "sensor")
    def connect(self):
        return Identity("statue")
    def read(self, now):
        places = {"orientation": [0, 0, 0, 1], "joint_position": list(self.contract.commands[0].start)}
        found = {}
        for s in self.contract.signals:
            if s.name in self.measured:
                value = np.array(places.get(s.name, [0.0] * s.size)) + 1e-3 * self.noise.normal(size=s.size)
                found[s.name] = value.astype(np.float32), now
        return found
    def enable(self):
        self.told("enabling")
        end = time.monotonic() + TAKES
        while time.monotonic() < end and not os.path.exists(TRACE + ".release"):
            time.sleep(0.02)
        self.told("enabled")
    def write(self, commands, mode): self.told("write")
    def disable(self): self.told("disabled")
    def health(self): return Health((), {})
    def close(self): self.told("closed")
    def told(self, what):
        with open(TRACE, "a") as file:
            file.write(what + "\\n")

def make(contract, settings):
    return Statue(contract)
"""


@pytest.fixture
def slow(flight, tmp_path: Path):
    """``slow(seconds)``: a configured node whose driver takes that long; what the driver was asked."""
    from std_msgs.msg import Empty

    from robo_rl.ros import quality

    trace = tmp_path / "trace"

    def asked() -> list[str]:
        return trace.read_text().split() if trace.exists() else []

    def start(takes: float):
        (tmp_path / "statue.py").write_text(f"TAKES, TRACE = {takes}, {str(trace)!r}\n{DRIVER}")
        setpoints = "setpoints:=['linear_velocity_command=0 0','yaw_rate_command=0']"
        parameters = "--parameter", f"driver:={tmp_path / 'statue.py'}", setpoints
        flight.start("policy", str(located("zoo:go2-flat")), *parameters)
        node = flight.operator.node
        heart = node.create_publisher(Empty, "policy/heartbeat", quality.OPERATOR)
        node.create_timer(0.05, lambda: heart.publish(Empty()))
        flight.operator.do("configure")
        flight.until(lambda: flight.gates, "the gate")
        return asked

    start.release = (tmp_path / "trace.release").touch
    return start


def activating(flight, asked):
    """The answer to ``activate``, which is yet to come: the driver is at work.

    The gate refuses as long as it has not heard the operator's first heartbeat, and is then asked again.
    """
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState

    request = ChangeState.Request()
    request.transition.id = Transition.TRANSITION_ACTIVATE
    client = flight.operator._client(ChangeState, "policy/change_state")
    flight.until(client.service_is_ready, "the service")
    answer = client.call_async(request)

    def enabling() -> bool:
        nonlocal answer
        if answer.done() and not asked():
            answer = client.call_async(request)
        return "enabling" in asked()

    flight.until(enabling, "the driver")
    return answer


def test_an_enable_of_seconds_ends_armed_and_the_arm_service_needs_an_active_node(flight, slow) -> None:
    asked = slow(2.0)
    with pytest.raises(ValueError, match="the node is not active; activate it, which arms"):
        flight.operator.do("arm")
    answer = activating(flight, asked)
    flight.until(answer.done, "the answer")
    assert answer.result().success, (flight.operator.refusal, asked()[:9], flight.log("policy"))
    for _ in range(5):  # a busy computer may delay a step by more than the gate bears
        flight.until(lambda: flight.state in ("READY", "FAULT"), "the armed gate")
        flight.until(lambda: "write" in asked(), "the first command")
        if flight.state == "READY":
            break
        assert {gate["reason"] for gate in flight.gates if gate["state"] == "FAULT"} == {"OVERRUN"}
        flight.operator.do("reset")
        flight.operator.do("arm")
    assert flight.state == "READY"
    assert asked()[:3] == ["enabling", "enabled", "write"]


@pytest.mark.parametrize(("action", "state"), [("stop", "FAULT"), ("disarm", "IDLE")])
def test_a_stop_meanwhile_is_answered_at_once_and_ends_disabled(flight, slow, action: str, state: str) -> None:
    asked = slow(90.0)
    answer = activating(flight, asked)
    flight.operator.do(action)
    assert "enabled" not in asked(), "it was answered while the driver was still at work"
    slow.release()
    flight.until(answer.done, "the answer")
    assert not answer.result().success
    flight.until(lambda: "disabled" in asked(), "the actuators off")
    assert "write" not in asked()
    flight.until(lambda: flight.state == state, "the gate, told")
    assert "stopped" in flight.operator.refusal or "the operator asked to stop" in flight.operator.refusal


def pending(pid: int) -> bool:
    """Whether a signal is on its way to a process."""
    told = Path(f"/proc/{pid}/status").read_text()
    return any(int(mask, 16) for mask in re.findall(r"^(?:SigPnd|ShdPnd):\s*(\w+)$", told, re.M))


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_meanwhile_ends_disabled(flight, slow, times: int) -> None:
    asked = slow(90.0)
    activating(flight, asked)
    process = flight.processes["policy"]
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        flight.until(lambda: not pending(process.pid), "a process that has heard it")
    time.sleep(0.2)  # its handler runs between two looks at what else there is to do
    slow.release()
    assert process.wait(60) == 0, flight.log("policy")
    assert asked() == ["enabling", "enabled", "disabled", "closed"]
