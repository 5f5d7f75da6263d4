"""The actuators of a robot: DISABLED, ENABLING, ENABLED. They come on as the answer to ARM alone.

    enabling.update()                                              at the beginning of a step
    requests = enabling.filter(requests, gate.state, obstacle)     what of the requests the gate is asked
    … the gate's step …
    enabling.decided(requests, gate.state)                         what came of it

An ARM that the gate would accept is held back. The driver enables the actuators once, in a thread of its own, and the
steps go on meanwhile; the gate hears ARM in the first step after that. A driver that refuses, a gate that refuses after
all, and a STOP, HALT or DISARM meanwhile leave the actuators as they were before: disabled, or in the stop that holds
them. Nothing else ever enables: no write, no reset, no fault whose cause has gone.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from enum import Enum
from typing import Protocol

from robo_rl.controllers.gate.codes import Problem, Request, State

LEAVING = 10.0
"""s that leaving waits for an ``enable`` at work, so as to disable afterwards."""
ENDING = Request.STOP | Request.HALT | Request.DISARM


class DriverError(ValueError):
    """A robot can't be used, or is not what the contract needs. The message says what to do."""


class Power(Enum):
    """What the actuators do."""

    DISABLED = "disabled"
    ENABLING = "enabling"
    """``enable`` is at work, or, after a cancellation, ``disable``."""
    ENABLED = "enabled"


class Switch(Protocol):
    """Of a driver, what turns its actuators on and off; both may take seconds."""

    def enable(self) -> None:
        """See ``robo_rl.deploy.robot.drivers.driver.Driver``."""

    def disable(self) -> None:
        """See ``robo_rl.deploy.robot.drivers.driver.Driver``."""


class Enabling:
    """See the module's text. All but ``close`` and ``leave`` is called by the thread that steps."""

    def __init__(self, driver: Switch, grace: float, background: bool = True) -> None:
        """``grace`` (s): how long after ``enable`` the signals may take to be fresh again. ``background``: ``enable``
        runs in a thread; else within the step, for a robot in simulated time.
        """
        self._driver, self._grace, self.background = driver, grace, background
        self.power = Power.DISABLED
        self.settled = True
        """Whether no ARM waits for its answer."""
        self.refusal = ""
        """Why an ARM came to nothing, in the step in which that is known; else ""."""
        self._before = Power.DISABLED
        """What the actuators did when ARM came."""
        self._work: threading.Thread | None = None
        self._error = ""
        """Why ``enable`` refused."""
        self._cancelled = self._reverting = self._closed = False
        self._until = 0.0
        """s, until when an ARM waits for signals."""

    def update(self) -> None:
        """See whether ``enable`` has come to its end."""
        self.refusal = ""
        if self.power is not Power.ENABLING or self._busy:
            return
        if self._reverting:
            self.power, self._reverting = Power.DISABLED, False
        elif self._error:
            self.power, self.settled, self.refusal = self._before, True, self._error
        elif self._cancelled:
            self._revert("it was stopped while the actuators were being enabled")
        else:
            self.power, self._until = Power.ENABLED, time.monotonic() + self._grace

    def filter(self, requests: Request, gate: State, obstacle: Callable[[], Problem]) -> Request:
        """What of the requests goes to the gate in this step. ``obstacle()``: why it would not arm now."""
        others = requests & ~Request.ARM
        requests = others if self._closed else requests
        self._cancelled |= not self.settled and bool(requests & ENDING)
        if self.power is Power.ENABLING:
            return others
        if not self.settled:
            if self._cancelled or gate != State.IDLE:
                self._revert("it was stopped before it was armed")
                return others
            return others if obstacle().reason and time.monotonic() < self._until else requests | Request.ARM
        asked = requests & Request.ARM and not requests & (ENDING | Request.RESET) and gate == State.IDLE
        if asked and not obstacle().reason:
            self._begin()
            return others
        return requests

    def decided(self, requests: Request, state: State) -> None:
        """The gate's state after the step that heard ``requests``."""
        if not self.settled and requests & Request.ARM:
            self.settled = True
            if state != State.READY:
                self._revert("")

    def close(self) -> None:
        """Enable no more; what is being enabled ends as it was before."""
        self._closed = self._cancelled = True

    def leave(self) -> bool:
        """Wait until that is done; False if the driver does not come to an end."""
        self.close()
        end = time.monotonic() + LEAVING
        while self.power is Power.ENABLING or not self.settled:
            if self._work is not None:
                self._work.join(max(0.0, end - time.monotonic()))
            if self._busy:
                return False
            if self.power is Power.ENABLED:
                self._revert("the robot was left before it was armed")
            self.update()
        return True

    # ----------------------------------------------------------------------------------------------------------------

    @property
    def _busy(self) -> bool:
        return self._work is not None and self._work.is_alive()

    def _begin(self) -> None:
        self._before, self.settled, self._cancelled, self._error = self.power, False, False, ""
        self._run(self._enable)

    def _revert(self, why: str) -> None:
        """Back to what was before ARM."""
        self.refusal, self.settled = why, True
        if self._before is Power.DISABLED:
            self._reverting = True
            self._run(self._disable)
        else:
            self.power = self._before

    def _run(self, work: Callable[[], None]) -> None:
        self.power, self._work = Power.ENABLING, None
        if self.background:
            try:
                self._work = threading.Thread(target=work, name="enabling", daemon=True)
                self._work.start()
                return
            except RuntimeError:  # the interpreter ends and starts no more threads
                self._work = None
        work()

    def _enable(self) -> None:
        try:
            self._driver.enable()
        except DriverError as error:  # nothing was enabled
            self._error = f"the driver refused: {error}"
        except Exception as error:  # who knows what is enabled now
            self._error, self._before = f"enabling failed: {error!r}", Power.DISABLED
            self._disable()

    def _disable(self) -> None:
        with contextlib.suppress(Exception):  # the driver's health tells it
            self._driver.disable()
