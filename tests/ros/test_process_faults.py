"""Processes that die, stall, or lose their network or disk: the robot ends in its safe command all the same."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from deploy.logfile import read_log
from deploy.replay import replay

pytestmark = pytest.mark.slow
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def patient(make_variant) -> Path:
    """The bundle with a time-out of 0.1 s, so that a busy computer is no fault of its own."""
    return make_variant(signal_timeout=0.1)


@pytest.fixture
def live(flight, patient: Path, tmp_path: Path, realtime):
    """A recorded flight in real time, and its log."""
    if not realtime:
        pytest.skip("this computer grants no real-time priority: run as root, or grant rtprio in limits.conf")
    flight.start("twin", "--parameter", "timeout:=0.1", before=realtime)
    flight.start("policy", str(patient), "--record", str(tmp_path / "log"), before=realtime)
    flight.fly(until=1.5)
    assert flight.state == "ACTIVE", flight.gates
    (file,) = (tmp_path / "log").glob("*.mcap")
    return flight, file


def test_when_the_policys_process_is_killed_the_robots_watchdog_acts(live, patient: Path, fault_table):
    flight, file = live
    killed = time.time()
    os.kill(flight.processes["policy"].pid, signal.SIGKILL)
    flight.until(lambda: flight.status.get("watchdog"), "the watchdog")
    flight.until(lambda: (flight.applied[-1][1] == 0).all(), "the safe command")
    moving = [t for t, command in flight.applied if (command != 0).any()]
    passed = moving[-1] - killed
    assert passed < 0.15
    flight.until(lambda: read_log(file).whole, "the end of the file")
    assert replay(file, patient).gate is None
    fault_table.add("policy killed (-9)", passed, "SAFE", "the robot's watchdog", flight.status["watchdog"])


def test_when_the_robot_dies_the_gate_latches(live, fault_table):
    flight, _ = live
    flight.operator.do("status")
    os.kill(flight.processes["twin"].pid, signal.SIGKILL)
    killed = time.monotonic()
    found = flight.fault()
    assert found["reason"] == "SIGNAL_STALE"
    assert found["source"] == "SAFE"
    assert found["time"] - killed < 0.15
    fault_table.add("robot killed (-9)", found["time"] - killed, "SAFE", found["reason"], found["sentence"])


def test_a_robot_that_stalls_is_a_fault(live, fault_table):
    flight, _ = live
    flight.operator.fault("stall * 0.5")
    found = flight.fault()
    assert found["reason"] == "SIGNAL_STALE"
    fault_table.add("robot's computer stalls for 0.5 s", None, found["source"], found["reason"], found["sentence"])


def test_a_control_process_that_stalls_is_overridden_by_the_watchdog_and_latches(live, fault_table):
    flight, _ = live
    pid = flight.processes["policy"].pid
    os.kill(pid, signal.SIGSTOP)
    flight.until(lambda: flight.status.get("watchdog"), "the watchdog")
    os.kill(pid, signal.SIGCONT)
    found = flight.fault()
    assert found["reason"] in ("OVERRUN", "SIGNAL_STALE")
    flight.until(lambda: (flight.applied[-1][1] == 0).all(), "the safe command")
    fault_table.add("control thread stalled (SIGSTOP)", None, "SAFE", found["reason"], found["sentence"])


def test_a_dead_recorder_is_a_fault_and_loses_nothing(live, patient: Path, fault_table):
    flight, file = live
    (child,) = [p for p in children(flight.processes["policy"].pid) if "deploy.record" in command_line(p)]
    os.kill(child, signal.SIGKILL)
    found = flight.fault()
    assert "the recorder failed" in found["sentence"]
    logged = replay(file, patient)
    assert not logged.whole
    assert logged.duration > 1.0
    assert logged.gate is None
    fault_table.add("recorder killed (-9)", None, found["source"], found["reason"], found["sentence"])


@pytest.mark.skipif(not IS_ROOT, reason="mounting a small disk needs root")
def test_a_full_disk_is_a_fault_and_what_was_written_stays(flight, bundle_file: Path, tmp_path: Path, fault_table):
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(disk)], capture_output=True)
    if made.returncode:
        pytest.skip("this computer lets nobody mount a disk")
    try:
        flight.start("twin", "--use-sim-time")
        flight.start("policy", str(bundle_file), "--use-sim-time", "--record", str(disk))
        flight.fly(until=0.5)
        found = flight.fault()
        assert "No space left on device" in found["sentence"]
        assert found["source"] == "SAFE"
        (file,) = disk.glob("*.mcap")
        assert replay(file, bundle_file).duration > 0.5
        flight.close()
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    fault_table.add("disk full while recording", None, found["source"], found["reason"], found["sentence"])


@pytest.mark.skipif(not IS_ROOT or shutil.which("ip") is None, reason="a network of one's own needs root and iproute2")
def test_when_the_network_parts_both_sides_go_to_the_safe_command(
    patient: Path, tmp_path: Path, realtime, flight, fault_table
):
    space = f"robo-rl-{os.getpid()}"
    inside = ["ip", "netns", "exec", space]
    if subprocess.run(["ip", "netns", "add", space], capture_output=True).returncode:
        pytest.skip("this computer lets nobody make a network namespace")
    udp = {"FASTDDS_BUILTIN_TRANSPORTS": "UDPv4"}

    def operate(action: str) -> bool:
        environment = {**os.environ, **udp, "ROS_DOMAIN_ID": flight.domain}
        command = [*inside, sys.executable, "-m", "robo_rl", "ros", action]
        done = subprocess.run(command, env=environment, timeout=120, capture_output=True, text=True)
        print(f"{action}: {done.stdout}{done.stderr}")
        return done.returncode == 0

    try:
        subprocess.run([*inside, "ip", "link", "set", "lo", "up"], check=True)
        subprocess.run([*inside, "ip", "link", "set", "lo", "multicast", "on"], check=True)
        flight.start("twin", "--parameter", "timeout:=0.1", before=(*inside, *realtime), env=udp)
        record = ("--record", str(tmp_path / "log"))
        flight.start("policy", str(patient), *record, before=(*inside, *realtime), env=udp)
        assert operate("configure")
        assert any(operate("activate") for _ in range(10))
        assert operate("engage") or any([operate("reset"), operate("arm"), operate("engage")][-1] for _ in range(5))
        (file,) = (tmp_path / "log").glob("*.mcap")
        subprocess.run([*inside, "ip", "link", "set", "lo", "down"], check=True)
        flight.until(lambda: "no command for 100 ms" in flight.log("twin"), "the watchdog")
        flight.until(lambda: "FAULT: " in flight.log("policy"), "the gate")  # stale, or held up in sending
        fault = replay(file, patient).faults[-1]
        assert "it is too old" in fault or "behind their schedule" in fault
    finally:
        flight.close()
        subprocess.run(["ip", "netns", "del", space], check=True)
    fault_table.add("DDS partition", None, "SAFE", "gate and the robot's watchdog", fault.split(": ", 1)[1])


def children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(word) for word in found.stdout.split()]


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
