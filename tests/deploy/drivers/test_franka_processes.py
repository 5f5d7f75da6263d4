"""What a Franka does when the program that moves it is killed, by kill -9: its own controller holds it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("franky", reason="franky is missing: pip install 'robo-rl[franka]'")
pytest.importorskip("franky_sim", reason="franky_sim is missing: pip install 'robo-rl[franka-sim]'")

from robo_rl.deploy.emulate.franka import Station
from robo_rl.deploy.emulate.franka.serve import serve
from robo_rl.deploy.emulate.franka.wire import FrankaWire

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys, time
import numpy as np
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.drivers import make
from robo_rl.deploy.robot.drivers.driver import DriverError, Mode, Settings
contract = Bundle.read("zoo:arm-reach").contract
while True:  # this computer may be busy
    driver = None
    try:
        driver = make("franka", contract, Settings(sys.argv[1]))
        driver.connect()
        driver.enable()
        for count in range(1500):
            driver.read(time.monotonic_ns() // 1000)
            place = np.array([0.5, 0.1 * np.sin(0.05 * count), 0.16])
            driver.write({"tool_position_target": place, "gripper_position_target": np.array([0.04])}, Mode.POLICY)
            if driver.health().problems:
                break
            if count == 50:
                print("moves", flush=True)
            time.sleep(0.02)
    except DriverError:
        pass
    finally:
        if driver is not None:
            driver.close()
"""
PATIENT = 100.0  # s


@pytest.mark.slow
def test_an_arm_whose_program_is_killed_is_held_by_its_own_controller() -> None:
    station, killed, ended, still = Station(), threading.Event(), threading.Event(), threading.Event()
    past: list[np.ndarray] = []

    def each(since: float) -> None:
        past.append(station.angles)
        if killed.is_set() and not station.server.moving and len(past) > 1000:
            moved = float(np.abs(past[-1] - past[-200]).max())
            if moved < 1e-3:
                still.set()
        del past[:-1100]
        if ended.is_set():
            raise InterruptedError

    def emulate() -> None:
        with contextlib.suppress(InterruptedError):
            serve(FrankaWire(station), each)

    thread = threading.Thread(target=emulate)
    thread.start()
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, station.host],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    try:
        assert program.stdout is not None
        assert select.select([program.stdout], [], [], PATIENT)[0], "it does not move"
        assert program.stdout.readline() == "moves\n"
        place = station.tool
        program.send_signal(signal.SIGKILL)
        program.wait()
        killed.set()
        assert still.wait(PATIENT)
        assert np.linalg.norm(station.tool - place) < 0.05
    finally:
        program.kill()
        program.wait()
        ended.set()
        thread.join()
        station.close()
