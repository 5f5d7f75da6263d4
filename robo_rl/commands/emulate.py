"""robo-rl emulate."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Literal

import tyro

from robo_rl.console import give, say


def main(
    robot: Annotated[Literal["so101"], tyro.conf.Positional],
    calibration: Path = Path("so101.json"),
    fault: str = "",
    after: float = 5.0,
    seconds: float = float("inf"),
    json: bool = False,
) -> int:
    """Emulate a robot that speaks its own protocol, with the simulated robot behind it, until Ctrl-C.

    Prints the port to give to 'robo-rl run --port', or to any other program for this robot, and writes the calibration
    file that the emulated arm was calibrated to. With --json, at the end: robot, port, calibration, fault.

    Args:
        robot: The robot: so101, six Feetech servos on a pseudo-terminal.
        calibration: Where to write LeRobot's calibration of this arm.
        fault: What goes wrong on the wire: a name, or 'list' for all names.
        after: s from the beginning to the fault.
        seconds: How long to run.
        json: Print one JSON object on the last line of stdout.
    """
    from deploy.emulators.wire import FAULTS, Wire

    if fault == "list":
        for name, one in FAULTS.items():
            if name:
                say(f"{name:<20} {one.text}; {'borne' if one.borne else 'the arm must be stopped'}", json)
        return 0
    Wire.check(fault)
    from deploy.drivers.feetech.calibration import write_calibration
    from deploy.emulators.pty import serve
    from deploy.emulators.so101 import TICK, Arm

    arm = Arm()
    wire = Wire(arm.bus)
    write_calibration(calibration, arm.calibration)
    begun = time.monotonic()
    waiting = [fault] if fault else []

    def exchange(data: bytes) -> bytes:
        if waiting and time.monotonic() - begun > after:
            say(f"from now on: {FAULTS[waiting[0]].text}", json)
            wire.begin(waiting.pop())
        return wire.exchange(data)

    ports: list[str] = []

    def announce(port: str) -> None:
        ports.append(port)
        say(f"an emulated SO-101 is at {port}, its calibration in {calibration}", json)

    serve(announce, exchange, arm.advance, TICK, seconds)
    give({"robot": robot, "port": ports[0], "calibration": str(calibration), "fault": fault}, json)
    return 0
