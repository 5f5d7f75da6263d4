"""A vehicle with PX4, flown in the mode OFFBOARD by body rates and a thrust (SET_ATTITUDE_TARGET).

PX4 flies by set-points as long as they come, and does what COM_OBL_RC_ACT says when none has come for COM_OF_LOSS_T. So
set-points are sent from the beginning on, and silence needs no process of ours. Until that time is over PX4 goes on
with the last *rates*: hence ``LOSS_MAX``. Whoever takes the vehicle out of OFFBOARD, a pilot or a failsafe, has it:
nothing is sent any more.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from robo_rl.contract import Contract
from robo_rl.deploy.robot.drivers.driver import DriverError, Health, Identity, Mode, Samples, Silence
from robo_rl.deploy.robot.drivers.mavlink import frames
from robo_rl.deploy.robot.drivers.mavlink.events import Reasons
from robo_rl.deploy.robot.drivers.mavlink.failsafe import PARAMETERS, Failsafe, encoded, number
from robo_rl.deploy.robot.drivers.mavlink.link import Link, mavlink
from robo_rl.deploy.robot.drivers.mavlink.mapping import FASTEST, GRAVITY, enough_thrust, within_hardware
from robo_rl.deploy.robot.drivers.mavlink.modes import HOLD, LAND, OFFBOARD, mode_name
from robo_rl.deploy.robot.drivers.mavlink.odometry import estimate
from robo_rl.deploy.robot.drivers.mavlink.robot_file import VehicleFile
from robo_rl.deploy.robot.drivers.serial_port import Port
from robo_rl.deploy.robot.drivers.ticks import Ticks

MEASURED = ("position", "orientation", "linear_velocity", "angular_velocity")
FINDING, ASKING, TRIES = 3.0, 0.3, 5
"""s for the first heartbeat, s for an answer, and questions."""
PROVEN, GAP = 1.2, 0.3
"""s of set-points before OFFBOARD is asked for, and s between two after which they count anew: PX4 wants more than one
second of them, at 2 Hz or more."""
AGAIN, LONGEST = 0.2, 3.0
"""s between two requests to fly by set-points, and s until one has to be answered."""
BEAT, SILENT = 1.0, 3.0
"""s between heartbeats of ours, and without any of PX4's."""
LANDING_AGAIN, LEAVING = 0.1, 1.0
"""s between two requests to land, and s for them when the program ends in the air."""
SMOOTH = 0.02
"""Part by which a command changes what is taken to be the thrust of hovering."""
JUMP = 0.5
"""m by which an estimate may be set right while it flies."""
OFF, PERSISTENT = 1.5, 0.25
"""rad/s by which the vehicle may turn otherwise than commanded, and s."""
MEASURING, ENOUGH = 1.0, 0.9
"""s for which the rate of odometry is measured, and the part of the policy's rate that it has to have."""
IGNORE_ATTITUDE = 128
"""type_mask of SET_ATTITUDE_TARGET: attitude is not given, rates and thrust are."""
ON_GROUND = 1
"""MAV_LANDED_STATE_ON_GROUND"""
ORDERS = {
    mavlink.MAV_CMD_DO_SET_MODE: "fly by set-points",
    mavlink.MAV_CMD_COMPONENT_ARM_DISARM: "be armed",
}
GROUND_BEAT = mavlink.MAVLink_heartbeat_message(
    mavlink.MAV_TYPE_GCS, mavlink.MAV_AUTOPILOT_INVALID, 0, 0, mavlink.MAV_STATE_ACTIVE, 3
)
STATION = mavlink.MAV_COMP_ID_MISSIONPLANNER


