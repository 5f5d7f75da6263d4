"""What must be known of a LeRobotDataset of an arm to learn from it, as one TOML file; and its numbers in rad.

    recording = "../so101-pick"
    robot = "so101"
    rate = 30.0                                  # Hz, fps in meta/info.json
    joints = ["shoulder_pan", ...]               # of each number, by its name in meta/info.json
    units = "percent"                            # or "degrees", "radians"
    calibration = "model"                        # or the name of LeRobot's calibration file, beside this file
    images = "drop"

LeRobot's followers of the SO family record positions of joints, and targets as actions: degrees from the middle
between a joint's stops with ``use_degrees``, else −100 to 100 between the stops; a gripper 0 to 100 (so_follower.py,
motors_bus.py). Which of them it was is not in the data.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from robo_rl.adapters.datasets import Dataset, DatasetError, require
from robo_rl.deploy.robot.drivers.bus_servos.calibration import FEETECH_OFFSET, TURN, JointCalibration, read_calibration
from robo_rl.deploy.robot.drivers.bus_servos.joints import FULL_TURNS, STEP, WIDER
from robo_rl.deploy.robot.drivers.bus_servos.lerobot_units import DEGREES
from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.files.escaping import printable
from robo_rl.files.text import fits
from robo_rl.sim.robots.arm import ArmCard, load_arm
from robo_rl.sim.robots.mechanism import DrivenJoint

BLANK, TOML, MODEL = "?", "policy.toml", "model"
UNITS = ("degrees", "percent", "radians")
STATE, ACTION = "observation.state", "action"
OLD = "main_"
"""What names of an arm's joints begin with in recordings of before LeRobot 0.3."""
KEPT = 64
"""Poses at the beginning and at the end of episodes that a description has at most."""
MOST_HISTORY = 32
ROUNDED = 0.5
"""By which a number between 0 and 100, or −100 and 100, may be outside."""
FIELDS = (
    "recording", "robot", "rate", "joints", "units", "calibration", "images", "history", "flipped", "zero", "episodes"
)  # fmt: skip


@dataclass(frozen=True)
class Recording:
    """A description without blanks."""

    robot: str
    rate: float
    joints: tuple[str, ...]
    units: str
    calibration: str
    history: int = 1
    """Measured positions that the policy sees, with the newest."""
    flipped: tuple[str, ...] = ()
    """Joints that count the other way round than the model's."""
    zero: Mapping[str, float] = field(default_factory=dict)
    """rad, the model's angle where a joint's number is in the middle (of radians: 0)."""
    seconds: float = 1.0
    """Of the longest episode."""
    starts: tuple[tuple[float, ...], ...] = ()
    ends: tuple[tuple[float, ...], ...] = ()
    """rad, poses in which episodes begin and end, joints and gripper."""


def driven(card: ArmCard) -> tuple[DrivenJoint, ...]:
    """The joints from base to tool, and the gripper's."""
    return (*card.joints, *([card.gripper.joint] if card.fingers else []))


