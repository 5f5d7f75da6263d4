"""A Unitree robot as a driver: its mode is taken over first, its states become the contract's signals, and commands go
through the keeper of the command topic, which damps the legs when they stay away.

States carry the robot's own clock. A signal's time is when its state would have come had it come as fast as the
fastest: one that is late on the network is old, and one that repeats under the same tick is no new one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from robo_rl.contract import Contract
from robo_rl.deploy.robot.drivers.driver import DriverError, Health, Identity, Mode, Samples, Silence
from robo_rl.deploy.robot.drivers.ticks import Ticks
from robo_rl.deploy.robot.drivers.unitree.family import GO, Family
from robo_rl.deploy.robot.drivers.unitree.following import Following, Order
from robo_rl.deploy.robot.drivers.unitree.keeping import DAMPING, FOREIGN, PATIENCE
from robo_rl.deploy.robot.drivers.unitree.link import Link
from robo_rl.deploy.robot.drivers.unitree.mapping import STIFFEST, Held, JointLimits, mapping
from robo_rl.deploy.robot.drivers.unitree.messages import LowCommand, LowState

CHECK, SELECT, RELEASE = 1001, 1002, 1003
"""Requests to the motion switcher (unitree_sdk2, motion_switcher_api.hpp)."""
APPEARING, ANSWERING, RELEASING, LISTENING = 5.0, 1.0, 10.0, 0.3
"""s for the robot's first state, for an answer, until the mode is released, and for others' commands."""
WATCHING = 1.0
"""s between questions for the mode while the robot is enabled."""
FOLDED = -2.3
"""rad: calves of a robot that lies, which does not fall when its mode is released. The stop is at -2.72."""
HOTTEST = 80
"""°C, of a motor: choice."""
LOST = 3
"""Readings in a row in which a motor's count of lost packets rises."""
CHARGED = 10
"""% of the battery below which the robot is not enabled: choice."""
FRESH = 0.1
"""s: age of a state with which the robot may be enabled."""
FIRST_GAINS, RAMP = 0.3, 1.0
"""Part of the stiffness at first, and s until all of it."""
BLENDING = 0.5
"""s from the policy's gains to those with which the robot holds its pose, where it has such."""
RAISING = 2.0
"""s in which motors that no policy commands go to where they are held."""
OUTSIDE = 0.15
"""rad by which a joint may be beyond its range: the zero is found by hand."""


