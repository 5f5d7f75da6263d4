"""An arm of Feetech servos as a driver: positions and speeds in, positions out, every cycle one read and one write.

In a cycle the servos are asked for all from TORQUE_ENABLE to PRESENT_TEMPERATURE, so that a servo which lost its power,
latched an error or follows somebody else's goals is seen in that cycle. While anything of that is so, no new signals
come from here, and the gate stops the robot for signals that are too old; ``health`` says why.

A servo holds its last goal when nobody speaks to it: silence ends a motion, and does not let the arm fall.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from deploy.drivers.driver import DriverError, Health, Identity, Mode, Samples, Silence
from deploy.drivers.feetech import registers as r
from deploy.drivers.feetech.bus import Bus
from deploy.drivers.feetech.calibration import JointCalibration
from deploy.drivers.feetech.mapping import Joint, joints_of, within_hardware
from deploy.drivers.feetech.packets import ERRORS
from deploy.drivers.feetech.robot_file import RobotFile
from robo_rl.contract import Contract

CYCLE = (r.TORQUE_ENABLE.address, r.PRESENT_TEMPERATURE.address + 1 - r.TORQUE_ENABLE.address)
"""Address and size of what is read in every cycle."""
LISTENING = 0.2
"""s for which the bus must be quiet before we speak."""
OTHERS_GOALS = 3
"""Cycles in a row in which a servo has another goal than it was given, before somebody else counts as speaking."""
FIRST_TORQUE, RAMP = 0.3, 1.0
"""Part of the torque limit at first, and s until all of it."""
MOVED = 20
"""Steps (1.8°) that a joint may move while it is being enabled."""


class FeetechArm:
    """See the module's text, and ``deploy.drivers.driver.Driver``."""

    silence = Silence.HOLDS
    guard = ""

    def __init__(
        self, bus: Bus, contract: Contract, calibration: Mapping[str, JointCalibration], file: RobotFile,
        names: Sequence[str], now: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """``names``: joints of the arm, as in the contract. DriverError where the contract is beyond the hardware."""
        self.bus, self._now, self._limit = bus, now, file.torque_limit
        self.joints = joints_of(contract, calibration, file, names)
        within_hardware(contract, self.joints)
        self._by_name = {joint.name: joint for joint in self.joints}
        self._ids = [joint.id for joint in self.joints]
        self._positions = _all_of(contract, self._by_name, "rad")
        self._speeds = _all_of(contract, self._by_name, "rad/s")
        self.measured = (*self._positions, *self._speeds)
        self._commands = [(c.name, [self._by_name[e] for e in c.elements]) for c in contract.commands]
        self._samples: dict[str, tuple[np.ndarray, int]] = {}
        self._dither = np.random.default_rng(0)
        self._goals: dict[int, int] = {}
        self._others: dict[int, int] = dict.fromkeys(self._ids, 0)
        self._enabled_at: float | None = None
        self._problems: tuple[str, ...] = ()
        self._figures: dict[str, float] = {}
        self._cycles = self._lost = 0

    # --- before it moves ------------------------------------------------------------------------------------------

    def connect(self) -> Identity:
        """Find all servos, compare their model and calibration, and set what they must be set to."""
        heard, until = 0, self._now() + LISTENING
        while self._now() < until:
            data = self.bus.port.read(LISTENING)
            heard += len(data)
            if not data:
                break
        if heard:
            raise DriverError("somebody else speaks on this bus; end the other program first")
        firmware = []
        for joint in self.joints:
            errors = self.bus.ping(joint.id)
            if errors is None:
                raise DriverError(
                    f"servo {joint.id} ({joint.name}) does not answer; check its cable, the power supply and its ID"
                )
            if errors:
                raise DriverError(f"servo {joint.id} ({joint.name}) reports {named(errors)}; switch it off and on")
            model = self.bus.read(joint.id, r.MODEL_NUMBER)
            if model != r.MODEL:
                raise DriverError(f"servo {joint.id} ({joint.name}) is model {model}; expected an STS3215, {r.MODEL}")
            offset = self.bus.read(joint.id, r.OFFSET)
            if offset != joint.calibration.homing_offset:
                raise DriverError(
                    f"servo {joint.id} ({joint.name}) has the offset {offset}, the calibration file says "
                    f"{joint.calibration.homing_offset}: the file is another arm's, or older; run lerobot-calibrate"
                )
            firmware.append(str(self.bus.read(joint.id, r.FIRMWARE)))
            for register, value in joint.setup():
                if self.bus.read(joint.id, register) != value:
                    self.bus.write(joint.id, register, value)
        return Identity("feetech", {"servos": " ".join(map(str, self._ids)), "firmware": " ".join(firmware)})

    def enable(self) -> None:
        """Torque on, at the pose that the arm is in, with little torque at first."""
        present = self._present()
        goals = {id: min(max(here, self._of(id).lowest), self._of(id).highest) for id, here in present.items()}
        beyond = [self._of(id).name for id, here in present.items() if abs(here - goals[id]) > MOVED]
        if beyond:
            raise DriverError(f"{beyond} are outside of their calibrated range; move them inside, then arm")
        self._enabled_at = self._now()
        self._send(goals)
        at = r.TORQUE_ENABLE
        self.bus.sync_write({id: at.encode(1) for id in self._ids}, at.address)
        moved = [self._of(id).name for id, here in self._present().items() if abs(here - present[id]) > MOVED]
        if moved:
            self.disable()
            raise DriverError(f"{moved} moved by more than 1.8° while torque came on; check calibration and load")

    def disable(self) -> None:
        """Torque off: the arm falls."""
        self._enabled_at = None
        at = r.TORQUE_ENABLE
        self.bus.sync_write({id: at.encode(0) for id in self._ids}, at.address)

    # --- every cycle ------------------------------------------------------------------------------------------------

    def read(self, now: int) -> Samples:
        """Positions and speeds of all joints, if all is well."""
        self._cycles += 1
        try:
            found = self.bus.sync_read(self._ids, *CYCLE)
            missing = [id for id in self._ids if id not in found]
            if missing:
                found |= self.bus.sync_read(missing, *CYCLE)
        except OSError as error:
            self._problems = (f"the port is gone ({error.strerror or error}); plug it in again",)
            return self._samples
        missing = [id for id in self._ids if id not in found]
        if missing:
            self._lost += 1
            self._problems = (f"no answer from {', '.join(self._of(id).name for id in missing)}",)
            return self._samples
        values = {id: packet.parameters for id, packet in found.items()}
        self._problems = tuple(self._wrong(values, {id: packet.code for id, packet in found.items()}))
        if self._problems:
            return self._samples
        position = {j.name: j.angle(self._taken(values[j.id], r.PRESENT_POSITION)) for j in self.joints}
        speed = {j.name: j.rate(self._taken(values[j.id], r.PRESENT_SPEED)) for j in self.joints}
        for signals, quantity in ((self._positions, position), (self._speeds, speed)):
            for name, elements in signals.items():
                self._samples[name] = (np.array([quantity[e] for e in elements], np.float32), now)
        return dict(self._samples)

    def write(self, commands: Mapping[str, np.ndarray], mode: Mode) -> None:
        """Goals of all servos, clipped to what is calibrated. Every mode is a position here."""
        goals = {
            joint.id: joint.steps(float(value))
            for name, joints in self._commands
            for joint, value in zip(joints, commands[name], strict=True)
        }
        try:
            self._send(goals)
        except OSError as error:  # the next read tells the gate
            self._problems = (f"the port is gone ({error.strerror or error}); plug it in again",)

    def health(self) -> Health:
        """What is wrong, and counters."""
        counters = {
            "cycles": self._cycles, "cycles without all answers": self._lost, "damaged packets": self.bus.damaged,
            "foreign packets": self.bus.foreign,
        }  # fmt: skip
        return Health(self._problems, {**counters, **self._figures})

    def close(self) -> None:
        """The servos hold where they are."""
        self.bus.port.close()

    # ----------------------------------------------------------------------------------------------------------------

    def _of(self, id: int) -> Joint:
        return self.joints[self._ids.index(id)]

    def _present(self) -> dict[int, int]:
        """Steps, of all servos. DriverError if one does not answer."""
        found: dict[int, int] = {}
        for _ in range(3):
            packets = self.bus.sync_read(self._ids, *CYCLE)
            found |= {id: r.PRESENT_POSITION.decode(p.parameters, CYCLE[0]) for id, p in packets.items()}
            if len(found) == len(self._ids):
                return found
        raise DriverError(f"no answer from {[self._of(id).name for id in self._ids if id not in found]}")

    def _send(self, goals: Mapping[int, int]) -> None:
        """Goals and the torque limit, of all servos at once."""
        since = self._now() - self._enabled_at if self._enabled_at is not None else 0.0
        part = self._limit * min(1.0, FIRST_TORQUE + (1.0 - FIRST_TORQUE) * since / RAMP)
        rest = r.GOAL_TIME.encode(0) + r.GOAL_SPEED.encode(0) + r.TORQUE_LIMIT.encode(round(1000 * part))
        self._goals = dict(goals)
        self.bus.sync_write(
            {id: r.GOAL_POSITION.encode(goal) + rest for id, goal in goals.items()}, r.GOAL_POSITION.address
        )

    def _wrong(self, values: Mapping[int, bytes], errors: Mapping[int, int]) -> list[str]:
        found = []
        for joint in self.joints:
            data = values[joint.id]
            self._figures[f"voltage/{joint.name} V"] = 0.1 * r.PRESENT_VOLTAGE.decode(data, CYCLE[0])
            self._figures[f"temperature/{joint.name} degC"] = float(r.PRESENT_TEMPERATURE.decode(data, CYCLE[0]))
            self._figures[f"load/{joint.name} %"] = 0.1 * r.PRESENT_LOAD.decode(data, CYCLE[0])
            if errors[joint.id]:
                found.append(f"servo {joint.id} ({joint.name}) reports {named(errors[joint.id])}")
            if self._enabled_at is None:
                continue
            if r.TORQUE_ENABLE.decode(data, CYCLE[0]) != 1:
                found.append(
                    f"servo {joint.id} ({joint.name}) lost its torque: its power failed, or it was switched off"
                )
            other = r.GOAL_POSITION.decode(data, CYCLE[0]) != self._goals.get(joint.id)
            self._others[joint.id] = self._others[joint.id] + 1 if other else 0
            if self._others[joint.id] >= OTHERS_GOALS:
                found.append(f"servo {joint.id} ({joint.name}) has a goal that we did not send: somebody else commands")
        return found

    def _taken(self, data: bytes, register: r.Register) -> float:
        """A measurement, anywhere within its step: the encoder tells no more, and one that stands still would else look
        like one that froze."""
        return register.decode(data, CYCLE[0]) + float(self._dither.uniform(-0.5, 0.5))


def named(errors: int) -> str:
    """Error bits in words."""
    known = [name for bit, name in ERRORS.items() if errors & bit]
    rest = errors & ~sum(ERRORS)
    return " and ".join([*known, *([f"error {rest}"] if rest else [])])


def _all_of(contract: Contract, joints: Mapping[str, Joint], unit: str) -> dict[str, tuple[str, ...]]:
    """The sensor signals, all of whose elements are joints, in this unit; and their elements."""
    return {
        s.name: tuple(s.elements)
        for s in contract.signals
        if s.source == "sensor" and s.unit == unit and s.elements and set(s.elements) <= set(joints)
    }
