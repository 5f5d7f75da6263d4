"""Registers of the STS3215 (Feetech, STS3215 memory table; Hugging Face LeRobot, motors/feetech/tables.py)."""

from __future__ import annotations

from typing import NamedTuple

from robo_rl.deploy.robot.drivers.feetech.packets import from_raw, to_raw

MODEL = 777
"""What the register MODEL of an STS3215 has."""
EEPROM_END = 40
"""Addresses below keep their values without power, and are locked while LOCK is 1."""


class Register(NamedTuple):
    """Where a number is."""

    address: int
    size: int = 2
    sign: int | None = None
    """The bit of its sign."""

    def encode(self, value: int) -> bytes:
        """Its bytes; ValueError if the number does not fit."""
        raw = to_raw(value, self.sign)
        if raw >= 1 << 8 * self.size:
            raise ValueError(f"{value} does not fit into {self.size} bytes at {self.address}")
        return raw.to_bytes(self.size, "little")

    def decode(self, data: bytes, start: int | None = None) -> int:
        """The number in registers that were read from ``start`` on; by default from here."""
        at = self.address - (self.address if start is None else start)
        return from_raw(int.from_bytes(data[at : at + self.size], "little"), self.sign)


FIRMWARE = Register(0)
MODEL_NUMBER = Register(3)
ID = Register(5, 1)
BAUD_RATE = Register(6, 1)
RETURN_DELAY = Register(7, 1)
"""2 µs each; 0 answers at once."""
LOWER_LIMIT, UPPER_LIMIT = Register(9), Register(11)
"""Steps: goals beyond are clipped."""
MAX_TORQUE = Register(16)
"""0.1 %."""
P, D, I = Register(21, 1), Register(22, 1), Register(23, 1)  # noqa: E741
OFFSET = Register(31, sign=11)
"""Steps; present position = encoder - offset."""
OPERATING_MODE = Register(33, 1)
"""0: position."""
TORQUE_ENABLE = Register(40, 1)
ACCELERATION = Register(41, 1)
GOAL_POSITION = Register(42, sign=15)
GOAL_TIME, GOAL_SPEED = Register(44), Register(46)
TORQUE_LIMIT = Register(48)
"""0.1 % of the greatest, until the power is off."""
LOCK = Register(55, 1)
PRESENT_POSITION, PRESENT_SPEED = Register(56, sign=15), Register(58, sign=15)
"""Steps, and steps per second."""
PRESENT_LOAD = Register(60, sign=10)
"""0.1 %."""
PRESENT_VOLTAGE, PRESENT_TEMPERATURE = Register(62, 1), Register(63, 1)
"""0.1 V, and °C."""
STATUS = Register(65, 1)
PRESENT_CURRENT = Register(69, sign=15)
"""6.5 mA."""
PRESENT = (PRESENT_POSITION.address, PRESENT_TEMPERATURE.address + 1 - PRESENT_POSITION.address)
"""Address and size of what is read in every cycle: position, speed, load, voltage, temperature."""
