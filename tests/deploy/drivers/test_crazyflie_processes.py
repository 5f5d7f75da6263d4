"""A Crazyflie over UDP: what happens when the program that flies it, or the vehicle's own process, is killed."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("cflib", reason="cflib is missing: pip install 'robo-rl[crazyflie]'")

ROOT = Path(__file__).parents[3]
PILOT = """
import sys, time
import numpy as np
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.drivers import make
from robo_rl.deploy.robot.drivers.driver import Mode, Settings
driver = make("crazyflie", Bundle.read("zoo:quadrotor-rates-crazyflie").contract, Settings(sys.argv[1]))
driver.connect()
driver.enable()
up, last = False, time.monotonic()
while not driver.health().problems:
    seen = driver.read(time.monotonic_ns() // 1000)
    place, speed = (seen[n][0] for n in ("position", "linear_velocity"))
    thrust = 9.81 + 4.0 * (0.6 - place[2]) - 3.0 * speed[2]
    driver.write({"body_rate": np.zeros(3), "thrust": np.array([max(3.0, thrust)])}, Mode.POLICY)
    if place[2] > 0.3 and not up:
        up = True
        print("flies", flush=True)
    time.sleep(0.02)
print("stopped:", *driver.health().problems, flush=True)
driver.close()
"""
VEHICLE = """
import sys
from robo_rl.deploy.emulate.crazyflie.serve import serve
from robo_rl.deploy.emulate.crazyflie.wire import RadioWire
wire, said = RadioWire(), []
def each(since):
    vehicle = wire.vehicle
    if vehicle.supervisor.info & 0x10:
        said[:] = ["flew"]
    elif said and vehicle.off and vehicle.truth["position"][2] < 0.05:
        print("down, motors off", vehicle.supervisor.state.name, flush=True)
        said.clear()
print("on", flush=True)
serve(wire, int(sys.argv[1]), each, 200.0)
"""
PATIENT = 100.0  # s


def start(program: str, argument: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, argument], env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip


def said(program: subprocess.Popen[str]) -> str:
    assert program.stdout is not None
    assert select.select([program.stdout], [], [], PATIENT)[0], "it says nothing"
    return program.stdout.readline()


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["pilot", "vehicle"])
def test_after_kill_9_of_either_side_motors_are_off_or_the_program_ends(killed: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    vehicle = start(VEHICLE, str(port))
    try:
        assert said(vehicle) == "on\n"
        for _ in range(3):  # this computer may be busy: the firmware does not wait for long
            pilot = start(PILOT, f"udp://127.0.0.1:{port}")
            if said(pilot) == "flies\n":
                break
            pilot.wait()
            vehicle.kill()
            vehicle.wait()
            vehicle = start(VEHICLE, str(port))
            assert said(vehicle) == "on\n"
        victim, other = (pilot, vehicle) if killed == "pilot" else (vehicle, pilot)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        told = said(other)
        if killed == "pilot":
            assert told == "down, motors off LOCKED\n"
        else:
            assert told.startswith("stopped:")
            begun = time.monotonic()
            other.wait(PATIENT)
            assert time.monotonic() - begun < PATIENT
    finally:
        for program in (vehicle, pilot):
            program.kill()
            program.wait()