class Px4:
    """See the module's text, and ``robo_rl.deploy.robot.drivers.driver.Driver``."""

    silence = Silence.STOPS
    guard = "PX4's own failsafe acts when no set-points come (COM_OF_LOSS_T, COM_OBL_RC_ACT)"

    def __init__(
        self, port: Port, contract: Contract, file: VehicleFile, clock: Callable[[], float] = time.monotonic
    ) -> None:
        within_hardware(contract)
        self.link, self.file, self._now = Link(port), file, clock
        self._contract = contract
        names = {signal.name for signal in contract.signals}
        self.measured = tuple(name for name in MEASURED if name in names)
        self._ticks, self._samples = Ticks(), dict[str, tuple[np.ndarray, int]]()
        self._given: dict[str, tuple[np.ndarray, int]] = {}
        """Of ``_samples``, those of the last cycle in which nothing was wrong."""
        self._beaten_by = 1e9
        self._parameters: dict[str, float] = {}
        self._acks: dict[int, int] = {}
        self._reasons = Reasons()
        self._heartbeat: Any = None
        self._version: Any = None
        self._came = self._begun = self._beaten = self._asked = self._came_at = self._sent = self._enabled_at = -1e9
        self._landed, self._battery, self._resets, self._hover = ON_GROUND, 1.0, -1, 0.0
        self._problems: tuple[str, ...] = ()
        self._lasting: dict[str, str] = {}
        """Problems that end the session, by what they are of."""
        self._wanted, self._off_since = np.zeros(3), -1.0
        self._enabled = self._offboard = self._landing = self._taken = False
        self._refused = ""
        self._ground, self._speaks_for_ground = Link(port, STATION, 255), False
        """Texts of PX4 are for ground stations alone; it is spoken for one unless a failsafe waits for its silence."""
        self._cycles = self._without = self._strange = self._odometries = 0
        self._unreadable = ""
        """Why odometry could not be read, a sentence."""

    # --- before it flies --------------------------------------------------------------------------------------------

    def connect(self) -> Identity:
        """Find the autopilot, and what of it matters; begin to send set-points that mean nothing yet."""
        self._find()
        asked = self._ask(lambda: self._request(mavlink.MAVLINK_MSG_ID_AUTOPILOT_VERSION), lambda: self._version)
        failsafe = self._read_parameters()
        failsafe.check()
        self._speaks_for_ground = not failsafe.ground_station_needed
        if not 0.1 <= self.hover_thrust <= 0.9:
            raise DriverError(
                f"MPC_THR_HOVER is {self.hover_thrust:.2f}; expected the part of thrust that it hovers at"
            )
        enough_thrust(self._contract, self.hover_thrust)
        for message, interval in ((mavlink.MAVLINK_MSG_ID_ODOMETRY, 0.5 * self._contract.control_period),
                                  (mavlink.MAVLINK_MSG_ID_EXTENDED_SYS_STATE, 0.1),
                                  (mavlink.MAVLINK_MSG_ID_SYS_STATUS, 0.5)):  # fmt: skip
            self._stream(message, max(interval, 1 / FASTEST))
        if not self._wait(lambda: bool(self._samples), FINDING):
            raise DriverError(self._unreadable or "PX4 sends no odometry; does its estimator know where it is?")
        rate = self._measure_rate()
        details = {"hover thrust": f"{self.hover_thrust:.2f}", "battery": f"{100 * self._battery:.0f} %",
                   "odometry": f"{rate:.0f} Hz", "without set-points": failsafe.text}  # fmt: skip
        details |= {"clock": self._ticks.remark} if self._ticks.remark else {}
        if asked:
            version = self._version.flight_sw_version
            details["firmware"] = ".".join(str(version >> shift & 255) for shift in (24, 16, 8))
            details["uid"] = f"{self._version.uid:x}"
        return Identity("PX4", details)

    @property
    def hover_thrust(self) -> float:
        """Part of full thrust."""
        return self.file.hover_thrust or self._parameters.get("MPC_THR_HOVER", 0.0)

    def _find(self) -> None:
        if not self._wait(lambda: self._heartbeat is not None, FINDING):
            raise DriverError("no autopilot is heard on this port; is it on, and does it send to this computer?")
        beat = self._heartbeat
        if beat.autopilot != mavlink.MAV_AUTOPILOT_PX4:
            raise DriverError(f"the autopilot is of type {beat.autopilot}; expected PX4, which is 12")
        if beat.base_mode & mavlink.MAV_MODE_FLAG_SAFETY_ARMED:
            raise DriverError("the vehicle is armed; land and disarm it first")

    def _read_parameters(self) -> Failsafe:
        for name, needed in PARAMETERS.items():
            told = self._ask(functools.partial(self._parameter, name), functools.partial(self._knows, name))
            if needed and not told:
                raise DriverError(f"PX4 does not tell its parameter {name}")
        return Failsafe.of(self._parameters)

    def _measure_rate(self) -> float:
        """Hz of odometry. DriverError where the line or the autopilot gives less than the policy needs."""
        before, begun = self._odometries, self._now()
        self._wait(lambda: False, MEASURING)
        rate, wanted = (self._odometries - before) / (self._now() - begun), 1.0 / self._contract.control_period
        if rate < ENOUGH * wanted:
            raise DriverError(
                f"PX4 sends odometry {rate:.0f} times a second, the policy needs {wanted:.0f}: give the line "
                "921600 baud (SER_TEL2_BAUD) and all of it to MAVLink (MAV_1_MODE 2, onboard; MAV_1_RATE 80000)"
            )
        return rate

    def repair(self) -> list[str]:
        """Set the failsafe parameters that ``connect`` would refuse, on the ground; a sentence for each. DriverError
        where PX4 does not take one.
        """
        self._find()
        told = []
        for name, value in self._read_parameters().wrong.items():
            before = self._parameters.pop(name)
            kind, bits = encoded(name, value)
            setting = mavlink.MAVLink_param_set_message(self.link.system, 1, name.encode(), bits, kind)
            self._ask(functools.partial(self.link.send, setting), functools.partial(self._knows, name))
            if (found := self._parameters.get(name)) is None or abs(found - value) > 1e-4:
                raise DriverError(f"PX4 does not take {name} = {value:g}; set it by QGroundControl")
            told.append(f"{name} was {before:g}, and is {value:g}")
        return told

    def enable(self) -> None:
        """OFFBOARD and armed, on the ground: it flies by what is sent from now on. Takes up to some seconds."""
        if self._problems:
            raise DriverError("; ".join(self._problems))
        if self._offboard:
            return
        if self._landed != ON_GROUND:
            raise DriverError("PX4 is not sure that the vehicle is on the ground; put it there")
        self._hover = self.hover_thrust
        self._enabled, self._enabled_at, self._refused = True, self._now(), ""
        self._acks.clear()
        self._reasons.forget()
        if not self._wait(self._taken_over, PROVEN + LONGEST + AGAIN) or self._refused:
            self._command(mavlink.MAV_CMD_COMPONENT_ARM_DISARM, (0,))
            self._command(mavlink.MAV_CMD_RUN_PREARM_CHECKS, ())
            self._wait(lambda: False, ASKING)
            why, self._refused, self._enabled = self._refused or "PX4 does not answer", "", False
            raise DriverError(why + self._because())

    def _taken_over(self) -> bool:
        """Whether PX4 flies by set-points, or refuses to; one that means nothing is sent."""
        self._setpoint(np.zeros(3), 0.0)
        self._take()
        return self._offboard or bool(self._refused)

    def disable(self) -> None:
        """Disarmed on the ground; in the air it lands."""
        if not self._enabled or self._taken:
            return
        if self._landed == ON_GROUND:
            self._command(mavlink.MAV_CMD_COMPONENT_ARM_DISARM, (0,))
            self._command(mavlink.MAV_CMD_DO_SET_MODE, (mavlink.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED, *HOLD))
            self._enabled = False
            return
        self._wait(self._lands, LEAVING)

    def _lands(self) -> bool:
        """Whether PX4 does by now what it is asked again."""
        self._land()
        mode = self._heartbeat.custom_mode
        return self._taken or (mode >> 16 & 255, mode >> 24 & 255) == LAND

    def _take(self) -> None:
        """Ask PX4 to fly by set-points, once enough have come, and then to be armed; again where it does not hear."""
        now = self._now()
        if now - self._begun < PROVEN:
            return
        results = {command: self._acks.get(command) for command in ORDERS}
        self._offboard = all(result == mavlink.MAV_RESULT_ACCEPTED for result in results.values())
        if self._offboard:
            self._came_at = now
            return
        refused = [command for command, r in results.items() if r not in (None, mavlink.MAV_RESULT_ACCEPTED)]
        if now - self._enabled_at > PROVEN + LONGEST:
            what = f"PX4 refuses to {ORDERS[refused[0]]}" if refused else f"PX4 does not answer for {LONGEST:g} s"
            self._refused = self._refused or what
        elif now - self._asked > AGAIN:
            self._asked = now
            for command in refused:  # it may have had a reason that passes
                del self._acks[command]
            if results[mavlink.MAV_CMD_DO_SET_MODE] != mavlink.MAV_RESULT_ACCEPTED:
                self._command(mavlink.MAV_CMD_DO_SET_MODE, (mavlink.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED, *OFFBOARD))
            else:
                self._command(mavlink.MAV_CMD_COMPONENT_ARM_DISARM, (1,))

    # --- every cycle ------------------------------------------------------------------------------------------------

    def read(self, now: int) -> Samples:
        """The newest signals. While something is wrong they get no newer, and the gate stops the vehicle."""
        self._cycles += 1
        before = self._came
        try:
            self._listen(0.0, now)
            self._beat()
            if not self._enabled:
                self._setpoint(np.zeros(3), 0.0)
            self._problems = (*self._lasting.values(), *self._wrong())
        except OSError as error:
            self._problems = (f"the port is gone ({error.strerror or error})",)
        self._without += self._came == before
        if self._problems:
            return dict(self._given)
        self._given = {name: self._samples[name] for name in self.measured if name in self._samples}
        return dict(self._given)

    def write(self, commands: Mapping[str, np.ndarray], mode: Mode) -> None:
        """The policy's rates and thrust. In any other mode it stands, or lands by itself."""
        if self._taken:
            return
        try:
            if mode is Mode.POLICY and not self._landing:
                self._wanted = np.asarray(commands["body_rate"], float)
                part = float(commands["thrust"][0]) / GRAVITY * self.hover_thrust
                self._hover += SMOOTH * (part - self._hover) * (self._landed != ON_GROUND)
                self._setpoint(self._wanted, part)
            elif self._landed == ON_GROUND:
                self._wanted = np.zeros(3)
                self._setpoint(self._wanted, 0.0)
            else:
                self._land()
        except OSError as error:  # the next read tells the gate
            self._problems = (f"the port is gone ({error.strerror or error})",)

    def health(self) -> Health:
        """What is wrong, and counters."""
        figures = {
            "cycles": float(self._cycles), "cycles without odometry": float(self._without),
            "damaged messages": float(self.link.damaged), "messages of others": float(self.link.foreign),
            "messages of other dialects": float(self.link.unknown), "strange messages": float(self._strange),
            "battery %": 100 * self._battery, "clock's rate": self._ticks.rate,
        }  # fmt: skip
        return Health(self._problems, figures)

    def close(self) -> None:
        """A vehicle in the air lands."""
        with contextlib.suppress(OSError, DriverError):
            self.disable()
        self.link.port.close()

    # --- what comes -------------------------------------------------------------------------------------------------

    def _listen(self, timeout: float, now: int) -> None:
        for message in self.link.read(timeout):
            kind = message.get_type()
            if kind == "ODOMETRY":
                self._odometry(message, now)
            elif kind == "HEARTBEAT":
                self._mode(message)
            elif kind == "EXTENDED_SYS_STATE":
                self._landed = message.landed_state
            elif kind == "SYS_STATUS":
                self._battery = message.battery_remaining / 100 if message.battery_remaining >= 0 else 1.0
            elif kind == "COMMAND_ACK":
                self._acks[message.command] = message.result
            elif kind == "PARAM_VALUE":
                self._parameters[message.param_id] = number(message)
            elif kind == "AUTOPILOT_VERSION":
                self._version = message
            else:
                self._reasons.hear(message)

    def _odometry(self, message: Any, now: int) -> None:
        try:
            given = estimate(message)
        except ValueError as error:
            self._strange, self._unreadable = self._strange + 1, str(error)
            return
        if not self._ticks.new(message.time_usec // 1000 % (1 << 32)):
            return
        self._odometries += 1
        self._came = self._now()
        stamp = now - round(1e6 * (self._came - self._ticks.sent(self._came)))
        if self._enabled and message.reset_counter != self._resets and "position" in self._samples:
            jump = float(np.linalg.norm(given["position"] - self._samples["position"][0]))
            if jump > JUMP:
                self._lasting["estimate"] = f"PX4's estimator set itself right by {jump:.1f} m in flight"
        self._resets = message.reset_counter
        self._samples = {name: (np.array(given[name], np.float32), stamp) for name in self.measured}
        self._follow(given["angular_velocity"])

    def _mode(self, message: Any) -> None:
        """Heartbeats tell whether PX4 still flies by what we send."""
        self._heartbeat, self._beaten_by = message, self._now()
        if not self._offboard or self._now() - self._came_at < SILENT / 3:
            return  # of the time before it flew by set-points, perhaps
        armed = bool(message.base_mode & mavlink.MAV_MODE_FLAG_SAFETY_ARMED)
        mode = (message.custom_mode >> 16 & 255, message.custom_mode >> 24 & 255)
        if not armed:
            self._taken = True
            self._lasting["armed"] = "PX4 has disarmed" + self._because()
        elif mode != OFFBOARD and not (self._landing and mode == LAND):
            self._taken = True
            self._lasting["mode"] = (
                f"a pilot, or a failsafe of PX4, flies it in the mode {mode_name(mode)}{self._because()}"
            )

    def _follow(self, rates: np.ndarray) -> None:
        off = float(np.abs(rates - self._wanted).max())
        if not self._enabled or self._landing or self._landed == ON_GROUND or off < OFF:
            self._off_since = -1.0
        elif self._off_since < 0:
            self._off_since = self._now()

    def _wrong(self) -> list[str]:
        found = []
        if self._now() - self._beaten_by > SILENT:
            found.append(f"PX4 has sent no heartbeat for {SILENT:g} s")
        if self._battery < self.file.battery_min:
            found.append(
                f"the battery has {100 * self._battery:.0f} %; charge it, below {100 * self.file.battery_min:.0f} %"
            )
        if 0 <= self._off_since < self._now() - PERSISTENT:
            found.append(f"it does not turn as commanded for {PERSISTENT} s: set-points don't arrive, or others do too")
        if self._landing:
            found.append("PX4 lands it")
        if not self._ticks.right:
            found.append(f"PX4: {self._ticks.remark}")
        return found

    def _because(self) -> str:
        told = str(self._reasons)
        if not told and not self._speaks_for_ground:
            return " (PX4 tells ground stations alone why: look at QGroundControl)"
        return f" ({told})" if told else ""

    # --- what is sent -----------------------------------------------------------------------------------------------

    def _setpoint(self, rates: np.ndarray, thrust: float) -> None:
        x, y, z = frames.body(rates)
        now = self._now()
        self._begun, self._sent = now if now - self._sent > GAP else self._begun, now
        self.link.send(
            mavlink.MAVLink_set_attitude_target_message(
                round(1000 * now) % (1 << 32), self.link.system, 1, IGNORE_ATTITUDE, [1.0, 0.0, 0.0, 0.0],
                x, y, z, min(max(thrust, 0.0), 1.0),
            )
        )  # fmt: skip

    def _land(self) -> None:
        """Again and again, until PX4 does; it hovers by set-points meanwhile."""
        self._landing = True
        if self._now() - self._asked >= LANDING_AGAIN:
            self._asked = self._now()
            self._command(mavlink.MAV_CMD_DO_SET_MODE, (mavlink.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED, *LAND))
        self._setpoint(np.zeros(3), self._hover)

    def _beat(self) -> None:
        if self._now() - self._beaten >= BEAT:
            self._beaten = self._now()
            if self._speaks_for_ground:
                self.link.port.write(self._ground.pack(GROUND_BEAT))
            self.link.send(
                mavlink.MAVLink_heartbeat_message(mavlink.MAV_TYPE_ONBOARD_CONTROLLER, mavlink.MAV_AUTOPILOT_INVALID,
                                                  0, 0, mavlink.MAV_STATE_ACTIVE, 3)
            )  # fmt: skip

    def _command(self, command: int, values: tuple[float, ...]) -> None:
        parameters = [*map(float, values), *[0.0] * (7 - len(values))]
        self.link.send(mavlink.MAVLink_command_long_message(self.link.system, 1, command, 0, *parameters))

    def _request(self, message: int) -> None:
        self._command(mavlink.MAV_CMD_REQUEST_MESSAGE, (message,))

    def _stream(self, message: int, interval: float) -> None:
        self._command(mavlink.MAV_CMD_SET_MESSAGE_INTERVAL, (message, 1e6 * interval))

    def _parameter(self, name: str) -> None:
        self.link.send(mavlink.MAVLink_param_request_read_message(self.link.system, 1, name.encode(), -1))

    def _knows(self, name: str) -> bool:
        return name in self._parameters

    def _ask(self, ask: Callable[[], None], answered: Callable[[], Any]) -> bool:
        for _ in range(TRIES):
            ask()
            if self._wait(answered, ASKING):
                return True
        return False

    def _wait(self, come: Callable[[], Any], seconds: float) -> bool:
        end = self._now() + seconds
        try:
            while self._now() < end:
                self._beat()
                self._listen(0.02, round(1e6 * self._now()))
                if come():
                    return True
        except OSError as error:
            raise DriverError(f"the port is gone ({error.strerror or error})") from None
        return False
