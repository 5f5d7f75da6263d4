"""LEAPP bundles, in the form that leapp 0.7.2 writes, do in a bundle of ours what they do in onnxruntime."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
import yaml
from onnx import numpy_helper
from safetensors.numpy import save_file
from torch import Tensor, nn

from robo_rl.adapters.foreign import adopting
from robo_rl.adapters.foreign.description import AdoptionError
from robo_rl.commands.exporting import adopt
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.sim.robots.legged import load_legged

CARD = load_legged("go2")
ISAAC = [f"{leg}_{part}_joint" for part in ("hip", "thigh", "calf") for leg in ("FL", "FR", "RL", "RR")]
STAND = {joint.name: joint.stand for joint in CARD.joints}
DEFAULT = [STAND[name] for name in ISAAC]
KINDS = {
    "robot_root_ang_vel_b": ("state/body/angular_velocity", ["x", "y", "z"]),
    "robot_root_quat_w": ("state/body/rotation", ["qx", "qy", "qz", "qw"]),
    "base_velocity": ("command/body/velocity", ["x", "y", "yaw"]),
    "robot_joint_pos": ("state/joint/position", ISAAC),
    "robot_joint_vel": ("state/joint/velocity", ISAAC[::-1]),
}
MEMORY = {"last_action": (1, 12), "h_policy_rate": (2, 1, 3)}


class Exported(nn.Module):
    """As Isaac Lab's graphs are: raw signals in, joint targets out; last action and history as states."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(48, 24), nn.ELU(), nn.Linear(24, 12))
        self.register_buffer("default", torch.tensor([DEFAULT]))

    def forward(
        self, rate: Tensor, q: Tensor, command: Tensor, position: Tensor, velocity: Tensor, last: Tensor, past: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        x, y, z, w = q.unbind(-1)
        down = -torch.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1)
        new = torch.cat([past[1:], rate.unsqueeze(0)])
        history = new.transpose(0, 1).flatten(1)
        action = self.net(torch.cat([history, down, command, position - self.default, velocity.flip(1), last], -1))
        return self.default + 0.1 * action, action, new


def write(folder: Path) -> tuple[Path, Exported, dict[str, np.ndarray]]:
    """The files, the module, and the first values of its memory."""
    module = Exported().eval().requires_grad_(False)
    inputs = [*KINDS, *(f"{name}_in" for name in MEMORY)]
    outputs = ["joint_pos_target", *(f"{name}_out" for name in MEMORY)]
    example = tuple(torch.zeros(1, len(names)) for _, names in KINDS.values())
    example += tuple(torch.zeros(shape) for shape in MEMORY.values())
    file = folder / "walk.onnx"
    torch.onnx.export(module, example, str(file), input_names=inputs, output_names=outputs, dynamo=True, verbose=False,
                      external_data=False)  # fmt: skip
    model = onnx.load(file)
    for kind, value in (("kp", 25.0), ("kd", 0.5)):
        model.graph.initializer.append(numpy_helper.from_array(np.full((1, 12), value, np.float32), kind))
        model.graph.output.append(onnx.helper.make_tensor_value_info(kind, onnx.TensorProto.FLOAT, [1, 12]))
    onnx.save(model, file)
    first = {"last_action": np.zeros((1, 12), np.float32), "h_policy_rate": np.full((2, 1, 3), 0.2, np.float32)}
    save_file({f"walk/{name}_in": value for name, value in first.items()}, folder / "first.safetensors")

    def told(name: str, shape: Any, **semantics: Any) -> dict[str, Any]:
        return {"name": name, "dtype": "float32", "shape": list(shape), "type": "tensor", **semantics}

    targets = {kind: told(kind, (1, 12), kind=kind, element_names=[ISAAC]) for kind in ("kp", "kd")}
    table = {
        "models": {"walk": {
            "inputs": [*(told(name, (1, len(names)), kind=kind, element_names=[names])
                         for name, (kind, names) in KINDS.items()),
                       *(told(f"{name}_in", shape) for name, shape in MEMORY.items())],
            "outputs": [told("joint_pos_target", (1, 12), kind="target/joint/position", element_names=[ISAAC]),
                        *(told(f"{name}_out", shape) for name, shape in MEMORY.items()), *targets.values()],
            "parameters": {"model_path": "walk.onnx", "backend": "onnx",
                           "sha256sum": hashlib.sha256(file.read_bytes()).hexdigest()},
        }},
        "pipeline": {
            "data_flow": {}, "initial_values": "first.safetensors",
            "feedback_flow": {f"walk/{name}_out": [f"walk/{name}_in"] for name in MEMORY},
        },
        "system information": {"leapp version": "0.7.2"},
    }  # fmt: skip
    (folder / "walk.yaml").write_text(yaml.safe_dump(table))
    return folder / "walk.yaml", module, first


