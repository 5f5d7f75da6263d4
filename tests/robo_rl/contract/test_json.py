"""Contracts: JSON both ways, digests, and the refusal of everything malformed."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import math
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from robo_rl.contract import Contract, ContractError, Safety, Signal
from robo_rl.contract.reading import MAX_JSON_BYTES
from tests.robo_rl.contract.generated import contracts, data_of, full_contract, small_contract


def bits(value: Any) -> Any:
    """``value`` with every float as its 64 bits, so that 0.0 differs from −0.0."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, dict):
        return {key: bits(item) for key, item in value.items()}
    return tuple(map(bits, value)) if isinstance(value, tuple | list) else value


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(contracts())
@example(small_contract())
@example(full_contract())
def test_json_round_trip_is_exact_to_the_bit(contract: Contract) -> None:
    for text in (contract.to_json(), contract.to_json(indent=2), contract.to_json().encode()):
        back = Contract.from_json(text)
        assert bits(dataclasses.asdict(back)) == bits(dataclasses.asdict(contract))
        assert back.digest == contract.digest


def test_json_is_what_the_standard_parser_reads() -> None:
    contract = full_contract()
    data = json.loads(contract.to_json(), parse_constant=pytest.fail)
    assert data["version"] == 2
    assert data["signals"][0]["upper"] == [1 / 3] * 3
    assert data["signals"][3]["layout"]["angle_min"] == -math.pi
    assert data["signals"][4]["shape"] == [4, 6]
    assert data["commands"][2]["safe"] == "hold"
    assert data["safety"]["envelope"][0] == {"signal": "position", "lower": [-0.05] * 3, "upper": 0.3, "norm": None}
    assert "text" not in data
    assert list(data) == sorted(data)


def leaves(value: Any, path: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*path, key))
    else:
        yield path, value


def changed(data: Any, path: tuple, value: Any) -> Any:
    data = copy.deepcopy(data)
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return data


def test_digest_changes_with_any_single_number_or_name() -> None:
    contract = full_contract()
    data = data_of(contract)
    digests, numbers, texts = {contract.digest}, 0, 0
    for path, value in leaves(data):
        if isinstance(value, float):
            candidate, numbers = math.nextafter(value, math.inf), numbers + 1
        elif isinstance(value, bool):
            candidate = not value
        elif value is None:
            continue
        elif isinstance(value, int):
            candidate, numbers = value + 1, numbers + 1
        else:
            candidate, texts = value + "x", texts + 1
        try:
            other = Contract.from_json(json.dumps(changed(data, path, candidate)))
        except ContractError:
            continue  # a name that only one value may have: format, unit, kind, …
        assert other != contract
        assert other.digest not in digests, path
        digests.add(other.digest)
    assert len(digests) > 150
    assert numbers > 150
    assert texts > 60


def test_a_contract_without_facts_has_the_json_and_the_digest_that_it_had_before_there_were_any() -> None:
    contract = small_contract()
    assert "facts" not in json.loads(contract.to_json())
    digest = "cd6a98be03d25a2afecb6cf0c5f10931a70b97e75799792dd9314b6b74981626"
    assert contract.digest == digest


def test_digest_is_the_sha256_of_the_canonical_json() -> None:
    contract = full_contract()
    assert contract.digest == hashlib.sha256(contract.to_json().encode("ascii")).hexdigest()


def test_whole_numbers_and_numpy_numbers_become_floats() -> None:
    contract = small_contract()
    loose = dataclasses.replace(
        contract,
        control_period=1,
        safety=Safety(signal_timeout=1, tilt_limit=np.float32(0.5)),
        robot=dataclasses.replace(contract.robot, facts={"mass": np.float64(2), "inertia": (1, 2.0, 3), "legs": 4}),
        signals=(Signal("angle", ("wheel",), "rad", "joint", np.array([-3]), np.array([3])),),
    )
    strict = Contract.from_json(loose.to_json())
    assert strict.digest == loose.digest
    assert isinstance(loose.control_period, float)
    assert loose.signals[0].lower == (-3.0,)
    assert loose.robot.facts == {"mass": 2.0, "inertia": [1, 2.0, 3], "legs": 4}
    assert isinstance(loose.robot.facts["legs"], int)


