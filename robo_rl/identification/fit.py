"""The search for the parameters under which the observer's errors are least.

Contacts make the errors rough functions of the parameters: a foot that lands a step earlier changes all that follows.
Derivatives between two neighbours tell little. So all parameters are varied at once, by the rows of a Hadamard matrix
and their opposites (Plackett and Burman 1946; with the opposites, curvature drops out), and a plane is laid through
the errors. How far they are from that plane is the share of chaos: each error counts by the inverse of its variance
and the sensors' (generalised least squares), and outliers count less (Huber 1964).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, hadamard

from robo_rl.identification.estimate import Estimate, Residual, Unknown
from robo_rl.identification.excitation import unexcited
from robo_rl.identification.following import Following, Recorded
from robo_rl.identification.observer import UNKNOWNS, Observer
from robo_rl.identification.recorded import IdentificationError
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.mechanism import Mechanism

STRETCH = 100
"""Control steps of one piece of the record."""
SETTLING = 20
"""Steps of each until the errors tell what a change of the parameters does."""
HELD_OUT = 4
"""One of so many pieces is kept for checking the prediction."""
FEWEST = 5
"""Pieces."""
AHEAD = 10
"""Control steps that are predicted without sensors."""
WARMING, RUNS = 100, 8
"""The record is followed in so many runs at once, each from so many steps before its part."""
LARGEST = 4.0
"""Of the parameters' steps, by which they change in one iteration."""
MOST_NOISE = 0.8
"""Of the normal equations' matrix."""
OUTLIER = 3.0
"""Standard deviations beyond which an error counts linearly."""
AVERAGED = 3
"""Last iterations whose mean is the result: so the roughness of the errors averages out."""
AT_END = 0.01
"""Of the range that is physically possible: what is found so close to one of its ends is no minimum."""
TOGETHER = 6
"""Sets of parameters that are simulated at once, which bounds the memory."""


@dataclass(frozen=True)
class Identified:
    """What was found."""

    estimates: list[Estimate]
    alike: list[tuple[str, str, float]]
    """Pairs of parameters that the record hardly tells apart, with their correlation."""
    error_nominal: float
    """rad, root mean square of joint angles predicted ``AHEAD`` steps where held out, with the card's figures."""
    error_fitted: float
    """The same with what was found."""
    pieces: int
    """Of the record, that were learnt from."""
    fitted: tuple[str, ...]
    """Parameters that were searched for; the others stayed nominal."""
    halves: np.ndarray
    """(fitted,) by how many standard deviations the two halves of the record would have them apart."""
    starts: np.ndarray
    """(fitted,) by how many standard deviations the search from its last start ended elsewhere; 0 of only one."""
    residuals: dict[str, Residual]
    """What is left between the observer and the sensors, by kind of sensor."""
    predictions: dict[str, np.ndarray]
    """Held out: "recorded", "nominal", "fitted" (n, AHEAD + 1, J) rad."""


@dataclass(frozen=True)
class Solved:
    """Where a search ended, in the numbers that are searched for."""

    inner: np.ndarray
    """(P,)."""
    covariance: np.ndarray
    """(P, P)."""
    halves: np.ndarray
    """(P,) as ``Identified.halves``."""
    starts: np.ndarray
    """(P,) as ``Identified.starts``."""


Search = Callable[[Following, np.ndarray, np.ndarray, int, Callable[[int, str], None]], Solved]
"""As ``search``."""


