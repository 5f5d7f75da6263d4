"""deploy/build/c/gate.c does what controllers/gate/safety.py does, bit for bit."""

from __future__ import annotations

import ctypes
import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from robo_rl.contract import Contract
from robo_rl.controllers.gate.codes import Event, Reason, Request, Source, State, Stop
from robo_rl.controllers.gate.config import NEVER, GateConfig
from robo_rl.controllers.gate.safety import Inputs, initial, step
from robo_rl.deploy.build.c.gate_header import FLOATS, gate_header
from tests.suite import examples, representatives

sys.path.append(str(Path(__file__).parent))
from native_gate import STRICT, NativeGate, answered, build_gate, remembered

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "tests" / "vectors" / "gate"
CONFIGURATIONS = sorted(path.stem for path in (VECTORS / "configurations").glob("*.json"))


def fused() -> list[str]:
    """Flags under which a compiler fuses products and sums wherever it may, if this processor can."""
    info = Path("/proc/cpuinfo")
    has_fma = info.exists() and " fma " in info.read_text()
    return ["-O3", "-ffp-contract=fast", *(["-mfma"] if has_fma else [])]


UNDEFINED = ["-O1", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
BUILDS = {"gcc": ("gcc", ["-O2"]), "gcc undefined": ("gcc", UNDEFINED), "gcc fused": ("gcc", fused()),
          "clang": ("clang", ["-O2"]), "clang fused": ("clang", fused())}  # fmt: skip
Build = Callable[[str], tuple[ctypes.CDLL, GateConfig]]


def read_configuration(name: str) -> dict[str, Any]:
    return json.loads((VECTORS / "configurations" / f"{name}.json").read_text())


def read_contract(name: str) -> Contract:
    return Contract.from_json(json.dumps(read_configuration(name)["contract"]))


@pytest.fixture(scope="session", params=representatives(list(BUILDS), ["gcc undefined", "clang fused"]))
def build(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compiles gate.c with the configuration of that name, once."""
    compiler, flags = BUILDS[request.param]
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}; install it with: apt-get install {compiler}")
    made: dict[str, tuple[ctypes.CDLL, GateConfig]] = {}

    def compiled(name: str) -> tuple[ctypes.CDLL, GateConfig]:
        if name not in made:
            contract = read_contract(name)
            library = build_gate(contract, tmp_path_factory.mktemp("gate"), compiler, flags)
            made[name] = library, GateConfig.from_contract(contract)
        return made[name]

    return compiled


def floats(values: list[Any]) -> np.ndarray:
    return np.array([float(x) for x in values], np.float32)


def read_inputs(data: dict[str, Any]) -> Inputs:
    for name in ("signals", "command", "fallback"):
        data[name] = None if data[name] is None else floats(data[name])
    return Inputs(**{**data, "requests": Request(data["requests"])})


def read_answer(data: dict[str, Any]) -> tuple[Any, ...]:
    problem = (data["reason"], data["channel"], data["element"])
    return floats(data["command"]).tobytes(), data["source"], data["state"], problem, data["events"]


def test_c_reproduces_every_vector(build: Build) -> None:
    files = sorted(VECTORS.glob("*.json"))
    assert len(files) > 100
    for file in files:
        story = json.loads(file.read_text())
        if story["configuration"] == "configurations/damp.json":
            continue  # a reaction of version 1, which no contract of version 2 has
        gate = NativeGate(*build(Path(story["configuration"]).stem))
        for k, line in enumerate(story["steps"]):
            assert gate.step(read_inputs(line["given"])) == read_answer(line["answer"]), f"{file.name}, step {k}"


def near(limits: list[float]) -> st.SearchStrategy[float]:
    """float32 numbers at, just below and just above limits, and all others."""
    exact = [np.float32(x) for x in limits]
    beside = [float(np.nextafter(x, np.float32(d))) for x in exact for d in (-np.inf, np.inf)]
    special = [0.0, -0.0, 1e-45, math.nan, math.inf, -math.inf]
    return st.one_of(
        st.sampled_from([*map(float, exact), *beside, *special]), st.floats(width=32), st.floats(-1, 1, width=32)
    )


def long_steps(data: st.DataObject, config: GateConfig) -> list[dict[str, Any]]:
    """Random steps as changes to healthy ones. Most steps are healthy, or nothing would stay active for long."""
    numbers = near([*config.signal_lower, *config.signal_upper])
    commands = near([*config.command_lower, *config.command_upper, *config.start[np.isfinite(config.start)]])
    ages = st.sampled_from([0, 1, config.period, config.timeout, config.timeout + 1, config.operator_timeout,
                            config.operator_timeout + 1, -1, 1 << 62, None])  # fmt: skip
    dts = st.sampled_from([0, 1, config.period, config.period + 3000, 2 * config.period, config.timeout,
                           config.timeout + 1, -1, 1 << 62])  # fmt: skip
    small = st.dictionaries(st.integers(0, len(config.safe) - 1), commands, max_size=2)
    healthy: st.SearchStrategy[dict[str, Any]] = st.just({})
    odd = st.fixed_dictionaries(
        {},
        optional={
            "dt": dts,
            "signal": st.dictionaries(st.integers(0, len(config.signal_lower) - 1), numbers, max_size=2),
            "age": st.dictionaries(st.integers(0, len(config.signals) - 1), ages, max_size=1),
            "command": small | st.none(),
            "command_age": ages,
            "fallback": small | st.none(),
            "operator_age": ages,
            "bundle_intact": st.sampled_from([True, True, False]),
            "requests": st.integers(0, 63),
            "repeated": st.booleans(),
        },
    )
    one = {"command": small, "fallback": small}
    mild = st.fixed_dictionaries({}, optional=one)
    asked = st.sampled_from([{"requests": 1}, {"requests": 2}, {"requests": 16}])
    return data.draw(st.lists(st.one_of(healthy, healthy, mild, asked, odd), min_size=1, max_size=30))


class World:
    """Healthy inputs, and changes to them."""

    def __init__(self, name: str, config: GateConfig) -> None:
        self.config, self.time, self.count = config, 1_000_000, 0
        told = read_configuration(name)
        self.healthy, self.command = floats(told["healthy"]), floats(told["command"])
        self.noisy = np.concatenate([np.full(watch.size, watch.noisy) for watch in config.signals])

    def inputs(self, changes: dict[str, Any]) -> Inputs:
        self.time += changes.get("dt", self.config.period)
        self.count += not changes.get("repeated", False)
        signals = self.healthy + np.float32((self.count % 7 - 3) / 64) * self.noisy.astype(np.float32)
        for index, value in changes.get("signal", {}).items():
            signals[index] = value
        stamps = [self.stamp(0)] * len(self.config.signals)
        for index, age in changes.get("age", {}).items():
            stamps[index] = self.stamp(age)
        return Inputs(
            time=self.time,
            signals=signals,
            stamps=stamps,
            command=self.flat(changes.get("command", {})),
            command_stamp=self.stamp(changes.get("command_age", 0)),
            fallback=self.flat(changes.get("fallback", {})),
            operator_stamp=self.stamp(changes.get("operator_age", 0)),
            bundle_intact=changes.get("bundle_intact", True),
            requests=Request(changes.get("requests", 0)),
        )

    def flat(self, changes: dict[int, float] | None) -> np.ndarray | None:
        if changes is None:
            return None
        flat = self.command.copy()
        for index, value in changes.items():
            flat[index] = value
        return flat

    def stamp(self, age: int | None) -> int:
        return NEVER if age is None else int(np.clip(self.time - age, -(1 << 63), (1 << 63) - 1))


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_c_and_python_agree_on_random_sequences(build: Build, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(CONFIGURATIONS))
    library, config = build(name)
    native, gate, world = NativeGate(library, config), initial(config), World(name, config)
    begin = data.draw(st.sampled_from([State.IDLE, State.READY, State.ACTIVE]))
    steps: list[dict[str, Any]] = []
    if begin != State.IDLE:
        steps += [{"requests": 1}, *[{}] * 8]
    if begin == State.ACTIVE:
        steps += [{"requests": 2}]
    for changes in steps + long_steps(data, config):
        if abs(world.time) > 1 << 62:
            break
        inputs = world.inputs(changes)
        gate, output = step(config, gate, inputs)
        assert native.step(inputs) == answered(output)
        assert native.remembered() == remembered(gate)


def test_c_has_the_codes_of_python() -> None:
    header = (ROOT / "deploy/build/c/gate.h").read_text()
    kinds = {"STATE": State, "SOURCE": Source, "REASON": Reason, "REQUEST": Request, "EVENT": Event,
             "STOP": Stop}  # fmt: skip
    for prefix, kind in kinds.items():
        enum = re.search(rf"enum gate_{prefix.lower()} {{(.*?)}};", header, re.DOTALL)
        assert enum is not None
        skip = "GATE_" if kind is State else f"GATE_{prefix}_"
        found = {name.removeprefix(skip): int(code) for name, code in re.findall(r"(\w+) = (\d+)", enum[1])}
        assert found == {name: int(member) for name, member in kind.__members__.items()}


def table(header: str, name: str) -> list[float]:
    """The floats of an array in a header."""
    array = re.search(rf"GATE_{name}\[\] = {{(.*)}};", header)
    assert array is not None
    special = {"INFINITY": "inf", "-INFINITY": "-inf", "NAN": "nan"}
    return [float.fromhex(special.get(word, word.removesuffix("f"))) for word in array[1].split(", ")]


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_header_carries_every_number_of_the_configuration(name: str) -> None:
    contract = read_contract(name)
    header, config = gate_header(contract), GateConfig.from_contract(contract)
    for field in FLOATS:
        np.testing.assert_array_equal(table(header, field.upper()), getattr(config, field))
    for field in ("stop", "feedback", "feedback_signal"):
        array = re.search(rf"GATE_{field.upper()}\[\] = {{(.*)}};", header)
        assert array is not None
        assert list(map(int, array[1].split(", "))) == getattr(config, field).tolist()
    for i, bounds in enumerate(config.envelope):
        np.testing.assert_array_equal(table(header, f"BOUNDS_LOWER_{i}"), bounds.lower)
        np.testing.assert_array_equal(table(header, f"BOUNDS_UPPER_{i}"), bounds.upper)
        assert f".signal = {bounds.signal}, .square = " in header
    for field in ("period", "slack", "late_limit", "timeout", "operator_timeout"):
        assert f".{field} = {getattr(config, field)}," in header
    digest = re.search(r"GATE_CONTRACT_DIGEST\[\] = {(.*)};", header)
    assert digest is not None
    assert bytes(int(byte, 16) for byte in digest[1].split(", ")).hex() == contract.digest


def test_gate_needs_no_library_function(tmp_path: Path) -> None:
    target = tmp_path / "gate.o"
    source = str(ROOT / "deploy/build/c/gate.c")
    subprocess.run(["gcc", *STRICT, "-O2", "-ffreestanding", "-c", source, "-o", target], check=True)
    undefined = subprocess.run(["nm", "-u", target], check=True, capture_output=True, text=True).stdout.split()
    assert [name for name in undefined if name not in ("U", "_GLOBAL_OFFSET_TABLE_")] == []


def test_fast_math_is_refused_at_compile_time(tmp_path: Path) -> None:
    command = ["gcc", *STRICT, "-ffast-math", "-c", str(ROOT / "deploy/build/c/gate.c"), "-o", str(tmp_path / "gate.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "without -ffast-math" in done.stderr


@pytest.mark.parametrize("options", [["--enable=warning,style,performance,portability"], ["--addon=misra"]])
def test_cppcheck_finds_only_the_deviations_that_the_document_lists(options: list[str]) -> None:
    if shutil.which("cppcheck") is None:
        pytest.skip("cppcheck is not installed; install it with: apt-get install cppcheck")
    sources = [str(ROOT / "deploy" / "build" / "c" / f"{name}.c") for name in ("gate", "link", "link_message")]
    command = ["cppcheck", "--std=c99", "-q", "--suppress=missingIncludeSystem", *options, *sources]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = set(re.findall(r"\[([\w.-]+)\]$", done.stderr, re.MULTILINE))
    table = (ROOT / "docs" / "safety.md").read_text().partition("## MISRA")[2]
    listed = {f"misra-c2012-{rule}" for rule in re.findall(r"^\| ([\d.]+) \|", table, re.MULTILINE)}
    assert done.returncode == 0
    assert found == (listed if "--addon=misra" in options else set())
