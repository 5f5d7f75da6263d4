"""Processes that die, stall, or lose their network or disk: the robot ends in its safe command all the same."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.controllers.gate.codes import Reason, State
from robo_rl.deploy.robot.logs.reader import read_log
from robo_rl.deploy.robot.logs.replay import replay

pytestmark = pytest.mark.slow
TIMEOUT = 0.1
"""s: the contract's signal_timeout here, the default of contracts."""
SLACK = 0.05
"""s that two clocks, their messages and a busy computer may add to a measurement from outside."""
UNWRITTEN = 2.0
"""s of a log that may not have reached the file: half a second, and what a busy computer adds."""
ATTEMPTS = 8
"""Take-offs in real time that a busy computer may end with a fault, before the one that a test is about."""
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory, bundle_file: Path, change_safety) -> Path:
    """The bundle with a time-out of 0.1 s, so that a busy computer is no fault of its own."""
    return change_safety(bundle_file, tmp_path_factory.mktemp("bundle") / "patient.onnx", signal_timeout=TIMEOUT)


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory, make_flight, realtime) -> Iterator:
    """A stand-in robot in real time, for all of these tests; it is killed in the last of them."""
    if not realtime:
        pytest.skip("this computer grants no real-time priority: run as root, or grant rtprio in limits.conf")
    with make_flight(tmp_path_factory.mktemp("logs")) as flight:
        flight.start("twin", "--real-time", "--parameter", f"timeout:={TIMEOUT}", before=realtime)
        yield flight


def take_off(flight, bundle: Path, folder: Path, realtime) -> Path:
    """A new process for the policy, and a recorded flight of 1.5 s without a fault; returns the log."""
    for attempt in range(ATTEMPTS):
        if "policy" in flight.processes:
            flight.stop("policy")
        flight.operator.fault("")
        flight.operator.restart_twin()
        flight.forget()
        logs = folder / str(attempt)
        flight.start("policy", str(bundle), "--record", str(logs), before=realtime)
        flight.fly(until=1.5)
        if flight.state == "ACTIVE":
            (file,) = logs.glob("*.mcap")
            return file
    pytest.fail(f"no take-off out of {ATTEMPTS} went well; the gate said last: {flight.gates[-1]}")


@pytest.fixture
def live(robot, patient: Path, tmp_path: Path, realtime):
    """A recorded flight in real time, and its log."""
    return robot, take_off(robot, patient, tmp_path / "log", realtime)


@pytest.fixture
def simulated(flight, bundle_file: Path) -> Callable[[Path], Path]:
    """``simulated(folder)``: a flight in simulated time, recorded in a folder; returns the log."""

    def start(folder: Path) -> Path:
        flight.start("twin", "--use-sim-time")
        flight.start("policy", str(bundle_file), "--use-sim-time", "--record", str(folder))
        flight.fly(until=0.5)
        (file,) = folder.glob("*.mcap")
        return file

    return start


def ended_log(flight, file: Path, reason: str, read_whole_log):
    """The log after the node let go of it: whole, with every step, and with the fault."""
    flight.operator.do("deactivate")
    flight.operator.do("cleanup")
    log = read_whole_log(file)
    faults = [step for step in log.steps if step.gate["state"] == State.FAULT]
    assert faults[0].gate["reason"] == Reason[reason]
    return log


@pytest.mark.realtime
def test_when_the_policys_process_is_killed_the_robots_watchdog_acts(live, patient: Path, read_whole_log, fault_table):
    flight, file = live
    os.kill(flight.processes["policy"].pid, signal.SIGKILL)
    killed = time.time()
    flight.until(lambda: flight.status.get("watchdog"), "the watchdog")
    flight.until(lambda: (flight.applied[-1][1] == 0).all(), "the safe command")
    moving = [t for t, command in flight.applied if (command != 0).any()]
    passed = moving[-1] - killed
    assert passed < TIMEOUT + SLACK
    flight.until(lambda: read_log(file).whole, "the end of the file")
    log = read_whole_log(file)
    assert log.steps[-1].wall * 1e-9 > killed - 0.05
    assert replay(log, patient).policy is None
    assert replay(log, patient).gate is None
    flight.processes.pop("policy").wait(timeout=60)
    fault_table.add("policy killed (-9)", passed, "SAFE", "the robot's watchdog", flight.status["watchdog"])


@pytest.mark.realtime
def test_a_robot_that_stalls_is_a_fault(live, read_whole_log, fault_table):
    flight, file = live
    flight.operator.fault("stall * 0.5")
    found = flight.fault()
    assert found["reason"] == "SIGNAL_STALE"
    assert found["source"] == "SAFE"
    ended_log(flight, file, found["reason"], read_whole_log)
    fault_table.add("robot's computer stalls for 0.5 s", None, found["source"], found["reason"], found["sentence"])


@pytest.mark.realtime
def test_a_control_process_that_stalls_is_overridden_by_the_watchdog_and_latches(live, read_whole_log, fault_table):
    flight, file = live
    pid = flight.processes["policy"].pid
    os.kill(pid, signal.SIGSTOP)
    stopped = time.time()
    flight.until(lambda: flight.status.get("watchdog"), "the watchdog")
    passed = max(t for t, command in flight.applied if (command != 0).any()) - stopped
    os.kill(pid, signal.SIGCONT)
    found = flight.fault()
    assert passed < TIMEOUT + SLACK
    assert found["reason"] in ("OVERRUN", "SIGNAL_STALE")
    flight.until(lambda: (flight.applied[-1][1] == 0).all(), "the safe command")
    ended_log(flight, file, found["reason"], read_whole_log)
    fault_table.add("control process stalled (SIGSTOP)", passed, "SAFE", found["reason"], found["sentence"])


