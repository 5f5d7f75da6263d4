"""The fuzzed readers of contracts, graphs and logs: what they begin with is accepted, and fuzzing finds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("mcap", reason="mcap is missing: pip install 'robo-rl[train]'")

from robo_rl.deploy.build import fuzz_readers
from robo_rl.deploy.robot.logs.reader import read_log


@pytest.mark.parametrize("what", fuzz_readers.TARGETS)
def test_what_fuzzing_begins_with_is_accepted(what: str) -> None:
    check, seeds = fuzz_readers.TARGETS[what]
    assert all(check(seed) for seed in seeds())
    assert not check(b"\x00noise")


def test_records_that_are_put_into_a_log_are_its_steps(tmp_path: Path) -> None:
    """So that changes of them reach the decoders, behind the checksums."""
    whole, records = fuzz_readers.log_seeds()[:2]
    paths = tmp_path / "whole.mcap", tmp_path / "packed.mcap"
    paths[0].write_bytes(whole[1:])
    paths[1].write_bytes(fuzz_readers.packed(records[1:]))
    (one, other) = map(read_log, paths)
    assert len(one.steps) == len(other.steps) == 3
    assert one.contract == other.contract


@pytest.mark.release  # an instrumented interpreter may take more memory than it is allowed beside other work
@pytest.mark.slow
@pytest.mark.parametrize("what", fuzz_readers.TARGETS)
def test_fuzzing_finds_nothing(what: str, tmp_path: Path) -> None:
    """Some seconds each; benchmarks/fuzz.py is for longer runs."""
    pytest.importorskip("atheris", reason="atheris is missing: pip install 'robo-rl[dev]'")
    assert fuzz_readers.run(what, tmp_path / what, seconds=10).inputs > 0
