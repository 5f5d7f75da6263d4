"""A recurrent policy of another trainer walks a simulated G1 from behind the node's session: messages, gate, memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.adapters.foreign import adopting, graph
from robo_rl.controllers.gate.codes import Request, State
from robo_rl.sim.robots.legged import load_legged
from robo_rl.sim.tasks.loading import load_task

G1 = load_legged("g1")
TOML = f"""
network = "walk.pt"
robot = "g1"
rate = 50.0
joints = {list(G1.joint_names)}
default = {[joint.stand for joint in G1.joints]}
memory = 16
[action]
scale = 0.25
[gains]
stiffness = {[joint.stiffness for joint in G1.joints]}
damping = {[joint.damping for joint in G1.joints]}
[[observations]]
term = "base_ang_vel"
[[observations]]
term = "joint_pos_rel"
""".replace("'", '"')


MEMORY = slice(12, 28)
"""Of the state, after the last action."""


def names(contract: Any) -> list[str]:
    """Of all elements of all signals, as the gate has them."""
    return [f"{signal.name}.{element}" for signal in contract.signals for element in signal.elements]


class Walk(nn.Module):
    """Keeps its memory as legged_gym's export does."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.mlp = nn.LSTM(15, 8), nn.Sequential(nn.Linear(8, 12))
        self.register_buffer("hidden_state", torch.zeros(1, 1, 8))
        self.register_buffer("cell_state", torch.zeros(1, 1, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, (h, c) = self.rnn(x.unsqueeze(0), (self.hidden_state, self.cell_state))
        self.hidden_state[:] = h
        self.cell_state[:] = c
        return self.mlp(out.squeeze(0))


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("walk")
    torch.manual_seed(0)
    torch.jit.script(Walk()).save(str(folder / "walk.pt"))
    (folder / "policy.toml").write_text(TOML)
    (folder / "policy_task.py").write_text(adopting.task_source("walk.pt", {}, "legged_gym"))
    name = f"{folder}/policy_task.py:Policy"
    task: Any = load_task(name)
    found = adopting.network_of(folder / "walk.pt", task.told)
    assert found.network is not None
    assert found.runtime is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph, "EPISODES", 2)
        graph.write(task, found.network, found.runtime, folder / "policy.onnx", "legged_gym")
    return folder / "policy.onnx", name


def test_it_hangs_until_the_policy_commands_and_then_the_memory_goes_on_step_by_step(walk: tuple[Path, str]) -> None:
    from tests.ros.in_process import Pair

    pair = Pair(str(walk[0]), walk[1])
    for _ in range(100):
        pair.step()
    truth = pair.twin.truth()
    assert truth["position"][2] == pytest.approx(pair.twin.plant.height, abs=1e-6)
    np.testing.assert_allclose(truth["joint_position"], [joint.stand for joint in G1.joints], atol=0.02)
    pair.step(Request.ARM)
    pair.go_on(1.0)
    pair.step(Request.ACTIVATE)
    pair.go_on(0.5)
    assert pair.last.output.state == State.ACTIVE, pair.sentence(pair.last)
    assert pair.twin.truth()["position"][2] < pair.twin.plant.height - 1e-4  # nothing holds it any more
    # The trainer's own runtime from the last step in which its memory was the contract's first one.
    first = max(i for i, step in enumerate(pair.steps) if not step.decision.state[MEMORY].any())
    theirs, layout, worst = Walk().eval(), pair.bundle.contract, 0.0
    theirs.load_state_dict(torch.jit.load(str(walk[0].parent / "walk.pt")).state_dict())
    stand = np.array([joint.stand for joint in G1.joints])
    assert len(pair.steps) - first > 20
    for step in pair.steps[first:]:
        values = dict(zip(names(layout), step.decision.inputs.signals, strict=True))
        rate = [values[f"angular_velocity.{x}"] for x in "xyz"]
        joints = np.array([values[f"joint_position.{name}"] for name in G1.joint_names])
        seen = torch.tensor(np.concatenate([rate, joints - stand]), dtype=torch.float32)[None]
        with torch.no_grad():
            wanted = stand + 0.25 * theirs(seen)[0].numpy()
        assert step.decision.policy is not None
        worst = max(worst, float(np.abs(step.decision.policy - wanted).max()))
    assert worst < 1e-5
