"""The Crazyflie firmware's supervisor: which state leads to which (supervisor.c, supervisor_state_machine.c)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np

PERIOD = 0.04
"""s: RATE_SUPERVISOR"""
LEVEL, SHUTDOWN, EMERGENCY = 0.5, 2.0, 1.0
"""s without set-points until it levels, until it stops; s without the emergency-stop watchdog's feed."""
FLEW, LANDING, UNUSED = 2.0, 3.0, 30.0
"""s after the last thrust for which it flies; s landed, and s ready, until it is disarmed."""
TILTED, TILTED_FOR, OVER, OVER_FOR, FALLING = 0.5, 1.0, -0.2, 0.1, 0.1
"""g along body z below which it is tilted, s of it until it has tumbled; the same upside down; g in free fall."""


class State(Enum):
    """Of the supervisor."""

    NOT_PASSED = "pre-flight checks not passed"
    PASSED = "pre-flight checks passed"
    ARMING = "arming"
    READY = "ready to fly"
    FLYING = "flying"
    LANDED = "landed"
    RESET = "reset"
    LEVELS = "warning, level out"
    FREE_FALL = "exception, free fall"
    LOCKED = "locked"
    CRASHED = "crashed"


CAN_FLY = (State.READY, State.FLYING, State.LEVELS, State.LANDED)
MOTORS = (State.ARMING, *CAN_FLY)


@dataclass
class Supervisor:
    """See the module's text. ``auto``: it arms itself, as builds for the 2.1 do."""

    auto: bool = True
    state: State = State.NOT_PASSED
    armed: bool = False
    crashed: bool = False
    stop: bool = False
    """An emergency stop was asked for."""
    fed: float | None = None
    """s: when the watchdog was fed last; None: it never was."""
    tumbled: bool = False
    flies: bool = False
    refuses: bool = False
    """It can't be armed."""
    _since: float = 0.0
    _thrust: float = -1e9
    _tilted: float | None = None
    _infos: dict[str, int] = field(default_factory=dict)

    def arm(self, wanted: bool) -> bool:
        """Whether it is done."""
        if wanted and not self.armed and (self.refuses or self.state is not State.PASSED):
            return False
        self.armed = wanted
        return True

    def recover(self) -> bool:
        """After a crash."""
        self.crashed = self.crashed and self.tumbled
        return not self.crashed

    @property
    def info(self) -> int:
        """supervisor.info"""
        bits = (
            self.state is State.PASSED, self.armed, self.auto, self.state in CAN_FLY,
            self.state in (State.FLYING, State.LEVELS), self.tumbled, self.state is State.LOCKED, self.crashed,
        )  # fmt: skip
        return sum(1 << place for place, bit in enumerate(bits) if bit)

    def update(self, time: float, age: float, thrust: bool, force: np.ndarray) -> None:
        """``age`` of the set-point (s), whether a motor runs, and what the accelerometer says (g, body)."""
        self._thrust = time if thrust else self._thrust
        self.flies = time - self._thrust < FLEW
        self._tumble(time, force)
        emergency = self.stop or (self.fed is not None and time >= self.fed + EMERGENCY)
        if (new := self._next(time, age, emergency)) is not self.state:
            self.state, self._since = new, time
            if new is State.CRASHED:
                self.crashed = True
            if new not in MOTORS:
                self.armed = False
            if new is State.PASSED and self.auto and not self.refuses:
                self.armed = True

    def _tumble(self, time: float, force: np.ndarray) -> None:
        if np.all(np.abs(force) < FALLING) or force[2] >= TILTED:
            self._tilted, self.tumbled = None, False
            return
        self._tilted = time if self._tilted is None else self._tilted
        tilted = time - self._tilted
        self.tumbled = tilted > TILTED_FOR or (force[2] < OVER and tilted > OVER_FOR)

    def _next(self, time: float, age: float, emergency: bool) -> State:
        """The first transition that holds, in the firmware's order."""
        for new, holds in self._ways(time - self._since, age, emergency):
            if holds:
                return new
        return self.state

    def _ways(self, since: float, age: float, emergency: bool) -> list[tuple[State, bool]]:
        free, state = State.FREE_FALL, self.state
        if state is State.NOT_PASSED:
            return [(free, emergency), (State.PASSED, not self.tumbled)]
        if state is State.PASSED:
            return [(free, emergency), (State.NOT_PASSED, self.tumbled), (State.ARMING, self.armed)]
        if state is State.ARMING:
            return [(free, emergency), (State.NOT_PASSED, self.tumbled or not self.armed), (State.READY, True)]
        if state is State.READY:
            back = self.tumbled or since > UNUSED or not self.armed
            return [(free, emergency), (State.NOT_PASSED, back), (State.FLYING, self.flies)]
        if state is State.FLYING:
            return [
                (free, age > SHUTDOWN or emergency), (State.CRASHED, self.tumbled), (State.RESET, not self.armed),
                (State.LEVELS, age > LEVEL), (State.LANDED, not self.flies),
            ]  # fmt: skip
        if state is State.LANDED:
            return [(State.RESET, since > LANDING or not self.armed), (State.FLYING, self.flies)]
        if state is State.LEVELS:
            return [(free, age > SHUTDOWN or self.tumbled or emergency), (State.FLYING, age <= LEVEL)]
        if state is State.CRASHED:
            well = not self.crashed and not self.tumbled
            return [(State.NOT_PASSED, well), (State.LOCKED, emergency)]
        return [({State.RESET: State.NOT_PASSED, free: State.LOCKED}.get(state, state), True)]
