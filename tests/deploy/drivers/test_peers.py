"""The emulated arm behind a real terminal: the maker's own library moves it, and processes that are killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.feetech import registers as r
from robo_rl.deploy.robot.drivers.feetech.bus import Bus
from robo_rl.deploy.robot.drivers.serial_port import SerialPort

ROOT = Path(__file__).parents[3]
OWNER = """
import sys, time
from robo_rl.deploy.robot.drivers.feetech import registers as r
from robo_rl.deploy.robot.drivers.feetech.bus import Bus
from robo_rl.deploy.robot.drivers.serial_port import SerialPort
bus = Bus(SerialPort(sys.argv[1], 1000000))
told = False
while True:
    bus.sync_write({1: b"\\1"}, r.TORQUE_ENABLE.address)
    bus.sync_write({1: r.GOAL_POSITION.encode(2200)}, r.GOAL_POSITION.address)
    found = bus.sync_read([1], r.GOAL_POSITION.address, r.GOAL_POSITION.size)
    if not told and found and r.GOAL_POSITION.decode(found[1].parameters) == 2200:
        told = True
        print("ready", flush=True)
    time.sleep(0.01)
"""


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The port of an emulated arm, and its process."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "ros2_ws/src/robo_rl_ros")])
    command = [sys.executable, "-m", "robo_rl", "emulate", "so101", "--calibration", str(tmp_path / "arm.json")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path})
    assert process.stdout is not None
    found = re.search(r"/dev/pts/\d+", process.stdout.readline())
    assert found is not None
    yield found[0], process
    process.kill()
    process.wait()


def test_the_makers_library_reads_and_moves_the_emulated_arm(emulator: tuple[str, subprocess.Popen[str]]) -> None:
    sdk = pytest.importorskip("scservo_sdk", reason="needs the maker's library: pip install 'robo-rl[dev]'")
    port, packets = sdk.PortHandler(emulator[0]), sdk.PacketHandler(0)
    assert port.openPort()
    port.setBaudRate(1_000_000)

    def sure(ask):
        for _ in range(20):  # the library waits for some ms, and this computer may be busy
            *values, result, error = ask()
            if result == sdk.COMM_SUCCESS:
                assert error == 0
                return values
        raise AssertionError(packets.getTxRxResult(result))

    assert sure(lambda: packets.ping(port, 3)) == [r.MODEL]
    before = sure(lambda: packets.read2ByteTxRx(port, 1, r.PRESENT_POSITION.address))[0]
    goal = before + 300
    sure(lambda: packets.write2ByteTxRx(port, 1, r.GOAL_POSITION.address, goal))
    sure(lambda: packets.write1ByteTxRx(port, 1, r.TORQUE_ENABLE.address, 1))
    group = sdk.GroupSyncRead(port, packets, r.PRESENT_POSITION.address, 2)
    for id in (1, 2):
        group.addParam(id)
    for _ in range(2000):  # however busy this computer is, it gets there
        if group.txRxPacket() == sdk.COMM_SUCCESS:
            here = group.getData(1, r.PRESENT_POSITION.address, 2)
            if abs(here - goal) < 30:
                break
    assert abs(here - goal) < 30
    port.closePort()


def test_an_arm_whose_owner_is_killed_stays_at_its_last_goal(emulator: tuple[str, subprocess.Popen[str]]) -> None:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, emulator[0]], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert owner.stdout is not None
    assert owner.stdout.readline() == "ready\n"
    with pytest.raises(DriverError, match="another process uses it"):
        SerialPort(emulator[0], 1_000_000)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    bus = Bus(SerialPort(emulator[0], 1_000_000))
    found: dict[int, int] = {}
    for _ in range(30_000):
        packets = bus.sync_read([1], *r.PRESENT)
        if packets:
            speed = r.PRESENT_SPEED.decode(packets[1].parameters, r.PRESENT[0])
            found[1] = r.PRESENT_POSITION.decode(packets[1].parameters, r.PRESENT[0])
            if speed == 0 and abs(found[1] - 2200) < 30:
                break
    assert abs(found[1] - 2200) < 30
    assert speed == 0
    assert bus.read(1, r.TORQUE_ENABLE) == 1


def test_a_killed_emulator_is_an_unplugged_port(emulator: tuple[str, subprocess.Popen[str]]) -> None:
    bus = Bus(SerialPort(emulator[0], 1_000_000))
    emulator[1].kill()
    emulator[1].wait()
    with pytest.raises(OSError, match=r"unplugged|Input/output error"):
        _ask_often(bus)


def _ask_often(bus: Bus) -> None:
    for _ in range(100):
        bus.sync_read([1], *r.PRESENT)


def test_a_port_that_is_none_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DriverError, match="there is no such port; plugged in are"):
        SerialPort(str(tmp_path / "ttyACM9"), 1_000_000)
    (tmp_path / "file").touch()
    with pytest.raises(DriverError, match="it is no serial port"):
        SerialPort(str(tmp_path / "file"), 1_000_000)
    with pytest.raises(DriverError, match="12345 baud is no rate"):
        SerialPort(str(tmp_path / "file"), 12345)
