"""Signals: arrays with a shape, scans and images, limits for one or for all, slow signals, ages."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest

from robo_rl.contract import Contract, ContractError, Image, Safety, Scan, Signal
from tests.robo_rl.contract.generated import small_contract

SCAN = Scan(-math.pi, math.pi / 4, 0.1, 12.0)


def vector(**changes: Any) -> Signal:
    parts: dict[str, Any] = {"elements": ("x", "y"), "lower": (-1.0, -2.0), "upper": (1.0, 2.0)}
    return Signal(**{"name": "place", "unit": "m", "frame": "world", **parts, **changes})


def array(shape: Any, **changes: Any) -> Signal:
    return vector(**{"shape": shape, "elements": (), "lower": 0.0, "upper": 9.0, **changes})


def quaternion(**changes: Any) -> Signal:
    parts: dict[str, Any] = {"elements": tuple("xyzw"), "unit": "1", "lower": (-1.01,) * 4, "upper": (1.01,) * 4}
    return vector(**{"kind": "quaternion", "frame": "body to world", **parts, **changes})


def age(**changes: Any) -> Signal:
    parts: dict[str, Any] = {"elements": ("age",), "unit": "s", "lower": (0.0,), "upper": (3.0,)}
    return vector(**{"name": "place_age", "source": "runtime", "age_of": "place", **parts, **changes})


def of(*signals: Signal, **changes: Any) -> Contract:
    """A contract with these signals, and the least of all else."""
    return small_contract(signals=signals, **changes)


def test_a_vector_has_one_dimension_and_its_elements_for_labels() -> None:
    signal = vector()
    assert (signal.shape, signal.dimensions, signal.size, signal.labels) == (None, (2,), 2, ("x", "y"))
    np.testing.assert_array_equal(signal.bounds, [[-1, -2], [1, 2]])


@pytest.mark.parametrize(
    ("shape", "elements", "labels"),
    [
        ((3,), (), ("0", "1", "2")),
        ((2, 2), (), ("0_0", "0_1", "1_0", "1_1")),
        ((3, 2), ("ahead", "left"), ("0_ahead", "0_left", "1_ahead", "1_left", "2_ahead", "2_left")),
        ((2, 1, 2), ("a", "b"), ("0_0_a", "0_0_b", "1_0_a", "1_0_b")),
        ((2,), ("a", "b"), ("a", "b")),
    ],
)
def test_an_array_s_places_have_labels_row_by_row(shape: Any, elements: Any, labels: Any) -> None:
    signal = array(shape, elements=elements)
    assert (signal.dimensions, signal.size, signal.labels) == (shape, math.prod(shape), labels)


def test_limits_noise_and_what_was_seen_are_one_number_for_all_or_one_per_place_along_the_last_axis() -> None:
    signal = array((3, 2), lower=(-1.0, -2.0), upper=5, noise=0.5, seen_low=(0.0, 0.25), seen_high=4)
    assert (signal.upper, signal.noise, signal.seen_high) == (5.0, 0.5, 4.0)
    np.testing.assert_array_equal(signal.bounds, [[-1, -2] * 3, [5] * 6])
    np.testing.assert_array_equal(signal.spread(signal.seen_low), [0, 0.25] * 3)
    assert all(bound.dtype == np.float64 for bound in signal.bounds)
    of(signal)


def test_one_number_for_a_vector_means_one_each() -> None:
    assert vector(lower=-5, upper=5.0, noise=0.5).lower == (-5.0, -5.0)


def test_a_scan_and_an_image_read_back_with_their_geometry() -> None:
    scan, image = array((8,), layout=SCAN), array((4, 6), name="depth", layout=Image("depth", 1.2))
    contract = of(scan, image)
    back = Contract.from_json(contract.to_json())
    assert back == contract
    assert back.signal("place").layout == SCAN
    assert json.loads(contract.to_json())["signals"][1]["layout"] == {"kind": "image", "encoding": "depth", "fov": 1.2}


def test_a_contract_with_a_large_image_and_a_fine_scan_reads_back() -> None:
    scan = Scan(-math.pi, 2 * math.pi / 1080, 0.05, 30.0)
    image = array((64, 64), name="depth", layout=Image("depth", 1.2), noise=0.01, seen_low=0.1, seen_high=8.0)
    contract = of(array((1080,), layout=scan, lower=(0.0,) * 1080, upper=tuple(9.0 + i for i in range(1080))), image)
    back = Contract.from_json(contract.to_json())
    assert back == contract
    assert len(back.signal("depth").labels) == 64 * 64
    np.testing.assert_array_equal(back.signal("place").bounds[1], 9.0 + np.arange(1080))


def test_attitudes_are_quaternions_of_sensors_in_a_frame_of_the_robot_itself() -> None:
    assert quaternion().is_attitude
    assert quaternion(frame="base to world").is_attitude
    assert not quaternion(frame="object to world").is_attitude
    assert not quaternion(source="operator").is_attitude
    assert not vector(frame="body to world").is_attitude


def test_a_signal_is_late_by_its_own_time_out_or_its_period_and_the_contract_s() -> None:
    usual, own = vector(name="usual"), vector(name="own", timeout=0.125)
    slow, both = vector(name="slow", period=0.5), vector(name="both", period=0.5, timeout=0.75)
    told = vector()
    contract = of(usual, own, slow, both, told, age(), safety=Safety(0.25))
    assert [contract.timeout(s) for s in contract.signals[:5]] == [0.25, 0.125, 0.75, 0.75, None]


def test_a_period_is_at_least_the_control_period() -> None:
    of(vector(period=0.01))
    of(vector(period=0.03), control_period=0.03)
    with pytest.raises(
        ContractError, match=r"signal 'place': period is 0\.005; expected at least the control period, "
    ):
        of(vector(period=0.005))


REFUSED: list[tuple[Any, str]] = [
    (lambda: vector(elements=()), r"signal 'place': elements is \(\); expected at least one element, or a shape"),
    (lambda: vector(elements=("x", "x")), r"signal 'place': elements is \['x'\]; expected names that differ"),
    (lambda: vector(unit="mm"), "signal 'place': unit is 'mm'; expected an SI unit, one of"),
    (lambda: vector(unit="deg"), "unit is 'deg'; expected an SI unit"),
    (lambda: vector(lower=(0.0,)), r"'place': lower is \(0.0,\); expected 2 numbers, one per element"),
    (lambda: vector(lower=(0.0, 2.0)), r"signal 'place': lower\[y\] is 2.0; expected a number below upper\[y\] = 2.0"),
    (lambda: vector(noise=(0.1, -0.1)), r"signal 'place': noise is .*; expected standard deviations of 0 or more"),
    (lambda: vector(noise=(0.1,)), r"'place': noise is \(0.1,\); expected 2 numbers"),
    (lambda: vector(seen_low=(0.1,)), r"'place': seen_low is \(0.1,\); expected 2 numbers"),
    (lambda: vector(kind="matrix"), "signal 'place': kind is 'matrix'; expected 'vector' or 'quaternion'"),
    (lambda: vector(source="god"), "signal 'place': source is 'god'; expected one of"),
    (lambda: vector(delay=(0.1, 0.0)), r"signal 'place': delay is \(0.1, 0.0\); expected 0 <= least <= greatest"),
    (lambda: vector(delay=(-0.1, 0.0)), r"delay is \(-0.1, 0.0\); expected 0 <= least <= greatest"),
    (lambda: vector(period=0), "signal 'place': period is 0.0; expected a positive number, in s"),
    (lambda: vector(timeout=-1), "signal 'place': timeout is -1.0; expected a positive number, in s"),
    (lambda: vector(timeout=math.nan), "signal 'place': timeout is nan; expected a finite number"),
    (lambda: vector(period=2, timeout=1), "signal 'place': timeout is 1.0; expected at least the period, 2.0 s"),
    (lambda: vector(layout=SCAN), r"signal 'place': layout is Scan\(.*; expected none, without a shape"),
    (
        lambda: vector(age_of="place"),
        "age_of is 'place'; expected the name of a signal if the source is",
    ),
    (
        lambda: vector(source="runtime"),
        "age_of is None; expected the name of a signal if the source is",
    ),
    (lambda: quaternion(elements=tuple("wxyz")), r"is \('w', 'x', 'y', 'z'\); expected \('x', 'y', 'z', 'w'\)"),
    (lambda: array(()), r"signal 'place': shape is \(\); expected 1 to 8 positive integers"),
    (lambda: array((2, 0)), r"signal 'place': shape is \(2, 0\); expected 1 to 8 positive integers"),
    (lambda: array((2, -1)), "expected 1 to 8 positive integers"),
    (lambda: array((True, 2)), "expected 1 to 8 positive integers"),
    (lambda: array((2.0, 2)), "expected 1 to 8 positive integers"),
    (lambda: array((2,) * 9), "expected 1 to 8 positive integers"),
    (lambda: array((1 << 11, 1 << 11)), r"shape is \(2048, 2048\); expected .* a product of at most 1048576"),
    (lambda: array((10**30,)), "expected 1 to 8 positive integers"),
    (lambda: array((2, 3), elements=("a", "b")), r"elements is \('a', 'b'\); expected none, or 3 names for the places"),
    (lambda: array((4,), kind="quaternion"), "signal 'place': kind is 'quaternion'; expected 'vector', with a shape"),
    (lambda: array((2, 3), upper=(1.0, 2.0)), r"'place': upper is \(1.0, 2.0\); expected 3 numbers"),
    (lambda: array((2, 3), lower=(0.0, 9.0, 0.0)), r"lower\[0_1\] is 9.0; expected a number below upper\[0_1\] = 9.0"),
    (lambda: array((2, 3), lower=9), r"lower\[0_0\] is 9.0; expected a number below upper\[0_0\] = 9.0"),
    (lambda: array((2, 8), layout=SCAN), r"signal 'place': shape is \(2, 8\); expected 1 numbers for its layout"),
    (
        lambda: array((8,), layout=Image("gray", 1)),
        r"shape is \(8,\); expected 2 numbers for its layout",
    ),
    (lambda: Scan(0, 0, 0, 1), "scan: angle_increment is 0.0; expected an angle other than 0"),
    (lambda: Scan(0, 1, -1, 1), r"scan: range_min, range_max is \(-1.0, 1.0\); expected 0 <= range_min < range_max"),
    (lambda: Scan(0, 1, 1, 1), r"scan: range_min, range_max is \(1.0, 1.0\)"),
    (lambda: Scan(0, 1, 0, math.inf), "scan: range_max is inf; expected a finite number"),
    (lambda: Scan(None, 1, 0, 1), "scan: angle_min is None; expected a finite number"),  # type: ignore[arg-type]
    (lambda: Image("rgb", 1), "image: encoding is 'rgb'; expected 'depth', 'depth with holes' or 'gray'"),  # type: ignore[arg-type]
    (lambda: Image("gray", 0), "image: fov is 0.0; expected an angle between 0 and pi"),
    (lambda: Image("gray", math.pi), "image: fov is 3.14.*; expected an angle between 0 and pi"),
    (
        lambda: age(unit="m"),
        r"unit, elements is \('m', \('age',\)\); expected an age: one number of s",
    ),
    (lambda: age(lower=(-1.0,)), "expected an age: one number of s, 0 or more"),
    (lambda: age(elements=("a", "b"), lower=(0.0, 0.0), upper=(1.0, 1.0)), "expected an age: one number of s"),
    (lambda: of(vector(), age(age_of="cloud")), r"signal 'place_age': age_of is 'cloud'; expected one of \['place'\]"),
    (lambda: of(vector(), age(age_of="place_age")), r"age_of is 'place_age'; expected one of \['place'\]"),
    (lambda: of(vector(source="operator"), age()), r"age_of is 'place'; expected one of \[\]"),
    (
        lambda: of(vector(source="simulation")),
        "signal 'place': source is 'simulation'; expected 'sensor' or 'operator': no robot measures it",
    ),
    (lambda: of(vector(), vector()), r"signals and commands is \['place'\]; expected names that differ"),
    (lambda: of(vector(name="torque")), r"signals and commands is \['torque'\]; expected names that differ"),
    (lambda: of(vector(name="state")), "signals and commands is 'state'; expected a name other than the state's"),
    (lambda: of(vector(name="next_state")), "expected a name other than the state's"),
]


@pytest.mark.parametrize(("make", "sentence"), REFUSED)
def test_a_wrong_signal_is_refused_with_field_value_and_expectation(make: Any, sentence: str) -> None:
    with pytest.raises(ContractError, match=sentence):
        make()


@pytest.mark.parametrize("low", ["0", np.float32("inf"), math.nan, None, True, 10**400, [1.0]])
def test_a_limit_that_is_no_finite_number_is_refused(low: Any) -> None:
    with pytest.raises(ContractError, match=r"'place': lower\[0\] is .*; expected a finite number"):
        vector(elements=("x",), lower=(low,), upper=(1.0,))
    for one in (low, {"x": low}, "12"):
        with pytest.raises(ContractError, match=r"'place': (lower|upper).* is .*; expected "):
            array((4,), lower=one)


def test_many_large_signals_are_refused_before_they_fill_the_memory() -> None:
    signals = tuple(array((1 << 20,), name=f"s{i}") for i in range(3))
    with pytest.raises(ContractError, match="signals is '3145728 numbers'; expected at most 1048576 in all"):
        of(*signals)


def test_an_untrusted_name_is_told_in_a_message_of_bounded_length_without_line_breaks() -> None:
    for name in ("a\nb" * 1000, "a" * 10**6):
        for change in ({"elements": ()}, {"shape": ()}, {"unit": "mm"}, {"lower": 5.0}):
            with pytest.raises(ContractError) as refusal:
                dataclasses.replace(vector(), **{"name": name, **change})
            assert len(str(refusal.value)) < 400
            assert "\n" not in str(refusal.value)