class Dog:
    """See the module's text, and ``robo_rl.deploy.robot.drivers.driver.Driver``."""

    family: Family = GO
    stiffest = STIFFEST
    held: Mapping[str, Held] = {}
    """Motors that no policy commands."""
    absent = "Go2 Air and Pro have no such topics"
    silence = Silence.GOES_ON
    guard = f"a process of its own damps the legs {1e3 * PATIENCE:.0f} ms later"

    def __init__(
        self, name: str, connect: Callable[[bool], Link], contract: Contract, joints: Sequence[JointLimits],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """``connect(damp)`` gives the link to a new keeper; ``clock`` is that of its times, in s."""
        self.name, self._connect, self.joints, self._now = name, connect, tuple(joints), clock
        self._map = mapping(contract, joints, dict(self.held), self.stiffest)
        self.measured = self._map.measured
        self._link: Link | None = None
        self._ticks = Ticks()
        self._state: LowState | None = None
        self._samples: dict[str, tuple[np.ndarray, int]] = {}
        self._answers: list[tuple[int, int, str]] = []
        self._status: dict[str, object] = {}
        self._problems: tuple[str, ...] = ()
        self._enabled_at: float | None = None
        self._begun = self._places = np.array(
            [self.held[j.name].position if j.name in self.held else 0 for j in joints]
        )
        """(n,) rad: where motors were when they were enabled, and where those are held that no policy commands."""
        self._stiff, self._sent = 1.0, 0.0
        """How far the gains are those of holding a pose, 0 to 1; when the last command was sent."""
        self._mode, self._before, self._asked = "", "", 0.0
        self._rising = np.zeros(len(self.joints), int)
        self._following = Following()
        self._came = -1e9
        self._unanswered = 0
        """Questions for the mode that failed while the robot was enabled."""
        self._gone = ""

    # --- connecting -------------------------------------------------------------------------------------------------

    def connect(self) -> Identity:
        """Wait for the robot's state, take over from its own modes, and see that nobody else commands."""
        self._link = self._connect(False)
        if not self._wait(APPEARING, lambda: self._state is not None):
            raise DriverError(
                f"no {self.name} tells its state on rt/lowstate: is it switched on, and the interface the one to it "
                f"(its address 192.168.123.99 or alike)? {self.absent}"
            )
        self._mode = self._before = self._check_mode()
        assert self._state is not None
        self._take_over(self._state)
        self._wait(LISTENING, lambda: False)
        if self._foreign >= FOREIGN:
            raise DriverError("somebody else commands the robot on rt/lowcmd; end that first")
        assert self._state is not None
        charge = "not told" if self._state.charge is None else f"{self._state.charge} %"
        return Identity(
            self.name,
            {"battery": charge, "mode before": self._before or "none",
             "motors": str(len(self.joints)), **({"clock": self._ticks.remark} if self._ticks.remark else {})},
        )  # fmt: skip

    def _take_over(self, state: LowState) -> None:
        """From the robot's own mode. DriverError where it would fall."""
        if not self._mode:
            return
        if (state.q[2::3] > FOLDED).any():
            raise DriverError(
                f"the robot stands in its mode '{self._mode}' and would fall when that is released; let it lie down "
                "with its remote first (L2 and A)"
            )
        self._release()

    def _check_mode(self) -> str:
        """The mode of the robot that commands its legs; "" for none. DriverError for an answer that can't be read."""
        code, status, data = self._request(CHECK, "{}")
        name = _name(data)
        if code != CHECK or status != 0 or name is None:
            raise DriverError(f"the motion switcher answered {status} {data[:80]!r} to CheckMode; expected a name")
        return name

    def _release(self) -> None:
        end = self._now() + RELEASING
        while self._mode and self._now() < end:
            self._request(RELEASE, "{}")
            self._mode = self._check_mode()
        if self._mode:
            raise DriverError(f"the robot does not release its mode '{self._mode}'; switch it off and on")

    def _request(self, code: int, parameter: str) -> tuple[int, int, str]:
        self._answers.clear()
        self._send(b"R", json.dumps([code, parameter]).encode())
        if not self._wait(ANSWERING, lambda: bool(self._answers)):
            raise DriverError("the robot's motion switcher does not answer; is its firmware newer than 1.1?")
        return self._answers.pop()

    def _wait(self, seconds: float, until: Callable[[], bool]) -> bool:
        end = self._now() + seconds
        while not until():
            if self._now() > end:
                return False
            assert self._link is not None
            try:
                self._take(self._link.receive(0.02))
            except OSError as error:
                raise DriverError(self._gone or f"the keeper of the robot's command topic ended ({error})") from None
        return True

    # --- running ----------------------------------------------------------------------------------------------------

    def read(self, now: int) -> Samples:
        """The newest signals. While something is wrong they get no newer, and the gate stops the robot."""
        try:
            assert self._link is not None
            self._take(self._link.receive())
        except OSError:
            self._replace_keeper()
        if self._enabled_at is not None and self._now() - self._asked > WATCHING:
            self._asked = self._now()
            self._send(b"R", json.dumps([CHECK, "{}"]).encode())
        self._problems = tuple(self._wrong())
        if not self._problems and self._state is not None:
            self._samples = self._signals(self._state, min(now, int(1e6 * self._came)))
        return dict(self._samples)

    def enable(self) -> None:
        """Hold the pose of now, softly at first."""
        self._wait(0.0, lambda: False)
        state = self._state
        if state is None or self._now() - self._came > FRESH:
            raise DriverError("the robot's state is too old to enable it")
        if self._problems:
            raise DriverError("; ".join(self._problems))
        if state.charge is not None and state.charge < CHARGED:
            raise DriverError(f"the battery has {state.charge} %; expected {CHARGED} % at least: charge it")
        for joint, q in zip(self.joints, state.q, strict=True):
            if not joint.lower - OUTSIDE <= q <= joint.upper + OUTSIDE:
                raise DriverError(f"{joint.name} is at {q:.2f} rad, outside of {joint.lower:.2f} to {joint.upper:.2f}")
        self._enabled_at = self._asked = self._sent = self._now()
        self._begun, self._stiff = state.q, 1.0
        self._send(b"E", self._command(state.q, Mode.HOLD))

    def write(self, commands: Mapping[str, np.ndarray], mode: Mode) -> None:
        """Targets of all joints, with the contract's gains; damping alone where the robot is stopped."""
        since = self._now() - self._enabled_at if self._enabled_at is not None else 0.0
        targets = self._begun + min(1.0, since / RAISING) * (self._places - self._begun)
        for name, index in self._map.commands.items():
            targets[index] = commands[name]
        self._send(b"C", self._command(targets, mode))

    def disable(self) -> None:
        """Motors off, and the robot's own mode again."""
        nothing = np.zeros(len(self.joints))
        self._send(b"C", self._encoded(nothing > 0, nothing, nothing, nothing))
        self._wait(0.05, lambda: False)
        self._send(b"Q")
        self._enabled_at = None
        if self._before:
            self._request(SELECT, json.dumps({"name": self._before}))

    def health(self) -> Health:
        """What is wrong, and counters."""
        figures = {"clock's rate": self._ticks.rate}
        figures |= {f"keeper/{name}": float(v) for name, v in self._status.items() if isinstance(v, int)}
        figures["questions for the mode that failed"] = float(self._unanswered)
        if self._state is not None:
            figures |= {
                **({} if self._state.charge is None else {"battery %": float(self._state.charge)}),
                "voltage V": self._state.voltage,
                "hottest motor degC": float(self._state.temperature.max()),
                "packets lost by motors": float(self._state.lost.sum()),
            }  # fmt: skip
        return Health(self._problems, figures)

    def close(self) -> None:
        """The keeper damps legs that are enabled, and leaves."""
        if self._link is not None:
            self._link.close()

    # ----------------------------------------------------------------------------------------------------------------

    def _take(self, messages: Sequence[tuple[bytes, bytes]]) -> None:
        newest = b""
        for kind, data in messages:
            if kind == b"S":
                came, tick = int.from_bytes(data[:8], "little") / 1e6, self.family.tick_of(data[8:])
                if self._ticks.new(tick):
                    newest, self._came = data[8:], self._ticks.sent(came)
            elif kind == b"A":
                code, status, text = json.loads(data)
                self._answers.append((code, status, text))
                if self._enabled_at is not None and code == CHECK:
                    self._hear_mode(status, text)
            elif kind == b"K":
                self._status = json.loads(data)
            elif kind == b"X":
                self._gone = data.decode(errors="replace")
        if newest:  # the keeper has read all of them: none is damaged
            state = self.family.decode_state(newest, len(self.joints))
            self._count_lost(state)
            self._following.state(state.q, state.dq, state.tau)
            self._state = state

    def _hear_mode(self, status: int, text: str) -> None:
        """A question that failed, or an answer that can't be read, tells of no mode: it is asked again."""
        name = _name(text) if status == 0 else None
        if name is None:
            self._unanswered += 1
        else:
            self._mode = name

    def _count_lost(self, state: LowState) -> None:
        if self._state is not None:
            more = state.lost > self._state.lost
            self._rising = np.where(more, self._rising + 1, 0)

    def _wrong(self) -> list[str]:
        found = [self._gone] if self._gone else []
        reason = self._status.get("reason")
        if reason and self._enabled_at is not None:
            found.append(str(reason))
        if self._mode:
            found.append(f"the robot's mode '{self._mode}' commands the legs again; release it: start anew")
        if not self._ticks.right:
            found.append(f"the robot: {self._ticks.remark}")
        if self._following.lost:
            found.append(
                "the legs' torques are those of an old command: the robot is heard, but does not get what it is sent; "
                "press L2 and B on its remote"
            )
        state = self._state
        if state is not None:
            hot, lost = state.temperature > HOTTEST, self._rising >= LOST
            for joint, is_hot, is_lost, degrees in zip(self.joints, hot, lost, state.temperature, strict=True):
                if is_hot:
                    found.append(f"{joint.name} has {degrees} °C; let it cool down below {HOTTEST} °C")
                if is_lost:
                    found.append(f"{joint.name} does not answer its robot; its cable or motor is broken")
            for joint, code in zip(self.joints, state.motor_errors, strict=False):
                if code:
                    found.append(f"{joint.name}'s motor tells the error {code:#x}; switch the robot off and on")
        return found

    def _signals(self, state: LowState, stamp: int) -> dict[str, tuple[np.ndarray, int]]:
        found = {name: state.quaternion[[1, 2, 3, 0]] for name in self._map.quaternions}
        found |= dict.fromkeys(self._map.rates, state.gyroscope)
        for signals, values in (
            (self._map.positions, state.q), (self._map.speeds, state.dq), (self._map.torques, state.tau),
        ):  # fmt: skip
            found |= {name: values[index] for name, index in signals.items()}
        return {name: (value.astype(np.float32), stamp) for name, value in found.items()}

    def _command(self, targets: np.ndarray, mode: Mode) -> bytes:
        on, kp = np.ones(len(self.joints), bool), np.zeros(len(self.joints))
        kd = kp + DAMPING
        if mode not in (Mode.DAMP, Mode.SAFE):
            now, of = self._now(), self._map
            since = now - self._enabled_at if self._enabled_at is not None else 0.0
            part = min(1.0, FIRST_GAINS + (1.0 - FIRST_GAINS) * since / RAMP)
            change = (now - self._sent) / BLENDING
            self._stiff = min(1.0, max(0.0, self._stiff + (change if mode is Mode.HOLD else -change)))
            kp = part * (of.kp + self._stiff * (of.hold_kp - of.kp))
            kd = of.kd + self._stiff * (of.hold_kd - of.kd)
        self._sent = self._now()
        self._following.order(Order(targets, kp, kd))
        return self._encoded(on, targets, kp, kd)

    def _encoded(self, on: np.ndarray, targets: np.ndarray, kp: np.ndarray, kd: np.ndarray) -> bytes:
        nothing = np.zeros(len(self.joints))
        machine = 0 if self._state is None else self._state.machine
        return self.family.encode_command(LowCommand(on, targets, nothing, nothing, kp, kd, machine))

    def _send(self, kind: bytes, data: bytes = b"") -> None:
        try:
            assert self._link is not None
            self._link.send(kind, data)
        except OSError:
            self._replace_keeper()

    def _replace_keeper(self) -> None:
        """Another keeper damps the legs; the session is over."""
        if self._gone:
            return
        self._gone = "the keeper of the robot's command topic ended; another one damps the legs: start anew"
        if self._enabled_at is not None:
            if self._link is not None:
                self._link.close()
            self._link = self._connect(True)

    @property
    def _foreign(self) -> int:
        count = self._status.get("foreign", 0)
        return count if isinstance(count, int) else 0


def _name(text: str) -> str | None:
    """The mode in an answer; None where it can't be read."""
    try:
        name = json.loads(text)["name"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return name[:40] if isinstance(name, str) else None
