"""The process that owns a Unitree robot's command topic: python -m robo_rl.deploy.robot.drivers.unitree.keeper FD
PORT FAMILY MOTORS [damp]

A program starts it (``link.KeeperProcess``) and commands through it. It outlives the program, and then damps the legs.
One that only does that hands the robot over to the next program's keeper on this computer, which goes on damping.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import socket
import sys
import time

from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.unitree.dds import Wire
from robo_rl.deploy.robot.drivers.unitree.family import family
from robo_rl.deploy.robot.drivers.unitree.keeping import PERIOD, Keeper, Phase
from robo_rl.deploy.robot.drivers.unitree.link import BIGGEST

ORDERS = 64
"""Of the program that are taken between two looks at the robot."""
LOOK = 0.001
"""s between looks at what the robot sent."""
TELL = 0.05
"""s between reports of the keeper's own state; changes of it are told at once."""
LEAVE, DAMPED, LEAVING = b"leave", b"damped", 3.0
"""To a keeper whose program has ended, its answer where it damped, and s in which it leaves."""
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
        wire = Wire(
            sys.argv[2], family=(kind := family(sys.argv[3]))
        )  # first: the keeper before this one damps until this one can
        place, taken_over = claim(sys.argv[2])
    except DriverError as error:
        _tell(program, b"X", str(error).encode()[:1000])
        return 1
    wire.take(wire.commands)  # that one's
    again = "damp" in sys.argv[5:]
    why = "the keeper before this one ended" if again else "the session before this one ended" if taken_over else ""
    return serve(program, wire, Keeper(why, int(sys.argv[4]), kind), place)


def claim(port: str) -> tuple[socket.socket, bool]:
    """The place of the one keeper of this port on this computer, and whether another one left it that damped the legs.

    DriverError where that one's program still runs.
    """
    place, asking = (socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2))
    asking.bind("")  # a name of the system's choice, for the answer
    for one in (place, asking):
        one.setblocking(False)
    name, end = f"\0robo-rl keeper {os.getuid()} {port}", time.monotonic() + LEAVING
    with asking:
        while True:
            try:
                place.bind(name)
                return place, _received(asking)[0] == DAMPED
            except OSError as error:
                if error.errno != errno.EADDRINUSE or time.monotonic() > end:
                    raise DriverError("another program on this computer commands the robot; end it first") from None
            with contextlib.suppress(OSError):
                asking.sendto(LEAVE, name)
            time.sleep(LOOK)


def give_way(place: socket.socket, keeper: Keeper) -> bool:
    """Whether this keeper has nothing to do but damp the legs, and another one asks for its place."""
    leaves, answer = False, b"quiet" if keeper.phase == Phase.QUIET else DAMPED
    for _ in range(ORDERS):  # some may be of a program that asked in vain, and is gone
        said, sender = _received(place)
        if not said:
            break
        if said == LEAVE and keeper.lingers:
            leaves = True
            with contextlib.suppress(OSError):
                place.sendto(answer, sender)
    return leaves


def _received(place: socket.socket) -> tuple[bytes, str]:
    with contextlib.suppress(OSError):
        said, sender = place.recvfrom(16)
        return said, sender
    return b"", ""


def serve(program: socket.socket, wire: Wire, keeper: Keeper, place: socket.socket) -> int:
    """The loop."""
    due = told = time.monotonic()
    open_, said = True, None
    asked: dict[int, int] = {}
    while not keeper.done(now := time.monotonic()):
        if give_way(place, keeper):
            return 0
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
