"""An arm of bus servos as a driver: positions and speeds in, positions out, in every cycle, whoever made the servos.

In a cycle the servos are asked so much that one which lost its power, latched an error or follows somebody else's goals
is seen in that cycle, or in the next. While anything of that is so, no new signals come from here, and the gate stops
the robot for signals that are too old; ``health`` says why.
"""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from robo_rl.contract import Contract
from robo_rl.deploy.robot.drivers.bus_servos.bus import Answer
from robo_rl.deploy.robot.drivers.bus_servos.joints import Joint
from robo_rl.deploy.robot.drivers.driver import DriverError, Health, Identity, Mode, Samples, Silence

LISTENING = 0.2
"""s for which the bus must be quiet before we speak."""
RETRIES = 2
PART = 0.75
"""Of a control period, after which no question of it is asked again: a bus full of noise does not hold the step up."""
OTHERS_GOALS, WITHIN = 3, 1.0
"""Cycles in which a servo has a goal that it was never given, and s within which so many count as somebody else's. One
who sends 5 times a second is seen in most cycles that follow its packets, which are far from one another."""
FIRST_TORQUE, RAMP = 0.3, 1.0
"""Part of the torque limit at first, and s until all of it."""
MOVED = 20
"""Steps (1.8°) that a joint may move while it is being enabled."""


