"""Which servo is which joint: a person moves the joints by hand, one after the other, and their names are compared.

Nothing else tells it: two servos with each other's ID answer, have the travel that was calibrated, and follow commands.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from robo_rl.contract import Contract
from robo_rl.deploy.robot.doctor import Finding, Series

WINDOW = 0.25
"""s in which the joint that moves most is the one that the hand moves."""
MOVED = 0.05
"""rad in a window that count as moved: limp joints beside it sink by less while they are held."""
MOST = 2.0
"""By how much it moves more than any other one."""


def joints_of(contract: Contract) -> list[tuple[str, str, int]]:
    """Of every joint that is commanded by its angle: its name, and the signal and index there that measure it."""
    return [
        (name, *measured)
        for command in contract.commands
        if command.unit == "rad"
        for name, measured in zip(command.elements, contract.feedback(command), strict=True)
    ]


def examine_order(contract: Contract, moved: Mapping[str, Series]) -> list[Finding]:
    """Findings on a recording in which a person moved one joint after the other, in the contract's order."""
    joints = joints_of(contract)
    windows = [_window(moved.get(signal, Series()), index) for _, signal, index in joints]
    count = min(map(len, windows), default=0)
    travel = np.array([window[:count] for window in windows]).reshape(len(joints), count)
    largest = travel.argmax(0) if count else np.zeros(0, int)
    others = np.sort(travel, axis=0)[-2] if len(joints) > 1 and count else np.zeros(count)
    clear = (travel.max(0, initial=0.0) > MOVED) & (travel.max(0, initial=0.0) > MOST * others)
    when = [np.median(np.flatnonzero(clear & (largest == j))) if (clear & (largest == j)).any() else -1.0
            for j in range(len(joints))]  # fmt: skip
    still = [joints[j][0] for j in range(len(joints)) if when[j] < 0]
    if still:
        told = f"{', '.join(still)} did not move alone; move one after the other by 0.3 rad, and hold the others"
        return [Finding(False, "joints", told)]
    found = [joints[j][0] for j in np.argsort(when, kind="stable")]
    named = [name for name, *_ in joints]
    if found == named:
        return [Finding(True, "joints", f"they moved in the order {', '.join(found)}")]
    swapped = ", ".join(a for a, b in zip(found, named, strict=True) if a != b)
    told = f"{', '.join(found)} moved in this order; expected {', '.join(named)}"
    question = f"Were they moved in another order, or do the servos of {swapped} have each other's IDs?"
    return [Finding(False, "joints", f"{told}. {question}")]


def _window(series: Series, index: int) -> np.ndarray:
    """(W,) rad: how far a joint went in each window."""
    if not series.times:
        return np.zeros(0)
    number = np.floor((np.array(series.times) - series.times[0]) / WINDOW).astype(int)
    values = np.array([value[index] for value in series.values])
    ends = np.r_[np.flatnonzero(np.diff(number)) + 1, len(values)]
    found = np.zeros(number[-1] + 1)
    for begin, end in zip(np.r_[0, ends[:-1]], ends, strict=True):
        found[number[begin]] = np.ptp(values[begin:end])
    return found
