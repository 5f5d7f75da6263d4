"""Time from the operator's STOP to the safe command at the robot, while somebody floods the driver's port.

    python benchmarks/stop_under_flood.py [DRIVER …]

Each driver runs in the plain loop at its control period, against its emulator in a process of its own. Between the two
is a third process, the relay: it passes on what both say, and when told to it floods the driver, as fast as the port
takes it. "noise": random bytes from the robot's own address; "repeated": the robot's last valid message again and
again; "others": random bytes and valid messages from other addresses (UDP alone). The robot is armed, the flood is on
for two control periods, then another thread requests STOP. The time ends when the first bytes that the driver has
written after the gate's answer have passed the relay. A robot that stopped by itself under the flood, before STOP, is
counted apart: its signals were too old. "none" is the same without a flood: what the computer does by itself.

"hangs": the driver's read does not return for a second; told is when the next bytes reach the robot, and
"stopped by itself" are the tries in which none did: then the robot's own time-out is what stops it. Loop and emulator
have real-time priorities, and the relay has a lower one.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import re
import select
import socket
import subprocess
import tempfile
import threading
import time
import tty
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from results import FOLDER, words, write

from robo_rl.contract import Contract, Network, Provenance
from robo_rl.controllers.gate.codes import Event, Request, State
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.drivers import make
from robo_rl.deploy.robot.drivers.driver import DriverError, ForLoop, Settings
from robo_rl.deploy.robot.loop import Loop, Step
from robo_rl.deploy.robot.realtime import keep_time
from robo_rl.files import interpreter
from robo_rl.sim.robots.arm import load_arm
from robo_rl.sim.tasks.arm.reach import Reach
from robo_rl.zoo import located

TRIES, FLOODED, ARMED, ARMING, LONGEST, HANGS = 6, 2, 0.2, 4.0, 10.0, 1.0
"""Tries of each kind; control periods of flood before STOP; s armed before that; s that arming may take; s that all
tries of a kind may take; s of a hang."""
FLOODS = ("none", "noise", "repeated", "others", "hangs")
STREAM = ("none", "noise", "repeated", "hangs")
KEPT = 1 << 16
"""Arrivals that are kept."""
PIECE = 1024
"""Bytes of noise at once."""
ZOO = {"px4": "quadrotor-rates", "crazyflie": "quadrotor-rates-crazyflie", "f1tenth": "car-race", "lidar": "car-race",
       "go2": "go2-flat"}  # fmt: skip
ARMS = {"so101": "so101", "dynamixel": "so101", "ur": "ur5e"}
UR_ROBOT, UR_RELAY, UR_PORTS = "127.0.66.8", "127.0.66.9", (30004, 30002)
"""Addresses of this computer: a UR's ports are fixed."""
UDP = 14777
CONTEXT = multiprocessing.get_context("fork")


class Shared:
    """What the relay and the benchmark both see."""

    def __init__(self) -> None:
        self.flood = CONTEXT.Value("i", 0, lock=False)
        """Index into ``FLOODS``."""
        self.count = CONTEXT.Value("l", 0, lock=False)
        self.times = CONTEXT.Array("d", KEPT, lock=False)
        """s at which bytes of the driver passed."""

    def passed(self) -> None:
        self.times[self.count.value % KEPT] = time.monotonic()
        self.count.value += 1

    def first_after(self, moment: float) -> float | None:
        kept = range(max(0, self.count.value - KEPT), self.count.value)
        return min((at for at in (self.times[k % KEPT] for k in kept) if at >= moment), default=None)


