"""What the gate derives from a contract, and which contracts it refuses."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_rl.contract import Contract, ContractError
from robo_rl.controllers.gate.codes import MEANING, Event, Problem, Reason, Request, Source, State, explain
from robo_rl.controllers.gate.config import NEVER, GateConfig

CONFIGURATIONS = Path(__file__).parents[1] / "vectors" / "gate" / "configurations"


def read_contract(name: str) -> Contract:
    return Contract.from_json(json.dumps(json.loads((CONFIGURATIONS / f"{name}.json").read_text())["contract"]))


CONTRACT = read_contract("stop")
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


def test_feedback_is_matched_element_by_element_by_name() -> None:
    assert GateConfig.from_contract(CONTRACT).feedback.tolist() == [-1] * 4 + [4, 5]
    orientation, gimbal, height = CONTRACT.signals
    crossed = dataclasses.replace(gimbal, elements=("yaw", "pitch"))
    config = GateConfig.from_contract(dataclasses.replace(CONTRACT, signals=(orientation, crossed, height)))
    assert (config.feedback.tolist(), config.feedback_signal.tolist()) == ([-1] * 4 + [5, 4], [-1] * 4 + [1, 1])
    loose = dataclasses.replace(gimbal, lower=-2, upper=2, noise=None, elements=("pitch",), name="pitch")
    pitch, yaw = loose, dataclasses.replace(loose, elements=("mast", "yaw"), lower=(-3, -3), upper=(3, 3), name="yaw")
    apart = GateConfig.from_contract(dataclasses.replace(CONTRACT, signals=(yaw, orientation, height, pitch)))
    assert (apart.feedback.tolist(), apart.feedback_signal.tolist()) == ([-1] * 4 + [7, 1], [-1] * 4 + [3, 0])


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ([{"unit": "1"}], r"\[\]"),
        ([{"source": "operator", "noise": None}], r"\[\]"),
        ([{"elements": ("pitch", "roll")}], r"element 'yaw': feedback is \[\]"),
        ([{}, {"name": "gimbal_encoder"}], r"\['gimbal_angle', 'gimbal_encoder'\]"),
        ([{"name": "gimbal_rate", "unit": "rad/s"}], r"\[\]"),
    ],
)
def test_a_command_that_needs_feedback_and_has_none_or_several_is_refused(changes: list[dict], found: str) -> None:
    orientation, gimbal, height = CONTRACT.signals
    signals = (orientation, *(dataclasses.replace(gimbal, **change) for change in changes), height)
    with pytest.raises(ContractError, match=f"command 'gimbal_target', .*{found}; expected one sensor signal in rad"):
        dataclasses.replace(CONTRACT, signals=signals)
    rotors, target = CONTRACT.commands
    passive = dataclasses.replace(target, start=None, stop="off")
    config = GateConfig.from_contract(dataclasses.replace(CONTRACT, signals=signals, commands=(rotors, passive)))
    assert config.feedback.tolist() == [-1] * 6


def test_of_two_signals_that_measure_a_command_the_named_one_is_meant() -> None:
    orientation, gimbal, height = CONTRACT.signals
    rotors, target = CONTRACT.commands
    twice = (orientation, gimbal, dataclasses.replace(gimbal, name="gimbal_encoder"), height)
    named = dataclasses.replace(target, feedback="gimbal_encoder")
    config = GateConfig.from_contract(dataclasses.replace(CONTRACT, signals=twice, commands=(rotors, named)))
    assert config.feedback.tolist() == [-1] * 4 + [6, 7]


def test_targets_stay_within_what_the_motor_has_where_stiffness_and_effort_are_known() -> None:
    config = GateConfig.from_contract(read_contract("arm_ramp"))
    np.testing.assert_allclose(config.reach, [30 / 50, 8 / 20, np.inf, np.inf], rtol=1e-6)


def test_every_signal_has_its_own_timeout_and_feedback_is_always_watched() -> None:
    contract = read_contract("arm_ramp")
    config = GateConfig.from_contract(contract)
    assert {watch.name: watch.timeout for watch in config.signals} == {
        "finger_position": 25_000,
        "joint_position": 25_000,
        "tool_position": 80_000,
        "tool_force": 25_000,
        "object_position": 0,
        "object_age": 0,
    }
    assert [watch.name for watch in config.signals if watch.optional] == ["object_position", "object_age"]
    age = dataclasses.replace(contract.signal("object_age"), age_of="finger_position")
    told = dataclasses.replace(contract, signals=(*contract.signals[:5], age))
    finger = GateConfig.from_contract(told).signals[0]
    assert (finger.timeout, finger.optional) == (25_000, False)


def test_explanations_name_signal_and_element() -> None:
    config = GateConfig.from_contract(CONTRACT)
    assert explain(config, Problem(Reason.SIGNAL_RANGE, 1, 1)).startswith("signal 'gimbal_angle', element 'yaw': ")
    assert explain(config, Problem(Reason.COMMAND_RATE, 1, 0)).startswith("command 'gimbal_target', element 'pitch': ")
    assert explain(config, Problem(Reason.OVERRUN)) == MEANING[Reason.OVERRUN]


def test_a_tilt_limit_needs_a_signal_that_tells_the_tilt() -> None:
    without = dataclasses.replace(CONTRACT, signals=CONTRACT.signals[1:])
    with pytest.raises(ContractError, match="no sensor signal measures the tilt"):
        GateConfig.from_contract(without)
    no_limit = dataclasses.replace(without, safety=dataclasses.replace(CONTRACT.safety, tilt_limit=None))
    assert GateConfig.from_contract(no_limit).tilt == 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"upper": (1e300, 2.5)}, "command_upper .* a float32 can hold"),
        (
            {"lower": (1e6, -2.5), "upper": (1e6 + 1, 2.5), "safe": (1e6, 0), "start": None, "stop": "off"},
            "lost in the rounding",
        ),
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
    arm = GateConfig.from_contract(read_contract("arm_ramp"))
    values, stamps = arm.flat_signals({})
    assert values[9:12].tolist() == [0.125, 0, 0]  # absent: zeros within its limits
    assert stamps == (NEVER,) * 6
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
