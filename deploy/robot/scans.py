"""Between sensor_msgs/LaserScan and a contract's scan: by angle, so that one policy serves lidars of any resolution.

A beam of the contract gets the range of the message's nearest beam. Angles are about the sensor's z axis, wherever the
message begins and in whichever direction it goes; whole turns make no difference. REP 117 says what ranges mean:
infinity is nothing within range, minus infinity is something too close to measure. Nothing of ROS is imported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from robo_rl.contract import Scan

TURN = 2 * math.pi
ASTRAY = 0.3
"""rad by which the last beam may be off angle_max, and beyond a full turn: drivers count beams differently."""
EDGE = 1e-3
"""Part of a beam by which the rounding of angles in float32 may miss the first or the last one."""
UNKNOWN = ". Where this lidar gives zero or NaN for nothing within range, add nothing=zero,nan to the wire"
MAX_BEAMS = 10_000
"""More beams in one message are not read, whatever they are."""


NOTHING = ("zero", "nan", "max")
"""What lidars give, beside infinity, where nothing is within their range: 0.0 (as the LDS-01 of a TurtleBot3) or a
negative number, NaN, or range_max itself."""
SENTINELS = 2
"""Different numbers above range_max that may all say that nothing is there."""
NEAR = 2.0
"""Times range_min: zeros beside a range below this may be of something too close to measure, and are not known."""


class ScanError(ValueError):
    """A scan must not be used. The sentence says what is wrong with it."""


def beam_angles(layout: Scan, count: int) -> np.ndarray:
    """(count,) rad: where the contract's beams look."""
    return layout.angle_min + layout.angle_increment * np.arange(count)


def ranges_of(message: Any, layout: Scan, count: int, nothing: Sequence[str] = ()) -> np.ndarray:
    """(count,) m: what the contract's beams measure, by a LaserScan. ScanError if it does not tell.

    ``nothing``, of ``NOTHING``: what counts as nothing within range, beside infinity.
    """
    measured, empty = _measured(message, nothing, layout.range_max)
    step = float(message.angle_increment)
    if not (math.isfinite(step) and step != 0 and math.isfinite(message.angle_min)) or not len(measured):
        raise ScanError(
            f"{len(measured)} ranges from the angle {message.angle_min:g} in steps of {step:g}; expected some, in "
            "steps other than 0"
        )
    _require_angles(message, step, len(measured))
    angles, turn = beam_angles(layout, count), TURN / abs(step)
    places = np.mod((angles - float(message.angle_min)) / step, turn)  # in beams of the message
    places = np.where(places > len(measured) - 0.5 + EDGE, places - turn, places)
    if places.min() < -0.5 - EDGE:
        blind = np.degrees(angles[int(np.argmin(places))])
        reach = np.degrees(float(message.angle_min) + step * (len(measured) - 1))
        raise ScanError(
            f"no beam at {blind:.1f} degrees: the scan is from {math.degrees(message.angle_min):.1f} to "
            f"{reach:.1f} degrees"
        )
    nearest = np.clip(np.rint(places), 0, len(measured) - 1).astype(int)
    found = measured[nearest]
    if np.isnan(found).any():
        reach = abs(layout.angle_increment / step) / 2
        found = _by_neighbours(measured, places, found, empty[nearest], reach, turn)
    return np.clip(found, layout.range_min, layout.range_max)


def _require_angles(message: Any, step: float, count: int) -> None:
    """ScanError where a driver's angles contradict each other: nobody knows then where its beams look."""
    first, last = float(message.angle_min), float(getattr(message, "angle_max", math.nan))
    reach = first + step * (count - 1)
    told = math.isfinite(last) and last not in (0.0, first)  # else it was left out
    backwards = math.isfinite(last) and (last - first) * step < 0.0
    if backwards or abs(reach - first) > TURN + ASTRAY or (told and abs(reach - last) > ASTRAY):
        raise ScanError(
            f"{count} ranges from angle_min {first:g} in steps of {step:g} rad end at {reach:g}, and angle_max is "
            f"{last:g}; expected the same, within a full turn. Is the number of ranges, the sign or the unit wrong?"
        )


def blank(ranges: np.ndarray, low: float, nothing: Sequence[str]) -> np.ndarray:
    """(n,) bool: which zeros and NaNs of ``ranges`` (n,) m count as nothing within range; ``low`` is range_min in m.

    A lidar that sees nothing at all may be covered or broken: then its beams are not known. Zeros in a row are not
    known either where a range beside them is below ``NEAR`` times ``low``: the beams that miss a thing which is too
    close to measure pass near to it.
    """
    found = np.zeros(len(ranges), bool)
    zero = _is_zero(ranges)
    if (np.isnan(ranges) | zero).all():
        return found
    if "zero" in nothing:
        found |= zero & ~_too_close(ranges, zero, low)
    if "nan" in nothing:
        found |= np.isnan(ranges)
    return found


