"""Between sensor_msgs/LaserScan and a contract's scan: by angle, so that one policy serves lidars of any resolution.

A beam of the contract gets the range of the message's nearest beam. Angles are about the sensor's z axis, wherever the
message begins and in whichever direction it goes; whole turns make no difference. REP 117 says what ranges mean:
infinity is nothing within range, minus infinity is something too close to measure. Nothing of ROS is imported.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robo_rl.contract import Scan

TURN = 2 * math.pi
EDGE = 1e-3
"""Part of a beam by which the rounding of angles in float32 may miss the first or the last one."""
MAX_BEAMS = 10_000
"""More beams in one message are not read, whatever they are."""


class ScanError(ValueError):
    """A scan must not be used. The sentence says what is wrong with it."""


def beam_angles(layout: Scan, count: int) -> np.ndarray:
    """(count,) rad: where the contract's beams look."""
    return layout.angle_min + layout.angle_increment * np.arange(count)


def ranges_of(message: Any, layout: Scan, count: int) -> np.ndarray:
    """(count,) m: what the contract's beams measure, by a LaserScan. ScanError if it does not tell."""
    measured = _measured(message)
    step = float(message.angle_increment)
    if not (math.isfinite(step) and step != 0 and math.isfinite(message.angle_min)) or not len(measured):
        raise ScanError(
            f"{len(measured)} ranges from the angle {message.angle_min:g} in steps of {step:g}; expected some, in "
            "steps other than 0"
        )
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
        found = _by_neighbours(measured, places, found, abs(layout.angle_increment / step) / 2, turn)
    return np.clip(found, layout.range_min, layout.range_max)


def _measured(message: Any) -> np.ndarray:
    """Ranges in m; infinite where nothing is within range or something too close; NaN where nothing is known."""
    if len(message.ranges) > MAX_BEAMS:
        raise ScanError(f"{len(message.ranges)} ranges; expected at most {MAX_BEAMS}")
    ranges = np.array(message.ranges, dtype=np.float64)
    low, high = float(message.range_min), float(message.range_max)
    if 0 <= low < high:  # else the driver does not tell
        with np.errstate(invalid="ignore"):
            ranges[np.isfinite(ranges) & (ranges < low)] = np.nan
            ranges[ranges > high] = np.inf
    return ranges


def _by_neighbours(
    measured: np.ndarray, places: np.ndarray, found: np.ndarray, reach: float, turn: float
) -> np.ndarray:
    """``found``, where it is not known by the nearest beam that is, within ``reach`` beams. ScanError if none is."""
    known = np.flatnonzero(~np.isnan(measured))
    for i in np.flatnonzero(np.isnan(found)):
        apart = np.abs(known - places[i])
        apart = np.minimum(apart, np.abs(turn - apart))
        best = int(np.argmin(apart)) if len(known) else -1
        if best < 0 or apart[best] > max(reach, 0.5) + EDGE:
            raise ScanError(f"beam {i} is not a number, nor is one beside it; expected a range")
        found[i] = measured[known[best]]
    return found


def fill(message: Any, layout: Scan, ranges: np.ndarray) -> None:
    """Write ranges (n,) of a contract's beams into a LaserScan."""
    message.header.frame_id = message.header.frame_id or "laser"
    message.angle_min, message.angle_increment = layout.angle_min, layout.angle_increment
    message.angle_max = layout.angle_min + layout.angle_increment * (len(ranges) - 1)
    message.range_min, message.range_max = layout.range_min, layout.range_max
    message.ranges = [math.inf if x >= layout.range_max else float(x) for x in ranges]
