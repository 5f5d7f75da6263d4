"""Slow sensors, and quantities that may be absent: what a policy sees between measurements.

    holding = Holding.from_contract(contract)
    if late := holding.late(samples, now): …        # a signal is older than its own measure allows
    seen = holding.completed(samples, now)          # all signals of the contract, for the policy

A runtime keeps the newest sample of every signal, and a signal without a new measurement keeps its value. What is
left to do is here: ages are computed, up to their upper limit; what was never measured, and may be absent, is zeros
within its limits. Pure functions of whole microseconds and float32, the same in Python and in C
(``deploy/build/c/held.c``),
bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from robo_rl.contract import Contract, Signal

NEVER = -1
"""The stamp (µs) of what was not measured."""
LONGEST = 1 << 42
"""µs, fifty days: a greater age counts as this one."""
Samples = Mapping[str, tuple[np.ndarray, int]]
"""The newest values (*dimensions) float32 of signals by name, and when they were measured (µs)."""


AGE_ROUNDING = 2e-6
"""s by which an age in float32 may be off."""


def may_wait(contract: Contract) -> frozenset[str]:
    """Signals that are not needed at every step: the slow ones, and those whose age is told, which may be absent."""
    told = {signal.age_of for signal in contract.signals}
    slow = (s for s in contract.signals if s.period is not None or s.name in told)
    return frozenset(signal.name for signal in slow if signal.source != "runtime")


@dataclass(frozen=True)
class Slot:
    """How one signal is held. Times in µs."""

    name: str
    timeout: int
    """The age beyond which it must not be acted on; 0: its age is not watched."""
    blank: np.ndarray | None
    """(*dimensions) float32: its value before it was measured; None for one that must have been."""
    age_of: str | None
    lower: np.float32
    upper: np.float32
    """The limits of an age."""


@dataclass(frozen=True)
class Holding:
    """How the signals of a contract are held, in its order."""

    slots: tuple[Slot, ...]

    @staticmethod
    def from_contract(contract: Contract) -> Holding:
        """From the contract."""
        return Holding(tuple(_slot(contract, signal) for signal in contract.signals))

    def late(self, samples: Samples, now: int) -> tuple[Slot, int] | None:
        """The first signal that is too old, and its age (µs); NEVER if it has not been measured and must be.

        A stamp of the future is no age; whoever has a clock to compare it with refuses it.
        """
        for slot in self.slots:
            if slot.age_of is not None:
                continue
            stamp = samples[slot.name][1] if slot.name in samples else NEVER
            if stamp < 0 and slot.blank is None:
                return slot, NEVER
            if stamp >= 0 and slot.timeout and now - stamp > slot.timeout:
                return slot, now - stamp
        return None

    def completed(self, samples: Samples, now: int) -> dict[str, tuple[np.ndarray, int]]:
        """The samples, and those of signals without a sensor: ages as of ``now``, and blanks, which are NEVER."""
        seen = {}
        for slot in self.slots:
            if slot.age_of is not None:
                seen[slot.name] = (self._age(slot, samples, now), now)
            elif slot.name in samples and samples[slot.name][1] >= 0:
                seen[slot.name] = samples[slot.name]
            elif slot.blank is not None:
                seen[slot.name] = (slot.blank.copy(), NEVER)
        return seen

    @staticmethod
    def _age(slot: Slot, samples: Samples, now: int) -> np.ndarray:
        _, stamp = samples.get(slot.age_of or "", (None, NEVER))
        if stamp < 0:
            return np.array([slot.upper])
        age = np.float32(max(0, min(now - stamp, LONGEST))) * np.float32(1e-6)
        return np.array([max(slot.lower, min(slot.upper, age))])


def samples_behind(
    contract: Contract, values: Mapping[str, np.ndarray], before: Samples, now: int
) -> dict[str, tuple[np.ndarray, int]]:
    """The samples behind what a simulation tells at every step: ``values`` of all signals, ages among them.

    A slow signal has a new measurement if its value or its age shows it. ``before`` are the samples of the step before.
    """
    told = {signal.age_of: signal for signal in contract.signals if signal.age_of}
    waits, samples = may_wait(contract), {}
    for signal in contract.signals:
        if signal.source == "runtime":
            continue
        value, last, stamp = values[signal.name], before.get(signal.name), now
        held = signal.name in waits and last is not None and np.array_equal(value, last[0])
        if signal.name in told:
            age = float(np.ravel(values[told[signal.name].name])[0])
            known = age < told[signal.name].bounds[1][0] - AGE_ROUNDING
            if not known and last is None:
                continue  # there is none
            stamp = now - round(1e6 * age)
            held = held and last is not None and (not known or abs(stamp - last[1]) <= 1e6 * AGE_ROUNDING)
        samples[signal.name] = (value, last[1] if held and last is not None else stamp)
    return samples


def _slot(contract: Contract, signal: Signal) -> Slot:
    lower, upper = (limits.astype(np.float32) for limits in signal.bounds)
    blank = None
    if any(other.age_of == signal.name for other in contract.signals):
        blank = np.clip(np.zeros_like(lower), lower, upper).reshape(signal.dimensions)
    seconds = contract.timeout(signal) if signal.source == "sensor" else _operator_timeout(contract, signal)
    timeout = 0 if seconds is None else round(seconds * 1e6)
    return Slot(signal.name, timeout, blank, signal.age_of, lower[0], upper[0])


def _operator_timeout(contract: Contract, signal: Signal) -> float | None:
    return signal.timeout if signal.timeout is not None else contract.safety.operator_timeout
