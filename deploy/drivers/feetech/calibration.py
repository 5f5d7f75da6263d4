"""LeRobot's calibration files, read and written.

    HF_LEROBOT_CALIBRATION/robots/so_follower/ID.json   by default ~/.cache/huggingface/lerobot/calibration/…
    {"shoulder_pan": {"id": 1, "drive_mode": 0, "homing_offset": -1470, "range_min": 758, "range_max": 3292}, …}

``homing_offset`` is in the servo's EEPROM, so that its position is 2048 in the middle pose; ``range_min`` and
``range_max`` are the positions of the mechanical stops, in steps of 1/4096 turn.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.drivers.driver import DriverError
from deploy.drivers.feetech.packets import HIGHEST
from deploy.drivers.feetech.registers import TURN
from robo_rl.files import write

MOST_BYTES = 1 << 16
MOST_OFFSET = 2047
"""Steps, of a homing offset: eleven bits and a sign."""
FIELDS = {
    "id": (0, HIGHEST), "drive_mode": (0, 1), "homing_offset": (-MOST_OFFSET, MOST_OFFSET),
    "range_min": (0, TURN - 1), "range_max": (0, TURN - 1),
}  # fmt: skip
"""Limits of what a joint has in the file."""


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


def read_calibration(path: str | Path) -> dict[str, JointCalibration]:
    """The joints of a file, in its order. DriverError for anything else than such a file."""
    path = Path(path).expanduser()
    if not path.is_file():
        raise DriverError(
            f"{path}: there is no such file; expected LeRobot's calibration (lerobot-calibrate writes it)"
        )
    if path.stat().st_size > MOST_BYTES:
        raise DriverError(f"{path}: larger than {MOST_BYTES} bytes; expected LeRobot's calibration")
    try:
        return parse(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise DriverError(f"{path}: {str(error)[:300]}; expected LeRobot's calibration") from None


def parse(data: bytes) -> dict[str, JointCalibration]:
    """The joints in a file's bytes. ValueError for anything else."""
    found = json.loads(data.decode("utf-8"))
    if not isinstance(found, dict) or not found or len(found) > HIGHEST:
        raise ValueError("it is no object with joints")
    joints = {name: _joint(name, entry) for name, entry in found.items()}
    ids = [joint.id for joint in joints.values()]
    if len(set(ids)) < len(ids):
        raise ValueError(f"the IDs are {ids}; expected different ones")
    return joints


def _joint(name: str, entry: Any) -> JointCalibration:
    if not isinstance(entry, dict) or set(entry) != set(FIELDS):
        raise ValueError(f"{name[:60]!r} is {str(entry)[:100]}; expected {', '.join(FIELDS)}")
    for field, (low, high) in FIELDS.items():
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
