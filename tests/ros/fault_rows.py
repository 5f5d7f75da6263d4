"""Faults of signals, by robot: what is injected, the gate's reason, and what its sentence names.

All of them are tried in one process (test_faults_in_process.py). Some of each robot go over DDS, and all of them do
where they are asked for: make release.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

Row = tuple[str, str, str]

QUADROTOR: list[Row] = [
    # fault, what the gate must say, and about what
    ("drop odom", "SIGNAL_STALE", "position"),
    ("drop imu", "SIGNAL_STALE", "angular_velocity"),
    ("drop *", "SIGNAL_STALE", "position"),
    ("freeze odom", "SIGNAL_FROZEN", "position"),
    ("freeze imu", "SIGNAL_FROZEN", "angular_velocity"),
    ("repeat odom", "SIGNAL_STALE", "position"),
    ("repeat imu", "SIGNAL_STALE", "angular_velocity"),
    ("delay odom 0.05", "SIGNAL_STALE", "position"),
    ("delay imu 0.05", "SIGNAL_STALE", "angular_velocity"),
    ("rate odom 5", "SIGNAL_STALE", "position"),
    ("rate imu 5", "SIGNAL_STALE", "angular_velocity"),
    ("nan odom", "SIGNAL_NOT_FINITE", "position"),
    ("nan imu", "SIGNAL_NOT_FINITE", "angular_velocity"),
    ("nan setpoint/pose", "SIGNAL_NOT_FINITE", "position_setpoint"),
    ("nan setpoint/twist", "SIGNAL_NOT_FINITE", "linear_velocity_setpoint"),
    ("inf odom", "SIGNAL_NOT_FINITE", "position"),
    ("inf imu", "SIGNAL_NOT_FINITE", "angular_velocity"),
    ("range odom", "SIGNAL_RANGE", "position"),
    ("range imu", "SIGNAL_RANGE", "angular_velocity"),
    ("bias imu 100", "SIGNAL_RANGE", "angular_velocity"),
    ("range setpoint/pose", "SIGNAL_RANGE", "position_setpoint"),
    ("norm odom", "SIGNAL_RANGE", "orientation"),
    ("quaternion odom", "HALTED", "order x, y, z, w"),
    ("freeze odom:pose.pose.orientation", "SIGNAL_FROZEN", "orientation"),
    ("freeze odom:twist.twist.linear", "SIGNAL_STALE", "'linear_velocity' repeats bit for bit"),
    ("nan odom:pose.pose.orientation", "SIGNAL_NOT_FINITE", "orientation"),
    ("nan odom:twist.twist.linear", "SIGNAL_NOT_FINITE", "linear_velocity"),
    ("range odom:pose.pose.orientation", "SIGNAL_RANGE", "orientation"),
    ("range odom:twist.twist.linear", "SIGNAL_RANGE", "linear_velocity"),
    ("rename imu", "SIGNAL_STALE", "frame_id is 'odom'"),
    ("future odom 1", "CLOCK", "position"),
    ("future imu 1", "CLOCK", "angular_velocity"),
    ("future * 3600", "CLOCK", "position"),
    ("past odom 1", "SIGNAL_STALE", "position"),
    ("past * 3600", "SIGNAL_STALE", "position"),
    ("unstamped imu", "SIGNAL_STALE", "angular_velocity"),
    ("garbage odom", "", ""),
    ("garbage imu", "", ""),
    ("huge odom", "SIGNAL_STALE", "position"),
]
ARM: list[Row] = [
    # fault, what the gate must say, and about what
    ("drop joint_states", "SIGNAL_STALE", "joint_position"),
    ("freeze joint_states", "SIGNAL_FROZEN", "joint_position"),
    ("repeat joint_states", "SIGNAL_STALE", "joint_position"),
    ("delay joint_states 0.2", "SIGNAL_STALE", "joint_position"),
    ("rate joint_states 10", "SIGNAL_STALE", "joint_position"),
    ("nan joint_states", "SIGNAL_NOT_FINITE", "joint_position"),
    ("inf joint_states", "SIGNAL_NOT_FINITE", "joint_position"),
    ("range joint_states", "SIGNAL_RANGE", "joint_position"),
    ("rename joint_states", "SIGNAL_STALE", "no element"),
    ("short joint_states", "SIGNAL_STALE", "joint_states"),
    ("huge joint_states", "SIGNAL_STALE", "joint_position"),
    ("future joint_states 1", "CLOCK", "joint_position"),
    ("past joint_states 1", "SIGNAL_STALE", "joint_position"),
    ("unstamped joint_states", "SIGNAL_STALE", "joint_position"),
    ("garbage joint_states", "", ""),
    ("nan cube/pose", "SIGNAL_NOT_FINITE", "cube_position"),
    ("range cube/pose", "SIGNAL_RANGE", "cube_position"),
    ("future cube/pose 1", "CLOCK", "cube_position"),
    ("nan setpoint/cube", "SIGNAL_NOT_FINITE", "cube_position_setpoint"),
    ("drop *", "SIGNAL_STALE", "joint_position"),
]
CAR: list[Row] = [
    ("drop scan", "SIGNAL_STALE", "scan"),
    ("drop odom", "SIGNAL_STALE", "wheel_speed"),
    ("drop imu", "SIGNAL_STALE", "yaw_rate"),
    ("drop *", "SIGNAL_STALE", "scan"),
    ("freeze scan", "SIGNAL_FROZEN", "scan"),
    ("freeze imu", "SIGNAL_FROZEN", "yaw_rate"),
    ("repeat scan", "SIGNAL_STALE", "scan"),
    ("repeat odom", "SIGNAL_STALE", "wheel_speed"),
    ("delay scan 0.25", "SIGNAL_STALE", "scan"),
    ("delay odom 0.25", "SIGNAL_STALE", "wheel_speed"),
    ("rate scan 10", "SIGNAL_STALE", "scan"),
    ("nan scan:ranges", "SIGNAL_STALE", "is not a number"),
    ("nan scan", "SIGNAL_STALE", "scan"),
    ("inf scan:ranges", "SIGNAL_FROZEN", "scan"),  # one such scan may be: nothing is within range (REP 117)
    ("range scan:angle_increment 0", "SIGNAL_STALE", "expected some, in steps other than 0"),
    ("range scan:angle_increment 0.001", "SIGNAL_STALE", "and angle_max is"),
    ("short scan", "SIGNAL_STALE", "no beam at"),
    ("huge scan", "SIGNAL_STALE", "scan"),
    ("garbage scan", "", ""),
    ("nan odom", "SIGNAL_NOT_FINITE", "wheel_speed"),
    ("inf odom", "SIGNAL_NOT_FINITE", "wheel_speed"),
    ("range odom", "SIGNAL_RANGE", "wheel_speed"),
    ("nan imu", "SIGNAL_NOT_FINITE", "yaw_rate"),
    ("bias imu 100", "SIGNAL_RANGE", "yaw_rate"),
    ("rename imu", "SIGNAL_STALE", "frame_id is 'odom'"),
    ("future scan 1", "CLOCK", "scan"),
    ("past scan 1", "SIGNAL_STALE", "scan"),
    ("unstamped scan", "SIGNAL_STALE", "scan"),
]
BASE: list[Row] = [
    ("drop scan", "SIGNAL_STALE", "scan"),
    ("drop odom", "SIGNAL_STALE", "position"),
    ("drop imu", "SIGNAL_STALE", "yaw_rate"),
    ("freeze scan", "SIGNAL_FROZEN", "scan"),
    ("nan scan:ranges", "SIGNAL_STALE", "is not a number"),
    ("nan odom", "SIGNAL_NOT_FINITE", "position"),
    ("norm odom", "SIGNAL_RANGE", "orientation"),
    ("delay odom 0.6", "SIGNAL_STALE", "position"),
    ("future imu 1", "CLOCK", "yaw_rate"),
    ("nan setpoint/pose", "SIGNAL_NOT_FINITE", "position_setpoint"),
]
OVER_DDS = {
    "drop *", "freeze imu", "repeat odom", "delay imu 0.05", "nan setpoint/pose", "quaternion odom",
    "freeze odom:pose.pose.orientation", "future odom 1", "unstamped imu", "garbage odom", "huge odom",
    "delay joint_states 0.2", "rename joint_states", "garbage joint_states",
    "drop scan", "inf scan:ranges", "huge scan", "delay odom 0.6",
}  # fmt: skip
"""One of each kind: those whose way through DDS, threads and clocks differs."""


def over_dds(rows: Sequence[Row]) -> list[Any]:
    """Parameters of a test that runs the processes: the others are for a release."""
    rest = pytest.mark.release
    return [
        pytest.param(*row, id=row[0].replace("*", "all"), marks=() if row[0] in OVER_DDS else (rest,)) for row in rows
    ]
