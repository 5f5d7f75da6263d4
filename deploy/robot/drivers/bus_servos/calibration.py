"""LeRobot's calibration files, read and written.

    HF_LEROBOT_CALIBRATION/robots/so_follower/ID.json   by default ~/.cache/huggingface/lerobot/calibration/…
    {"shoulder_pan": {"id": 1, "drive_mode": 0, "homing_offset": -1470, "range_min": 758, "range_max": 3292}, …}

``homing_offset`` is in the servo's EEPROM, so that its position is 2047 in the middle pose: Feetech's servos subtract
it from what the encoder says, Dynamixel's add it. ``range_min`` and ``range_max`` are the positions of the mechanical
stops, in steps of 1/4096 turn.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.files import read_bytes, write
from robo_rl.files.text import loads_json

MOST_BYTES = 1 << 16
TURN = 4096
"""Steps of the encoder in a turn."""
HIGHEST = 0xFC
"""Of an ID."""
FEETECH_OFFSET, DYNAMIXEL_OFFSET = 2047, 1_044_479
"""Steps, the most of a homing offset: eleven bits and a sign; 255 turns (Dynamixel's e-manual, Homing Offset)."""
FIELDS = {
    "id": (0, HIGHEST), "drive_mode": (0, 1), "homing_offset": (-DYNAMIXEL_OFFSET, DYNAMIXEL_OFFSET),
    "range_min": (0, TURN - 1), "range_max": (0, TURN - 1),
}  # fmt: skip
"""Limits of what a joint has in the file; those of the homing offset are the maker's."""


@dataclass(frozen=True)
class JointCalibration:
    """One servo's, in steps."""

    id: int
    drive_mode: int
    homing_offset: int
    range_min: int
    range_max: int

    @property
    def middle(self) -> float:
        """Steps, between the stops: LeRobot's zero."""
        return 0.5 * (self.range_min + self.range_max)

    @property
    def half_range(self) -> float:
        """rad, from the middle to a stop."""
        return math.pi * (self.range_max - self.range_min) / TURN


def read_calibration(path: str | Path, most_offset: int) -> dict[str, JointCalibration]:
    """The joints of a file, in its order. DriverError for anything else than such a file.

    ``most_offset``: ``FEETECH_OFFSET`` or ``DYNAMIXEL_OFFSET``.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise DriverError(
            f"{path}: there is no such file; expected LeRobot's calibration (lerobot-calibrate writes it)"
        )
    try:
        return parse(read_bytes(path, MOST_BYTES), most_offset)
    except (ValueError, RecursionError) as error:
        raise DriverError(f"{path}: {str(error)[:300]}; expected LeRobot's calibration") from None


def parse(data: bytes, most_offset: int) -> dict[str, JointCalibration]:
    """The joints in a file's bytes. ValueError for anything else."""
    found = loads_json(data.decode("utf-8"))
    if not isinstance(found, dict) or not found or len(found) > HIGHEST:
        raise ValueError("it is no object with joints")
    if "motor_names" in found:
        raise ValueError("it is of LeRobot before release 0.3; calibrate the arm again with lerobot-calibrate")
    joints = {name: _joint(name, entry, most_offset) for name, entry in found.items()}
    ids = [joint.id for joint in joints.values()]
    if len(set(ids)) < len(ids):
        raise ValueError(f"the IDs are {ids}; expected different ones")
    return joints


def _joint(name: str, entry: Any, most_offset: int) -> JointCalibration:
    if not isinstance(entry, dict) or set(entry) != set(FIELDS):
        raise ValueError(f"{name[:60]!r} is {str(entry)[:100]}; expected {', '.join(FIELDS)}")
    bounds = {**FIELDS, "homing_offset": (-most_offset, most_offset)}
    for field, (low, high) in bounds.items():
        value = entry[field]
        if type(value) is not int or not low <= value <= high:
            raise ValueError(f"{name[:60]!r}: {field} is {str(value)[:40]}; expected an integer from {low} to {high}")
    if entry["range_min"] >= entry["range_max"]:
        raise ValueError(f"{name[:60]!r}: range_min is {entry['range_min']}; expected less than range_max")
    return JointCalibration(**entry)


def write_calibration(path: str | Path, joints: Mapping[str, JointCalibration]) -> None:
    """Write a file as LeRobot does."""
    data = {name: {field: getattr(joint, field) for field in FIELDS} for name, joint in joints.items()}
    write(Path(path), json.dumps(data, indent=4) + "\n")
