"""What an arm of bus servos does when the program that commands it is killed: it holds, as its driver declares."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_rl.deploy.emulate import dynamixel as of_dynamixels
from robo_rl.deploy.emulate.pty import serve
from robo_rl.deploy.emulate.servos.dynamixel_wire import DynamixelWire
from robo_rl.deploy.emulate.servos.feetech_wire import Wire
from robo_rl.deploy.emulate.so101 import TICK, Arm
from robo_rl.deploy.robot.drivers.bus_servos.calibration import write_calibration
from robo_rl.deploy.robot.drivers.bus_servos.robot_file import RobotFile, write_robot_file
from robo_rl.deploy.robot.drivers.dynamixel import registers as dynamixel
from robo_rl.deploy.robot.drivers.feetech import registers as feetech

ROOT = Path(__file__).parents[3]
PROGRAM = """
import math, sys, time
import numpy as np
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.drivers import make
from robo_rl.deploy.robot.drivers.driver import DriverError, Mode, Settings
contract = Bundle.read("zoo:arm-place-so101").contract
for _ in range(20):  # this computer may be busy
    driver = make(sys.argv[1], contract, Settings(*sys.argv[2:]))
    try:
        driver.connect()
        home = driver.read(time.monotonic_ns() // 1000)
        driver.enable()
        print(driver.silence.name, flush=True)
        break
    except DriverError:
        driver.close()
start = time.monotonic()
while True:
    now = time.monotonic()
    samples = driver.read(time.monotonic_ns() // 1000)
    wave = 0.1 * math.sin(6.0 * (now - start))
    driver.write({c.name: home[c.feedback][0] + wave for c in contract.commands}, Mode.POLICY)
    if samples and now - start > 1.0:
        print("moving", flush=True)
    time.sleep(0.02)
"""
PATIENT = 50.0  # s


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["so101", "dynamixel"])
def test_an_arm_whose_program_is_killed_holds(driver: str, tmp_path: Path) -> None:
    """At its last goal, or where a bus watchdog stopped it."""
    arm: Any = Arm() if driver == "so101" else of_dynamixels.Arm()
    r: Any = feetech if driver == "so101" else dynamixel
    wire: Any = Wire(arm.bus) if driver == "so101" else DynamixelWire(arm.bus)
    calibration, file = tmp_path / "arm.json", tmp_path / "arm.toml"
    write_calibration(calibration, arm.calibration)
    write_robot_file(file, getattr(arm, "file", RobotFile()))
    ports, ended, quiet = queue.Queue[str](), threading.Event(), threading.Event()
    killed = threading.Event()

    def advance(seconds: float) -> None:
        if ended.is_set():
            raise InterruptedError
        arm.advance(seconds)
        if killed.is_set() and np.abs(arm.velocity).max() < 0.01:
            quiet.set()

    def emulate() -> None:
        with pytest.raises(InterruptedError):
            serve(ports.put, wire.exchange, advance, TICK)

    thread = threading.Thread(target=emulate)
    thread.start()
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, driver, ports.get(timeout=PATIENT), str(file), str(calibration)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == {"so101": "HOLDS\n", "dynamixel": "STAYS\n"}[driver]
        assert program.stdout.readline() == "moving\n"
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
        killed.set()
        assert quiet.wait(PATIENT)
        for servo in arm.servos:
            assert servo.get(r.TORQUE_ENABLE) == 1
            assert driver == "so101" or servo.get(r.BUS_WATCHDOG) == r.TRIPPED
            assert abs(servo.get(r.GOAL_POSITION) - servo.get(r.PRESENT_POSITION)) < 100  # 9°: it sags under gravity
    finally:
        program.kill()
        program.wait()
        ended.set()
        thread.join()
