"""A Crazyflie flown from outside by body rates and thrust (set-points of the type "manual", each with its mode).

The firmware's own PID controller keeps the rates. Silence needs no process of ours: after 0.5 s without set-points the
firmware levels the vehicle, after 2 s it switches the motors off; with the emergency-stop watchdog, which is fed while
it is armed, it does that after 1 s. What the vehicle says that it was commanded is compared with what was sent.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from robo_rl.contract import Contract
from robo_rl.contract.gravity import GRAVITY
from robo_rl.deploy.robot.drivers.crtp import estimate
from robo_rl.deploy.robot.drivers.crtp.robot_file import CrazyflieFile
from robo_rl.deploy.robot.drivers.crtp.session import ECHO, STATE, TRUST, Came, Session
from robo_rl.deploy.robot.drivers.driver import DriverError, Health, Identity, Mode, Samples, Silence
from robo_rl.deploy.robot.drivers.ticks import Ticks

MEASURED = ("position", "orientation", "linear_velocity", "angular_velocity")
COMMANDS = (("body_rate", ("x", "y", "z"), "rad/s"), ("thrust", ("z",), "m/s^2"))
TYPE = "Crazyflie 2.1"
"""platform_cf2.c, of the 2.1 and the 2.1+. Others have other motors."""
PID, KALMAN = 1, 2
"""stabilizer.controller and stabilizer.estimator."""
SCALE, LEAST, MOST = 65535, 10001, 60000
"""Full scale of a rotor's thrust (stabilizer.c), and what cflib's 0 and 100 % are of it."""
FASTEST = 100.0
"""Hz of the state estimate by log blocks."""
TURNING = 34.9
"""rad/s: the gyroscope's range, 2000 deg/s."""
CLOCK = 1 << 24
"""ms at which a log packet's clock begins anew."""
ARMED, CAN_FLY, FLYING, TUMBLED, LOCKED, CRASHED, HIGH_LEVEL = (1 << bit for bit in (1, 3, 4, 5, 6, 7, 8))
"""Of supervisor.info (supervisor.c)."""
BAD = {TUMBLED: "it has tumbled", LOCKED: "it is locked: switch it off and on", CRASHED: "it has crashed"}
STATING, ARMING = 3.0, 1.5
"""s for the first packet of each block, and for being armed."""
FEED = 0.1
"""s between two feeds of the watchdog, which waits for 1 s."""
STALE = {STATE: 0.15, ECHO: 0.3, TRUST: 1.0}
"""s without a log block after which something is wrong."""
TOLD, CLOSE, CLOSE_THRUST = 0.4, 0.5, 2.0
"""s for which a set-point may still be the one that it follows; deg/s and thrust steps by which its word may differ."""
OFF = 0.25
"""s that it may follow what was not sent."""
LOW = 1.0
"""s of a low voltage: it sags for a moment with every burst of thrust."""
SINK, LANDED, RESTING = 0.4, 0.12, 0.5
"""m/s of a landing; m/s below which it does not sink any more, and s of that after which it has landed."""
LATE = 1.5
"""s beyond what a landing takes after which the motors are switched off without being sure."""
SOFT, SPARE = 0.85, 1.0
"""Of the weight: the thrust of a landing without an estimate, level; s that it may take longer than a fall by the rest,
since its rotors slow down in tenths of a second, and it may rise at first."""
LEAPS = {"position": 0.5, "linear_velocity": 2.0, "orientation": 0.5, "angular_velocity": 15.0}
"""Most by which an estimate may differ from the last good one: m, m/s, of a quaternion's length, rad/s. One that does
is a damaged packet; when ``ROW`` do, the estimate has jumped."""
ROW = 12
SHARING, SHARE = 0.04, 0.2
"""Weight of one packet in the part of strange ones, and that part from which on the link is not good enough."""
TICKING = 0.25
"""s by which a packet's own clock may differ from the time since the last."""


