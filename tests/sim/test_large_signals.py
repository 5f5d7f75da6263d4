"""Scans and images: sensors that a loop over single numbers can't hold, and observations in several groups."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from scipy import stats

from robo_rl.adapters.gym import TaskEnv, TaskVectorEnv
from robo_rl.contract import Signal
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.sim.env import VecEnv
from robo_rl.sim.ranges import Range

BEAMS, IMAGE = (1080,), (16, 64)
PERIOD = 0.01


def scan(**more: Any) -> Signal:
    return Signal("scan", (), "m", "body", -1e6, 1e6, shape=BEAMS, **more)


def image(**more: Any) -> Signal:
    return Signal("image", (), "m", "body", -1e6, 1e6, shape=IMAGE, **more)


AGE = Signal("scan_age", ("s",), "s", "body", (0.0,), (0.1,), source="runtime", age_of="scan")


@pytest.fixture
def seeing(rail: Any, rail_with_scan: Any) -> Any:
    """A cart that sees, with observations in groups."""

    class Seeing(rail):
        name = "seeing"
        plant_class = rail_with_scan
        observation_shapes = {"state": (3,), "scan": (1, 1080), "image": IMAGE}  # type: ignore[assignment]

        def observe(self, signals: Any, memory: Any) -> Any:
            seen = super().observe(signals, memory)
            return {"state": seen, "scan": signals["scan"][:, None] / 10.0, "image": signals["image"]}

    return Seeing


def still(n: int) -> dict[str, torch.Tensor]:
    return {"force": torch.zeros(n, 1)}


def moving(env: VecEnv, speed: float) -> None:
    """1 m per control step, for every step."""
    env.plant.current.velocity[:] = speed / PERIOD


FIXED = {"start": 0.0, "mass": 1.0}


def test_large_signals_are_measured_in_their_shapes(seeing: Any) -> None:
    env = VecEnv(seeing(others=(scan(), image())), 3, fixed=FIXED)
    moving(env, 1.0)
    for k in range(1, 4):
        signals = env.step(still(3)).signals
        assert list(signals) == ["position", "velocity", "setpoint", "scan", "image"]
        torch.testing.assert_close(signals["scan"], k + env.plant.beams.expand(3, -1))
        assert signals["image"].shape == (3, *IMAGE)
        assert float(signals["image"][0, 2, 7]) == pytest.approx(k + 7 + 200)


def test_a_late_slow_scan_is_sampled_and_held_and_tells_its_age(seeing: Any) -> None:
    late = scan(period=0.04, delay=(0.0, 0.03))
    env = VecEnv(seeing(others=(late, image(), AGE)), 2, fixed={**FIXED, "delay/scan": 0.02, "phase/scan": 0.0})
    moving(env, 1.0)
    seen = [env.step(still(2)).signals for _ in range(9)]
    assert [round(float(s["scan"][0, 0])) for s in seen] == [0, 0, 0, 0, 3, 3, 3, 3, 7]
    ages = [float(s["scan_age"][0, 0]) for s in seen[4:]]
    assert ages == pytest.approx([0.02, 0.03, 0.04, 0.05, 0.02])


def test_latency_of_a_scan_may_lie_between_steps(seeing: Any) -> None:
    env = VecEnv(seeing(others=(scan(delay=(0.0, 0.03)), image())), 2, fixed={**FIXED, "delay/scan": 0.0125})
    moving(env, 1.0)
    for _ in range(6):
        signals = env.step(still(2)).signals
    torch.testing.assert_close(signals["scan"][:, 0], torch.full((2,), 6 - 1.25), atol=1e-4, rtol=0.0)


def test_noise_of_a_scan_is_normal_and_independent_between_beams_steps_and_environments(seeing: Any) -> None:
    env = VecEnv(seeing(others=(scan(noise=0.5), image())), 40, fixed=FIXED)
    errors = [env.step(still(40)).signals["scan"] - env.plant.beams for _ in range(3)]
    x = (torch.stack(errors) / 0.5).numpy().astype(np.float64)
    assert stats.kstest(x.ravel(), "norm").pvalue > 1e-3
    flat = x.reshape(3 * 40, 1080)
    assert np.abs(np.corrcoef(flat) - np.eye(120)).max() < 0.17  # five deviations of 1080 numbers
    assert np.abs(np.corrcoef(x[:, :, :200].reshape(120, 200).T) - np.eye(200)).max() < 0.5


def test_a_scan_drops_out_as_often_as_the_range_tells(seeing: Any) -> None:
    ranges = {"dropout/scan": Range.fixed(0.25, 0.25)}
    env = VecEnv(seeing(others=(scan(), image(), AGE), ranges=ranges), 400, fixed=FIXED)
    moving(env, 1.0)
    lost, old = [], torch.zeros(400)
    for k in range(1, 21):
        signals = env.step(still(400)).signals
        dropped = signals["scan"][:, 0] < k - 0.5
        old = torch.where(dropped, old + PERIOD, 0.0)
        torch.testing.assert_close(signals["scan_age"][:, 0], old.clamp(max=0.1))
        lost.append(dropped.float().mean())
    assert float(torch.stack(lost).mean()) == pytest.approx(0.25, abs=0.025)


def everything(seeing: Any) -> Any:
    ranges = {"dropout/scan": Range.fixed(0.2, 0.2), "noise": Range.fixed(0.5, 1.0), "bias/scan": Range.fixed(-1, 1)}
    return seeing(
        seconds=0.2,
        others=(scan(noise=0.1, period=0.03, delay=(0.0, 0.04)), image(noise=0.2), AGE),
        ranges=ranges,
    )


def test_neither_number_nor_slot_of_an_environment_changes_what_it_sees(seeing: Any) -> None:
    task = everything(seeing)
    first, other = VecEnv(task, 7, seed=1), VecEnv(task, 3, seed=5)
    force = 5.0 * torch.randn(60, 7, 1, generator=torch.Generator().manual_seed(0))
    for k in range(13):
        first.step({"force": force[k]})
        other.step({"force": force[k, :3]})
    ids, slots = torch.tensor([5, 2]), torch.tensor([0, 2])
    other.set_state(slots, first.state(ids))
    for name, value in other.signals().items():
        assert torch.equal(value[slots], first.signals()[name][ids]), name
    for k in range(13, 60):
        mine = torch.zeros(3, 1)
        mine[slots] = force[k, ids]
        ours, theirs = first.step({"force": force[k]}), other.step({"force": mine})
        for name, value in ours.signals.items():
            assert torch.equal(value[ids], theirs.signals[name][slots]), (k, name)
        assert torch.equal(ours.reward[ids], theirs.reward[slots])


def test_a_saved_environment_that_sees_goes_on_bit_by_bit(seeing: Any) -> None:
    task = everything(seeing)
    first, other = VecEnv(task, 4, seed=1), VecEnv(task, 4, seed=2)
    for k in range(33):
        first.step({"force": torch.full((4, 1), float(k % 5))})
        if k < 7:
            other.step(still(4))
    other.load({name: value.clone() for name, value in first.save().items()})
    for k in range(30):
        ours, theirs = (env.step({"force": torch.full((4, 1), float(k % 3))}) for env in (first, other))
        for name, value in ours.signals.items():
            assert torch.equal(value, theirs.signals[name]), (k, name)


# --- groups of observations ----------------------------------------------------------------------------------------


def test_groups_go_through_learning_environments_memory_and_final_observations_included(seeing: Any) -> None:
    task = seeing(seconds=0.05, others=(scan(), image()))
    env = LearningEnv(VecEnv(task, 5, fixed=FIXED))
    for _ in range(5):
        step = env.step(torch.full((5, 1), 0.5))
        shapes = {name: tuple(value.shape[1:]) for name, value in step.observation.items()}
        assert shapes == task.observation_shapes
    assert step.timeout.all()
    assert {name: len(value) for name, value in step.final_observation.items()} == dict.fromkeys(shapes, 5)
    assert (step.final_observation["state"][:, 2] == 0.5).all()
    assert (step.observation["state"][:, 2] == 0.0).all()


def test_rsl_rl_gets_the_groups_beside_what_a_critic_sees(seeing: Any) -> None:
    from robo_rl.adapters.rsl_rl_env import RslRlEnv

    env = RslRlEnv(VecEnv(seeing(others=(scan(), image())), 4))
    seen = env.get_observations()
    assert {name: tuple(value.shape) for name, value in seen.items()} == {
        "state": (4, 3), "scan": (4, 1, 1080), "image": (4, 16, 64), "privileged": (4, 3),
    }  # fmt: skip
    assert env.step(torch.zeros(4, 1))[0].batch_size == torch.Size([4])


def test_gymnasium_gets_a_dictionary(seeing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    task = seeing(seconds=0.03, others=(scan(), image()))
    monkeypatch.setattr("robo_rl.adapters.gym.load_task", lambda name, robot: task)
    single, many = TaskEnv("seeing"), TaskVectorEnv("seeing", 3)
    assert isinstance(single.observation_space, gymnasium.spaces.Dict)
    assert single.observation_space["image"].shape == IMAGE
    observation, _ = single.reset(seed=1)
    assert single.observation_space.contains(observation)
    observation, *_ = single.step(np.zeros(1))
    assert single.observation_space.contains(observation)
    assert many.observation_space["scan"].shape == (3, 1, 1080)
    many.reset(seed=1)
    for _ in range(3):
        _, _, _, truncated, infos = many.step(np.zeros((3, 1)))
    assert truncated.all()
    assert single.observation_space.contains(infos["final_obs"][1])


def test_a_scan_need_not_be_cut_in_numbers_to_be_traced(seeing: Any) -> None:
    """What the native loop reads is as small as without it."""
    small, large = (VecEnv(seeing(others=others), 2) for others in ((), (scan(), image())))
    for env in (small, large):
        env.step(still(2))
    assert large.signal_block.shape == small.signal_block.shape
    assert large.state(torch.arange(2))["signal/scan"].shape == (2, 1080)
