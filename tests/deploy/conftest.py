"""Changed copies of a bundle, sealed anew as someone would who edits a file on purpose; and the fuzzer."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto

from robo_rl.deploy.robot.bundle import DIGEST_KEY, NO_DIGEST, seal

EMPTY = "int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size) { return !data && size; }"

Resealed = Callable[[Callable[[ModelProto], None]], Path]


@pytest.fixture
def resealed(bundle_file: Path, tmp_path: Path) -> Resealed:
    """``resealed(change)`` is the path of a copy of the bundle that ``change`` was applied to, with a right digest."""

    def make(change: Callable[[ModelProto], None]) -> Path:
        model = onnx.load(str(bundle_file))
        (digest,) = [entry for entry in model.metadata_props if entry.key == DIGEST_KEY]
        digest.value = NO_DIGEST
        change(model)
        path = tmp_path / "changed.onnx"
        path.write_bytes(seal(model.SerializeToString(deterministic=True)))
        return path

    return make


@pytest.fixture(scope="session")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skips where clang or its libFuzzer is missing."""
    target = tmp_path_factory.mktemp("fuzzer") / "empty"
    command = ["clang", "-fsanitize=fuzzer,address,undefined", "-xc", "-", "-o", str(target)]
    try:
        subprocess.run(command, input=EMPTY, text=True, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no clang with libFuzzer; install it with: apt-get install clang libclang-rt-dev")
