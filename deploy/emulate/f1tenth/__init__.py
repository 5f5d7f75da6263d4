"""A RoboRacer car as its VESC and its lidar tell it: the card's car on a track of its own.

The VESC drives as it was told last, and coasts after a second without a command. Where the car touches a wall it stays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from robo_rl.contract import Scan
from robo_rl.deploy.robot.drivers.hokuyo import scip
from robo_rl.deploy.robot.drivers.vesc import messages as m
from robo_rl.deploy.robot.drivers.vesc.packets import Parser, encode
from robo_rl.deploy.robot.drivers.vesc.robot_file import CarFile
from robo_rl.sim.plants.car.on_track import CarOnTrack
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.car import CARD, CarCard
from robo_rl.sim.scenes.tracks import KNOTS

TICK, SCAN = 0.0025, 0.025
"""s: of the car, and of a scan."""
TIMEOUT = 1.0
"""s without a command, after which a VESC coasts (bldc, appconf_default.h, timeout_msec)."""
LAYOUT = scip.Layout("UST-10LX", 20, 30000, 1440, 0, 1080, 540, 2400)
"""Hokuyo, UST-10LX specification: 1,081 beams, a quarter of a degree apart, 40 times a second."""
FILE = CarFile(steering_angle_to_servo_gain=-1.0, steering_angle_to_servo_offset=0.5, servo_min=0.05, servo_max=0.95,
               speed_max=40000.0)  # fmt: skip
"""A car whose servo reaches as far as the card's, and whose motor is let run as fast."""
FULL_CURRENT = 60.0
"""A of the motor at which it gives the card's acceleration: the greatest of a VESC 6 (bldc, mcconf_default.h)."""
NOISE = {"gyroscope": 1.0, "accelerometer": 0.02}
"""Standard deviations, degrees/s and g: estimates."""


@dataclass
class Broken:
    """What is wrong with the car itself; faults of its lines are in ``robo_rl.deploy.emulate.f1tenth.wire``."""

    fault: int = 0
    killed: bool = False
    voltage: float = 11.6
    blocked: bool = False
    gyroscope: bool = False
    lidar_clock: bool = False
    lidar_picture: bool = False
    blind: bool = False