def test_a_leapp_bundle_becomes_one_of_ours(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """A minute of signals through both, the graph's memory carried on by hand; the memory's first values count."""
    monkeypatch.chdir(tmp_path)
    file, module, first = write(tmp_path)
    assert adopt.main(file, robot="go2", rate=50.0, json=True) == 1
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["blanks"] == ["default"]
    toml = Path(told["description"])
    toml.write_text(toml.read_text().replace('default = "?"', f"default = {DEFAULT}"))
    assert adopt.main(file, episodes=0, json=True) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    bundle = Bundle.read(told["file"])
    assert told["difference"] <= 1e-6
    assert bundle.contract.commands[0].law.stiffness == (25.0,) * 12  # type: ignore[union-attr]
    state, kept = bundle.contract.initial_state[None], [torch.from_numpy(value) for value in first.values()]
    order = [CARD.joint_names.index(name) for name in ISAAC]
    signals, count = bundle.golden.signals, len(bundle.golden)
    limits = [np.array(getattr(bundle.contract.commands[0], end)) for end in ("lower", "upper")]
    for k in range(40):
        now = {name: np.asarray(value[k % count], np.float32)[None] for name, value in signals.items()}
        ours, state = bundle.run(now, state)
        command = np.concatenate([now["linear_velocity_command"], now["yaw_rate_command"]], 1)
        given = [now["angular_velocity"], now["orientation"], command, now["joint_position"][:, order],
                 now["joint_velocity"][:, order[::-1]]]  # fmt: skip
        target, *kept = module(*map(torch.from_numpy, given), *kept)
        expected = np.empty((1, 12), np.float32)
        expected[:, order] = target.numpy()
        np.testing.assert_allclose(ours["joint_position_target"], np.clip(expected, *limits), atol=2e-6)


@pytest.mark.parametrize(("old", "new", "message"), [
    ("state/joint/velocity", "state/joint/effort", "is of the kind state/joint/effort; expected one"),
    ("sha256sum: ", "sha256sum: 0", "sha256sum is 0.*it is not the exported file"),
    ("model_path: walk.onnx", "model_path: ../walk.onnx", "expected an ONNX file beside it"),
    ("name: joint_pos_target", "name: null", "its graph has no output 'None'; expected one of"),
    ("target/joint/position", "target/joint/torques", "expected one of the kind target/joint/position"),
    ("- - x\n        - y\n        - z", "- - z\n        - y\n        - x",
     r"robot_root_ang_vel_b' has the elements .*expected x, y, z"),
    ("- qx", "- qa", r"has the elements \['a'.*expected x, y, z, w"),
])  # fmt: skip
def test_what_it_does_not_say_as_expected_is_refused(
    old: str, new: str, message: str, tmp_path: Path, leapp_files: Path
) -> None:
    for file in leapp_files.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    text = (tmp_path / "walk.yaml").read_text()
    assert old in text
    (tmp_path / "walk.yaml").write_text(text.replace(old, new))
    with pytest.raises(AdoptionError, match=message):
        adopting.find(tmp_path / "walk.yaml", {})


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_memory_that_begins_with_no_number_is_refused(value: float, tmp_path: Path, leapp_files: Path) -> None:
    for file in leapp_files.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    save_file({"walk/last_action_in": np.full((1, 12), value, np.float32)}, tmp_path / "first.safetensors")
    with pytest.raises(AdoptionError, match=r"walk\.yaml: the first last_action_in is .*expected finite numbers"):
        adopting.find(tmp_path / "walk.yaml", {})


@pytest.mark.parametrize("change", [
    lambda table: table["models"].update(walk=[]), lambda table: table["models"]["walk"].update(inputs=7),
    lambda table: table["models"]["walk"].update(outputs=[{"name": None}]), lambda table: table.update(models={5: {}}),
    lambda table: table["models"]["walk"]["inputs"][0].pop("name"),
    lambda table: table["pipeline"].update(feedback_flow=[1]),
    lambda table: table["models"]["walk"]["inputs"][0].update(shape=12, element_names="x"),
    lambda table: table["pipeline"].update(feedback_flow={"walk/a": 5}),
    lambda table: table["models"]["walk"].update(parameters="walk.onnx"),
])  # fmt: skip
def test_a_bundle_of_other_types_is_refused(
    change: Callable[[dict[str, Any]], object], tmp_path: Path, leapp_files: Path
) -> None:
    for file in leapp_files.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    table = yaml.safe_load((tmp_path / "walk.yaml").read_text())
    change(table)
    (tmp_path / "walk.yaml").write_text(yaml.safe_dump(table))
    with pytest.raises(AdoptionError, match=r"walk\.yaml"):
        adopting.find(tmp_path / "walk.yaml", {})


@pytest.fixture(scope="module")
def leapp_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("leapp")
    write(folder)
    return folder
