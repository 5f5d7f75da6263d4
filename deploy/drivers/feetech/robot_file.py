"""What differs between two arms of a type, beside LeRobot's calibration: a file of the user's.

torque_limit = 0.6          # part of the servos' greatest torque
[joints.wrist_roll]
sign = -1                   # the model turns the other way than the servo
zero = 0.05                 # rad, the model's angle in the middle between the stops
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deploy.drivers.driver import DriverError

MOST_BYTES = 1 << 16


@dataclass(frozen=True)
class JointMounting:
    """How a servo is in the arm."""

    sign: int = 1
    zero: float | None = None
    """rad, the model's angle in the middle between the stops; None: the middle of the model's range."""


@dataclass(frozen=True)
class RobotFile:
    """See the module's text."""

    joints: dict[str, JointMounting] = field(default_factory=dict)
    torque_limit: float = 1.0


def read_robot_file(path: str, names: Sequence[str]) -> RobotFile:
    """A robot file for joints of these names; "": the type as it comes. DriverError for anything else than one."""
    if not path:
        return RobotFile()
    where = Path(path).expanduser()
    if not where.is_file() or where.stat().st_size > MOST_BYTES:
        raise DriverError(f"{path}: there is no such file, or it is larger than {MOST_BYTES} bytes")
    try:
        return parse(where.read_bytes(), names)
    except (ValueError, RecursionError) as error:
        raise DriverError(f"{path}: {str(error)[:300]}") from None


def parse(data: bytes, names: Sequence[str]) -> RobotFile:
    """A robot file's content. ValueError for anything else."""
    found = tomllib.loads(data.decode("utf-8"))
    unknown = sorted(set(found) - {"joints", "torque_limit"})
    if unknown:
        raise ValueError(f"{str(unknown)[:100]} are unknown; expected joints, torque_limit")
    limit = _number(found.get("torque_limit", 1.0), "torque_limit", 0.05, 1.0)
    joints = found.get("joints", {})
    if not isinstance(joints, dict) or not set(joints) <= set(names):
        raise ValueError(f"joints are {str(joints)[:100]}; expected tables named as {', '.join(names)}")
    return RobotFile({name: _mounting(name, entry) for name, entry in joints.items()}, limit)


def _mounting(name: str, entry: Any) -> JointMounting:
    if not isinstance(entry, dict) or not set(entry) <= {"sign", "zero"}:
        raise ValueError(f"joints.{name} is {str(entry)[:100]}; expected sign, zero")
    sign, zero = entry.get("sign", 1), entry.get("zero")
    if type(sign) is not int or sign not in (1, -1):
        raise ValueError(f"joints.{name}.sign is {str(sign)[:40]}; expected 1 or -1")
    return JointMounting(sign, None if zero is None else _number(zero, f"joints.{name}.zero", -math.tau, math.tau))


def _number(value: Any, name: str, low: float, high: float) -> float:
    if type(value) not in (int, float) or not low <= value <= high:
        raise ValueError(f"{name} is {str(value)[:40]}; expected a number from {low:g} to {high:g}")
    return float(value)
