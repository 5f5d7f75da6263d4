"""What is kept elsewhere, with its interval; which engines and values beyond training there are."""

from __future__ import annotations

import json
import math

import pytest
import torch
from scipy.stats import binomtest

from robo_rl.commands.looking import transfer as command
from robo_rl.evaluate.transfer import beyond, kept
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.loading import load_task


def figures(successes: int, total: int) -> dict[str, float]:
    interval = binomtest(successes, total).proportion_ci(method="wilson")
    return {"success": successes / total, "success_low": interval.low, "success_high": interval.high}


def test_the_drop_s_interval_is_that_of_newcombe_s_published_example() -> None:
    found = kept(figures(56, 70), figures(48, 80))  # Newcombe 1998, table II (a), method 10
    assert found["kept"] == pytest.approx(0.75)
    assert found["drop"] == pytest.approx(0.20)
    assert (found["drop_low"], found["drop_high"]) == pytest.approx((0.0524, 0.3339), abs=1e-4)


def test_every_value_of_the_grid_lies_outside_of_what_training_draws() -> None:
    for name in ("go2-flat", "quadrotor-hover"):
        task = load_task(name)
        grid = beyond(task)
        assert set(grid) == set(task.perturbed)
        for perturbation, values in grid.items():
            low, high = task.spec.ranges[perturbation].end
            assert len(values) >= 2
            assert all(value < low or value > high for value in values)


def test_a_quadruped_starts_alike_in_every_engine_and_stands_on_its_feet_in_each() -> None:
    task = load_task("go2-flat")
    home = VecEnv(task, 1, evaluation=True)
    others = {engine.name: VecEnv(task, 1, evaluation=True, make_plant=engine.make_plant) for engine in task.engines()}
    assert {"elliptic cones", "half the time step", "all contacts", "fine"} <= set(others)
    assert sum("solver" in name for name in others) == 2
    still = {"joint_position_target": task.stand}
    for env in others.values():
        assert env.plant.truth()["joint_position"].tolist() == home.plant.truth()["joint_position"].tolist()
        for _ in range(25):
            assert not env.step(still).failed
        assert math.isclose(float(env.plant.truth()["position"][0, 2]), env.plant.height, abs_tol=0.1)


@pytest.mark.parametrize("name", ["go2-recover", "go2-rough"])
def test_every_task_on_legs_can_be_simulated_in_every_other_engine(name: str) -> None:
    task = load_task(name)
    found = {engine.name: engine for engine in task.engines()}
    assert ("all contacts" in found) == (name != "go2-recover")  # there it is home
    assert len(found) >= 6
    for engine in found.values():
        step = VecEnv(task, 2, evaluation=True, make_plant=engine.make_plant).step(
            {"joint_position_target": task.stand.expand(2, -1)}
        )
        assert torch.isfinite(step.reward).all(), engine.name


def test_a_classical_controller_keeps_its_success_in_mujoco(capsys: pytest.CaptureFixture[str], tmp_path) -> None:
    code = command.main(
        "classical", episodes=40, task="quadrotor-hover", perturbations=("mass",), min_kept=0.8,
        plot=tmp_path / "plot.png", json=True,
    )  # fmt: skip
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert code == 0
    assert found["passed"]
    (row,) = found["engines"]
    assert row["engine"] == "mujoco"
    assert row["kept"] == pytest.approx(row["success"] / found["home"]["success"])
    assert row["position_error_mean_m"] == pytest.approx(found["home"]["position_error_mean_m"], rel=0.1)
    assert [row["value"] for row in found["perturbations"]["mass"]] == beyond(load_task("quadrotor-hover"))["mass"]
    assert (tmp_path / "plot.png").stat().st_size > 5000


def test_the_worst_engine_decides_and_wrong_options_are_refused() -> None:
    from robo_rl.evaluate.transfer import Transfer

    worse = {"engine": "x", "summary": "", **figures(5, 10), "kept": 0.9, "drop": 0.1, "drop_low": 0, "drop_high": 1}
    assert Transfer((), figures(6, 10), [worse], {}).least_kept == 0.9
    with pytest.raises(ValueError, match="'gazebo' is not one of"):
        command.main("classical", task="quadrotor-hover", engines=("gazebo",))
    with pytest.raises(ValueError, match="--min-kept is 95; expected a number from 0 to 1"):
        command.main("classical", task="quadrotor-hover", min_kept=95)
