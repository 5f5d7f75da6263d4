"""Files with anything at all in any place are read, or refused in a sentence: never with another error."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strange import attempt, changed

from robo_rl.learn.runs.folder import Run, RunError
from robo_rl.sim.robots import FOLDER, card_types
from robo_rl.sim.robots.figures import CardError
from tests.suite import examples

FUZZ = settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def description(algorithm: str) -> dict[str, Any]:
    from robo_rl.learn.config import CONFIGS

    chosen = {"teacher": "x", "activation": "elu"} if algorithm == "distilled" else {}
    config = CONFIGS[algorithm](**{**chosen, "hidden": (8,)})
    run = Run(Path(), "quadrotor-hover", None, algorithm, 0, vars(config), {"mass": [0.9, 1.1]})
    return json.loads(json.dumps(run.description()))


@FUZZ
@given(data=st.sampled_from(["apg", "bc", "ppo", "sac", "distilled"]).flatmap(lambda name: changed(description(name))))
def test_a_strange_run_file_is_refused_in_a_sentence(folder: Path, data: Any) -> None:
    (folder / "run.json").write_text(json.dumps(data))
    run, told = attempt(lambda: Run.open(folder), RunError)
    assert run or (str(folder / "run.json") in told and len(told) < 1000)
    if run is None:
        return
    assert json.loads(json.dumps(run.description()))["seed"] == data["seed"]
    hidden = run.hyperparameters.get("hidden", [8])
    if max(hidden, default=1) < 1000 and len(hidden) < 5 and run.hyperparameters.get("recurrent", 0) < 1000:
        attempt(run.new_policy, ValueError)


@FUZZ
@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode(errors="replace")))
def test_a_run_file_of_any_bytes_is_refused_in_a_sentence(folder: Path, data: bytes) -> None:
    (folder / "run.json").write_bytes(data)
    with pytest.raises(RunError):
        Run.open(folder)


LINES = [
    {"update": k, "environment_steps": 100 * k, "return": 0.5 * k, "level/mass": 0.1, "level/$x_{1$": 0.2}
    for k in range(1, 5)
]


@FUZZ
@given(changed(LINES), st.integers(0, 400))
def test_strange_metrics_are_read_or_refused_in_a_sentence(folder: Path, lines: Any, cut: int) -> None:
    from robo_rl.report.plots import training

    run = Run(folder, "quadrotor-hover", None, "apg", 0, {})
    text = "".join(json.dumps(line) + "\n" for line in lines) if isinstance(lines, list) else json.dumps(lines)
    (folder / "metrics.jsonl").write_text(text[: len(text) - cut])
    metrics, told = attempt(run.metrics, RunError)
    assert metrics is not None or "metrics.jsonl" in told
    if metrics:
        for figure, _ in training({"policy": metrics}):
            figure.canvas.draw()


CARDS = [(tomllib.loads(path.read_text()), path) for path in sorted(FOLDER.glob("*/card.toml"))]


@settings(FUZZ, max_examples=examples(600))
@given(st.sampled_from(CARDS).flatmap(lambda card: st.tuples(changed(card[0]), st.just(card[1]))))
def test_a_strange_card_is_read_or_refused_in_a_sentence(card: tuple[Any, Path]) -> None:
    data, path = card
    kind = tomllib.loads(path.read_text())["kind"]
    made, told = attempt(lambda: card_types()[kind].read(data, path.parent.name, path), CardError)
    figures = None
    if made is not None:
        made.facts()
        figures, told = attempt(made.figures, CardError)  # reads the model, which may lack what the card names
    if figures is None:
        assert str(path.parent) in told
        assert len(told) < 1000
        return
    json.dumps(figures)
    assert all(math.isfinite(x) for x in figures.values() if isinstance(x, float))
