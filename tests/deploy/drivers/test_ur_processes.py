"""A UR5e over TCP: what its arm does when the program that moves it is killed, and the program when the robot is."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from robo_rl.deploy.emulate.ur import Arm
from robo_rl.deploy.emulate.ur.serve import serve
from robo_rl.deploy.emulate.ur.wire import UrWire
from robo_rl.deploy.robot.drivers.rtde.states import PLAYING, STOPPED

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[3]
PROGRAM = """
import sys, time
from emulated_ur import usual
from robo_rl.deploy.robot.drivers.driver import DriverError, Mode
from robo_rl.deploy.robot.drivers.rtde.link import Network
from robo_rl.deploy.robot.drivers.rtde.arm import UrArm
from robo_rl.deploy.robot.drivers.rtde.robot_file import UrFile
while True:  # this computer may be busy: the robot stops a program that is late
    driver = UrArm(Network(sys.argv[1]), usual(), UrFile())
    try:
        driver.connect()
        driver.enable()
        begun, goal = time.monotonic(), driver.read(0)["joint_position"][0]
        while not driver.health().problems:
            driver.read(time.monotonic_ns() // 1000)
            driver.write({"joint_position_target": goal + min(0.1, time.monotonic() - begun)}, Mode.POLICY)
            if time.monotonic() - begun > 0.5:
                print("moved", flush=True)
            time.sleep(0.01)
        print(driver.health().problems[0], flush=True)
    except DriverError as error:
        print(error, flush=True)
    driver.close()
    time.sleep(0.2)
"""
PATIENT = 100.0  # s
HOST = f"127.61.{os.getpid() // 250 % 250}.{os.getpid() % 250 + 2}"
"""The ports of such a robot are fixed, so each process of the tests has an address of its own."""


@contextlib.contextmanager
def moved_by_a_program(host: str) -> Iterator[tuple[Arm, subprocess.Popen[str], threading.Event]]:
    """An emulated arm in real time, that a process moves already; the event ends the robot."""
    arm, ended, ready = Arm(), threading.Event(), threading.Event()

    def each(since: float) -> None:
        if ended.is_set():
            raise InterruptedError

    def emulate() -> None:
        with contextlib.suppress(InterruptedError):
            serve(UrWire(arm), host, ready.set, each)

    thread = threading.Thread(target=emulate)
    thread.start()
    assert ready.wait(PATIENT)
    path = os.pathsep.join([str(ROOT), str(HERE)])
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, host], env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE,
        text=True, cwd=ROOT,
    )  # fmt: skip
    try:
        assert heard(program, "moved"), "it does not move"
        yield arm, program, ended
    finally:
        program.kill()
        program.wait()
        ended.set()
        thread.join()


def heard(program: subprocess.Popen[str], words: str) -> bool:
    """Whether it says that, sooner or later."""
    assert program.stdout is not None
    while select.select([program.stdout], [], [], PATIENT)[0]:
        line = program.stdout.readline()
        if words in line or not line:
            return bool(line)
    return False


@pytest.mark.slow
def test_an_arm_whose_program_is_killed_stops_by_itself_and_holds() -> None:
    with moved_by_a_program(HOST) as (arm, program, _):
        program.send_signal(signal.SIGKILL)
        program.wait()
        begun = arm.seconds
        wait, turn = threading.Event(), 0
        while (arm.runtime == PLAYING or arm.seconds < begun + 1.0) and turn < 1000:
            turn += not wait.wait(0.1)
        assert arm.runtime == STOPPED
        rest = arm.joints.copy()
        wait.wait(0.3)
        assert np.abs(arm.joints - rest).max() < 1e-3


@pytest.mark.slow
def test_a_program_whose_robot_is_gone_says_so() -> None:
    with moved_by_a_program(HOST) as (_, program, ended):
        ended.set()
        assert heard(program, "connection is gone")
        assert heard(program, "no robot answers")
