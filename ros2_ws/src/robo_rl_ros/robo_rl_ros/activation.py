"""Automatic activation: as soon as the robot's signals are there, or a refusal with the missing ones."""

from __future__ import annotations

import time
from collections.abc import Callable

from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode

from robo_rl.ros.control import Control

LOOK = 0.05
"""s between two looks whether signals are there."""


class Activation:
    """Looks from a timer, so that the node serves requests meanwhile: a stop ends the wait."""

    def __init__(self, node: LifecycleNode, control: Control, timeout: float, refuse: Callable[[str], None]) -> None:
        """``refuse`` gets a sentence after ``timeout`` s of real time."""
        self._node, self._control, self._timeout, self._refuse = node, control, timeout, refuse
        self._end = time.monotonic() + timeout
        self.timer = node.create_timer(LOOK, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _look(self) -> None:
        lacking = self._control.lacking()
        if lacking and time.monotonic() < self._end:
            return
        self.timer.cancel()
        if self._control.enabled:
            return  # the node was activated by another request
        if lacking:
            self._refuse(f"{lacking}, {self._timeout:g} s after configure (parameter activate_timeout)")
        else:
            self._node.trigger_activate()
