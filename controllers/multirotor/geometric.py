"""Geometric tracking control of a multirotor, down to single rotor speeds.

Lee, Leok, McClamroch 2010, Geometric tracking control of a quadrotor UAV on SE(3): the position loop asks for a
force, whose direction is the wanted body z axis and whose part along the present one is the thrust. Its vertical
part is kept to what rotors can give, and the rest to a greatest tilt. Attitude is turned back by the shortest
way of the body z axis, apart from the heading (Brescianini, D'Andrea 2018, Tilt-prioritized quadrocopter attitude
control): a vehicle on its side gets upright before it turns its nose. An integral of the position
error (Goodarzi, Lee, Lee 2013) carries what is steady: wind, a wrong mass. Below it are a mixer that
gives way in yaw first and in thrust next when rotors saturate, and an inversion of the motors' lag with an
estimate of the rotor speeds, which gives way in thrust where commands saturate.

Functions of arrays, numpy or torch alike, for a batch (n, k) or, with n = 1, one robot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from robo_rl.contract.gravity import GRAVITY
from robo_rl.controllers.multirotor.facts import Multirotor
from robo_rl.controllers.rotation import Vector, cross, dot, matrix

INTEGRATED = 0.3
"""m: a larger position error counts as this much in the integral, which is not for the way there."""
LEAST = 0.3
"""Of the weight: the vertical force that is asked for at least, so never upside down."""
STRONGEST = 0.97
"""Of the thrust of all rotors at their top speed: the upward force that is asked for at most."""
STEADY = 3.0
"""m/s²: what the integral may add at most."""


@dataclass(frozen=True)
class Gains:
    """Per mass and per inertia, so they hold for any size of vehicle. ``motor`` is the time constant (s) that the
    motors are driven to by commanding beyond the wanted speed."""

    position: float
    """1/s²."""
    velocity: float
    """1/s."""
    integral: float
    """1/s³."""
    attitude: float
    """1/s²."""
    rate: float
    """1/s."""
    yaw: float
    """Factor on attitude and rate gains about body z, where rotors have little torque."""
    motor: float
    """s."""
    lean: float
    """rad: the greatest tilt that is asked for."""
    least: float
    """Of the weight: the thrust that rotors keep up while the vehicle is tilted, so that they can turn it."""
    turn: float
    """rad: an error of the heading counts as this much at most."""

    @classmethod
    def for_robot(cls, robot: Multirotor, control_period: float) -> Gains:
        """Gains as fast as motors and control period allow.

        ``response`` is the time from a command to the thrust: half a period of waiting, one of latency, and what
        is left of the motors' lag. Attitude follows at 0.36 of its inverse, position at a third of that.

        The factors, here and in ``for_response``, are the best of a random search: 400 flights of the Crazyflie from
        each of quadrotor-hover, quadrotor-track (both with all ranges as drawn in training) and the figure-eight of
        5.5 s, on draws of seed 101; the cost is the mean tracking error, 1 m for a failure, the figure-eight's times 8.
        Of 1,000 flights of seed 202 each, 96.3 % hover, 95.4 % track and 99.9 % of figure-eights (seed 0) do
        not fail. With the attitude error of Lee et al. and commands clipped one by one, none passed 61 % (hover).
        """
        lag = float(np.mean([0.5 * (rotor.rise + rotor.fall) for rotor in robot.rotors]))
        motor = max(0.08 * lag, control_period)
        return cls.for_response(motor + 1.5 * control_period, motor)

    @classmethod
    def for_response(cls, response: float, motor: float = 0.0) -> Gains:
        """Those of a vehicle whose thrust or rates answer in ``response`` s."""
        attitude = (0.363 / response) ** 2
        position = attitude / 9.0
        return cls(
            position=position,
            velocity=1.15 * position**0.5,
            integral=0.12 * position**1.5,
            attitude=attitude,
            rate=1.45 * attitude**0.5,
            yaw=0.095,
            motor=motor,
            lean=0.78,
            least=0.59,
            turn=0.65,
        )


@dataclass(frozen=True)
class Mixer:
    """How wrenches become rotor thrusts: columns of the pseudo-inverse of the allocation, and limits in N."""

    thrust: np.ndarray
    roll: np.ndarray
    pitch: np.ndarray
    yaw: np.ndarray
    top: float

    @classmethod
    def of(cls, robot: Multirotor) -> Mixer:
        x, y, _ = np.array([rotor.position for rotor in robot.rotors]).T
        spin = np.array([1.0 if rotor.spin == "ccw" else -1.0 for rotor in robot.rotors])
        ratio = np.array([rotor.torque_ratio for rotor in robot.rotors])
        columns = np.linalg.pinv(np.stack([np.ones_like(x), y, -x, -spin * ratio])).T
        rotor = robot.rotors[0]
        c0, c1, c2 = rotor.thrust
        return cls(columns[0], columns[1], columns[2], columns[3], c0 + c1 * rotor.speed_max + c2 * rotor.speed_max**2)


class GeometricController:
    """``(signals, state) -> (commands, state)`` like a policy.

    The state (n, R + 6) holds the estimated rotor speeds, the last velocity set-point, and what the integral of
    the position error adds to the acceleration (m/s²).
    """

    name = "geometric"

    def __init__(self, robot: Multirotor, control_period: float, gains: Gains | None = None) -> None:
        self.robot, self.period = robot, control_period
        self.gains = gains or Gains.for_robot(robot, control_period)
        self.mixer = Mixer.of(robot)
        self.strongest = STRONGEST * len(robot.rotors) * self.mixer.top / robot.mass
        """m/s²: the upward force per mass that is asked for at most."""
        self.state_size = len(robot.rotors) + 6

    @property
    def hover_speed(self) -> float:
        """Rotor speed (rad/s) that carries the weight."""
        rotors = self.robot.rotors
        return float(_speed(np.asarray(self.robot.mass * GRAVITY / len(rotors)), rotors[0].thrust, np))

    def first_state(self, n: int) -> np.ndarray:
        """State before the first step: rotors at hover speed."""
        return np.array([[self.hover_speed] * len(self.robot.rotors) + [0.0] * 6] * n, dtype=np.float32)

    def __call__(self, signals: Mapping[str, Any], state: Any) -> tuple[dict[str, Any], Any]:
        """Rotor speeds (n, R) in rad/s within their limits."""
        xp = array_namespace(state)
        count = len(self.robot.rotors)
        motors = state[:, :count]
        force, kept = self._follow(signals, state[:, count:], xp)
        thrust, torque = self._wrench(signals, force, xp)
        wanted = _speed(self._mix(thrust, torque, xp), self.robot.rotors[0].thrust, xp)
        commands, motors = self._drive(motors, wanted, xp)
        return {"rotor_speed": commands}, xp.concat([motors, *kept], axis=-1)

    def _follow(self, signals: Mapping[str, Any], kept: Any, xp: Any) -> tuple[Vector, tuple[Any, Any]]:
        """Wanted force per mass, and what is kept (n, 3) each: the velocity set-point, and what is steady."""
        last_velocity, steady = kept[:, :3], kept[:, 3:]
        wanted_velocity = signals["linear_velocity_setpoint"]
        change = xp.clip((wanted_velocity - last_velocity) / self.period, -10.0, 10.0)
        error = xp.clip(signals["position"] - signals["position_setpoint"], -INTEGRATED, INTEGRATED)
        steady = xp.clip(steady - self.gains.integral * self.period * error, -STEADY, STEADY)
        return self._force(signals, change + steady), (wanted_velocity, steady)

    def _force(self, signals: Mapping[str, Any], acceleration: Any) -> Vector:
        """Wanted force per mass in the world, m/s²."""
        g = self.gains
        error = _columns(signals["position"] - signals["position_setpoint"])
        velocity = _columns(signals["linear_velocity"] - signals["linear_velocity_setpoint"])
        ahead = _columns(acceleration)
        x, y, z = (a - g.position * e - g.velocity * v for a, e, v in zip(ahead, error, velocity, strict=True))
        return self._possible((x, y, z + GRAVITY), array_namespace(x))

    def _possible(self, force: Vector, xp: Any) -> Vector:
        """The force that is asked for: upwards what rotors can give, and to the side as far as the greatest tilt."""
        x, y, z = force
        z = xp.clip(z, LEAST * GRAVITY, self.strongest)
        most = z * math.tan(self.gains.lean)
        part = xp.clip(most / xp.sqrt(x * x + y * y + 1e-9), None, 1.0)
        return x * part, y * part, z

    def _wrench(self, signals: Mapping[str, Any], force: Vector, xp: Any) -> tuple[Any, Vector]:
        """Thrust (N) along body z and torque (N m) in the body frame, for the wanted force with the nose to x."""
        g, robot = self.gains, self.robot
        rates = _columns(signals["angular_velocity"])
        thrust, error = self._tilt(signals, force, xp)
        thrust = xp.clip(thrust, g.least * GRAVITY, None)
        inertia = robot.inertia
        spin = cross(rates, (inertia[0] * rates[0], inertia[1] * rates[1], inertia[2] * rates[2]))
        soft = (1.0, 1.0, g.yaw)
        torque = tuple(
            inertia[i] * (-soft[i] * g.attitude * error[i] - soft[i] ** 0.5 * g.rate * rates[i]) + spin[i]
            for i in range(3)
        )
        return robot.mass * thrust, torque

    def _tilt(self, signals: Mapping[str, Any], force: Vector, xp: Any) -> tuple[Any, Vector]:
        """Thrust per mass along body z, m/s², and the attitude's error about the body's axes, rad where it is small."""
        ahead, left, up = zip(*matrix(_columns(signals["orientation"])), strict=True)
        z = _unit(force, xp)
        y = _unit(cross(z, (xp.ones_like(z[0]), 0.0 * z[0], 0.0 * z[0])), xp)
        x = cross(y, z)
        axis, cosine = cross(up, z), dot(up, z)
        sine = xp.sqrt(dot(axis, axis) + 1e-12)
        angle = xp.atan2(sine, cosine)
        axis = (axis[0] / sine, axis[1] / sine, axis[2] / sine)
        nose = _rotated(ahead, axis, sine, cosine)  # once the tilt has been turned back
        heading = xp.atan2(dot(cross(x, nose), z), dot(x, nose))
        error = (
            -angle * dot(axis, ahead),
            -angle * dot(axis, left),
            xp.clip(heading, -self.gains.turn, self.gains.turn),
        )
        return xp.clip(dot(force, up), 0.0, None), error

    def _mix(self, thrust: Any, torque: Vector, xp: Any) -> Any:
        """Rotor thrusts (n, R) in N: roll and pitch first, then thrust, then yaw with what is left."""
        m = self.mixer
        to = [xp.asarray(column, dtype=thrust.dtype) for column in (m.thrust, m.roll, m.pitch, m.yaw)]
        tilt = torque[0][:, None] * to[1] + torque[1][:, None] * to[2]
        span = xp.max(tilt, axis=-1, keepdims=True) - xp.min(tilt, axis=-1, keepdims=True)
        tilt = tilt * xp.clip(m.top / (span + 1e-9), None, 1.0)
        low, high = xp.min(tilt, axis=-1, keepdims=True), xp.max(tilt, axis=-1, keepdims=True)
        base = xp.clip(thrust[:, None] * to[0], -low, m.top - high) + tilt
        yaw = torque[2][:, None] * to[3]
        room = xp.where(yaw > 0, m.top - base, base)
        share = xp.min(room / (xp.abs(yaw) + 1e-9), axis=-1, keepdims=True)
        return base + yaw * xp.clip(share, 0.0, 1.0)

    def _drive(self, motors: Any, wanted: Any, xp: Any) -> tuple[Any, Any]:
        """Commands that bring motors to the wanted speeds in the time ``gains.motor``, and the speeds after them."""
        rotor = self.robot.rotors[0]
        rise, fall = (xp.full_like(motors, lag) for lag in (rotor.rise, rotor.fall))
        lag = xp.where(wanted > motors, rise, fall)
        lead = xp.clip(lag / self.gains.motor, 1.0, None)
        commands = _together(motors + lead * (wanted - motors), rotor.speed_min, rotor.speed_max, xp)
        lag = xp.where(commands > motors, rise, fall)
        return commands, commands + (motors - commands) * xp.exp(-self.period / lag)


def _together(commands: Any, low: float, high: float, xp: Any) -> Any:
    """Commands (n, R) in their limits. All are lowered where one is too high: their differences turn the vehicle."""
    over = xp.max(commands, axis=-1, keepdims=True) - high
    return xp.clip(commands - xp.clip(over, 0.0, None), low, high)


def _rotated(v: Vector, axis: Vector, sine: Any, cosine: Any) -> Vector:
    """The vector turned about a unit axis (Rodrigues)."""
    side, along = cross(axis, v), dot(axis, v) * (1.0 - cosine)
    return tuple(v[i] * cosine + side[i] * sine + axis[i] * along for i in range(3))


def _columns(x: Any) -> Any:
    return tuple(x[:, i] for i in range(x.shape[1]))


def _unit(v: Vector, xp: Any) -> Vector:
    scale = 1.0 / xp.sqrt(dot(v, v) + 1e-9)
    return v[0] * scale, v[1] * scale, v[2] * scale


def _speed(thrust: Any, curve: tuple[float, float, float], xp: Any) -> Any:
    """Rotor speed (rad/s) for a thrust (N) on the curve T = c0 + c1 Ω + c2 Ω²."""
    c0, c1, c2 = curve
    if c2 == 0:
        return xp.clip((thrust - c0) / c1, 0.0, None)
    return (xp.sqrt(xp.clip(c1 * c1 + 4 * c2 * (thrust - c0), 0.0, None)) - c1) / (2 * c2)
