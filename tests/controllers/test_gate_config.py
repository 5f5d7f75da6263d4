"""What the gate derives from a contract, and which contracts it refuses."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from controllers.gate_codes import MEANING, Event, Problem, Reason, Request, Source, State, explain
from controllers.gate_config import NEVER, GateConfig
from robo_rl.contract import Contract, ContractError

CONFIGURATIONS = Path(__file__).parents[1] / "vectors" / "gate" / "configurations"
CONTRACT = Contract.from_json(json.dumps(json.loads((CONFIGURATIONS / "stop.json").read_text())["contract"]))
"""A multirotor with a camera gimbal: see tests/vectors/gate_story.py."""


def test_times_are_whole_microseconds_and_limits_follow_from_them() -> None:
    config = GateConfig.from_contract(CONTRACT)
    assert (config.period, config.timeout, config.operator_timeout) == (10_000, 25_000, 50_000)
    assert config.late_limit + config.slack + config.period == config.timeout  # no two steps further apart
    assert [watch.timeout for watch in config.signals] == [25_000, 25_000, 50_000]
    for field in ("signal_timeout", "operator_timeout"):
        wrong = dataclasses.replace(CONTRACT, safety=dataclasses.replace(CONTRACT.safety, **{field: 1e-7}))
        with pytest.raises(ContractError, match=f"{field} is 1e-07 s; expected a microsecond to twelve days"):
            GateConfig.from_contract(wrong)


def test_steps_follow_from_rates_and_ranges() -> None:
    config = GateConfig.from_contract(CONTRACT)
    np.testing.assert_allclose(config.slow_step, np.array([1000] * 4 + [3, 5]) / 5 * 0.01, rtol=1e-6)
    np.testing.assert_allclose(config.rate_step, [np.inf] * 4 + [0.0625, 0.03125], rtol=1e-6)


def test_feedback_is_the_one_sensor_with_the_commands_elements_and_unit() -> None:
    assert GateConfig.from_contract(CONTRACT).feedback.tolist() == [-1] * 4 + [4, 5]
    orientation, gimbal, height = CONTRACT.signals
    turned = dataclasses.replace(gimbal, elements=("yaw", "pitch"))
    crossed = dataclasses.replace(CONTRACT, signals=(orientation, turned, height))
    assert GateConfig.from_contract(crossed).feedback.tolist() == [-1] * 4 + [5, 4]
    rotors, gimbals = CONTRACT.commands
    passive = dataclasses.replace(gimbals, start=None, feedback=None)  # needs no measurement
    blind = dataclasses.replace(CONTRACT, signals=(orientation, height), commands=(rotors, passive))
    assert GateConfig.from_contract(blind).feedback.tolist() == [-1] * 6


def test_explanations_name_signal_and_element() -> None:
    config = GateConfig.from_contract(CONTRACT)
    assert explain(config, Problem(Reason.SIGNAL_RANGE, 1, 1)).startswith("signal 'gimbal_angle', element 'yaw': ")
    assert explain(config, Problem(Reason.COMMAND_RATE, 1, 0)).startswith("command 'gimbal_target', element 'pitch': ")
    assert explain(config, Problem(Reason.OVERRUN)) == MEANING[Reason.OVERRUN]


def test_a_tilt_limit_needs_a_signal_that_tells_the_tilt() -> None:
    without = dataclasses.replace(CONTRACT, signals=CONTRACT.signals[1:])
    with pytest.raises(ContractError, match="no sensor signal tells the tilt"):
        GateConfig.from_contract(without)
    no_limit = dataclasses.replace(without, safety=dataclasses.replace(CONTRACT.safety, tilt_limit=None))
    assert GateConfig.from_contract(no_limit).tilt == 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"upper": (1e300, 2.5)}, "command_upper .* a float32 can hold"),
        ({"lower": (1e6, -2.5), "upper": (1e6 + 1, 2.5), "safe": (1e6, 0), "start": None}, "lost in the rounding"),
        ({"rate": (1e-9, 1.0)}, "lost in the rounding"),
    ],
)
def test_commands_that_float32_cannot_watch_are_refused(change: dict[str, Any], sentence: str) -> None:
    command = dataclasses.replace(CONTRACT.commands[1], **change)
    with pytest.raises(ContractError, match=sentence):
        GateConfig.from_contract(dataclasses.replace(CONTRACT, commands=(CONTRACT.commands[0], command)))


def test_signals_by_name_lie_in_the_contracts_order() -> None:
    config = GateConfig.from_contract(CONTRACT)
    values, stamps = config.flat_signals({"height_setpoint": ([1.5], 7), "orientation": ([0, 0, 0, 1], 5)})
    assert (values.tolist(), stamps) == ([0, 0, 0, 1, 0, 0, 1.5], (5, NEVER, 7))
    with pytest.raises(ContractError, match=r"signals \['altitude'\] are not in the contract"):
        config.flat_signals({"altitude": ([1.5], 7)})
    with pytest.raises(ContractError, match=r"signal 'height_setpoint' has shape \(2,\); expected \(1,\)"):
        config.flat_signals({"height_setpoint": ([1.5, 2], 7)})


def test_commands_by_name_make_the_round_trip() -> None:
    config = GateConfig.from_contract(CONTRACT)
    flat = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(config.flat_command(config.commands_by_name(flat)), flat)
    with pytest.raises(ContractError, match="commands are"):
        config.flat_command({"rotor_speed": flat[:4]})


def test_the_document_has_every_code_and_no_other() -> None:
    text = (CONFIGURATIONS.parents[3] / "docs" / "safety.md").read_text()
    rows = {(name, int(code)) for code, name in re.findall(r"^\| (\d+) \| ([A-Z_]+) \|", text, re.MULTILINE)}
    kinds = (State, Request, Reason)
    assert rows == {(code.name, int(code)) for kind in kinds for code in kind}
    for code in (*Source, *(event for event in Event if event)):
        assert re.search(rf"\b{code.name} \(?{int(code)}\b", text), f"{code!r} is not in the document"
