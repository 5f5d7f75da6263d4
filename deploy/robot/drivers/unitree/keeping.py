"""What a robot of Unitree's is sent, 500 times a second, whatever becomes of the program that commands it.

The pure part of the keeper: no DDS, no clock. It repeats the newest command; it damps the legs, and goes on doing so
until it is told to enable again, when

- no command has come for ``PATIENCE``, or the program ended: after ``LINGER`` of damping it leaves,
- L2 and B are pressed on the radio remote, or somebody else commands, or the robot's state has not come any more.

Somebody else who goes on commanding has the robot: after ``YIELDING`` of damping nothing is sent, since legs that get
stiffness and damping in turn, hundreds of times a second, are worse off than with either. When he has been silent for a
second the legs are damped again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum

import numpy as np

from robo_rl.deploy.robot.drivers.unitree.family import GO, Family
from robo_rl.deploy.robot.drivers.unitree.messages import MOTORS, LowCommand, remote_stop

PERIOD = 0.002
"""s: the rate of the maker's examples; at 200 Hz legs were seen to tremble (go2_rl_ws, issue 3)."""
PATIENCE, STATE_PATIENCE, LINGER = 0.1, 0.1, 10.0
"""s without commands, s without the robot's state, and s of damping after the program's end."""
DAMPING = 3.0
"""N m s/rad: unitree_rl_lab, State_Passive."""
YIELDING = 0.2
"""s of damping in which somebody else may stop commanding."""
FOREIGN = 3
"""Commands of somebody else within a second that count: one may be left from before."""


class Phase(Enum):
    """What is sent."""

    QUIET = "nothing"
    FOLLOW = "the program's commands"
    DAMP = "damping"
    YIELD = "nothing: somebody else commands"


@dataclass(frozen=True)
class Status:
    """What the keeper tells its program."""

    phase: str
    reason: str
    """Why it damps, a sentence; "" if it does not."""
    foreign: int
    """Commands of somebody else within the last second."""
    damaged: int
    """States that could not be read."""
    sent: int
    late: int
    """Commands that were sent more than two periods after the one before."""

    def encode(self) -> bytes:
        """For the socket."""
        return json.dumps(self.__dict__).encode()


class Keeper:
    """See the module's text. Times are s of one clock."""

    def __init__(self, damping: str = "", motors: int = MOTORS, family: Family = GO) -> None:
        """``damping``: why it damps from the start; "": it begins quiet. ``motors`` are the robot's."""
        self.phase, self.reason = Phase.DAMP if damping else Phase.QUIET, damping
        self.damaged = self.sent = self.late = 0
        self._command = b""
        self._ordered = self._measured = self._published = -1e9
        self._ended = float("inf")
        self._damped, self._motors, self._family, self._machine = -1e9, motors, family, 0
        self._positions = np.zeros(motors)
        self._pressed = False
        self._foreign: list[float] = []

    def enable(self, now: float, command: bytes) -> None:
        """Follow the program from now on, beginning with this command; not while the remote's stop is pressed."""
        if self._pressed:
            self.reason = "L2 and B are pressed on the remote"
            return
        self.phase, self.reason = Phase.FOLLOW, ""
        self.command(now, command)

    def command(self, now: float, command: bytes) -> None:
        """A LowCmd_ of the program."""
        self._command, self._ordered = command, now

    def damp(self, reason: str) -> None:
        """Damp the legs until enabled again, if they are commanded."""
        if self.phase == Phase.FOLLOW:
            self.phase, self.reason = Phase.DAMP, reason

    def quiet(self) -> None:
        """Send nothing more."""
        self.phase, self.reason = Phase.QUIET, ""

    def program_ended(self, now: float) -> None:
        """Nobody will command any more."""
        if self._ended == float("inf"):
            self._ended = now
            self.damp("the program ended")

    def state(self, now: float, data: bytes) -> bool:
        """A LowState_ of the robot; False for one that can't be read."""
        try:
            state = self._family.decode_state(data, self._motors)
        except ValueError:
            self.damaged += 1
            return False
        self._measured, self._positions, self._machine = now, state.q, state.machine
        self._pressed = remote_stop(state.remote)
        if self._pressed:
            self.damp("L2 and B were pressed on the remote")
        return True

    def other_command(self, now: float) -> None:
        """Somebody else's LowCmd_."""
        self._foreign.append(now)

    def publish(self, now: float) -> bytes | None:
        """What is sent now; call it once a period."""
        self._foreign = [time for time in self._foreign if now - time < 1.0][-1000:]
        if self.phase == Phase.FOLLOW:
            if now - self._ordered > PATIENCE:
                self.damp(f"the program sent no command for {1e3 * PATIENCE:.0f} ms")
            elif len(self._foreign) >= FOREIGN:
                self.damp("somebody else commands the robot on rt/lowcmd; it is left to him while he goes on")
                self._damped = now
            elif now - self._measured > STATE_PATIENCE:
                self.damp(f"the robot has told nothing for {1e3 * STATE_PATIENCE:.0f} ms")
        elif self.phase == Phase.DAMP and len(self._foreign) >= FOREIGN and now - self._damped > YIELDING:
            self.phase = Phase.YIELD
        elif self.phase == Phase.YIELD and not self._foreign:
            self.phase, self._damped = Phase.DAMP, now
        if self.phase in (Phase.QUIET, Phase.YIELD):
            self._published = -1e9
            return None
        self.sent += 1
        if 0 < self._published < now - 2 * PERIOD:
            self.late += 1
        self._published = now
        if self.phase == Phase.FOLLOW:
            return self._command
        return self._family.encode_command(damping(self._positions, self._machine))

    @property
    def lingers(self) -> bool:
        """Whether its program has ended."""
        return self._ended < float("inf")

    def done(self, now: float) -> bool:
        """Whether there is nothing more to do."""
        return now - self._ended > (LINGER if self.phase != Phase.QUIET else 0.0)

    @property
    def status(self) -> Status:
        """As of now."""
        return Status(self.phase.value, self.reason, len(self._foreign), self.damaged, self.sent, self.late)


def damping(positions: np.ndarray, machine: int = 0) -> LowCommand:
    """Lets the legs sink: no stiffness. ``machine`` as in ``LowCommand``."""
    nothing = np.zeros(len(positions))
    return LowCommand(nothing == 0, positions, nothing, nothing, nothing, nothing + DAMPING, machine)
