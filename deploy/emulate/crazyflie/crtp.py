"""An emulated Crazyflie's side of CRTP: tables, parameters, log blocks, set-points, the supervisor's port.

After the firmware's crtpservice.c, platformservice.c, log.c, param_logic.c, mem.c, crtp_commander_generic.c and
crtp_supervisor.c (2a18fc29, protocol version 12). A packet is its header (port << 4 | channel) and up to 30 bytes.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

from robo_rl.deploy.emulate.crazyflie import TICK, Vehicle
from robo_rl.deploy.emulate.crazyflie.pid import angles_of
from robo_rl.deploy.emulate.crazyflie.setpoints import HALT, Plan, decode
from robo_rl.deploy.robot.drivers.crtp.estimate import FIELDS, compress

PARAM, SETPOINT, MEM, LOG, LOCALIZATION, GENERIC, HIGH_LEVEL, SUPERVISOR = 2, 3, 4, 5, 6, 7, 8, 9
PLATFORM, LINK = 13, 15
PROTOCOL = 12
FORMATS = {1: "<B", 2: "<H", 3: "<I", 4: "<b", 5: "<h", 6: "<i", 7: "<f"}
"""By the type of a log variable."""
WHOLE, READ_ONLY = {"<B": 8, "<H": 9, "<I": 10, "<f": 6}, 0x40
"""Types of parameters, and the flag of one that can't be set."""
UNKNOWN, NO_SUCH, EXISTS = 8, 2, 17
"""errno"""
PARAMETERS: dict[str, tuple[str, float, bool]] = {
    "stabilizer.estimator": ("<B", 2, True), "stabilizer.controller": ("<B", 1, True),
    "stabilizer.stop": ("<B", 0, True), "supervisor.tmblChckEn": ("<B", 1, True),
    "kalman.resetEstimation": ("<B", 0, True), "deck.bcLighthouse4": ("<B", 1, False),
    "deck.bcFlow2": ("<B", 0, False), "firmware.revision0": ("<I", 0x2A18FC29, False),
    "firmware.revision1": ("<H", 0, False),
}  # fmt: skip
"""Format, value, and whether it may be set."""
PLACE = ("x", "y", "z", "vx", "vy", "vz")
LOGGED = {
    **{f"stateEstimateZ.{name}": 3 if name == "quat" else 5 for name in FIELDS},
    **{f"kalman.var{name}": 7 for name in ("X", "Y", "Z", "PX", "PY", "PZ")},
    "controller.rollRate": 7, "controller.pitchRate": 7, "stabilizer.thrust": 7, "supervisor.info": 2, "pm.vbat": 7,
    **{f"stateEstimate.{name}": 7 for name in (*PLACE, "roll", "pitch", "yaw")},
    **{f"stabilizer.{name}": 7 for name in ("roll", "pitch", "yaw")}, "sys.isFlying": 1,
}  # fmt: skip
"""Types of the log variables."""


@dataclass
class Block:
    """Of log variables."""

    names: list[str]
    types: list[int]
    period: float = 0.0
    due: float = 0.0