def _is_zero(ranges: np.ndarray) -> np.ndarray:
    """(n,) bool: no distance, but 0 or a negative number in its place; -inf is something too close."""
    with np.errstate(invalid="ignore"):
        return (ranges <= 0.0) & ~np.isneginf(ranges)


def _too_close(ranges: np.ndarray, zero: np.ndarray, low: float) -> np.ndarray:
    """Which zeros are in a row that ends beside a range below ``NEAR`` times ``low``; the scan may be a full turn."""
    if not len(ranges) or not low > 0:
        return np.zeros(len(ranges), bool)
    known = np.flatnonzero(~zero)
    if not len(known):
        return np.ones(len(ranges), bool)
    order = np.searchsorted(known, np.arange(len(ranges)))
    before, after = ranges[known[order - 1]], ranges[known[order % len(known)]]
    with np.errstate(invalid="ignore"):
        return (before < NEAR * low) | (after < NEAR * low)


def _measured(message: Any, nothing: Sequence[str], farthest: float) -> tuple[np.ndarray, np.ndarray]:
    """Ranges in m: infinite where nothing is within range or something too close, NaN where nothing is known; and which
    of these count as nothing within range, unless a beam beside them is known.
    """
    if len(message.ranges) > MAX_BEAMS:
        raise ScanError(f"{len(message.ranges)} ranges; expected at most {MAX_BEAMS}")
    low, high = float(message.range_min), float(message.range_max)
    ranges = np.array(message.ranges, dtype=np.float64)
    empty = blank(ranges, low, nothing)
    told = 0 <= low < high  # else the driver does not tell
    if told:
        _require_metres(ranges, low, high, farthest)
        with np.errstate(invalid="ignore"):
            ranges[np.isfinite(ranges) & (ranges < low)] = np.nan
            ranges[ranges > high] = np.inf
    ranges[empty] = np.nan
    if "max" in nothing and told:
        ranges[ranges >= high * (1 - 1e-6)] = np.inf  # 1e-6: both are float32 in a LaserScan
    return ranges, empty


def _require_metres(ranges: np.ndarray, low: float, high: float, farthest: float) -> None:
    """ScanError for a scan in mm, which would be an empty plain; ``farthest`` (m) is the contract's range_max."""
    finite = ranges[np.isfinite(ranges) & (ranges > 0.0)]
    if low >= farthest or (len(finite) and finite.min() > high and len(np.unique(finite)) > SENTINELS):
        least, most = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
        raise ScanError(
            f"ranges of {least:g} to {most:g}, range_min {low:g} and range_max {high:g}; expected some in between, and "
            f"below {farthest:g} m. Are they in mm?"
        )


def _by_neighbours(
    measured: np.ndarray, places: np.ndarray, found: np.ndarray, empty: np.ndarray, reach: float, turn: float
) -> np.ndarray:
    """``found``, where it is not known by the nearest beam that is, within ``reach`` beams; if none is, infinity where
    it is ``empty``, else ScanError.
    """
    known = np.flatnonzero(~np.isnan(measured))
    for i in np.flatnonzero(np.isnan(found)):
        apart = np.abs(known - places[i])
        apart = np.minimum(apart, np.abs(turn - apart))
        best = int(np.argmin(apart)) if len(known) else -1
        if best >= 0 and apart[best] <= max(reach, 0.5) + EDGE:
            found[i] = measured[known[best]]
        elif empty[i]:
            found[i] = np.inf
        else:
            raise ScanError(f"beam {i} is not a number, nor is one beside it; expected a range{UNKNOWN}")
    return found


def habits(message: Any) -> dict[str, float]:
    """What part of a LaserScan's beams is zero, NaN, or its range_max; what none is has no entry."""
    ranges = np.array(message.ranges[:MAX_BEAMS], dtype=np.float64)
    high = float(message.range_max)
    with np.errstate(invalid="ignore"):
        found = {"zero": _is_zero(ranges), "nan": np.isnan(ranges), "max": ranges == high}
    return {name: float(beams.mean()) for name, beams in found.items() if len(ranges) and beams.any()}


def fill(message: Any, layout: Scan, ranges: np.ndarray) -> None:
    """Write ranges (n,) of a contract's beams into a LaserScan."""
    message.header.frame_id = message.header.frame_id or "laser"
    message.angle_min, message.angle_increment = layout.angle_min, layout.angle_increment
    message.angle_max = layout.angle_min + layout.angle_increment * (len(ranges) - 1)
    message.range_min, message.range_max = layout.range_min, layout.range_max
    message.ranges = [math.inf if x >= layout.range_max else float(x) for x in ranges]
