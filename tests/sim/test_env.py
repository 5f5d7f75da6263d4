"""The environment: time, failures, resets, and that no environment knows of another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from robo_rl.sim.env import VecEnv
from robo_rl.sim.episode import privileged_observation
from robo_rl.sim.tasks.loading import load_task
from robo_rl.sim.tasks.multirotor.quadrotor import QuadrotorHover

HOVER = load_task("quadrotor-hover")
STILL = {f"initial/{k}": 0.0 for k in ("tilt", "yaw", "position", "linear_velocity", "angular_velocity")}
CALM = {"wind": 0.0, "force": 0.0, "torque": 0.0, "mass": 1.0, "thrust": 1.0, "thrust_of_one_rotor": 1.0}


def hover(env: VecEnv) -> dict[str, torch.Tensor]:
    return {"rotor_speed": torch.full((env.n, 4), HOVER.spec.robot.hover_speed)}


def random_commands(steps: int, n: int) -> torch.Tensor:
    return 2000 * torch.rand(steps, n, 4, generator=torch.Generator().manual_seed(5))


def test_a_timeout_gives_the_last_true_state_not_the_new_one() -> None:
    fixed = {**STILL, **CALM, "noise": 0.0, "delay": 0.0, "initial/linear_velocity": 0.1}
    env = VecEnv(HOVER, 3, fixed=fixed, evaluation=True, episode_length=0.2)
    for k in range(19):
        step = env.step(hover(env))
        assert len(step.ids) == 0, k
    last = env.truth(torch.arange(3))["position"].clone()
    step = env.step(hover(env))
    assert step.timeout.all()
    assert not step.failed.any()
    assert step.ids.tolist() == [0, 1, 2]
    travelled = step.final_signals["position"] - last
    torch.testing.assert_close(travelled[:, :2], torch.full((3, 2), 0.1 * 0.01), rtol=0.1, atol=0.0)  # 0.1 m/s, 10 ms
    assert step.signals["position"].abs().max() < 1e-6  # a new flight has begun at the set-point
    assert (env.time == 0).all()


def test_a_failure_ends_that_episode_alone() -> None:
    env = VecEnv(HOVER, 4, fixed={**STILL, **CALM, "delay": 0.0}, evaluation=True)
    env.plant.current.position[2] = torch.tensor([0.0, 0.0, -1.5])
    step = env.step(hover(env))
    assert step.failed.tolist() == [False, False, True, False]
    assert not step.timeout.any()
    assert step.ids.tolist() == [2]
    assert float(step.final_signals["position"][0, 2]) == pytest.approx(-1.5, abs=0.05)
    assert env.diverged == 0


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_a_state_that_is_not_finite_ends_as_a_failure_and_poisons_nobody(poison: float) -> None:
    env, clean = (VecEnv(HOVER, 5, seed=1, evaluation=True) for _ in range(2))
    env.plant.current.angular_velocity[3, 0] = poison
    step, expected = env.step(hover(env)), clean.step(hover(clean))
    assert step.failed[3]
    assert step.ids.tolist() == [3]
    assert float(step.reward[3]) == 0.0
    assert env.diverged == 1
    others = [0, 1, 2, 4]
    assert torch.equal(step.reward[others], expected.reward[others])
    for name, value in step.signals.items():
        assert torch.equal(value[others], expected.signals[name][others])
    for value in (*step.signals.values(), *step.final_signals.values(), step.reward):
        assert torch.isfinite(value).all()
    for _ in range(5):
        step = env.step(hover(env))
    assert env.diverged == 1
    assert torch.isfinite(env.privileged()).all()


@pytest.mark.parametrize(("name", "changed"), [("quadrotor-hover", "mass"), ("go2-flat", "ground_friction")])
def test_a_critic_sees_parameters_as_they_are_now(name: str, changed: str) -> None:
    env = VecEnv(load_task(name), 3)
    before = env.privileged()
    env.plant.param(changed)[1] *= 1.3
    given = type(env.plant.parameters)(*[value.float() for value in env.plant.parameters])
    now = privileged_observation(env.task, env.plant.truth(), env.time, env.draws.goal, given)
    torch.testing.assert_close(env.privileged(), now)
    assert (env.privileged() != before).any(1).tolist() == [False, True, False]


def test_the_same_seed_gives_the_same_flights_and_another_seed_others() -> None:
    rollouts = []
    for seed in (0, 0, 1):
        env = VecEnv(HOVER, 6, seed=seed)
        rollouts.append(torch.cat([env.step({"rotor_speed": c}).signals["position"] for c in random_commands(80, 6)]))
    assert torch.equal(rollouts[0], rollouts[1])
    assert not torch.equal(rollouts[0], rollouts[2])


def test_environments_go_on_bit_by_bit_from_a_checkpoint() -> None:
    env, other = VecEnv(HOVER, 8, seed=0), VecEnv(HOVER, 8, seed=99)
    commands = random_commands(200, 8)
    for command in commands[:100]:
        env.step({"rotor_speed": command})
    other.load({name: value.clone() for name, value in env.save().items()})
    for command in commands[100:]:
        ours, theirs = env.step({"rotor_speed": command}), other.step({"rotor_speed": command})
        assert torch.equal(ours.reward, theirs.reward)
        assert torch.equal(ours.ids, theirs.ids)
        for name, value in ours.signals.items():
            assert torch.equal(value, theirs.signals[name])
    assert torch.equal(env.levels.level, other.levels.level)


def test_commands_are_clamped_to_the_limits_of_the_contract() -> None:
    env, other = (VecEnv(HOVER, 2, seed=0) for _ in range(2))
    top = HOVER.spec.robot.rotor_speed_max
    env.step({"rotor_speed": torch.tensor([[1e9] * 4, [-1e9] * 4])})
    other.step({"rotor_speed": torch.tensor([[top] * 4, [0.0] * 4])})
    assert torch.equal(env.plant.current.rotor_speed, other.plant.current.rotor_speed)


def test_reward_is_the_weighted_sum_of_the_tasks_terms() -> None:
    env = VecEnv(HOVER, 50, seed=2, evaluation=True)
    previous = {name: value.clone() for name, value in env.episode.previous.items()}
    commands = {"rotor_speed": random_commands(1, 50)[0]}
    step = env.step(commands)
    going_on = [i for i in range(50) if i not in step.ids]
    truth = env.truth(torch.arange(50))
    terms = HOVER.reward(truth, commands, previous)
    expected = sum(weight * terms[name] for name, weight in HOVER.spec.reward.items())
    torch.testing.assert_close(step.reward[going_on], expected[going_on], atol=1e-5, rtol=1e-5)


def test_surviving_raises_the_level_of_the_tilt_and_failing_lowers_it() -> None:
    env = VecEnv(HOVER, 2, seed=0)
    column = env.levels.names.index("initial/tilt")
    assert (env.levels.level[:, column] == 0).all()
    ids = torch.tensor([0, 1])
    env.end(ids, failed=torch.tensor([False, True]))
    assert env.levels.level[:, column].tolist() == [0.25, 0.0]
    env.end(ids, failed=torch.tensor([True, False]))
    assert env.levels.level[:, column].tolist() == [0.0, 0.25]


def test_without_a_compiler_flights_are_the_same(tmp_path: Path) -> None:
    """The same flights in a process that finds no compiler: torch alone, to rounding."""
    code = """