def test_what_is_changed_in_a_contract_that_was_read_is_in_its_json_and_digest() -> None:
    read = Contract.from_json(full_contract().to_json())
    other = dataclasses.replace(read, task="another")
    assert json.loads(other.to_json())["task"] == "another"
    assert other.digest != read.digest


def test_state_and_channels_are_found_by_name() -> None:
    contract = full_contract()
    assert contract.state_size == 9
    np.testing.assert_array_equal(contract.initial_state, np.array([0.25] * 8 + [0.0], np.float32))
    assert contract.initial_state.dtype == np.float32
    assert contract.signal("position").unit == "m"
    assert contract.command("rotor_speed").elements == ("front_right", "back_left", "front_left", "back_right")
    assert contract.robot_name == "inspector-1"
    with pytest.raises(ContractError, match=r"signal 'posture' is not in the contract; it has \['position', "):
        contract.signal("posture")
    with pytest.raises(ContractError, match="command 'torque' is not in the contract"):
        contract.command("torque")


# --- refusals -----------------------------------------------------------------------------------------------


def objects(value: Any, path: tuple = ()) -> Iterator[tuple[tuple, dict[str, Any]]]:
    """Every JSON object below ``value`` whose keys are fields."""
    if isinstance(value, dict):
        yield path, value
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if key not in ("facts", "versions"):
            yield from objects(item, (*path, key))


def test_every_missing_key_is_refused_by_name() -> None:
    data, count = data_of(full_contract()), 0
    for path, fields in objects(data):
        for key in fields:
            without = copy.deepcopy(data)
            place = without
            for step in path:
                place = place[step]
            del place[key]
            if (path, key) == ((), "facts"):
                assert Contract.from_json(json.dumps(without)) == dataclasses.replace(full_contract(), facts={})
                continue
            with pytest.raises(ContractError, match=rf"contract: .*{key} is 'missing'; expected a value"):
                Contract.from_json(json.dumps(without))
            count += 1
    assert count > 250


