"""Registers of Dynamixel's X series (ROBOTIS e-manual, control tables of XL330, XC330, XL430, XC430, XM430, XM540)."""

from __future__ import annotations

from typing import NamedTuple


class Register(NamedTuple):
    """Where a number is."""

    address: int
    size: int = 4
    signed: bool = False

    def encode(self, value: int) -> bytes:
        """Its bytes; OverflowError if the number does not fit."""
        return value.to_bytes(self.size, "little", signed=self.signed)

    def decode(self, data: bytes, start: int | None = None) -> int:
        """The number in registers that were read from ``start`` on; by default from here."""
        at = self.address - (self.address if start is None else start)
        return int.from_bytes(data[at : at + self.size], "little", signed=self.signed)


RAM = 64
"""Addresses below keep their values without power, and are locked while torque is on."""
MODEL_NUMBER, FIRMWARE = Register(0, 2), Register(6, 1)
ID, BAUD_RATE = Register(7, 1), Register(8, 1)
RETURN_DELAY = Register(9, 1)
"""2 µs each; 0 answers at once."""
DRIVE_MODE = Register(10, 1)
"""Bit 0: turns the other way; bit 2: profiles are times; bit 3: a goal switches torque on."""
REVERSED = 1
OPERATING_MODE = Register(11, 1)
SHADOW_ID = Register(12, 1)
"""Above 252: none."""
HOMING_OFFSET = Register(20, signed=True)
"""Steps; present position = encoder + offset."""
PWM_LIMIT = Register(36, 2)
"""885: all of the supply's voltage."""
UPPER_LIMIT, LOWER_LIMIT = Register(48), Register(52)
"""Steps: in POSITION, goals beyond are refused."""
SHUTDOWN = Register(63, 1)
"""Bits of HARDWARE_ERROR at which the servo lets go."""
TORQUE_ENABLE = Register(64, 1)
STATUS_RETURN = Register(68, 1)
HARDWARE_ERROR = Register(70, 1)
D, I, P = Register(80, 2), Register(82, 2), Register(84, 2)  # noqa: E741
FEED_FORWARD_2, FEED_FORWARD_1 = Register(88, 2), Register(90, 2)
BUS_WATCHDOG = Register(98, 1, signed=True)
"""20 ms each; 0: none; -1: it tripped."""
GOAL_PWM = Register(100, 2, signed=True)
"""Limits the PWM where a position is commanded."""
GOAL_CURRENT = Register(102, 2, signed=True)
"""Not in XL430 and XC430."""
PROFILE_ACCELERATION, PROFILE_VELOCITY = Register(108), Register(112)
"""0: at once."""
GOAL_POSITION = Register(116, signed=True)
TICK = Register(120, 2)
"""ms, of the servo's own clock, from 0 to 32767."""
PRESENT_PWM = Register(124, 2, signed=True)
PRESENT_CURRENT = Register(126, 2, signed=True)
"""In XL430 and XC430 a load."""
PRESENT_VELOCITY = Register(128, signed=True)
"""0.229 turns per minute."""
PRESENT_POSITION = Register(132, signed=True)
PRESENT_VOLTAGE, PRESENT_TEMPERATURE = Register(144, 2), Register(146, 1)
"""0.1 V, and °C."""

WRAP = 32768
"""ms, of TICK."""
FULL_PWM = 885
WATCHDOG_UNIT = 0.02  # s
TRIPPED = -1
POSITION, EXTENDED_POSITION, CURRENT_POSITION = 3, 4, 5
"""Operating modes that take positions: within a turn, over many turns, with a limited current."""
MODES = {0: "current", 1: "velocity", 3: "position", 4: "extended position", 5: "current-based position", 16: "PWM"}
ERRORS = {1: "voltage", 4: "overheating", 8: "encoder", 16: "electrical shock", 32: "overload"}
"""Bits of HARDWARE_ERROR and SHUTDOWN."""
