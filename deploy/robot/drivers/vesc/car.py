"""A car with a VESC, which drives its motor and steers its servo, and a lidar: as RoboRacer (F1TENTH) cars are.

A VESC does what it was told for a second after the last command, and coasts then; its servo stays. So a process of the
driver's own brakes (``robo_rl.deploy.robot.drivers.deadman``). A VESC repeats no commands: that somebody else
commands the motor, or
that its wheels can't turn, shows by a speed that does not come.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from robo_rl.contract import Contract, Scan
from robo_rl.deploy.robot.drivers.deadman import PATIENCE, Deadman
from robo_rl.deploy.robot.drivers.driver import DriverError, Health, Identity, Mode, Samples, Silence
from robo_rl.deploy.robot.drivers.hokuyo.lidar import Lidar
from robo_rl.deploy.robot.drivers.serial_port import Port
from robo_rl.deploy.robot.drivers.vesc import messages as m
from robo_rl.deploy.robot.drivers.vesc.packets import Parser, encode
from robo_rl.deploy.robot.drivers.vesc.robot_file import CarFile

STEERING, SPEED = "steering_angle", "speed"
WHEELS, TURNING = "wheel_speed", "yaw_rate"
ASKING, TRIES = 0.2, 5
"""s for an answer before it drives, and questions."""
ANSWERING, AGAIN = 0.004, 2
"""s for the answers of a cycle, and questions; on USB they come within 2 ms."""
FLOOD = 2048
"""Bytes after which what comes is no answer: one has 80."""
OLDEST = 5
"""Firmware: the first with all that is asked for."""
AT_REST = 0.1
"""m/s, below which a car stands."""
UPRIGHT = (0.8, 1.2)
"""g that the IMU of a car on the ground feels upwards."""
FRESH = 0.1
"""s: age of a measurement with which the car may be enabled."""
HOTTEST = 85.0
"""°C of the transistors: a VESC limits its current from there on (bldc, mcconf_default.h, l_temp_fet_start)."""
OFF, CHANGE, PERSISTENT = 1.0, 0.5, 1.5
"""m/s by which the speed may be another than that which is commanded, m/s by which it must come nearer in that time,
and s."""
LIDAR_PERIOD = 0.025
"""s"""
Told = TypeVar("Told")


def brake_orders(file: CarFile) -> list[bytes]:
    """What stops a car: wheels straight, brakes on."""
    return [encode(m.set_servo(file.servo(0.0))), encode(m.set_brake(file.brake_current))]


class Car:
    """See the module's text, and ``robo_rl.deploy.robot.drivers.driver.Driver``."""

    silence = Silence.GOES_ON
    guard = f"a process of its own brakes {1e3 * PATIENCE:.0f} ms later"

    def __init__(
        self, port: Port, contract: Contract, file: CarFile, watch: Callable[[], Deadman],
        lidar: Callable[[Scan, int], Lidar], clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """``watch()`` starts the process that brakes; ``lidar(scan, beams)`` finds the car's lidar."""
        within_hardware(contract, file)
        self.port, self.file, self._watch, self._now = port, file, watch, clock
        self._find_lidar, self._scan = lidar, scan_of(contract) if file.lidar else None
        names = {signal.name for signal in contract.signals}
        self.measured = tuple(n for n in (WHEELS, TURNING) if n in names) + ((self._scan[0],) if self._scan else ())
        self._parser = Parser()
        self._lidar: Lidar | None = None
        self._deadman: Deadman | None = None
        self._values: m.Values | None = None
        self._samples: dict[str, tuple[np.ndarray, int]] = {}
        self._problems: tuple[str, ...] = ()
        self._wanted = 0.0
        self._off_since: tuple[float, float] | None = None
        self._came = -1e9
        self._number = self._cycles = self._lost = self._strange = 0
        self._enabled = False

    # --- before it drives -------------------------------------------------------------------------------------------

    def connect(self) -> Identity:
        """Find the VESC, its IMU and the lidar."""
        firmware = self._asked(m.ask_firmware(), m.decode_firmware)
        if firmware is None:
            raise DriverError("no VESC answers on this port; is the car switched on, and the port the VESC's?")
        version = f"{firmware.major}.{firmware.minor:02d}"
        if firmware.major < OLDEST:
            raise DriverError(
                f"the VESC's firmware is {version}; expected {OLDEST}.00 or newer: update it by VESC Tool"
            )
        values = self._asked(m.ask_values(0), lambda payload: m.decode_values(payload, 0))
        motion = self._asked(m.ask_motion(0), lambda payload: m.decode_motion(payload, 0))
        if values is None or motion is None:
            raise DriverError("the VESC does not tell its values and its IMU's")
        if values.fault:
            raise DriverError(f"the VESC reports {m.fault_name(values.fault)}; switch it off and on")
        up = self.file.imu_sign * motion.accelerometer[2]
        if TURNING in self.measured and not UPRIGHT[0] <= up <= UPRIGHT[1]:
            raise DriverError(
                f"the VESC's IMU feels {up:.2f} g upwards; expected 1 of a car that stands. Is it mounted upside down "
                "(imu_sign = -1 in the robot file), or without an IMU?"
            )
        details = {"firmware": version, "hardware": firmware.hardware, "battery": f"{values.voltage:.1f} V"}
        if self._scan is not None:
            _, scan, count = self._scan
            self._lidar = self._find_lidar(scan, count)
            details["lidar"] = self._lidar.connect()
        self._deadman = self._watch()
        return Identity("VESC", details)

    def _asked(self, question: bytes, decode: Callable[[bytes], Told]) -> Told | None:
        """The answer; None if none comes."""
        for _ in range(TRIES):
            self._write(encode(question))
            end = self._now() + ASKING
            while self._now() < end:
                try:
                    data = self.port.read(0.02)
                except OSError as error:
                    raise DriverError(f"the port is gone ({error.strerror or error})") from None
                for payload in self._parser.feed(data):
                    try:
                        return decode(payload)
                    except ValueError:
                        continue
        return None

    def enable(self) -> None:
        """The brakes are on, and the car is watched from now on."""
        if self._problems:
            raise DriverError("; ".join(self._problems))
        try:
            found = self._ask_all()
        except OSError as error:
            raise DriverError(f"the port is gone ({error.strerror or error}); plug it in again") from None
        if found is not None:
            self._values, self._came = found[0], self._now()
        if self._values is None or self._now() - self._came > FRESH:
            raise DriverError("the VESC's values are too old to enable the car")
        if abs(speed := self.file.speed(self._values.erpm)) > AT_REST:
            raise DriverError(f"the car moves, at {speed:.1f} m/s; expected one that stands")
        assert self._deadman is not None
        self._enabled = True
        self._deadman.beat()
        self._write(b"".join(brake_orders(self.file)))

    def disable(self) -> None:
        """The motor coasts."""
        self._enabled = False
        if self._deadman is not None:
            self._deadman.leave()
        self._write(encode(m.set_current(0.0)))

    # --- every cycle ------------------------------------------------------------------------------------------------

    def read(self, now: int) -> Samples:
        """The newest signals. While something is wrong they get no newer, and the gate stops the car."""
        self._cycles += 1
        problems, found = [], None
        try:
            found = self._ask_all()
        except OSError as error:
            problems.append(f"the port is gone ({error.strerror or error}); plug it in again")
        if self._lidar is not None:
            self._lidar.poll()
            problems += [self._lidar.problem] if self._lidar.problem else []
        if found is not None:
            self._values = found[0]
            self._came = self._now()
            self._follow(self.file.speed(self._values.erpm))
            problems += self._wrong(self._values)
        elif not problems:
            self._lost += 1
        if self._deadman is not None and self._deadman.fired:
            problems.append(
                f"the program sent nothing for {1e3 * PATIENCE:.0f} ms, or hung when it was stopped; the car was "
                "braked: start anew"
            )
        self._problems = tuple(problems)
        if self._problems:
            return dict(self._samples)
        if self._scan is not None and self._lidar is not None and self._lidar.newest is not None:
            ranges, stamp = self._lidar.newest
            self._samples[self._scan[0]] = (ranges, min(stamp, now))
        if found is not None:
            rate = self.file.imu_sign * math.radians(found[1].gyroscope[2])
            given = {WHEELS: self.file.speed(found[0].erpm), TURNING: rate}
            new = {name: (np.array([given[name]], np.float32), now) for name in given if name in self.measured}
            self._samples |= new
        return dict(self._samples)

    def write(self, commands: Mapping[str, np.ndarray], mode: Mode) -> None:
        """Steer and drive; in any mode but the policy's, and at no speed, the brakes are on."""
        speed = float(commands[SPEED][0]) if mode is Mode.POLICY else 0.0
        self._wanted = speed
        drive = m.set_rpm(self.file.erpm(speed)) if speed else m.set_brake(self.file.brake_current)
        if self._deadman is not None and self._enabled:
            self._deadman.beat()
        if self._deadman is None or not self._deadman.fired:
            self._write(encode(m.set_servo(self.file.servo(float(commands[STEERING][0])))) + encode(drive))

    def abandon(self) -> None:
        """A car that is enabled is braked by the process that watches over this one."""
        if self._deadman is not None and self._enabled:
            self._deadman.close()

    def health(self) -> Health:
        """What is wrong, and counters."""
        figures = {
            "cycles": float(self._cycles), "cycles without all answers": float(self._lost),
            "damaged packets": float(self._parser.damaged), "answers to other questions": float(self._strange),
        }  # fmt: skip
        if self._values is not None:
            figures |= {
                "battery V": self._values.voltage, "transistors degC": self._values.transistors,
                "motor degC": self._values.motor, "motor current A": self._values.current,
            }  # fmt: skip
        if self._lidar is not None:
            figures |= {"scans": float(self._lidar.scans), "refused scans": float(self._lidar.refused)}
        return Health(self._problems, figures)

    def close(self) -> None:
        """A car that is enabled is braked for a while."""
        if self._deadman is not None:
            self._deadman.close()
        if self._lidar is not None:
            self._lidar.close()
        self.port.close()

    # ----------------------------------------------------------------------------------------------------------------

    def _ask_all(self) -> tuple[m.Values, m.Motion] | None:
        """The answers to the questions of this cycle; None if not all come in time."""
        self._number = (self._number + 1) % m.NUMBERS
        values: m.Values | None = None
        motion: m.Motion | None = None
        for _ in range(AGAIN):
            self.port.write(
                (b"" if values else encode(m.ask_values(self._number)))
                + (b"" if motion else encode(m.ask_motion(self._number)))
            )
            end = self._now() + ANSWERING
            room = FLOOD
            while data := self.port.read(max(0.0, end - self._now())):
                room -= len(data)
                for payload in self._parser.feed(data):
                    try:
                        if payload[0] == m.SELECTED:
                            values = m.decode_values(payload, self._number)
                        elif payload[0] == m.IMU:
                            motion = m.decode_motion(payload, self._number)
                    except ValueError:
                        self._strange += 1
                if values is not None and motion is not None:
                    return values, motion
                if room <= 0:
                    break
        return None

    def _wrong(self, values: m.Values) -> list[str]:
        found = []
        if values.fault:
            found.append(f"the VESC reports {m.fault_name(values.fault)}; switch it off and on")
        if values.status & m.KILLED:
            found.append("the VESC's kill switch is on")
        if values.status & m.TIMED_OUT and self._enabled:
            found.append("the VESC has got no command for its time-out: it is heard, but does not hear")
        if values.voltage < self.file.voltage_min:
            found.append(f"the battery has {values.voltage:.1f} V; charge it, below {self.file.voltage_min:g} V")
        if values.transistors > HOTTEST:
            found.append(f"the VESC has {values.transistors:.0f} °C; let it cool down below {HOTTEST:g} °C")
        if self._off_since is not None and self._now() - self._off_since[0] > PERSISTENT:
            found.append(
                f"the wheels do not come to the {self._wanted:.1f} m/s that are commanded: they are blocked, or "
                "somebody else commands the motor"
            )
        return found

    def _follow(self, speed: float) -> None:
        """Since when the speed is another one, and does not come nearer."""
        off = abs(speed - self._wanted)
        if not self._enabled or off < OFF:
            self._off_since = None
        elif self._off_since is None or off < self._off_since[1] - CHANGE:
            self._off_since = (self._now(), off)

    def _write(self, data: bytes) -> None:
        try:
            self.port.write(data)
        except OSError as error:  # the next read tells the gate
            self._problems = (f"the port is gone ({error.strerror or error}); plug it in again",)


def scan_of(contract: Contract) -> tuple[str, Scan, int] | None:
    """The contract's scan by a lidar: its name, layout and number of beams; None if it has none."""
    for signal in contract.signals:
        if isinstance(signal.layout, Scan):
            return signal.name, signal.layout, signal.size
    return None


def within_hardware(contract: Contract, file: CarFile) -> None:
    """DriverError where a contract is not a car's, or asks for more than this one can do."""
    units = {command.name: command.unit for command in contract.commands}
    if units != {STEERING: "rad", SPEED: "m/s"}:
        raise DriverError(f"the policy commands {units}; this car takes {STEERING} in rad and {SPEED} in m/s")
    steering, speed = contract.command(STEERING), contract.command(SPEED)
    right, left = file.steering
    if steering.lower[0] < right - 1e-3 or steering.upper[0] > left + 1e-3:
        raise DriverError(
            f"the policy steers from {steering.lower[0]:.3f} to {steering.upper[0]:.3f} rad, and this car's servo "
            f"reaches {right:.3f} to {left:.3f} rad; train with a card whose steering_limit it can reach, or measure "
            "servo_min and servo_max of the robot file"
        )
    if max(-speed.lower[0], speed.upper[0]) > file.fastest + 1e-3:
        raise DriverError(
            f"the policy drives up to {speed.upper[0]:g} m/s, and speed_max of the robot file is {file.fastest:.2f} "
            "m/s; train with a card of that speed_max, or raise it"
        )
    if scan_of(contract) and file.lidar and contract.control_period < LIDAR_PERIOD - 1e-4:
        raise DriverError(
            f"the policy runs at {1 / contract.control_period:g} Hz; the lidar scans at {1 / LIDAR_PERIOD:g} Hz"
        )
