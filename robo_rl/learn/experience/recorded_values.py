"""One check for all values that were recorded elsewhere and are to be learnt from: steps, demonstrations, data sets.

They are finite, within the ranges of the contract that they were recorded under, quaternions of length 1, and nowhere
beyond what a robot's numbers may be (``robo_rl.sim.episode.LARGEST``): one wrong value, once learnt from, is in all
weights for good. Their stamps tell that they were measured at most ``OLDEST`` s before their step, on average.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from robo_rl.contract import Signal
from robo_rl.sim.episode import LARGEST

UNIT = 0.1
"""By which the length of a measured quaternion may be off."""
OLDEST = 1.0
"""s that measurements may be old on average, when commands are sent."""
OPERATOR = "operator"
"""The source of signals that people send, which no sensor's range bounds."""


class Fault(NamedTuple):
    """Values of one quantity that can't be learnt from."""

    rows: NDArray[np.bool_]
    """(s,) where they are."""
    first: int
    """The first of these rows."""
    sentence: str
    """What is wrong there."""


def faults(signals: Sequence[Signal], values: Mapping[str, NDArray[np.float32]]) -> Iterator[Fault]:
    """What is wrong with values (s, …) by name: of ``signals``, by their range; of anything else, by ``LARGEST``."""
    ranges = {signal.name: signal for signal in signals if signal.source != OPERATOR}
    for name, value in values.items():
        flat = value.reshape(len(value), -1)
        low, high = ranges[name].bounds if name in ranges else (-LARGEST, LARGEST)
        good = (flat >= low) & (flat <= high)  # false for what is not a number
        rows = np.asarray(~good.all(1))
        if rows.any():
            row = int(np.argmax(rows))
            place = int(np.argmin(good[row]))
            low, high = (float(np.broadcast_to(bound, flat.shape[1:])[place]) for bound in (low, high))
            label = f".{ranges[name].labels[place]}" if name in ranges else f"[{place}]" if flat.shape[1] > 1 else ""
            found = flat[row, place]
            what = f"{found:g}" if np.isfinite(found) else "not finite"
            yield Fault(rows, row, f"{name}{label} is {what}; expected {low:g} to {high:g}")
        elif name in ranges and ranges[name].kind == "quaternion":
            length = np.linalg.norm(flat.astype(float), axis=1)
            if (rows := np.abs(length - 1) > UNIT).any():
                row = int(np.argmax(rows))
                yield Fault(rows, row, f"{name} has the length {length[row]:.3g}; expected a unit quaternion")


def wrong_stamps(times: NDArray[np.float64], stamps: NDArray[np.float64]) -> tuple[int, str] | None:
    """The row and a sentence, where ``stamps`` (t, n) of sensors are none of steps at ``times`` (t,), all in s."""
    if (back := (np.diff(stamps, axis=0) < 0).any(1)).any():
        return int(np.argmax(back)) + 1, "stamps go backwards; expected times of measurement"
    age = float(np.mean(times[:, None] - stamps)) if stamps.size else 0.0
    if 0.0 <= age < OLDEST:
        return None
    return 0, f"measurements are {age:.3g} s old on average, by their stamps; expected 0 to {OLDEST:g} s"
