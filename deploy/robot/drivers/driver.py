"""What a driver is: one robot, from its own protocol to the contract's signals and commands, in SI units.

    driver.connect()             find the robot, and refuse one that is not what the contract needs
    driver.enable()              the actuators hold where they are; once for each ARM
    driver.read(now)             signals with the times at which they were measured
    driver.write(commands, mode)
    driver.disable()

One thing at a time: no method is called while another one is at work, though not all by the same thread, so a driver
needs no locks. ``enable`` and ``disable`` run in a thread of their own and may take seconds; until they return, the
robot is neither read nor written. ``health`` alone may be asked at any time, and ``close`` while a method hangs.

A driver whose ``guard`` watches over the program may have ``abandon()`` as well: a stop was asked for while a method
hangs, so the guard takes the robot over now. It comes from another thread, and the session is over after it.

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
from robo_rl.deploy.robot.enabling import DriverError as DriverError
from robo_rl.deploy.robot.enabling import Enabling, Power

Samples = Mapping[str, tuple[np.ndarray, int]]
"""By name of the signal: its newest value, in the contract's order and unit, and when it was measured (µs)."""


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
    learning: bool = False
    """Whether a learner takes the steps: episodes of a simulated robot then end when their time is over, too."""


class Driver(Protocol):
    """See the module's text. Nothing but ``connect``, ``enable`` and ``disable`` may take long."""

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
        """Let the actuators hold where they are. DriverError, with nothing enabled, where that would not be safe.

        It may come again while they are on, held by a stop: then they stay as they are, or DriverError tells why the
        session is over, with nothing changed.
        """

    def write(self, commands: Mapping[str, np.ndarray], mode: Mode) -> None:
        """Send commands (k,) by name. It never enables: to actuators that are off, nothing is sent."""

    def disable(self) -> None:
        """Make the actuators passive. An arm falls. Also where they are passive already."""

    def health(self) -> Health:
        """What it knows; asks the robot nothing."""

    def close(self) -> None:
        """Leave the robot as ``silence`` and ``guard`` say, and close the port. More than once does no harm."""


class SignalSource(Protocol):
    """What gives signals that neither the robot measures nor a person sets, such as a server's plans."""

    names: tuple[str, ...]
    """The signals: nobody else gives them."""

    def read(self, now: int, samples: Samples) -> Samples:
        """They as of ``now`` (µs), beside the others; what has never come is left out. It must not wait."""

    def note(self, commands: Mapping[str, np.ndarray] | None) -> None:
        """What was sent after them, (k,) by name; None: nothing."""


class ForLoop:
    """A driver as ``robo_rl.deploy.robot.loop.Loop`` takes one: behind its ``Enabling``, with the operator's
    set-points beside its
    signals.
    """

    def __init__(
        self, driver: Driver, contract: Contract, setpoints: Mapping[str, np.ndarray], others: Collection[str] = (),
        source: SignalSource | None = None,
    ) -> None:  # fmt: skip
        """``setpoints``: values (*dimensions) of operator signals, which may be changed in place; ``others``: signals
        that come in another way, and those of ``source``. DriverError where a signal of the contract has no source.
        """
        self.driver, self.setpoints, self.source = driver, dict(setpoints), source
        others = (*others, *(source.names if source is not None else ()))
        self.enabling = Enabling(driver, contract.safety.signal_timeout + 2 * contract.control_period)
        self._samples: Samples = {}
        damped = all(command.stop == "damp" for command in contract.commands)
        self.modes = {**MODES, **({Source.STOP: Mode.DAMP} if damped else {}), **getattr(driver, "modes", {})}
        given = {*driver.measured, *setpoints, *others, *(s.age_of for s in contract.signals)}  # the last may be absent
        without = [s.name for s in contract.signals if s.source != "runtime" and s.name not in given]
        if without:
            raise DriverError(
                f"nothing gives the signals {without}: the driver measures {list(driver.measured)}; give set-points "
                "with --setpoint 'NAME=1.0 0.0 …'"
            )

    @property
    def enabled(self) -> bool:
        """Whether the actuators are on."""
        return self.enabling.power is Power.ENABLED

    @property
    def goes_on(self) -> bool:
        """Whether the robot does as it was told last when nothing is sent to it any more."""
        return self.driver.silence is Silence.GOES_ON

    def read(self, now: int) -> Samples:
        """The driver's signals, and the set-points as of now. While actuators are being enabled, its last ones."""
        self.enabling.update()
        if self.enabling.power is not Power.ENABLING:
            self._samples = self.driver.read(now)
        samples = {**self._samples, **{name: (value, now) for name, value in self.setpoints.items()}}
        if self.source is None:
            return samples
        own = {name: sample for name, sample in samples.items() if name not in self.source.names}
        return {**own, **self.source.read(now, own)}

    def abandon(self) -> None:
        """While a method of the driver hangs: whatever watches over this program takes the robot over, if anything."""
        getattr(self.driver, "abandon", lambda: None)()

    def write(self, commands: Mapping[str, np.ndarray] | None, source: Source) -> None:
        """Send to actuators that are on."""
        if self.source is not None:
            self.source.note(commands)
        if commands is not None and self.enabled:
            self.driver.write(commands, self.modes.get(source, Mode.HOLD))
