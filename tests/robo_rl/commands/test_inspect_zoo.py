"""What `robo-rl inspect` tells of the policies of the zoo: laws of all kinds, and the facts of their tasks."""

from __future__ import annotations

import pytest

from robo_rl.commands.exporting.inspect import describe
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.zoo import names


@pytest.mark.parametrize("name", names())
def test_a_contract_is_told_with_its_laws_and_the_facts_of_its_task(name: str) -> None:
    contract = Bundle.read(f"zoo:{name}").contract
    lines = describe(contract).splitlines()
    facts = lines[lines.index("facts") :]
    for key in contract.facts:
        assert any(line.startswith(f"  {key}") for line in facts) == (key != "ranges"), key
    laws = [line.split()[1].strip(",") for line in lines if line.strip().startswith("law ")]
    assert laws == [command.law.kind for command in contract.commands if command.law is not None]


def test_the_bandwidth_that_a_rate_loop_needs_is_told() -> None:
    told = describe(Bundle.read("zoo:quadrotor-rates").contract)
    assert "law rate, at least [7.9, 7.9, 1] 1/s, trained with 8 to 40, 8 to 40, 2 to 12" in told
