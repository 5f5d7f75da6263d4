"""Which of a contract's signals and commands are which of a Unitree robot's, and what a contract may ask of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robo_rl.contract import Contract
from robo_rl.contract.robots import hold_gains
from robo_rl.deploy.robot.drivers.driver import DriverError

SLACK = 1e-3
"""rad and N m by which figures may differ: roundings."""
FASTEST = 500.0
"""Hz: the rate of the robot's states."""
STIFFEST, MOST_DAMPED = 100.0, 10.0
"""N m/rad and N m s/rad: choice; the maker's examples have 60 and 5 (unitree_sdk2, go2_low_level.cpp)."""


@dataclass(frozen=True)
class JointLimits:
    """What one motor can do."""

    name: str
    lower: float
    upper: float
    """rad"""
    effort: float
    """N m"""


@dataclass(frozen=True)
class Held:
    """A motor that no policy commands: it is held at ``position`` (rad)."""

    position: float
    stiffness: float
    damping: float
    """N m/rad and N m s/rad."""


@dataclass(frozen=True)
class Mapping:
    """Of one contract on one robot. Indices are the robot's."""

    quaternions: tuple[str, ...]
    rates: tuple[str, ...]
    """Signals that are the base's orientation and angular velocity."""
    positions: dict[str, np.ndarray]
    speeds: dict[str, np.ndarray]
    torques: dict[str, np.ndarray]
    """Signals of joints, and where their elements are."""
    commands: dict[str, np.ndarray]
    kp: np.ndarray
    kd: np.ndarray
    """(n,) the contract's gains, and those of held motors."""
    hold_kp: np.ndarray
    hold_kd: np.ndarray
    """(n,) with which the robot holds its pose: the same, where the contract has none of its own for that."""

    @property
    def measured(self) -> tuple[str, ...]:
        """Names of all signals that the robot measures."""
        return (*self.quaternions, *self.rates, *self.positions, *self.speeds, *self.torques)


def mapping(
    contract: Contract, joints: Sequence[JointLimits], held: dict[str, Held] | None = None, stiffest: float = STIFFEST
) -> Mapping:
    """DriverError where the contract is another robot's, or asks for more than this one can do.

    ``held`` are motors that the contract does not know, by the names of their joints; ``stiffest`` in N m/rad.
    """
    held = held or {}
    index = {joint.name: i for i, joint in enumerate(joints)}
    sensors = [s for s in contract.signals if s.source == "sensor"]

    def joints_in(unit: str) -> dict[str, np.ndarray]:
        found = [s for s in sensors if s.unit == unit and s.elements and set(s.elements) <= set(index)]
        return {s.name: np.array([index[e] for e in s.elements]) for s in found}

    gains = _checked(contract, [joint for joint in joints if joint.name not in held], stiffest)
    facts, order = hold_gains(contract.robot), {a.name: i for i, a in enumerate(contract.robot.actuators)}
    hold = dict(gains)
    if facts is not None:
        hold = {name: (facts.stiffness[order[name]], facts.damping[order[name]]) for name in gains}
    rest = {name: (one.stiffness, one.damping) for name, one in held.items()}
    kp, kd = _arrays(joints, gains | rest)
    return Mapping(
        tuple(s.name for s in sensors if s.kind == "quaternion" and s.frame == "base to world"),
        tuple(s.name for s in sensors if s.unit == "rad/s" and s.frame == "base" and s.elements == ("x", "y", "z")),
        joints_in("rad"),
        joints_in("rad/s"),
        joints_in("N*m"),
        {c.name: np.array([index[e] for e in c.elements]) for c in contract.commands},
        kp,
        kd,
        *_arrays(joints, hold | rest),
    )


def _arrays(joints: Sequence[JointLimits], gains: dict[str, tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    """(n,) stiffness and damping, in the robot's order."""
    stiffness, damping = np.array([gains[joint.name] for joint in joints]).T
    return stiffness, damping


def _checked(contract: Contract, joints: Sequence[JointLimits], stiffest: float) -> dict[str, tuple[float, float]]:
    """Stiffness and damping of the contract, which commands all these joints within their limits."""
    commanded = sorted(e for c in contract.commands for e in c.elements)
    if commanded != sorted(joint.name for joint in joints):
        raise DriverError(
            f"the policy for '{contract.robot.name}' commands {', '.join(commanded)[:200]}; this robot has the joints "
            f"{', '.join(joint.name for joint in joints)}"
        )
    if contract.control_period < 1 / FASTEST - 1e-9:
        raise DriverError(f"the policy runs at {1 / contract.control_period:g} Hz; the robot tells {FASTEST:g} times/s")
    limits = {joint.name: joint for joint in joints}
    gains = {}
    for command in contract.commands:
        law = command.law
        if command.unit != "rad" or law is None or law.kind != "position":
            raise DriverError(f"'{command.name}' is in {command.unit}; the motors take positions in rad, with gains")
        for i, name in enumerate(command.elements):
            joint = limits[name]
            if command.lower[i] < joint.lower - SLACK or command.upper[i] > joint.upper + SLACK:
                raise DriverError(
                    f"{name}: the policy commands {command.lower[i]:.3f} to {command.upper[i]:.3f} rad; the joint "
                    f"goes from {joint.lower:.3f} to {joint.upper:.3f} rad"
                )
            if not 0 < law.stiffness[i] <= stiffest or not 0 < law.damping[i] <= MOST_DAMPED:
                raise DriverError(
                    f"{name}: it was trained with {law.stiffness[i]:g} N m/rad and {law.damping[i]:g} N m s/rad; "
                    f"this driver allows up to {stiffest:g} and {MOST_DAMPED:g}"
                )
            gains[name] = (law.stiffness[i], law.damping[i])
    for actuator in contract.robot.actuators:
        joint = limits[actuator.name]
        if actuator.effort is not None and actuator.effort > joint.effort + SLACK:
            raise DriverError(
                f"{actuator.name}: the policy was trained with {actuator.effort:g} N m; the motor has {joint.effort:g}"
            )
    return gains
