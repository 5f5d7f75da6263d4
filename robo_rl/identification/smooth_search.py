"""The search where the errors are smooth functions of the parameters, as without contacts.

Levenberg and Marquardt's method with derivatives by central differences: a step that makes the errors greater is taken
back, and a smaller one is tried. So parameters that hardly differ in what they do (an arm with a load that is heavier
on servos that are stiffer) don't run away together. Outliers count less (Huber 1964).

A search that stops on the way gives numbers as well, and small uncertainties. So it begins again beside of what it
found, away along what is hardest to tell, until it ends in the same place; if it never does, what it found is none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from robo_rl.identification.fit import LARGEST, OUTLIER, Solved, errors_of, halves_apart, states_at
from robo_rl.identification.following import Following

FIRST, EASIER, HARDER = 1e-6, 0.1, 100.0
"""Of the damping, as a part of the diagonal, and what it is multiplied by after a step that helped or did not."""
TRIES = 6
"""Of steps in one iteration."""
ENOUGH = 1e-6
"""Of the cost, by which an iteration has to make it less; otherwise it is the last."""
NEAR = 0.3
"""Of the parameters' steps, for the derivatives."""
BESIDE = 2.0
"""Of the first of ``Following.ways``, from what was found to the second start: all factors of an arm by 20 %."""
STARTS, SAME = 4, 0.3
"""At most, and standard deviations between two ends that are one."""


def search(
    observer: Following, begins: np.ndarray, inner: np.ndarray, iterations: int, progress: Callable[[int, str], None]
) -> Solved:
    """As ``fit.search``; the best of at most ``STARTS`` ends, the last two of which are compared."""
    least, most = bounds(observer)
    best, cost = descend(observer, begins, inner, inner, iterations, progress)
    for k in range(1, STARTS):
        beside = np.clip(best.inner + (-1) ** (k + 1) * BESIDE * observer.ways()[0], least, most)
        again, other = descend(observer, begins, beside, inner, iterations, progress)
        apart = np.abs(best.inner - again.inner) / np.sqrt(np.diag(best.covariance))
        best, cost = min((best, cost), (again, other), key=lambda end: end[1])
        if apart.max() < SAME:
            break
    return dataclasses.replace(best, starts=apart)


def bounds(observer: Following) -> np.ndarray:
    """(2, P) least and most that the parameters may be."""
    return np.array([[u.inner(u.least), u.inner(u.most)] for u in observer.unknowns]).T


def descend(
    observer: Following, begins: np.ndarray, inner: np.ndarray, expected: np.ndarray, iterations: int,
    progress: Callable[[int, str], None],
) -> tuple[Solved, float]:  # fmt: skip
    """From ``inner`` (P,) down to a minimum, and its cost; ``expected`` (P,) is what the parameters probably are."""
    unknowns = observer.unknowns
    step, spread = (np.array([getattr(u, name) for u in unknowns]) for name in ("step", "spread"))
    least, most = bounds(observer)
    prior, damping = np.diag(spread**-2), FIRST
    ways = observer.ways()
    back = np.linalg.inv(ways)

    def followed(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Errors (n, r), the states that the pieces begin in, and the cost."""
        states = states_at(observer, begins, values)
        errors = errors_of(observer, begins, values[None], states)[0]
        size = np.abs(errors)
        huber = np.where(size < OUTLIER, size**2, OUTLIER * (2.0 * size - OUTLIER)).sum()
        return errors, states, float(huber + (values - expected) @ prior @ (values - expected))

    errors, states, cost = followed(inner)
    for k in range(iterations):
        noise = max(0.1, float(np.median(np.abs(errors))) / 0.6745)  # a normal distribution's median, in its deviations
        progress(k, f"errors {noise:.2f} times the sensors' noise")
        sides = np.stack([np.clip(inner + sign * NEAR * way, least, most) for sign in (-1, 1) for way in ways])
        below, above = np.split(errors_of(observer, begins, sides, states), 2)
        moved = sides[len(step) :] - sides[: len(step)]  # (P, P), one way each row
        slopes = np.einsum("pnr,qp->nrq", above - below, np.linalg.inv(moved), optimize=True)  # (n, r, P)
        weight = np.minimum(1.0, OUTLIER / np.maximum(np.abs(errors), 1e-12))
        pulls = np.einsum("nrp,nr->np", slopes, weight * errors)
        own = np.einsum("nrp,nr,nrq->npq", slopes, weight, slopes, optimize=True)
        matrix, gradient, before = own.sum(0) + prior, pulls.sum(0) + prior @ (inner - expected), cost
        for _ in range(TRIES):
            along = back @ np.diag(np.diag(ways @ matrix @ ways.T)) @ back.T
            change = -np.linalg.solve(matrix + damping * along, gradient)
            tried = np.clip(inner + np.clip(change, -LARGEST * step, LARGEST * step), least, most)
            found = followed(tried)
            if found[2] < cost:
                inner, (errors, states, cost), damping = tried, found, EASIER * damping
                break
            damping *= HARDER
        if before - cost < ENOUGH * cost:
            break
    inverse, pieces = np.linalg.inv(matrix), len(begins)
    covariance = inverse @ (pulls.T @ pulls) @ inverse * pieces / (pieces - 1)  # by how much the pieces disagree
    covariance = covariance + noise**2 * inverse
    halves = halves_apart(own, pulls, prior, np.zeros(len(step)), noise, inner - expected)
    return Solved(inner, covariance, halves, np.zeros(len(step))), cost
