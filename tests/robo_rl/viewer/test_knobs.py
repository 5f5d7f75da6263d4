"""What can be set by hand, from the task's own data."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_rl.sim.tasks.loading import load_task
from robo_rl.viewer.knobs import Knob, operator_knobs, range_knobs, widened

HOVER, WALK = load_task("quadrotor-hover"), load_task("go2-flat")


@given(low=st.floats(-100, 100, allow_subnormal=False), width=st.floats(0, 100, allow_subnormal=False))
def test_sliders_reach_beyond_what_training_drew_and_never_change_its_sign(low, width):
    high = low + width
    below, above = widened(low, high)
    assert below <= low
    assert above >= high
    assert below < above
    if low > 0:
        assert below > 0
    if low == 0 < high:
        assert below == 0


def test_every_range_that_can_differ_has_a_slider_with_its_unit_and_what_training_drew():
    knobs = range_knobs(HOVER, {})
    assert set(knobs) == set(HOVER.spec.ranges)
    assert knobs["mass"].label == "mass, ×"
    assert knobs["wind"].label == "wind, m/s"
    assert knobs["initial/tilt"].label == "tilt, rad"
    assert all(knob.trained == HOVER.spec.ranges[name].end for name, knob in knobs.items())
    assert all(knob.value is None for knob in knobs.values())


def test_what_the_command_line_fixes_is_within_the_sliders_reach():
    knobs = range_knobs(HOVER, {"mass": 7.0, "initial/tilt": 3.0})
    assert knobs["mass"].value == 7.0
    assert knobs["mass"].high >= 7.0
    assert knobs["initial/tilt"].high >= 3.0


def test_episodes_begin_only_where_training_let_them_begin():
    """A tilt beyond upside down has no meaning."""
    knob = range_knobs(load_task("go2-recover"), {})["initial/tilt"]
    assert (knob.low, knob.high) == (0.0, 1.0)


def test_an_operators_sliders_span_what_the_task_commands():
    knobs = operator_knobs(WALK)
    assert list(knobs) == ["linear_velocity_command/x", "linear_velocity_command/y", "yaw_rate_command/z"]
    for knob, most in zip(knobs.values(), (1.0, 0.6, 1.0), strict=True):
        low, high = knob.trained
        assert -most <= low <= -0.9 * most
        assert 0.9 * most <= high <= most
        assert knob.low < low
        assert knob.high > high
    assert operator_knobs(load_task("go2-recover")) == {}


KNOB = Knob("mass", "×", 0.5, 1.5, (0.9, 1.1))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_put_into_a_sliders_limits(value):
    assert 0.5 <= KNOB.accepted(value) <= 1.5
    if 0.5 <= value <= 1.5:
        assert KNOB.accepted(value) == value


@pytest.mark.parametrize("value", [math.nan, math.inf, "1", None, True, [1.0], {"a": 1}])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ValueError, match=r"expected a number from 0\.5 to 1\.5"):
        KNOB.accepted(value)
