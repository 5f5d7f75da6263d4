"""Parameters that are looked for in a record, and what was found of them."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Unknown:
    """A parameter to be found, by the name of the task's range. Factors are found as logarithms."""

    name: str
    unit: str
    nominal: float
    least: float
    most: float
    spread: float
    """How far from nominal it may well be (one standard deviation). Of factors the logarithm, as all that follows."""
    step: float
    """By which it is varied to see what it does."""
    bias: float
    """An estimate of what the model's simplifications and noise bias the method by; part of the uncertainty."""
    enough: float
    """The uncertainty below which it counts as determined."""
    factor: bool = True

    def inner(self, value: float) -> float:
        """The number that is searched for."""
        return math.log(value) if self.factor else value

    def outer(self, inner: float) -> float:
        """The parameter itself."""
        return math.exp(inner) if self.factor else inner


@dataclass(frozen=True)
class Estimate:
    """One parameter as found."""

    unknown: Unknown
    value: float
    error: float
    """Uncertainty, one standard deviation; of a factor, as a part of the value."""
    reason: str = ""
    """Why the record can't tell it, whatever the uncertainty; it is then nominal, or at the end of what may be."""

    @property
    def determined(self) -> bool:
        """Whether the record tells it."""
        return not self.reason and self.error < self.unknown.enough

    @property
    def range(self) -> tuple[float, float]:
        """Two standard deviations to both sides, within bounds."""
        unknown, inner = self.unknown, self.unknown.inner(self.value)
        low, high = (unknown.outer(inner + sign * 2 * self.error) for sign in (-1, 1))
        return float(max(unknown.least, low)), float(min(unknown.most, high))


@dataclass(frozen=True)
class Residual:
    """What is left of the prediction of one kind of sensor, one control step ahead."""

    size: float
    """Of its noise: the median, in a normal distribution's deviations."""
    nominal: float
    """The same with the card's figures."""
    worst: float
    """As ``size``, of the axis or joint where it is largest."""
    correlation: float
    """Of an error with the one of the control step before; 0 for white noise."""
