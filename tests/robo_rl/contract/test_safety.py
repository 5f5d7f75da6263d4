"""What a runtime watches: times, tilt, and the envelope that the robot stays in."""

from __future__ import annotations

import math
from typing import Any

import pytest

from robo_rl.contract import Contract, ContractError, Envelope, Safety, Signal
from tests.robo_rl.contract.generated import small_contract

PLACE = Signal("place", ("x", "y"), "m", "world", (-1.0, -2.0), (1.0, 2.0))
SCAN = Signal("scan", (), "m", "laser", 0.0, 9.0, shape=(8,))
TABLE = Signal("table", (), "m", "body", 0.0, 9.0, shape=(4, 3))
WANTED = Signal("wanted", ("x",), "m", "world", (-1.0,), (1.0,), source="operator")


def of(*envelopes: Envelope, **changes: Any) -> Contract:
    return small_contract(signals=(PLACE, SCAN, TABLE, WANTED), safety=Safety(0.1, envelope=envelopes, **changes))


@pytest.mark.parametrize(
    "envelope",
    [
        Envelope("place", (-0.5, -0.25), (0.5, 1)),
        Envelope("place", lower=-0.5),
        Envelope("place", norm=2),
        Envelope("scan", lower=0.3),
        Envelope("table", upper=(1.0, 2.0, 3.0)),
    ],
)
def test_an_envelope_bounds_a_sensor_s_signal_with_one_number_or_one_per_element(envelope: Envelope) -> None:
    contract = of(envelope)
    assert Contract.from_json(contract.to_json()) == contract


def test_nothing_need_be_watched_but_how_old_signals_are() -> None:
    contract = small_contract(safety=Safety(1))
    assert contract.safety == Safety(1.0, None, "stop", None, ())
    assert Contract.from_json(contract.to_json()) == contract


REFUSED: list[tuple[Any, str]] = [
    (lambda: Safety(0), "safety: signal_timeout is 0; expected a positive number"),
    (lambda: Safety(None), "safety: signal_timeout is None; expected a finite number"),  # type: ignore[arg-type]
    (lambda: Safety(0.1, -1), "safety: tilt_limit is -1; expected a positive number"),
    (lambda: Safety(0.1, math.nan), "safety: tilt_limit is nan; expected a finite number"),
    (lambda: Safety(0.1, operator_timeout=0), "safety: operator_timeout is 0; expected a positive number"),
    (lambda: Safety(0.1, on_fault="damp"), "safety: on_fault is 'damp'; expected one of"),  # type: ignore[arg-type]
    (
        lambda: Envelope("place"),
        r"lower, upper, norm is \(None, None, None\); expected at least one",
    ),
    (lambda: Envelope("place", norm=0), "safety: envelope of 'place': norm is 0.0; expected a positive number"),
    (lambda: Envelope("place", lower=math.inf), "safety: envelope of 'place': lower is inf; expected a finite number"),
    (lambda: Envelope("place", upper=(1.0, math.nan)), r"envelope of 'place': upper\[1\] is nan; expected a finite"),
    (lambda: Envelope("no place", norm=1), "safety: envelope: signal is 'no place'; expected a letter"),
    (lambda: of(Envelope("home", norm=1)), r"envelope: signal is 'home'; expected one of \['place', 'scan', 'table'\]"),
    (lambda: of(Envelope("wanted", norm=1)), "safety: envelope: signal is 'wanted'; expected one of"),
    (lambda: of(Envelope("place", (0.0,))), r"envelope of 'place': lower is \(0.0,\); expected one number, or 2"),
    (lambda: of(Envelope("table", upper=(1.0,) * 4)), "envelope of 'table': upper is .*; expected one number, or 3"),
    (
        lambda: of(Envelope("place", (0.5, 0.0), 0.25)),
        r"lower\[0\] is 0.5; expected a number below upper\[0\]",
    ),
]


@pytest.mark.parametrize(("make", "sentence"), REFUSED)
def test_wrong_limits_are_refused_with_field_value_and_expectation(make: Any, sentence: str) -> None:
    with pytest.raises(ContractError, match=sentence):
        make()
