"""A multirotor's facts in a contract, besides its actuators' names and limits."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from robo_rl.contract import Actuator, ContractError, Robot
from robo_rl.contract.checks import finite_numbers, require, require_label, require_unique, set_numbers

KIND = "multirotor"
OWN = ("name", "position", "spin", "thrust", "torque_ratio", "rise", "fall")
"""Of a rotor, beside the limits of its actuator."""


@dataclass(frozen=True)
class Rotor:
    """One motor with its propeller, as a controller, a mixer or another simulator needs it.

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
        require_label(self.name, "rotor.name")
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

    def __post_init__(self) -> None:
        set_numbers(self, ("mass",), "robot: ")
        require(self.mass > 0, "robot: mass", self.mass, "a positive number, in kg")
        object.__setattr__(self, "inertia", finite_numbers(self.inertia, 3, "robot: inertia"))
        require(min(self.inertia) > 0, "robot: inertia", self.inertia, "positive numbers, in kg m^2")
        object.__setattr__(self, "rotors", tuple(self.rotors))
        require(len(self.rotors) >= 3, "robot: rotors", len(self.rotors), "at least 3 rotors")
        require_unique([rotor.name for rotor in self.rotors], "robot: rotors")

    @classmethod
    def of(cls, robot: Robot) -> Multirotor:
        """From a contract's robot. ContractError if it is of another kind, or a fact is missing or wrong."""
        require(robot.kind == KIND, "robot: kind", robot.kind, repr(KIND))
        facts = robot.facts
        require(set(facts) == {"mass", "inertia", "rotors"}, "robot: facts", sorted(facts), "mass, inertia and rotors")
        told = facts["rotors"]
        good = isinstance(told, list) and len(told) == len(robot.actuators)
        good = good and all(isinstance(rotor, dict) and set(rotor) == set(OWN) for rotor in told)
        require(good, "robot: facts: rotors", told, f"one per actuator, each with {OWN}")
        for rotor, actuator in zip(told, robot.actuators, strict=True):
            require(rotor["name"] == actuator.name, "robot: facts: rotors", rotor["name"], repr(actuator.name))
        pairs = zip(told, robot.actuators, strict=True)
        rotors = tuple(Rotor(**_tuples(rotor), speed_min=a.lower, speed_max=a.upper) for rotor, a in pairs)
        return cls(facts["mass"], facts["inertia"], rotors)

    def robot(self, name: str) -> Robot:
        """As in a contract."""
        actuators = tuple(
            Actuator(rotor.name, "velocity", "rad/s", rotor.speed_min, rotor.speed_max, safe=rotor.speed_min)
            for rotor in self.rotors
        )
        rotors = [{key: value for key, value in asdict(rotor).items() if key in OWN} for rotor in self.rotors]
        return Robot(name, KIND, actuators, {"mass": self.mass, "inertia": self.inertia, "rotors": rotors})


def _tuples(rotor: dict[str, Any]) -> dict[str, Any]:
    for name in ("position", "thrust"):
        if not isinstance(rotor[name], list):
            raise ContractError(f"rotor '{rotor['name']}': {name} is {rotor[name]!r}; expected three numbers")
    return {key: tuple(value) if isinstance(value, list) else value for key, value in rotor.items()}
