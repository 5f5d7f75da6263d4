"""Why PX4 refuses something: its texts (STATUSTEXT) and its events (EVENT, message 410).

Texts go to ground stations alone, and from 1.14 on they say no more of a refused arming than "Resolve system health
failures first". Which check failed comes as an event, to everybody, when it changes and after MAV_CMD_RUN_PREARM_CHECKS
(PX4-Autopilot: HealthAndArmingChecks/Common.cpp, Report::report; Commander.cpp; mavlink_events.cpp). An event is a
number, the hash of a name (px4_platform_common/events.h), with arguments: the first of a check has a bit for each mode
that it forbids. ``REASONS`` has the checks that can forbid OFFBOARD; other events are shown by their number.
"""

from __future__ import annotations

import struct
from typing import Any

from robo_rl.deploy.robot.drivers.mavlink.link import mavlink
from robo_rl.files.escaping import printable

AUTOPILOT_EVENTS = 1 << 24
"""Upper byte of the number of an event of the autopilot."""
OFFBOARD_BIT = 14
"""NAVIGATION_STATE_OFFBOARD (vehicle_status.msg)."""
WARNING, INFO = 4, 6
"""External log levels (px4_platform_common/events.h), the lower four bits of ``log_levels``."""
MOST, LENGTH = 5, 150
"""Reasons that are kept, and letters of each."""
REASONS = {
    "commander_arm_denied_calibrating": "it is being calibrated",
    "commander_arm_denied_resolve_failures": "checks before arming fail",
    "commander_arm_denied_throttle_center": "the remote's throttle is above its centre",
    "commander_arm_denied_throttle_high": "the remote's throttle is high",
    "commander_arm_denied_geofence_rtl": "the geofence's return needs a home position",
    "commander_failsafe_enter_generic": "a failsafe was activated",
    "commander_failsafe_enter_generic_hold": "a failsafe was activated: it holds its place first",
    "check_avionics_power_high": "the voltage of its electronics is too high",
    "check_avionics_power_low": "the voltage of its electronics is too low",
    "check_avionics_power_missing": "no power module is connected",
    "check_battery_critical": "the battery is nearly empty",
    "check_battery_emergency": "the battery is empty",
    "check_battery_fault": "the battery reports a fault",
    "check_battery_low": "the battery is low",
    "check_battery_missing": "a battery is missing",
    "check_battery_unhealthy": "the battery is unhealthy",
    "check_estimator_gps_fix_too_low": "the GPS has no fix",
    "check_estimator_gps_num_sats_too_low": "the GPS has too few satellites",
    "check_estimator_heading_not_stable": "the estimate of the heading is not valid",
    "check_estimator_hgt_not_stable": "the estimate of the height is not stable",
    "check_estimator_hor_pos_not_stable": "the estimate of the place is not stable",
    "check_estimator_hor_vel_not_stable": "the estimate of the horizontal speed is not stable",
    "check_estimator_mag_interference": "strong magnetic interference",
    "check_estimator_missing_data": "the estimator has not begun",
    "check_estimator_vert_vel_not_stable": "the estimate of the vertical speed is not stable",
    "check_missing_system_power": "its supply is not measured",
    "check_modes_angular_velocity": "the gyroscope gives nothing valid",
    "check_modes_attitude": "there is no valid estimate of the attitude",
    "check_modes_cannot_takeoff": "nothing is armed in this mode",
    "check_modes_global_pos": "there is no valid global position",
    "check_modes_home_position": "there is no home position",
    "check_modes_local_alt": "there is no valid altitude",
    "check_modes_local_pos": "there is no valid position",
    "check_modes_manual_control": "there is no remote control",
    "check_modes_offboard_signal": "no set-points for OFFBOARD come",
    "check_modes_offboard_signal_lost": "no set-points for OFFBOARD come any more",
    "check_rc_dl_no_dllink": "there is no ground station",
    "check_system_arm_auth_failed": "it has no permission to be armed",
    "check_system_flight_term_active": "the flight is terminated (kill switch)",
    "check_system_no_global_pos": "a global position is needed (COM_ARM_WO_GPS)",
    "check_system_no_home_pos": "a home position is needed (COM_ARM_WO_GPS)",
    "check_system_safety_button": "the safety button is to be pressed",
    "check_system_usb_connected": "USB is connected",
}
"""What events mean, by name (PX4-Autopilot, src/modules/commander, 1.13 to 1.17)."""


