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

from robo_rl.contract import (
    UNITS,
    Command,
    Contract,
    ContractError,
    Multirotor,
    Provenance,
    Rotor,
    Safety,
    Signal,
    StateBlock,
)
from robo_rl.contract.reading import MAX_JSON_BYTES

ROTORS = ("front_right", "back_left", "front_left", "back_right")


def small_contract() -> Contract:
    """A contract with one of everything; numbers without short decimal forms."""
    return Contract(
        task="quadrotor-hover",
        robot_name="crazyflie",
        control_period=0.01,
        signals=(
            Signal("position", ("x", "y", "z"), "m", "world", (-0.1,) * 3, (1 / 3,) * 3, noise=(0.002,) * 3),
            Signal(
                "orientation",
                ("x", "y", "z", "w"),
                "1",
                "body to world",
                (-1.01,) * 4,
                (1.01,) * 4,
                kind="quaternion",
                delay=(0.0, 0.02),
                seen_low=(-0.5,) * 4,
                seen_high=(0.5,) * 4,
            ),
            Signal("position_setpoint", ("x",), "m", "world", (-1.0,), (1.0,), source="operator"),
        ),
        commands=(Command("rotor_speed", ROTORS, "rad/s", "rotor", (0.0,) * 4, (2618.0,) * 4, (0.0,) * 4),),
        state=(StateBlock("command_history", (2, 4), (0.25,) * 8), StateBlock("integral", (1,), (0.0,))),
        safety=Safety(signal_timeout=0.02, tilt_limit=math.pi, on_fault="controller"),
        robot=Multirotor(
            mass=0.027,
            inertia=(1.657e-5, 1.665e-5, 2.926e-5),
            rotors=tuple(
                Rotor(name, (0.03, -0.03, 0.0), "ccw", (0.0, 1e-9, 3.16e-10), 0.006, 0.07, 0.2, 0.0, 2618.0)
                for name in ROTORS
            ),
        ),
        provenance=Provenance("apg", 3, 675_840, "0" * 64, (64, 64), "tanh", False, {"torch": "2.13.0"}),
    )


def data_of(contract: Contract) -> dict[str, Any]:
    return json.loads(contract.to_json())


# --- generated contracts ------------------------------------------------------------------------------------

names = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=12)
finite = st.floats(allow_nan=False, allow_infinity=False, width=64) | st.sampled_from([5e-324, -5e-324, 1e299, -0.0])
positive = st.floats(min_value=5e-324, max_value=1e299)


def unique_names(least: int, most: int) -> Any:
    return st.lists(names, min_size=least, max_size=most, unique=True).map(tuple)


@st.composite
def limits(draw: Any, count: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    pairs = [sorted(draw(st.tuples(finite, finite).filter(lambda p: p[0] != p[1]))) for _ in range(count)]
    return tuple(low for low, _ in pairs), tuple(high for _, high in pairs)


def some(count: int, numbers: Any = finite) -> Any:
    return st.tuples(*[numbers] * count)


@st.composite
def signals(draw: Any, name: str) -> Signal:
    quaternion = draw(st.booleans())
    elements = ("x", "y", "z", "w") if quaternion else draw(unique_names(1, 4))
    low, high = draw(limits(len(elements)))
    return Signal(
        name,
        elements,
        draw(st.sampled_from(sorted(UNITS))),
        draw(names),
        low,
        high,
        kind="quaternion" if quaternion else "vector",
        source=draw(st.sampled_from(["sensor", "operator"])),
        noise=draw(st.none() | some(len(elements), st.floats(0, 1e299))),
        delay=tuple(sorted(draw(some(2, st.floats(0, 1e299))))),
        seen_low=draw(st.none() | some(len(elements))),
        seen_high=draw(st.none() | some(len(elements))),
    )


@st.composite
def blocks(draw: Any, name: str) -> StateBlock:
    shape = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    return StateBlock(name, shape, draw(some(math.prod(shape))))


@st.composite
def multirotors(draw: Any) -> Multirotor:
    rotors = []
    for name in draw(unique_names(3, 5)):
        speed_min, speed_max = sorted(draw(some(2, positive).filter(lambda p: p[0] != p[1])))
        ratio, rise, fall = draw(some(3, st.floats(0, 1e299)))
        spin = draw(st.sampled_from(["ccw", "cw"]))
        rotors.append(Rotor(name, draw(some(3)), spin, draw(some(3)), ratio, rise, fall, speed_min, speed_max))
    return Multirotor(draw(positive), draw(some(3, positive)), tuple(rotors))


@st.composite
def contracts(draw: Any) -> Contract:
    robot = draw(multirotors())
    reserved = {"state", "next_state", "rotor_speed"}
    channels = draw(st.lists(names.filter(lambda n: n not in reserved), min_size=1, max_size=3, unique=True))
    elements = tuple(rotor.name for rotor in robot.rotors)
    low, high = draw(limits(len(elements)))
    return Contract(
        task=draw(names),
        robot_name=draw(names),
        control_period=draw(st.floats(1e-5, 10)),
        signals=tuple(draw(signals(name)) for name in channels),
        commands=(
            Command("rotor_speed", elements, "rad/s", draw(names), low, high, draw(st.sampled_from([low, high]))),
        ),
        state=tuple(draw(blocks(name)) for name in draw(unique_names(0, 3))),
        safety=Safety(draw(positive), draw(positive), draw(st.sampled_from(["stop", "hold", "damp", "controller"]))),
        robot=robot,
        provenance=Provenance(
            draw(names),
            draw(st.integers()),
            draw(st.integers(min_value=0)),
            draw(st.text(max_size=8)),
            tuple(draw(st.lists(st.integers(1, 9), max_size=3))),
            draw(names),
            draw(st.booleans()),
            draw(st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=3)),
        ),
    )