@dataclass
class Firmware:
    """See the module's text."""

    vehicle: Vehicle = field(default_factory=Vehicle)
    board: str = "Crazyflie 2.1"
    protocol: int = PROTOCOL
    silent: bool = False
    """It answers nothing and sends nothing."""
    mute: bool = False
    """It sends no log packets of the first block."""

    def __post_init__(self) -> None:
        self.parameters, self.logged = dict(PARAMETERS), dict(LOGGED)
        self.blocks: dict[int, Block] = {}

    def restart(self) -> None:
        """Its power failed for a moment."""
        self.blocks = {}
        self.vehicle.start()

    def receive(self, data: bytes) -> list[bytes]:
        """Answers to a packet."""
        if self.silent or not 1 <= len(data) <= 31:
            return []
        if data[0] == 0xFF:
            return [b"\xff"]
        port, channel, body = data[0] >> 4, data[0] & 3, data[1:]
        ports = {
            LINK: self._link, PLATFORM: self._platform, LOG: self._log, PARAM: self._param, MEM: self._memory,
            GENERIC: self._setpoint, SUPERVISOR: self._supervise, LOCALIZATION: self._localization,
            HIGH_LEVEL: self._plan,
        }  # fmt: skip
        try:
            found = ports[port](channel, body) if port in ports else None
        except (struct.error, IndexError):  # too short
            return []
        return [] if found is None else [bytes([port << 4 | channel]) + found]

    def advance(self) -> list[bytes]:
        """The vehicle moves on by a tick; log packets that are due."""
        self.vehicle.advance()
        now, found = self.vehicle.time, []
        for number, block in self.blocks.items():
            if block.period and now >= block.due - TICK / 2:
                block.due = max(block.due + block.period, now)
                first = number == min(self.blocks)
                if not self.silent and not (self.mute and first):
                    found.append(self._packet(number, block))
        return found

    # --- what it tells ----------------------------------------------------------------------------------------------

    def _packet(self, number: int, block: Block) -> bytes:
        values = self.values()
        told = b"".join(_packed(FORMATS[t], values[n]) for n, t in zip(block.names, block.types, strict=True))
        now = 0 if self.vehicle.broken.clock else round(1000 * self.vehicle.time)
        return bytes([LOG << 4 | 2, number]) + (now % (1 << 24)).to_bytes(3, "little") + told

    def values(self) -> dict[str, float]:
        """Of all log variables."""
        vehicle = self.vehicle
        seen, cascade = vehicle.estimated, vehicle.cascade
        mm = [*(1000 * seen["position"]), *(1000 * seen["linear_velocity"])]
        roll, pitch, yaw = 1000 * seen["angular_velocity"]
        state = [*mm, compress(seen["orientation"]), roll, -pitch, yaw]
        named = dict(zip((f"stateEstimateZ.{name}" for name in FIELDS), state, strict=True))
        variances = zip(("X", "Y", "Z", "PX", "PY", "PZ"), vehicle.variances, strict=True)
        place = dict(zip(PLACE, [*seen["position"], *seen["linear_velocity"]], strict=True))
        turned = dict(zip(("roll", "pitch", "yaw"), angles_of(seen["orientation"]), strict=True))
        return {
            **named, **{f"kalman.var{name}": value for name, value in variances},
            "controller.rollRate": cascade.desired[0], "controller.pitchRate": cascade.desired[1],
            "stabilizer.thrust": cascade.thrust, "supervisor.info": vehicle.supervisor.info, "pm.vbat": vehicle.voltage,
            **{f"stateEstimate.{name}": value for name, value in {**place, **turned}.items()},
            **{f"stabilizer.{name}": value for name, value in turned.items()},
            "sys.isFlying": float(vehicle.supervisor.info >> 4 & 1),
        }  # fmt: skip

    # --- ports ------------------------------------------------------------------------------------------------------

    def _link(self, channel: int, body: bytes) -> bytes | None:
        return {0: body, 1: b"Bitcraze Crazyflie".ljust(30, b"\0")}.get(channel)

    def _platform(self, channel: int, body: bytes) -> bytes | None:
        if channel == 1:
            told = {0: struct.pack("<i", self.protocol), 1: b"2026.08", 2: self.board.encode()}.get(body[0])
            return None if told is None else body[:1] + told
        if channel == 0 and body[0] == 1:
            return bytes([1, self.vehicle.supervisor.arm(bool(body[1])), self.vehicle.supervisor.armed])
        return None

    def _memory(self, channel: int, body: bytes) -> bytes | None:
        return b"\1\0" if channel == 0 and body[0] == 1 else None

    def _table(self, body: bytes, names: list[str], types: list[int], more: bytes) -> bytes | None:
        if body[0] == 3:
            told = repr(sorted(zip(names, types, strict=True))).encode()
            return struct.pack("<BHI", 3, len(names), zlib.crc32(told)) + more
        if body[0] == 2:
            (number,) = struct.unpack("<H", body[1:3])
            if number < len(names):
                told = names[number].replace(".", "\0").encode() + b"\0"
                return struct.pack("<BHB", 2, number, types[number]) + told
        return None

    def _log(self, channel: int, body: bytes) -> bytes | None:
        names = list(self.logged)
        if channel == 0:
            return self._table(body, names, list(self.logged.values()), bytes([16, 128]))
        if channel != 1:
            return None
        command, number, rest = body[0], body[1] if len(body) > 1 else 0, body[2:]
        return bytes([command, number, self._control(command, number, rest, names)])

    def _control(self, command: int, number: int, rest: bytes, names: list[str]) -> int:
        if command == 5:
            self.blocks = {}
            return 0
        if command == 6 and number in self.blocks:
            return EXISTS
        if command in (6, 7):
            asked = [struct.unpack("<BH", rest[i : i + 3]) for i in range(0, len(rest) - 2, 3)]
            if any(variable >= len(names) for _, variable in asked) or (command == 7 and number not in self.blocks):
                return NO_SUCH
            block = self.blocks.setdefault(number, Block([], []))
            block.names += [names[variable] for _, variable in asked]
            block.types += [kind & 15 for kind, _ in asked]
            return 0
        if number not in self.blocks or command not in (2, 3, 4):
            return NO_SUCH if command in (2, 3, 4) else UNKNOWN
        if command == 2:
            del self.blocks[number]
        elif command == 3:
            self.blocks[number].period, self.blocks[number].due = rest[0] / 100, self.vehicle.time
        else:
            self.blocks[number].period = 0.0
        return 0

    def _param(self, channel: int, body: bytes) -> bytes | None:
        names = list(self.parameters)
        types = [WHOLE[f] | (0 if free else READ_ONLY) for f, _, free in self.parameters.values()]
        if channel == 0:
            return self._table(body, names, types, b"")
        (number,) = struct.unpack("<H", body[:2])
        if number >= len(names):
            return body[:2] + bytes([NO_SUCH])
        form, value, free = self.parameters[names[number]]
        if channel == 1:
            return body[:2] + b"\0" + struct.pack(form, value if form == "<f" else int(value))
        if channel == 2 and free:
            (value,) = struct.unpack(form, body[2:])
            self.parameters[names[number]] = (form, value, free)
            self.vehicle.supervisor.stop |= names[number] == "stabilizer.stop" and bool(value)
            return body
        return None

    def _setpoint(self, channel: int, body: bytes) -> None:
        if channel == 0 and (wanted := decode(body)) is not None:
            self.vehicle.take(wanted)

    def _plan(self, channel: int, body: bytes) -> bytes:
        vehicle = self.vehicle
        plan = Plan.of(body, vehicle.time, vehicle.estimated["position"])
        if plan is not None or body[0] == HALT:
            vehicle.follow(plan)
        return body[:3].ljust(3, b"\0") + b"\0"

    def _supervise(self, channel: int, body: bytes) -> bytes | None:
        supervisor, command = self.vehicle.supervisor, body[0]
        if channel == 0 and command == 0x0C:
            return b"\x8c" + struct.pack("<H", supervisor.info)
        if channel == 0 and 1 <= command <= 11:
            return bytes([0x80 | command, supervisor.info >> command - 1 & 1])
        if channel != 1:
            return None
        if command == 1:
            return bytes([0x81, supervisor.arm(bool(body[1])), supervisor.armed])
        if command == 2:
            return bytes([0x82, supervisor.recover(), not supervisor.crashed])
        self._stop(command)
        return None

    def _localization(self, channel: int, body: bytes) -> None:
        if channel == 1:
            self._stop(body[0])

    def _stop(self, command: int) -> None:
        if command == 3:
            self.vehicle.supervisor.stop = True
        elif command == 4:
            self.vehicle.supervisor.fed = self.vehicle.time


def _packed(form: str, value: Any) -> bytes:
    """As C converts a float: towards zero, and within the type's bits."""
    if form == "<f":
        return struct.pack(form, value)
    size = struct.calcsize(form)
    return (int(value) & (1 << 8 * size) - 1).to_bytes(size, "little")
