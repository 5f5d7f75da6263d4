"""Robots: actuators with their limits, and facts that are plain data. Networks and where policies come from."""

from __future__ import annotations

import math
from typing import Any

import pytest

from robo_rl.contract import Actuator, Contract, ContractError, Encoder, Network, Provenance, Robot
from tests.robo_rl.contract.generated import small_contract


def actuator(**changes: Any) -> Actuator:
    return Actuator(
        **{"name": "a", "quantity": "position", "unit": "rad", "lower": -1, "upper": 2, "safe": 0, **changes}
    )


def robot(**changes: Any) -> Robot:
    return Robot(**{"name": "arm", "kind": "arm", "actuators": (actuator(),), **changes})


def encoder(**changes: Any) -> Encoder:
    parts: dict[str, Any] = {"kind": "convolution", "widths": (8,), "features": 4}
    return Encoder(**{"group": "depth", "shape": (4, 6), **parts, **changes})


def deep(levels: int) -> dict[str, Any]:
    return {"deeper": deep(levels - 1)} if levels else {}


@pytest.mark.parametrize(
    ("quantity", "units"),
    [
        ("position", ("rad", "m")),
        ("velocity", ("rad/s", "m/s")),
        ("effort", ("N*m", "N")),
        ("current", ("A",)),
        ("voltage", ("V",)),
    ],
)
def test_an_actuator_is_told_a_quantity_in_a_unit_of_it(quantity: str, units: tuple[str, ...]) -> None:
    for unit in units:
        assert actuator(quantity=quantity, unit=unit).unit == unit
    for unit in {"rad", "m/s", "N", "A", "V"} - set(units):
        with pytest.raises(
            ContractError, match=rf"actuator 'a': unit is '{unit}'; expected one of .* for a {quantity}"
        ):
            actuator(quantity=quantity, unit=unit)


def test_an_actuator_that_nothing_leaves_passive_holds() -> None:
    made = small_contract(robot=robot(actuators=(actuator(safe="hold", rate=1, effort=1 / 3, speed=7),)))
    back = Contract.from_json(made.to_json())
    assert back == made
    assert (back.robot.actuators[0].safe, back.robot.actuators[0].effort) == ("hold", 1 / 3)


def test_facts_are_copied_so_that_nobody_changes_them_afterwards() -> None:
    facts: dict[str, Any] = {"feet": ("FL", "FR"), "legs": {"length": 0.4}, "count": 4, "wheels": False, "tail": None}
    made = robot(facts=facts)
    facts["legs"]["length"] = 9.0
    assert made.facts == {
        "feet": ["FL", "FR"], "legs": {"length": 0.4}, "count": 4, "wheels": False, "tail": None,
    }  # fmt: skip
    assert Contract.from_json(small_contract(robot=made).to_json()).robot == made


def test_facts_as_deep_and_as_many_as_is_allowed_are_read() -> None:
    contract = small_contract(robot=robot(facts={"many": list(range(9_990)), "deep": deep(6)}))
    assert Contract.from_json(contract.to_json()) == contract


