"""Graphs that take too much: a process that is confined finds out, before this one loads them."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from onnx import ModelProto

from robo_rl.deploy.robot.bundle import GOLDEN_KEY, MAX_STEPS, Bundle, BundleError, _tried
from robo_rl.files import sandbox as confined
from tests.deploy.hostile_bundles import allocates, allocates_at_work, computes, entry, resealed

GREEDY: dict[str, tuple[Callable[[ModelProto], object], str]] = {
    "4 GB in a constant": (lambda m: allocates(m, 1 << 30), "Failed to allocate"),
    "800 GB in a constant": (lambda m: allocates(m, 200_000_000_000), "Failed to allocate"),
    "4 GB in every step": (lambda m: allocates_at_work(m, 1 << 30), "Failed to allocate"),
    "hours in a step": (lambda m: computes(m, 3000, 200), "it takes more than 4 s to read"),
}


@pytest.mark.parametrize("what", GREEDY)
def test_a_graph_that_takes_too_much_is_refused_by_a_process_that_has_little(what: str, tmp_path: Path) -> None:
    change, sentence = GREEDY[what]
    path = resealed(tmp_path / "greedy.onnx", change)
    assert path.stat().st_size < 100_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BundleError, match=sentence) as refusal:
        Bundle.read(path)
    assert str(path) in str(refusal.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # KiB


def test_a_file_is_tried_once_by_a_process_and_those_of_the_zoo_never(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, tries = resealed(tmp_path / "fine.onnx", lambda model: setattr(model, "doc_string", "another")), []
    attempt = confined.attempt

    def counted(*arguments: object, **limits: object) -> bytes:
        tries.append(arguments[0])
        return attempt(*arguments, **limits)  # type: ignore[arg-type]

    monkeypatch.setattr(confined, "attempt", counted)
    Bundle.read("zoo:quadrotor-hover")
    assert not tries
    bundle = Bundle.read(path)
    Bundle.read(path)
    assert tries == ["robo_rl.deploy.robot.bundle:trial"]
    _tried.clear()
    Bundle.read(path, tried=bundle.digest)
    assert len(tries) == 1


def test_golden_vectors_have_a_greatest_length(tmp_path: Path) -> None:
    def lengthen(model: ModelProto) -> None:
        golden = entry(model, GOLDEN_KEY)
        golden.value = golden.value.replace('"steps": 64', f'"steps": {MAX_STEPS + 1}')

    with pytest.raises(BundleError, match="expected an integer from 1 to 4096"):
        Bundle.read(resealed(tmp_path / "long.onnx", lengthen))
