"""The learner beside a robot: it goes on where it was killed, with the steps that robots left in files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from robo_rl.commands.training.learn import main
from robo_rl.deploy.build.export import read_parameters
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.logs.logfile import spans
from robo_rl.deploy.robot.logs.step_log import Flag, Sizes, StepWriter
from robo_rl.learn.experience.demonstrations import Transitions
from robo_rl.learn.runs.folder import Run
from robo_rl.online import learner as learner_module
from robo_rl.online.interventions import InterventionPolicy
from robo_rl.online.learner import LiveLearner
from robo_rl.policy import PolicyGraph

SHAPE = {"hidden": (8,), "activation": "tanh"}
STEPS = 50


class Drift:
    """Moves all weights by as much per mini-batch, and counts what it was given."""

    first = 0

    def __init__(self, policy: PolicyGraph, first: Mapping[str, Tensor]) -> None:
        self.policy, self.weights, self.led, self.count = policy.requires_grad_(False), first, 0, 0

    def graph(self, policy: PolicyGraph) -> InterventionPolicy:
        return InterventionPolicy(policy)

    def pretrain(self, told: Callable[[int, int], None]) -> None:
        told(1, 2)
        self.policy.load_state_dict(self.weights)

    def add(self, transitions: Transitions, led: Tensor) -> None:
        self.led, self.count = self.led + int(led.sum()), self.count + len(transitions.reward)

    def learn(self) -> dict[str, float]:
        for value in self.policy.parameters():
            value.add_(1e-3)
        return {"error": 0.5}

    def save(self) -> dict[str, Tensor]:
        return dict(self.policy.state_dict())

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        self.policy.load_state_dict(tensors)


@pytest.fixture
def run(tmp_path: Path, led_policy: tuple[InterventionPolicy, Bundle]) -> Run:
    """A run whose robot has the first bundle, and has made some steps: an episode that was led at its end, and more."""
    made = Run.create(tmp_path, "quadrotor-hover", None, "bc", 0, SHAPE, name="live")
    folder = made.folder / "robot"
    folder.mkdir()
    shutil.copy(led_policy[1].path, folder)
    contract = led_policy[1].contract
    writer, sizes = StepWriter(folder, contract, pytest.fail), Sizes.of(contract)
    signals, memory, commands = (np.full(size, 0.01, np.float32) for size in sizes)
    signals[spans(contract)["orientation"]] = (0.0, 0.0, 0.0, 1.0)
    for k in range(STEPS + 2):
        flags = {19: Flag.OPERATOR, 20: Flag.LAST | Flag.SUCCEEDED}.get(k, Flag.NONE)
        writer.add(k, k, flags, "", signals, memory, commands)
    writer.close()
    return made


def learner_of(run: Run, first: InterventionPolicy, said: list[str]) -> Any:
    return LiveLearner(run, Drift(run.new_policy(), first.state_dict()), run.folder / "robot", 2.0, said.append)


def test_it_says_how_far_it_is_with_the_demonstrations(
    run: Run, led_policy: tuple[InterventionPolicy, Bundle], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner_module, "TOLD", -1.0)
    said: list[str] = []
    learner_of(run, led_policy[0], said).begin()
    assert said[0] == "learning from the demonstrations: 1 of 2 updates"


def test_a_learner_goes_on_where_it_was_killed(run: Run, led_policy: tuple[InterventionPolicy, Bundle]) -> None:
    said: list[str] = []
    before = learner_of(run, led_policy[0], said)
    before.begin()
    assert (before.steps, before.receive()) == (STEPS, 0)
    assert (before.algorithm.led, before.algorithm.count, before.owed) == (1, STEPS, 2 * STEPS)
    before.learn()
    before.publish()
    assert before.rates() == {"intervention_rate": 1 / STEPS, "success": 1.0, "minutes": STEPS / 6000}
    assert before.owed == 0
    before.algorithm.learn()  # lost: it was killed here, and while it wrote a bundle
    (run.folder / "robot" / "policy-000003.onnx").write_bytes(b"half of a bundle")
    (run.folder / "robot" / "policy-000004.onnx.partial").write_bytes(b"half of a bundle")
    after = learner_of(run, led_policy[0], said)
    after.begin()
    assert any(sentence.startswith("left out: ") and "policy-000003.onnx" in sentence for sentence in said)
    assert after.bundle.path.name == "policy-000002.onnx"
    assert (after.learnt, after.steps, after.owed) == (100, STEPS, 0)
    published = read_parameters(after.bundle.path)
    for name, value in after.average.state_dict().items():
        assert torch.equal(value, published[name]), name
        drifted = led_policy[0].state_dict()[name] + 0.1  # the mean is behind the weights
        assert (value < drifted).all()
        assert (value > led_policy[0].state_dict()[name]).all()
    policy, provenance = Run.open(run.folder).policy()  # as of any other run
    assert torch.equal(policy.network[0].weight, after.average.network[0].weight)
    assert provenance.environment_steps == STEPS
    after.publish()
    assert after.bundle.path.name == "policy-000004.onnx"  # a number that no robot has looked at
    assert run.metrics()[-1]["intervention_rate"] == 1 / STEPS


def test_what_can_not_be_learnt_from_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"algorithm is bc; expected one of \['apg'"):
        main("quadrotor-hover", runs=tmp_path)
    with pytest.raises(ValueError, match="expected --demonstrations FILE"):
        main("arm-insert", runs=tmp_path)
    with pytest.raises(ValueError, match="--ratio is 0; expected a positive number"):
        main("arm-insert", ratio=0.0, runs=tmp_path)
    assert list(tmp_path.iterdir()) == []
