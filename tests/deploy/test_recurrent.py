"""A recurrent policy on its way to a robot: the hidden state is memory like any other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor

from robo_rl.contract import Provenance
from robo_rl.deploy.build.c.generate import generate
from robo_rl.deploy.build.c.host import compile_host
from robo_rl.deploy.build.export import export
from robo_rl.deploy.build.verify import PARITY_TOLERANCE, BundlePolicy, task_of, torch_policy
from robo_rl.deploy.robot.bundle import Bundle, command_differences, greatest
from robo_rl.evaluate.evaluation import Conditions, rollout
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks.loading import load_task

WIDTH = 10


@pytest.fixture(scope="module")
def recurrent(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A bundle of an untrained policy whose memory matters."""
    torch.manual_seed(0)
    policy = PolicyGraph(load_task("quadrotor-hover"), (16,), "elu", normalize=True, recurrent=WIDTH)
    with torch.no_grad():
        policy.network[-1].weight.mul_(30.0)
    provenance = Provenance("none", 0, 0, "0" * 64)
    return export(policy, provenance, tmp_path_factory.mktemp("recurrent") / "policy.onnx")


def test_the_hidden_state_is_the_last_block_of_the_contract_s_memory(recurrent: Bundle) -> None:
    *others, last = recurrent.contract.state
    assert tuple(others) == task_of(recurrent.contract).spec.memory
    assert (last.name, last.shape, set(last.initial)) == ("recurrent", (WIDTH,), {0.0})


class Witness(BundlePolicy):
    """Flies by the file, asks torch and the generated C the same, and keeps the greatest differences."""

    def __init__(self, bundle: Bundle, folder: Path) -> None:
        super().__init__(bundle)
        others = {"torch": torch_policy(bundle, task_of(bundle.contract)), "C": compile_host(generate(bundle, folder))}
        self.others, self.worst, self.moved = others, dict.fromkeys(others, 0.0), 0.0

    def __call__(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        commands, following = super().__call__(signals, state)
        self.moved = max(self.moved, float(following[:, -WIDTH:].abs().max()))
        for name, other in self.others.items():
            with torch.no_grad():
                given, then = other(signals, state)
            differences = command_differences(self.bundle.contract, commands, given)
            self.worst[name] = max(self.worst[name], greatest([*differences, (following - then).numpy()]))
        return commands, following


def test_torch_onnxruntime_and_c_agree_in_closed_loop(recurrent: Bundle, tmp_path: Path) -> None:
    witness = Witness(recurrent, tmp_path)
    rollout(task_of(recurrent.contract), witness, Conditions(episodes=50))
    assert witness.moved > 0.1
    assert witness.worst["torch"] <= PARITY_TOLERANCE
    assert witness.worst["C"] <= PARITY_TOLERANCE
