"""The emulated arm of Dynamixel servos behind a real terminal: the maker's own library pings, moves and guards it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from robo_rl.deploy.robot.drivers.dynamixel import registers as r

ROOT = Path(__file__).parents[3]


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[str]:
    """The port of an emulated arm."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "ros2_ws/src/robo_rl_ros")])
    command = [sys.executable, "-m", "robo_rl", "emulate", "dynamixel", "--calibration", str(tmp_path / "arm.json")]
    command += ["--robot-file", str(tmp_path / "arm.toml")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path})
    assert process.stdout is not None
    found = re.search(r"/dev/pts/\d+", process.stdout.readline())
    assert found is not None
    yield found[0]
    process.kill()
    process.wait()


def test_the_makers_library_reads_moves_and_guards_the_emulated_arm(emulator: str) -> None:
    sdk = pytest.importorskip("dynamixel_sdk", reason="needs the maker's library: pip install 'robo-rl[dev]'")
    port, packets = sdk.PortHandler(emulator), sdk.PacketHandler(2.0)
    assert port.openPort()
    port.setBaudRate(1_000_000)

    def sure(ask: Callable[[], tuple[Any, ...]], error: int = 0) -> Any:
        for _ in range(20):  # the library waits for some ms, and this computer may be busy
            *values, result, got = ask()
            if result == sdk.COMM_SUCCESS:
                assert got == error
                return values[0] if values else None
        raise AssertionError(packets.getTxRxResult(result))

    assert sure(lambda: packets.ping(port, 3)) == 1030
    before = sure(lambda: packets.read4ByteTxRx(port, 1, r.PRESENT_POSITION.address))
    for id in (1, 2):
        sure(lambda id=id: packets.write1ByteTxRx(port, id, r.TORQUE_ENABLE.address, 1))
    goal = before + 300
    write = sdk.GroupSyncWrite(port, packets, r.GOAL_POSITION.address, 4)
    assert write.addParam(1, goal.to_bytes(4, "little"))
    assert write.txPacket() == sdk.COMM_SUCCESS
    read = sdk.GroupSyncRead(port, packets, r.PRESENT_POSITION.address, 4)
    for id in (1, 2):
        read.addParam(id)
    for _ in range(2000):  # however busy this computer is, it gets there
        if read.txRxPacket() == sdk.COMM_SUCCESS:
            here = read.getData(1, r.PRESENT_POSITION.address, 4)
            if abs(here - goal) < 30:
                break
    assert abs(here - goal) < 30
    sure(lambda: packets.write1ByteTxRx(port, 1, r.BUS_WATCHDOG.address, 2))
    time.sleep(0.5)
    assert sure(lambda: packets.read1ByteTxRx(port, 1, r.BUS_WATCHDOG.address)) == 0xFF
    sure(lambda: packets.write4ByteTxRx(port, 1, r.GOAL_POSITION.address, before), error=sdk.ERRNUM_DATA_RANGE)
    sure(lambda: packets.write1ByteTxRx(port, 1, r.BUS_WATCHDOG.address, 0))
    sure(lambda: packets.write4ByteTxRx(port, 1, r.GOAL_POSITION.address, before))
    port.closePort()