class ServoArm(ABC):
    """See the module's text, and ``robo_rl.deploy.robot.drivers.driver.Driver``. A subclass is for the servos of one
    maker."""

    silence = Silence.HOLDS
    guard = ""
    by_hand = True
    """Its joints can be moved by hand before it is enabled, and its servos may have each other's ID."""
    cycle: tuple[int, int]
    """Address and size of what is read in every cycle."""

    def __init__(
        self, bus: Any, contract: Contract, joints: Sequence[Joint], torque_limit: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.bus, self._now, self._limit = bus, now, torque_limit
        self.joints = tuple(joints)
        self._by_name = {joint.name: joint for joint in self.joints}
        self._ids = [joint.id for joint in self.joints]
        self._positions = _all_of(contract, self._by_name, "rad")
        self._speeds = _all_of(contract, self._by_name, "rad/s")
        self.measured = (*self._positions, *self._speeds)
        self._commands = [(c.name, [self._by_name[e] for e in c.elements]) for c in contract.commands]
        self._samples: dict[str, tuple[np.ndarray, int]] = {}
        self._dither = np.random.default_rng(0)
        self._goals: dict[int, int] = {}
        self._sent: deque[tuple[float, dict[int, int]]] = deque()
        """When each goal of the last second was sent."""
        self._unheard = dict.fromkeys(self._ids, 0)
        """Cycles in a row in which a servo does not have its newest goal."""
        self._yielded = False
        """Whether somebody else has the arm."""
        self._foreign: dict[int, list[float]] = {id: [] for id in self._ids}
        """When a servo had somebody else's goal."""
        self._enabled_at: float | None = None
        self._problems: tuple[str, ...] = ()
        self._figures: dict[str, float] = {}
        self._cycles = self._lost = 0
        self._period, self._until = contract.control_period, float("inf")
        """s; and of the clock, until when questions of this cycle are asked."""

    # --- of the maker ---------------------------------------------------------------------------------------------

    @abstractmethod
    def identify(self) -> Identity:
        """Find all servos, compare their model and calibration, and set what they must be set to."""

    def before_torque(self) -> None:  # noqa: B027 (most servos need nothing)
        """Just before the first goals."""

    @abstractmethod
    def torque(self, on: bool) -> None:
        """Of all servos at once."""

    @abstractmethod
    def send(self, goals: Mapping[int, int], part: float) -> None:
        """Goals (steps) and a part of the greatest torque, of all servos at once."""

    @abstractmethod
    def wrong(self, joint: Joint, answer: Answer) -> list[str]:
        """What a servo's answer tells, in sentences; figures of its health are noted."""

    @abstractmethod
    def steps_of(self, joint: Joint, data: bytes) -> int:
        """The position in what was read, steps."""

    @abstractmethod
    def measure(self, joint: Joint, data: bytes) -> tuple[float, float]:
        """The position and speed in what was read, rad and rad/s of the model."""

    # --- before it moves ------------------------------------------------------------------------------------------

    def connect(self) -> Identity:
        """Nobody else may speak; then all servos are found, compared and set."""
        heard, until = 0, self._now() + LISTENING
        while self._now() < until:
            data = self.bus.port.read(LISTENING)
            heard += len(data)
            if not data:
                break
        if heard:
            raise DriverError("somebody else speaks on this bus; end the other program first")
        return self.identify()

    @property
    def holding(self) -> bool:
        """Whether it was enabled, follows its goals, and nothing has gone wrong since."""
        return self._enabled_at is not None and not self._problems and not self._yielded

    def enable(self) -> None:
        """Torque on, at the pose that the arm is in, with little torque at first. A held arm stays as it is."""
        if self.holding:
            return
        present = self.present()
        goals = {id: min(max(here, self.of(id).lowest), self.of(id).highest) for id, here in present.items()}
        beyond = [self.of(id).name for id, here in present.items() if abs(here - goals[id]) > MOVED]
        if beyond:
            raise DriverError(f"{beyond} are outside of their calibrated range; move them inside, then arm")
        try:
            self._come_on(goals, present)
        except (DriverError, OSError) as error:
            with contextlib.suppress(DriverError, OSError):
                self.disable()
            raise DriverError(gone(error) if isinstance(error, OSError) else str(error)) from None

    def _come_on(self, goals: Mapping[int, int], present: Mapping[int, int]) -> None:
        self._enabled_at = self._now()
        self._sent.clear()
        self._yielded = False
        self._foreign = {id: [] for id in self._ids}
        self.before_torque()
        self._send(goals)
        self.torque(True)
        moved = [self.of(id).name for id, here in self.present().items() if abs(here - present[id]) > MOVED]
        if moved:
            raise DriverError(f"{moved} moved by more than 1.8° while torque came on; check calibration and load")

    def disable(self) -> None:
        """Torque off: the arm falls."""
        self._enabled_at = None
        self.torque(False)

    # --- every cycle ------------------------------------------------------------------------------------------------

    def read(self, now: int) -> Samples:
        """Positions and speeds of all joints, if all is well."""
        self._cycles += 1
        self._until = self._now() + PART * self._period
        try:
            found = self.gather(*self.cycle)
            missing = [id for id in self._ids if id not in found]
            problems = [] if missing else self.more_wrong(found)
        except OSError as error:
            self._problems = (gone(error),)
            return self._samples
        finally:
            self._until = float("inf")
        if missing:
            self._lost += 1
            self._problems = (f"no answer from {', '.join(self.of(id).name for id in missing)}",)
            return self._samples
        for joint in self.joints:
            problems += self.wrong(joint, found[joint.id])
        self._problems = tuple(problems)
        if self._problems:
            return self._samples
        measured = {joint.name: self.measure(joint, found[joint.id].parameters) for joint in self.joints}
        for signals, index in ((self._positions, 0), (self._speeds, 1)):
            for name, elements in signals.items():
                self._samples[name] = (np.array([measured[e][index] for e in elements], np.float32), now)
        return dict(self._samples)

    def write(self, commands: Mapping[str, np.ndarray], mode: Mode) -> None:
        """Goals of all servos, clipped to what is calibrated. Every mode is a position here.

        Nothing is sent to an arm that somebody else commands, until it is enabled again: two goals in turn are worse
        than either, and it may be far from where it was when he leaves it.
        """
        if self._yielded:
            return
        goals = {
            joint.id: joint.steps(float(value))
            for name, joints in self._commands
            for joint, value in zip(joints, commands[name], strict=True)
        }
        try:
            self._send(goals)
        except OSError as error:  # the next read tells the gate
            self._problems = (gone(error),)

    def health(self) -> Health:
        """What is wrong, and counters."""
        counters = {
            "cycles": self._cycles, "cycles without all answers": self._lost, "damaged packets": self.bus.damaged,
            "foreign packets": self.bus.foreign,
        }  # fmt: skip
        return Health(self._problems, {**counters, **self._figures})

    def close(self) -> None:
        """The servos hold where they are."""
        self.bus.port.close()

    # ----------------------------------------------------------------------------------------------------------------

    def of(self, id: int) -> Joint:
        """The joint of a servo."""
        return self.joints[self._ids.index(id)]

    def gather(self, address: int, size: int) -> dict[int, Answer]:
        """Registers of all servos; who has not answered is asked again, twice at most."""
        found: dict[int, Answer] = {}
        for _ in range(1 + RETRIES):
            missing = [id for id in self._ids if id not in found]
            if not missing or self._now() > self._until:
                break
            found |= self.bus.sync_read(missing, address, size)
        return found

    def more_wrong(self, found: Mapping[int, Answer]) -> list[str]:
        """What has to be asked beside, in sentences; ``found``: this cycle's answers of all servos."""
        return []

    def present(self) -> dict[int, int]:
        """Steps, of all servos. DriverError if one does not answer."""
        found = self.gather(*self.cycle)
        if missing := [self.of(id).name for id in self._ids if id not in found]:
            raise DriverError(f"no answer from {missing}")
        return {id: self.steps_of(self.of(id), answer.parameters) for id, answer in found.items()}

    def foreign_goal(self, joint: Joint, goal: int) -> list[str]:
        """A sentence where a servo has had a goal (steps) that it was not given, or never its newest."""
        id, now = joint.id, self._now()
        self._unheard[id] = 0 if goal == self._goals.get(id) else self._unheard[id] + 1
        ours = any(goal == goals.get(id) for _, goals in self._sent)
        self._foreign[id] = [at for at in self._foreign[id] if now - at < WITHIN] + ([] if ours else [now])
        if len(self._foreign[id]) >= OTHERS_GOALS:
            self._yielded = True
            return [f"servo {id} ({joint.name}) has a goal that we did not send: somebody else commands"]
        if self._unheard[id] >= OTHERS_GOALS:
            return [f"servo {id} ({joint.name}) does not get the goals that it is sent"]
        return []

    def dithered(self, steps: int) -> float:
        """A measurement, anywhere within its step: the encoder tells no more, and one that stands still would else look
        like one that froze."""
        return steps + float(self._dither.uniform(-0.5, 0.5))

    def _send(self, goals: Mapping[int, int]) -> None:
        since = self._now() - self._enabled_at if self._enabled_at is not None else 0.0
        self._goals, now = dict(goals), self._now()
        self._sent.append((now, self._goals))
        while now - self._sent[0][0] > WITHIN:
            self._sent.popleft()
        self.send(goals, self._limit * min(1.0, FIRST_TORQUE + (1.0 - FIRST_TORQUE) * since / RAMP))


def gone(error: OSError) -> str:
    """Why a port can't be used any more."""
    return f"the port is gone ({error.strerror or error}); plug it in again"


def named(errors: int, known: Mapping[int, str]) -> str:
    """Error bits in words."""
    names = [name for bit, name in known.items() if errors & bit]
    rest = errors & ~sum(known)
    return " and ".join([*names, *([f"error {rest}"] if rest else [])])


def _all_of(contract: Contract, joints: Mapping[str, Joint], unit: str) -> dict[str, tuple[str, ...]]:
    """The sensor signals, all of whose elements are joints, in this unit; and their elements."""
    return {
        s.name: tuple(s.elements)
        for s in contract.signals
        if s.source == "sensor" and s.unit == unit and s.elements and set(s.elements) <= set(joints)
    }
