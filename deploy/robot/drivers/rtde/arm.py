"""An arm of Universal Robots as a driver: joint targets by RTDE's registers, which a program on the robot follows.

The program stops the arm 0.1 s after the last command (``robo_rl.deploy.robot.drivers.rtde.program``), and the
robot's own controller
holds it then: silence of this computer needs no process of ours.

Whatever is wrong, a protective stop, a pause, a speed slider that was moved, ends the session: the program is told to
end, nothing more is sent, and no new signals are given, so that the gate stops. Only a new ``enable`` goes on.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping

import numpy as np

from robo_rl.contract import Contract
from robo_rl.deploy.robot.drivers.driver import DriverError, Health, Identity, Mode, Samples, Silence
from robo_rl.deploy.robot.drivers.rtde.link import Exchange, Lines
from robo_rl.deploy.robot.drivers.rtde.mapping import TARGET, Names, rounded
from robo_rl.deploy.robot.drivers.rtde.program import END, INPUTS, PATIENCE
from robo_rl.deploy.robot.drivers.rtde.robot_file import UrFile
from robo_rl.deploy.robot.drivers.rtde.states import OUTPUTS, PLAYING, STOPPED, State
from robo_rl.deploy.robot.drivers.serial_port import Port
from robo_rl.deploy.robot.drivers.ticks import Ticks

RATE = 125.0
"""Hz of the states that are asked for; the controller can tell 500."""
FINDING, STARTING, ENDING = 1.0, 10.0, 1.0
"""s for the first state, and for the program's beginning and end. A controller compiles it first."""
BEAT = 0.01
"""s between two commands while the program starts."""
SILENT = 0.1
"""s without a new state, after which the robot counts as silent."""
UNTAKEN = PATIENCE + 0.05
"""s in which the program has to take a command."""
BACK = 0.5
"""s by which the controller's clock may go back in what comes; more, and it was started anew."""
JUMP = 0.05
"""rad by which a joint may be elsewhere than its greatest speed allows."""
MOVED = 0.02
"""rad by which a joint may move while the program starts."""
OURS = 100
"""Commands of ours that may be on their way."""
WRAP = 1 << 30


