"""Axes of joysticks: nothing moves before an axis was seen at rest, whatever the driver reports of untouched ones."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from hypothesis import given
from hypothesis import strategies as st

from robo_rl.ros.joystick import Axis, Joystick, JoystickError, resting


def stick(rest: float = 0.0) -> Joystick:
    return Joystick({"up": Axis(0, rest)})


def moved(joystick: Joystick, value: float, enabled: bool = True) -> float:
    return joystick.read([value], enabled)[0].get("up", 0.0)


@given(st.floats(allow_nan=True, allow_infinity=True).filter(lambda x: not abs(x) <= 0.15))
def test_an_axis_that_was_never_at_rest_moves_nothing_and_is_told(value: float) -> None:
    joystick = stick()
    for _ in range(3):
        values, refused = joystick.read([value], True)
        assert values == {}
        assert "axis 0" in refused["up"]
        assert "not seen at rest" in refused["up"]


@pytest.mark.parametrize("untouched", [0.0, 0.99, -1.0, 1.0])
def test_a_stick_counts_once_it_was_in_its_middle(untouched: float) -> None:
    joystick = stick()
    assert moved(joystick, untouched) == 0.0
    assert moved(joystick, 0.02) == 0.0
    assert moved(joystick, 0.5) == 0.5
    assert moved(joystick, -0.75) == -0.75


@pytest.mark.parametrize("rest", [1.0, -1.0])
def test_a_trigger_that_nobody_named_moves_nothing_when_it_comes_back_to_its_rest(rest: float) -> None:
    joystick = stick()
    for value in (rest, 0.4 * rest, 0.0, -0.6 * rest, -rest):  # pulled
        moved(joystick, value)
    for value in (0.0, 0.5 * rest, rest, rest):  # let go
        last = moved(joystick, value)
    assert last == 0.0
    assert moved(joystick, 0.8 * rest) == 0.0


@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.parametrize("rest", [1.0, -1.0])
def test_a_trigger_that_is_reported_as_0_until_it_is_touched_moves_nothing_at_its_rest(
    rest: float, enabled: bool
) -> None:
    """As Xbox and DualShock drivers do: 0, then near its rest at the first touch, at which it stays."""
    joystick = stick()
    moved(joystick, 0.0, enabled=False)
    for value in (0.97 * rest, 0.4 * rest, 0.0, -rest, 0.0, 0.98 * rest, rest):  # touched, pulled, let go
        moved(joystick, value, enabled)
    for value in (rest, 0.0, -rest, 0.0, rest):  # once more, now enabled
        last = moved(joystick, value)
    assert last == 0.0
    _, refused = joystick.read([rest], True)
    assert f"up=0:{rest:.0f}" in refused["up"]


def test_a_stick_that_is_held_as_the_robot_is_enabled_goes_through_its_middle_first() -> None:
    joystick = stick()
    for value in (0.0, 0.3, 0.0, 1.0):
        moved(joystick, value, enabled=False)
    assert moved(joystick, 1.0) == 0.0
    assert moved(joystick, 0.0) == 0.0
    assert moved(joystick, 1.0) == 1.0


def test_a_stick_that_was_first_reported_at_its_end_reaches_it_again_once_it_rested_in_the_middle() -> None:
    joystick = stick()
    moved(joystick, -1.0, enabled=False)
    moved(joystick, 0.0, enabled=False)
    assert moved(joystick, -1.0) == -1.0


def test_a_joystick_that_was_away_has_to_be_touched_again() -> None:
    joystick = stick()
    for value in (0.2, 0.0):
        moved(joystick, value, enabled=False)
    joystick.forget()
    assert moved(joystick, -1.0) == 0.0
    assert moved(joystick, 0.0) == 0.0


def test_a_trigger_is_found_after_values_that_are_none() -> None:
    joystick = stick()
    for value in (math.nan, 1.0, 0.0, -1.0, 0.0, 1.0):
        last = moved(joystick, value)
    assert last == 0.0


@pytest.mark.parametrize("rest", [1.0, -1.0])
def test_a_named_trigger_gives_0_at_rest_and_1_when_pulled(rest: float) -> None:
    joystick = stick(rest)
    assert moved(joystick, 0.0) == 0.0  # as drivers report it before it is touched: half pulled
    assert moved(joystick, -rest) == 0.0
    assert moved(joystick, rest) == 0.0
    assert moved(joystick, 0.0) == 0.5
    assert moved(joystick, -rest) == 1.0


@pytest.mark.parametrize(("text", "axis"), [("4", Axis(4)), ("5:1", Axis(5, 1.0)), ("2:-1", Axis(2, -1.0))])
def test_axes_are_written_as_number_and_rest(text: str, axis: Axis) -> None:
    assert Axis.parse("up", text) == axis


@pytest.mark.parametrize("text", ["", "-1", "left", "4:0.5", "4:x"])
def test_an_axis_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(JoystickError, match="axes has 'up="):
        Axis.parse("up", text)


def test_an_axis_that_the_joystick_lacks_is_told() -> None:
    values, refused = Joystick({"turn": Axis(7)}).read([0.0, 0.5], True)
    assert values == {}
    assert refused == {"turn": "turn: the joystick has no axis 7"}


def test_the_doctor_tells_where_axes_rest() -> None:
    found = resting([[0.01, 1.0, 0.4, 0.0, -1.0], [0.02, 1.0, 0.4, 0.9, -1.0]])
    assert [good for good, _ in found] == [True, True, False, False, True]
    assert "NAME=1:1" in found[1][1]
    assert "moves from 0.00 to 0.90" in found[3][1]
    assert "NAME=4:-1" in found[4][1]
    assert resting([]) == []
    assert math.isfinite(len(resting([[]])))
