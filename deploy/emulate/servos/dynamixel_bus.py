"""Dynamixel servos on a bus, as their bytes tell them: registers, locks, limits, answers, the bus watchdog, restarts.

What moves behind them is ``robo_rl.deploy.emulate.dynamixel.Arm``, or nothing but the goals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from robo_rl.deploy.robot.drivers.bus_servos.calibration import TURN
from robo_rl.deploy.robot.drivers.dynamixel import registers as r
from robo_rl.deploy.robot.drivers.dynamixel.packets import ALERT, ALL, Fail, Instruction, Packet, Parser

SIZE = 147
"""Registers of a servo, bytes."""
GAINS = ((r.D, 0), (r.I, 0), (r.P, 800), (r.FEED_FORWARD_1, 0), (r.FEED_FORWARD_2, 0), (r.PROFILE_VELOCITY, 0),
         (r.PROFILE_ACCELERATION, 0))  # fmt: skip
FACTORY = (
    (r.FIRMWARE, 50), (r.BAUD_RATE, 3), (r.RETURN_DELAY, 250), (r.OPERATING_MODE, r.POSITION), (r.SHADOW_ID, 255),
    (r.PWM_LIMIT, r.FULL_PWM), (r.UPPER_LIMIT, TURN - 1), (r.SHUTDOWN, 52), (r.STATUS_RETURN, 2), *GAINS,
    (r.GOAL_PWM, r.FULL_PWM), (r.PRESENT_VOLTAGE, 120), (r.PRESENT_TEMPERATURE, 30), (r.PRESENT_POSITION, TURN // 2),
)  # fmt: skip
"""As an XM430 comes, at 1 Mbit/s."""
MOST_TURNS = 256 * TURN
RANGES = {
    r.BUS_WATCHDOG: (0, 127), r.P: (0, 16383), r.I: (0, 16383), r.D: (0, 16383), r.TORQUE_ENABLE: (0, 1),
    r.HOMING_OFFSET: (-1_044_479, 1_044_479), r.UPPER_LIMIT: (0, TURN - 1), r.LOWER_LIMIT: (0, TURN - 1),
    r.PWM_LIMIT: (0, r.FULL_PWM),
}  # fmt: skip
READ_ONLY = range(r.TICK.address, SIZE)
NEVER = {*range(7), *range(r.HARDWARE_ERROR.address, r.HARDWARE_ERROR.address + 1), *READ_ONLY}
GOALS = (r.GOAL_PWM, r.GOAL_CURRENT, r.GOAL_POSITION)


class Servo:
    """One servo."""

    def __init__(self, id: int, model: int = 1030, offset: int = 0) -> None:
        self.alive = True
        self.moves_when_tripped = False
        """As firmware did that ROBOTIS-GIT/DynamixelSDK, issue 584, is about."""
        self.registers = bytearray(SIZE)
        for register, value in ((r.MODEL_NUMBER, model), (r.ID, id), (r.HOMING_OFFSET, offset), *FACTORY):
            self.set(register, value)
        self.eeprom = bytes(self.registers)
        self.silence, self.clock = 0.0, 0.0
        """s since the last instruction on the bus, and since it was started."""
        self.waiting: tuple[int, bytes] | None = None
        """What REG_WRITE left for ACTION."""

    def get(self, register: r.Register) -> int:
        """A register's number."""
        return register.decode(bytes(self.registers[register.address : register.address + register.size]))

    def set(self, register: r.Register, value: int) -> None:
        """Change a register from inside."""
        self.registers[register.address : register.address + register.size] = register.encode(value)

    def restart(self) -> None:
        """What is not in EEPROM is lost; torque is off."""
        measured = bytes(self.registers[r.PRESENT_PWM.address :])
        self.registers = bytearray(self.eeprom[: r.RAM] + bytes(SIZE - r.RAM))
        for register, value in FACTORY:
            if register.address >= r.RAM:
                self.set(register, value)
        self.registers[r.PRESENT_PWM.address :] = measured
        self.set(r.GOAL_POSITION, self.get(r.PRESENT_POSITION))
        self.silence = self.clock = 0.0

    def fail(self, errors: int) -> None:
        """A hardware error; it lets go if SHUTDOWN says so."""
        self.set(r.HARDWARE_ERROR, errors)
        if errors & self.get(r.SHUTDOWN):
            self.set(r.TORQUE_ENABLE, 0)

    @property
    def alert(self) -> int:
        """In the error byte of all answers."""
        return ALERT if self.get(r.HARDWARE_ERROR) else 0

    def measure(self, position: float, speed: float) -> None:
        """What it finds, with its offset added: steps and steps/s."""
        self.set(r.PRESENT_POSITION, round(position))
        self.set(r.PRESENT_VELOCITY, round(speed / TURN * 60 / 0.229))

    def advance(self, seconds: float) -> None:
        """Its clock, and its watchdog."""
        self.clock += seconds
        self.set(r.TICK, int(1000 * self.clock) % r.WRAP)
        self.silence += seconds
        patience, here = self.get(r.BUS_WATCHDOG), self.get(r.PRESENT_POSITION)
        if not self.get(r.TORQUE_ENABLE):
            return
        if patience > 0 and self.silence > patience * r.WATCHDOG_UNIT:
            self.set(r.BUS_WATCHDOG, r.TRIPPED)
            self.set(r.PROFILE_VELOCITY, 0)
            self.set(r.PROFILE_ACCELERATION, 0)
            self.set(r.GOAL_POSITION, here)
        if self.get(r.BUS_WATCHDOG) == r.TRIPPED and self.moves_when_tripped and self._extended:
            self.set(r.GOAL_POSITION, here + self.get(r.HOMING_OFFSET))

    @property
    def _extended(self) -> bool:
        return self.get(r.OPERATING_MODE) == r.EXTENDED_POSITION

    def write(self, address: int, data: bytes) -> int:
        """Registers from outside; the number of the error, 0 for none."""
        places = range(address, address + len(data))
        if places.stop > SIZE or NEVER & set(places):
            return Fail.ACCESS
        torque = self.get(r.TORQUE_ENABLE)
        if address < r.RAM and torque:
            return Fail.ACCESS
        after = bytearray(self.registers)
        after[address : places.stop] = data
        if error := self._refused(places, after):
            return error
        on = not torque and after[r.TORQUE_ENABLE.address]
        if on and self.get(r.HARDWARE_ERROR):
            return Fail.RESULT
        mode = self.get(r.OPERATING_MODE)
        self.registers[address : places.stop] = data
        if on:
            self.set(r.GOAL_POSITION, self.get(r.PRESENT_POSITION))
            self.silence = 0.0
        if self.get(r.OPERATING_MODE) != mode:  # gains are others in another mode
            for register, value in GAINS:
                self.set(register, value)
        if address < r.RAM:
            self.eeprom = bytes(self.registers)
        return 0

    def _refused(self, places: range, after: bytearray) -> int:
        for register, (low, high) in RANGES.items():
            if register.address in places and not low <= _in(after, register) <= high:
                return Fail.DATA_RANGE
        touched = [register for register in GOALS if register.address in places]
        if touched and self.get(r.BUS_WATCHDOG) == r.TRIPPED:
            return Fail.DATA_RANGE
        if r.GOAL_POSITION in touched:
            extended = self.get(r.OPERATING_MODE) != r.POSITION
            low = -MOST_TURNS if extended else self.get(r.LOWER_LIMIT)
            high = MOST_TURNS if extended else self.get(r.UPPER_LIMIT)
            if not low <= _in(after, r.GOAL_POSITION) <= high:
                return Fail.DATA_LIMIT
        if r.GOAL_PWM in touched and abs(_in(after, r.GOAL_PWM)) > self.get(r.PWM_LIMIT):
            return Fail.DATA_LIMIT
        return 0


