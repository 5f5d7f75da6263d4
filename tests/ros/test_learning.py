"""Learning beside a node: takeovers go to the learner, its policies come back, and below live nothing is learnt."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.contract import Provenance
from robo_rl.controllers.gate.codes import Request, State
from robo_rl.deploy.robot.actor import EXPLORATION, INTERVENTION, quiet
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.logs.step_log import Flag, StepReader, files
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.deploy.robot.session import Session
from robo_rl.online.interventions import DONE, InterventionPolicy, export_again
from robo_rl.policy import PolicyGraph
from robo_rl.ros.learning import Learning
from robo_rl.ros.teleoperation import Takeover
from robo_rl.sim.tasks.loading import load_task

PERIOD = 10_000  # µs
WISH = np.array([0.2, -0.1, 0.4, 0.0])


class Robot:
    """A node's core on signals of a robot at rest, with a learner's folder and a hand at the teleoperation."""

    def __init__(self, bundle: Bundle, folder: Path, mode: str) -> None:
        self.said: list[str] = []
        self.runner = Session(Policy.load(bundle.path, 100), mode)
        self.control: Any = type("Control", (), {"halt": pytest.fail, "constants": {}})
        self.learning = Learning(folder, self.runner, self.control, self.said.append, "", False)
        self.hand, self.time, self.noise = Takeover(bundle.contract, 0.5), 0, np.random.default_rng(0)

    def step(self, wish: np.ndarray | None = None, request: Request = Request.NONE) -> Any:
        self.time += PERIOD
        samples = {}
        for s in self.runner.contract.signals:
            value = np.array([0, 0, 0, 1] if s.kind == "quaternion" else [0] * s.size, np.float32)
            noise = 0.0 if s.noise is None else np.array(s.noise) * self.noise.normal(size=s.size)
            samples[s.name] = ((value + noise).astype(np.float32), self.time)
        given = self.hand.setpoints(wish, 0.01, {})[INTERVENTION]
        samples[INTERVENTION] = given.astype(np.float32), self.time
        samples |= {name: (value, self.time) for name, value in self.control.constants.items()}
        decision = self.runner.step(self.time, samples, request)
        self.learning.note(decision)
        return decision


def test_a_takeover_is_recorded_as_such_and_given_back(
    led_policy: tuple[InterventionPolicy, Bundle], tmp_path: Path
) -> None:
    first, bundle = led_policy
    robot = Robot(bundle, tmp_path, "live")
    robot.learning._actor.successors.close()  # looks only when it is told to
    for request in (Request.NONE, Request.ARM):
        robot.step(request=request)
    robot.step(request=Request.ACTIVATE)
    led = [robot.step(WISH) for _ in range(5)]
    assert all(decision.send is not None for decision in led)  # through the gate, as the policy's
    (tmp_path / "policy-000002.onnx").write_bytes(b"not a bundle")
    robot.learning._actor.successors.look()
    assert "refused, the policy goes on" in robot.said[-1]
    graph = copy.deepcopy(first)
    for value in graph.network.parameters():
        value.add_(1e-3)
    export_again(graph, bundle, tmp_path / "policy-000003.onnx")
    robot.learning._actor.successors.look()
    back = [robot.step() for _ in range(5)]
    assert back[-1].number < 0  # another policy than the one in the log's head
    assert "policy-000003.onnx goes on" in robot.said[-1]
    ask = lambda request, wanted: (robot.step(request=request).output.state == wanted, "")  # noqa: E731
    assert robot.learning.end_episode(Flag.SUCCEEDED, ask)[0]
    assert robot.runner.gate.state == State.IDLE
    robot.learning.close()
    frames = StepReader(files(tmp_path)[0], bundle.contract).new()
    assert frames["flags"].tolist() == [0, *[int(Flag.OPERATOR)] * 5, *[0] * 5, int(Flag.LAST | Flag.SUCCEEDED)]
    done = graph.unpack(torch.from_numpy(frames["memory"].copy()))[DONE].numpy()
    np.testing.assert_allclose(done[2:7], np.tile([0.2, -0.1, 0.4, 0.0], (5, 1)), atol=1e-6)
    assert len(set(frames["policy"][:-1])) == 2


def test_a_policy_that_explores_is_given_other_noise_in_each_step(
    exploring_policy: tuple[InterventionPolicy, Bundle], tmp_path: Path
) -> None:
    _, bundle = exploring_policy
    robot = Robot(bundle, tmp_path, "live")
    drawn = []
    for request in (Request.NONE, Request.ARM, Request.ACTIVATE, *[Request.NONE] * 5):
        robot.step(request=request)
        drawn.append(robot.control.constants[EXPLORATION])
    robot.learning.close()
    frames = StepReader(files(tmp_path)[0], bundle.contract).new()
    assert len(frames) > 3
    assert len(np.unique(frames["signals"][:, -4:], axis=0)) == len(frames)
    assert np.array_equal(frames["signals"][-1, -4:], drawn[-2])  # drawn after the step before
    assert set(quiet(bundle.contract)) == {EXPLORATION}  # until then


@pytest.mark.parametrize("mode", ["dry_run", "shadow", "blend"])
def test_what_a_policy_only_would_do_is_not_learnt_from(
    led_policy: tuple[InterventionPolicy, Bundle], tmp_path: Path, mode: str
) -> None:
    _, bundle = led_policy
    robot = Robot(bundle, tmp_path, mode)
    for request in (Request.NONE, Request.ARM, Request.ACTIVATE, Request.NONE, Request.NONE):
        robot.step(request=request)
    assert robot.runner.gate.state == State.ACTIVE
    robot.learning.close()
    assert len(StepReader(files(tmp_path)[0], bundle.contract).new()) == 0


def test_a_wish_becomes_the_action_by_name() -> None:
    arm = load_task("arm-place-direct")
    contract = InterventionPolicy(PolicyGraph(arm, (8,))).contract(Provenance("bc", 0, 0, ""))
    hand = Takeover(contract, 0.5)
    assert hand.setpoints(None, 0.05, {})[INTERVENTION].tolist() == [0, 0, 0, 0, 0]
    assert hand.setpoints(np.array([0.1, 9.0, -0.2, 0.3]), 0.05, {})[INTERVENTION].tolist() == [1, 0.1, 0.5, -0.2, 0.3]
