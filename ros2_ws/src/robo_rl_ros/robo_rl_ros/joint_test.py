"""Move each joint of a robot a little, for the doctor, over DDS.

Nothing here counts on being in time. A joint is held at a place until what is reported has come to rest there, and
only reports that were measured after the command count; so a slow robot, a slow network or a busy computer make the
check longer and not its findings wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from rclpy.publisher import Publisher

from robo_rl.deploy.robot.doctor import Series
from robo_rl.deploy.robot.joints import JointTestError, Motion, find_joints, places
from robo_rl.ros import quality
from robo_rl.ros.signal_check import SignalCheck
from robo_rl.ros.wiring import command_wires
from robo_rl.ros.writing import message_type, write

SPEED = 0.3
"""rad/s, from one place to the next."""
LOOK = 0.2
"""s over which reports are averaged."""
STILL = 0.02
"""rad by which two averages, one after the other, may differ at rest: several times the noise of joint encoders."""
LOOKS = 15
"""So often at most: a joint that is not at rest then never will be, and is judged by where it is."""
AWAY = 1.0
"""rad: a joint that is reported this far from where it began ends the check."""
SILENCE = 2.0
"""s without a report that end it."""


def wiggle(check: SignalCheck, message: str, progress: Callable[[str], None]) -> Motion:
    """Hold the pose that is reported, move one joint after the other, and end with the safe command.

    ``message``: type of the commands, "" for the usual one; ``progress`` is told each joint's name. JointTestError if
    anything else commands the robot, if its reports end, or if a joint goes astray.
    """
    hand = _Hand(check, message)
    try:
        rest = hand.watch()
        if not ((rest >= hand.lower - AWAY) & (rest <= hand.upper + AWAY)).all():
            raise JointTestError(f"joints are reported at {np.round(rest, 2).tolist()}, far beyond their stops")
        aim = np.clip(rest, hand.lower, hand.upper)
        hand.begin(aim)
        held = hand.hold_at(aim)
        commanded, reported = [], []
        for j, name in enumerate(hand.channel.elements):
            progress(name)
            one = np.zeros(len(aim))
            one[j] = 1.0
            commanded.append(places(hand.channel, aim, j))
            reported.append([hand.hold_at(aim + place * one) for place in commanded[-1]])
            hand.move_to(aim)
    finally:
        hand.let_go()
    return Motion(rest, held, np.array(commanded), np.array(reported))


class _Hand:
    """Commands at the contract's rate, and what is reported after them."""

    def __init__(self, check: SignalCheck, message: str) -> None:
        contract, self.check = check.contract, check
        self.channel, self.signal = find_joints(contract)
        self.period, self.timeout = contract.control_period, contract.safety.signal_timeout
        self.lower, self.upper = np.array(self.channel.lower), np.array(self.channel.upper)
        (self.wire,) = command_wires([self.channel], message)
        self.publisher: Publisher | None = None
        if not check.settle():
            raise JointTestError("the set of publishers keeps changing; wait until all nodes have started")
        self._refuse_others()

    def _refuse_others(self) -> None:
        own = 0 if self.publisher is None else 1
        if others := self.check.node.count_publishers(self.wire.topic) - own:
            raise JointTestError(
                f"{others} node(s) send on '{self.wire.topic}' already; end them, policy_node included"
            )

    def watch(self) -> np.ndarray:
        """The reported positions without commands, (J,)."""
        return self._average(self.check.hear)

    def begin(self, place: np.ndarray) -> None:
        """From now on there are commands; the first is ``place``, (J,)."""
        validity = max(self.timeout, 2 * self.period)
        profile = quality.command(deadline=validity, lifespan=validity)
        self.publisher = self.check.node.create_publisher(message_type(self.wire.kind), self.wire.topic, profile)
        self.began = self.place = place

    def move_to(self, place: np.ndarray) -> None:
        """Command the way to ``place``, (J,), at ``SPEED``."""
        begin = self.place
        count = max(1, round(float(np.abs(place - begin).max()) / (SPEED * self.period)))
        for k in range(1, count + 1):
            self._command(begin + (place - begin) * k / count)
            self.check.hear(self.period)
            self._check()

    def hold_at(self, place: np.ndarray) -> np.ndarray:
        """What is reported, (J,), when the joints have come to rest under the command ``place``, (J,)."""
        self.move_to(place)
        before = self._average(self._hold)
        for _ in range(LOOKS):
            after = self._average(self._hold)
            if np.abs(after - before).max() < STILL:
                break
            before = after
        return after

    def let_go(self) -> None:
        """Slowly to the safe command, or back to where the joints were found; that is the last command."""
        if self.publisher is None:
            return
        begin, safe = self.place, self.began if self.channel.safe == "hold" else np.array(self.channel.safe)
        count = max(1, round(float(np.abs(safe - begin).max()) / (SPEED * self.period)))
        for k in range(1, count + 1):
            self._command(begin + (safe - begin) * k / count)
            time.sleep(self.period)
        self.check.node.destroy_publisher(self.publisher)

    def _command(self, place: np.ndarray) -> None:
        self.place = np.clip(place, self.lower, self.upper)
        assert self.publisher is not None
        self.publisher.publish(write(self.wire, self.channel, self.place, time.time_ns(), period=self.period))

    def _hold(self, seconds: float) -> None:
        self._command(self.place)
        self.check.hear(seconds)
        self._check()

    def _average(self, go_on: Callable[[float], None]) -> np.ndarray:
        """The mean, (J,), of the reports of ``LOOK`` s from now, by this clock and by their number."""
        begun, enough = time.monotonic(), max(2, round(LOOK / self.period))
        while True:
            go_on(self.period)
            series = self._reports()
            fresh = series.measured >= begun
            if fresh.sum() >= enough and time.monotonic() >= begun + LOOK:
                found = np.array(series.values)[fresh]
                if not np.isfinite(found).all():
                    raise JointTestError(f"'{self.signal.name}' is not always a finite number")
                return found.mean(axis=0)

    def _reports(self) -> Series:
        series = self.check.series.get(self.signal.name)
        if series is None or not series.values:
            reason = series.problem if series else "no message arrived"
            raise JointTestError(f"'{self.signal.name}' is not reported: {reason}")
        if time.monotonic() - series.times[-1] > SILENCE:
            raise JointTestError(f"'{self.signal.name}' has not been reported for {SILENCE:g} s")
        return series

    def _check(self) -> None:
        """No other node commands, and no joint leaves its range."""
        self._refuse_others()
        found = self._reports().values[-1]
        if not np.abs(found - self.began).max() < AWAY:
            j = int(np.argmax(np.abs(found - self.began)))
            begin = self.began[j]
            raise JointTestError(f"'{self.channel.elements[j]}' went astray: from {begin:.2f} to {found[j]:.2f} rad")
