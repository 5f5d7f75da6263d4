"""Benchmarks: of how many robots at once, beside whom, and in turns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from robo_rl.commands.many_runs import bench
from robo_rl.contract.kinds import kinds_in
from robo_rl.evaluate.benchmark import CLOSED_FORM, ENGINE, env_stepper, number, plant_stepper
from robo_rl.sim.robots import card_types
from robo_rl.sim.tasks.loading import load_task

STRANGER = f"{Path(__file__).with_name('viewer') / 'cart_and_pole.py'}:Balance"


@pytest.mark.parametrize(
    ("task", "expected"), [("quadrotor-hover", CLOSED_FORM), ("go2-flat", ENGINE), (STRANGER, ENGINE)]
)
def test_plants_in_closed_form_are_measured_in_larger_batches(task: str, expected: int) -> None:
    assert number(load_task(task)) == expected


def test_peers_are_of_known_kinds() -> None:
    assert {"multirotor"} == set(kinds_in("robo_rl.evaluate")) <= set(card_types())


def test_a_call_steps_as_many_robots_as_are_asked_for() -> None:
    task = load_task(STRANGER)
    for stepper in (plant_stepper, env_stepper):
        steps, call = stepper(task, n=3)
        assert steps == 3
        call()


def test_a_stranger_s_task_is_measured_without_a_peer(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(STRANGER, json=True) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (result["robot"], result["peer"], result["plant_over_peer"]) == ("cart", None, None)
    assert result["plant_steps_per_second"] > 0