WRONG = [
    # path, value, and what the sentence must say
    (("surprise",), 1, r"surprise is 'an unknown field'; expected one of \['task'"),
    (("text",), "{}", "text is 'an unknown field'"),
    (("sur\nprise",), 1, r"'sur\\nprise' is 'an unknown field'"),
    (("s" * 10_000,), 1, r"'s{100}' is 'an unknown field'"),
    (("signals", 1, "color"), "red", r"signals\[1\].color is 'an unknown field'"),
    (("format",), "robo contract", "format is 'robo contract'; expected 'robo-rl contract'"),
    (("version",), 3, "version is 3; expected 2, or 1, which this release reads too"),
    (("version",), 0, "version is 0; expected 2, or 1"),
    (("version",), 2.0, "version is 2.0; expected an integer"),
    (("version",), True, "version is True; expected an integer"),
    (("task",), 7, "task is 7; expected a string"),
    (("control_period",), 0, "control_period is 0.0; expected 1e-5 to 10 s"),
    (("control_period",), -0.01, "control_period is -0.01; expected 1e-5 to 10 s"),
    (("control_period",), "0.01", "control_period is '0.01'; expected a finite number"),
    (("control_period",), False, "control_period is False; expected a finite number"),
    (("control_period",), None, "control_period is None; expected a finite number"),
    (("control_period",), 10**400, "control_period is 1000.*; expected a finite number"),
    (("facts",), None, "facts is None; expected an object that is not empty, or no such key"),
    (("facts",), {}, "facts is {}; expected an object that is not empty, or no such key"),
    (("facts",), [1], r"facts is \[1\]; expected an object"),
    (("facts", "object", "size"), [1e400], r"facts\.object\.size\[0\] is inf|a number is Infinity"),
    (("commands", 6, "law", "bandwidth"), [1.0, 0.0, 1.0], "law: bandwidth is .*; expected positive numbers, in 1/s"),
    (("commands", 6, "law", "trained"), [[9.0] * 3, [8.0] * 3], "law: trained is .*; expected two lists of positive"),
    (("signals",), {}, "signals is {}; expected a list"),
    (("signals",), [], "signals is .*; expected at least one signal"),
    (("commands",), [], "commands is .*; expected at least one command"),
    (("signals", 0), 3, r"signals\[0\] is 3; expected an object with the fields of Signal"),
    (("signals", 0, "delay"), [0.1], r"delay is \[0.1\]; expected a list of 2"),
    (("signals", 0, "lower"), "0", r"lower is '0'; expected a list or a number"),
    (("signals", 0, "lower"), {}, r"lower is {}; expected a list or a number"),
    (("signals", 0, "lower"), None, r"lower is None; expected a list or a number"),
    (("signals", 3, "layout", "kind"), "sonar", r"layout.kind is 'sonar'; expected one of \['image', 'scan'\]"),
    (("signals", 3, "layout", "kind"), ["scan"], r"layout.kind is \['scan'\]; expected one of"),
    (("signals", 3, "layout", "fov"), 1.0, r"layout.fov is 'an unknown field'; expected one of \['angle_min'"),
    (("signals", 3, "layout"), "scan", r"layout is 'scan'; expected an object with a kind, one of \['image', 'scan'\]"),
    (("signals", 3, "shape", 0), 1.5, r"shape\[0\] is 1.5; expected an integer"),
    (("signals", 3, "shape"), 16, "shape is 16; expected a list"),
    (("signals", 6, "age_of"), 5, "age_of is 5; expected a string"),
    (("commands", 1, "law", "kind"), "magic", r"law.kind is 'magic'; expected one of \['current', 'impedance', 'posit"),
    (("commands", 1, "law"), {"stiffness": []}, r"law.kind is 'missing'; expected a value, one of \['current', 'imped"),
    (("commands", 1, "law"), [], "law is .*; expected an object with a kind"),
    (("commands", 1, "stop"), "now", r"stop is 'now'; expected one of \['off', 'ramp', 'hold', 'damp'\]"),
    (("commands", 1, "safe"), "home", "safe is 'home'; expected one of .*'hold'"),
    (("commands", 3, "law", "compensated"), 1, "law.compensated is 1; expected true or false"),
    (("state", 0, "shape"), [2, 4.0], r"state\[0\].shape\[1\] is 4.0; expected an integer"),
    (("safety", "on_fault"), "pray", "safety.on_fault is 'pray'; expected one of"),
    (("safety", "on_fault"), "damp", r"safety.on_fault is 'damp'; expected one of \['stop', 'hold', 'controller'\]"),
    (("safety", "envelope"), {}, "safety.envelope is {}; expected a list"),
    (("robot", "actuators"), {}, "robot.actuators is {}; expected a list"),
    (("robot", "actuators", 0, "quantity"), "torque", "quantity is 'torque'; expected one of"),
    (("robot", "actuators", 0, "safe"), "off", "safe is 'off'; expected .*'hold'"),
    (("robot", "facts"), [], "robot.facts is .*; expected an object"),
    (("robot", "facts", "mass"), 10**400, "robot: facts.mass is 1000.*; expected a finite number"),
    (("network", "normalize"), 1, "network.normalize is 1; expected true or false"),
    (("network", "hidden"), [64, 8.0], r"network.hidden\[1\] is 8.0; expected an integer"),
    (("network", "encoders", 0, "kind"), "spectral", r"kind is 'spectral'; expected one of \['convolution'"),
    (("provenance", "seed"), 1.5, "provenance.seed is 1.5; expected an integer"),
    (("provenance", "seed"), 1 << 53, r"provenance.seed is \d+; expected an integer below 2\^53"),
    (("provenance", "environment_steps"), -1, "environment_steps is -1; expected a number of 0 or more"),
    (("provenance", "versions"), [], "provenance.versions is .*; expected an object"),
    (("provenance", "versions", "torch"), 2, "provenance.versions.torch is 2; expected printable text"),
    (("provenance", "versions", "torch"), "2\n3", r"versions.torch is '2\\n3'; expected printable text of at most 256"),
    (("provenance", "versions", "torch"), "2" * 257, "versions.torch is '2{199}; expected printable text"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "sentence"), WRONG)
