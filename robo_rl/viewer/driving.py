"""Driving robots of the live page: what the operator commands, by keys and by a gamepad, without ROS.

Keys work in the browser, beside viser's own for the camera; a gamepad is read where the simulation runs, by Linux's
joystick interface (Documentation/input/joydev/joystick-api.rst of the kernel): events of 8 bytes.
"""

from __future__ import annotations

import os
import select
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from robo_rl.viewer.knobs import Knob

KEYS = (("I", "K"), ("J", "L"), ("U", "O"), ("Y", "H"))
"""More and less of the first four numbers that the operator commands: as forward, left, turn left and up."""
NEUTRAL = "N"
PART = 0.1
"""Of what training drew, by which a key changes a number."""
AXES = (1, 0, 3, 4)
"""Of a gamepad, for the same numbers: left stick, then right stick. Sticks give more where they point back or right."""
DEAD = 0.1
"""Part of an axis about its middle that is zero."""
EVENT = struct.Struct("<IhBB")
"""Time in ms, value, kind, number."""
AXIS, FIRST = 0x02, 0x80
"""Kind of an event: of an axis; and the bit of those that tell the state at first, before anything is touched."""
PATIENCE = 0.2  # s


@dataclass(frozen=True)
class Driver:
    """What changes commands: numbers by knobs, in their order."""

    knobs: Mapping[str, Knob]
    act: Callable[[str, float], None]
    """With the name of a knob and its new value."""

    def press(self, key: str) -> None:
        """A key was pressed: a number is changed by a tenth of what training drew, or all become neutral."""
        for knob, keys in zip(self.knobs.values(), KEYS, strict=False):
            if key == NEUTRAL:
                self.act(knob.name, neutral(knob))
            elif key in keys:
                step = PART * (knob.trained[1] - knob.trained[0]) * (1.0 if key == keys[0] else -1.0)
                now = neutral(knob) if knob.value is None else knob.value
                self.act(knob.name, knob.accepted(now + step))

    def move(self, axis: int, value: float) -> None:
        """An axis of a gamepad was moved to −1 … 1: all of a stick's way is what training drew."""
        for knob, number in zip(self.knobs.values(), AXES, strict=False):
            if axis == number:
                at = -value if abs(value) > DEAD else 0.0
                low, high = (end - neutral(knob) for end in knob.trained)
                self.act(knob.name, knob.accepted(neutral(knob) + (at * high if at > 0 else -at * low)))


def neutral(knob: Knob) -> float:
    """0, or the middle of what training drew where that does not have it."""
    low, high = knob.trained
    return 0.0 if low <= 0.0 <= high else 0.5 * (low + high)


def explained(knobs: Mapping[str, Knob]) -> str:
    """Which key does what, as Markdown."""
    told = [
        f"**{more}** / **{less}** {knob.name.rpartition('/')[0].replace('_', ' ')} {knob.name.rpartition('/')[2]}"
        for knob, (more, less) in zip(knobs.values(), KEYS, strict=False)
    ]
    return f"Keys: {', '.join(told)}; **{NEUTRAL}** neutral. A click on the scene gives it the keyboard."


def axis_events(file: int, stop: threading.Event) -> Iterator[tuple[int, float]]:
    """Axes that were moved and where to, −1 … 1, until ``stop`` is set or the gamepad is gone.

    What axes are before they are touched is left out: some gamepads then give −1 for what is in its middle.
    """
    rest = b""
    while not stop.is_set():
        if not select.select([file], [], [], PATIENCE)[0]:
            continue
        try:
            data = os.read(file, 64 * EVENT.size)
        except OSError:
            return
        if not data:
            return
        rest += data
        whole = len(rest) // EVENT.size * EVENT.size
        for _, value, kind, number in EVENT.iter_unpack(rest[:whole]):
            if kind == AXIS:
                yield number, max(-1.0, value / 32767.0)
        rest = rest[whole:]


def follow(path: Path, driver: Driver, stop: threading.Event) -> None:
    """Drive by the gamepad at ``path``, such as /dev/input/js0; when it is gone, all numbers become neutral."""
    file = os.open(path, os.O_RDONLY)
    try:
        for axis, value in axis_events(file, stop):
            driver.move(axis, value)
    finally:
        os.close(file)
        driver.press(NEUTRAL)