class Still:
    """A policy that commands zero, within the limits: the robot is never given to it."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.reset()

    def reset(self) -> None:
        self.state = self.contract.initial_state[None]

    def step(self, signals: Any, ages: Any = None) -> dict[str, np.ndarray]:
        return {c.name: np.clip(np.zeros(c.size), *c.bounds).astype(np.float32) for c in self.contract.commands}


def contract_of(driver: str) -> Contract:
    if driver in ZOO:
        return Bundle.read(located(f"zoo:{ZOO[driver]}")).contract
    spec = Reach(load_arm(ARMS[driver])).spec
    return spec.contract(Provenance("none", 0, 0, "0" * 64), Network((8,), "elu", False))


# --- the relay ------------------------------------------------------------------------------------------------------


def relay_datagrams(ours: socket.socket, driver: tuple[str, int] | None, robot: Any, shared: Shared) -> None:
    """Pass on what arrives at the socket ``ours``, to which both send, and flood the driver.

    Only one address has to be given: whatever does not come from it comes from the other side.
    """
    noise, last, others = os.urandom(PIECE), b"", [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(4)]
    while True:
        flood = FLOODS[shared.flood.value]
        if select.select([ours], [], [], 0.0 if flood not in ("none", "hangs") else 0.1)[0]:
            data, sender = ours.recvfrom(65535)
            from_driver = sender == driver or (driver is None and sender != robot)
            driver, robot = (sender, robot) if from_driver else (driver, sender)
            if from_driver:
                if robot is not None:
                    ours.sendto(data, robot)
                shared.passed()
            else:
                last = data
                if driver is not None:
                    ours.sendto(data, driver)
        if flood in ("none", "hangs") or driver is None:
            continue
        with contextlib.suppress(OSError):
            for _ in range(20):
                if flood == "others":
                    for k, one in enumerate(others):
                        one.sendto(last if k % 2 else noise, driver)
                else:
                    ours.sendto(noise if flood == "noise" else last, driver)


def relay_stream(driver: int, robot: int, shared: Shared) -> None:
    """Between two file descriptors, until one end is closed."""
    noise, last, unsent = os.urandom(PIECE), b"", b""
    for one in (driver, robot):
        os.set_blocking(one, False)
    while True:
        flood = FLOODS[shared.flood.value]
        readable, _, _ = select.select([driver, robot], [], [], 0.0 if flood not in ("none", "hangs") else 0.1)
        for one in readable:
            try:
                data = os.read(one, 65536)
            except BlockingIOError:
                continue
            except OSError:
                return
            if not data:
                return
            if one == driver:
                os.write(robot, data)
                shared.passed()
            else:
                last, unsent = data[-PIECE:], unsent + data
        with contextlib.suppress(BlockingIOError):
            if unsent:
                unsent = unsent[os.write(driver, unsent) :]
            elif flood in ("noise", "repeated"):
                given = noise if flood == "noise" else last
                unsent = given[os.write(driver, given) :] if given else b""  # a message is not cut by the next one


def relay_connections(listening: socket.socket, robot: tuple[str, int], shared: Shared) -> None:
    """One after the other."""
    while True:
        ends = (listening.accept()[0], socket.create_connection(robot))
        for end in ends:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):
            relay_stream(ends[0].fileno(), ends[1].fileno(), shared)
        for end in ends:
            end.close()


def relay_topics(port: str, shared: Shared) -> None:
    """Nothing passes here: a second robot on the same topics, which hears what the driver sends."""
    from robo_rl.deploy.robot.drivers.unitree.dds import Wire

    wire, last = Wire(port, robot=True), b""
    while True:
        last = (wire.take(wire.states) or [last])[-1]
        for _ in wire.take(wire.commands):
            shared.passed()
        if FLOODS[shared.flood.value] == "repeated" and last:
            for _ in range(20):
                wire.send(last)
        else:
            time.sleep(0.0005)


def start_relay(driver: str, port: str, robot_file: Path, shared: Shared) -> tuple[Any, str]:
    """The process, and the port for the driver."""
    if driver == "go2":
        return forked(lambda: relay_topics(port, shared)), port
    if driver == "px4":  # the robot sends first, to the port that it was told
        ours, free = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        ours.bind(("127.0.0.1", UDP))
        free.bind(("127.0.0.1", 0))
        place = free.getsockname()
        free.close()
        return forked(lambda: relay_datagrams(ours, place, None, shared)), f"udp:{place[1]}"
    if driver == "crazyflie":
        ours = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        ours.bind(("127.0.0.1", 0))
        robot = ("127.0.0.1", UDP)
        return forked(lambda: relay_datagrams(ours, None, robot, shared)), "udp://{}:{}".format(*ours.getsockname())
    if driver == "lidar":
        text = robot_file.read_text()
        (address,) = re.findall(r'lidar = "([\d.:]+)"', text)
        listening = socket.create_server(("127.0.0.1", 0))
        robot_file.write_text(text.replace(address, "{}:{}".format(*listening.getsockname())))
        host, number = address.split(":")
        return forked(lambda: relay_connections(listening, (host, int(number)), shared)), port
    if driver == "ur":
        states, programs = (socket.create_server((UR_RELAY, number)) for number in UR_PORTS)

        def both() -> None:
            other = (programs, (UR_ROBOT, UR_PORTS[1]), Shared())
            threading.Thread(target=relay_connections, args=other, daemon=True).start()
            relay_connections(states, (UR_ROBOT, UR_PORTS[0]), shared)

        return forked(both), UR_RELAY
    ours_end, theirs = os.openpty()
    tty.setraw(theirs)
    line = os.open(port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    tty.setraw(line)
    return forked(lambda: relay_stream(ours_end, line, shared)), os.ttyname(theirs)


def forked(what: Callable[[], None]) -> Any:
    """A process with a real-time priority below that of loop and emulator: other programs do not hold it up."""

    def below() -> None:
        keep_time(priority=10)
        what()

    process = CONTEXT.Process(target=below, daemon=True)
    process.start()
    return process


# --- the tries ------------------------------------------------------------------------------------------------------


class Written:
    """A driver whose writes are noted."""

    def __init__(self, driver: Any) -> None:
        self.driver, self.begun, self.free = driver, 0.0, threading.Event()
        self.free.set()

    def read(self, now: int) -> Any:
        self.free.wait()
        return self.driver.read(now)

    def write(self, commands: Any, mode: Any) -> None:
        self.begun = time.monotonic()
        self.driver.write(commands, mode)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.driver, name)


def measure(driver: str, folder: Path) -> dict[str, Any]:
    """All floods of one driver."""
    shared, contract = Shared(), contract_of(driver)
    robot = "f1tenth" if driver == "lidar" else driver
    files = {"so101": ["--calibration"], "dynamixel": ["--calibration", "--robot-file"], "f1tenth": ["--robot-file"]}
    calibration, robot_file = folder / "robot.json", folder / "robot.toml"
    own = {"--calibration": str(calibration), "--robot-file": str(robot_file)}
    options = [word for option in files.get(robot, []) for word in (option, own[option])]
    topics, udp = f"lo/flood{os.getpid()}", ["--port", str(UDP)]
    options += {
        "px4": udp, "crazyflie": udp, "ur": ["--address", UR_ROBOT], "go2": ["--interface", topics],
    }.get(robot, [])  # fmt: skip
    command = interpreter.module("robo_rl", "emulate", robot, "--realtime", *options)
    emulator = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=interpreter.environment())
    relay = None
    try:
        assert emulator.stdout is not None
        while " is " not in (told := emulator.stdout.readline()):
            if not told:
                raise SystemExit("the emulator ended")
        there = topics if robot == "go2" else told.split(" is at ")[1].split(",")[0]
        relay, port = start_relay(driver, there, robot_file, shared)
        keep_time()
        chosen = {"--calibration": "", "--robot-file": ""} | {option: own[option] for option in files.get(robot, [])}
        kinds = {"px4": FLOODS, "crazyflie": FLOODS, "go2": ("none", "repeated", "hangs")}.get(robot, STREAM)
        floods = [kind for kind in kinds if kind != "hangs"]
        plan = floods * TRIES + ["hangs"] * TRIES
        rows: dict[str, list[float]] = {kind: [] for kind in kinds}
        alone = dict.fromkeys(kinds, 0)
        end = time.monotonic() + LONGEST * len(kinds)
        while plan and time.monotonic() < end:  # noise in a stream ends a session, and a hang may
            device = Written(make(robot, contract, Settings(port, chosen["--robot-file"], chosen["--calibration"])))
            try:
                device.connect()
                try_floods(contract, device, shared, plan, rows, alone, end)
            except DriverError as error:
                print(f"  {error}", flush=True)
            device.close()
            time.sleep(0.5)
    finally:
        if relay is not None:
            relay.kill()
        emulator.terminate()
        emulator.wait()
    return {
        "period_ms": 1e3 * contract.control_period,
        **{kind: summary(rows[kind], alone[kind]) for kind in kinds},
        "load_average": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def try_floods(
    contract: Contract, device: Written, shared: Shared, plan: list[str], rows: dict[str, list[float]],
    alone: dict[str, int], end: float,
) -> None:  # fmt: skip
    """STOP again and again, with each flood of the plan in turn, until the robot is not armed any more."""
    setpoints = {s.name: np.zeros(s.dimensions, np.float32) for s in contract.signals if s.source == "operator"}
    faulted, state = threading.Event(), State.IDLE
    arrived_from, sentence = 0.0, ""

    def note(step: Step) -> None:
        nonlocal state, arrived_from, sentence
        state, sentence = step.output.state, step.sentence or step.refused or sentence
        if step.output.events & Event.FAULTED:
            arrived_from = device.begun
            faulted.set()

    loop = Loop(Still(contract), ForLoop(device, contract, setpoints), note)  # type: ignore[arg-type]
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()

    def await_state(wanted: State, request: Request, end: float) -> bool:
        while time.monotonic() < end:
            if state == wanted:
                return True
            loop.request(request if state in (State.IDLE, State.FAULT) else Request.NONE)
            time.sleep(0.1)
        return False

    while plan:
        soon = min(end, time.monotonic() + ARMING)
        if not (await_state(State.IDLE, Request.RESET, soon) and await_state(State.READY, Request.ARM, soon)):
            print(f"  it was not armed: {sentence}", flush=True)
            break
        kind = plan.pop(0)
        time.sleep(ARMED)
        faulted.clear()
        shared.flood.value = FLOODS.index(kind)
        time.sleep(FLOODED * contract.control_period)
        if kind == "hangs":
            device.free.clear()
            time.sleep(contract.control_period)  # the step that is at work ends
            asked = time.monotonic()
            loop.request(Request.STOP)
            time.sleep(HANGS)
            if (arrived := shared.first_after(asked)) is not None:
                rows[kind].append((arrived - asked) / contract.control_period)
            else:
                alone[kind] += 1
            device.free.set()
        elif faulted.is_set() or state != State.READY:
            alone[kind] += 1
        else:
            asked = time.monotonic()
            loop.request(Request.STOP)
            faulted.wait(10.0)
            time.sleep(0.05)
            if faulted.is_set() and (arrived := shared.first_after(arrived_from)) is not None:
                rows[kind].append((arrived - asked) / contract.control_period)
        shared.flood.value = 0
        time.sleep(0.2)
    loop.end()
    thread.join(timeout=15.0)


def summary(periods: list[float], alone: int) -> dict[str, Any]:
    told = {"median": float(np.median(periods)), "worst": float(np.max(periods))} if periods else {}
    return {"tries": len(periods), "stopped_by_itself": alone, **{k: round(v, 2) for k, v in told.items()}}


def main() -> None:
    chosen = words(__doc__, 9) or [*ZOO, *ARMS]
    path = FOLDER / "stop_under_flood.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    found.pop("machine", None)
    for driver in chosen:
        with tempfile.TemporaryDirectory() as folder:
            found[driver] = measure(driver, Path(folder))
        print(driver, json.dumps(found[driver]), flush=True)
        write("stop_under_flood", found)


if __name__ == "__main__":
    main()
