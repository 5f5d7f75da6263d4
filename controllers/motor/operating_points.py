"""Which current gives a torque with a synchronous machine: the least one (MTPA), and in weakened field.

A table over torque and the flux that the voltage can hold, λ = u / |ω|, as drives have it. With L_d ≠ L_q the least
current for a torque has a part in d; the closed form is that of Morimoto, Sanada and Takeda 1994 (Wide-Speed Operation
of Interior Permanent Magnet Synchronous Motors with High-Performance Current Regulator). Where the voltage can't hold
it, i_d is as negative as needed; where no current within the limit gives the torque, the entry is the current with the
most torque that there is. Currents are amplitude-invariant: torque = 3/2 p (ψ i_q + (L_d − L_q) i_d i_q).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from robo_rl.contract import Robot
from robo_rl.controllers.motor.model import Pair, PmsmModel

TORQUES, FLUXES = 33, 33
"""Entries of a table."""
FINE = 2001
"""Currents in d that are tried for an entry."""


def mtpa(model: PmsmModel, current: Any) -> tuple[np.ndarray, np.ndarray]:
    """i_d, i_q (…) of the most torque for a current (…) A, in motoring direction."""
    current, difference = np.asarray(current, float), model.inductance_d - model.inductance_q
    if abs(difference) < 1e-9 * model.inductance_q:
        return np.zeros_like(current), current
    root = np.sqrt(model.flux**2 + 8.0 * (difference * current) ** 2)
    d = (root - model.flux) / (4.0 * difference)
    return d, np.sqrt(np.maximum(current**2 - d**2, 0.0))


def torque_of(model: PmsmModel, current: Pair) -> Any:
    """N·m."""
    d, q = current
    return 1.5 * model.pole_pairs * (model.flux + (model.inductance_d - model.inductance_q) * d) * q


class OperatingPoints(NamedTuple):
    """Currents d, q (torques, fluxes) A by torque from 0 to ``most`` and by flux from ``least`` to ``enough``."""

    model: PmsmModel
    limit: float
    """A."""
    most: float
    """N·m that the limit gives without a limit of voltage."""
    least: float
    """Wb: below it, nothing changes any more."""
    enough: float
    """Wb that no current within the limit needs more of."""
    d: np.ndarray
    q: np.ndarray

    @classmethod
    def of(cls, robot: Robot, limit: float) -> OperatingPoints:
        """For a contract's robot, with currents up to ``limit`` A."""
        model = PmsmModel.of(robot, 1.0)
        most = float(torque_of(model, mtpa(model, limit)))
        enough = math.hypot(model.flux + model.inductance_d * limit, model.inductance_q * limit)
        least = max(abs(model.flux - model.inductance_d * limit), 0.02 * enough)
        rows = [
            [_point(model, limit, torque, flux) for flux in np.linspace(least, enough, FLUXES)]
            for torque in np.linspace(0.0, most, TORQUES)
        ]
        d, q = np.moveaxis(np.array(rows), -1, 0)
        return cls(model, limit, most, least, enough, d, q)

    def current(self, torque: Any, omega: Any, voltage: Any) -> Pair:
        """A (n,) each for torques (n,) N·m at electrical speeds (n,) rad/s, with so much voltage (n,) V.

        Resistance is counted as if all of the limit flowed. Torques beyond the table's end are cut.
        """
        xp = array_namespace(torque)
        d, q = xp.asarray(self.d), xp.asarray(self.q)
        held = (voltage - self.model.resistance * self.limit) / xp.clip(xp.abs(omega), 1e-3, None)
        x = xp.clip(xp.abs(torque) / self.most, 0.0, 1.0) * (TORQUES - 1)
        y = xp.clip((held - self.least) / (self.enough - self.least), 0.0, 1.0) * (FLUXES - 1)
        i, j = (xp.clip(xp.floor(value), 0, n - 2) for value, n in ((x, TORQUES), (y, FLUXES)))
        a, b = x - i, y - j
        i, j = xp.astype(i, xp.int64), xp.astype(j, xp.int64)

        def between(table: Any) -> Any:
            low = (1.0 - b) * table[i, j] + b * table[i, j + 1]
            return (1.0 - a) * low + a * ((1.0 - b) * table[i + 1, j] + b * table[i + 1, j + 1])

        return between(d), between(q) * xp.sign(torque)


def _point(model: PmsmModel, limit: float, torque: float, flux: float) -> tuple[float, float]:
    """i_d, i_q A of one entry, by trying currents in d, the second time finely about the best."""
    d = np.linspace(-limit, limit, FINE)
    for _ in range(2):
        best_d, best_q = _best(model, limit, torque, flux, d)
        d = np.clip(np.linspace(best_d - 2.0 * (d[1] - d[0]), best_d + 2.0 * (d[1] - d[0]), FINE), -limit, limit)
    return best_d, best_q


def _best(model: PmsmModel, limit: float, torque: float, flux: float, d: np.ndarray) -> tuple[float, float]:
    per_ampere = torque_of(model, (d, 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.where(per_ampere > 0.0, torque / per_ampere, np.inf)
    linked_d = model.flux + model.inductance_d * d
    by_voltage = np.sqrt(np.maximum(flux**2 - linked_d**2, 0.0)) / model.inductance_q
    greatest = np.where(
        np.abs(linked_d) <= flux, np.minimum(np.sqrt(np.maximum(limit**2 - d**2, 0.0)), by_voltage), 0.0
    )
    possible = (q <= greatest) & (np.abs(linked_d) <= flux) & (np.abs(d) <= limit)
    if possible.any():
        at = int(np.argmin(np.where(possible, d**2 + q**2, np.inf)))
        return float(d[at]), float(q[at])
    if not (np.abs(linked_d) <= flux).any():  # not even without torque: as near as can be
        at = int(np.argmin(np.abs(linked_d)))
        return float(d[at]), 0.0
    at = int(np.argmax(np.where(np.abs(linked_d) <= flux, per_ampere * greatest, -np.inf)))
    return float(d[at]), float(greatest[at])