def identify(
    mechanism: Mechanism, record: Recorded, physics: Physics, unknowns: Sequence[Unknown] = UNKNOWNS,
    iterations: int = 9, progress: Callable[[int, str], None] = lambda done, note: None,
    follower: type[Following] = Observer, searched: Search | None = None,
) -> Identified:  # fmt: skip
    """Find ``unknowns`` from a record; the others stay nominal. IdentificationError if the record is too short.

    ``follower`` is of the kind of the robot, and ``searched`` another search than by designs of experiments.
    """
    asked, idle = tuple(unknowns), unexcited(mechanism, record)
    unknowns = tuple(unknown for unknown in asked if unknown.name not in idle)
    if not unknowns:
        raise IdentificationError(f"{record.name}: {'; '.join(idle.values())}")
    observer = follower(mechanism, record, physics, unknowns)
    begins = np.arange(observer.first + WARMING, len(record) - STRETCH - 1, STRETCH)
    if len(begins) < FEWEST:
        expected = observer.first + WARMING + FEWEST * STRETCH + 2
        raise IdentificationError(f"{record.name}: {len(record)} control steps; expected at least {expected}")
    usable = observer.usable(begins, STRETCH)
    if usable.sum() < FEWEST:
        raise IdentificationError(
            f"{record.name}: the robot touches something in {(~usable).sum()} of {len(begins)} pieces of "
            f"{STRETCH * record.period:g} s; expected at least {FEWEST} in which it does not: record it in free space"
        )
    begins = begins[usable]
    held = begins[HELD_OUT // 2 :: HELD_OUT]
    learnt = np.setdiff1d(begins, held)
    nominal = np.array([u.inner(u.nominal) for u in unknowns])
    solved = (searched or search)(observer, learnt, nominal, iterations, progress)
    inner, errors = solved.inner, np.sqrt(np.diag(solved.covariance))
    correlation = solved.covariance / np.outer(errors, errors)
    found = list(zip(inner, errors, strict=True))
    progress(iterations, "predicting")
    windows = (held[:, None] + np.arange(0, STRETCH - AHEAD, 2 * AHEAD)).ravel()
    recorded = np.stack([record.joint_position[k : k + AHEAD + 1] for k in windows])
    wrong = {"nominal": _predict(observer, windows, nominal), "fitted": _predict(observer, windows, inner)}
    rms = {name: float(np.sqrt(np.mean(np.square(value[:, 1:])))) for name, value in wrong.items()}
    return Identified(
        estimates=[
            Estimate(unknown, unknown.nominal, unknown.spread, idle[unknown.name])
            if unknown.name in idle
            else _estimate(unknown, *found.pop(0), observer.age_in_delay)
            for unknown in asked
        ],
        alike=[
            (unknowns[i].name, unknowns[j].name, float(correlation[i, j]))
            for i in range(len(unknowns))
            for j in range(i)
            if abs(correlation[i, j]) > 0.95
        ],
        error_nominal=rms["nominal"],
        error_fitted=rms["fitted"],
        pieces=len(learnt),
        fitted=tuple(unknown.name for unknown in unknowns),
        halves=solved.halves,
        starts=solved.starts,
        residuals=_residuals(observer, learnt, inner, nominal),
        predictions={"recorded": recorded, **{name: recorded - value for name, value in wrong.items()}},
    )


def _estimate(unknown: Unknown, inner: float, error: float, age: float) -> Estimate:
    """The delay from measurement to motor has the measurement's age in it, which the stamps tell."""
    value = unknown.outer(inner) - (age if unknown.name == "command_delay" else 0.0)
    low, high = unknown.inner(unknown.least), unknown.inner(unknown.most)
    ends = [end for end in (low, high) if end != unknown.inner(unknown.nominal)]
    at_end = any(abs(inner - end) <= AT_END * (high - low) for end in ends)
    reason = "it came out at the end of what is possible" if at_end else ""
    return Estimate(unknown, float(max(unknown.least, value)), float(np.hypot(error, unknown.bias)), reason)


def search(
    observer: Following, begins: np.ndarray, inner: np.ndarray, iterations: int, progress: Callable[[int, str], None]
) -> Solved:
    """Look for the parameters under which the pieces from ``begins`` (n,) on are predicted best, from ``inner`` on."""
    unknowns = observer.unknowns
    step, spread = (np.array([getattr(u, name) for u in unknowns]) for name in ("step", "spread"))
    least, most = np.array([[u.inner(u.least), u.inner(u.most)] for u in unknowns]).T
    center, found = inner, []
    for k in range(iterations):
        states = states_at(observer, begins, inner)
        errors = errors_of(observer, begins, inner[None], states)[0]
        noise = max(0.1, np.median(np.abs(errors)) / 0.6745)  # a normal distribution's median, in its deviations
        progress(k, f"errors {noise:.2f} times the sensors' noise")
        changes = _design(len(inner)) * step * max(0.5, 0.8**k)
        changes = np.clip(inner + changes, least, most) - inner
        slopes, chaos, doubt = _plane(changes, errors_of(observer, begins, inner + changes, states))
        weight = noise**2 / (noise**2 + chaos) * np.minimum(1.0, OUTLIER * noise / np.maximum(np.abs(errors), 1e-12))
        pulls = np.einsum("nrp,nr->np", slopes, weight * errors)
        prior = noise**2 * np.diag(spread**-2)
        own = np.einsum("nrp,nr,nrq->npq", slopes, weight, slopes, optimize=True)
        blur = (weight * doubt).sum() / np.square(changes).sum(0)
        matrix = _without(own.sum(0) + prior, blur)
        change = -np.linalg.solve(matrix, pulls.sum(0) + prior @ (inner - center))
        inner = np.clip(inner + np.clip(change, -LARGEST * step, LARGEST * step), least, most)
        found.append(inner)
    inverse, pieces = np.linalg.inv(matrix), len(begins)
    covariance = inverse @ (pulls.T @ pulls) @ inverse * pieces / (pieces - 1)  # by how much the pieces disagree
    covariance = covariance + noise**2 * inverse
    covariance += np.diag(np.var(found[-AVERAGED:], 0, ddof=1))  # by how much the errors' roughness moves it about
    halves = halves_apart(own, pulls, prior, blur, noise, inner - center)
    return Solved(np.mean(found[-AVERAGED:], 0), covariance, halves, np.zeros(len(inner)))


def halves_apart(
    own: np.ndarray, pulls: np.ndarray, prior: np.ndarray, blur: np.ndarray, noise: float, off: np.ndarray
) -> np.ndarray:  # fmt: skip
    """(P,) by how many standard deviations of their own the two halves of the pieces would have parameters apart."""
    changes, variances = [], []
    for part in np.array_split(np.arange(len(own)), 2):
        inverse = np.linalg.inv(_without(own[part].sum(0) + prior, blur * len(part) / len(own)))
        changes.append(-inverse @ (pulls[part].sum(0) + prior @ off))
        about = pulls[part] - pulls[part].mean(0)
        spread = inverse @ (about.T @ about) @ inverse * len(part) / max(1, len(part) - 1)
        variances.append(np.diag(spread + noise**2 * inverse))
    return np.abs(changes[0] - changes[1]) / np.sqrt(sum(variances))


def _design(parameters: int) -> np.ndarray:
    """(m, parameters) signs: each varies independently of all others."""
    rows = hadamard(1 << parameters.bit_length())[:, :parameters].astype(float)
    return np.concatenate([rows, -rows])


def _plane(changes: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Slopes (n, r, P) of errors (m, n, r) over changes (m, P); the variance (n, r) of what they leave, and its part
    that is not curvature: divided by the sum of squares of a parameter's changes, it is the variance of the slope."""
    terms = np.concatenate([np.ones((len(changes), 1)), changes], 1)
    plane = np.einsum("pm,mnr->nrp", np.linalg.pinv(terms), errors, optimize=True)
    left = errors - np.einsum("mp,nrp->mnr", terms, plane, optimize=True)
    odd = (left[: len(left) // 2] - left[len(left) // 2 :]) / 2
    variance = np.square(left).sum(0) / max(1, len(changes) - terms.shape[1])
    return plane[..., 1:], variance, 2 * np.square(odd).sum(0) / max(1, len(odd) - changes.shape[1])


def _without(matrix: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The normal matrix (P, P) less what noise of the slopes, of squares (P,), adds to it: else steps are too short.

    At most ``MOST_NOISE`` of the matrix is taken off in any direction.
    """
    part = eigh(np.diag(noise), matrix, eigvals_only=True)[-1]
    return matrix - np.diag(noise) * min(1.0, MOST_NOISE / max(part, 1e-300))


def states_at(observer: Following, steps: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """(n, S) the simulation's states at steps (n,) of the record, having followed it until there."""
    edges = np.linspace(steps[0], steps[-1] + 1, RUNS + 1).astype(int)
    begins = np.maximum(observer.first, edges[:-1] - WARMING)
    length = min(int((edges[1:] - begins).max()), len(observer.record) - 1 - int(begins[-1]))
    _, kept = observer.follow(inner[None], begins, length, keep=steps)
    return np.stack([kept[int(step)] for step in steps])


def errors_of(observer: Following, begins: np.ndarray, inner: np.ndarray, states: np.ndarray) -> np.ndarray:
    """(m, n, r) of the settled parts of the pieces, in standard deviations of the sensors."""
    parts = [
        observer.follow(inner[k : k + TOGETHER], begins, STRETCH - 1, states)[0][:, :, SETTLING:] / observer.noise
        for k in range(0, len(inner), TOGETHER)
    ]
    return np.concatenate(parts).reshape(len(inner), len(begins), -1)


def _residuals(
    observer: Following, begins: np.ndarray, inner: np.ndarray, nominal: np.ndarray
) -> dict[str, Residual]:  # fmt: skip
    left, before = (
        errors_of(observer, begins, values[None], states_at(observer, begins, values))[0].reshape(
            len(begins), -1, len(observer.noise)
        )
        for values in (inner, nominal)
    )
    found = {}
    for name in observer.groups:
        part, old = observer.kind_of(left, name), observer.kind_of(before, name)
        sizes = [float(np.median(np.abs(x)) / 0.6745) for x in (part, old)]
        bounded = np.clip(part, -5 * max(sizes[0], 1e-9), 5 * max(sizes[0], 1e-9))
        power = float(np.square(bounded).mean()) or 1.0
        worst = float(np.median(np.abs(part), (0, 1)).max() / 0.6745)
        found[name] = Residual(sizes[0], sizes[1], worst, float((bounded[:, 1:] * bounded[:, :-1]).mean()) / power)
    return found


def _predict(observer: Following, windows: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """(n, AHEAD + 1, J) rad, errors of joint angles that are predicted without sensors from ``windows`` on."""
    states = states_at(observer, windows, inner)
    errors, _ = observer.follow(inner[None], windows, AHEAD, states, corrected=False)
    return observer.kind_of(errors[0], "joint angles")
