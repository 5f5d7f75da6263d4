"""A peer that floods a port does not hold up a control step: what is read in one step is bounded, whatever comes."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from robo_rl.deploy.robot.drivers import ROBOTS, SIMULATED
from robo_rl.deploy.robot.drivers.dynamixel import bus as dynamixel_bus
from robo_rl.deploy.robot.drivers.dynamixel import packets as dynamixel_packets
from robo_rl.deploy.robot.drivers.feetech import packets as feetech
from robo_rl.deploy.robot.drivers.hokuyo.lidar import TcpPort
from robo_rl.deploy.robot.drivers.packet_stream import PacketStream
from robo_rl.deploy.robot.drivers.serial_port import AT_ONCE, MOST, drain
from robo_rl.deploy.robot.drivers.unitree.link import PACKETS, KeeperProcess
from robo_rl.deploy.robot.drivers.vesc import packets as vesc_packets
from robo_rl.deploy.robot.link.port import READ_BYTES, READS
from robo_rl.deploy.robot.link.port import Link as DeviceLink
from robo_rl.deploy.robot.link.port import Port as LinkPort

sys.path.append(str(Path(__file__).parent))
PATIENT = 30.0  # s: a busy computer is no endless loop
ASKED = 4000
"""Reads of a port in one step that are still bounded: a bus of servos may answer byte by byte."""


class Flood:
    """A port that always has something, whoever asks."""

    def __init__(self, pieces: Iterator[bytes], then: Any) -> None:
        self.pieces, self.then, self.reads, self.on = pieces, then, 0, False

    def read(self, timeout: float) -> bytes:
        if not self.on:
            return bytes(self.then.read(timeout))
        self.reads += 1
        assert self.reads < ASKED, "it reads on and on"
        return next(self.pieces)

    def write(self, data: bytes) -> None:
        self.then.write(data)

    def close(self) -> None:
        self.then.close()


def noise(seed: int, size: int = 1024) -> Iterator[bytes]:
    """Bytes, again and again."""
    return itertools.cycle(
        [os.urandom(size), bytes(size), b"\xff" * size, b"\xfd" * size, b"\x02" * size, b"\n\n" * 99]
    )


def step(driver: Any, world: Any, flood: Flood) -> None:
    """A step with the flood on, of which nothing but an end is asked, and problems or old signals."""
    flood.on, flood.reads = True, 0
    begun = time.monotonic()
    for _ in range(3):
        flood.reads = 0
        driver.read(world.monotonic_ns() // 1000)
        driver.health()
    assert time.monotonic() - begun < PATIENT


def px4() -> tuple[Any, Any, Flood]:
    pytest.importorskip("pymavlink", reason="pymavlink is missing: pip install 'robo-rl[px4]'")
    from emulated_px4 import Session

    session = Session()
    flood = Flood(noise(0), session.driver.link.port)
    session.driver.link.port = flood
    return session.driver, session.world, flood


def so101() -> tuple[Any, Any, Flood]:
    from emulated_arm import Session

    session = Session()
    flood = Flood(noise(1), session.driver.bus.port)
    session.driver.bus.port = flood
    return session.driver, session.clock, flood


def dynamixel() -> tuple[Any, Any, Flood]:
    from emulated_dynamixel import Session

    session = Session()
    flood = Flood(noise(2), session.driver.bus.port)
    session.driver.bus.port = flood
    return session.driver, session.clock, flood


def vesc() -> tuple[Any, Any, Flood]:
    from emulated_car import Session

    session = Session()
    flood = Flood(noise(3), session.driver.port)
    session.driver.port = flood
    return session.driver, session.world, flood


def lidar() -> tuple[Any, Any, Flood]:
    from emulated_car import Session

    session = Session()
    session.driver.connect()
    assert session.driver._lidar is not None
    flood = Flood(noise(4), session.driver._lidar.port)
    session.driver._lidar.port = flood
    session.driver.connect = lambda: None
    return session.driver, session.world, flood


def ur() -> tuple[Any, Any, Flood]:
    from emulated_ur import Session

    session = Session()
    session.driver.connect()
    assert session.driver._exchange is not None
    flood = Flood(itertools.cycle([LEAST_PACKAGES, STATES]), session.driver._exchange.port)
    session.driver._exchange.port = flood
    session.driver.connect = lambda: None
    return session.driver, session.world, flood


LEAST_PACKAGES = b"\x00\x03M" * 21_000
STATES = b"\x00\x04M\x00" * 16_000
"""RTDE's smallest packages, as many as fit into what is read at once."""
PORTS = [px4, so101, dynamixel, vesc, lidar, ur]
OTHERS = {
    "crazyflie": "cflib's threads read the radio, and keep the newest packets: crtp.session.MOST",
    "franka": "libfranka reads the robot, a state for each command",
    "g1": "its keeper reads the robot, unitree.dds.DEPTH samples at once, and is read in parts: see below",
    "go2": "as g1",
    SIMULATED: "there is no port",
}
"""Of other drivers, who reads and what bounds it."""


