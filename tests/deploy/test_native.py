"""Machine code of a policy: the same commands as onnxruntime's, and libraries that are refused."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_rl.deploy.build.c.native import compile_native, self_test
from robo_rl.deploy.build.native import NativeError, NativeGraph
from robo_rl.deploy.robot.bundle import Bundle, BundleError, greatest, scaled_commands
from robo_rl.deploy.robot.runtime import GOLDEN_TOLERANCE, Policy, SignalError

RATES = {"quadrotor-hover": 100, "go2-flat": 50, "arm-reach": 50}
STEPS = 40


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_native(Bundle.read("zoo:quadrotor-hover"), tmp_path_factory.mktemp("native") / "hover.so")


@pytest.mark.parametrize("name", RATES)
def test_machine_code_gives_the_commands_and_memory_of_onnxruntime(name: str) -> None:
    ours, theirs = (Policy.load(f"zoo:{name}", RATES[name], native=native) for native in (True, False))
    assert (ours.runtime, ours.runtime_note, theirs.runtime) == ("native", "", "onnxruntime")
    rng, golden, given = np.random.default_rng(0), ours.bundle.golden, {s.name for s in ours._given}
    quaternions = {s.name for s in ours.contract.signals if s.kind == "quaternion"}
    for k in range(STEPS):
        signals = {
            name: value[k] + (0.0 if name in quaternions else 0.001) * rng.normal(size=value[k].shape)
            for name, value in golden.signals.items()
            if name in given
        }
        found, expected = ours.step(signals), theirs.step(signals)
        apart = [scaled_commands(ours.contract, a) for a in (found, expected)]
        assert greatest([apart[0][c] - apart[1][c] for c in found]) <= GOLDEN_TOLERANCE
        np.testing.assert_allclose(ours.state, theirs.state, atol=1e-4, rtol=1e-4)


def test_a_library_keeps_no_memory_of_other_robots(library: Path) -> None:
    bundle = Bundle.read("zoo:quadrotor-hover")
    one, other = NativeGraph(bundle, library), NativeGraph(bundle, library)
    signals = {name: value[0] for name, value in bundle.golden.signals.items()}
    before, state = one.run(signals, bundle.contract.initial_state[None])
    other.run({name: value[30] for name, value in bundle.golden.signals.items()}, state)
    after, _ = one.run(signals, bundle.contract.initial_state[None])
    np.testing.assert_array_equal(before["rotor_speed"], after["rotor_speed"])


def test_a_step_that_is_not_finite_is_refused_and_changes_nothing(library: Path) -> None:
    policy = Policy.load("zoo:quadrotor-hover", 100, native=library)
    signals = {name: value[0] for name, value in policy.bundle.golden.signals.items()}
    policy.step(signals)
    state = policy.state.copy()
    with pytest.raises(SignalError, match="no finite commands"):
        policy._graph.run({**signals, "position": np.full(3, np.nan, np.float32)}, state)
    np.testing.assert_array_equal(policy.state, state)


def test_a_library_of_another_bundle_is_refused(library: Path) -> None:
    with pytest.raises(NativeError, match=r"compiled from the bundle .*Compile it again"):
        Policy.load("zoo:go2-flat", 50, native=library)


def test_a_library_that_misses_the_golden_vectors_by_a_ten_thousandth_is_refused(library: Path) -> None:
    bundle = Bundle.read("zoo:quadrotor-hover")
    command = bundle.contract.command("rotor_speed")
    apart = 1e-4 * (command.upper[0] - command.lower[0])
    golden = dataclasses.replace(bundle.golden, commands={"rotor_speed": bundle.golden.commands["rotor_speed"] + apart})
    with pytest.raises(NativeError, match=r"golden vectors have an error of 0\.0001 on this machine"):
        NativeGraph(dataclasses.replace(bundle, golden=golden), library)


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"#!/bin/sh\n", b"\0" * 5000])
def test_a_file_that_is_no_library_is_refused_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "policy.so").write_bytes(content)
    with pytest.raises(NativeError, match=r"policy\.so: this computer .* can't load it"):
        Policy.load("zoo:quadrotor-hover", 100, native=tmp_path / "policy.so")
    with pytest.raises(NativeError, match="there is no such file"):
        Policy.load("zoo:quadrotor-hover", 100, native=tmp_path / "none.so")


def test_another_library_is_refused(tmp_path: Path) -> None:
    subprocess.run(["cc", "-shared", "-xc", "-", "-o", str(tmp_path / "x.so")], input=b"int x = 1;", check=True)
    with pytest.raises(NativeError, match="no library of a policy"):
        Policy.load("zoo:quadrotor-hover", 100, native=tmp_path / "x.so")


def test_without_a_compiler_onnxruntime_runs_the_policy_and_says_why(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    policy = Policy.load("zoo:quadrotor-hover", 100, native=True)
    assert policy.runtime == "onnxruntime"
    assert "the C compiler 'cc' was not found; install one" in policy.runtime_note


def test_where_keys_are_demanded_a_library_is_not_loaded(library: Path, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="nobody signs libraries"):
        Policy.load("zoo:quadrotor-hover", 100, native=library, trusted_keys=tmp_path / "keys")
    with pytest.raises(BundleError, match="expected one: compiled code can't hang"):
        Policy.load("zoo:quadrotor-hover", 100, native=True, isolate=True)


def test_export_writes_a_library_that_the_runtime_takes(
    bundle_file: Path, tmp_path: Path, robo: Callable[..., dict[str, Any]]
) -> None:
    copy = Path(shutil.copy(bundle_file, tmp_path / "policy.onnx"))
    told = robo("export", copy, "--native")
    assert told["self_test_error"] <= GOLDEN_TOLERANCE
    assert Policy.load(copy, 100, native=told["library"]).runtime == "native"
    told = robo("export", copy, "--native", "--out", tmp_path / "other.so")
    assert told["library"] == str(tmp_path / "other.so")
    assert Policy.load(copy, 100, native=told["library"]).runtime == "native"


@pytest.mark.parametrize("words", [("runs/mine", "--native"), ("zoo:quadrotor-hover",)])
def test_a_bundle_is_not_written_under_the_name_of_a_library(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from robo_rl.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["export", *words, "--out", str(tmp_path / "policy.so")])
    assert ended.value.code
    assert "expected the name of the bundle to write, which ends with .onnx" in capsys.readouterr().err
    assert not (tmp_path / "policy.so").exists()


@pytest.mark.skipif(
    not (shutil.which("aarch64-linux-gnu-gcc") and shutil.which("qemu-aarch64")),
    reason="needs gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user",
)
def test_the_code_for_aarch64_reproduces_the_golden_vectors_under_qemu(tmp_path: Path) -> None:
    bundle = Bundle.read("zoo:go2-flat")
    error = self_test(bundle, "aarch64")
    assert error is not None
    assert error <= GOLDEN_TOLERANCE
    library = compile_native(bundle, tmp_path / "policy.so", "aarch64")
    with pytest.raises(NativeError, match="can't load it"):
        NativeGraph(bundle, library)
