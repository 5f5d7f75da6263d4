"""A vehicle with PX4 over UDP: what it does when the program that flies it is killed, by kill -9."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("pymavlink", reason="pymavlink is missing: pip install 'robo-rl[px4]'")

from robo_rl.deploy.emulate.px4 import Vehicle
from robo_rl.deploy.emulate.px4.serve import serve
from robo_rl.deploy.emulate.px4.wire import PilotWire
from robo_rl.deploy.robot.drivers.mavlink.link import Udp
from robo_rl.deploy.robot.drivers.mavlink.modes import LAND

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys, time
import numpy as np
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.drivers import make
from robo_rl.deploy.robot.drivers.driver import DriverError, Mode, Settings
driver, up = None, False
while not up:  # this computer may be busy
    try:
        driver = make("px4", Bundle.read("zoo:quadrotor-rates").contract, Settings(sys.argv[1]))
        driver.connect()
        driver.enable()
    except DriverError:
        if driver is not None:
            driver.close()
        continue
    begun = time.monotonic()
    while time.monotonic() - begun < 15.0 and not driver.health().problems:
        place, speed = (driver.read(time.monotonic_ns() // 1000)[n][0] for n in ("position", "linear_velocity"))
        thrust = 9.81 + 3.0 * (1.0 - place[2]) - 3.0 * speed[2]
        driver.write({"body_rate": np.zeros(3), "thrust": np.array([max(0.0, thrust)])}, Mode.POLICY)
        if place[2] > 0.5:
            up = True
            print("flies", flush=True)
        time.sleep(0.02)
    driver.close()  # on the ground, or landing: once more
"""
PATIENT = 100.0  # s


@pytest.mark.slow
def test_a_vehicle_whose_program_is_killed_lands_by_itself() -> None:
    line = Udp(0)
    port = line.number
    line.close()
    vehicle, killed, ended, landed = Vehicle(), threading.Event(), threading.Event(), threading.Event()

    def each(since: float) -> None:
        if killed.is_set() and vehicle.mode == LAND and not vehicle.armed:
            landed.set()
        if ended.is_set():
            raise InterruptedError

    def emulate() -> None:
        with contextlib.suppress(InterruptedError):
            serve(PilotWire(vehicle), port, each)

    thread = threading.Thread(target=emulate)
    thread.start()
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, f"udp:{port}"], env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    try:
        assert program.stdout is not None
        assert select.select([program.stdout], [], [], PATIENT)[0], "it does not fly"
        assert program.stdout.readline() == "flies\n"
        program.send_signal(signal.SIGKILL)
        program.wait()
        killed.set()
        assert landed.wait(PATIENT)
    finally:
        program.kill()
        program.wait()
        ended.set()
        thread.join()
