"""Steering a policy at ``robo-rl run`` by keys and by a gamepad: what ends a wish, and how soon."""

from __future__ import annotations

import io
import os
import pty
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from robo_rl.commands.running import run
from robo_rl.commands.running.steering import AXIS, BUTTON, ENABLE, EVENT, STOP, Steering, follow_gamepad, follow_keys
from robo_rl.contract import Contract
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.logs.reader import read_log
from robo_rl.ros.keyboard import Keyboard
from robo_rl.ros.teleoperation import DEAD_MAN
from robo_rl.zoo import located

WALK, HOVER = (Bundle.read(located(f"zoo:{name}")).contract for name in ("go2-flat", "quadrotor-hover"))
STANDING = np.zeros(2, np.float32)


class Hand:
    """Steering with a clock that is set, and what it asked for."""

    def __init__(self, contract: Contract = WALK) -> None:
        self.now, self.asked = 100.0, list[str]()
        self.steering = Steering(contract, {}, 0.5, 1.0, self.asked.append, lambda: self.now)

    def velocity(self, after: float = 0.0) -> np.ndarray:
        """The commanded velocity (2,) m/s, so many seconds later."""
        self.now += after
        return self.steering.setpoints({})["linear_velocity_command"]


def within(true: Callable[[], bool]) -> bool:
    """Whether it comes true; threads have their time for it."""
    end = time.monotonic() + 60
    while not true() and time.monotonic() < end:
        time.sleep(0.005)
    return true()


def test_half_a_second_after_the_last_key_the_velocity_is_zero() -> None:
    hand = Hand()
    np.testing.assert_array_equal(hand.velocity(), STANDING)
    hand.steering.press("w")
    np.testing.assert_array_equal(hand.velocity(DEAD_MAN - 0.01), [0.5, 0.0])
    hand.steering.press("w")  # a terminal repeats a key that is held
    np.testing.assert_array_equal(hand.velocity(DEAD_MAN - 0.01), [0.5, 0.0])
    np.testing.assert_array_equal(hand.velocity(0.02), STANDING)
    assert DEAD_MAN == 0.5
    hand.steering.press("a")
    assert hand.steering.setpoints({})["yaw_rate_command"] > 0
    hand.steering.press("x")
    assert hand.steering.setpoints({})["yaw_rate_command"] == 0
    for key in " 1230":
        hand.steering.press(key)
    assert hand.asked == ["stop", "arm", "go", "reset", "disarm"]


def test_a_place_stays_where_it_was_steered_to() -> None:
    hand = Hand(HOVER)
    here = {"position": (np.array([1.0, 2.0, 3.0], np.float32), 0)}
    assert hand.steering.setpoints({}) == {}, "not before it is known where the robot is"
    hand.steering.setpoints(here)
    hand.steering.press("r")
    hand.now += 0.4
    moved = hand.steering.setpoints(here)
    np.testing.assert_allclose(moved["position_setpoint"], [1.0, 2.0, 3.2], atol=1e-6)
    hand.now += 10.0
    still = hand.steering.setpoints(here)
    np.testing.assert_allclose(still["position_setpoint"], moved["position_setpoint"])
    np.testing.assert_array_equal(still["linear_velocity_setpoint"], 0.0)


def test_keys_come_from_the_terminal_and_a_terminal_that_is_closed_ends_the_wish(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, theirs = pty.openpty()
    hand, stop = Hand(), threading.Event()
    with os.fdopen(theirs) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        with Keyboard() as keyboard:
            thread = threading.Thread(target=follow_keys, args=(keyboard, hand.steering, stop))
            thread.start()
            os.write(ours, b"\x1b[A")  # the arrow up
            assert within(lambda: hand.velocity()[0] == 0.5)
            stop.set()
            thread.join(timeout=60)
    os.close(ours)
    np.testing.assert_array_equal(hand.velocity(DEAD_MAN + 0.01), STANDING)


@pytest.mark.parametrize("end", ["button", "unplugged"])
def test_a_gamepad_counts_while_its_button_is_held_and_ends_at_once_without(end: str, tmp_path: Path) -> None:
    hand, stop, path = Hand(), threading.Event(), tmp_path / "js0"
    os.mkfifo(path)
    thread = threading.Thread(target=follow_gamepad, args=(path, hand.steering, stop), daemon=True)
    thread.start()
    pad = os.open(path, os.O_WRONLY)

    def tell(kind: int, number: int, value: int) -> None:
        os.write(pad, EVENT.pack(0, value, kind, number))

    tell(AXIS, 1, -100)  # an axis counts once it was seen at rest
    tell(AXIS, 1, -16384)  # half way to the front
    np.testing.assert_array_equal(hand.velocity(), STANDING)
    tell(BUTTON, ENABLE, 1)
    assert within(lambda: hand.velocity()[0] > 0.1)
    tell(AXIS, 1, -32767)
    assert within(lambda: hand.velocity()[0] == 0.5)
    if end == "button":
        tell(BUTTON, ENABLE, 0)
        assert within(lambda: not hand.velocity().any()), "the clock stands still: it is not the half second"
        tell(BUTTON, STOP, 1)
        assert within(lambda: hand.asked == ["stop"])
    os.close(pad)
    thread.join(timeout=60)
    np.testing.assert_array_equal(hand.velocity(), STANDING)


def test_a_stop_that_is_pressed_and_let_go_within_one_read_is_heard(tmp_path: Path) -> None:
    hand, path = Hand(), tmp_path / "js0"
    path.write_bytes(b"".join(EVENT.pack(0, value, BUTTON, STOP) for value in (1, 0)))
    follow_gamepad(path, hand.steering, threading.Event())
    assert hand.asked == ["stop"]


def test_what_can_not_be_steered_is_refused_with_what_was_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    file = located("zoo:go2-flat")
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        with pytest.raises(ValueError, match="standard input is no terminal"):
            run.main(file, "go2", steer="keyboard")
    with pytest.raises(ValueError, match="expected 'keyboard', or a joystick"):
        run.main(file, "go2", steer="/dev/input/js77")


def test_a_robot_is_steered_by_a_gamepad_through_robo_rl_run_without_ros(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way from the kernel's events to the policy's signals, as the session's log has them."""
    pad = tmp_path / "js0"
    os.mkfifo(pad)

    def hold_forward() -> None:
        with pad.open("wb", buffering=0) as file:
            for event in ((-100, AXIS, 1), (1, BUTTON, ENABLE), (-32767, AXIS, 1)):
                file.write(EVENT.pack(0, *event))
            time.sleep(2.0)

    monkeypatch.setattr(sys, "stdin", io.StringIO())
    hand = threading.Thread(target=hold_forward)
    hand.start()
    driver = str(Path(__file__).parents[3] / "examples/own_driver/my_driver.py")
    assert run.main(located("zoo:go2-flat"), driver, steer=str(pad), mode="dry_run", seconds=1.0, record=tmp_path) == 0
    hand.join(timeout=60)
    (log,) = tmp_path.glob("*.mcap")
    before = [signal.name for signal in WALK.signals].index("linear_velocity_command")
    first = sum(signal.size for signal in WALK.signals[:before])
    assert [0.5, 0.0] in [step.signals[first : first + 2].tolist() for step in read_log(log).steps]
