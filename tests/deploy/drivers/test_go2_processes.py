"""The driver of a Go2 over real DDS: its keeper outlives a program that is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cyclonedds", reason="needs Cyclone DDS: pip install 'robo-rl[go2]' (x86-64)")

from robo_rl.deploy.emulate.go2 import Go2
from robo_rl.deploy.emulate.go2.dds import serve
from robo_rl.deploy.emulate.go2.wire import Go2Wire
from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.unitree.keeper import claim, give_way
from robo_rl.deploy.robot.drivers.unitree.keeping import Keeper, damping
from robo_rl.deploy.robot.drivers.unitree.messages import decode_command

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys, time
import numpy as np
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.drivers import make
from robo_rl.deploy.robot.drivers.driver import DriverError, Mode, Settings
for _ in range(20):  # this computer may be busy
    driver = make("go2", Bundle.read("zoo:go2-flat").contract, Settings(sys.argv[1]))
    try:
        driver.connect()
        driver.read(time.monotonic_ns() // 1000)
        driver.enable()
        break
    except DriverError:
        driver.close()
print("enabled", flush=True)
while True:
    driver.read(time.monotonic_ns() // 1000)
    driver.write({"joint_position_target": np.array([0.0, 1.2, -2.6] * 4)}, Mode.POLICY)
    time.sleep(0.02)
"""
PATIENT = 50.0  # s


class Watched(Go2):
    """Notes what it is commanded."""

    def __init__(self) -> None:
        super().__init__()
        self.stiffly, self.damped = threading.Event(), threading.Event()

    def receive(self, data: bytes) -> bool:
        command = decode_command(data)
        if command.kp.any():
            self.stiffly.set()
        elif self.stiffly.is_set() and (command.kd == 3.0).all():
            self.damped.set()
        return super().receive(data)


@pytest.mark.slow
def test_legs_are_damped_after_the_program_is_killed() -> None:
    port, robot, ended = f"lo/test{os.getpid()}", Watched(), threading.Event()

    def each(since: float) -> None:
        if ended.is_set():
            raise InterruptedError

    def emulate() -> None:
        with contextlib.suppress(InterruptedError):
            serve(port, Go2Wire(robot), each)

    thread = threading.Thread(target=emulate)
    thread.start()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, port], env=environment, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "enabled\n"
        assert robot.stiffly.wait(PATIENT)
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
        assert robot.damped.wait(PATIENT)
    finally:
        program.kill()
        program.wait()
        ended.set()
        thread.join()
    assert robot.refused == 0


def test_one_keeper_has_the_place_and_one_that_only_damps_hands_it_over() -> None:
    port = f"lo/place{os.getpid()}"
    place, damped = claim(port)
    assert not damped
    keeper = Keeper()
    keeper.enable(0.0, damping(np.zeros(12)))
    ended = threading.Event()

    def serve_place() -> None:
        while not ended.is_set() and not give_way(place, keeper):
            ended.wait(0.001)
        place.close()

    thread = threading.Thread(target=serve_place)
    thread.start()
    try:
        with pytest.raises(DriverError, match="another program on this computer commands the robot"):
            claim(port)
        keeper.program_ended(1.0)
        again, damped = claim(port)
        assert damped
        again.close()
    finally:
        ended.set()
        thread.join()