import json, torch
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.loading import load_task
from robo_rl.sim.tasks.multirotor.quadrotor import QuadrotorHover
env = VecEnv(load_task("quadrotor-track"), 3, seed=4, episode_length=0.15)
steps = [env.step({"rotor_speed": torch.full((3, 4), 1600.0)}) for _ in range(20)]
print(json.dumps([[*step.reward.tolist(), *step.signals["position"].flatten().tolist()] for step in steps]))
"""
    flights = []
    for path in (os.environ["PATH"], str(tmp_path)):
        environment = {**os.environ, "PATH": path}
        environment.pop("CXX", None)
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=300
        )
        assert done.returncode == 0, done.stderr
        assert ("no C++ compiler" in done.stderr) == (path != os.environ["PATH"])
        flights.append(torch.tensor(json.loads(done.stdout)))
    torch.testing.assert_close(flights[0], flights[1], atol=1e-4, rtol=1e-4)


def flights(env: VecEnv, commands: torch.Tensor) -> list[torch.Tensor]:
    """Rewards and signals (steps, n, k) under commands (steps, n, 4), resets included."""
    steps = [env.step({"rotor_speed": command}) for command in commands]
    seen = [torch.cat([step.reward[:, None], *step.signals.values()], 1) for step in steps]
    return [torch.stack(seen), torch.stack([step.failed for step in steps])]


@pytest.mark.parametrize("n", [1, 3, 50])
def test_neither_number_nor_commands_of_the_others_change_a_bit_of_a_flight(n: int) -> None:
    commands = random_commands(150, 64)
    ours, failed = flights(VecEnv(HOVER, n, seed=2), commands[:, :n])
    theirs, _ = flights(VecEnv(HOVER, 64, seed=2), torch.cat([commands[:, :n], 0.5 * commands[:, n:]], 1))
    assert failed.any()
    assert torch.equal(ours, theirs[:, :n])


def test_the_number_of_threads_does_not_change_a_bit_of_a_flight() -> None:
    n, before = 2048 * 4 + 3, torch.get_num_threads()
    commands, found = random_commands(25, n), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            found.append(flights(VecEnv(HOVER, n, seed=2), commands))
    finally:
        torch.set_num_threads(before)
    assert found[0][1].any()
    assert torch.equal(found[0][0], found[1][0])


def test_parts_of_a_large_batch_are_the_same_one_after_the_other() -> None:
    commands = random_commands(60, 20)
    whole, _ = flights(VecEnv(HOVER, 20, seed=2), commands)
    parts = [flights(VecEnv(HOVER, 10, seed=2, first=k), commands[:, k : k + 10])[0] for k in (0, 10)]
    assert torch.equal(whole, torch.cat(parts, 1))


def test_every_environment_and_every_episode_draws_its_own() -> None:
    env = VecEnv(HOVER, 500, evaluation=True)
    first = env.drawn
    masses = [first["mass"].clone(), env.drawn["mass"].clone()]
    env.reset()
    masses.append(env.drawn["mass"])
    assert torch.equal(masses[0], masses[1])
    assert len(torch.unique(torch.cat([masses[0], masses[2]]))) > 990
    assert first["wind"].shape == (500, 3)
    torch.testing.assert_close(env.plant.param("mass"), env.plant.nominal.mass * masses[2])
    torch.testing.assert_close(env.draws.delay[:, 0], env.drawn["delay"])


def test_what_a_step_returned_stays_as_it_is() -> None:
    env = VecEnv(HOVER, 30, seed=1)
    commands = random_commands(40, 30)
    kept, copies = [], []
    for command in commands:
        step = env.step({"rotor_speed": command})
        kept.append([*step.signals.values(), *step.final_signals.values(), *step[1:6]])
        copies.append([value.clone() for value in kept[-1]])
    env.reset(torch.tensor([3, 4]))
    for one, other in zip(kept, copies, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_episodes_begin_alike_in_one_loop_and_by_tensors() -> None:
    track = load_task("quadrotor-track")
    for task in (HOVER, track):
        fixed = {"mass": torch.tensor([1.05] * 20 + [float("nan")] * 20), "noise": 0.5}
        fast, slow = (VecEnv(task, 40, seed=6, fixed=fixed) for _ in range(2))
        assert fast._fused_reset is not None
        slow._fused_reset = None
        for command in random_commands(80, 40):
            ours, theirs = (env.step({"rotor_speed": command}) for env in (fast, slow))
            assert torch.equal(ours.failed, theirs.failed)
        assert fast.stream[:, 3].max() > 1  # episodes that began again
        assert (fast.drawn["mass"][:20] == 1.05).all()
        ids = torch.arange(40)
        for name, value in fast.state(ids).tensors.items():
            torch.testing.assert_close(value, slow.state(ids)[name], atol=1e-3, rtol=1e-3)


class Chancy(QuadrotorHover):
    """A task that is no pure function."""

    name = "chancy"

    def place(self, plant: Any, ids: Any, drawn: Any, goal: Any) -> None:
        super().place(plant, ids, drawn, goal)
        plant.current.position[ids] = torch.rand(len(drawn["mass"]), 3) * 0.2


def test_a_task_that_is_no_pure_function_begins_its_episodes_by_tensors() -> None:
    env = VecEnv(Chancy(), 20)
    assert env._fused_reset is None
    assert len(torch.unique(env.plant.current.position[:, 0])) == 20


def test_an_episode_may_be_shorter_or_longer_than_the_tasks() -> None:
    for seconds, steps in ((None, 500), (0.07, 7)):
        env = VecEnv(HOVER, 1, fixed={**STILL, **CALM, "noise": 0.0}, evaluation=True, episode_length=seconds)
        env.episode.step[:] = steps - 2
        assert not env.step(hover(env)).timeout.any()
        assert env.step(hover(env)).timeout.all()


def test_seeding_again_repeats_the_flights() -> None:
    env = VecEnv(HOVER, 4, seed=7)
    first = env.truth(torch.arange(4))["linear_velocity"].clone()
    env.seed(7)
    env.reset()
    assert torch.equal(env.truth(torch.arange(4))["linear_velocity"], first)


def test_unknown_ranges_are_refused() -> None:
    with pytest.raises(ValueError, match="'mas' is not one of the task's ranges"):
        VecEnv(HOVER, 2, fixed={"mas": 1.0})


def test_a_longer_delay_than_trained_is_really_flown() -> None:
    """A set of readings under 60 ms of latency lags the truth by six steps."""
    env = VecEnv(HOVER, 1, fixed={**STILL, **CALM, "noise": 0.0, "delay": 0.06}, evaluation=True)
    truths, readings = [], []
    for _ in range(20):
        step = env.step({"rotor_speed": torch.full((1, 4), 1700.0)})
        truths.append(float(env.plant.current.position[0, 2]))
        readings.append(float(step.signals["position"][0, 2]))
    assert readings[6:] == pytest.approx(truths[:-6], abs=1e-6)
