"""The bring-up check: a robot's messages against a contract, before the motors are enabled.

It works on recorded samples, so it needs neither ROS nor a robot. At rest it checks presence, rate, age, range, noise
and norm. While the robot is moved manually it compares signals with each other: the integral of the gyroscope with the
change of the orientation, and the integral of the velocity with the change of the position. That finds axes that are
swapped or reversed, degrees instead of radians, and quaternions in another order, whatever the motion was.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from robo_rl.contract import Contract, Signal
from robo_rl.contract.checks import finite_number
from robo_rl.contract.gravity import GRAVITY

ENOUGH_TURN = 0.15
"""rad: root mean square of the rotation about every axis that is needed to judge axes."""
ENOUGH_MOVE = 0.03
"""m: the same of a displacement."""
WINDOW = 0.1
"""s over which rotations and displacements are compared."""
ENOUGH_WINDOWS = 10
"""Windows without a gap that are needed to judge by."""
AXIS_TOLERANCE = 0.3
"""How far a fitted axis matrix may be from the identity, in its largest element."""
STILL_NOISE = 5.0
"""A robot at rest may be noisier than in training by this factor."""
CORNERS = ("turn_max_rad", "of_kinds_from")
"""What a contract tells of the corners of tracks."""


@dataclass
class Series:
    """What arrived of one signal. ``problem`` is why messages could not be read; "" if they could."""

    times: list[float] = field(default_factory=list)
    """s, arrival, of one clock."""
    ages: list[float] = field(default_factory=list)
    """s between stamp and arrival."""
    values: list[np.ndarray] = field(default_factory=list)
    problem: str = ""
    publishers: int = 1
    beams: list[dict[str, float]] = field(default_factory=list)
    """Of every scan, what part of its beams is zero, NaN, or its greatest range
    (``robo_rl.deploy.robot.scans.habits``)."""
    nothing: tuple[str, ...] = ()
    """What of these counts as nothing within range."""

    @property
    def measured(self) -> np.ndarray:
        """s, when the samples were measured."""
        return np.subtract(self.times, self.ages)

    def add(self, time: float, age: float, value: np.ndarray) -> None:
        """One more sample."""
        self.times.append(time)
        self.ages.append(age)
        self.values.append(np.asarray(value, float))


@dataclass(frozen=True)
class Finding:
    """One judgement in one sentence."""

    good: bool
    subject: str
    sentence: str


def examine(
    contract: Contract, still: Mapping[str, Series], moved: Mapping[str, Series] | None = None
) -> list[Finding]:
    """Findings on every sensor signal, from a recording at rest and, if given, from one in motion."""
    findings = []
    for signal in contract.signals:
        if signal.source == "sensor":
            findings += _examine_signal(contract, signal, still.get(signal.name, Series()))
    if moved is not None:
        findings += _examine_rotation(contract, moved) + _examine_translation(contract, moved)
    return findings + lane(contract)


def lane(contract: Contract) -> list[Finding]:
    """The tracks on which a racing policy was trained, from its contract, to compare with the lane at hand."""
    width, kind = (_range(contract, f"track.{name}") for name in ("width", "kind"))
    if width is None:
        return []
    said = "trained on lanes {:.3g} to {:.3g} m wide".format(*width)
    corners = contract.facts.get("track")
    corners = corners.get("corners") if isinstance(corners, dict) else None
    if isinstance(corners, dict) and kind is not None:
        turn, first = (finite_number(corners.get(key), f"facts.track.corners.{key}") for key in CORNERS)
        cornered = kind[1] > first
        said += f", with corners of up to {math.degrees(turn):.0f}°" if cornered else ", with bends, without corners"
    if (grip := _range(contract, "friction")) is not None:
        said += ", with {:.3g} to {:.3g} of the card's grip".format(*grip)
    for command in contract.commands:
        if command.name == "speed":
            said += f", at up to {command.bounds[1][0]:.3g} m/s"
    return [Finding(True, "track", f"{said}; others are untried")]


def _range(contract: Contract, name: str) -> tuple[float, float] | None:
    """The lowest and highest value of a range of the task in training; None if the contract does not list it."""
    ranges = contract.facts.get("ranges")
    told = ranges.get(name) if isinstance(ranges, dict) else None
    if not isinstance(told, dict):
        return None
    low, high = (finite_number(told.get(key), f"facts.ranges.{name}.{key}") for key in ("from", "to"))
    return low, high


def _examine_signal(contract: Contract, signal: Signal, series: Series) -> list[Finding]:
    name, timeout = signal.name, contract.safety.signal_timeout

    def bad(sentence: str) -> Finding:
        return Finding(False, name, sentence)

    absent = contract.timeout(signal) is None
    if not series.times and absent and not series.problem:
        return [Finding(True, name, "no message; the signal may be absent")]
    beams = [Finding(not series.problem, name, sentence) for sentence in _beams(series)]
    if not series.times:
        why = f"its messages can't be read: {series.problem}" if series.problem else "no message arrived"
        return [bad(f"{why}; expected {_expected(signal)} in {signal.unit}"), *beams]
    found = [bad(f"some messages can't be read: {series.problem}")] if series.problem else []
    if series.publishers > 1:
        found.append(bad(f"{series.publishers} nodes publish it; expected one"))
    found += beams
    found += [bad(sentence) for sentence in _timing(contract, signal, series)]
    values = np.array(series.values)
    if not np.isfinite(values).all():
        return [*found, bad("it is not always a finite number")]
    low, high = signal.bounds
    outside = ((values < low) | (values > high)).any(0)
    for i in np.flatnonzero(outside):
        span = f"{low[i]:g} to {high[i]:g} {signal.unit}"
        found.append(bad(f"{signal.labels[i]} reaches {np.abs(values[:, i]).max():.4g}; the contract allows {span}"))
    if signal.kind == "quaternion":
        found += [bad(sentence) for sentence in _quaternion(signal, values)]
    if len(values) > 5:
        found += [bad(sentence) for sentence in _noise(signal, values)]
    if signal.unit == "m/s^2" and signal.elements == ("x", "y", "z"):
        size = float(np.linalg.norm(values.mean(0)))
        if not abs(size - GRAVITY) < 1.0:
            hint = "; it seems to be in g" if abs(size - 1) < 0.1 else ""
            found.append(bad(f"at rest it measures {size:.2f} m/s^2; expected gravity, {GRAVITY}{hint}"))
    if not healthy(found):
        return found
    rate = (len(series.times) - 1) / max(1e-9, series.times[-1] - series.times[0])
    age = 1e3 * float(np.median(series.ages))
    return [*found, Finding(True, name, f"{rate:.1f} Hz, {age:.1f} ms old on arrival, within {timeout * 1e3:g} ms")]


def _beams(series: Series) -> list[str]:
    """What this lidar gives where nothing is within its range, as far as it can be seen."""
    kinds = ("zero", "nan", "max") if series.beams else ()
    share = {kind: 100 * float(np.mean([one.get(kind, 0.0) for one in series.beams])) for kind in kinds}
    told = {
        (
            "zero",
            True,
        ): "are 0.0: they count as nothing within range, unless a beam beside them is near; where 0.0 says "
        "that nothing is known, add nothing=inf to the wire",
        ("zero", False): "are 0.0: they are not known; where 0.0 says that nothing is within range, add nothing=zero",
        (
            "nan",
            False,
        ): "are NaN: they are not known; where NaN says that nothing is within range, add nothing=zero,nan to the wire",
        (
            "max",
            False,
        ): "are exactly its range_max: something is there; where that says that nothing is within range, add "
        "nothing=zero,max to the wire",
    }
    found = {kind: told.get((kind, kind in series.nothing)) for kind in kinds if share[kind] > 0}
    return [f"{share[kind]:.0f} % of its beams {sentence}" for kind, sentence in found.items() if sentence]


def _expected(signal: Signal) -> str:
    """What a message of a signal holds."""
    return f"{list(signal.elements)}" if signal.shape is None else f"{' x '.join(map(str, signal.shape))} numbers"


def _timing(contract: Contract, signal: Signal, series: Series) -> list[str]:
    period, timeout = signal.period or contract.control_period, contract.timeout(signal) or math.inf
    sentences = []
    if len(series.times) < 3:
        return [f"only {len(series.times)} messages arrived"]
    gaps = np.diff(series.times)
    rate = 1 / max(1e-9, float(gaps.mean()))
    irregular = signal.period is None and contract.timeout(signal) is None  # it comes when there is something
    if rate < 0.9 / period and not irregular:
        sentences.append(f"its rate is {rate:.1f} Hz; the policy was trained at {1 / period:g} Hz")
    age = float(np.median(series.ages))
    if age > 1e6:
        sentences.append("its stamps are zero or of another clock; expected the time of measurement")
    elif age > timeout:
        sentences.append(f"it is {1e3 * age:.0f} ms old on arrival; the contract allows {1e3 * timeout:g} ms")
    elif age < -1e-3:
        sentences.append(f"its stamps lie {-1e3 * age:.0f} ms in the future; synchronise the computers' clocks")
    return sentences


def _quaternion(signal: Signal, values: np.ndarray) -> list[str]:
    norms = np.linalg.norm(values, axis=1)
    if np.abs(norms - 1).max() > 0.05:
        return [f"its norm reaches {norms[np.argmax(np.abs(norms - 1))]:.3f}; expected 1"]
    if not signal.is_attitude:
        return []
    x, y, _, _ = np.median(values, axis=0)
    tilt = 2 * math.asin(min(1.0, math.hypot(x, y)))
    if tilt > math.radians(45):
        return [f"by it the robot is tilted by {math.degrees(tilt):.0f} degrees; is its order x, y, z, w?"]
    return []


def _noise(signal: Signal, values: np.ndarray) -> list[str]:
    if signal.noise is None:
        return []
    deviation, trained = values.std(0), signal.spread(signal.noise)
    sentences = []
    for i in np.flatnonzero(trained > 0):
        if deviation[i] == 0:
            sentences.append(f"{signal.labels[i]} never changes; a real sensor has noise")
        elif deviation[i] > STILL_NOISE * trained[i]:
            spread = f"{deviation[i]:.3g} {signal.unit}"
            sentences.append(f"{signal.labels[i]} varies by {spread} at rest; training had {trained[i]:.3g}")
    return sentences


def _examine_rotation(contract: Contract, moved: Mapping[str, Series]) -> list[Finding]:
    """The gyroscope against the orientation, in the body frame."""
    quaternions = [s for s in contract.signals if s.is_attitude]
    rates = [
        s for s in contract.signals if s.unit == "rad/s" and s.elements == ("x", "y", "z") and s.source == "sensor"
    ]
    if not quaternions or not rates:
        return []
    orientation, rate = quaternions[0], rates[0]
    a, b = moved.get(orientation.name, Series()), moved.get(rate.name, Series())
    if len(a.times) < 20 or len(b.times) < 20:
        return [Finding(False, rate.name, "too few messages arrived while the robot was turned")]
    times = _common_times(a, b)
    covered = _covered(a, times) & _covered(b, times)
    q = _unit(_at(a, times))
    turned = _rotation_vectors(q[:-1], q[1:])[covered]
    integrated = _integrals(b, times)[covered]
    if len(turned) < ENOUGH_WINDOWS:
        return [Finding(False, rate.name, "too few messages arrived while the robot was turned")]
    if min(turned.std(0).min(), integrated.std(0).min()) < ENOUGH_TURN * WINDOW:
        return [Finding(False, rate.name, "turn the robot more, about all three axes: too little motion")]
    return [
        _judge_axes(rate, integrated, turned, f"'{orientation.name}' turns", {math.radians(1): "degrees per second"})
    ]


def _examine_translation(contract: Contract, moved: Mapping[str, Series]) -> list[Finding]:
    """The velocity against the position, both in the world."""
    named = {s.name: s for s in contract.signals if s.source == "sensor" and s.frame == "world"}
    if not {"position", "linear_velocity"} <= set(named):
        return []
    a, b = moved.get("position", Series()), moved.get("linear_velocity", Series())
    if len(a.times) < 20 or len(b.times) < 20:
        return [Finding(False, "linear_velocity", "too few messages arrived while the robot was moved")]
    times = _common_times(a, b)
    covered = _covered(a, times) & _covered(b, times)
    went, integrated = np.diff(_at(a, times), axis=0)[covered], _integrals(b, times)[covered]
    if len(went) < ENOUGH_WINDOWS:
        return [Finding(False, "linear_velocity", "too few messages arrived while the robot was moved")]
    if went.std(0).min() < ENOUGH_MOVE * WINDOW:
        return [Finding(False, "linear_velocity", "move the robot more, along all three axes: too little motion")]
    return [_judge_axes(named["linear_velocity"], integrated, went, "'position' moves", {})]


def _judge_axes(
    signal: Signal, integrated: np.ndarray, wanted: np.ndarray, reference: str, scales: Mapping[float, str]
) -> Finding:
    """Fit ``wanted = M integrated`` and describe M."""
    if not (np.isfinite(integrated).all() and np.isfinite(wanted).all()):
        return Finding(False, signal.name, f"it can't be compared with how {reference}: numbers are not finite")
    fitted = np.linalg.lstsq(integrated, wanted, rcond=None)[0].T
    if np.abs(fitted - np.eye(3)).max() < AXIS_TOLERANCE:
        return Finding(True, signal.name, f"it agrees with how {reference}, axis by axis")
    for scale, unit in scales.items():
        if np.abs(fitted / scale - np.eye(3)).max() < AXIS_TOLERANCE:
            return Finding(False, signal.name, f"it seems to be in {unit}; expected {signal.unit}")
    matrix, names = _nearest_axes(fitted)
    if np.abs(fitted - matrix).max() < AXIS_TOLERANCE:
        return Finding(False, signal.name, f"compared with how {reference}, its elements x, y, z are really {names}")
    rows = "; ".join(", ".join(f"{x:.2f}" for x in row) for row in fitted)
    return Finding(
        False, signal.name, f"it does not fit how {reference} (axis matrix {rows}); is the order x, y, z, w?"
    )


def _nearest_axes(fitted: np.ndarray) -> tuple[np.ndarray, str]:
    """The signed permutation that is nearest, and what each element of the signal really is."""
    best, least = np.eye(3), math.inf
    for order in itertools.permutations(range(3)):
        matrix = np.zeros((3, 3))
        for row, column in enumerate(order):
            matrix[row, column] = 1.0 if fitted[row, column] >= 0 else -1.0
        distance = float(np.abs(fitted - matrix).max())
        if distance < least:
            best, least = matrix, distance
    really = []
    for column in range(3):
        row = int(np.argmax(np.abs(best[:, column])))
        really.append(("-" if best[row, column] < 0 else "") + "xyz"[row])
    return best, ", ".join(really)


def _common_times(a: Series, b: Series) -> np.ndarray:
    """s, ``WINDOW`` apart, when both were measured."""
    begin, end = max(a.measured[0], b.measured[0]), min(a.measured[-1], b.measured[-1])
    return np.arange(begin, end, WINDOW)


def _covered(series: Series, times: np.ndarray) -> np.ndarray:
    """Between which successive ``times`` messages arrived without a gap that hides what happened."""
    t = series.measured
    gaps = np.diff(t)
    wide = np.flatnonzero(gaps > max(WINDOW / 2, 3 * float(np.median(gaps))))
    begins, ends = t[wide], t[wide + 1]
    overlapping = (begins[:, None] < times[None, 1:]) & (ends[:, None] > times[None, :-1])
    return np.logical_not(np.any(overlapping, axis=0))


def _at(series: Series, times: np.ndarray) -> np.ndarray:
    values = np.array(series.values)
    return np.stack([np.interp(times, series.measured, values[:, i]) for i in range(values.shape[1])], 1)


def _integrals(series: Series, times: np.ndarray) -> np.ndarray:
    """Integrals of the values between successive ``times``."""
    t, values = series.measured, np.array(series.values)
    steps = 0.5 * (values[1:] + values[:-1]) * np.diff(t)[:, None]
    total = np.vstack([np.zeros(values.shape[1]), np.cumsum(steps, 0)])
    sums = np.stack([np.interp(times, t, total[:, i]) for i in range(values.shape[1])], 1)
    return np.diff(sums, axis=0)


def _unit(q: np.ndarray) -> np.ndarray:
    return q / np.linalg.norm(q, axis=1, keepdims=True)


def _rotation_vectors(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Rotation vectors (n, 3), in the body frame, from orientations p to q (x, y, z, w)."""
    a, b = -p[:, :3], q[:, :3]
    w = p[:, 3] * q[:, 3] - (a * b).sum(1)
    v = p[:, 3:] * b + q[:, 3:] * a + np.cross(a, b)
    sign = np.where(w < 0, -1.0, 1.0)[:, None]
    half = np.linalg.norm(v, axis=1)
    angle = 2 * np.arctan2(half, np.abs(w))
    return sign * v * (angle / np.maximum(half, 1e-12))[:, None]


def healthy(findings: Sequence[Finding]) -> bool:
    """Whether nothing was found wrong."""
    return all(finding.good for finding in findings)