class Crazyflie:
    """See the module's text, and ``robo_rl.deploy.robot.drivers.driver.Driver``."""

    silence = Silence.STOPS

    def __init__(self, session: Session, contract: Contract, file: CrazyflieFile) -> None:
        within_hardware(contract, file)
        self.session, self.file, self._now = session, file, session.clock
        self.mass = file.mass or float(contract.robot.facts["mass"])
        after = "switches the motors off after 1 s, and locks it" if file.watchdog else "switches them off after 2 s"
        self.guard = f"the firmware levels it after 0.5 s, and {after}"
        names = {signal.name for signal in contract.signals}
        self.measured = tuple(name for name in MEASURED if name in names)
        self._ticks = Ticks(CLOCK)
        self._samples: dict[str, tuple[np.ndarray, int]] = {}
        self._given: dict[str, tuple[np.ndarray, int]] = {}
        """Of ``_samples``, those of the last cycle in which nothing was wrong."""
        self._came = dict.fromkeys(STALE, -1e9)
        self._info, self._voltage, self._trust = 0, 0.0, (0.0,) * 6
        self._low_since = self._off_since = self._rest_since = math.inf
        self._sent: deque[tuple[float, float, float, float]] = deque(maxlen=64)
        """When (s), roll rate and pitch rate (deg/s, as the firmware logs them), thrust."""
        self._problems: tuple[str, ...] = ()
        self._lasting: dict[str, str] = {}
        """Problems that end the session, by what they are of."""
        self._enabled = self._flown = self._landing = self._sank = False
        self._share = 0.0
        """Of the newest packets, how many were strange."""
        self._fed = self._landing_at = -1e9
        self._height = 0.0
        self._cycles = self._without = self._strange = self._row = 0
        self._last: tuple[Came, dict[str, np.ndarray]] | None = None
        """The newest good packet of the state, and what it says."""
        self._said: dict[str, object] = {}
        """What the last packet said of what has to be said twice to count: a packet may be damaged."""

    # --- before it flies --------------------------------------------------------------------------------------------

    def connect(self) -> Identity:
        """Find the vehicle, and all that can be known of it on the ground."""
        session = self.session
        session.open()
        board, firmware = session.identity()
        if board != TYPE:
            raise DriverError(f"it is a {board[:40]!r}; expected a {TYPE!r}: thrust is scaled for its motors")
        for name, wanted, what in (
            ("stabilizer.controller", PID, "the PID controller"),
            ("stabilizer.estimator", KALMAN, "the Kalman filter: is a positioning deck mounted?"),
        ):
            if (value := session.parameter(name)) != wanted:
                raise DriverError(f"{name} is {value}; expected {wanted}, {what}")
        session.begin()
        if not self._wait(lambda: all(at > 0 for at in self._came.values()), STATING):
            silent = [name for name, at in self._came.items() if at < 0]
            raise DriverError(f"the Crazyflie sends no log packets of {silent}: is its state estimate a number?")
        if wrong := self._condition():
            raise DriverError("; ".join(wrong))
        numbers = [session.parameter(f"firmware.revision{i}") or 0 for i in (0, 1)]
        decks = [n for n in ("bcLighthouse4", "bcFlow2", "bcLoco") if session.parameter(f"deck.{n}")]
        return Identity(board, {
            "firmware": firmware, "revision": f"{int(numbers[0]):08x}{int(numbers[1]):04x}",
            "decks": " ".join(decks) or "none for position", "battery": f"{self._voltage:.2f} V",
            "mass": f"{1000 * self.mass:.1f} g", "hover thrust": f"{self._steps(GRAVITY) / SCALE:.2f}",
        })  # fmt: skip

    def _condition(self) -> list[str]:
        """What is wrong with the vehicle itself, also before it flies."""
        found = [text for bit, text in BAD.items() if self._info & bit]
        place, speed = (math.sqrt(max(0.0, max(v))) for v in (self._trust[:3], self._trust[3:]))
        if not speed <= self.file.velocity_deviation_max or not place <= self.file.position_deviation_max:
            found.append(
                f"its estimator is sure of its velocity to {speed:.2f} m/s and of its place to {place:.2f} m; expected "
                f"{self.file.velocity_deviation_max:g} and {self.file.position_deviation_max:g}"
            )
        return found

    def enable(self) -> None:
        """Armed, and its watchdog running; the motors stand until the policy commands a thrust."""
        self._read_all(round(1e6 * self._now()))
        if problems := (*self._lasting.values(), *self._wrong()):
            raise DriverError("; ".join(problems))
        if self._info & (FLYING | HIGH_LEVEL):
            raise DriverError("it flies, or the high-level commander has it: land it, and stop that program first")
        if self._voltage < self.file.voltage_start:
            raise DriverError(f"the battery has {self._voltage:.2f} V; charge it, below {self.file.voltage_start:g} V")
        supervisor = self.session.link.supervisor
        for _ in range(3):
            self.session.send(supervisor.send_arming_request, True)
            if self._wait(self._armed, ARMING / 3):
                break
        else:
            self._stop()  # it may hear the request late
            raise DriverError("the Crazyflie refuses to be armed; is it level, and are its decks well?")
        self._enabled = True
        self._feed()

    def _armed(self) -> bool:
        return bool(self._info & ARMED and self._info & CAN_FLY)

    def disable(self) -> None:
        """In the air it lands first; then motors off, and disarmed."""
        if not self._enabled:
            return
        end = self._now() + self._height / SINK + LATE + 2.0
        while self._flown and self._enabled and not self.session.gone and self._now() < end:
            self._read_all(round(1e6 * self._now()))
            self._land()
            self._feed()
            self.session.sleep(0.02)
        self._stop()

    def _stop(self) -> None:
        """On the ground, or what is taken to be it. More than once: one may be lost."""
        for _ in range(3):
            self.session.send(self.session.link.commander.send_stop_setpoint)
            self.session.send(self.session.link.supervisor.send_arming_request, False)
        self._enabled = False

    # --- every cycle ------------------------------------------------------------------------------------------------

    def read(self, now: int) -> Samples:
        """The newest signals. While something is wrong they get no newer, and the gate stops the vehicle."""
        self._cycles += 1
        before = self._came[STATE]
        self._read_all(now)
        self._without += self._came[STATE] == before
        self._problems = (*self._lasting.values(), *self._wrong())
        if self._enabled:
            self._feed()
        if not self._problems:
            self._given = {name: self._samples[name] for name in self.measured if name in self._samples}
        return dict(self._given)

    def write(self, commands: Mapping[str, np.ndarray], mode: Mode) -> None:
        """The policy's rates and thrust. In any other mode it stands, or lands."""
        if not self._enabled:
            return
        if mode is Mode.POLICY and not self._landing:
            thrust = float(commands["thrust"][0])
            self._flown = self._flown or self._steps(thrust) > LEAST
            if self._flown:
                self._manual(np.degrees(np.asarray(commands["body_rate"], float)), thrust, True)
                return
        if self._flown:
            self._land()
        else:
            self.session.send(self.session.link.commander.send_stop_setpoint)

    def health(self) -> Health:
        """What is wrong, and counters."""
        figures = {
            "cycles": float(self._cycles), "cycles without an estimate": float(self._without),
            "strange packets": float(self._strange), "packets that the radio did not take": float(self.session.skipped),
            "battery V": self._voltage, "clock's rate": self._ticks.rate,
        }  # fmt: skip
        return Health(self._problems, figures)

    def close(self) -> None:
        """A vehicle in the air lands."""
        self.disable()
        self.session.close()

    # --- what comes -------------------------------------------------------------------------------------------------

    def _read_all(self, now: int) -> None:
        for packet in self.session.take(STATE):
            self._state(packet, now)
        for packet in self.session.take(ECHO):
            told = packet.values
            self._info = self._twice("info", int(told["supervisor.info"]), self._info)
            self._voltage = told["pm.vbat"] if math.isfinite(told["pm.vbat"]) else self._voltage
            self._came[ECHO] = packet.at
            low = self._voltage < self.file.voltage_min
            self._low_since = min(self._low_since, packet.at) if low else math.inf
            self._follow(packet)
        for packet in self.session.take(TRUST):
            rough = tuple(float(f"{value:.1g}") for value in packet.values.values())
            self._trust, self._came[TRUST] = self._twice("trust", rough, self._trust), packet.at

    def _twice(self, name: str, told: Any, before: Any) -> Any:
        """What is told, if the packet before told it too, or was none; else what was known before."""
        again, self._said[name] = self._said.get(name, told) == told, told
        return told if again else before

    def _state(self, packet: Came, now: int) -> None:
        try:
            given = estimate.signals(packet.values)
        except ValueError:
            self._count(True)
            return
        wrong_clock, leaps = self._odd(packet, given)
        self._count(wrong_clock or leaps)
        self._row = self._row + 1 if leaps else 0
        if self._row >= ROW and self._enabled and self._flown:
            self._lasting["estimate"] = "its estimate jumped in flight"
        if wrong_clock or 0 < self._row < ROW or not self._ticks.new(packet.tick):
            return
        self._row, self._last = 0, (packet, given)
        stamp = now - round(1e6 * (self._now() - self._ticks.sent(packet.at)))
        self._came[STATE] = packet.at
        self._height = max(0.0, float(given["position"][2]))
        moves = abs(float(given["linear_velocity"][2])) > LANDED
        self._sank = self._landing and (self._sank or moves)
        self._rest_since = math.inf if moves else min(self._rest_since, packet.at)
        self._samples = {name: (np.array(given[name], np.float32), stamp) for name in self.measured}

    def _count(self, strange: bool) -> None:
        self._strange += strange
        self._share += SHARING * (strange - self._share)

    def _odd(self, packet: Came, given: Mapping[str, np.ndarray]) -> tuple[bool, bool]:
        """Whether its clock does not go on from the last good one's, and whether the estimate does not."""
        if self._last is None:
            return False, False
        before, values = self._last
        passed = packet.at - before.at
        ahead = ((packet.tick - before.tick + CLOCK // 2) % CLOCK - CLOCK // 2) / 1000
        if passed > TICKING:
            return False, False
        off = {name: float(np.linalg.norm(given[name] - values[name])) for name in LEAPS}
        off["orientation"] = min(
            off["orientation"], float(np.linalg.norm(given["orientation"] + values["orientation"]))
        )
        return abs(ahead - passed) > TICKING, any(off[name] > most for name, most in LEAPS.items())

    def _follow(self, packet: Came) -> None:
        """Whether it follows something that was sent within the last moments."""
        told = [packet.values[n] for n in ("controller.rollRate", "controller.pitchRate", "stabilizer.thrust")]
        since = packet.at - TOLD
        known = any(
            at > since and abs(r - told[0]) < CLOSE and abs(p - told[1]) < CLOSE and abs(t - told[2]) < CLOSE_THRUST
            for at, r, p, t in self._sent
        )
        flying = self._enabled and self._flown and not self._landing
        self._off_since = min(self._off_since, packet.at) if flying and not known else math.inf

    def _wrong(self) -> list[str]:
        now = self._now()
        if self.session.gone:
            return [f"the link is gone: {self.session.gone}"]
        found = [
            f"no packet of the log block '{name}' came for {STALE[name]:g} s"
            for name, at in self._came.items() if now - at > STALE[name]
        ]  # fmt: skip
        found += self._condition()
        if self._share > SHARE:
            found.append(f"{100 * self._share:.0f} % of its packets are damaged")
        if self._low_since < now - LOW:
            found.append(f"the battery has {self._voltage:.2f} V, below {self.file.voltage_min:g} V")
        if self._off_since < now - OFF:
            found.append("it follows commands that were not sent: set-points don't arrive, or somebody else sends")
        if self._enabled and self._flown and not self._info & CAN_FLY:
            found.append("its supervisor does not let it fly")
        if self._landing:
            found.append("it lands")
        return found

    # --- what is sent -----------------------------------------------------------------------------------------------

    def _steps(self, thrust: float) -> int:
        """Of a rotor's full scale, for a thrust in m/s²; never less than cflib's least."""
        part = thrust * self.mass / (4 * self.file.thrust_max)
        return min(max(round(part * SCALE), LEAST), MOST)

    def _manual(self, turn: np.ndarray, thrust: float, rates: bool) -> None:
        """deg/s, or deg about x and y, about our axes; m/s². cflib turns the sign of pitch for the firmware."""
        percent = 100 * (self._steps(thrust) - LEAST + 0.5) / (MOST - LEAST)
        steps = int(LEAST + 0.01 * min(percent, 100.0) * (MOST - LEAST))
        roll, pitch, yaw = map(float, turn)
        self._sent.append((self._now(), roll, -pitch, float(steps)))
        commander = self.session.link.commander
        self.session.send(commander.send_setpoint_manual, roll, pitch, yaw, min(percent, 100.0), rates)

    def _feed(self) -> None:
        if self.file.watchdog and self._now() - self._fed >= FEED:
            self._fed = self._now()
            self.session.send(self.session.link.supervisor.send_emergency_stop_watchdog)

    def _land(self) -> None:
        """Straight down by its own estimate; level and a little too light where that is not to be trusted."""
        now = self._now()
        if not self._landing:
            self._landing, self._landing_at, self._start = True, now, self._height
        since = now - self._landing_at
        if not self._blind():
            heard = now - self._came[STATE] < STALE[STATE]
            rests = self._sank and now - self._rest_since > RESTING
            if (heard and rests) or since > self._start / SINK + LATE:
                self._stop()
                return
            self.session.send(self.session.link.commander.send_velocity_world_setpoint, 0.0, 0.0, -SINK, 0.0)
        elif since > math.sqrt(2 * self._start / ((1 - SOFT) * GRAVITY)) + SPARE:
            self._stop()
        else:
            self._manual(np.zeros(3), SOFT * GRAVITY, False)

    def _blind(self) -> bool:
        """Whether its estimate may not be flown by: the vehicle's own doubts, or a jump."""
        return "estimate" in self._lasting or bool(self._condition())

    def _wait(self, come: object, seconds: float) -> bool:
        assert callable(come)
        end = self._now() + seconds
        while self._now() < end and not self.session.gone:
            self._read_all(round(1e6 * self._now()))
            if come():
                return True
            self.session.sleep(0.01)
        return False


def within_hardware(contract: Contract, file: CrazyflieFile) -> None:
    """DriverError where a contract is not one of rates and thrust, or asks for what a Crazyflie does not give."""
    commands = tuple((c.name, c.elements, c.unit) for c in contract.commands)
    if commands != COMMANDS:
        names = [f"{c.name} in {c.unit}" for c in contract.commands]
        raise DriverError(
            f"the policy commands {names}; a Crazyflie takes body_rate in rad/s and thrust in m/s^2 off board "
            "(quadrotor-rates); for rotor speeds, flash the policy (docs/firmware.md)"
        )
    if not (rate := 1 / contract.control_period) <= FASTEST + 1e-6:
        raise DriverError(f"the policy runs at {rate:g} Hz; a Crazyflie tells its state at up to {FASTEST:g} Hz")
    rates, thrust = contract.commands
    if not (fastest := float(np.abs([rates.lower, rates.upper]).max())) <= TURNING:
        raise DriverError(f"body_rate goes up to {fastest:g} rad/s; the gyroscope measures {TURNING:g}")
    mass = file.mass or float(contract.robot.facts["mass"])
    gives = 4 * file.thrust_max * MOST / SCALE / mass
    if not (most := float(np.max(thrust.upper))) <= gives + 1e-6:
        raise DriverError(
            f"thrust goes up to {most:.2f} m/s^2; four rotors of {file.thrust_max:g} N give a Crazyflie of "
            f"{1000 * mass:.1f} g {gives:.2f} at the most: train for its card (--robot crazyflie)"
        )
