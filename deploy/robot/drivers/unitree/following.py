"""Whether a robot does what it is told, by the torques that its motors tell.

LowState_ repeats no command. But what a motor pulls with is stiffness (target - angle) - damping speed of the command
that it has. Where commands no longer arrive, the torques go on to be those of the last one that did. So two commands
are compared: the newest, and the last that explained the torques. The robot follows as long as the newest explains
them about as well. A stiffness or torque constant that is not what it should be spoils both alike.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

RECENT = 2
"""Commands that may be the newest that a state knows of: states and commands are under way for a few ms."""
BETTER = 4.0
"""Times by which the squared torques that are left must be smaller with the old command."""
APART = 3.0
"""N m, root mean square over the joints, by which the two commands must differ: a robot at rest tells nothing."""
IN_A_ROW = 5
"""States."""


@dataclass(frozen=True)
class Order:
    """What n motors were told. All (n,): rad, N m/rad, N m s/rad."""

    q: np.ndarray
    kp: np.ndarray
    kd: np.ndarray

    def torque(self, q: np.ndarray, dq: np.ndarray) -> np.ndarray:
        """(n,) N m that the motors pull with, at these angles (rad) and speeds (rad/s)."""
        return self.kp * (self.q - q) - self.kd * dq


class Following:
    """See the module's text. Tell it every order and every state."""

    def __init__(self) -> None:
        self._recent: deque[Order] = deque(maxlen=RECENT)
        self._old: Order | None = None
        self._count = 0

    def order(self, order: Order) -> None:
        """What was sent."""
        self._recent.append(order)
        self._old = self._old or order

    def state(self, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """What came: (n,) rad, rad/s, N m."""
        if self._old is None:
            return
        left = [_left(order, q, dq, tau) for order in self._recent]
        best = int(np.argmin(left))
        apart = np.sqrt(np.mean((self._recent[best].torque(q, dq) - self._old.torque(q, dq)) ** 2))
        if left[best] <= BETTER * _left(self._old, q, dq, tau):
            self._count = 0
            if left[best] <= _left(self._old, q, dq, tau):
                self._old = self._recent[best]
        elif apart > APART:
            self._count += 1

    @property
    def lost(self) -> bool:
        """Whether the robot goes on with an old command."""
        return self._count >= IN_A_ROW


def _left(order: Order, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> float:
    return float(np.mean((tau - order.torque(q, dq)) ** 2))
