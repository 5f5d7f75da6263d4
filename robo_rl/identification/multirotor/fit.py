"""The search for a multirotor's parameters, and whether they may be believed.

Free flight is a smooth function of its parameters: Gauss and Newton's method on the errors of predictions one control
step ahead, with derivatives by central differences. Outliers count less (Huber 1964). Uncertainties are how much the
pieces of the record disagree (White 1980), besides the sensors' noise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from robo_rl.identification.estimate import Estimate, Residual, Unknown
from robo_rl.identification.multirotor.flight import Flights
from robo_rl.identification.multirotor.model import AIR, ROTOR, WARMING, Follower, earliest, patterns
from robo_rl.identification.recorded import IdentificationError
from robo_rl.sim.robots.multirotor import MultirotorCard

STRETCH = 60
"""Control steps of one piece that tell."""
FEWEST, MOST = 6, 80
"""Pieces; of more, as many evenly over the record."""
HELD_OUT = 5
"""One of so many pieces is kept for checking the prediction."""
AHEAD = 20
"""Control steps that are predicted without sensors."""
OUTLIER = 3.0
"""Standard deviations beyond which an error counts linearly."""
LARGEST_STEP = 10.0
"""Of the parameters' steps, by which they change in one iteration."""
AT_END = 0.01
"""Of the range that is physically possible: what is found so close to one of its ends is no minimum."""
MOVE = "record a minute of flight with changes of the set-point: up and down, to the sides, figure-eights"
KINDS = ("position", "attitude", "velocity", "body rates")


@dataclass(frozen=True)
class Flown:
    """What was found in flights."""

    estimates: list[Estimate]
    """Of what is the robot's; of the rotors each one's own factor instead of the patterns."""
    age: tuple[float, float]
    """s, the least and the greatest mean age of measurements of a part."""
    error_nominal: float
    """rad, root mean square of the attitude predicted ``AHEAD`` steps where held out, with the card's figures."""
    error_fitted: float
    """The same with what was found."""
    pieces: int
    halves: dict[str, float]
    """By how many standard deviations the two halves of the record would have it apart."""
    residuals: dict[str, Residual]
    traces: dict[str, np.ndarray]
    """Held out: "nominal", "fitted" (n, AHEAD, 3) rad: errors of the attitude."""


