"""An emulated Go2 or G1 on its topics, in real time."""

from __future__ import annotations

import time
from collections.abc import Callable

from robo_rl.deploy.emulate.go2 import TICK
from robo_rl.deploy.emulate.go2.wire import Go2Wire
from robo_rl.deploy.robot.drivers.unitree.dds import Wire

LONGEST = 0.1
"""s that the robot moves on at once: after a pause of this computer it does not jump."""


def serve(port: str, robot: Go2Wire, each: Callable[[float], None], seconds: float = float("inf")) -> int:
    """Answer on the topics of a port for some seconds; ``each`` is called every tick with the time since the beginning.

    Gives the number of commands that the robot dropped. DriverError where there is no DDS.
    """
    wire, other = Wire(port, robot=True, family=robot.robot.family), None
    begun = last = time.monotonic()
    while (now := time.monotonic()) - begun < seconds:
        time.sleep(max(0.0, last + TICK - now))
        now = time.monotonic()
        each(now - begun)
        for data in wire.take(wire.commands):
            robot.command(data)
        for number, code, parameter in wire.asked():
            wire.answer(number, code, *robot.robot.request(code, parameter))
        if robot.fault == "another commander" and other is None:
            other = Wire(port, family=robot.robot.family)
            robot.foreign = other.send
        told = robot.advance(min(now - last, LONGEST))
        last = now
        for data in told:
            wire.send(data)
    return robot.robot.refused