def bits(value: Any) -> Any:
    """``value`` with every float as its 64 bits, so that 0.0 differs from −0.0."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, dict):
        return {key: bits(item) for key, item in value.items()}
    return tuple(map(bits, value)) if isinstance(value, tuple) else value


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(contracts())
@example(small_contract())
def test_json_round_trip_is_exact_to_the_bit(contract: Contract) -> None:
    for text in (contract.to_json(), contract.to_json(indent=2), contract.to_json().encode()):
        back = Contract.from_json(text)
        assert bits(dataclasses.asdict(back)) == bits(dataclasses.asdict(contract))
        assert back.digest == contract.digest


def test_json_is_what_the_standard_parser_reads() -> None:
    contract = small_contract()
    data = json.loads(contract.to_json(), parse_constant=pytest.fail)
    assert data["signals"][0]["upper"] == [1 / 3] * 3
    assert data["safety"]["tilt_limit"] == math.pi
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
    contract = small_contract()
    data = data_of(contract)
    digests, numbers, texts = {contract.digest}, 0, 0
    for path, value in leaves(data):
        if isinstance(value, float):
            candidate, numbers = math.nextafter(value, math.inf), numbers + 1
        elif isinstance(value, bool) or value is None:
            continue
        elif isinstance(value, int):
            candidate, numbers = value + 1, numbers + 1
        else:
            candidate, texts = value + "x", texts + 1
        try:
            other = Contract.from_json(json.dumps(changed(data, path, candidate)))
        except ContractError:
            continue  # a name that only one value may have: format, unit, spin, …
        assert other != contract
        assert other.digest not in digests, path
        digests.add(other.digest)
    assert len(digests) > 100
    assert numbers > 100
    assert texts > 30


def test_digest_is_the_sha256_of_the_canonical_json() -> None:
    contract = small_contract()
    assert contract.digest == hashlib.sha256(contract.to_json().encode("ascii")).hexdigest()


def test_whole_numbers_and_numpy_numbers_become_floats() -> None:
    contract = small_contract()
    loose = dataclasses.replace(
        contract,
        control_period=1,
        safety=Safety(signal_timeout=1, tilt_limit=np.float32(0.5)),
        robot=dataclasses.replace(contract.robot, mass=np.float64(2), inertia=np.array([1, 2, 3])),
    )
    strict = Contract.from_json(loose.to_json())
    assert strict.digest == loose.digest
    assert isinstance(loose.control_period, float)


def test_state_and_channels_are_found_by_name() -> None:
    contract = small_contract()
    assert contract.state_size == 9
    np.testing.assert_array_equal(contract.initial_state, np.array([0.25] * 8 + [0.0], np.float32))
    assert contract.initial_state.dtype == np.float32
    assert contract.signal("position").unit == "m"
    assert contract.command("rotor_speed").elements == ROTORS
    with pytest.raises(ContractError, match=r"signal 'posture' is not in the contract; it has \['position', "):
        contract.signal("posture")
    with pytest.raises(ContractError, match="command 'torque' is not in the contract"):
        contract.command("torque")


# --- refusals -----------------------------------------------------------------------------------------------


def test_every_missing_key_is_refused_by_name() -> None:
    data = data_of(small_contract())
    places = [((), data), (("signals", 0), data["signals"][0]), (("commands", 0), data["commands"][0])]
    places += [((name,), data[name]) for name in ("safety", "robot", "provenance")]
    places += [(("state", 0), data["state"][0]), (("robot", "rotors", 2), data["robot"]["rotors"][2])]
    for path, fields in places:
        for key in fields:
            if path == ("provenance", "versions"):
                continue
            without = changed(data, (*path, key), None)
            place = without
            for step in path:
                place = place[step]
            del place[key]
            with pytest.raises(ContractError, match=rf"contract: .*{key} is 'missing'; expected a value"):
                Contract.from_json(json.dumps(without))


WRONG = [
    # path, value, and what the sentence must say
    (("surprise",), 1, r"surprise is 'an unknown field'; expected one of \['task'"),
    (("sur\nprise",), 1, r"'sur\\nprise' is 'an unknown field'"),
    (("s" * 10_000,), 1, r"'s{100}' is 'an unknown field'"),
    (("signals", 1, "color"), "red", r"signals\[1\].color is 'an unknown field'"),
    (("format",), "robo contract", "format is 'robo contract'; expected 'robo-rl contract'"),
    (("version",), 2, "version is 2; expected 1, the one that this release reads"),
    (("version",), 1.0, "version is 1.0; expected an integer"),
    (("version",), True, "version is True; expected an integer"),
    (("task",), 7, "task is 7; expected a string"),
    (("task",), "", "task is ''; expected a printable name"),
    (("task",), " hover", "task is ' hover'; expected a printable name"),
    (("task",), "a\nb", r"task is 'a\\nb'; expected a printable name"),
    (("task",), "a" * 129, "task is 'aaa.*; expected a printable name of 1 to 128"),
    (("control_period",), 0, "control_period is 0.0; expected 1e-5 to 10 s"),
    (("control_period",), -0.01, "control_period is -0.01; expected 1e-5 to 10 s"),
    (("control_period",), "0.01", "control_period is '0.01'; expected a finite number"),
    (("control_period",), False, "control_period is False; expected a finite number"),
    (("control_period",), None, "control_period is None; expected a finite number"),
    (("control_period",), 10**400, "control_period is 1000.*; expected a finite number"),
    (("signals",), {}, "signals is {}; expected a list"),
    (("signals",), [], "signals is .*; expected at least one signal"),
    (("commands",), [], "commands is .*; expected at least one command"),
    (("signals", 0), 3, r"signals\[0\] is 3; expected an object with the fields of Signal"),
    (("signals", 0, "unit"), "mm", "signal 'position': unit is 'mm'; expected an SI unit, one of"),
    (("signals", 0, "unit"), "deg", "unit is 'deg'; expected an SI unit"),
    (("signals", 0, "lower"), [0.0, 0.0], r"'position': lower is \(0.0, 0.0\); expected 3 numbers, one per element"),
    (("signals", 0, "lower"), [0.0, 0.0, 9.0], r"lower\[z\] is 9.0; expected a number below upper\[z\] = 0.33"),
    (("signals", 0, "noise"), [0.1, 0.1, -0.1], "noise is .*; expected standard deviations of 0 or more"),
    (("signals", 0, "noise"), [0.1], "noise is .*; expected 3 numbers"),
    (("signals", 0, "kind"), "rotation", "kind is 'rotation'; expected one of"),
    (("signals", 0, "source"), "god", "source is 'god'; expected one of"),
    (("signals", 0, "delay"), [0.1, 0.0], "delay is .*; expected 0 <= least <= greatest"),
    (("signals", 0, "delay"), [0.1], r"delay is \[0.1\]; expected a list of 2"),
    (("signals", 0, "elements"), ["x", "x", "z"], r"elements is \['x'\]; expected names that differ"),
    (("signals", 0, "elements"), [], "elements is .*; expected at least one element"),
    (("signals", 1, "elements"), ["w", "x", "y", "z"], r"is \('w', 'x', 'y', 'z'\); expected \('x', 'y', 'z', 'w'\)"),
    (("signals", 1, "name"), "position", r"signals and commands is \['position'\]; expected names that differ"),
    (("signals", 0, "name"), "state", "signals and commands is 'state'; expected a name other than the state's"),
    (("signals", 0, "name"), "next_state", "expected a name other than the state's"),
    (("commands", 0, "elements"), [*ROTORS[::-1]], "elements is .*; expected the robot's rotors in order"),
    (("commands", 0, "elements"), ["m1", "m2", "m3", "m4"], "expected the robot's rotors in order"),
    (("commands", 0, "safe"), [0, 0, 0, 9999], r"safe\[back_right\] is 9999.0; expected a number from lower = 0.0"),
    (("state", 0, "shape"), [2, 0], r"state 'command_history': shape is \(2, 0\); expected 1 to 8 positive integers"),
    (("state", 0, "shape"), [10**9, 10**9], "expected 1 to 8 positive integers"),
    (("state", 0, "shape"), [2] * 1000, "expected 1 to 8 positive integers"),
    (("state", 0, "shape"), [2, 4.0], r"state\[0\].shape\[1\] is 4.0; expected an integer"),
    (("state", 0, "initial"), [0.0], "state 'command_history': initial is .*; expected 8 numbers"),
    (("state", 1, "name"), "command_history", r"state is \['command_history'\]; expected names that differ"),
    (("safety", "signal_timeout"), 0, "safety: signal_timeout is 0.0; expected a positive number"),
    (("safety", "tilt_limit"), -1, "safety: tilt_limit is -1.0; expected a positive number"),
    (("safety", "on_fault"), "pray", "safety.on_fault is 'pray'; expected one of"),
    (("robot", "kind"), "submarine", "robot.kind is 'submarine'; expected one of"),
    (("robot", "mass"), 0, "robot: mass is 0.0; expected a positive number, in kg"),
    (("robot", "inertia"), [1, 1, 0], "robot: inertia is .*; expected positive numbers, in kg m"),
    (("robot", "inertia"), [1, 1], r"robot.inertia is \[1, 1\]; expected a list of 3"),
    (("robot", "rotors", 1, "name"), "front_right", r"robot: rotors is \['front_right'\]; expected names that differ"),
    (("robot", "rotors", 1, "spin"), "left", r"robot.rotors\[1\].spin is 'left'; expected one of \['ccw', 'cw'\]"),
    (("robot", "rotors", 1, "rise"), -1, "rotor 'back_left': rise is -1.0; expected a number of 0 or more"),
    (("robot", "rotors", 1, "speed_max"), 0, r"speed_min, speed_max is \(0.0, 0.0\); expected 0 <= speed_min"),
    (("provenance", "seed"), 1.5, "provenance.seed is 1.5; expected an integer"),
    (("provenance", "normalize"), 1, "provenance.normalize is 1; expected true or false"),
    (("provenance", "hidden"), [64, 0], r"provenance: hidden is \(64, 0\); expected positive widths"),
    (("provenance", "environment_steps"), -1, "environment_steps is -1; expected a number of 0 or more"),
    (("provenance", "activation"), "", "provenance: activation is ''; expected a printable name"),
    (("provenance", "versions"), [], "provenance.versions is .*; expected an object"),
    (("provenance", "versions", "torch"), 2, "provenance.versions.torch is 2; expected a string"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "sentence"), WRONG)
def test_a_wrong_field_is_refused_with_field_value_and_expectation(path: tuple, value: Any, sentence: str) -> None:
    text = json.dumps(changed(data_of(small_contract()), path, value))
    with pytest.raises(ContractError, match=f"file.onnx: .*{sentence}"):
        Contract.from_json(text, "file.onnx")


def test_fewer_than_three_rotors_are_refused() -> None:
    robot = small_contract().robot
    with pytest.raises(ContractError, match="robot: rotors is 2; expected at least 3 rotors"):
        Multirotor(robot.mass, robot.inertia, robot.rotors[:2])


def test_a_wrong_kind_is_refused_without_json_too() -> None:
    with pytest.raises(ContractError, match="signal 's': kind is 'matrix'; expected 'vector' or 'quaternion'"):
        Signal("s", ("x",), "m", "world", (0.0,), (1.0,), kind="matrix")  # type: ignore[arg-type]
    for low in ("0", np.float32("inf"), math.nan, None, True):
        with pytest.raises(ContractError, match=r"'s': lower\[0\] is .*; expected a finite number"):
            Signal("s", ("x",), "m", "world", (low,), (1.0,))  # type: ignore[arg-type]


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_numbers_that_are_not_finite_are_refused(constant: str) -> None:
    text = small_contract().to_json().replace('"mass":0.027', f'"mass":{constant}')
    assert constant in text
    with pytest.raises(ContractError, match=r"(NaN|Infinity|inf); expected a finite number"):
        Contract.from_json(text)


def test_a_duplicate_key_is_refused() -> None:
    text = small_contract().to_json().replace('"mass":0.027', '"mass":0.027,"mass":0.5')
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
    text = small_contract().to_json()
    for length in range(len(text)):
        with pytest.raises(ContractError, match="contract: "):
            Contract.from_json(text[:length])


def contract_or_sentence(text: str | bytes) -> Contract | str:
    try:
        return Contract.from_json(text)
    except ContractError as error:
        return str(error)


TEXT = small_contract().to_json()


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
    code = "import sys, robo_rl.contract; print(*sorted(name.split('.')[0] for name in sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(found.stdout.split())
    assert "numpy" in loaded
    assert not loaded & {"torch", "mujoco", "onnx", "onnxruntime", "scipy", "sim", "controllers", "deploy", "tyro"}
