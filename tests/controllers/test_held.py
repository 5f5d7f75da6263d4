"""What a policy sees between measurements; and that the C twin sees the same, bit for bit."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).parents[1] / "deploy"))
from graphs import make_contract, position, target

from robo_rl.contract import Contract, Safety, Signal
from robo_rl.controllers.gate.held import LONGEST, NEVER, Holding, may_wait, samples_behind
from robo_rl.deploy.build.c.held_header import held_header

FOLDER = Path(__file__).parents[2] / "deploy" / "build" / "c"
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
BUILDS = {"gcc": ("gcc", ["-O2"]), "clang": ("clang", ["-O1", "-fsanitize=undefined", "-fsanitize-trap=undefined"])}


def scan(**fields: Any) -> Signal:
    return Signal("scan", (), "m", "lidar", 0.0, 10.0, shape=(4,), **fields)


def age_of(name: str, lower: float = 0.0, upper: float = 2.0) -> Signal:
    return Signal(f"{name}_age", ("age",), "s", "none", (lower,), (upper,), source="runtime", age_of=name)


def neighbours(**fields: Any) -> Signal:
    limits = ((0.5, -3.0), (8.0, -1.0))
    return Signal("neighbours", ("x", "y"), "m", "body", *limits, shape=(2, 2), **fields)


CONTRACTS = {
    "plain": make_contract([position()], [target()]),
    "slow": make_contract([position(), scan(period=0.1)], [target()]),
    "absent": make_contract([age_of("neighbours"), position(), neighbours(), scan(timeout=0.3)], [target()]),
    "all": make_contract(
        [neighbours(period=0.2), age_of("scan", 0.01, 0.5), position(source="operator"), scan(), age_of("neighbours")],
        [target()],
        safety=Safety(0.05, operator_timeout=0.4),
    ),
}


def sample(value: float, shape: tuple[int, ...], stamp: int) -> tuple[np.ndarray, int]:
    return np.full(shape, value, np.float32), stamp


def test_a_slow_signal_is_late_by_its_own_measure() -> None:
    holding = Holding.from_contract(CONTRACTS["slow"])  # every 0.1 s, and 0.05 s of grace
    samples = {"joint_position": sample(0.0, (3,), 1_000_000), "scan": sample(1.0, (4,), 850_000)}
    assert holding.late(samples, 1_000_000) is None
    late = holding.late(samples, 1_000_001)
    assert late is not None
    assert (late[0].name, late[1]) == ("scan", 150_001)
    assert holding.late({"joint_position": samples["joint_position"]}, 1_000_000) == (holding.slots[1], NEVER)


def test_ages_saturate_and_begin_at_their_upper_limit() -> None:
    holding = Holding.from_contract(CONTRACTS["absent"])
    samples = {"joint_position": sample(0.0, (3,), 0), "scan": sample(1.0, (4,), 0)}

    def age(stamp: int, now: int) -> float:
        seen = holding.completed({**samples, "neighbours": sample(1.0, (2, 2), stamp)}, now)
        value, when = seen["neighbours_age"]
        assert when == now
        assert value.shape == (1,)
        assert value.dtype == np.float32
        return float(value[0])

    assert age(NEVER, 5_000_000) == 2.0
    assert age(5_000_000, 5_000_000) == 0.0
    assert age(4_750_000, 5_000_000) == 0.25
    assert age(0, 5_000_000) == 2.0
    assert age(6_000_000, 5_000_000) == 0.0  # a clock that is ahead


def test_what_was_never_measured_is_zeros_within_its_limits() -> None:
    holding = Holding.from_contract(CONTRACTS["absent"])
    value, stamp = holding.completed({}, 0)["neighbours"]
    np.testing.assert_array_equal(value, np.array([[0.5, -1.0], [0.5, -1.0]], np.float32))
    assert stamp == NEVER
    assert holding.late({}, 0) == (holding.slots[1], NEVER)  # the position, not the neighbours


def test_signals_whose_age_is_told_are_never_late_and_operators_have_their_own_time() -> None:
    holding = Holding.from_contract(CONTRACTS["all"])
    timeouts = {slot.name: slot.timeout for slot in holding.slots}
    assert timeouts["neighbours"] == timeouts["scan"] == 0
    assert timeouts["joint_position"] == 400_000
    samples = {"joint_position": sample(0.0, (3,), 10_000_000)}
    assert holding.late(samples, 10_400_000) is None
    assert holding.late(samples, 10_400_001) == (holding.slots[2], 400_001)


def test_samples_pass_as_they_are() -> None:
    holding = Holding.from_contract(CONTRACTS["plain"])
    samples = {"joint_position": sample(0.5, (3,), 3)}
    assert holding.completed(samples, 4) == samples


def test_what_a_simulated_robot_tells_at_every_step_is_what_it_measured() -> None:
    """Slow signals are the same until they are measured; an age tells when that was."""
    contract = make_contract(
        [position(), scan(period=0.04), neighbours(), age_of("neighbours", upper=0.05)], [target()]
    )

    def told(beam: float, x: float, age: float) -> dict[str, np.ndarray]:
        shapes = {
            "joint_position": ((3,), 0.0),
            "scan": ((4,), beam),
            "neighbours": ((2, 2), x),
            "neighbours_age": ((1,), age),
        }
        return {name: np.full(shape, value, np.float32) for name, (shape, value) in shapes.items()}

    steps = [told(1, 0.5, 0.05), told(1, 2.0, 0.003), told(1, 2.0, 0.013), told(1, 2.0, 0.003), told(2, 2.0, 0.05)]
    samples: dict[str, tuple[np.ndarray, int]] = {}
    stamps = []
    for k, values in enumerate(steps):
        samples = samples_behind(contract, values, samples, 1_000_000 + 10_000 * k)
        stamps.append(tuple(samples.get(s.name, (None, NEVER))[1] for s in contract.signals[:3]))
    assert stamps == [
        (1_000_000, 1_000_000, NEVER),
        (1_010_000, 1_000_000, 1_007_000),
        (1_020_000, 1_000_000, 1_007_000),
        (1_030_000, 1_000_000, 1_027_000),
        (1_040_000, 1_040_000, 1_027_000),
    ]
    assert "neighbours_age" not in samples


def test_what_may_be_left_out_of_a_step() -> None:
    assert may_wait(CONTRACTS["plain"]) == frozenset()
    assert may_wait(CONTRACTS["slow"]) == {"scan"}
    assert may_wait(CONTRACTS["all"]) == {"scan", "neighbours"}


# --- the twin -----------------------------------------------------------------------------------------------------

WRAPPER = """#include "held_config.h"
void start(float *values, int64_t *stamps);
int16_t late(const int64_t *stamps, int64_t now);
void complete(float *values, int64_t *stamps, int64_t now);
void start(float *values, int64_t *stamps) { held_start(&HELD_CONFIG, values, stamps); }
int16_t late(const int64_t *stamps, int64_t now) { return held_late(&HELD_CONFIG, stamps, now); }
void complete(float *values, int64_t *stamps, int64_t now) { held_complete(&HELD_CONFIG, values, stamps, now); }
const uint16_t *sizes(void);
const uint16_t *sizes(void) { return LINK_SAMPLE_SIZES; }
"""


@pytest.fixture(scope="module", params=[(build, name) for build in BUILDS for name in CONTRACTS], ids="-".join)
def twin(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Contract, ctypes.CDLL]:
    (compiler, flags), contract = BUILDS[request.param[0]], CONTRACTS[request.param[1]]
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}; install it with: apt-get install {compiler}")
    folder = tmp_path_factory.mktemp("held")
    (folder / "held_config.h").write_text(held_header(contract))
    (folder / "wrapper.c").write_text(WRAPPER)
    command = [compiler, *STRICT, *flags, "-fPIC", "-shared", "-I", FOLDER, "-I", folder]
    command += [FOLDER / "held.c", folder / "wrapper.c", "-o", folder / "libheld.so"]
    subprocess.run(command, check=True)
    library = ctypes.CDLL(str(folder / "libheld.so"))
    library.late.restype = ctypes.c_int16
    library.sizes.restype = ctypes.POINTER(ctypes.c_uint16)
    return contract, library


moments = st.integers(0, 3_000_000) | st.sampled_from([0, 1, 1 << 41, LONGEST, LONGEST + 1, 1 << 60])
story = st.lists(st.tuples(st.integers(0, 400_000) | moments, st.lists(st.integers(0, 300_000), min_size=5, max_size=5),
                           st.lists(st.booleans(), min_size=5, max_size=5)), min_size=1, max_size=12)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(story=story, seed=st.integers(0, 1000))
def test_python_and_c_see_the_same(twin: tuple[Contract, ctypes.CDLL], story: Any, seed: int) -> None:
    contract, library = twin
    holding, random, samples, now = Holding.from_contract(contract), np.random.default_rng(seed), {}, 0
    size = sum(signal.size for signal in contract.signals)
    values, stamps = np.full(size, np.nan, np.float32), np.full(len(contract.signals), 7, np.int64)
    library.start(values.ctypes, stamps.ctypes)
    for passed, ages, measured in story:
        now += passed
        offset = 0
        for i, signal in enumerate(contract.signals):
            if measured[i] and signal.source != "runtime":
                value = random.normal(size=signal.dimensions).astype(np.float32)
                samples[signal.name] = (value, max(0, now - ages[i]))
                values[offset : offset + signal.size], stamps[i] = value.ravel(), samples[signal.name][1]
            offset += signal.size
        late, found = holding.late(samples, now), library.late(stamps.ctypes, ctypes.c_int64(now))
        assert (-1 if late is None else holding.slots.index(late[0])) == found
        seen = holding.completed(samples, now)
        library.complete(values.ctypes, stamps.ctypes, ctypes.c_int64(now))
        offset = 0
        for i, signal in enumerate(contract.signals):
            value, stamp = seen.get(signal.name, (np.zeros(signal.dimensions, np.float32), NEVER))
            assert value.tobytes() == values[offset : offset + signal.size].tobytes(), signal.name
            assert stamp == stamps[i]
            offset += signal.size


def test_the_header_tells_which_signals_come_alone(twin: tuple[Contract, ctypes.CDLL]) -> None:
    contract, library = twin
    told = {signal.age_of for signal in contract.signals}
    slow = [s.name in told or s.period is not None for s in contract.signals]
    expected = [signal.size if alone else 0 for signal, alone in zip(contract.signals, slow, strict=True)]
    assert library.sizes()[: len(expected)] == expected


def test_the_twin_needs_neither_heap_nor_double_arithmetic(tmp_path: Path) -> None:
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("there is no Arm compiler; install it with: apt-get install gcc-arm-none-eabi")
    flags = ["-mthumb", "-mcpu=cortex-m3", "-mfloat-abi=soft", "-O2", "-c"]
    subprocess.run(["arm-none-eabi-gcc", *STRICT, *flags, FOLDER / "held.c", "-o", tmp_path / "held.o"], check=True)
    listing = subprocess.run(["nm", "-u", tmp_path / "held.o"], check=True, capture_output=True, text=True).stdout
    undefined = set(listing.split()) - {"U"}
    assert undefined <= {"__aeabi_l2f", "__aeabi_fmul", "__aeabi_fcmplt", "__aeabi_fcmpgt", "memcpy", "memset"}