def _in(data: bytearray, register: r.Register) -> int:
    return register.decode(bytes(data[register.address : register.address + register.size]))


class ServoBus:
    """All servos on one line: bytes in, bytes out."""

    def __init__(self, servos: Sequence[Servo]) -> None:
        self.servos = {servo.get(r.ID): servo for servo in servos}
        self.others: Callable[[float], None] = lambda seconds: None
        """What others send while time goes on."""
        self._parser = Parser()

    def feed(self, data: bytes) -> list[bytes]:
        """The answers to what has come, each a packet."""
        answers = []
        for packet in self._parser.feed(data):
            if packet.code == Instruction.STATUS:
                continue
            for servo in self.servos.values():  # any instruction is one for every watchdog
                servo.silence = 0.0
            answers += self._answers(packet)
        return answers

    def advance(self, seconds: float) -> None:
        """The servos' clocks and watchdogs."""
        for servo in self.servos.values():
            servo.advance(seconds)

    def _answers(self, packet: Packet) -> list[bytes]:
        code, data = packet.code, packet.parameters
        addressed = [s for id, s in self.servos.items() if s.alive and packet.id in (id, ALL)]
        address = int.from_bytes(data[:2], "little")
        size = int.from_bytes(data[2:4], "little")
        if code == Instruction.SYNC_READ and len(data) >= 4:
            found = [self.servos[id] for id in data[4:] if id in self.servos and self.servos[id].alive]
            return [_read(servo, address, size) for servo in found]
        if code == Instruction.SYNC_WRITE and len(data) >= 4 and size:
            for at in range(4, len(data) - size, size + 1):
                servo = self.servos.get(data[at])
                if servo is not None and servo.alive:
                    servo.write(address, data[at + 1 : at + 1 + size])
            return []
        if code == Instruction.PING:
            return [_status(s, 0, s.registers[:2] + s.registers[6:7]) for s in addressed]
        answers = [_status(servo, self._do(servo, code, address, data)) for servo in addressed]
        if code == Instruction.READ and len(data) == 4:
            answers = [_read(servo, address, size) for servo in addressed]
        return answers if packet.id != ALL else []

    @staticmethod
    def _do(servo: Servo, code: int, address: int, data: bytes) -> int:
        """The number of the error, 0 for none."""
        if code == Instruction.WRITE and len(data) > 2:
            return servo.write(address, data[2:])
        if code == Instruction.REG_WRITE and len(data) > 2:
            servo.waiting = (address, data[2:])
            return 0
        if code == Instruction.ACTION and servo.waiting is not None:
            waiting, servo.waiting = servo.waiting, None
            return servo.write(*waiting)
        if code == Instruction.REBOOT:
            servo.restart()
            return 0
        return Fail.INSTRUCTION


def _read(servo: Servo, address: int, size: int) -> bytes:
    if address + size > SIZE:
        return _status(servo, Fail.ACCESS)
    return _status(servo, 0, servo.registers[address : address + size])


def _status(servo: Servo, error: int, data: bytes | bytearray = b"") -> bytes:
    return Packet(servo.get(r.ID), Instruction.STATUS, bytes([servo.alert | error]) + bytes(data)).encode()
