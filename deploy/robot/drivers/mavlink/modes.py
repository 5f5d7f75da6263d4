"""PX4's modes, as its heartbeats and MAV_CMD_DO_SET_MODE have them (PX4-Autopilot, px4_custom_mode.h): main and sub."""

from __future__ import annotations

Mode = tuple[int, int]
MANUAL, POSITION, OFFBOARD = (1, 0), (3, 0), (6, 0)
HOLD, RETURN, LAND = (4, 3), (4, 5), (4, 6)
NAMES = {
    MANUAL: "MANUAL", (2, 0): "ALTCTL", POSITION: "POSCTL", OFFBOARD: "OFFBOARD", (5, 0): "ACRO", (7, 0): "STABILIZED",
    (4, 1): "READY", (4, 2): "TAKEOFF", HOLD: "HOLD", (4, 4): "MISSION", RETURN: "RETURN", LAND: "LAND",
}  # fmt: skip


def mode_name(mode: Mode) -> str:
    """As PX4's messages call it."""
    return NAMES.get(mode, f"{mode[0]}.{mode[1]}")


def custom_mode(mode: Mode) -> int:
    """Of a heartbeat."""
    return mode[0] << 16 | mode[1] << 24
