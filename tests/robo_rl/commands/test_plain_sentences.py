"""What a person reads: units beside the figures they belong to, lines that end on the screen, fields by name."""

from __future__ import annotations

import dataclasses

import pytest

from robo_rl.commands.exporting.inspect import describe
from robo_rl.contract import ContractError
from robo_rl.controllers import fallback
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.driver_doctor import Recording, _figures


@pytest.mark.parametrize("name", ["zoo:go2-flat", "zoo:quadrotor-hover", "zoo:car-race"])
def test_inspect_writes_short_lines_and_the_unit_with_each_quantity(name: str) -> None:
    contract = Bundle.read(name).contract
    text = describe(contract)
    signals = text[text.index("signals") : text.index("memory")].splitlines()
    assert max(map(len, signals)) <= 100
    assert not any(line.endswith((" to", "-")) for line in signals)
    assert "1, quaternion" not in text
    for signal in contract.signals:
        line = next(line for line in signals if line.startswith(f"  {signal.name} "))
        assert signal.unit == "1" or signal.unit.split("*")[0].split("^")[0] in line


def test_a_driver_s_figures_have_a_line_for_each_quantity_and_the_unit_after_the_number() -> None:
    figures = {
        "cycles": 500.0, "clock's rate": 1.0, "battery V": 11.1, "questions for the mode that failed": 0.0,
        **{f"temperature/{joint} degC": 30.0 + i for i, joint in enumerate(("pan", "lift", "elbow"))},
    }  # fmt: skip
    told = {(one.subject, one.sentence) for one in _figures(Recording(figures=figures))}
    assert told == {
        ("counter", "cycles: 500"), ("measured", "battery: 11.1 V"),
        ("counter", "questions for the mode that failed: 0"),
        ("temperature", "pan 30, lift 31, elbow 32 °C"),
    }  # fmt: skip


@pytest.mark.parametrize("fact", ["steering_limit", "friction", "acceleration", "body", "rear_axle"])
def test_a_contract_without_what_the_controller_needs_is_refused_by_the_name_of_the_field(fact: str) -> None:
    contract = Bundle.read("zoo:car-race").contract
    facts = {name: value for name, value in contract.robot.facts.items() if name != fact}
    foreign = dataclasses.replace(contract, robot=dataclasses.replace(contract.robot, facts=facts))
    with pytest.raises(ContractError, match=f"robot: facts: '{fact}' is missing"):
        fallback(foreign)