def fit(
    card: MultirotorCard, flights: Flights, iterations: int = 9,
    progress: Callable[[int, str], None] = lambda done, note: None,
) -> Flown:  # fmt: skip
    """Find the parameters; IdentificationError if the flights are too short."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # of a thousand robots' small operations; a second thread waits longer than it computes
    try:
        return _fit(card, flights, iterations, progress)
    finally:
        torch.set_num_threads(threads)


def _fit(card: MultirotorCard, flights: Flights, iterations: int, progress: Callable[[int, str], None]) -> Flown:
    length = WARMING + STRETCH
    pieces = [
        (i, start)
        for i, part in enumerate(flights.parts)
        for start in range(earliest(flights), len(part) - length - 1, STRETCH)
    ]
    if len(pieces) < FEWEST:
        whole, silent, each = (flights.period * k for k in (flights.steps, earliest(flights) + WARMING, STRETCH))
        raise IdentificationError(
            f"{flights.name}: {whole:.1f} s of flight, in {len(flights.parts)} parts without a gap, of which the first "
            f"{silent:.1f} s tell nothing: {len(pieces)} pieces of {each:.1f} s; expected {FEWEST} at least: {MOVE}"
        )
    kept = np.array(pieces)[np.linspace(0, len(pieces) - 1, min(MOST, len(pieces))).round().astype(int)]
    held = kept[HELD_OUT // 2 :: HELD_OUT]
    learnt = np.delete(kept, np.s_[HELD_OUT // 2 :: HELD_OUT], 0)
    follower = Follower(card, flights, learnt, length)
    asked = follower.unknowns
    first = Guess.of(asked, len({part.session for part in flights.parts}))
    found, covariance, halves = _search(follower, first, iterations, progress)
    progress(iterations, "predicting")
    ahead = Follower(card, flights, held, WARMING + AHEAD)
    traces = {
        name: ahead.errors(guess.rows(ahead.session)[None], free=WARMING)[0, :, :, 3:6]
        for name, guess in (("nominal", first), ("fitted", found))
    }
    return Flown(
        estimates=_estimates(
            asked[: first.shared],
            found.values[: first.shared],
            covariance[: first.shared, : first.shared],
            len(card.rotors),
            card.rotor_names,
        ),
        age=(min(part.age for part in flights.parts), max(part.age for part in flights.parts)),
        error_nominal=float(np.sqrt(np.mean(traces["nominal"] ** 2))),
        error_fitted=float(np.sqrt(np.mean(traces["fitted"] ** 2))),
        pieces=len(learnt),
        halves={u.name: float(far) for u, far in zip(asked[: first.shared], halves[: first.shared], strict=True)},
        residuals=_residuals(follower, found, first),
        traces=traces,
    )


@dataclass(frozen=True)
class Guess:
    """Values of what is the robot's, shared by all sessions, followed by those of each session's air."""

    values: np.ndarray
    """(shared + sessions × air,)."""
    shared: int
    air: int

    @classmethod
    def of(cls, asked: tuple[Unknown, ...], sessions: int) -> Guess:
        """As on the card, in still air."""
        nominal = np.array([unknown.inner(unknown.nominal) for unknown in asked])
        air = sum(_of_air(unknown) for unknown in asked)
        shared = len(asked) - air
        return cls(np.concatenate([nominal[:shared], np.tile(nominal[shared:], sessions)]), shared, air)

    def spread_out(self, row: np.ndarray) -> np.ndarray:
        """(all,) of something that each unknown has (P,)."""
        sessions = (len(self.values) - self.shared) // self.air
        return np.concatenate([row[: self.shared], np.tile(row[self.shared :], sessions)])

    def columns(self, session: np.ndarray) -> np.ndarray:
        """(n, P) where the values are that hold for pieces of the sessions (n,)."""
        air = self.shared + self.air * session[:, None] + np.arange(self.air)
        return np.concatenate([np.tile(np.arange(self.shared), (len(session), 1)), air], 1)

    def rows(self, session: np.ndarray) -> np.ndarray:
        """(n, P) the values that hold for pieces of the sessions (n,)."""
        return self.values[self.columns(session)]


def _of_air(unknown: Unknown) -> bool:
    return unknown.name.partition("/")[0] in AIR


def _search(
    follower: Follower, first: Guess, iterations: int, progress: Callable[[int, str], None]
) -> tuple[Guess, np.ndarray, np.ndarray]:
    """The values, their covariance (all, all), and by how many deviations (all,) the halves of the pieces are apart."""
    step, spread = (np.array([getattr(u, name) for u in follower.unknowns]) for name in ("step", "spread"))
    least, most = np.array([[u.inner(u.least), u.inner(u.most)] for u in follower.unknowns]).T
    center, guess, columns = first.values, first, first.columns(follower.session)
    most_of_all, least_of_all, step_of_all = (first.spread_out(row) for row in (most, least, step))
    pieces, unknowns, every = len(columns), len(step), len(center)
    for k in range(iterations):
        rows = guess.rows(follower.session)
        moved = np.stack(
            [rows, *(np.clip(rows + sign * one, least, most) for sign in (-1, 1) for one in np.diag(step))]
        )
        errors = (follower.errors(moved) / follower.noise).reshape(len(moved), pieces, -1)
        now, below, above = np.split(errors, [1, 1 + unknowns])
        width = np.stack([(moved[1 + unknowns + i] - moved[1 + i])[:, i] for i in range(unknowns)])
        slopes = np.moveaxis((above - below) / width[:, :, None], 0, -1)  # (n, r, P)
        noise = max(0.1, float(np.median(np.abs(now))) / 0.6745)  # a normal distribution's median, in its deviations
        progress(k, f"errors {noise:.2f} times the sensors' noise")
        weight = np.minimum(1.0, OUTLIER * noise / np.maximum(np.abs(now[0]), 1e-12))
        pull = np.einsum("nrp,nr->np", slopes, weight * now[0])
        square = np.einsum("nrp,nr,nrq->npq", slopes, weight, slopes, optimize=True)
        pulls, own = np.zeros((pieces, every)), np.zeros((pieces, every, every))
        for i, place in enumerate(columns):
            pulls[i, place], own[i][np.ix_(place, place)] = pull[i], square[i]
        prior = noise**2 * np.diag(first.spread_out(spread) ** -2)
        matrix = own.sum(0) + prior
        change = -np.linalg.solve(matrix, pulls.sum(0) + prior @ (guess.values - center))
        change = np.clip(change, -LARGEST_STEP * step_of_all, LARGEST_STEP * step_of_all)
        guess = dataclasses.replace(guess, values=np.clip(guess.values + change, least_of_all, most_of_all))
    inverse = np.linalg.inv(matrix)
    covariance = inverse @ (pulls.T @ pulls) @ inverse * pieces / (pieces - 1) + noise**2 * inverse
    return guess, covariance, _halves(own, pulls, prior, noise, guess.values - center)


def _halves(own: np.ndarray, pulls: np.ndarray, prior: np.ndarray, noise: float, off: np.ndarray) -> np.ndarray:
    """(all,) by how many standard deviations of their own the two halves of the pieces would have parameters apart."""
    changes, variances = [], []
    for part in np.array_split(np.arange(len(own)), 2):
        inverse = np.linalg.inv(own[part].sum(0) + prior)
        changes.append(-inverse @ (pulls[part].sum(0) + prior @ off))
        about = pulls[part] - pulls[part].mean(0)
        spread = inverse @ (about.T @ about) @ inverse * len(part) / max(1, len(part) - 1)
        variances.append(np.diag(spread + noise**2 * inverse))
    return np.abs(changes[0] - changes[1]) / np.sqrt(sum(variances))


def _estimates(
    asked: tuple[Unknown, ...], inner: np.ndarray, covariance: np.ndarray, rotors: int, names: tuple[str, ...]
) -> list[Estimate]:
    found, errors = [], np.sqrt(np.diag(covariance))
    for unknown, value, error in zip(asked, inner, errors, strict=True):
        if unknown.name.startswith(f"{ROTOR}/"):
            continue
        low, high = unknown.inner(unknown.least), unknown.inner(unknown.most)
        ends = [high] if unknown.least == 0.0 else [low, high]  # some figures may well be 0
        at_end = any(abs(value - end) <= AT_END * (high - low) for end in ends)
        reason = "it came out at the end of what is possible" if at_end else ""
        found.append(Estimate(unknown, unknown.outer(float(value)), float(np.hypot(error, unknown.bias)), reason))
    places = [i for i, unknown in enumerate(asked) if unknown.name.startswith(f"{ROTOR}/")]
    mixed, pattern = patterns(rotors), asked[places[0]]
    own, spread = 1 + inner[places] @ mixed, mixed.T @ covariance[np.ix_(places, places)] @ mixed
    for k, name in enumerate(names):
        unknown = Unknown(
            f"{ROTOR}/{name}", pattern.unit, 1.0, 0.0, 2.0, pattern.spread, pattern.step, pattern.bias, pattern.enough,
            factor=False,
        )  # fmt: skip
        found.append(Estimate(unknown, float(own[k]), float(np.hypot(np.sqrt(spread[k, k]), pattern.bias))))
    return found


def _residuals(follower: Follower, found: Guess, first: Guess) -> dict[str, Residual]:
    fitted, before = (
        follower.errors(guess.rows(follower.session)[None])[0] / follower.noise for guess in (found, first)
    )
    left = {}
    for i, kind in enumerate(KINDS):
        part, old = fitted[..., 3 * i : 3 * i + 3], before[..., 3 * i : 3 * i + 3]
        sizes = [float(np.median(np.abs(x)) / 0.6745) for x in (part, old)]
        bounded = np.clip(part, -5 * max(sizes[0], 1e-9), 5 * max(sizes[0], 1e-9))
        power = float(np.square(bounded).mean()) or 1.0
        worst = float(np.median(np.abs(part), (0, 1)).max() / 0.6745)
        left[kind] = Residual(sizes[0], sizes[1], worst, float((bounded[:, 1:] * bounded[:, :-1]).mean()) / power)
    return left
