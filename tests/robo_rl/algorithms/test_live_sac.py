"""Soft actor-critic beside a robot: which transitions go where, what is drawn, what is learnt, and what is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from robo_rl.commands.training.learn import main, opened
from robo_rl.controllers.gate.config import GateConfig
from robo_rl.deploy.robot.actor import EXPLORATION, INTERVENTION, MOST_NOISE, Actor
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.logs.logfile import spans
from robo_rl.deploy.robot.logs.step_log import Flag, Sizes, StepWriter
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.learn.config import SacConfig
from robo_rl.learn.experience.demonstrations import FILE_NAME, SIGNAL, Transitions, digest, write
from robo_rl.learn.explorer import Spread
from robo_rl.learn.runs.folder import Run
from robo_rl.online.exploration import ExploringPolicy
from robo_rl.online.interventions import DONE, OWN, export_again
from robo_rl.online.learner import LiveLearner
from robo_rl.online.received import StepFolder
from robo_rl.online.sac import Reinforcement
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.loading import load_task

SHOWN = 40
SMALL = {"hidden": (8,), "activation": "tanh", "critic_hidden": (16,), "batch": 64, "first": 10, "warm_up": 0}


@pytest.fixture(scope="module")
def task() -> Task:
    return load_task("quadrotor-hover")


@pytest.fixture
def folder(task: Task, tmp_path: Path) -> Path:
    """With demonstrations: an episode at which 9 was observed throughout."""
    seen = torch.full((SHOWN, task.observation_size), 9.0)
    ended = torch.zeros(SHOWN)
    ended[-1] = 1.0
    told = {
        "observation": seen, "action": torch.zeros(SHOWN, task.action_size), "reward": ended - 0.25, "ended": ended,
        "next_observation": seen, "episode": torch.zeros(SHOWN, dtype=torch.int64),
        **{SIGNAL + s.name: torch.zeros(SHOWN, *s.dimensions) for s in task.spec.signals},
        SIGNAL + "orientation": torch.eye(4)[3].expand(SHOWN, 4).contiguous(),
    }  # fmt: skip
    write(tmp_path / FILE_NAME, task, told)
    return tmp_path


def made(task: Task, folder: Path, **others: Any) -> Reinforcement:
    config = SacConfig(**{**SMALL, **others, "demonstrations": digest(folder / FILE_NAME)})
    return Reinforcement(task, PolicyGraph(task, config.hidden, config.activation), config, 0, folder)


def test_noise_is_scaled_by_the_deviation_and_an_operator_has_none(
    task: Task, exploring_policy: tuple[ExploringPolicy, Bundle], tmp_path: Path
) -> None:
    graph, bundle = exploring_policy
    assert bundle.golden_error() < 1e-5
    signals = {s.name: torch.rand(3, s.size) * 0.1 for s in task.spec.signals}
    noise = torch.tensor([[0.0] * 4, [1.0, -2.0, 0.5, 3.0], [1.0, -2.0, 0.5, 3.0]])
    led = torch.tensor([[0.0] * 5, [0.0] * 5, [1.0, 0.3, -0.2, 0.1, 0.4]])
    state = graph.initial_state(3)
    _, after = graph({**signals, INTERVENTION: led, EXPLORATION: noise}, state)
    memory, deviation = graph.unpack(after), graph.spread(task.observe(signals, graph.unpack(state))).exp()
    torch.testing.assert_close(memory[DONE][:2], memory[OWN][:2] + deviation[:2] * noise[:2])
    assert torch.equal(memory[DONE][2], led[2, 1:])
    torch.testing.assert_close(deviation, torch.full_like(deviation, 0.4), rtol=0.05, atol=0.0)  # as it begins
    wider = ExploringPolicy(PolicyGraph(task, (8,)), Spread(task, SacConfig(hidden=(8,), activation="tanh")))
    wider.load_state_dict(graph.state_dict())
    with torch.no_grad():
        wider.spread[-1].bias.add_(0.5)
    again = export_again(wider.requires_grad_(False), bundle, tmp_path / "policy-000002.onnx")
    assert again.golden_error() < 1e-5
    given = {name: value.numpy() for name, value in {**signals, INTERVENTION: led, EXPLORATION: noise}.items()}
    found = torch.from_numpy(again.run({name: value[1:2] for name, value in given.items()}, state[:1].numpy())[1])
    torch.testing.assert_close(
        graph.unpack(found)[DONE][0] - memory[OWN][1], np.exp(0.5) * deviation[1] * noise[1], rtol=1e-4, atol=1e-6
    )


def test_a_robot_draws_the_noise_that_its_policy_asks_for(
    exploring_policy: tuple[ExploringPolicy, Bundle], led_policy: tuple[Any, Bundle], tmp_path: Path
) -> None:
    def drawn(bundle: Bundle, seed: int | None) -> np.ndarray | None:
        policy = Policy.load(bundle.path, 100)
        actor = Actor(tmp_path, policy, GateConfig.from_contract(policy.contract), print, pytest.fail, seed=seed)
        actor.close()
        noise = [actor.exploration().get(EXPLORATION) for _ in range(2000)]
        return None if noise[0] is None else np.stack(noise)

    first = drawn(exploring_policy[1], 1)
    assert first is not None
    assert np.array_equal(first, drawn(exploring_policy[1], 1))
    assert not np.array_equal(first, drawn(exploring_policy[1], None))
    assert np.abs(first).max() <= MOST_NOISE
    assert np.abs(first.mean(0)).max() < 0.1
    assert np.abs(first.std(0) - 1.0).max() < 0.1
    assert drawn(led_policy[1], 1) is None


def test_steps_of_a_robot_go_into_both_buffers_as_they_should(
    task: Task, exploring_policy: tuple[ExploringPolicy, Bundle], folder: Path
) -> None:
    """Three episodes: success with the operator at its end, a failure, and a time-out, after which there was more."""
    graph, bundle = exploring_policy
    contract, sizes, rng = bundle.contract, Sizes.of(bundle.contract), np.random.default_rng(0)
    ends = {120: Flag.SUCCEEDED, 200: Flag.FAILED, 299: Flag.NONE}
    signals = rng.uniform(-0.1, 0.1, (300, sizes.signals)).astype(np.float32)
    signals[:, spans(contract)["orientation"]] = (0.0, 0.0, 0.0, 1.0)
    memory = rng.uniform(-2.0, 2.0, (300, sizes.memory)).astype(np.float32)
    writer = StepWriter(folder, contract, pytest.fail)
    for k in range(300):
        flags = Flag.LAST | ends[k] if k in ends else Flag.OPERATOR if 100 <= k < 120 else Flag.NONE
        writer.add(k, k, flags, bundle.digest, signals[k], memory[k], np.zeros(sizes.commands, np.float32))
    writer.close()
    algorithm = made(task, folder)
    algorithm.add(*StepFolder(folder, graph, contract, pytest.fail).new()[:2])
    rows = [k for k in range(300) if k not in ends]
    replay, shown = algorithm.learner.replay, algorithm.learner.demonstrations
    assert replay.written == len(rows)
    kept = replay.at(torch.arange(len(rows)))
    done = graph.unpack(torch.from_numpy(memory))[DONE].clamp(-1.0, 1.0)
    assert torch.equal(kept.action, done[[k + 1 for k in rows]])
    won, over = rows.index(119), rows.index(199)
    assert kept.reward.nonzero().flatten().tolist() == [won]
    assert kept.ended.nonzero().flatten().tolist() == [won, over]
    assert shown is not None
    assert len(shown.reward) == SHOWN + 20
    assert shown.reward[: SHOWN + 1].nonzero().flatten().tolist() == [SHOWN - 1]  # success alone, as live
    for ours, theirs in zip(shown, kept, strict=True):
        assert torch.equal(ours[SHOWN:], theirs[[rows.index(k) for k in range(100, 120)]])
    batch = algorithm.learner.batch()
    half = SMALL["batch"] // 2
    first = (batch.observation[:half, None] == shown.observation).all(-1).any(1)
    assert bool(first.all())
    assert 0 < int((batch.observation[:half] == 9.0).all(1).sum()) < half  # demonstrations and corrections
    assert not bool((batch.observation[half:] == 9.0).any())
    assert not bool((batch.observation[half:, None] == shown.observation).all(-1).any(1).all())


def test_the_policy_learns_what_is_rewarded(task: Task, folder: Path) -> None:
    algorithm = made(task, folder, initial_deviation=0.3, target_entropy=-0.5, learning_rate=3e-3)
    seen, action = 0.1 * torch.randn(500, task.observation_size), torch.rand(500, task.action_size) * 2.0 - 1.0
    won, led = (action[:, 0] > 0.0).float(), torch.zeros(500) > 0.0
    algorithm.add(Transitions(seen, action, won, torch.ones(500), seen), led)
    for _ in range(150):
        algorithm.learn()
    mean = algorithm.policy.network(algorithm.policy.features(seen)).mean(0)
    assert mean[0] > 0.2
    assert mean[1:].abs().max() < mean[0]


def test_the_deviation_stays_below_its_greatest(task: Task) -> None:
    spread = Spread(task, SacConfig(hidden=(8,), initial_deviation=0.3, greatest_deviation=0.1))
    assert spread(torch.randn(50, task.observation_size)).exp().max() <= 0.1 + 1e-6


def test_what_was_shown_has_its_price(task: Task, folder: Path) -> None:
    """Nothing is rewarded; demonstrations and an operator did 0 and 0.4, by what they saw."""
    algorithm = made(task, folder, imitation=1.0, learning_rate=3e-3)
    seen, none = torch.full((60, task.observation_size), -1.0), torch.zeros(60)
    action = torch.full((60, task.action_size), 0.4)
    algorithm.add(Transitions(seen, action, none, none, seen), none == 0.0)
    algorithm.add(Transitions(seen, -action, none, none, seen), none > 0.0)  # the policy's own are no example
    for _ in range(150):
        algorithm.learn()
    led, shown = (algorithm.policy.network(x)[0] for x in (seen, torch.full_like(seen, 9.0)))
    assert (led - 0.4).abs().max() < 0.1
    assert shown.abs().max() < 0.1


def test_the_critics_learn_alone_in_the_warm_up(task: Task, folder: Path) -> None:
    algorithm = made(task, folder, warm_up=1, steps=2, gradient_steps=2)
    seen = torch.randn(20, task.observation_size)
    none = torch.zeros(20)
    algorithm.add(Transitions(seen, torch.zeros(20, task.action_size), none, none, seen), none > 0.0)
    before = [value.clone() for value in algorithm.policy.parameters()]
    for count in range(6):
        told = algorithm.learn()
        assert ("loss/actor" in told) == (count == 4)  # a round is four mini-batches, the policy's turn every second
        same = [torch.equal(*pair) for pair in zip(before, algorithm.policy.parameters(), strict=True)]
        assert all(same) == (count < 4)


def test_a_killed_learner_goes_on_with_the_steps_in_files(
    exploring_policy: tuple[ExploringPolicy, Bundle], folder: Path
) -> None:
    config = {**SMALL, "demonstrations": digest(folder / FILE_NAME)}
    run = Run.create(folder, "quadrotor-hover", None, "sac", 0, config, name="live")
    (run.folder / FILE_NAME).write_bytes((folder / FILE_NAME).read_bytes())
    robot = run.folder / "robot"
    robot.mkdir()
    (robot / "policy-000001.onnx").write_bytes(exploring_policy[1].path.read_bytes())
    writer, sizes = StepWriter(robot, exploring_policy[1].contract, pytest.fail), Sizes.of(exploring_policy[1].contract)
    for k in range(51):
        values = [np.full(size, 0.01 * k, np.float32) for size in sizes]
        values[0][spans(exploring_policy[1].contract)["orientation"]] = (0.0, 0.0, 0.0, 1.0)
        writer.add(k, k, Flag.OPERATOR if k < 5 else Flag.NONE, "", *values)
    writer.close()

    def begun() -> Any:
        learner = LiveLearner(run, made(run.task(), run.folder), robot, 2.0, lambda sentence: None)
        learner.begin()
        return learner

    before = begun()
    assert before.receive() == 0  # nothing new
    assert before.owed == 2 * (50 - SMALL["first"])
    before.learn()
    before.publish()
    after = begun()  # the other one was killed
    assert (after.learnt, after.algorithm.learnt, after.steps, after.owed) == (80, 80, 50, 0)
    ours, theirs = after.algorithm.learner, before.algorithm.learner
    assert ours.replay.written == 50
    assert len(ours.demonstrations.reward) == SHOWN + 5
    for name in ("critics", "slow", "act"):
        for value, other in zip(getattr(ours, name).parameters(), getattr(theirs, name).parameters(), strict=True):
            assert torch.equal(value, other), name
    assert torch.equal(ours.log_temperature, theirs.log_temperature)
    assert after.learn() is None
    assert after.bundle.path.name == "policy-000002.onnx"
    assert Run.open(run.folder).policy()[1].environment_steps == 50  # as of any other run


def test_what_does_not_fit_a_robot_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="sac on a robot begins with demonstrations; expected --demonstrations FILE"):
        main("arm-insert", algorithm="sac", runs=tmp_path)
    with pytest.raises(ValueError, match="base is 'script'; expected none for sac on a robot"):
        opened("arm-insert", None, "sac", 0, None, tmp_path, None, SacConfig(base="script"))
    with pytest.raises(ValueError, match="dynamics_ratio is True; expected none for sac on a robot"):
        opened("arm-insert", None, "sac", 0, None, tmp_path, None, SacConfig(dynamics_ratio=True))
    assert list(tmp_path.iterdir()) == []
