"""What differs between two arms of a type, beside LeRobot's calibration: a file of the user's.

torque_limit = 0.6          # part of the servos' greatest torque
bus_watchdog = true         # Dynamixel: servos stop by themselves when nothing is sent
[joints.wrist_roll]
sign = -1                   # the model turns the other way than the servo
zero = 0.05                 # rad, the model's angle in the middle between the stops
stiffness = 0.0173          # Dynamixel, identified: N m/rad for a unit of the register P
damping = 0.6               # Dynamixel, identified: N m s/rad, with the register D at d_gain
d_gain = 400
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.files import read_bytes, write
from robo_rl.files.text import loads_toml

MOST_BYTES = 1 << 16
MOST_GAIN = 16_383
"""Of a Dynamixel's register D."""


@dataclass(frozen=True)
class JointMounting:
    """How a servo is in the arm."""

    sign: int = 1
    zero: float | None = None
    """rad, the model's angle in the middle between the stops; None: the middle of the model's range."""
    stiffness: float | None = None
    """N m/rad for a unit of the register P; None: as the servo's data sheet has it."""
    damping: float | None = None
    """N m s/rad, with the register D at ``d_gain``; None: as the servo's data sheet has it."""
    d_gain: int = 0


@dataclass(frozen=True)
class RobotFile:
    """See the module's text."""

    joints: dict[str, JointMounting] = field(default_factory=dict)
    torque_limit: float = 1.0
    bus_watchdog: bool | None = None
    """None: where it is known to stop the servo."""


FEETECH = ({"joints", "torque_limit"}, {"sign", "zero"})
DYNAMIXEL = ({*FEETECH[0], "bus_watchdog"}, {*FEETECH[1], "stiffness", "damping", "d_gain"})
"""What a file may have, and a joint in it."""


def read_robot_file(path: str, names: Sequence[str], known: tuple[set[str], set[str]] = FEETECH) -> RobotFile:
    """A robot file for joints of these names; "": the type as it comes. DriverError for anything else than one."""
    if not path:
        return RobotFile()
    where = Path(path).expanduser()
    try:
        return parse(read_bytes(where, MOST_BYTES), names, known)
    except FileNotFoundError:
        raise DriverError(f"{path}: there is no such file; expected a robot file (*.toml)") from None
    except (OSError, ValueError, RecursionError) as error:
        raise DriverError(f"{path}: {str(error)[:300]}") from None


def parse(data: bytes, names: Sequence[str], known: tuple[set[str], set[str]] = FEETECH) -> RobotFile:
    """A robot file's content. ValueError for anything else."""
    found = loads_toml(data)
    unknown = sorted(set(found) - known[0])
    if unknown:
        raise ValueError(f"{str(unknown)[:100]} are unknown; expected {', '.join(sorted(known[0]))}")
    limit = _number(found.get("torque_limit", 1.0), "torque_limit", 0.05, 1.0)
    watchdog = found.get("bus_watchdog")
    if watchdog is not None and type(watchdog) is not bool:
        raise ValueError(f"bus_watchdog is {str(watchdog)[:40]}; expected true or false")
    joints = found.get("joints", {})
    if not isinstance(joints, dict) or not set(joints) <= set(names):
        raise ValueError(f"joints are {str(joints)[:100]}; expected tables named as {', '.join(names)}")
    return RobotFile({name: _mounting(name, entry, known[1]) for name, entry in joints.items()}, limit, watchdog)


def _mounting(name: str, entry: Any, known: set[str]) -> JointMounting:
    if not isinstance(entry, dict) or not set(entry) <= known:
        raise ValueError(f"joints.{name} is {str(entry)[:100]}; expected {', '.join(sorted(known))}")
    where, sign, d_gain = f"joints.{name}", entry.get("sign", 1), entry.get("d_gain", 0)
    if type(sign) is not int or sign not in (1, -1):
        raise ValueError(f"{where}.sign is {str(sign)[:40]}; expected 1 or -1")
    if type(d_gain) is not int or not 0 <= d_gain <= MOST_GAIN:
        raise ValueError(f"{where}.d_gain is {str(d_gain)[:40]}; expected an integer from 0 to {MOST_GAIN}")
    bounds = {"zero": (-math.tau, math.tau), "stiffness": (1e-6, 100.0), "damping": (0.0, 1000.0)}
    numbers = {field: _number(entry[field], f"{where}.{field}", *bounds[field]) for field in bounds if field in entry}
    return JointMounting(sign, d_gain=d_gain, **numbers)


def _number(value: Any, name: str, low: float, high: float) -> float:
    if type(value) not in (int, float) or not low <= value <= high:
        raise ValueError(f"{name} is {str(value)[:40]}; expected a number from {low:g} to {high:g}")
    return float(value)


def write_robot_file(path: Path, file: RobotFile) -> None:
    """As ``read_robot_file`` reads it."""
    lines = [f"torque_limit = {file.torque_limit!r}"]
    if file.bus_watchdog is not None:
        lines.append(f"bus_watchdog = {str(file.bus_watchdog).lower()}")
    for name, joint in file.joints.items():
        values = {field: value for field, value in asdict(joint).items() if value is not None}
        lines += ["", f"[joints.{name}]", *(f"{field} = {value!r}" for field, value in values.items())]
    write(path, "\n".join(lines) + "\n")