def test_a_wrong_field_is_refused_with_field_value_and_expectation(path: tuple, value: Any, sentence: str) -> None:
    text = json.dumps(changed(data_of(full_contract()), path, value))
    with pytest.raises(ContractError, match=f"file.onnx: .*{sentence}"):
        Contract.from_json(text, "file.onnx")


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_numbers_that_are_not_finite_are_refused(constant: str) -> None:
    text = full_contract().to_json().replace('"mass":0.027', f'"mass":{constant}')
    assert constant in text
    with pytest.raises(ContractError, match=r"(NaN|Infinity|inf); expected a finite number"):
        Contract.from_json(text)


def test_a_duplicate_key_is_refused() -> None:
    text = full_contract().to_json().replace('"mass":0.027', '"mass":0.027,"mass":0.5')
    with pytest.raises(ContractError, match=r"keys of a JSON object is \['mass'\]; expected names that differ"):
        Contract.from_json(text)


@pytest.mark.parametrize("text", ["", "null", "[]", "7", '"contract"', "{}", "\x00", "{", b"\xff\xfe\x00", b"\x80"])
def test_what_is_no_json_object_is_refused(text: str | bytes) -> None:
    with pytest.raises(ContractError, match=r"contract: .*expected "):
        Contract.from_json(text)


def test_oversized_json_is_refused_unread() -> None:
    with pytest.raises(ContractError, match=f"{MAX_JSON_BYTES + 1} bytes; expected at most {MAX_JSON_BYTES}"):
        Contract.from_json(" " * (MAX_JSON_BYTES + 1))


@pytest.mark.parametrize(
    "text",
    ["[" * 500_000, '{"a":' * 100_000, "9" * 100_000, '{"task":' + "9" * 100_000 + "}"],
    ids=["deep lists", "deep objects", "long integer", "long integer in a field"],
)
def test_hostile_json_is_refused(text: str) -> None:
    with pytest.raises(ContractError, match="expected"):
        Contract.from_json(text)


def test_a_hundred_thousand_keys_are_refused_quickly() -> None:
    text = "{" + ",".join(f'"{k:x}":0' for k in range(100_000)) + "}"
    assert len(text) <= MAX_JSON_BYTES
    with pytest.raises(ContractError, match="an unknown field"):
        Contract.from_json(text)


def test_truncation_at_every_byte_is_refused() -> None:
    text = full_contract().to_json()
    for length in range(len(text)):
        with pytest.raises(ContractError, match="contract: "):
            Contract.from_json(text[:length])


def contract_or_sentence(text: str | bytes) -> Contract | str:
    try:
        return Contract.from_json(text)
    except ContractError as error:
        return str(error)


TEXT = full_contract().to_json()


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_any_mutation_of_the_text_gives_a_contract_or_a_contract_error(data: st.DataObject) -> None:
    text = TEXT.encode()
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 4)))
        filling = data.draw(st.binary(max_size=4) | st.sampled_from([b"null", b"-1", b"1e9", b"[]", b"{}", b'"', b","]))
        text = text[:start] + filling + text[end:]
    found = contract_or_sentence(text)
    if isinstance(found, Contract):
        assert Contract.from_json(found.to_json()) == found
    else:
        assert re.match("contract: .*expected ", found)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
PATHS = [path[:cut] for path, _ in leaves(json.loads(TEXT)) for cut in range(1, len(path) + 1)]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(set(PATHS), key=str)), json_values)
def test_any_json_value_at_any_place_gives_a_contract_or_a_contract_error(path: tuple, value: Any) -> None:
    text = json.dumps(changed(json.loads(TEXT), path, value))
    found = contract_or_sentence(text)
    if isinstance(found, Contract):
        assert Contract.from_json(found.to_json()).digest == found.digest
    else:
        assert re.match("contract: .*expected ", found)


def test_importing_the_contract_imports_neither_torch_nor_a_simulator() -> None:
    code = "import sys, robo_rl.contract; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(found.stdout.split())
    assert "numpy" in loaded
    assert not loaded & {"torch", "mujoco", "onnx", "onnxruntime", "scipy", "tyro"}
    assert not loaded & {"robo_rl.sim", "robo_rl.controllers", "robo_rl.deploy"}
