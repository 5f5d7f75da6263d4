"""When controllers of ros2_control may follow a policy, and when others hold the robot instead. Knows no ROS.

A forward_command_controller carries out what it heard last, for ever: silence does not stop it. So somebody else has to
watch, and to put a controller in its place that holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from robo_rl.ros.wiring import JOINT_FIELDS


class Wanted(Enum):
    """What the controllers should do."""

    FOLLOW = "follow"
    HOLD = "hold"


@dataclass(frozen=True)
class Decision:
    """What is wanted now, and why."""

    wanted: Wanted
    reason: str
    stop: bool = False
    """Whether the policy must be told to stop: it believes to be in control, and is not."""


class Watch:
    """Decides from the gate's state and from the commands that come.

    Controllers begin to follow while the gate is READY, when commands keep the robot where it is. They hold as soon as
    commands stay away for ``timeout`` s, when the gate is idle, and ``settle`` s after a fault: the gate's own stop
    comes first.
    """

    def __init__(self, timeout: float, settle: float) -> None:
        self.timeout, self.settle = timeout, settle
        self.following = False
        """Whether the controllers do follow; whoever switches them sets it."""
        self._gate, self._since, self._last = "", 0.0, -float("inf")

    def gate(self, state: str, now: float) -> None:
        """The gate's state, at ``now`` (s, of a clock that never jumps)."""
        if state != self._gate:
            self._gate, self._since = state, now

    def command(self, now: float) -> None:
        """A whole command has come: one message for each controller."""
        self._last = now

    def decide(self, now: float) -> Decision:
        """What is wanted at ``now``."""
        active, silent = self._gate == "ACTIVE", now - self._last
        if silent > self.timeout:
            told = f"no command for {1e3 * silent:.0f} ms" if self._last > -float("inf") else "no command yet"
            return Decision(Wanted.HOLD, told, stop=active)
        if self._gate == "FAULT" and (not self.following or now - self._since >= self.settle):
            return Decision(Wanted.HOLD, "the gate has stopped the policy")
        if self._gate not in ("READY", "ACTIVE", "FAULT"):
            return Decision(Wanted.HOLD, f"the gate is {self._gate or 'not there yet'}")
        if active and not self.following:
            return Decision(Wanted.HOLD, "the policy was engaged before the controllers followed", stop=True)
        return Decision(Wanted.FOLLOW, f"the gate is {self._gate}")


def misfit(controller: str, joints: list[str], interface: str, elements: tuple[str, ...], unit: str) -> str:
    """Why a controller can't take a command of these elements and this unit; "" where it can."""
    if tuple(joints) != elements:
        return f"controller '{controller}' has the joints {joints}; expected {list(elements)}, in this order"
    wanted = JOINT_FIELDS.get(unit, "")
    if interface and interface != wanted:
        return f"controller '{controller}' has the interface '{interface}'; expected '{wanted}', for {unit}"
    return ""