class UrArm:
    """See the module's text, and ``robo_rl.deploy.robot.drivers.driver.Driver``."""

    silence = Silence.STAYS
    guard = f"a program of ours on the robot stops it {PATIENCE:g} s after the last command"

    def __init__(
        self, lines: Lines, contract: Contract, file: UrFile, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """DriverError where the contract is another robot's, or beyond the hardware."""
        self.names = Names(contract, file)
        self.measured = self.names.measured
        self._lines, self._now = lines, clock
        self._port: Port | None = None
        self._exchange: Exchange | None = None
        self._ticks = Ticks()
        self._newest: State | None = None
        self._came = self._sent_at = self._taken_at = -1e9
        self._number = 0
        self._samples: dict[str, tuple[np.ndarray, int]] = {}
        self._enabled = False
        self._gone = self._ended = ""
        self._lasting: dict[str, str] = {}
        """What is wrong until it is enabled again."""
        self._problems: tuple[str, ...] = ()
        self._cycles = self._without = self._old = self._shortened = 0

    # --- before it moves ------------------------------------------------------------------------------------------

    def connect(self) -> Identity:
        """Agree on RTDE's fields, wait for a state, and compare kinematics and tool with the contract's."""
        self._port = self._lines.exchange()
        self._exchange = Exchange(self._port, self._now)
        version = self._exchange.set_up(OUTPUTS, RATE, INPUTS)
        end = self._now() + FINDING
        while self._newest is None:
            if self._now() > end:
                raise DriverError("the controller sends no state")
            self._listen(0.01)
            self._raise_if_gone()
        self.names.same_robot(self._newest)
        return Identity("Universal Robots, e-Series", {"controller": version})

    def enable(self) -> None:
        """Hold the measured pose by our program, once the robot runs it; one that runs already goes on."""
        self._listen(0.0)
        self._raise_if_gone()
        if self._enabled and not self._ended:
            return
        state = self._state()
        self._lasting, self._ended, self._enabled = {}, "", False
        wrong = state.wrong()
        if self._now() - self._came > SILENT:
            wrong.append("the robot tells nothing")
        if state.runtime != STOPPED:
            wrong.append(f"a program is on the robot that is not ended ({state.doing}); stop it first")
        limits = self.names.following
        if np.any(state.q < limits.lowest) or np.any(state.q > limits.highest):
            wrong.append(f"the joints are at {rounded(state.q)} rad, outside of the policy's limits; move them inside")
        if wrong:
            raise DriverError("; ".join(wrong))
        self.names.same_robot(state)
        self._start(state.q)
        self._enabled = True

    def _start(self, hold: np.ndarray) -> None:
        """DriverError, with the program ended, unless it runs, takes our commands, and the arm stays at rest."""
        before = self._state().taken
        self._number = max(0, before) % WRAP
        programs = self._lines.programs()
        try:
            self._send(hold)
            programs.write(self.names.following.text().encode("ascii"))
            end = self._now() + STARTING
            while self._now() < end:
                self._listen(BEAT)
                programs.read(0.0)  # the interface tells its own states, without end
                self._raise_if_gone()
                state = self._state()
                if wrong := state.wrong():
                    self._finish()
                    raise DriverError("; ".join(wrong))
                if np.abs(state.q - hold).max() > MOVED:
                    self._finish()
                    raise DriverError("the arm moved while the program started; check the payload in the installation")
                if state.runtime == PLAYING and state.taken != before and self._is_ours(state.taken):
                    return
                self._send(hold)
        except OSError as error:
            self._finish()
            raise DriverError(f"the robot takes no program ({error.strerror or error})") from None
        finally:
            programs.close()
        self._finish()
        said = f" ({'; '.join(self._exchange.texts)})" if self._exchange and self._exchange.texts else ""
        raise DriverError(f"the robot does not run our program; is it in remote control (PolyScope, top right)?{said}")

    def disable(self) -> None:
        """End the program, which stops the arm; the robot's controller holds it."""
        if not self._enabled:
            return
        self._enabled = False
        self._finish()
        end = self._now() + ENDING
        while not self._gone and self._state().runtime == PLAYING and self._now() < end:
            self._listen(BEAT)

    # --- every cycle ------------------------------------------------------------------------------------------------

    def read(self, now: int) -> Samples:
        """The newest signals. While something is wrong they get no newer, and the gate stops the robot."""
        self._cycles += 1
        before = self._came
        self._listen(0.0)
        self._without += self._came == before
        if not self._ended:
            self._problems = tuple(self._wrong())
            if self._enabled and self._problems:
                self._end("; ".join(self._problems))
        if self._problems or self._newest is None:
            return dict(self._samples)
        stamp = now - round(1e6 * (self._now() - self._sent_at))
        given = {"joint_position": self._newest.q, "joint_velocity": self._newest.qd}
        self._samples = {name: (np.array(given[name], np.float32), stamp) for name in self.measured}
        return dict(self._samples)

    def write(self, commands: Mapping[str, np.ndarray], mode: Mode) -> None:
        """A target for the program, no further than the joints' speeds allow; nothing once something was wrong."""
        if self._ended or not self._enabled:
            return
        if mode is Mode.DAMP:
            self._end("it was damped: the program was ended, and the robot holds where it is")
            return
        wanted = np.asarray(commands[TARGET], float)
        target = self.names.limited(wanted, self._state().q)
        self._shortened += bool(np.abs(target - wanted).max() > 1e-6)
        try:
            self._send(target)
        except OSError as error:  # the next read tells the gate
            self._gone = f"the connection is gone ({error.strerror or error})"

    def health(self) -> Health:
        """What is wrong, and counters."""
        figures = {
            "cycles": float(self._cycles), "cycles without a new state": float(self._without),
            "clock's rate": self._ticks.rate,
            "states that were told before": float(self._old), "targets shortened": float(self._shortened),
        }  # fmt: skip
        return Health(self._problems, figures)

    def close(self) -> None:
        """The program ends, which stops the arm; the robot's controller holds it."""
        with contextlib.suppress(OSError, DriverError):
            self.disable()
        if self._port is not None:
            self._port.close()

    # --- what comes -------------------------------------------------------------------------------------------------

    def _listen(self, timeout: float) -> None:
        if self._exchange is None or self._gone:
            return
        try:
            for values in self._exchange.states(timeout):
                self._take(State.of(values))
        except OSError as error:
            self._gone = f"the connection is gone ({error.strerror or error})"
        except ValueError as error:
            self._gone = f"what comes is not RTDE as it was agreed ({error})"

    def _take(self, state: State) -> None:
        before = self._newest
        if before is not None:
            past = state.seconds - before.seconds
            if past < -BACK:
                self._lasting["clock"] = "the controller was started anew"
            if past <= 0.0:
                self._old += 1
                return
            if np.any(np.abs(state.q - before.q) > 2.0 * self.names.speeds * past + JUMP):
                self._lasting["jump"] = "a joint is elsewhere than it can have gone: an encoder, or bytes, are wrong"
        if not self._ticks.new(round(1000.0 * state.seconds) % (1 << 32)):
            return
        self._came = self._now()
        self._sent_at = self._ticks.sent(self._came)
        if before is None or state.taken != before.taken:
            self._taken_at = self._came
            if self._enabled and not self._is_ours(state.taken):
                self._lasting["number"] = "somebody else commands: the robot has taken a command that is not ours"
        self._newest = state

    def _is_ours(self, taken: int) -> bool:
        return 0 <= self._number - taken <= OURS

    def _wrong(self) -> list[str]:
        if self._gone:
            return [self._gone]
        state, clock = self._newest, self._now()
        if state is None or clock - self._came > SILENT:
            return [f"the robot has told nothing new for {SILENT:g} s"]
        found = [*self._lasting.values(), *state.wrong()]
        if self._enabled and state.runtime != PLAYING:
            found.append(f"our program is {state.doing}: by a person, an error, or since commands came too late")
        elif self._enabled and clock - self._taken_at > UNTAKEN:
            found.append("our program takes no commands: they are lost, or somebody else's program runs")
        return found

    def _state(self) -> State:
        if self._newest is None:
            raise DriverError("the robot has told no state; connect first")
        return self._newest

    def _raise_if_gone(self) -> None:
        if self._gone:
            raise DriverError(self._gone)

    # --- what is sent -----------------------------------------------------------------------------------------------

    def _send(self, target: np.ndarray) -> None:
        assert self._exchange is not None
        self._number += 1
        self._exchange.send(dict(zip(INPUTS, [*((float(x),) for x in target), (self._number,)], strict=True)))

    def _finish(self) -> None:
        """Tell the program to end."""
        if self._exchange is not None and self._newest is not None:
            values = [*((float(x),) for x in self._newest.q), (END,)]
            with contextlib.suppress(OSError):
                self._exchange.send(dict(zip(INPUTS, values, strict=True)))

    def _end(self, why: str) -> None:
        """Nothing more is sent but that."""
        self._ended, self._problems = why, (why,)
        self._finish()
