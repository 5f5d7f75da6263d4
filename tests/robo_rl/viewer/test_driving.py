"""Keys and a gamepad change what the operator commands, within what training drew."""

from __future__ import annotations

import os
import struct
import threading
from pathlib import Path

import numpy as np
import pytest

from robo_rl.policies.loading import load
from robo_rl.viewer.driving import Driver, axis_events, explained, follow, neutral
from robo_rl.viewer.knobs import Knob
from robo_rl.viewer.live import Live
from robo_rl.viewer.scene import reach_of_lines

KNOBS = {
    "velocity/x": Knob("velocity/x", "m/s", -2.0, 3.0, (-0.5, 1.0)),
    "velocity/y": Knob("velocity/y", "m/s", -1.0, 1.0, (-0.4, 0.4)),
    "rate/z": Knob("rate/z", "rad/s", -2.0, 2.0, (-1.0, 1.0)),
}


def event(kind: int, number: int, value: int) -> bytes:
    """As the kernel writes it: u32 time, s16 value, u8 type, u8 number."""
    return struct.pack("<IhBB", 0, value, kind, number)


@pytest.fixture
def driven() -> tuple[Driver, dict[str, float]]:
    set_to: dict[str, float] = {}
    return Driver(KNOBS, set_to.__setitem__), set_to


def test_keys_go_by_tenths_of_what_training_drew(driven: tuple[Driver, dict[str, float]]) -> None:
    driver, set_to = driven
    for key in "IKJUX":
        driver.press(key)
    assert set_to == pytest.approx({"velocity/x": -0.15, "velocity/y": 0.08, "rate/z": 0.2})
    driver.press("N")
    assert set(set_to.values()) == {0.0}


def test_a_stick_s_whole_way_is_what_training_drew(driven: tuple[Driver, dict[str, float]]) -> None:
    """Forward on a stick is −1, and so is left."""
    driver, set_to = driven
    driver.move(1, -1.0)
    driver.move(0, 1.0)
    driver.move(3, -0.5)
    assert set_to == pytest.approx({"velocity/x": 1.0, "velocity/y": -0.4, "rate/z": 0.5})
    driver.move(1, 1.0)
    assert set_to["velocity/x"] == -0.5
    driver.move(1, 0.05)
    assert set_to["velocity/x"] == 0.0


def test_axes_that_were_not_touched_say_nothing() -> None:
    """The kernel first tells a state (bit 0x80) in which some gamepads' triggers are at −1."""
    ours, theirs = os.pipe()
    data = event(0x82, 1, -32767) + event(0x01, 0, 1) + event(0x02, 1, 16384) + event(0x02, 0, -32768)
    os.write(theirs, data[:11])
    os.write(theirs, data[11:])
    os.close(theirs)
    assert list(axis_events(ours, threading.Event())) == [(1, pytest.approx(0.5, abs=1e-4)), (0, -1.0)]
    os.close(ours)


def test_a_gamepad_that_is_gone_leaves_everything_neutral(
    driven: tuple[Driver, dict[str, float]], tmp_path: Path
) -> None:
    driver, set_to = driven
    (tmp_path / "js0").write_bytes(event(0x02, 1, -32767))
    fifo = tmp_path / "js1"
    os.mkfifo(fifo)
    thread = threading.Thread(target=follow, args=(fifo, driver, threading.Event()))
    thread.start()
    with fifo.open("wb") as file:
        file.write(event(0x02, 1, -32767))
    thread.join(timeout=60)
    assert set_to == {"velocity/x": 0.0, "velocity/y": 0.0, "rate/z": 0.0}


def test_a_set_point_that_was_never_zero_has_its_middle_as_neutral() -> None:
    assert neutral(Knob("height", "m", 0.0, 2.0, (0.5, 1.5))) == 1.0


def test_what_keys_do_is_told() -> None:
    assert "**I** / **K** velocity x" in explained(KNOBS)


def test_rooms_of_robots_are_shown_apart() -> None:
    live = Live(load("zoo:diff-nav"), 2)
    lines = [m for m in live.frame.markers if m.name == "obstacles"]
    points = np.asarray(lines[0].points)
    wide = max(np.nanmax(p, axis=(0, 1))[0] - np.nanmin(p, axis=(0, 1))[0] for p in points.reshape(2, -1, 1, 3))
    assert reach_of_lines(live.frame) >= 0.45 * wide
    assert np.nanmin(points[..., 2]) > 0.05, "the floor hides half of a line that is on it"