def test_every_driver_is_here() -> None:
    flooded = {"px4", "so101", "dynamixel", "f1tenth", "ur"}  # by PORTS: the car's VESC and lidar are f1tenth's
    assert flooded | OTHERS.keys() == set(ROBOTS)


@pytest.mark.parametrize("made", PORTS)
def test_a_step_of_a_driver_ends_while_its_port_is_flooded(made: Callable[[], tuple[Any, Any, Flood]]) -> None:
    driver, world, flood = made()
    driver.connect()
    driver.read(world.monotonic_ns() // 1000)
    step(driver, world, flood)


def test_what_is_drained_at_once_is_bounded_in_pieces_and_the_rest_comes_with_the_next_call() -> None:
    class Endless:
        def read(self, timeout: float) -> bytes:
            return b"x"

    assert 1 <= len(list(drain(Endless()))) <= MOST  # type: ignore[arg-type]


def test_the_link_to_a_device_takes_a_bounded_part_of_a_flood() -> None:
    from robo_rl.deploy.robot.bundle import Bundle
    from robo_rl.deploy.robot.link.port import Role

    ours, theirs = socket.socketpair()
    for one in (ours, theirs):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    theirs.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            theirs.send(os.urandom(1 << 16))
    link = DeviceLink(LinkPort.of_socket(ours), Bundle.read("zoo:quadrotor-hover").contract, Role.HOST)
    reads = 0
    read = link.port.read

    def counted() -> bytes:
        nonlocal reads
        reads += 1
        data = read()
        assert len(data) <= READ_BYTES
        return data

    link.port.read = counted  # type: ignore[method-assign]
    link.receive(0)
    assert 1 <= reads <= READS
    ours.close()
    theirs.close()


def test_a_real_port_is_drained_to_its_end_while_somebody_floods_it() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    port = TcpPort("{}:{}".format(*listening.getsockname()))
    other, _ = listening.accept()
    ended = threading.Event()

    def flood() -> None:
        while not ended.is_set():
            with contextlib.suppress(OSError):
                other.send(bytes(4096))

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        for _ in range(3):
            assert len(list(drain(port, 1.0))) <= MOST
    finally:
        ended.set()
        port.close()
        other.close()
        listening.close()
        thread.join()


def test_a_keeper_that_floods_its_program_is_read_in_parts() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    keeper = KeeperProcess.__new__(KeeperProcess)
    keeper._socket = ours
    ended = threading.Event()

    def flood() -> None:
        while not ended.is_set():
            with contextlib.suppress(OSError):
                theirs.send(b"K{}")

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        for _ in range(3):
            assert 1 <= len(keeper.receive(1.0)) <= PACKETS
    finally:
        ended.set()
        ours.close()
        thread.join()
        theirs.close()


def test_damaged_packets_in_a_row_cost_no_more_than_their_checksums() -> None:
    """Each head may begin a packet as long as they come, whose bytes are looked at again for the next head."""
    looked_at = 0

    def counted(parser: Any) -> Any:
        whole = parser.packet

        def packet(data: bytes) -> Any:
            nonlocal looked_at
            looked_at += len(data)
            return whole(data)

        parser.packet = packet
        return parser

    heads = {
        feetech.Parser: feetech.HEAD + bytes([1, feetech.LONGEST + 2]),
        dynamixel_bus._Answers: dynamixel_packets.HEAD
        + bytes([1, *(2 * dynamixel_bus.ANSWERED).to_bytes(2, "little")]),
        vesc_packets.Parser: bytes([vesc_packets.SHORT, 255]),
    }
    ours = {one for one in PacketStream.__subclasses__() if one.__module__.startswith("robo_rl.deploy.robot")}
    assert ours == {dynamixel_packets.Parser, *heads} - {dynamixel_bus._Answers}
    for kind, head in heads.items():
        looked_at = 0
        counted(kind()).feed(head * (AT_ONCE // len(head)))
        assert 0 < looked_at <= 160 * AT_ONCE, kind
