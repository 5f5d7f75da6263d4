"""Whatever a contract is called: what is generated from it compiles, reads back as meant, and stays in its folder."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from onnx import helper

from robo_rl.contract import Contract, ContractError
from robo_rl.deploy.build.c.device import write_device
from robo_rl.deploy.build.c.generate import Options, generate
from robo_rl.deploy.build.c.graph import UnsupportedError
from robo_rl.deploy.build.c.host import STRICT, compile_host
from robo_rl.deploy.build.firmware.package import package
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.files.escaping import C_RESERVED
from tests.deploy.graphs import make_bundle, make_contract, position, target
from tests.robo_rl.contract.generated import contracts

COMMENTS = ("*/ int stranger(void) { return 7; } /*", "**// int stranger; /*", "*/\n#include <stranger.h>\n/*", "a\\")
WORDS = [*sorted(C_RESERVED), "OK", "PERIOD", "NOT", "NAN", "EOF", "IMU", "signals", "policy", "floats", "x__y"]


@pytest.fixture(autouse=True)
def compilers() -> None:
    if shutil.which("gcc") is None or shutil.which("g++") is None:
        pytest.skip("gcc and g++ not found; apt-get install gcc g++")


def bundle_of(contract: Contract, folder: Path) -> Bundle:
    """A bundle that commands 0.25, whatever it reads."""
    nodes, constants = [helper.make_node("Flatten", [contract.signals[0].name], ["flat"])], {}
    for i, command in enumerate(contract.commands):
        constants[f"w{i}"] = np.zeros((contract.signals[0].size, command.size), np.float32)
        constants[f"b{i}"] = np.full(command.size, 0.25, np.float32)
        nodes.append(helper.make_node("Gemm", ["flat", f"w{i}", f"b{i}"], [command.name]))
    golden = {s.name: np.zeros((2, *s.dimensions), np.float32) for s in contract.signals}
    return make_bundle(folder, contract, nodes, golden, constants)


def check(*command: str, cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


def compiles(folder: Path) -> None:
    """All sources as strict C, all headers as C++ too."""
    check("gcc", *STRICT, "-fsyntax-only", *sorted(p.name for p in folder.glob("*.c")), cwd=folder)
    (folder / "all.cc").write_text('#include "policy.h"\n#include "gate_config.h"\n#include "device.h"\n')
    check("g++", "-std=c++20", "-Wall", "-Wextra", "-Wno-unused-variable", "-Werror", "-fsyntax-only", "all.cc",
          cwd=folder)  # fmt: skip


def moderate(value: Any) -> Any:
    """With numbers that a float32 can hold, in the same order."""
    if isinstance(value, dict):
        return {key: moderate(x) for key, x in value.items()}
    if isinstance(value, list):
        return [moderate(x) for x in value]
    return math.asinh(value) if isinstance(value, float) else value


def test_the_c_of_any_contract_compiles_without_a_warning() -> None:
    compiled = 0

    @settings(max_examples=20, suppress_health_check=list(HealthCheck))
    @given(contracts(), st.integers(0, 9))
    def compiles_or_is_refused(contract: Contract, usual: int) -> None:
        nonlocal compiled
        assume(all(signal.size < 10_000 for signal in contract.signals))
        if usual:
            told = moderate(json.loads(contract.to_json()))
            timeout = min(max(told["safety"]["signal_timeout"], 1e-3), 1e3)
            told["safety"] |= {"tilt_limit": None, "signal_timeout": timeout}  # few of them measure the tilt
            try:
                contract = Contract.from_json(json.dumps(told))
            except ContractError:
                assume(False)
        with tempfile.TemporaryDirectory() as name:
            try:
                bundle = bundle_of(contract, Path(name))
                made = generate(bundle, Path(name) / "c")
                write_device(made)
            except (UnsupportedError, ContractError) as refusal:  # in a sentence, before anything is compiled
                assert re.search("expected |can't be told apart", str(refusal))  # noqa: PT017
                return
            compiles(made.folder)
            compiled += 1

    compiles_or_is_refused()
    assert compiled >= 2  # 10 of the 20 that are drawn by default


@settings(max_examples=6, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(WORDS), min_size=4, max_size=4, unique=True), st.sampled_from(WORDS))
def test_signals_commands_memory_and_elements_may_be_called_like_words_of_c(words: list[str], element: str) -> None:
    from robo_rl.contract import StateBlock

    signal, command, block, other = words
    contract = make_contract([position(signal), position(other, source="operator")], [target(command)],
                             [StateBlock(block, (2,), (0.0, 0.0))])  # fmt: skip
    assume(len({element, "period_s", "OK"}) == 3)
    operated = dataclasses.replace(contract.signals[1], elements=(element, "period_s", "OK"))
    contract = dataclasses.replace(contract, signals=(contract.signals[0], operated))
    with tempfile.TemporaryDirectory() as name:
        made = generate(bundle_of(contract, Path(name)), Path(name) / "c")
        write_device(made)
        compiles(made.folder)
        assert compile_host(made).self_test() <= made.tolerance


def hostile(contract: Contract, text: str) -> Contract:
    """A contract that nobody checked."""

    def renamed(part: Any, **fields: Any) -> Any:
        for name, value in fields.items():
            object.__setattr__(part, name, value)
        return part

    renamed(contract, task=text)
    renamed(contract.robot, name=text)
    for channel in (*contract.signals, *contract.commands):
        renamed(channel, frame=text)
    renamed(contract.signals[0], elements=(*(f"{text}{i}" for i in range(len(contract.signals[0].elements) - 1)), "z"))
    return contract


@pytest.mark.parametrize("text", COMMENTS)
def test_even_a_contract_that_nobody_checked_adds_nothing_to_the_c(text: str, tmp_path: Path) -> None:
    bundle = bundle_of(make_contract([position()], [target()]), tmp_path)
    made = generate(Bundle(bundle.path, hostile(bundle.contract, text), bundle.golden, bundle.digest, bundle.session),
                    tmp_path / "c")  # fmt: skip
    seen = subprocess.run(["gcc", "-E", "-P", *map(str, made.sources)], capture_output=True, text=True, check=True)
    assert "stranger" not in seen.stdout
    check("gcc", *STRICT, "-fsyntax-only", *map(str, made.sources), cwd=tmp_path)


@pytest.mark.parametrize(
    "text", ['"},"scripts":{"preinstall":"evil"},"a":{"b":"', "a\nmaintainer=evil", "$(shell evil)"]
)
def test_packages_read_back_as_meant_even_of_a_contract_that_nobody_checked(text: str, tmp_path: Path) -> None:
    bundle = bundle_of(make_contract([position()], [target()]), tmp_path)
    changed = Bundle(bundle.path, hostile(bundle.contract, text), bundle.golden, bundle.digest, bundle.session)
    package(changed, tmp_path / "arduino", "arduino")
    library = json.loads((tmp_path / "arduino/library.json").read_text())
    assert sorted(library) == ["build", "description", "frameworks", "headers", "name", "platforms", "version"]
    assert library["description"].startswith(f"{text} for {text}: ")
    properties = (tmp_path / "arduino/library.properties").read_text().splitlines()
    keys = [line.split("=")[0] for line in properties]
    assert len(keys) == len(set(keys)) == 9
    package(changed, tmp_path / "zephyr", "zephyr")
    _, first, prompt, *_ = (tmp_path / "zephyr/Kconfig").read_text().splitlines()
    assert first == "config POLICY"
    assert re.fullmatch(r'\tbool "(?:[^"\\$]|\\.)*"', prompt)


@pytest.mark.parametrize("name", ["int", "../x", "a/b", "a b", "x;y", "", "*/", "1a", "NAN", "-o"])
def test_generated_files_have_a_name_that_is_an_identifier(name: str) -> None:
    with pytest.raises(ValueError, match="expected a C identifier that is no keyword and no macro"):
        Options(name=name)


@pytest.mark.parametrize("folder", ["-fplugin=x", "@options", "a b;c", "$(id)"])
def test_a_folder_s_name_is_no_option_of_the_compiler(
    folder: str, bundle_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = generate(Bundle.read(bundle_file), Path(folder))
    assert compile_host(made).self_test() <= made.tolerance
    assert sorted(path.name for path in tmp_path.iterdir()) == [folder]
