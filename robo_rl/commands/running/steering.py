"""The operator's set-points of ``robo-rl run``, by the keys of its terminal or by a gamepad, without ROS.

What is wished holds for ``DEAD_MAN`` (0.5 s) after the last sign of the hand: a key, which a terminal repeats while it
is held, or a gamepad whose enabling button is held. Then velocities are zero and places stay: a key that was let go, a
window without the focus, a terminal that was closed and a reader that has died look alike. A gamepad that lets go of
its button or is unplugged ends its wish at once.

A gamepad is read by Linux's joystick interface (Documentation/input/joydev/joystick-api.rst of the kernel).
"""

from __future__ import annotations

import os
import select
import struct
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from robo_rl.contract import Contract
from robo_rl.ros.joystick import Axis, Joystick
from robo_rl.ros.keyboard import KEYS, Keyboard
from robo_rl.ros.teleoperation import AXES, DEAD_MAN, Teleoperation

PERIOD = 0.02  # s
REQUESTS = {" ": "stop", "0": "disarm", "1": "arm", "2": "go", "3": "reset"}
HELP = """w s or arrows: forward, back     q e: left, right     r f: up, down     a d or arrows: turn
1: arm     2: go     space: stop     3: reset     0: disarm     any other key: stand still     Ctrl-C ends it"""
STICKS = {"forward": Axis(1), "left": Axis(0), "up": Axis(4), "turn": Axis(3)}
"""Axes of a gamepad, as ``robo-rl ros teleop`` has them: left stick, then right stick."""
ENABLE, STOP = 4, 1
"""Buttons: a shoulder that is held while the sticks count, and one that stops."""
EVENT = struct.Struct("<IhBB")
"""Time in ms, value, kind, number."""
BUTTON, AXIS, FIRST = 0x01, 0x02, 0x80
"""Kinds of events, and the bit of those that tell the state at first."""
NUMBERS = 16
"""Axes, and buttons, of a gamepad that are looked at."""


class Steering:
    """What one hand wishes, as set-points. ``want`` and ``let_go`` may be called from any thread."""

    def __init__(
        self, contract: Contract, given: Mapping[str, Any], speed: float, turn: float,
        request: Callable[[str], None], clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """``given``: set-points that come in another way. ``speed`` (m/s), ``turn`` (rad/s): the most that is wished.

        ``request`` is called with "stop", "disarm", "arm", "go" or "reset". Raises TeleoperationError if the contract
        has no signal that can be steered.
        """
        self.names = tuple(s.name for s in contract.signals if s.source == "operator" and s.name not in given)
        self.teleoperation = Teleoperation(contract, self.names, speed, turn)
        self.request, self.clock = request, clock
        self._wish: tuple[np.ndarray, float] = np.zeros(4), -DEAD_MAN - 1.0
        self._last = clock()
        self._held = False
        self.joystick = Joystick(STICKS)

    def want(self, wish: Any) -> None:
        """A sign of the hand: (4,) of −1 to 1, as ``AXES``, parts of the most."""
        self._wish = self.teleoperation.limits * np.asarray(wish, float), self.clock()

    def let_go(self) -> None:
        """The hand is off."""
        self._wish = np.zeros(4), self.clock() - DEAD_MAN - 1.0

    def setpoints(self, samples: Mapping[str, tuple[np.ndarray, int]]) -> dict[str, np.ndarray]:
        """Values (k,) by signal, now; ``samples``: the newest signals, by name with their times."""
        now, (wish, since) = self.clock(), self._wish
        passed, self._last = now - self._last, now
        measured = {name: samples[name][0] for name in self.teleoperation.needs if name in samples}
        fresh = now - since <= DEAD_MAN
        found = self.teleoperation.setpoints(wish if fresh else None, passed, measured)
        return {name: value.astype(np.float32) for name, value in found.items()}

    def press(self, key: str) -> None:
        """A key of the keyboard."""
        self.want(KEYS.get(key, (0, 0, 0, 0)))
        if key in REQUESTS:
            self.request(REQUESTS[key])

    def move(self, axes: list[float], buttons: list[bool]) -> None:
        """The state of a gamepad: axes of −1 to 1, positive to the front and left, and buttons."""
        if buttons[STOP] and not self._held:
            self.request("stop")
        self._held = buttons[STOP]
        values, _ = self.joystick.read(axes, buttons[ENABLE])
        if buttons[ENABLE] and not buttons[STOP]:
            self.want([values.get(name, 0.0) for name in AXES])
        else:
            self.let_go()


def follow_keys(keyboard: Keyboard, steering: Steering, stop: threading.Event) -> None:
    """Steer by a terminal's keys until ``stop`` is set."""
    while not stop.wait(PERIOD):
        for key in keyboard.pressed():
            steering.press(key)


def follow_gamepad(path: Path, steering: Steering, stop: threading.Event) -> None:
    """Steer by the gamepad at ``path``, such as /dev/input/js0, until ``stop`` is set or it is gone."""
    axes, buttons, rest = [0.0] * NUMBERS, [False] * NUMBERS, b""
    file = os.open(path, os.O_RDONLY)
    try:
        while not stop.is_set():
            if select.select([file], [], [], PERIOD)[0]:
                data = os.read(file, 64 * EVENT.size)
                if not data:
                    return
                rest += data
                whole = len(rest) // EVENT.size * EVENT.size
                for _, value, kind, number in EVENT.iter_unpack(rest[:whole]):
                    if kind & ~FIRST == AXIS and number < NUMBERS:
                        axes[number] = -max(-1.0, value / 32767.0)  # the kernel's are positive to the back and right
                    elif kind & ~FIRST == BUTTON and number < NUMBERS:
                        buttons[number] = bool(value)
                    steering.move(axes, buttons)  # after each: a button may be let go within the same read
                rest = rest[whole:]
            steering.move(axes, buttons)
    except OSError:  # it was unplugged
        return
    finally:
        os.close(file)
        steering.let_go()
