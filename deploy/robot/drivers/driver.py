"""What a driver is: one robot, from its own protocol to the contract's signals and commands, in SI units.

    driver.connect()             find the robot, and refuse one that is not what the contract needs
    driver.enable()              the actuators hold where they are
    driver.read(now)             signals with the times at which they were measured
    driver.write(commands, mode)
    driver.disable()

``ForLoop`` gives it to ``robo_rl.deploy.robot.loop.Loop``, and to the ROS node.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np

from robo_rl.contract import Contract
from robo_rl.controllers.gate.codes import Source

Samples = Mapping[str, tuple[np.ndarray, int]]
"""By name of the signal: its newest value, in the contract's order and unit, and when it was measured (µs)."""


class DriverError(ValueError):
    """A robot can't be used, or is not what the contract needs. The message says what to do."""


class Mode(Enum):
    """What a command is meant to do, for robots whose low level can do more than follow."""

    POLICY = "policy"
    HOLD = "hold"
    DAMP = "damp"
    SAFE = "safe"


MODES = {
    Source.POLICY: Mode.POLICY, Source.FALLBACK: Mode.POLICY, Source.START: Mode.POLICY, Source.HOLD: Mode.HOLD,
    Source.STOP: Mode.HOLD, Source.DAMP: Mode.DAMP, Source.SAFE: Mode.SAFE,
}  # fmt: skip
"""By what the gate's command is made of. A stop is DAMP where the contract stops all commands so."""


class Silence(Enum):
    """What a robot does by itself when nothing is sent to it any more."""

    STOPS = "stops"
    """Its actuators become passive, or it lands."""
    HOLDS = "goes to its last command and holds it"
    STAYS = "stops where it is and holds"
    GOES_ON = "goes on as it was told last"


@dataclass(frozen=True)
class Identity:
    """Which robot it is, as it tells itself; part of the log."""

    robot: str
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Health:
    """How a robot is."""

    problems: tuple[str, ...]
    """Sentences; none where all is well."""
    figures: Mapping[str, float]
    """Counters and measurements by name and unit: "temperature/elbow degC"."""


@dataclass(frozen=True)
class Settings:
    """What a driver is told by the command line or a launch file."""

    port: str = ""
    """Device, address or interface; "": the driver's usual one."""
    file: str = ""
    """Robot file (*.toml): what differs between two robots of a type; "": as the type comes."""
    calibration: str = ""


class Driver(Protocol):
    """See the module's text. Once connected, nothing but ``enable`` and ``disable`` may take long."""

    silence: Silence
    guard: str
    """What a process of the driver's own does then, a sentence; "" where there is none."""
    measured: tuple[str, ...]
    """Names of the contract's signals that it gives."""

    def connect(self) -> Identity:
        """Open the port, find the robot, and check all that can be checked without moving it. DriverError if not."""

    def read(self, now: int) -> Samples:
        """The newest signals; ``now`` (µs) is the loop's clock. What has never come is left out."""

    def enable(self) -> None:
        """Let the actuators hold where they are. DriverError, with nothing enabled, where that would not be safe."""

    def write(self, commands: Mapping[str, np.ndarray], mode: Mode) -> None:
        """Send commands (k,) by name."""

    def disable(self) -> None:
        """Make the actuators passive. An arm falls."""

    def health(self) -> Health:
        """What it knows; asks the robot nothing."""

    def close(self) -> None:
        """Leave the robot as it is, and close the port."""


class ForLoop:
    """A driver as ``robo_rl.deploy.robot.loop.Loop`` takes one: enabled when the gate first sends a command, with
    the operator's
    set-points beside its signals.
    """

    def __init__(
        self, driver: Driver, contract: Contract, setpoints: Mapping[str, np.ndarray], others: Collection[str] = ()
    ) -> None:
        """``setpoints``: values (*dimensions) of operator signals, which may be changed in place; ``others``: signals
        that come in another way. DriverError where a signal of the contract has no source.
        """
        self.driver, self.setpoints = driver, dict(setpoints)
        self.enabled = False
        damped = all(command.stop == "damp" for command in contract.commands)
        self.modes = {**MODES, **({Source.STOP: Mode.DAMP} if damped else {}), **getattr(driver, "modes", {})}
        given = {*driver.measured, *setpoints, *others, *(s.age_of for s in contract.signals)}  # the last may be absent
        without = [s.name for s in contract.signals if s.source != "runtime" and s.name not in given]
        if without:
            raise DriverError(
                f"nothing gives the signals {without}: the driver measures {list(driver.measured)}; give set-points "
                "with --setpoint 'NAME=1.0 0.0 …'"
            )

    def read(self, now: int) -> Samples:
        """The driver's signals, and the set-points as of now."""
        return {**self.driver.read(now), **{name: (value, now) for name, value in self.setpoints.items()}}

    def write(self, commands: Mapping[str, np.ndarray] | None, source: Source) -> None:
        """Send, enable before the first time; None: as the robot is from power-up."""
        if commands is None:
            return
        if not self.enabled:
            self.driver.enable()
            self.enabled = True
        self.driver.write(commands, self.modes.get(source, Mode.HOLD))
