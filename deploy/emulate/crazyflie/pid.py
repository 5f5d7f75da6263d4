"""The Crazyflie firmware's cascade of PID controllers and its mixer, with its default gains and in its units.

After controller_pid.c, attitude_pid_controller.c, position_controller_pid.c and power_distribution_quadrotor.c of
crazyflie-firmware 2a18fc29; gains of platform_defaults_cf2.h. Degrees; pitch is positive where the nose goes up; thrust
and what turns are parts of 65535.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from robo_rl.controllers.rotation import yaw_angle

STEP = 0.002
"""s: ATTITUDE_RATE"""
WORD = 32767
RATES = ((250.0, 500.0, 2.5, 33.3), (250.0, 500.0, 2.5, 33.3), (120.0, 16.7, 0.0, 166.7))
"""Of roll, pitch and yaw: gains of the error, its integral and its change, and the integral's limit."""
ANGLES = ((6.0, 3.0, 0.0, 20.0), (6.0, 3.0, 0.0, 20.0), (6.0, 1.0, 0.35, 360.0))
SPEEDS = ((25.0, 1.0, 0.0, 20.0), (25.0, 1.0, 0.0, 20.0), (25.0, 15.0, 0.0, 2.0))
TILT, BASE, SCALE, LEAST = 20.0, 36000.0, 1000.0, 20000.0
"""deg of tilt that a velocity may ask for; thrust of hovering, per m/s, and the least."""


@dataclass
class Pid:
    """One loop."""

    gains: tuple[float, float, float, float]
    integral: float = 0.0
    before: float = 0.0

    def __call__(self, error: float) -> float:
        p, i, d, most = self.gains
        self.integral = min(max(self.integral + error * STEP, -most), most)
        change, self.before = (error - self.before) / STEP, error
        return p * error + i * self.integral + d * change

    def reset(self) -> None:
        """As when nothing has been controlled yet."""
        self.integral = self.before = 0.0


@dataclass
class Wanted:
    """A set-point: ``turn`` (deg/s, or deg about x and y where ``level``), or a ``velocity`` (m/s, world)."""

    thrust: float = 0.0
    turn: tuple[float, float, float] = (0.0, 0.0, 0.0)
    level: bool = False
    velocity: tuple[float, float, float] | None = None
    ahead: bool = False
    """Whether the velocity's x is where the nose points."""
    place: tuple[float | None, float | None, float | None] | None = None
    """m, world, where it is to be held; None: not along this axis."""
    climb: float | None = None
    """m/s by which the thrust of a levelled vehicle is controlled."""

    @property
    def mode(self) -> tuple[bool, bool]:
        """What a change of resets the loops."""
        return self.level, self.velocity is not None or self.climb is not None


@dataclass
class Cascade:
    """See the module's text."""

    rates: list[Pid] = field(default_factory=lambda: [Pid(gains) for gains in RATES])
    angles: list[Pid] = field(default_factory=lambda: [Pid(gains) for gains in ANGLES])
    speeds: list[Pid] = field(default_factory=lambda: [Pid(gains) for gains in SPEEDS])
    desired: tuple[float, float] = (0.0, 0.0)
    """deg/s of roll and pitch, as the firmware logs them."""
    thrust: float = 0.0
    _yaw: float = 0.0
    _mode: tuple[bool, bool] = (False, False)

    def __call__(self, wanted: Wanted, quaternion: np.ndarray, speed: np.ndarray, gyro: np.ndarray) -> np.ndarray:
        """Of 65535, for the four rotors; attitude x, y, z, w, speed (m/s, world) and gyroscope (rad/s, body)."""
        roll, pitch, yaw = angles_of(quaternion)
        turning = np.degrees(gyro) * (1.0, -1.0, 1.0)
        if wanted.mode != self._mode:
            self._mode = wanted.mode
            self._reset(yaw)
        self._yaw = capped(self._yaw + wanted.turn[2] * STEP)
        goal, self.thrust = wanted.turn[:2], wanted.thrust
        if wanted.velocity is not None:
            goal, self.thrust = self._fly(np.array(wanted.velocity) - speed, math.radians(yaw))
        elif wanted.climb is not None:
            self.thrust = self._lift(wanted.climb - float(speed[2]))
        asked = [
            self.angles[0](goal[0] - roll),
            self.angles[1](goal[1] - pitch),
            self.angles[2](capped(self._yaw - yaw)),
        ]
        if not wanted.level and wanted.velocity is None:
            asked[:2] = goal
        self.desired = (asked[0], asked[1])
        turns = [pid(want - now) for pid, want, now in zip(self.rates, asked, turning, strict=True)]
        if self.thrust == 0:
            self._reset(yaw)
            return np.zeros(4)
        r, p, y = (min(max(turn, -WORD), WORD) for turn in turns)
        r, p = r / 2, p / 2
        mixed = self.thrust + np.array([-r + p - y, -r - p + y, r - p - y, r + p + y])
        return np.clip(mixed - max(0.0, mixed.max() - 65535), 0.0, 65535.0)

    def _fly(self, error: np.ndarray, yaw: float) -> tuple[tuple[float, float], float]:
        forward = math.cos(yaw) * error[0] + math.sin(yaw) * error[1]
        left = -math.sin(yaw) * error[0] + math.cos(yaw) * error[1]
        pitch, roll = -self.speeds[0](forward), -self.speeds[1](left)
        return (min(max(roll, -TILT), TILT), min(max(pitch, -TILT), TILT)), self._lift(float(error[2]))

    def _lift(self, error: float) -> float:
        return min(max(BASE + SCALE * self.speeds[2](error), LEAST), 65535.0)

    def _reset(self, yaw: float) -> None:
        for pid in (*self.rates, *self.angles, *self.speeds):
            pid.reset()
        self._yaw = yaw


def angles_of(quaternion: np.ndarray) -> tuple[float, float, float]:
    """Roll, pitch (positive: nose up) and yaw, deg."""
    x, y, z, w = map(float, quaternion)
    roll = math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = math.asin(min(max(2 * (x * z - w * y), -1.0), 1.0))
    return math.degrees(roll), math.degrees(pitch), math.degrees(yaw_angle((x, y, z, w)))


def capped(angle: float) -> float:
    """Within 180 deg of 0."""
    return (angle + 180.0) % 360.0 - 180.0
