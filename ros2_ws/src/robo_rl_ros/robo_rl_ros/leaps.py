"""Places that tf tells and that a robot can't have come to: a localization that jumps, or two that disagree."""

from __future__ import annotations

import math

import numpy as np

from robo_rl.contract import Contract, Signal

MARGIN = 0.2
"""m: noise and small corrections of a localization may move a place by this much at once."""
FASTEST = 5.0
"""m/s, where the contract has no velocity whose limits say how fast the robot is: faster than what walks and drives
indoors."""


class LeapCheck:
    """Of one position. After a leap the signal grows old, so the gate stops the robot; twice its timeout later the new
    place is taken, so that it can be armed again.
    """

    def __init__(self, contract: Contract, signal: Signal) -> None:
        channels = (*contract.signals, *contract.commands)
        bounds = [float(np.abs([c.lower, c.upper]).max()) for c in channels if c.unit == "m/s"]
        self._name, self.fastest = signal.name, max(bounds, default=FASTEST)
        self._patience = round(2e6 * (contract.timeout(signal) or contract.safety.signal_timeout))
        self._last: tuple[np.ndarray, int, int] | None = None
        """Place (m), stamp and arrival (µs) of what was taken last."""

    def refusal(self, place: np.ndarray, stamp: int, now: int) -> str:
        """Why a place (m) of the time ``stamp`` that arrived ``now`` (µs) is not taken; "" if it is."""
        if self._last is not None:
            before, then, arrived = self._last
            passed, way = max(0, stamp - then) * 1e-6, math.dist(before, place)
            if way > MARGIN + self.fastest * passed and now - arrived <= self._patience:
                return (
                    f"'{self._name}' moved by {way:.2f} m in {1e3 * passed:.0f} ms; the robot's greatest speed is "
                    f"{self.fastest:g} m/s: the transform jumps"
                )
        self._last = place, stamp, now
        return ""