def number(name: str) -> int:
    """Of an event of the autopilot: 24 bits of the 32-bit FNV-1a hash of its name (events.h, events::ID)."""
    hashed = 0x811C9DC5
    for letter in name.encode():
        hashed = (hashed ^ letter) * 0x01000193 & 0xFFFFFFFF
    return hashed & 0xFFFFFF | AUTOPILOT_EVENTS


NAMES = {number(name): name for name in REASONS}


class Event(mavlink.MAVLink_message):
    """MAVLink's EVENT (common.xml), which pymavlink's dialects lack."""

    id = 410
    msgname = "EVENT"
    fieldnames = ("destination_component", "destination_system", "id", "event_time_boot_ms", "sequence", "log_levels",
                  "arguments")  # fmt: skip
    ordered_fieldnames = (*fieldnames[2:5], *fieldnames[:2], *fieldnames[5:])
    orders = (3, 4, 0, 1, 2, 5, 6)
    lengths = (1, 1, 1, 1, 1, 1, 40)
    crc_extra = 160
    unpacker = struct.Struct("<IIHBBB40B")

    def __init__(self, component: int, system: int, number: int, ms: int, sequence: int, levels: int, arguments: Any):
        super().__init__(410, self.msgname)
        self._fieldnames, self._instance_field, self._instance_offset = list(self.fieldnames), None, -1
        self.destination_component, self.destination_system, self.id = component, system, number
        self.event_time_boot_ms, self.sequence, self.log_levels = ms, sequence, levels
        self.arguments = list(arguments)

    def pack(self, mav: Any, force_mavlink1: bool = False) -> bytes:
        """Numbered, as pymavlink's own messages are."""
        values = [getattr(self, name) for name in self.ordered_fieldnames[:-1]]
        return bytes(self._pack(mav, self.crc_extra, self.unpacker.pack(*values, *self.arguments), force_mavlink1))


mavlink.mavlink_map.setdefault(Event.id, Event)


class Reasons:
    """What PX4 has said of late, of what is wrong."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._events: dict[str, int] = {}
        """The level of each event, by its sentence."""
        self._part = (-1, -1)
        """Number and part of the last text, which may go on: a message takes 50 letters."""

    def hear(self, message: Any) -> None:
        """A message of PX4's; all but STATUSTEXT and EVENT are of no interest."""
        kind = message.get_type()
        if kind == "STATUSTEXT":
            goes_on = self._texts and (message.id, message.chunk_seq) == (self._part[0], self._part[1] + 1)
            self._part = (message.id, message.chunk_seq)
            if goes_on:
                self._texts[-1] = (self._texts[-1] + message.text)[:LENGTH]
            elif message.severity <= WARNING:
                self._texts = [*self._texts, message.text][-MOST:]
            else:
                self._part = (-1, -1)
        elif kind == "EVENT":
            name, level = NAMES.get(message.id, ""), message.log_levels & 15
            (modes,) = struct.unpack_from("<I", bytes(message.arguments))
            matters = bool(modes >> OFFBOARD_BIT & 1) if name.startswith("check_") else level <= WARNING
            if matters and level <= INFO:
                told = REASONS.get(name, f"PX4's event {message.id}")
                self._events = dict([*self._events.items(), (told, level)][-4 * MOST :])

    def forget(self) -> None:
        """What was said before is of something else."""
        self._texts, self._events, self._part = [], {}, (-1, -1)

    def __str__(self) -> str:
        """All of it, the gravest events first; "" if nothing was said."""
        events = sorted(self._events, key=lambda told: self._events[told])[:MOST]
        return "; ".join([printable(text.strip()) for text in self._texts] + events)
