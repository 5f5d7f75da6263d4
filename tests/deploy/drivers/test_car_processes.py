"""What a car does when the program that drives it is killed: the process that outlives it brakes."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from robo_rl.deploy.emulate.f1tenth import FILE, Racer
from robo_rl.deploy.emulate.f1tenth.serve import serve
from robo_rl.deploy.emulate.f1tenth.wire import CarWire
from robo_rl.deploy.robot.drivers.deadman import DeadmanProcess
from robo_rl.deploy.robot.drivers.vesc.robot_file import write_robot_file

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys, time
import numpy as np
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.drivers import make
from robo_rl.deploy.robot.drivers.driver import DriverError, Mode, Settings
for _ in range(20):  # this computer may be busy
    driver = None
    try:
        driver = make("f1tenth", Bundle.read("zoo:car-race").contract, Settings(sys.argv[1], sys.argv[2]))
        driver.connect()
        driver.read(time.monotonic_ns() // 1000)
        driver.enable()
        break
    except DriverError:
        if driver is not None:
            driver.close()
while True:
    samples = driver.read(time.monotonic_ns() // 1000)
    driver.write({"steering_angle": np.zeros(1), "speed": np.array([0.5])}, Mode.POLICY)
    if samples["wheel_speed"][0][0] > 0.3:
        print("drives", flush=True)
    time.sleep(0.02)
"""
PATIENT = 50.0  # s


class Watched(Racer):
    """Notes what its motor is told."""

    def __init__(self) -> None:
        super().__init__()
        self.killed, self.braked = threading.Event(), threading.Event()

    def order(self, kind: str, value: float) -> None:
        if kind == "brake" and self.killed.is_set():
            self.braked.set()
        super().order(kind, value)


def test_a_program_that_hangs_when_it_is_to_stop_hands_the_robot_over() -> None:
    here, port = os.pipe()
    watch = DeadmanProcess(port, [b"brake"])
    watch.beat()
    watch.close()
    assert os.read(here, 5) == b"brake"
    watch.beat()  # the call that hung goes on
    watch.leave()
    assert watch.fired
    watch.process.kill()
    watch.process.wait()
    os.close(here)
    os.close(port)


@pytest.mark.slow
def test_a_car_is_braked_after_the_program_is_killed(tmp_path: Path) -> None:
    racer, ended, told = Watched(), threading.Event(), queue.Queue[tuple[str, str]]()

    def each(since: float) -> None:
        if ended.is_set():
            raise InterruptedError

    def emulate() -> None:
        with contextlib.suppress(InterruptedError):
            serve(CarWire(racer), lambda port, lidar: told.put((port, lidar)), each)

    thread = threading.Thread(target=emulate)
    thread.start()
    port, lidar = told.get(timeout=PATIENT)
    file = tmp_path / "car.toml"
    write_robot_file(file, type(FILE)(**{**FILE.__dict__, "lidar": lidar}))
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, port, str(file)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "drives\n"
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
        racer.killed.set()
        assert racer.braked.wait(PATIENT)
    finally:
        program.kill()
        program.wait()
        ended.set()
        thread.join()