class Racer:
    """The car."""

    def __init__(self, card: CarCard | None = None, file: CarFile = FILE, seed: int = 0, width: float = 2.0) -> None:
        """On a track of ``seed``, ``width`` m wide."""
        self.card = card or load_robot("f1tenth", CARD)
        step = 2 * math.pi / LAYOUT.steps
        layout = Scan(-LAYOUT.front * step, step, 1e-3 * LAYOUT.nearest, 1e-3 * LAYOUT.farthest)
        self.plant = CarOnTrack(self.card, 1, TICK, layout, LAYOUT.last - LAYOUT.first + 1)
        self.file, self.random, self.broken = file, np.random.default_rng(seed), Broken()
        self.time, self.servo, self.laps = 0.0, file.servo(0.0), 0
        self.drive = ("coast", 0.0)
        """What the motor does: "erpm" with so many, "brake" or "coast"."""
        self._commanded, self._left, self._scanned = -math.inf, 0.0, 0.0
        self._parser, self._motion = Parser(), m.Motion((0.0, 0.0, 1.0), (0.0, 0.0, 0.0))
        self._scan_command, self._laser = "", False
        self._picture: tuple[int, np.ndarray] | None = None
        for name, value in (
            ("track_shape", self.random.uniform(size=2 * KNOTS)), ("track_size", self.random.uniform(8.0, 14.0)),
            ("track_width", width), ("track_direction", self.random.choice([-1.0, 1.0])),
        ):  # fmt: skip
            self.plant.param(name)[0] = torch.as_tensor(value, dtype=torch.float32)
        self.plant.refresh(torch.tensor([0]))
        self.plant.put(torch.tensor([0]), *torch.zeros(4, 1).unbind(0))

    @property
    def truth(self) -> dict[str, np.ndarray]:
        """True quantities by name."""
        return {name: value[0].numpy() for name, value in self.plant.truth().items()}

    @property
    def speed(self) -> float:
        """m/s, true, whichever way."""
        return float(self.plant.car.current.velocity[0].norm())

    @property
    def touches(self) -> bool:
        """Whether it has met a wall."""
        return bool(self.plant.truth()["clearance"][0, 0] <= 0.0)

    @property
    def timed_out(self) -> bool:
        """Whether the VESC has got no command for its time-out."""
        return self.time - self._commanded > TIMEOUT

    # --- the VESC ---------------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> list[bytes]:
        """Answers to what has come, each a packet."""
        return [encode(answer) for payload in self._parser.feed(data) if (answer := self._answer(payload))]

    def order(self, kind: str, value: float) -> None:
        """The motor does this from now on."""
        self.drive, self._commanded = (kind, value), self.time

    def restart(self) -> None:
        """Its power failed for a moment."""
        self.drive, self._commanded = ("coast", 0.0), -math.inf

    def _answer(self, payload: bytes) -> bytes:
        kind, body = payload[0], payload[1:]
        if kind == m.FIRMWARE:
            return m.encode_firmware(m.Firmware(6, 2, "60_MK5"))
        if kind == m.SELECTED and len(body) == 4:
            return m.encode_values(self._values(), int.from_bytes(body, "big"))
        if kind == m.IMU and len(body) == 2:
            return m.encode_motion(self._motion, int.from_bytes(body, "big"))
        if kind == m.SERVO and len(body) == 2:
            self.servo = min(max(int.from_bytes(body, "big", signed=True) / 1000, 0.0), 1.0)
        elif kind in (m.RPM, m.BRAKE, m.CURRENT) and len(body) == 4:
            value = int.from_bytes(body, "big", signed=True)
            self.order({m.RPM: "erpm", m.BRAKE: "brake", m.CURRENT: "coast"}[kind], float(value))
        return b""

    def _values(self) -> m.Values:
        status = m.TIMED_OUT * self.timed_out | m.KILLED * self.broken.killed
        speed = float(self.plant.truth()["wheel_speed"][0, 0])
        return m.Values(31.0, 28.0, 0.0, self.file.speed_to_erpm_gain * speed, self.broken.voltage, self.broken.fault,
                        status)  # fmt: skip

    # --- the lidar --------------------------------------------------------------------------------------------------

    def ask_lidar(self, line: str) -> bytes:
        """The answer to a command."""
        if line == "PP":
            return scip.whole(line, scip.OK, scip.write_layout(LAYOUT))
        if line in ("BM", "QT", "RS"):
            again, self._laser, self._scan_command = line == "BM" and self._laser, line == "BM", ""
            return scip.whole(line, scip.ALREADY if again else scip.OK, [])
        if line.startswith("MD") and len(line) == 15 and line[2:].isdigit():
            first, last = int(line[2:6]), int(line[6:10])
            if not LAYOUT.first <= first <= last <= LAYOUT.last or line[10:12] not in ("00", "01"):
                return scip.whole(line, "04", [])
            self._laser, self._scan_command = True, line
            return scip.whole(line, scip.OK, [])
        return scip.whole(line, "0E", [])

    def _scan(self) -> bytes:
        name = self._scan_command
        first, last = int(name[2:6]), int(name[6:10])
        ranges = self.plant.truth()["scan"][0].numpy()
        noisy = 1000 * ranges + 1000 * self.card.lidar_noise * self.random.standard_normal(len(ranges))
        found = np.clip(np.round(noisy), LAYOUT.nearest, LAYOUT.farthest).astype(np.int64)
        found[found >= LAYOUT.farthest] = scip.NOTHING
        if self.broken.blind:
            found[:] = 1
        tick = round(1000 * self.time)
        if self._picture is not None and self.broken.lidar_clock:
            tick = self._picture[0]
        if self._picture is not None and self.broken.lidar_picture:
            found = self._picture[1]
        self._picture = (tick, found)
        return scip.write_scan(name, scip.Distances(tick, first, found[first - LAYOUT.first : last + 1 - LAYOUT.first]))

    # ----------------------------------------------------------------------------------------------------------------

    def advance(self, seconds: float) -> list[bytes]:
        """Move on by whole ticks; the scans that the lidar sent meanwhile."""
        self._left += seconds
        scans = []
        while self._left >= TICK:
            self._left -= TICK
            self.time += TICK
            self._move()
            if self.time - self._scanned >= SCAN - 1e-9:
                self._scanned += SCAN
                scans += [self._scan()] if self._scan_command else []
        return scans

    def _move(self) -> None:
        kind, value = self.drive
        stopped = self.broken.killed or self.broken.fault or self.timed_out
        forward = float(self.plant.car.current.velocity[0, 0])
        speed = forward if stopped or kind == "coast" else self.file.speed(value) if kind == "erpm" else 0.0
        part = min(1.0, value / 1000 / FULL_CURRENT) if kind == "brake" else 1.0
        self.plant.param("acceleration")[0] = self.plant.nominal.acceleration[0] * part
        if self.broken.blocked:
            speed = 0.0
        if not self.touches:
            angle = (self.servo - self.file.steering_angle_to_servo_offset) / self.file.steering_angle_to_servo_gain
            limit = self.card.steering_limit
            commands = {"steering_angle": min(max(angle, -limit), limit), "speed": speed}
            self.plant.step({name: torch.tensor([[number]]) for name, number in commands.items()})
            self.laps = int(self.plant.progress[0, 0] / self.plant.tracks.length[0])
        if not self.broken.gyroscope:
            noise = self.random.standard_normal(6)
            rate = math.degrees(float(self.plant.car.current.yaw_rate[0, 0]))
            x, y, z = NOISE["accelerometer"] * noise[:3]
            p, q, r = NOISE["gyroscope"] * noise[3:]
            self._motion = m.Motion((x, y, z + 1.0), (p, q, r + rate))
