"""The process that owns a Unitree robot's command topic: python -m robo_rl.deploy.robot.drivers.unitree.keeper FD
PORT [damp]

A program starts it (``link.KeeperProcess``) and commands through it. It outlives the program, and then damps the legs.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time

from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.unitree.dds import Wire
from robo_rl.deploy.robot.drivers.unitree.keeping import PERIOD, Keeper
from robo_rl.deploy.robot.drivers.unitree.link import BIGGEST

ORDERS = 64
"""Of the program that are taken between two looks at the robot."""
LOOK = 0.001
"""s between looks at what the robot sent."""
TELL = 0.05
"""s between reports of the keeper's own state; changes of it are told at once."""
PRIORITY = 20
"""SCHED_FIFO, where that is allowed."""


def main() -> int:
    """Until the program has ended and the legs were damped for a while."""
    program = socket.socket(fileno=int(sys.argv[1]))
    program.setblocking(False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends when its work is done
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    try:
        wire = Wire(sys.argv[2])
    except DriverError as error:
        _tell(program, b"X", str(error).encode()[:1000])
        return 1
    again = "damp" in sys.argv[3:]
    return serve(program, wire, Keeper("the keeper before this one ended" if again else ""))


def serve(program: socket.socket, wire: Wire, keeper: Keeper) -> int:
    """The loop."""
    due = told = time.monotonic()
    open_, said = True, None
    asked: dict[int, int] = {}
    while not keeper.done(now := time.monotonic()):
        select.select([program] if open_ else [], [], [], max(0.0, min(LOOK, due - now)))
        now = time.monotonic()
        open_ = open_ and _orders(program, wire, keeper, asked, now)
        for data in wire.take(wire.states):
            if keeper.state(now, data):
                _tell(program, b"S", int(1e6 * now).to_bytes(8, "little") + data)
        for _ in wire.take(wire.commands):
            keeper.other_command(now)
        for number, code, status, text in wire.heard():
            if asked.pop(number, None) == code:
                _tell(program, b"A", json.dumps([code, status, text[:4000]]).encode())
        if now >= due:
            due = max(due + PERIOD, now - PERIOD)
            if (command := keeper.publish(now)) is not None:
                wire.send(command)
        phase = (keeper.phase, keeper.reason)
        if phase != said or now - told > TELL:
            said, told = phase, now
            _tell(program, b"K", keeper.status.encode())
    return 0


def _orders(program: socket.socket, wire: Wire, keeper: Keeper, asked: dict[int, int], now: float) -> bool:
    """What the program wants; False when it has ended."""
    for _ in range(ORDERS):
        try:
            packet = program.recv(BIGGEST)
        except BlockingIOError:
            return True
        except OSError:
            packet = b""
        kind, data = packet[:1], packet[1:]
        if not packet:
            keeper.program_ended(now)
            return False
        if kind == b"E":
            keeper.enable(now, data)
        elif kind == b"C":
            keeper.command(now, data)
        elif kind == b"D":
            keeper.damp("the program asked for it")
        elif kind == b"Q":
            keeper.quiet()
        elif kind == b"R":
            code, parameter = json.loads(data)
            number = time.monotonic_ns()
            asked[number] = code
            wire.ask(number, code, parameter)
    return True


def _tell(program: socket.socket, kind: bytes, data: bytes) -> None:
    """What the program does not take in time is lost."""
    with contextlib.suppress(OSError):
        program.send(kind + data)


if __name__ == "__main__":
    sys.exit(main())
