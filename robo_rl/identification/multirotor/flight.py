"""What system identification needs of recorded flights: parts without a gap, on one grid of times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from robo_rl.deploy.robot.logs.logfile import spans
from robo_rl.identification.recorded import JITTER, IdentificationError, require_measured

if TYPE_CHECKING:
    from robo_rl.deploy.robot.logs.reader import Log

SIGNALS = {"position": 3, "orientation": 4, "linear_velocity": 3, "angular_velocity": 3}
COMMAND = "rotor_speed"
FLOORS = {"position": 0.005, "orientation": 0.005, "linear_velocity": 0.03, "angular_velocity": 0.03}
"""Noise of sensors whose contract tells none, in the signals' units: estimates."""
SHORTEST = 1.5
"""s; shorter parts are left out."""
SPEED = 1.5
"""Parts of the rotors' top speed above which a command is garbage."""


@dataclass(frozen=True)
class Flight:
    """A part of a session in the air, one row per control step. Units and frames as signals."""

    position: np.ndarray
    """(T, 3)."""
    orientation: np.ndarray
    """(T, 4) quaternion x, y, z, w, of length 1."""
    linear_velocity: np.ndarray
    """(T, 3)."""
    angular_velocity: np.ndarray
    """(T, 3)."""
    command: np.ndarray
    """(T, R) rad/s, sent ``age`` after the time of the measurement of the same row."""
    age: float
    """s, mean age of the measurements when the command was sent."""
    session: int = 0
    """Which of the logs it is of."""

    def __len__(self) -> int:
        return len(self.command)


@dataclass(frozen=True)
class Flights:
    """All parts of one or several sessions of a robot."""

    name: str
    """For messages: the files."""
    period: float
    """s."""
    parts: tuple[Flight, ...]
    noise: tuple[float, float, float, float]
    """Standard deviations of position (m), attitude (rad), velocity (m/s) and body rates (rad/s)."""

    @property
    def steps(self) -> int:
        """Control steps."""
        return sum(len(part) for part in self.parts)


def flights(logs: Sequence[Log]) -> Flights:
    """The parts of sessions in which the gate was active and no step is missing.

    IdentificationError if there is none, or if the logs are not of flights.
    """
    contract, name = logs[0].contract, ", ".join(str(log.path) for log in logs)
    sizes = {channel.name: channel.size for channel in contract.signals}
    missing = [name for name, size in SIGNALS.items() if sizes.get(name) != size]
    if missing or [command.name for command in contract.commands] != [COMMAND]:
        raise IdentificationError(
            f"{name}: expected flights with the signals {list(SIGNALS)} and the command {COMMAND}; it has "
            f"{list(sizes)} and {[command.name for command in contract.commands]}"
        )
    parts = tuple(part for k, log in enumerate(logs) for part in _parts(log, k))
    if not parts:
        raise IdentificationError(
            f"{name}: no {SHORTEST:g} s of flight without a gap whose commands were sent; record more, in mode 'blend' "
            "or 'live'"
        )
    told = {s.name: s.spread(s.noise)[0] if s.noise is not None else 0.0 for s in contract.signals}
    noise = {name: told[name] or floor for name, floor in FLOORS.items()}
    noise["orientation"] *= 2  # an angle is twice its quaternion's part
    return Flights(name, contract.control_period, parts, tuple(noise.values()))  # type: ignore[arg-type]


def _parts(log: Log, session: int) -> list[Flight]:
    period = log.contract.control_period
    times = np.array([step.time for step in log.steps]) * 1e-6
    active = np.array([step.commanded for step in log.steps], bool)
    found, begin = [], 0
    for end in range(1, len(times) + 1):
        over = end == len(times) or not active[end] or abs((times[end] - times[end - 1]) / period - 1) > JITTER
        if not over and active[begin]:
            continue
        if end - begin > SHORTEST / period and active[begin]:
            found.append(_part(log, begin, end, session))
        begin = end
    return found


def _part(log: Log, begin: int, end: int, session: int) -> Flight:
    """The measurements of steps, moved to times that are one mean age before each step."""
    contract, steps = log.contract, log.steps[begin:end]
    flat = np.stack([step.signals for step in steps]).astype(float)
    command = np.stack([step.sent for step in steps]).astype(float)
    top = np.array(contract.commands[0].upper)
    stamps = require_measured(log, steps, SIGNALS)
    if not (np.abs(command) <= SPEED * top).all():
        raise IdentificationError(f"{log.path}: rotors were told to turn faster than {SPEED:g} times {top} rad/s")
    times = np.array([step.time for step in steps]) * 1e-6
    age = float(np.mean(times[:, None] - stamps))
    moved, where = {}, spans(contract)
    for column, name in enumerate(SIGNALS):
        value = flat[:, where[name]]
        if name == "orientation":
            value = _continuous(value)
        stamp, first = np.unique(stamps[:, column], return_index=True)  # a held measurement is one
        moved[name] = np.stack([np.interp(times - age, stamp, axis) for axis in value[first].T], 1)
    moved["orientation"] /= np.linalg.norm(moved["orientation"], axis=1, keepdims=True)
    return Flight(**moved, command=command, age=age, session=session)


def _continuous(quaternions: np.ndarray) -> np.ndarray:
    """(T, 4) of length 1, each with the sign that is nearer to the one before."""
    length = np.linalg.norm(quaternions, axis=1, keepdims=True)
    turned = (quaternions[1:] * quaternions[:-1]).sum(1) < 0
    return quaternions / length * np.where(np.cumsum(np.concatenate([[False], turned])) % 2, -1.0, 1.0)[:, None]
