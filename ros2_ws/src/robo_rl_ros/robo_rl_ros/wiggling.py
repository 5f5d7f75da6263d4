"""Move each joint of a robot a little, for the doctor, over DDS."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from deploy.joints import PERIOD, SETTLE, Motion, WiggleError, find_joints, plan
from robo_rl_ros import quality
from robo_rl_ros.examination import Examination
from robo_rl_ros.wiring import command_wires
from robo_rl_ros.writing import message_type, write

RETURN_SPEED = 0.3
"""rad/s, on the way to the safe command at the end."""
AWAY = 1.0
"""rad: a joint that is reported this far from where it began ends the examination."""
SILENCE = 0.5
"""s without a report that end it."""


def wiggle(examination: Examination, message: str, progress: Callable[[str], None]) -> Motion:
    """Hold the pose that is reported, move one joint after the other, and end with the safe command.

    ``message``: type of the commands, "" for the usual one; ``progress`` is told each joint's name. WiggleError if
    anything else commands the robot, if its reports end, or if a joint goes astray.
    """
    hand = _Hand(examination, message)
    try:
        rest = hand.measure(SETTLE)
        if not ((rest >= hand.lower - AWAY) & (rest <= hand.upper + AWAY)).all():
            raise WiggleError(f"joints are reported at {np.round(rest, 2).tolist()}, far beyond their stops")
        aim = np.clip(rest, hand.lower, hand.upper)
        held = np.mean([hand.command(aim, rest) for _ in range(hand.steps(SETTLE))][hand.steps(SETTLE) // 2 :], axis=0)
        commanded, reported = [], []
        for j, name in enumerate(hand.channel.elements):
            progress(name)
            wave = plan(hand.channel, aim, j, hand.period)
            one = np.zeros(len(aim))
            one[j] = 1.0
            reported.append([hand.command(aim + x * one, rest) for x in wave])
            commanded.append(wave)
            for _ in range(hand.steps(0.2 * PERIOD)):
                hand.command(aim, rest)
    finally:
        hand.let_go()
    return Motion(rest, held, np.array(commanded), np.array(reported))


class _Hand:
    """Commands at the contract's rate, and what is reported after each."""

    def __init__(self, examination: Examination, message: str) -> None:
        contract, self.examination, node = examination.contract, examination, examination.node
        self.channel, self.signal = find_joints(contract)
        self.period = contract.control_period
        self.lower, self.upper = np.array(self.channel.lower), np.array(self.channel.upper)
        (self.wire,) = command_wires([self.channel], message)
        if others := node.count_publishers(self.wire.topic):
            raise WiggleError(f"{others} node(s) send on '{self.wire.topic}' already; end them, policy_node included")
        timeout = contract.safety.signal_timeout
        profile = quality.command(deadline=max(timeout, 2 * self.period), lifespan=max(timeout, 2 * self.period))
        self.publisher = node.create_publisher(message_type(self.wire.kind), self.wire.topic, profile)
        self.last: np.ndarray | None = None
        self.due = time.monotonic()

    def steps(self, seconds: float) -> int:
        return max(2, round(seconds / self.period))

    def _newest(self) -> np.ndarray:
        series = self.examination.series.get(self.signal.name)
        if series is None or not series.values:
            raise WiggleError(
                f"'{self.signal.name}' is not reported: {series.problem if series else 'nothing arrives'}"
            )
        if time.monotonic() - series.times[-1] > SILENCE:
            raise WiggleError(f"'{self.signal.name}' has not been reported for {SILENCE:g} s")
        return series.values[-1]

    def measure(self, seconds: float) -> np.ndarray:
        """The mean of what is reported."""
        values = self.examination.listen(seconds).get(self.signal.name)
        self._newest()
        assert values is not None
        if not np.isfinite(values.values).all():
            raise WiggleError(f"'{self.signal.name}' is not always a finite number")
        self.due = time.monotonic()
        return np.mean(values.values, axis=0)

    def command(self, target: np.ndarray, began: np.ndarray) -> np.ndarray:
        """Send one command, wait a period, and return what is reported then."""
        self.last = np.clip(target, self.lower, self.upper)
        self.publisher.publish(write(self.wire, self.channel, self.last, time.time_ns()))
        self.due = max(self.due + self.period, time.monotonic())
        while (left := self.due - time.monotonic()) > 0:
            self.examination.executor.spin_once(timeout_sec=left)
        found = self._newest()
        if not np.abs(found - began).max() < AWAY:
            j = int(np.argmax(np.abs(found - began)))
            raise WiggleError(f"'{self.channel.elements[j]}' went astray: from {began[j]:.2f} to {found[j]:.2f} rad")
        return found

    def let_go(self) -> None:
        """Slowly to the safe command, which is the last."""
        safe = np.array(self.channel.safe)
        if self.last is not None:
            begin = self.last
            count = self.steps(float(np.abs(safe - begin).max()) / RETURN_SPEED)
            for k in range(1, count + 1):
                message = write(self.wire, self.channel, begin + (safe - begin) * k / count, time.time_ns())
                self.publisher.publish(message)
                time.sleep(self.period)
        self.examination.node.destroy_publisher(self.publisher)
