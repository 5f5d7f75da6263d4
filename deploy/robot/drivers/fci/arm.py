"""A Franka arm with its hand as a driver: poses of the tool in, which an impedance at 1 kHz follows, and a gripper.

libfranka stops a robot whose packets don't come (communication_constraints_violation), with its brakes. So silence of
this computer needs no process of ours. Where only the program hangs, franky's thread would hold the last reference: it
is stopped after a quarter of a second instead.

Every error, a reflex, a user stop, a hand that is silent, ends the session: nothing more is sent, and no new signals
are given, so that the gate stops. It goes on after a new ``enable`` alone, which recovers the robot from a reflex.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Mapping

import numpy as np

from robo_rl.contract import Contract
from robo_rl.deploy.robot.drivers.driver import DriverError, Health, Identity, Mode, Samples, Silence
from robo_rl.deploy.robot.drivers.fci.hand import Hand
from robo_rl.deploy.robot.drivers.fci.mapping import HAND, NEAR, TOOL, Names, between, rounded
from robo_rl.deploy.robot.drivers.fci.motion import ArmMotion
from robo_rl.deploy.robot.drivers.fci.robot_file import FrankaFile
from robo_rl.deploy.robot.drivers.fci.states import IDLE, MODES, MOVE, REFLEX, ArmState
from robo_rl.deploy.robot.drivers.ticks import Ticks
from robo_rl.deploy.robot.realtime import preemptible

FINDING = 2.0  # s for the first states
LISTENING = 0.2  # s in which the hand's rate is measured
LATE = 0.8  # part of the contract's signal timeout that the hand may take between two states
STEP = 2e-5
"""m of a finger by which a hand's width is dithered: a hand at rest repeats its value, and would look like one that
froze."""
LOST = 0.9
"""Part of commands that has to arrive in time; libfranka stops the robot below about 0.8, after 20 in a row at once."""


class FrankaArm:
    """See the module's text, and ``robo_rl.deploy.robot.drivers.driver.Driver``."""

    silence = Silence.STOPS
    guard = "its own controller brakes when no commands come, and a program that hangs is stopped after 0.25 s"

    def __init__(
        self, motion: ArmMotion, hand: Hand, contract: Contract, file: FrankaFile, model: str,
        clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        """``model``: the robot's URDF, or a part of it that names it."""
        self.names = Names(contract, file)
        self.measured = self.names.measured
        self.motion, self.hand, self.file = motion, hand, file
        self._contract, self._model, self._now, self._sleep = contract, model, clock, sleep
        self._ticks, self._dither = Ticks(), np.random.default_rng(0)
        self._samples: dict[str, tuple[np.ndarray, int]] = {}
        self._seen = -1
        self._hand_came = -1.0
        self._enabled = False
        self._ended = ""
        self._tool = np.zeros(3)
        """m, of F_T_EE when it was enabled."""
        self._problems: tuple[str, ...] = ()
        self._cycles = self._without = 0

    # --- before it moves ------------------------------------------------------------------------------------------

    def connect(self) -> Identity:
        """Wait for states, and compare tool, kinematics and the hand's rate with the contract."""
        if not self._wait(lambda: self.motion.newest is not None and self.hand.newest is not None, FINDING):
            who = "arm" if self.motion.newest is None else "hand"
            raise DriverError(self.motion.failure or self.hand.failure or f"the {who} sends no state")
        arm, hand = self.motion.newest, self.hand.newest
        assert arm is not None
        assert hand is not None
        self.names.same_tool(arm)
        widest = 2.0 * max(next(c.upper[0] for c in self._contract.commands if c.name == HAND), 0.0)
        if not widest - 0.005 <= hand.widest:
            raise DriverError(
                f"the hand opens to {hand.widest:.3f} m, the policy wants {widest:.3f} m; let it find its range first "
                "(homing, in Desk)"
            )
        self._check_hand_rate()
        found = re.search(r'<robot[^>]*name="([^"]+)"', self._model)
        details = {
            "robot": found.group(1) if found else "unknown", "hand": f"version {self.hand.gripper.server_version}",
            "kernel": "real-time" if preemptible() else "not real-time: libfranka may lose commands",
        }  # fmt: skip
        return Identity("Franka", details)

    def _check_hand_rate(self) -> None:
        slowest = LATE * self._contract.safety.signal_timeout
        if "gripper_position" not in self.measured or not slowest:
            return
        came, longest = self.hand.newest.came if self.hand.newest else 0.0, 0.0
        end = self._now() + LISTENING
        while self._now() < end:
            self._sleep(0.002)
            newest = self.hand.newest
            assert newest is not None
            longest, came = max(longest, newest.came - came, self._now() - newest.came), newest.came
        if longest > slowest:
            raise DriverError(
                f"the hand tells its width every {1e3 * longest:.0f} ms; the policy wants signals no older than "
                f"{1e3 * self._contract.safety.signal_timeout:.0f} ms (train it with a longer signal timeout)"
            )

    def enable(self) -> None:
        """Hold the measured place by the law, turned as the law's tool is, with little stiffness at first. An arm
        that is held already stays so.
        """
        arm = self._state()
        if self._enabled and not self._ended:
            return
        if arm.mode == REFLEX:
            self.motion.recover()
            self._wait(lambda: self._state().mode == IDLE, 1.0)
            arm = self._state()
        wrong = self._of_arm(arm, moving=False)
        failures = [self.motion.failure, self.hand.failure]
        if arm.mode != IDLE or wrong or any(failures):
            raise DriverError("; ".join(filter(None, [*wrong, *failures])) or f"the robot is in the mode {arm.mode}")
        self.names.same_tool(arm)
        off, most = between(arm.orientation, self.names.turn), min(self.names.law.clip[3:])
        if off > most:
            raise DriverError(
                f"the tool is turned by {rounded(arm.orientation)}, {off:.2f} rad from {rounded(self.names.turn)}, as "
                f"the policy has it; guide it within {most:g} rad of that"
            )
        low, high = self._space
        if np.any(arm.position < low) or np.any(arm.position > high):
            raise DriverError(
                f"the tool is at {rounded(arm.position)} m, out of where the policy may have it, {rounded(low)} to "
                f"{rounded(high)}; guide it there"
            )
        self.motion.protect(self.file.torque_threshold, self.file.force_threshold)
        self.motion.begin(self.names.law, arm.position, self.names.turn, self.file.posture_stiffness)
        self._enabled, self._ended, self._tool = True, "", arm.tool_position

    @property
    def _space(self) -> tuple[np.ndarray, np.ndarray]:
        """(3,) m each: the contract's envelope of the tool, or 0.1 m around what the policy commands."""
        command = self._contract.command(TOOL)
        for envelope in self._contract.safety.envelope:
            if envelope.signal == command.feedback and envelope.lower is not None and envelope.upper is not None:
                return np.broadcast_to(envelope.lower, 3), np.broadcast_to(envelope.upper, 3)
        return np.array(command.lower) - 0.1, np.array(command.upper) + 0.1

    def disable(self) -> None:
        """Bring it to rest; the robot's own controller holds it then."""
        self.hand.want(None)
        self.motion.stop()
        self.motion.wait(self._sleep)
        self._enabled = False

    # --- every cycle ------------------------------------------------------------------------------------------------

    def read(self, now: int) -> Samples:
        """The newest signals. While something is wrong they get no newer, and the gate stops the robot."""
        self._cycles += 1
        arm, hand = self.motion.newest, self.hand.newest
        if arm is None or hand is None:
            return {}
        if not self._ended:
            self._problems = tuple(self._wrong(arm))
            if self._enabled and self._problems:
                self._end("; ".join(self._problems))
        if self._problems:
            return dict(self._samples)
        clock = self._now()
        if arm.tick != self._seen and self._ticks.new(arm.tick % (1 << 32)):
            self._seen = arm.tick
            stamp = now - round(1e6 * (clock - self._ticks.sent(arm.came)))
            given = {
                "tool_position": arm.position, "tool_orientation": arm.orientation, "joint_position": arm.q,
                "joint_velocity": arm.dq,
            }  # fmt: skip
            if "tool_linear_velocity" in self.measured:
                given["tool_linear_velocity"] = self.names.velocity(arm)
            for name in given.keys() & set(self.measured):
                self._samples[name] = (np.array(given[name], np.float32), stamp)
        else:
            self._without += 1
        if "gripper_position" in self.measured and hand.came != self._hand_came:
            self._hand_came = hand.came
            opening = 0.5 * hand.width + self._dither.uniform(-STEP, STEP)
            self._samples["gripper_position"] = (
                np.array([opening], np.float32), now - round(1e6 * (clock - hand.came))
            )  # fmt: skip
        return dict(self._samples)

    def write(self, commands: Mapping[str, np.ndarray], mode: Mode) -> None:
        """The reference of the impedance and the target of the hand; nothing any more once something was wrong."""
        if self._ended:
            return
        if mode is Mode.DAMP:
            self.motion.stop()
            self._end("it was damped, and holds its joints")
            return
        self.motion.refer(commands[TOOL], self.names.turn)
        self.hand.want(float(commands[HAND][0]))

    def health(self) -> Health:
        """What is wrong, and counters."""
        arm, hand = self.motion.newest, self.hand.newest
        figures = {
            "cycles": float(self._cycles), "cycles without a new state": float(self._without),
            "commands of the hand": float(self.hand.commands), "of them without success": float(self.hand.refused),
            "commands in time %": 100.0 * arm.success if arm else 0.0,
            "width of the hand m": hand.width if hand else 0.0,
        }  # fmt: skip
        return Health(self._problems, figures)

    def close(self) -> None:
        """An arm that moves is brought to rest; the robot's own controller holds it then."""
        with contextlib.suppress(DriverError):
            self.disable()
        self.hand.close()
        self.motion.close()

    # ----------------------------------------------------------------------------------------------------------------

    def _state(self) -> ArmState:
        if self.motion.newest is None:
            raise DriverError("the robot sends no state")
        return self.motion.newest

    def _end(self, why: str) -> None:
        """Nothing more is sent; an arm that still can is brought to rest."""
        self._ended, self._problems = why, (why,)
        self.hand.want(None)
        self.motion.stop()

    def _wrong(self, state: ArmState) -> list[str]:
        """All that is, of arm and hand."""
        found = self._of_arm(state, self._enabled)
        if not found and self.motion.failure:
            found = [self.motion.failure]
        if self._enabled and np.abs(state.tool_position - self._tool).max() > NEAR:
            found.append(f"the end effector was changed: it is at {rounded(state.tool_position)} m from the flange now")
        return [*found, self.hand.failure] if self.hand.failure else found

    def _of_arm(self, state: ArmState, moving: bool) -> list[str]:
        """What is wrong with it, by its own account."""
        found = [f"the robot reports {', '.join(state.errors)}"] if state.errors else []
        if state.mode in MODES:
            found.append(MODES[state.mode])
        elif state.mode == REFLEX and not state.errors:
            found.append("a reflex has stopped the robot")
        if moving and state.mode == MOVE and 0.0 < state.success < LOST:
            found.append(f"only {100 * state.success:.0f} % of the commands reach the robot in time")
        return found

    def _wait(self, come: Callable[[], bool], seconds: float) -> bool:
        end = self._now() + seconds
        while not come():
            if self._now() > end or self.motion.failure or self.hand.failure:
                return False
            self._sleep(0.005)
        return True
