"""An emulated vehicle with PX4: its MAVLink on one side, the card's multirotor under a rate loop on the other.

What of PX4 matters to who flies it from outside: modes, arming, set-points that have to come, its failsafe, its landing
and what it sends. It speaks as PX4 1.12 or as 1.14 to 1.17, from their sources (PX4-Autopilot: commander, failsafe,
mavlink). Its estimator is the truth with noise; its thrust is not what it takes it to be. What it does on its way home
(RETURN) is not emulated: it stays where it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from robo_rl.controllers.multirotor import RatesController
from robo_rl.deploy.robot.drivers.mavlink import events, frames
from robo_rl.deploy.robot.drivers.mavlink.failsafe import number
from robo_rl.deploy.robot.drivers.mavlink.link import mavlink
from robo_rl.deploy.robot.drivers.mavlink.modes import HOLD, LAND, OFFBOARD, POSITION, RETURN, Mode, custom_mode
from robo_rl.sim.plants.multirotor.rates import STEP, MultirotorByRates
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.multirotor import CARD, GRAVITY, MultirotorCard
from robo_rl.sim.tasks.multirotor.rates import NOISE, RATES

TICK = STEP
"""s of the vehicle."""
REWRITTEN = (1, 14)
"""The version from which on odometry has velocities in the world (streams/ODOMETRY.hpp), OFFBOARD is taken without
set-points while disarmed, and arming is denied instead (UserModeIntention.cpp, offboardCheck.cpp), and a failsafe holds
the place for COM_FAIL_ACT_T first (failsafe/framework.cpp)."""
EVENTFUL = (1, 13)
"""The version from which on it sends events, to everybody (mavlink_events.cpp)."""
HOLDING = 5.0
"""s: COM_FAIL_ACT_T."""
GROUND_SILENT = 2.5
"""s without a ground station's heartbeat, after which no texts are sent (mavlink_receiver, STATUSTEXT.hpp)."""
YAW_CUTOFF = 2.0
"""Hz: newer versions filter the torque about yaw (mc_rate_control_params.c, MC_YAW_TQ_CUTOFF)."""
YAW_GAIN = 2.4
"""1/s: how fast yaw follows with PX4's default MC_YAWRATE_P of 0.2; 2.3 to 2.5 were measured in its own simulator."""
SPOOL_UP = 1.0
"""s from arming until the motors take a thrust (COM_SPOOLUP_TIME)."""
SINK = 0.7
"""m/s of a landing (MPC_LAND_SPEED)."""
LANDED, DISARM = 0.05, 2.0
"""m below which a vehicle at rest is on the ground, and s until it is disarmed there (COM_DISARM_LAND)."""
UNUSED = 10.0
"""s until a vehicle that does not take off is disarmed (COM_DISARM_PRFLT)."""
REAL, WHOLE = mavlink.MAV_PARAM_TYPE_REAL32, mavlink.MAV_PARAM_TYPE_INT32
DEFAULTS = {
    "MPC_THR_HOVER": (0.5, REAL), "COM_OF_LOSS_T": (1.0, REAL), "COM_OBL_RC_ACT": (0, WHOLE), "NAV_DLL_ACT": (0, WHOLE)
}  # fmt: skip
"""As PX4 comes."""
PARAMETERS = {**DEFAULTS, "MPC_THR_HOVER": (0.6, REAL), "COM_OF_LOSS_T": (0.2, REAL), "COM_OBL_RC_ACT": (4, WHOLE)}
"""As docs/robots/px4.md has them set."""
DELAY = 0.01
"""s from the vehicle's state to the message that tells it."""
BYTES = {mavlink.MAVLINK_MSG_ID_ODOMETRY: 245, mavlink.MAVLINK_MSG_ID_EXTENDED_SYS_STATE: 14,
         mavlink.MAVLINK_MSG_ID_SYS_STATUS: 43, mavlink.MAVLINK_MSG_ID_HEARTBEAT: 21}  # fmt: skip
"""Of a message."""
NONE, GROUND, AIR = 0, 1, 2
"""MAV_LANDED_STATE"""