REFUSED: list[tuple[Any, str]] = [
    (lambda: actuator(quantity="torque"), "actuator 'a': quantity is 'torque'; expected one of"),
    (lambda: actuator(lower=2), r"actuator 'a': lower, upper is \(2.0, 2.0\); expected lower < upper, in rad"),
    (lambda: actuator(upper=math.inf), "actuator 'a': upper is inf; expected a finite number"),
    (lambda: actuator(safe=3), "actuator 'a': safe is 3.0; expected a number from -1.0 to 2.0, or 'hold'"),
    (lambda: actuator(safe="off"), "actuator 'a': safe is 'off'; expected a finite number"),
    (lambda: actuator(safe=None), "actuator 'a': safe is None; expected a finite number"),
    (lambda: actuator(rate=0), "actuator 'a': rate is 0.0; expected a positive number, or none"),
    (lambda: actuator(effort=-1), "actuator 'a': effort is -1.0; expected a positive number, or none"),
    (lambda: actuator(speed=math.nan), "actuator 'a': speed is nan; expected a finite number"),
    (lambda: actuator(lower=None), "actuator 'a': lower is None; expected a finite number"),
    (lambda: robot(actuators=()), r"robot: actuators is \(\); expected at least one actuator"),
    (lambda: robot(actuators=(actuator(), actuator())), r"robot: actuators is \['a'\]; expected names that differ"),
    (lambda: robot(facts=[]), r"robot: facts is \[\]; expected an object"),
    (lambda: robot(facts={"mass": math.nan}), "robot: facts.mass is nan; expected a finite number"),
    (lambda: robot(facts={"legs": [{"mass": math.inf}]}), r"robot: facts.legs\[0\].mass is inf; expected a finite"),
    (lambda: robot(facts={"mass": 10**400}), "robot: facts.mass is 1000.*; expected a finite number"),
    (lambda: robot(facts={"mass": object()}), "robot: facts.mass is <object .*; expected a finite number"),
    (lambda: robot(facts={"mass": b"1"}), "robot: facts.mass is b'1'; expected a finite number"),
    (lambda: robot(facts={"x y": 1}), "robot: facts: a key is 'x y'; expected 1 to 64 letters"),
    (lambda: robot(facts={1: 1}), "robot: facts: a key is 1; expected 1 to 64 letters"),
    (lambda: robot(facts={"a": "b\nc"}), r"robot: facts.a is 'b\\nc'; expected printable text of at most 256"),
    (lambda: robot(facts={"a": "b" * 257}), "robot: facts.a is 'b{199}; expected printable text of at most 256"),
    (lambda: robot(facts=deep(8)), "facts.deeper.* is 'too deep or too large'; expected 8 levels, 10000 values"),
    (lambda: robot(facts={"many": [0] * 10_000}), "is 'too deep or too large'; expected 8 levels, 10000 values"),
    (lambda: encoder(shape=()), r"network: encoder 'depth': shape is \(\); expected 1 to 8 positive integers"),
    (lambda: encoder(kind="spectral"), "network: encoder 'depth': kind is 'spectral'; expected one of"),
    (lambda: encoder(widths=()), r"network: encoder 'depth': widths is \(\); expected at least one"),
    (lambda: encoder(widths=(8, 0)), r"encoder 'depth': widths is \(8, 0\); expected widths of layers, 1 to 65536"),
    (lambda: encoder(features=0), "network: encoder 'depth': features is 0; expected 1 to 4096"),
    (lambda: encoder(kernel=4097), "network: encoder 'depth': kernel is 4097; expected 1 to 4096"),
    (lambda: Network((64, 0), "tanh", False), r"network: hidden is \(64, 0\); expected widths of layers, 1 to 65536"),
    (lambda: Network((10**9,), "tanh", False), r"network: hidden is \(1000000000,\); expected widths of layers"),
    (lambda: Network((8,), "", False), "network: activation is ''; expected a letter"),
    (lambda: Network((8,), "tanh", False, -1), "network: recurrent is -1; expected 0 to 4096"),
    (lambda: Network((8,), "tanh", False, 4097), "network: recurrent is 4097; expected 0 to 4096"),
    (
        lambda: Network((8,), "tanh", False, 0, (encoder(), encoder())),
        r"network: encoders is \['depth'\]; expected names that differ",
    ),
    (lambda: Provenance("ppo", 0, -1, ""), "provenance: environment_steps is -1; expected a number of 0 or more"),
    (lambda: Provenance("ppo", 0, 0, "abc"), "configuration_digest is 'abc'; expected 64 hexadecimal digits, or"),
    (lambda: Provenance("ppo", 0, 0, "", {}, "a", "\x1b[0m"), r"source_digest is .*; expected 64 hexadecimal digits"),
    (lambda: Provenance("", 0, 0, ""), "provenance: algorithm is ''; expected 1 to 64 letters"),
    (lambda: Provenance("ppo", 0, 0, "", {}, "../circle.py"), r"provenance: source is '\.\./circle.py'; expected 1 to"),
]


@pytest.mark.parametrize(("make", "sentence"), REFUSED)
def test_a_wrong_part_is_refused_with_field_value_and_expectation(make: Any, sentence: str) -> None:
    with pytest.raises(ContractError, match=sentence):
        make()


def test_a_network_with_encoders_reads_back() -> None:
    attention = Encoder("others", (8, 5), "attention", (16, 16), 12, 1)
    made = small_contract(network=Network((64,), "elu", True, 32, (encoder(kernel=5), attention)))
    assert Contract.from_json(made.to_json()) == made
