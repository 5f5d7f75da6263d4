"""Practising a track: from demonstrations of other tracks to a file, and the figures of the benchmark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from robo_rl.contract import Network, Provenance
from robo_rl.learn.experience.demonstrations import read
from robo_rl.sim.tasks.car.practice import CarPractice

ROOT = Path(__file__).parents[2]


def test_slow_laps_of_other_tracks_are_what_a_practice_begins_with(
    tmp_path: Path, robo: Callable[..., dict[str, Any]], trained: Callable[..., Path]
) -> None:
    file = tmp_path / "laps.safetensors"
    made = robo(
        "demonstrate", "car-practice", "--episodes", 3, "--bounds", "track/number:1000:2000", "--out", file
    )  # fmt: skip
    assert made["episodes"] == 3
    shown, episodes = read(file, CarPractice())
    assert episodes == 3
    assert shown.observation[:, 64].max() * 6.0 < 2.0  # m/s
    run = trained(
        "car-practice", "--demonstrations", str(file), "--sac.updates", "1", "--sac.steps", "30", "--sac.first", "10"
    )
    assert (run / "checkpoint.safetensors").is_file()


def test_a_practice_is_one_episode_of_twenty_minutes_at_ten_decisions_a_second() -> None:
    task = CarPractice()
    settings = task.settings["sac"]
    assert settings["updates"] * settings["steps"] * settings["environments"] == task.spec.episode_steps == 12_000
    assert task.spec.control_period == 0.1


def test_a_policy_is_told_the_next_way_point_and_no_map() -> None:
    contract = CarPractice().spec.contract(Provenance("none", 0, 0, "0" * 64), Network((8,), "tanh", False))
    assert [signal.name for signal in contract.signals] == ["scan", "wheel_speed", "yaw_rate", "waypoint_position"]


def test_laps_are_counted_between_crossings_with_their_recoveries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import practice

    log = [(0.0, 0.0, 0.0), (5.0, 6.0, 0.0), (10.0, 14.0, 2.0), (12.0, 9.0, 2.0), (15.0, 15.0, 3.0), (20.0, 25.0, 3.0)]
    assert practice.laps_of(log, 10.0) == [(7.5, 7.5, 2.0), (17.5, 10.0, 1.0)]
