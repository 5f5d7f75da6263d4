"""Facts of robots: what a runtime, a mixer, an actuator or another simulator needs to know of them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

from robo_rl.contract.checks import finite_numbers, require, require_name, require_unique, set_numbers


@dataclass(frozen=True)
class Rotor:
    """One motor with its propeller, as a runtime, a mixer or another simulator needs it.

    ``position`` (m) in the body frame (x forward, y left, z up); thrust acts along body z.
    ``spin``: "ccw" or "cw" seen from above; the drag torque on the body is opposite to it.
    ``thrust``: coefficients c0, c1, c2 of T = c0 + c1 Ω + c2 Ω², T in N, Ω in rad/s.
    ``torque_ratio`` (m): drag torque over thrust. ``rise``, ``fall`` (s): time constants of the first-order
    lag from commanded to real speed. ``speed_min``, ``speed_max`` (rad/s).
    """

    name: str
    position: tuple[float, float, float]
    spin: Literal["ccw", "cw"]
    thrust: tuple[float, float, float]
    torque_ratio: float
    rise: float
    fall: float
    speed_min: float
    speed_max: float

    def __post_init__(self) -> None:
        where = f"rotor '{self.name}'"
        require_name(self.name, "rotor.name")
        require(self.spin in ("ccw", "cw"), f"{where}: spin", self.spin, "'ccw' or 'cw'")
        object.__setattr__(self, "position", finite_numbers(self.position, 3, f"{where}: position"))
        object.__setattr__(self, "thrust", finite_numbers(self.thrust, 3, f"{where}: thrust"))
        set_numbers(self, ("rise", "fall", "torque_ratio", "speed_min", "speed_max"), f"{where}: ")
        for name in ("rise", "fall", "torque_ratio"):
            value = getattr(self, name)
            require(value >= 0, f"{where}: {name}", value, "a number of 0 or more")
        limits = (self.speed_min, self.speed_max)
        require(0 <= limits[0] < limits[1], f"{where}: speed_min, speed_max", limits, "0 <= speed_min < speed_max")


@dataclass(frozen=True)
class Multirotor:
    """Facts of a multirotor: mass (kg), principal moments of inertia (kg m²), rotors in command order."""

    mass: float
    inertia: tuple[float, float, float]
    rotors: tuple[Rotor, ...]
    kind: Literal["multirotor"] = "multirotor"

    def __post_init__(self) -> None:
        set_numbers(self, ("mass",), "robot: ")
        require(self.mass > 0, "robot: mass", self.mass, "a positive number, in kg")
        object.__setattr__(self, "inertia", finite_numbers(self.inertia, 3, "robot: inertia"))
        require(min(self.inertia) > 0, "robot: inertia", self.inertia, "positive numbers, in kg m^2")
        object.__setattr__(self, "rotors", tuple(self.rotors))
        require(len(self.rotors) >= 3, "robot: rotors", len(self.rotors), "at least 3 rotors")
        require_unique([rotor.name for rotor in self.rotors], "robot: rotors")


@dataclass(frozen=True)
class Joint:
    """One driven joint, as a runtime, an actuator or another simulator needs it.

    ``stand`` (rad): where it is when the robot stands. ``lower``, ``upper`` (rad): its stops. ``effort`` (N m): the
    greatest torque, at standstill; it falls to zero at ``velocity`` (rad/s). ``stiffness`` (N m/rad) and ``damping``
    (N m s/rad): gains of the position control that runs at the motor.
    """

    name: str
    stand: float
    lower: float
    upper: float
    effort: float
    velocity: float
    stiffness: float
    damping: float

    def __post_init__(self) -> None:
        where = f"joint '{self.name}'"
        require_name(self.name, "joint.name")
        set_numbers(self, [f.name for f in dataclasses.fields(self) if f.name != "name"], f"{where}: ")
        stops = (self.lower, self.upper)
        require(stops[0] <= self.stand <= stops[1], f"{where}: stand", self.stand, f"a number from {stops}")
        require(stops[0] < stops[1], f"{where}: lower, upper", stops, "lower < upper, in rad")
        for name in ("effort", "velocity"):
            require(getattr(self, name) > 0, f"{where}: {name}", getattr(self, name), "a positive number")
        for name in ("stiffness", "damping"):
            require(getattr(self, name) >= 0, f"{where}: {name}", getattr(self, name), "a number of 0 or more")


@dataclass(frozen=True)
class Legged:
    """Facts of a robot on legs: its driven joints in command order, and the names of its feet."""

    joints: tuple[Joint, ...]
    feet: tuple[str, ...]
    kind: Literal["legged"] = "legged"

    def __post_init__(self) -> None:
        for name in ("joints", "feet"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
            require(len(getattr(self, name)) > 0, f"robot: {name}", (), "at least one")
        require_unique([joint.name for joint in self.joints], "robot: joints")
        for foot in self.feet:
            require_name(foot, "robot: feet")
        require_unique(self.feet, "robot: feet")


Robot = Multirotor | Legged
"""Facts of a robot; ``kind`` tells which."""
