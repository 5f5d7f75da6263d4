"""Recurrent policies of rsl_rl, in each form that it writes, do in a bundle what they do in its own runtime."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from robo_rl.adapters.foreign import adopting, onnx_network, recurrent
from robo_rl.adapters.foreign.description import AdoptionError
from robo_rl.commands.exporting import adopt
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.sim.robots.legged import load_legged
from robo_rl.sim.tasks.loading import load_task

SIZE, ACTIONS = 45, 12
G1 = load_legged("g1")
TERMS = """
[[observations]]
term = "base_ang_vel"
[[observations]]
term = "projected_gravity"
[[observations]]
term = "velocity_commands"
[[observations]]
term = "joint_pos_rel"
[[observations]]
term = "joint_vel_rel"
scale = 0.05
[[observations]]
term = "last_action"
"""


def rsl_rl_model(kind: str, layers: int) -> Any:
    from rsl_rl.models.rnn_model import RNNModel
    from tensordict import TensorDict

    torch.manual_seed(layers)
    seen = TensorDict({"policy": torch.zeros(1, SIZE)}, batch_size=[1])
    model = RNNModel(
        seen, {"actor": ["policy"]}, "actor", ACTIONS, (24,), "elu", True,
        rnn_type=kind, rnn_hidden_dim=16, rnn_num_layers=layers,
    ).eval()  # fmt: skip
    model.obs_normalizer._mean.normal_(std=0.1)
    model.obs_normalizer._std.uniform_(0.5, 2.0)
    with torch.no_grad():
        model.mlp[-1].weight.mul_(0.3)
    return model


def written(model: Any, form: str, folder: Path) -> Path:
    file = folder / ("walk.onnx" if "onnx" in form else "walk.pt")
    if form == "checkpoint":
        torch.save({"actor_state_dict": model.state_dict(), "iter": 3}, file)
    elif form == "script":
        torch.jit.script(model.as_jit()).save(str(file))
    else:
        one = model.as_onnx().eval()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                one, one.get_dummy_inputs(), str(file), input_names=one.input_names, output_names=one.output_names,
                dynamo=form == "new onnx", opset_version=18, verbose=False,
                **({"external_data": False} if form == "new onnx" else {}),
            )  # fmt: skip
    return file


@pytest.mark.parametrize("form", ["checkpoint", "script", "old onnx", "new onnx"])
@pytest.mark.parametrize(("kind", "layers"), [("lstm", 1), ("gru", 2)])
def test_steps_are_those_of_rsl_rl_whatever_the_file(kind: str, layers: int, form: str, tmp_path: Path) -> None:
    """A sequence of 20 observations, three robots at once, beside rsl_rl's own module for each robot."""
    model = rsl_rl_model(kind, layers)
    found = adopting.find(written(model, form, tmp_path), {"activation": "elu"})
    assert recurrent.memory_of(found.network) == 16 * layers * (2 if kind == "lstm" else 1)
    assert found.runtime is not None
    rng, worst = np.random.default_rng(0), 0.0
    seen = rng.normal(size=(20, 3, SIZE)).astype(np.float32)
    ours = theirs = torch.zeros(3, recurrent.memory_of(found.network))
    own = [model.as_jit() for _ in range(3)]
    with torch.no_grad():
        for step in torch.from_numpy(seen):
            action, ours = found.network(step, ours)  # type: ignore[misc]
            runtime, after = found.runtime(step.numpy(), theirs.numpy())
            theirs = torch.from_numpy(after)
            expected = torch.cat([robot(row[None]) for robot, row in zip(own, step, strict=True)])
            worst = max(worst, float((action - expected).abs().max()), float(np.abs(runtime - expected.numpy()).max()))
    assert worst < 1e-6


def test_a_humanoids_recurrent_policy_becomes_a_bundle(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """In the file, memory goes through the contract's state; C and Python get the same from it."""
    monkeypatch.chdir(tmp_path)
    file = written(rsl_rl_model("lstm", 1), "script", tmp_path)
    assert adopt.main(file, robot="g1", rate=50.0, joints=G1.joint_names, episodes=0, json=True) == 1
    toml = Path(json.loads(capsys.readouterr().out.splitlines()[-1])["description"])
    text = toml.read_text().split("[[observations]]")[0] + TERMS
    stand = [joint.stand for joint in G1.joints]
    for name, value in {"default": stand, "scale": 0.1, "stiffness": 100.0, "damping": 2.0}.items():
        text = "\n".join(f"{name} = {value}" if line.startswith(f"{name} = ") else line for line in text.splitlines())
    toml.write_text(text)
    assert adopt.main(file, episodes=0, json=True) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["difference"] <= 1e-6
    bundle = Bundle.read(told["file"])
    assert {block.name: block.size for block in bundle.contract.state}["network"] == 32
    assert bundle.golden_error() < 1e-5
    load_task(told["task"])
    toml.write_text(toml.read_text().replace("memory = 32", "memory = 16"))
    with pytest.raises(AdoptionError, match="memory is 16; expected 32, as the network keeps"):
        _write_as_told(file, told)


def _write_as_told(file: Path, told: dict[str, Any]) -> None:
    from robo_rl.adapters.foreign import graph

    task: Any = load_task(told["task"])
    found = adopting.network_of(file, task.told)
    assert found.network is not None
    graph.require_fit(task, found.network)


def test_what_is_no_memory_and_code_that_does_more_are_refused(tmp_path: Path) -> None:
    class Reads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.mlp = nn.GRU(SIZE, 8), nn.Sequential(nn.Linear(8, ACTIONS))
            self.register_buffer("hidden_state", torch.zeros(1, 1, 8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out, h = self.rnn(x.unsqueeze(0), self.hidden_state)
            self.hidden_state[:] = h
            return self.mlp(out.squeeze(0)) + torch.from_file("/etc/hostname", False, 1, dtype=torch.uint8)

    torch.jit.script(Reads()).save(str(tmp_path / "reads.pt"))
    with pytest.raises(AdoptionError, match="operator 'aten::from_file', which no recurrent policy needs"):
        adopting.find(tmp_path / "reads.pt", {})
    with pytest.raises(AdoptionError, match=r"input 'clock'.*besides the observation; expected a memory"):
        onnx_network.onnx_memory.states({"obs": [1, 3], "clock": [1, 1]}, {"actions": [1, 2]}, ["clock"], "walk.onnx")
