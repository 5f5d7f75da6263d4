"""Classical controllers and the gate: numpy alone, so that they run on a robot.

A kind of robot that has a classical controller has a folder here under its name, or a module of a package that tells it
by the entry point ``robo_rl.controllers``. Its ``FALLBACK``, where it has one, moves the robot when the policy may not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from robo_rl.contract import Contract
from robo_rl.contract.kinds import of_kind

if __name__ == "controllers":  # found in its own folder, by its former name
    from robo_rl.former_names import become

    become(__name__)


class Fallback(Protocol):
    """A classical controller beside a policy, on the contract's signals (k,) by name, for one robot.

    It follows along while the policy acts, so that its estimates are right when it takes over.
    """

    needed: tuple[str, ...]
    """The signals without which it can do nothing."""

    def __init__(self, contract: Contract) -> None: ...

    @staticmethod
    def suits(contract: Contract) -> bool:
        """Whether it can act on these signals and commands."""

    def rest(self) -> None:
        """The actuators are passive."""

    def arm(self, signals: Mapping[str, np.ndarray]) -> None:
        """The robot is armed where it is."""

    def propose(self, signals: Mapping[str, np.ndarray]) -> np.ndarray:
        """The command (M,) that follows the operator's set-points, or holds the place where there are none."""

    def land(self, signals: Mapping[str, np.ndarray], time: float) -> np.ndarray | None:
        """After a fault: the command (M,) that brings the robot to rest; None once it is. ``time`` in s."""

    def follow(self, sent: np.ndarray) -> None:
        """Note what was sent (M,), whoever chose it."""


def fallback(contract: Contract) -> Fallback | None:
    """The classical controller for a contract's kind of robot, signals and commands; None without one."""
    module = of_kind("robo_rl.controllers", contract.robot.kind, "robo_rl.controllers")
    found: type[Fallback] | None = getattr(module, "FALLBACK", None)
    return found(contract) if found is not None and found.suits(contract) else None