def draft(data: Dataset, given: Mapping[str, Any], recording: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The description as far as it is known, and comments on its fields. ``given`` is what the user has said."""
    told: dict[str, Any] = {"recording": recording, "robot": BLANK, "rate": data.fps, "joints": BLANK}
    for name in (STATE, ACTION):
        value = data.columns.get(name)
        good = value is not None and value.dtype.kind == "f" and value.ndim == 2
        require(good, recording, f"column '{name}'", list(data.columns), "positions of joints, and targets as actions")
    named = [joint_names(data.names.get(name, ())) for name in (STATE, ACTION)]
    if named[0] and named[0] == named[1]:
        told["joints"] = list(named[0])
    told |= {"units": BLANK, "calibration": BLANK}
    if data.left_out:
        told["images"] = BLANK
    called, seen = [printable(name)[:40] for name in data.names.get(STATE, ())][:8], list(map(printable, data.left_out))
    old = any(name.startswith(OLD) for name in called)
    reasons = {
        "robot": f"a robot of robo-rl, or PATH/TO/card.toml; the data say '{printable(data.robot)[:60]}'",
        "rate": "Hz, as recorded",
        "joints": f"the joint of each of the {data.columns[STATE].shape[1]} numbers; the data call them {called}",
        "units": '"degrees" (LeRobot\'s use_degrees=true), "percent" (false: -100 to 100 between the stops; a gripper '
        'is 0 to 100 with both), or "radians" of the model; the data don\'t say'
        + ("; before LeRobot 0.3 it was degrees" if old else ""),
        "calibration": 'LeRobot\'s calibration file of the arm that was recorded, beside this file, or "model": each '
        "joint was calibrated from stop to stop, as the model's"
        + ("; names are those of before LeRobot 0.3, whose zeros were others: say them in [zero]" if old else ""),
        "images": f'"drop": learn without {seen[:4]}',
        "history": "measured positions that the policy sees, with the newest",
    }
    told["history"] = 1
    return {**told, **{key: value for key, value in given.items() if key in FIELDS and value != BLANK}}, reasons


def joint_names(names: Sequence[str]) -> tuple[str, ...]:
    """Joints of a column's names: "shoulder_pan.pos" and "main_shoulder_pan" are shoulder_pan."""
    return tuple(name.removesuffix(".pos").removeprefix(OLD) for name in names)


def parse(data: Mapping[str, Any], where: str) -> Recording:
    """The description in a parsed TOML. DatasetError names the field, its value and what was expected."""
    with fits(where, "the form of a recording's description", DatasetError):
        return _parsed(data, where)


def _parsed(data: Mapping[str, Any], where: str) -> Recording:
    for key in data:
        require(key in FIELDS, where, key, data[key], f"one of the fields {list(FIELDS)}")
    images = data.get("images", "drop")
    require(
        images == "drop", where, "images", images,
        '"drop": a policy that sees images needs a camera of the contract, which a recording does not describe',
    )  # fmt: skip
    text = {key: data.get(key) for key in ("robot", "units", "calibration")}
    for key, value in text.items():
        require(isinstance(value, str) and value != BLANK, where, key, value, "a text")
    require(text["units"] in UNITS, where, "units", text["units"], f"one of {list(UNITS)}")
    file = str(text["calibration"])
    require(
        os.path.basename(file) == file, where, "calibration", file, 'the name of a file beside this one, or "model"'
    )
    rate, history = data.get("rate"), data.get("history", 1)
    require(_number(rate) and 1 <= float(rate or 0) <= 1000, where, "rate", rate, "1 to 1000 Hz")
    good = type(history) is int and 1 <= history <= MOST_HISTORY
    require(good, where, "history", history, f"a whole number, 1 to {MOST_HISTORY}")
    joints, flipped, zero = data.get("joints"), data.get("flipped", []), data.get("zero", {})
    good = isinstance(joints, list) and all(isinstance(x, str) for x in joints) and len(set(joints)) == len(joints) > 0
    require(good, where, "joints", joints, "different names of joints")
    assert isinstance(joints, list)
    require(isinstance(flipped, list) and set(flipped) <= set(joints), where, "flipped", flipped, "names out of joints")
    good = isinstance(zero, Mapping) and set(zero) <= set(joints) and all(map(_number, zero.values()))
    require(good, where, "zero", zero, "rad by names out of joints")
    episodes = data.get("episodes", {})
    require(isinstance(episodes, Mapping), where, "episodes", episodes, "a table")
    seconds = episodes.get("seconds", 1.0)
    require(_number(seconds) and 0 < seconds <= 3600, where, "episodes.seconds", seconds, "up to 3600 s")
    poses = []
    for key in ("starts", "ends"):
        rows = episodes.get(key, [])
        good = isinstance(rows, list) and len(rows) <= KEPT and all(_pose(row, len(joints)) for row in rows)
        require(good, where, f"episodes.{key}", rows, f"up to {KEPT} poses of {len(joints)} angles")
        poses.append(tuple(tuple(map(float, row)) for row in rows))
    return Recording(
        str(text["robot"]), float(rate or 0), tuple(joints), str(text["units"]), file, history, tuple(flipped),
        {name: float(value) for name, value in zero.items()}, float(seconds), *poses,
    )  # fmt: skip


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _pose(row: Any, count: int) -> bool:
    return isinstance(row, list) and len(row) == count and all(map(_number, row))


def angles(data: Dataset, told: Recording, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """(s, J) rad, measured and commanded, in the order of ``driven``. ``folder`` is the description's.

    DatasetError where joints don't fit the robot, or are measured where its joints can't be.
    """
    card = load_arm(told.robot)
    joints, where = driven(card), str(folder / TOML)
    names = [joint.name for joint in joints]
    require(set(told.joints) == set(names), where, "joints", list(told.joints), f"those of {card.name}, {names}")
    gripper = names[-1] if card.fingers else ""
    calibration = _calibration(told, folder, names)
    found = []
    for name in (STATE, ACTION):
        column = data.columns[name]
        own = joint_names(data.names.get(name, ()))
        order = own if set(own) == set(names) else told.joints
        require(
            column.shape[1] == len(names), where, f"column '{name}'", f"{column.shape[1]} numbers",
            f"{len(names)}, one for each joint of {card.name}",
        )  # fmt: skip
        parts = [
            _angle(told, joint, column[:, order.index(joint.name)].astype(float), calibration.get(joint.name), gripper)
            for joint in joints
        ]
        found.append(np.stack(parts, 1))
        if told.units != "radians":
            _require_between_stops(name, column, order, gripper, told, where)
    _require_possible(found[0], joints, data, told, where)
    return found[0], found[1]


def _calibration(told: Recording, folder: Path, names: Sequence[str]) -> Mapping[str, JointCalibration]:
    if told.calibration == MODEL or told.units == "radians":
        return {}
    try:
        found = read_calibration(folder / told.calibration, FEETECH_OFFSET)
    except DriverError as error:
        raise DatasetError(str(error)) from None
    lacking = sorted(set(names) - set(found))
    require(not lacking, str(folder / told.calibration), "joints", list(found), f"{lacking} too")
    return found


def _angle(
    told: Recording, joint: DrivenJoint, value: np.ndarray, calibration: JointCalibration | None, gripper: str
) -> np.ndarray:
    """rad (s,) of what LeRobot recorded of a joint."""
    sign = -1.0 if joint.name in told.flipped else 1.0
    if told.units == "radians":
        return told.zero.get(joint.name, 0.0) + sign * value
    middle = told.zero.get(joint.name, 0.5 * (joint.lower + joint.upper))
    half = 0.5 * (joint.upper - joint.lower)
    if calibration is not None:
        half = calibration.half_range
    elif joint.name in FULL_TURNS:
        half = 0.5 * STEP * (TURN - 1)
    if joint.name == gripper:
        return middle + sign * half * (value / 50.0 - 1.0)
    if told.units == "percent":
        return middle + sign * half * value / 100.0
    reversed_here = calibration is not None and calibration.drive_mode  # which LeRobot applies to percent alone
    return middle + (-sign if reversed_here else sign) * STEP * value / DEGREES


def _require_between_stops(
    name: str, column: np.ndarray, order: Sequence[str], gripper: str, told: Recording, where: str
) -> None:
    """LeRobot keeps what is between the stops within 0 and 100, or −100 and 100 (motors_bus.py, ``_normalize``)."""
    for i, joint in enumerate(order):
        low = 0.0 if joint == gripper else -100.0
        if told.units == "degrees" and low:
            continue
        least, most = float(column[:, i].min()), float(column[:, i].max())
        require(
            low - ROUNDED <= least and most <= 100.0 + ROUNDED, where, f"units '{told.units}': {name} of '{joint}'",
            f"{least:.4g} to {most:.4g}", f"{low:g} to 100: other units, or another order of joints",
        )  # fmt: skip


def _require_possible(
    measured: np.ndarray, joints: Sequence[DrivenJoint], data: Dataset, told: Recording, where: str
) -> None:
    for i, joint in enumerate(joints):
        beyond = (measured[:, i] < joint.lower - WIDER) | (measured[:, i] > joint.upper + WIDER)
        if beyond.any():
            row = int(np.argmax(beyond))
            episode = int(data.episode[row])
            raise DatasetError(
                f"{where}: with units = '{told.units}' and calibration = '{told.calibration}' joint '{joint.name}' is "
                f"at {measured[row, i]:.2f} rad in episode {episode}, control step "
                f"{row - int(np.argmax(data.episode == episode))}, and in {100 * beyond.mean():.1f} % of all; expected "
                f"{joint.lower:g} to {joint.upper:g} rad: other units, the arm's own calibration file, or [zero]"
            )


def poses(rows: np.ndarray) -> list[list[float]]:
    """Some of the poses (e, J), for a description."""
    chosen = rows[np.unique(np.linspace(0, len(rows) - 1, min(KEPT, len(rows))).round().astype(int))]
    return [[round(float(x), 4) for x in row] for row in chosen]