@dataclass
class Broken:
    """What is wrong with the vehicle; faults of its line are in ``robo_rl.deploy.emulate.px4.wire``."""

    battery: int = 87
    estimate: str = ""
    """"frozen": odometry repeats under new stamps; "lost": it is no number; "jumped": it set itself right by 3 m."""
    clock: bool = False
    """The stamps of odometry stand still."""
    silent: bool = False
    """It sends nothing."""


@dataclass
class Vehicle:
    """See the module's text."""

    card: MultirotorCard = field(default_factory=lambda: load_robot("x500", CARD))
    seed: int = 0
    hover: float = 0.66
    """Part of full thrust at which it hovers, which PX4 takes to be MPC_THR_HOVER."""
    curve: float = 1.4
    """Power of that part that its thrust follows."""
    version: tuple[int, int] = (1, 16)
    """Of PX4."""
    remote: bool = False
    """Whether it hears a remote control: its position mode is flown by hand then."""
    clock: float = 1.0
    """s of its clock in one s; simulations are slower than time."""
    line: float = math.inf
    """Bytes in a second that its line takes; its streams get slower to fit (mavlink_main.cpp, update_rate_mult)."""
    yaw_gain: float = YAW_GAIN
    yaw_cutoff: float = YAW_CUTOFF
    """Hz; 0: the torque about yaw is not filtered."""

    def __post_init__(self) -> None:
        self.plant = MultirotorByRates(self.card, 1, TICK, ground=True)
        self.plant.current.rotor_speed[:] = 0.0
        self.plant.param("rate_gain")[:, 2] = self.yaw_gain
        self.random, self.broken = np.random.default_rng(self.seed), Broken()
        self.codec: Any = mavlink.MAVLink(None, srcSystem=1, srcComponent=1)
        self.codec.robust_parsing = True
        self.parameters = dict(PARAMETERS)
        self.time, self.mode, self.armed, self.landed = 0.0, POSITION, False, GROUND
        self.rates, self.thrust = np.zeros(3), 0.0
        self.pilot = RatesController(self.card.airframe, TICK, (*RATES, 2 * GRAVITY))
        self.said: list[tuple[str, str]] = []
        """What is still to be sent: pairs of a STATUSTEXT and the name of an EVENT; "" stands for none."""
        self._last = self._armed_at = self._ground = -math.inf
        self._action = (math.inf, POSITION)
        """s at which a failsafe goes on from holding its place, and to which mode."""
        self._down_since, self._flown = -1.0, False
        self._intervals = {mavlink.MAVLINK_MSG_ID_HEARTBEAT: 1.0}
        self._sent: dict[int, float] = {}
        self._past: list[dict[str, np.ndarray]] = []
        self._odometry_before: list[Any] = []
        self._goal = np.zeros(3)
        self._kept = self.pilot.first_state(1)
        self._yaw = 0.0
        """rad/s, filtered: by which yaw turns too slowly."""
        self._shift, self._resets, self._stamp = np.zeros(3), 0, 0.0
        self._text_number, self._event_number = 0, 65525  # events.h, initial_event_sequence

    @property
    def truth(self) -> dict[str, np.ndarray]:
        """True quantities by name, in our frames."""
        return {name: value[0].numpy().copy() for name, value in self.plant.truth().items()}

    # --- what comes -------------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> list[bytes]:
        """Answers to what has come, each a message."""
        answers = []
        for message in self.codec.parse_buffer(data) or []:
            if getattr(message, "target_system", 1) in (0, 1) and message.get_type() != "BAD_DATA":
                answers += self._answer(message)
        return [self.pack(answer) for answer in answers]

    def pack(self, message: Any) -> bytes:
        """Numbered."""
        data = bytes(message.pack(self.codec))
        self.codec.seq = (self.codec.seq + 1) % 256
        return data

    def _answer(self, message: Any) -> list[Any]:
        kind = message.get_type()
        if kind == "SET_ATTITUDE_TARGET":
            self.take(
                frames.body((message.body_roll_rate, message.body_pitch_rate, message.body_yaw_rate)), message.thrust
            )
        elif kind == "COMMAND_LONG":
            return self._command(message)
        elif kind == "HEARTBEAT" and message.type == mavlink.MAV_TYPE_GCS:
            self._ground = self.time
        elif kind == "PARAM_REQUEST_READ" and message.param_id in self.parameters:
            return [self._parameter(message.param_id)]
        elif kind == "PARAM_SET" and message.param_id in self.parameters:
            _, type_ = self.parameters[message.param_id]
            if message.param_type == type_:
                self.parameters[message.param_id] = (number(message), type_)
            return [self._parameter(message.param_id)]
        return []

    def _parameter(self, name: str) -> Any:
        value, type_ = self.parameters[name]
        if type_ == WHOLE:
            value = float(np.int32(value).view(np.float32))
        return mavlink.MAVLink_param_value_message(name.encode(), value, type_, len(self.parameters), 0)

    def take(self, rates: np.ndarray, thrust: float) -> None:
        """A set-point in our frames, and the proof that somebody is there."""
        self._last = self.time
        self.rates, self.thrust = rates, min(max(float(thrust), 0.0), 1.0)

    def _command(self, message: Any) -> list[Any]:
        command, first = message.command, message.param1
        good, more = True, []
        if command == mavlink.MAV_CMD_DO_SET_MODE:
            good = self.enter((int(message.param2), int(message.param3)))
        elif command == mavlink.MAV_CMD_COMPONENT_ARM_DISARM:
            good = self._arm() if first else self._disarm()
        elif command == mavlink.MAV_CMD_RUN_PREARM_CHECKS:
            self._run_checks()
        elif command == mavlink.MAV_CMD_SET_MESSAGE_INTERVAL:
            self._intervals[int(first)] = message.param2 / 1e6
        elif command == mavlink.MAV_CMD_REQUEST_MESSAGE and int(first) == mavlink.MAVLINK_MSG_ID_AUTOPILOT_VERSION:
            version = self.version[0] << 24 | self.version[1] << 16
            more = [mavlink.MAVLink_autopilot_version_message(0, version, 0, 0, 0, [0] * 8, [0] * 8, [0] * 8, 0, 0, 42)]
        else:
            good = False
        result = mavlink.MAV_RESULT_ACCEPTED if good else mavlink.MAV_RESULT_DENIED
        return [mavlink.MAVLink_command_ack_message(command, result), *more]

    def enter(self, mode: Mode) -> bool:
        """Whether it takes up the mode."""
        needed = self.armed or self.version < REWRITTEN
        if mode == OFFBOARD and needed and self.unheard:
            self.say("Switching to Offboard is currently not possible: no set-points")
            return False
        if mode != self.mode:
            self._goal, self._kept = self.truth["position"], self.pilot.first_state(1)
        self.mode, self._action = mode, (math.inf, POSITION)
        return True

    @property
    def unheard(self) -> bool:
        """Whether no set-point has come for COM_OF_LOSS_T."""
        return self.time - self._last > self.parameters["COM_OF_LOSS_T"][0]

    def _arm(self) -> bool:
        if failing := self._failing():
            if self.version < EVENTFUL:
                self.say(f"Arming denied: {failing[0][0]}")
            else:
                self.say(
                    "Arming denied: Resolve system health failures first\t", "commander_arm_denied_resolve_failures"
                )
            return False
        self.armed, self._armed_at, self._flown = True, self.time, False
        return True

    def _failing(self) -> list[tuple[str, str]]:
        """The checks that forbid arming, each as the text of its STATUSTEXT and the name of its EVENT."""
        low, lost = self.broken.battery < 15, self.mode == OFFBOARD and self.unheard
        found = [("Low battery\t", "check_battery_low")] if low else []
        return [*found, ("no set-points for Offboard", "check_modes_offboard_signal")] if lost else found

    def _run_checks(self) -> None:
        """Tell which checks fail (Commander.cpp, VEHICLE_CMD_RUN_PREARM_CHECKS): checks of modes, as events alone."""
        for text, event in self._failing():
            self.say("" if event.startswith("check_modes") else text, event)

    def say(self, text: str, event: str = "") -> None:
        """Send a STATUSTEXT to ground stations, and an EVENT to everybody."""
        self.said.append((text, event))

    def _disarm(self) -> bool:
        if self.landed == GROUND:
            self.kill()
        return self.landed == GROUND

    def kill(self) -> None:
        """Motors off, wherever it is."""
        self.armed = False

    def restart(self) -> None:
        """The autopilot's power failed for a moment."""
        self.armed, self.mode, self.time = False, POSITION, 0.0
        self._last = self._armed_at = self._ground = -math.inf
        self._intervals, self._sent = {mavlink.MAVLINK_MSG_ID_HEARTBEAT: 1.0}, {}

    # --- what it does -----------------------------------------------------------------------------------------------

    def advance(self) -> list[bytes]:
        """Move on by a tick; what it sends meanwhile."""
        self.time += TICK
        self._fail_safe()
        self._move()
        self._judge()
        self._past = [*self._past, self.truth][-1 - round(DELAY / TICK) :]
        return [] if self.broken.silent else [self.pack(message) for message in self._messages()]

    def _fail_safe(self) -> None:
        """What COM_OBL_RC_ACT says, where no set-points come any more."""
        if self.mode == OFFBOARD and self.armed and self.unheard:
            action = round(self.parameters["COM_OBL_RC_ACT"][0])
            if action in (6, 7):
                self.kill()
                return
            mode = {3: RETURN, 4: LAND, 5: HOLD}.get(action, POSITION if self.remote else RETURN)
            self.say("Failsafe activated: no set-points for Offboard", "commander_failsafe_enter_generic")
            if self.version < REWRITTEN:
                self.enter(mode)
            else:
                self.enter(HOLD)
                self._action = (self.time + HOLDING, mode)
        elif self.time > self._action[0]:
            self.enter(self._action[1])

    def _move(self) -> None:
        if not self.armed or self.time - self._armed_at < SPOOL_UP:
            rates, thrust = np.zeros(3), 0.0
        elif self.mode == OFFBOARD:
            rates, thrust = self.rates, GRAVITY * (self.thrust / self.hover) ** self.curve
        else:
            rates, thrust = self._by_itself()
        rates = np.array([*rates[:2], self._filtered(float(rates[2]))])
        told = {"body_rate": rates[None], "thrust": np.array([[thrust]])}
        self.plant.step({name: torch.from_numpy(value).float() for name, value in told.items()})
        if not self.armed:
            self.plant.current.rotor_speed[:] *= 0.9

    def _filtered(self, wanted: float) -> float:
        """The rate about yaw (rad/s) by which the loop, without a filter, asks for the filtered torque."""
        here = float(self.truth["angular_velocity"][2])
        if self.yaw_cutoff <= 0.0:
            return wanted
        part = TICK / (TICK + 1.0 / (math.tau * self.yaw_cutoff))
        self._yaw += part * (wanted - here - self._yaw)
        return here + self._yaw

    def _by_itself(self) -> tuple[np.ndarray, float]:
        """It holds its place, or sinks."""
        truth = {name: value[None] for name, value in self.truth.items()}
        down = np.zeros((1, 3), np.float32)
        if self.mode == LAND:
            self._goal[2] -= SINK * TICK
            down[0, 2] = -SINK
        goal = self._goal[None].astype(np.float32)
        wanted = {"position_setpoint": goal, "linear_velocity_setpoint": down}
        commands, self._kept = self.pilot({**truth, **wanted}, self._kept)
        return commands["body_rate"][0], float(commands["thrust"][0, 0])

    def _judge(self) -> None:
        """Whether it is on the ground, and is left armed there."""
        state = self.plant.current
        height, speed = float(state.position[0, 2]), float(state.linear_velocity[0].norm())
        self._flown = self._flown or height > 4 * LANDED
        low = height < LANDED and speed < 0.3
        self._down_since = self._down_since if low and self._down_since > -math.inf else self.time if low else -math.inf
        self.landed = GROUND if low and self.time - self._down_since > 0.3 else AIR
        if self.armed and self.landed == GROUND:
            rests = self.time - self._down_since
            left = self._flown and rests > DISARM
            if left or (not self._flown and self.time - self._armed_at > UNUSED):
                self.kill()

    # --- what it tells ----------------------------------------------------------------------------------------------

    def _messages(self) -> list[Any]:
        told: list[Any] = []
        wanted = sum(BYTES.get(kind, 0) / interval for kind, interval in self._intervals.items() if interval > 0)
        slower = max(1.0, wanted / self.line)
        for kind, interval in self._intervals.items():
            if self.time - self._sent.get(kind, -math.inf) >= slower * interval - 1e-9:
                self._sent[kind] = self.time
                made = self._message(kind)
                told += [made] if made is not None else []
        for text, event in self.said:
            if text and self.time - self._ground < GROUND_SILENT:
                told += self._texts(text)
            if event and self.version >= EVENTFUL:
                told.append(self._event(event))
        self.said = []
        return told

    def _texts(self, text: str) -> list[Any]:
        """In parts of 50 letters (streams/STATUSTEXT.hpp)."""
        self._text_number += 1
        parts = [text[i : i + 50].encode() for i in range(0, len(text), 50)]
        severity, count = mavlink.MAV_SEVERITY_CRITICAL, self._text_number
        return [mavlink.MAVLink_statustext_message(severity, part, count, i) for i, part in enumerate(parts)]

    def _event(self, name: str) -> Any:
        """Critical, and of checks in all modes; destined for everybody."""
        self._event_number = (self._event_number + 1) % 65536
        modes = b"\xff\xff\xff\xff" if name.startswith("check_") else b""
        return events.Event(
            0, 0, events.number(name), round(1000 * self.time), self._event_number, 0x42, modes.ljust(40, b"\0")
        )

    def _message(self, number: int) -> Any:
        if number == mavlink.MAVLINK_MSG_ID_HEARTBEAT:
            mode = mavlink.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED | mavlink.MAV_MODE_FLAG_SAFETY_ARMED * self.armed
            return mavlink.MAVLink_heartbeat_message(
                mavlink.MAV_TYPE_QUADROTOR, mavlink.MAV_AUTOPILOT_PX4, mode, custom_mode(self.mode),
                mavlink.MAV_STATE_ACTIVE, 3,
            )  # fmt: skip
        if number == mavlink.MAVLINK_MSG_ID_EXTENDED_SYS_STATE:
            return mavlink.MAVLink_extended_sys_state_message(0, self.landed)
        if number == mavlink.MAVLINK_MSG_ID_SYS_STATUS:
            return mavlink.MAVLink_sys_status_message(0, 0, 0, 300, 15800, -1, self.broken.battery, 0, 0, 0, 0, 0, 0)
        return self._odometry() if number == mavlink.MAVLINK_MSG_ID_ODOMETRY else None

    def _odometry(self) -> Any:
        past = self._past[0] if self._past else self.truth
        noisy = {n: past[n] + NOISE[n] * self.random.standard_normal(past[n].shape) for n in NOISE}
        if self.broken.estimate == "jumped":
            self._shift, self._resets, self.broken.estimate = np.array([3.0, 0.0, 0.0]), self._resets + 1, ""
        place = frames.world(noisy["position"] + self._shift)
        turned = noisy["orientation"] / np.linalg.norm(noisy["orientation"])
        speed, child = frames.world(noisy["linear_velocity"]), mavlink.MAV_FRAME_LOCAL_NED
        if self.version < REWRITTEN:
            speed = frames.body(frames.rotate((*-turned[:3], turned[3]), noisy["linear_velocity"]))
            child = mavlink.MAV_FRAME_BODY_FRD
        fields = [*place, frames.told(turned).tolist(), *speed, *frames.body(noisy["angular_velocity"])]
        if self.broken.estimate == "frozen" and self._odometry_before:
            fields = self._odometry_before
        elif self.broken.estimate == "lost":
            fields = [math.nan, math.nan, math.nan, *fields[3:]]
        self._odometry_before = fields
        stamp = self.clock * (self.time - DELAY)
        if not self.broken.clock:
            self._stamp = stamp
        unknown = [math.nan] * 21
        return mavlink.MAVLink_odometry_message(
            round(1e6 * max(0.0, self._stamp)), mavlink.MAV_FRAME_LOCAL_NED, child, *fields,
            unknown, unknown, self._resets % 256, mavlink.MAV_ESTIMATOR_TYPE_AUTOPILOT, 100,
        )  # fmt: skip
