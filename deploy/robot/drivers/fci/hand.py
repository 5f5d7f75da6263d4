"""The Franka hand: no servo, but one command at a time, each until it is done.

Which targets become commands is in ``hand_targets``. Commands wait for the one before; the newest target then counts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from robo_rl.deploy.robot.drivers.fci.hand_targets import Action, HandTargets
from robo_rl.deploy.robot.drivers.fci.library import sentence
from robo_rl.deploy.robot.drivers.fci.states import HandState

POLL = 0.004  # s
LONGEST = 5.0
"""s that a command may take."""
ANY = 0.08
"""m: a grasp is one whatever the width of the object."""


class Hand:
    """See the module's text."""

    def __init__(self, gripper: Any, speed: float, force: float, clock: Callable[[], float] = time.monotonic) -> None:
        """``speed`` m/s of the width, ``force`` N."""
        self.gripper, self._speed, self._force, self._now = gripper, speed, force, clock
        self.newest: HandState | None = None
        self.failure = ""
        self.seen = self.commands = self.refused = 0
        self._wanted: float | None = None
        self._targets = HandTargets()
        self._pending: Any = None
        self._begun = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="franka hand", daemon=True)
        self._thread.start()

    def want(self, opening: float | None) -> None:
        """m of a finger; None: nothing more is sent."""
        self._wanted = opening

    def close(self) -> None:
        """The hand keeps what it does."""
        self._wanted = None
        self._ended.set()
        self._thread.join(timeout=2.0)

    # ----------------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._ended.wait(POLL):
            try:
                found = self.gripper.state
                self.newest = HandState(self._now(), float(found.width), float(found.max_width), bool(found.is_grasped))
                self.seen += 1
                self._command(self.newest)
            except Exception as error:
                self.failure = f"the hand is silent ({sentence(error)})"
                return

    def _command(self, state: HandState) -> None:
        wanted, here = self._wanted, 0.5 * state.width
        busy = self._pending is not None and not self._done()
        action = self._targets.decide(self._now(), wanted, here, busy)
        if wanted is None or action is None:
            return
        self.commands += 1
        self._begun = self._now()
        width = 2.0 * wanted
        if action is Action.GRASP:
            self._pending = self.gripper.grasp_async(width, self._speed, self._force, ANY, ANY)
        else:
            self._pending = self.gripper.move_async(min(width, state.widest or width), self._speed)

    def _done(self) -> bool:
        """Whether the command is. What the hand could not do is counted: the fingers' position tells the rest."""
        if not self._pending.wait(0.0):
            if self._now() - self._begun > LONGEST:
                self.failure = f"the hand has not done its last command within {LONGEST:g} s"
            return False
        try:
            self.refused += not self._pending.get()
        except Exception as error:
            self.refused += 1
            if "receive" in str(error) or "send" in str(error):
                self.failure = f"the hand is silent ({sentence(error)})"
        self._pending = None
        return True
