"""Commands: how they stop, what measures them, and what the robot's low level must do beneath them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from robo_rl.contract import (
    Actuator,
    Command,
    Contract,
    ContractError,
    CurrentLaw,
    ImpedanceLaw,
    PositionLaw,
    Robot,
    Signal,
    TorqueLaw,
    VelocityLaw,
)
from tests.robo_rl.contract.generated import full_contract, small_contract

ARM = Robot("arm", "arm", tuple(Actuator(name, "position", "rad", -2, 2, "hold") for name in ("a", "b", "c")))


def command(**changes: Any) -> Command:
    parts: dict[str, Any] = {"elements": ("a", "b"), "lower": (-1.0, -1.0), "upper": (1.0, 2.0), "safe": (0.0, 0.5)}
    return Command(**{"name": "target", "unit": "rad", "frame": "joint", **parts, **changes})


def signal(*elements: str, **changes: Any) -> Signal:
    limits = {"lower": (-3.0,) * len(elements), "upper": (3.0,) * len(elements)}
    parts: dict[str, Any] = {"name": "angle", "elements": elements, "unit": "rad", "frame": "joint", **limits}
    return Signal(**{**parts, **changes})


def of(commanded: Command, *signals: Signal) -> Contract:
    return small_contract(commands=(commanded,), signals=signals, robot=ARM)


def ramp(**changes: Any) -> Command:
    return command(stop="ramp", **changes)


# --- feedback -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        (("a", "b"), [0, 1]),
        (("b", "a"), [1, 0]),
        (("z", "b", "c", "a"), [3, 1]),
    ],
)
def test_feedback_is_matched_element_by_element_by_name(measured: Any, expected: Any) -> None:
    contract = of(ramp(), signal(*measured))
    assert contract.feedback(contract.commands[0]) == tuple(("angle", i) for i in expected)


def test_the_one_sensor_of_the_command_s_unit_with_all_elements_measures_it() -> None:
    others = (
        signal("a", "b", name="speed", unit="rad/s"),
        signal("a", name="half"),
        signal("a", "b", name="wanted", source="operator"),
        signal("a", "b", name="grid", shape=(3, 2), lower=-3.0, upper=3.0),
    )
    contract = of(ramp(), *others, signal("b", "a"))
    assert contract.feedback(contract.commands[0]) == (("angle", 1), ("angle", 0))


def test_of_two_candidates_the_one_that_is_named_measures() -> None:
    candidates = signal("a", "b"), signal("b", "a", name="encoder")
    contract = of(ramp(feedback="encoder"), *candidates)
    assert contract.feedback(contract.commands[0]) == (("encoder", 1), ("encoder", 0))
    with pytest.raises(ContractError, match=r"feedback is \['angle', 'encoder'\]; expected one sensor signal in rad"):
        of(ramp(), *candidates)


MEASURED_BY_NOTHING: list[tuple[Command, Signal, str]] = [
    (
        ramp(),
        signal("a"),
        r"command 'target', element 'b': feedback is \[\]; expected one sensor signal in rad with this",
    ),
    (ramp(), signal("a", "b", unit="rad/s"), r"feedback is \[\]; expected one sensor signal in rad .* 'ramp'"),
    (ramp(), signal("a", "b", source="operator"), r"feedback is \[\]; expected one sensor signal"),
    (
        ramp(feedback="angle"),
        signal("a"),
        "element 'b': feedback is angle; expected one sensor signal in rad with this",
    ),
    (ramp(feedback="angle"), signal("a", "b", unit="m"), "feedback is angle; expected one sensor signal in rad"),
    (ramp(feedback="nobody"), signal("a", "b"), "feedback is nobody; expected one sensor signal in rad"),
    (command(stop="hold", safe="hold"), signal("a"), "is stopped by 'hold' from where the actuators are"),
    (command(stop="damp", safe="hold"), signal("a"), "is stopped by 'damp' from where the actuators are"),
    (command(start=(0.0, 0.0)), signal("a"), "is moved to its start from where the actuators are"),
]


@pytest.mark.parametrize(("commanded", "measured", "sentence"), MEASURED_BY_NOTHING)
def test_a_command_that_needs_feedback_and_has_none_is_refused_when_the_contract_is_made(
    commanded: Command, measured: Signal, sentence: str
) -> None:
    with pytest.raises(ContractError, match=sentence):
        of(commanded, measured)


def test_a_command_that_is_switched_off_needs_no_feedback() -> None:
    passive = command()
    assert not passive.needs_feedback
    contract = of(passive, signal("z"))
    with pytest.raises(ContractError, match="feedback is"):
        contract.feedback(passive)


# --- stops and limits ---------------------------------------------------------------------------------------


def test_what_is_safe_is_numbers_or_to_hold() -> None:
    assert command(safe=(0, 1)).safe == (0.0, 1.0)
    assert command(safe="hold", stop="hold").safe == "hold"
    contract = of(command(safe="hold", stop="damp"), signal("a", "b"))
    assert Contract.from_json(contract.to_json()) == contract


def test_elements_that_are_actuators_come_in_the_robot_s_order() -> None:
    for elements in (("a", "b"), ("a", "c"), ("b", "x"), ("x", "a")):
        of(command(elements=elements), signal("z"))
    for elements in (("b", "a"), ("c", "b")):
        expected = tuple(sorted(elements))
        with pytest.raises(
            ContractError, match=rf"elements is .*; expected the robot's actuators in order, \('{expected[0]}'"
        ):
            of(command(elements=elements), signal("z"))


SIX = (1.0,) * 6
REFUSED: list[tuple[Any, str]] = [
    (lambda: command(elements=()), r"command 'target': elements is \(\); expected at least one element"),
    (lambda: command(unit="turns"), "command 'target': unit is 'turns'; expected an SI unit"),
    (lambda: command(stop="brake"), "command 'target': stop is 'brake'; expected one of"),
    (lambda: command(stop="hold"), r"safe is \(0.0, 0.5\); expected 'hold' with stop 'hold'"),
    (lambda: command(stop="damp"), r"safe is \(0.0, 0.5\); expected 'hold' with stop 'damp'"),
    (lambda: command(safe="hold"), "safe is 'hold'; expected numbers, which 'off' sends with stop 'off'"),
    (
        lambda: command(safe="hold", stop="ramp"),
        "expected numbers, which 'ramp' sends with stop 'ramp'",
    ),
    (lambda: command(safe=None), "'target': safe is None; expected 2 numbers"),
    (lambda: command(safe=(0.0, 9.0)), r"safe\[b\] is 9.0; expected a number from lower = -1.0 to upper = 2.0"),
    (lambda: command(start=(-2.0, 0.0)), r"start\[a\] is -2.0; expected a number from lower = -1.0 to upper = 1.0"),
    (lambda: command(rate=(1.0, 0.0)), r"rate is \(1.0, 0.0\); expected positive numbers, in rad per second"),
    (lambda: command(rate=(1.0,)), r"'target': rate is \(1.0,\); expected 2 numbers"),
    (lambda: command(lower=(1.0, 0.0)), r"lower\[a\] is 1.0; expected a number below upper\[a\] = 1.0"),
    (lambda: command(law=PositionLaw((1.0,), (1.0, 1.0))), r"command 'target': law: stiffness is \(1.0,\); expected 2"),
    (lambda: command(law=PositionLaw((1.0, 1.0), (1.0,))), "law: damping is .*; expected 2 numbers"),
    (lambda: command(law=PositionLaw((1.0, -1.0), (1.0, 1.0))), "law: stiffness is .*; expected numbers of 0 or more"),
    (lambda: command(law=PositionLaw((1.0, math.nan), (1.0, 1.0))), r"law: stiffness\[1\] is nan; expected a finite"),
    (lambda: command(law=VelocityLaw((1.0,))), r"law: damping is \(1.0,\); expected 2 numbers"),
    (lambda: command(law=ImpedanceLaw((1.0, 1.0), SIX, SIX, "tip")), "law: stiffness is .*; expected 6 numbers"),
    (lambda: command(law=ImpedanceLaw(SIX, SIX, (-1.0,) * 6, "tip")), "law: clip is .*; expected numbers of 0 or more"),
    (lambda: command(law=ImpedanceLaw(SIX, SIX, SIX, "../tip")), r"law: tool is '\.\./tip'; expected 1 to 64 letters"),
    (lambda: command(law=CurrentLaw(0)), "law: bandwidth is 0.0; expected a positive number, in Hz"),
    (lambda: command(law=CurrentLaw(math.inf)), "law: bandwidth is inf; expected a finite number"),
]


@pytest.mark.parametrize(("make", "sentence"), REFUSED)
def test_a_wrong_command_is_refused_with_field_value_and_expectation(make: Any, sentence: str) -> None:
    with pytest.raises(ContractError, match=sentence):
        make()


@pytest.mark.parametrize(
    "law",
    [
        PositionLaw((1 / 3, 2), (0, 0.5)),
        VelocityLaw((0.5, 1 / 7)),
        TorqueLaw(),
        TorqueLaw(compensated=True),
        ImpedanceLaw(SIX, SIX, SIX, "gripper-tip"),
        CurrentLaw(850),
    ],
)
def test_every_law_reads_back(law: Any) -> None:
    contract = of(command(law=law), signal("z"))
    back = Contract.from_json(contract.to_json())
    assert back == contract
    assert back.commands[0].law == law


def test_the_law_is_a_part_of_the_contract_s_digest() -> None:
    contract = full_contract()
    digests = {contract.digest}
    for law in (None, PositionLaw((40.0,) * 3, (1.5, 1.0, 0.75)), TorqueLaw(), TorqueLaw(True)):
        first, second, *rest = contract.commands
        changed = (first, dataclasses.replace(second, law=law), *rest)
        digests.add(dataclasses.replace(contract, commands=changed).digest)
    assert len(digests) == 5
