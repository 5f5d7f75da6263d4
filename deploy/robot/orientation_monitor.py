"""Checks of orientations that the gate does not make: jumps, and values outside of the range seen in training.

Both find a quaternion whose elements come in another order. It has the right norm and lies within its limits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from robo_rl.contract import Contract, Signal
from robo_rl.controllers.gate.config import UNIT_TOLERANCE

MARGIN = 0.2
"""rad: noise and filters of an estimator may turn an orientation by this much at once."""
ROOM = 0.1
"""By how much an element may lie outside of the range seen in training."""


class OrientationMonitor:
    """Watches the signals of a contract that tell the robot's own attitude."""

    def __init__(self, contract: Contract) -> None:
        sensed = [signal for signal in contract.signals if signal.source == "sensor"]
        self.watched = [signal for signal in sensed if signal.is_attitude]
        rates = [s for s in sensed if s.unit == "rad/s" and s.elements == ("x", "y", "z")]
        self.fastest = max((math.hypot(*s.bounds[1]) for s in rates), default=math.inf)
        """rad/s that the robot's own sensors can report."""
        self.period = contract.control_period
        self._last: dict[str, tuple[np.ndarray, int]] = {}

    def restart(self) -> None:
        """Forget the last orientations, after a simulator has moved the robot to a new start."""
        self._last.clear()

    def jump(self, samples: Mapping[str, tuple[np.ndarray, int]]) -> str:
        """A sentence if an orientation turned faster than the robot can, since the last call; else ""."""
        doubt = ""
        for signal in self.watched:
            value, stamp = samples.get(signal.name, (np.zeros(4, np.float32), -1))
            if not abs(math.hypot(*value.tolist()) - 1) < UNIT_TOLERANCE:
                continue  # the gate's affair
            before, then = self._last.get(signal.name, (value, stamp))
            angle, passed = _angle(before, value), max((stamp - then) * 1e-6, self.period)
            if angle > MARGIN + self.fastest * passed:
                doubt = doubt or (
                    f"signal '{signal.name}' turned by {math.degrees(angle):.0f} degrees in {1e3 * passed:.0f} ms; "
                    f"the robot can turn at {self.fastest:.0f} rad/s. Is its order x, y, z, w?"
                )
            self._last[signal.name] = value, stamp
        return doubt

    def strange(self, values: Mapping[str, np.ndarray]) -> str:
        """A sentence if an orientation is outside of the range seen in training; else ""."""
        for signal in self.watched:
            if signal.name in values and (element := _outside(signal, values[signal.name])) is not None:
                value = values[signal.name][element]
                return (
                    f"signal '{signal.name}': {signal.elements[element]} is {value:.2f}, which is outside of the range "
                    "seen in training. Is its order x, y, z, w, and is the robot upright?"
                )
        return ""


def _angle(p: np.ndarray, q: np.ndarray) -> float:
    """rad between two orientations."""
    a, b = p.tolist(), q.tolist()
    cosine = abs(sum(x * y for x, y in zip(a, b, strict=True))) / (math.hypot(*a) * math.hypot(*b))
    return 2 * math.acos(min(1.0, cosine))


def _outside(signal: Signal, q: np.ndarray) -> int | None:
    """The first element outside of what was seen, for q and for −q, which are one orientation; None if none is."""
    if signal.seen_low is None or signal.seen_high is None or not np.isfinite(q).all():
        return None
    low, high = np.array(signal.seen_low) - ROOM, np.array(signal.seen_high) + ROOM
    wrong = [~((low <= sign * q) & (sign * q <= high)) for sign in (1, -1)]
    return int(np.argmax(wrong[0])) if all(w.any() for w in wrong) else None