def test_a_dead_recorder_is_a_fault_and_loses_nothing(
    flight, simulated, bundle_file: Path, tmp_path: Path, read_whole_log, fault_table
):
    file = simulated(tmp_path / "log")
    (child,) = [
        p for p in children(flight.processes["policy"].pid) if "robo_rl.deploy.robot.logs.record" in command_line(p)
    ]
    killed = time.time()
    os.kill(child, signal.SIGKILL)
    found = flight.fault()
    assert "the recorder failed" in found["sentence"]
    assert found["source"] == "SAFE"
    log = read_whole_log(file, cut_off=True)
    assert not log.whole
    assert log.steps[-1].wall * 1e-9 > killed - UNWRITTEN
    assert replay(log, bundle_file).gate is None
    fault_table.add("recorder killed (-9)", None, found["source"], found["reason"], found["sentence"])


@pytest.mark.skipif(not IS_ROOT, reason="mounting a small disk needs root: run the tests as root")
def test_a_full_disk_is_a_fault_and_what_was_written_stays(
    flight, simulated, bundle_file: Path, tmp_path: Path, read_whole_log, fault_table
):
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=280k", "tmpfs", str(disk)], capture_output=True)
    if made.returncode:
        pytest.skip("mounting is not allowed here: run on the machine, or in a container with --privileged")
    try:
        file = simulated(disk)
        found = flight.fault()
        assert "No space left on device" in found["sentence"]
        assert found["source"] == "SAFE"
        log = read_whole_log(file, cut_off=True)
        assert log.steps[-1].time * 1e-6 > found["time"] - UNWRITTEN
        assert replay(log, bundle_file).policy is None
        flight.stop("policy")
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
    fault_table.add("disk full while recording", None, found["source"], found["reason"], found["sentence"])


@pytest.mark.realtime
def test_when_the_robot_dies_the_gate_latches(live, read_whole_log, fault_table):
    """The last of the tests with this robot."""
    flight, file = live
    flight.operator.do("status")
    os.kill(flight.processes["twin"].pid, signal.SIGKILL)
    killed = time.monotonic()
    found = flight.fault()
    assert found["reason"] == "SIGNAL_STALE"
    assert found["source"] == "SAFE"
    assert found["time"] - killed < TIMEOUT + SLACK
    ended_log(flight, file, found["reason"], read_whole_log)
    fault_table.add("robot killed (-9)", found["time"] - killed, "SAFE", found["reason"], found["sentence"])


@pytest.mark.realtime
@pytest.mark.skipif(
    not IS_ROOT or shutil.which("ip") is None, reason="needs root and iproute2: apt-get install iproute2"
)
def test_when_the_network_parts_both_sides_go_to_the_safe_command(
    patient: Path, tmp_path: Path, realtime, flight, read_whole_log, fault_table
):
    space = f"robo-rl-{os.getpid()}"
    inside = ["ip", "netns", "exec", space]
    if subprocess.run(["ip", "netns", "add", space], capture_output=True).returncode:
        pytest.skip("network namespaces are not allowed here: run on the machine, or in a container with --privileged")
    # with LOCALHOST, rmw_fastrtps adds shared memory whatever the transports are to be, and that is never cut
    udp = {"FASTDDS_BUILTIN_TRANSPORTS": "UDPv4", "ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"}

    def operate(action: str) -> bool:
        environment = {**os.environ, **udp, "ROS_DOMAIN_ID": flight.domain}
        command = [*inside, sys.executable, "-m", "robo_rl", "ros", action]
        done = subprocess.run(command, env=environment, timeout=120, capture_output=True, text=True)
        print(f"{action}: {done.stdout}{done.stderr}")
        return done.returncode == 0

    try:
        subprocess.run([*inside, "ip", "link", "set", "lo", "up"], check=True)
        subprocess.run([*inside, "ip", "link", "set", "lo", "multicast", "on"], check=True)
        flight.start("twin", "--real-time", "--parameter", f"timeout:={TIMEOUT}", before=(*inside, *realtime), env=udp)
        record = ("--record", str(tmp_path / "log"))
        flight.start("policy", str(patient), *record, before=(*inside, *realtime), env=udp)
        assert operate("configure")
        (file,) = (tmp_path / "log").glob("*.mcap")
        assert any(operate("activate") for _ in range(10))
        for _ in range(ATTEMPTS):  # a busy computer may end a flight before the network does
            if operate("engage") and flying(flight):
                break
            for action in ("stop", "reset", "arm"):
                operate(action)
        subprocess.run([*inside, "ip", "link", "set", "lo", "down"], check=True)
        assert flying(flight)
        flight.until(lambda: "no command for 100 ms" in flight.log("twin"), "the watchdog")
        flight.until(lambda: "FAULT: " in flight.log("policy"), "the gate")  # stale, or held up in sending
        fault = replay(file, patient).faults[-1]
        assert "it is too old" in fault or "behind their schedule" in fault
        flight.close()
        read_whole_log(file)
    finally:
        flight.close()
        subprocess.run(["ip", "netns", "del", space], check=True)
    fault_table.add("DDS partition", None, "SAFE", "gate and the robot's watchdog", fault.split(": ", 1)[1])


def flying(flight) -> bool:
    """Whether the policy's node said last that the policy has command."""
    told = [line for line in flight.log("policy").splitlines() if re.search(r": (IDLE|READY|ACTIVE|FAULT)[,:] ", line)]
    return bool(told) and ": ACTIVE, POLICY" in told[-1]


def children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(word) for word in found.stdout.split()]


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
