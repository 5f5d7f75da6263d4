"""Policies in the files of six trainers become bundles that do what the trainers' own programs do.

Observations and targets are computed a second time here as the deploy programs of those trainers do it, with numpy, and
their networks run in their own runtime.
"""

from __future__ import annotations

import json
import math
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from robo_rl.adapters.foreign import adopting, description, onnx_network, statements
from robo_rl.adapters.foreign.description import AdoptionError
from robo_rl.commands.exporting import adopt
from robo_rl.deploy.build.verify import verify
from robo_rl.deploy.robot.bundle import Bundle, BundleError, command_differences, greatest
from robo_rl.sim.tasks.loading import load_task

sys.path.append(str(Path(__file__).parent))
import trainers

forms, fill, mlp = trainers.forms, trainers.fill, trainers.mlp
CARD, MJLAB, ISAAC = forms.CARD, forms.MJLAB, forms.ISAAC
PLAIN, TERMS = trainers.PLAIN, forms.TERMS


def run(capsys: Any, *words: Any, **settings: Any) -> tuple[int, dict[str, Any], str]:
    code = adopt.main(*words, json=True, **settings)
    said = capsys.readouterr()
    return code, json.loads(said.out.strip().splitlines()[-1]), said.err


Step = Callable[[dict[str, np.ndarray]], np.ndarray]


def same_rollout(bundle: Bundle, by_hand: Step, steps: int = 120) -> float:
    """The greatest difference between a bundle and a program, in units of the commands' range, each with its memory."""
    signals = bundle.golden.signals
    state, found = bundle.contract.initial_state[None], []
    count = len(bundle.golden)
    for k in range(steps):
        now = {name: value[k % count] for name, value in signals.items()}
        ours, state = bundle.run({name: value[None] for name, value in now.items()}, state)
        target = np.clip(by_hand(now), *(np.array(getattr(bundle.contract.commands[0], x)) for x in ("lower", "upper")))
        theirs = {"joint_position_target": target.astype(np.float32)[None]}
        found += command_differences(bundle.contract, ours, theirs)
    return greatest(found)


def down(q: np.ndarray) -> np.ndarray:
    """As unitree_rl_gym's get_gravity_orientation, which takes w first."""
    qx, qy, qz, qw = q
    return np.array([2 * (-qz * qx + qw * qy), -2 * (qz * qy + qw * qx), 1 - 2 * (qw * qw + qz * qz)])


def verified(toml: Path) -> None:
    """By the command that was printed."""
    found = verify(
        toml.with_name("policy.onnx"), episodes=8, min_success=0.0, foreign=True,
        task=f"{toml.with_name('policy_task.py')}:Policy",
    )  # fmt: skip
    assert not [failure for failure in found.failures if "rest" not in failure], found.failures


def other_type(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT16


def no_number_of_columns(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 7


def no_rows(model: onnx.ModelProto) -> None:
    del model.graph.input[0].type.tensor_type.shape.dim[:]


def text_as_input(model: onnx.ModelProto) -> None:
    model.graph.input.append(onnx.helper.make_tensor_value_info("text", onnx.TensorProto.STRING, [1]))


def no_number_as_weight(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.full((5, 2), np.nan, np.float32), "w"))


@pytest.mark.parametrize("change", [no_number_as_weight, other_type, no_number_of_columns, no_rows, text_as_input])
def test_a_graph_that_onnxruntime_does_not_take_is_refused_by_file(
    change: Callable[[onnx.ModelProto], None], tmp_path: Path
) -> None:
    file = tmp_path / "walk.onnx"
    nodes = [onnx.helper.make_node("Gemm", ["obs", "w"], ["actions"])]
    weights = [onnx.numpy_helper.from_array(np.ones((5, 2), np.float32), "w")]
    ends = [onnx.helper.make_tensor_value_info(n, 1, [1, k]) for n, k in (("obs", 5), ("actions", 2))]
    graph = onnx.helper.make_graph(nodes, "walk", ends[:1], ends[1:], weights)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
    onnx_network.read(model.SerializeToString(), str(file))
    change(model)
    with pytest.raises(AdoptionError, match=r"walk\.onnx: it can't be read as ONNX"):
        onnx_network.read(model.SerializeToString(), str(file))


@pytest.mark.parametrize("robot", [1, [], {}, True, math.nan])
def test_a_robot_that_is_no_text_is_refused(robot: Any) -> None:
    with pytest.raises(AdoptionError, match=r"robot is .*; expected a robot's name"):
        adopting._joints_of(robot)


# --- the six ------------------------------------------------------------------------------------------------


@pytest.mark.release
def test_mjlab_s_onnx_walks_as_before_in_our_simulator(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """The zoo's walk behind mjlab's observations and metadata."""
    monkeypatch.chdir(tmp_path)
    file = Path("walk.onnx")
    trainers.mjlab("walk.onnx")
    code, told, _ = run(capsys, file)
    assert (code, told["blanks"]) == (1, ["robot", "rate", "observations[4].period"])
    fill(Path(told["description"]), robot="go2", rate=50.0, period=forms.PERIOD)
    code, told, _ = run(capsys, file, episodes=8)
    assert code == 0
    assert told["difference"] <= 1e-6
    assert told["success"] == 1.0
    assert told["velocity_error"] < 0.15  # m/s; the zoo's policy has 0.07
    verified(Path(told["description"]))
    contract = Bundle.read(told["file"]).contract
    assert contract.commands[0].law.stiffness == (forms.STIFFNESS,) * 12  # type: ignore[union-attr]
    assert contract.control_period == 0.02


def test_unitree_rl_gym_s_torchscript_and_yaml(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """As deploy/deploy_mujoco/deploy_mujoco.py runs it."""
    monkeypatch.chdir(tmp_path)
    config = trainers.unitree_rl_gym()
    default = config["default_angles"]
    code, told, _ = run(capsys, Path("motion.pt"), config=(Path("go2.yaml"),), robot="go2", episodes=0)
    assert (code, told["blanks"]) == (1, ["joints"])
    code, told, _ = run(
        capsys, Path("motion.pt"), config=(Path("go2.yaml"),), robot="go2", joints=tuple(MJLAB), episodes=0
    )
    assert code == 0
    order, counter, action = [CARD.index(name) for name in MJLAB], 0, np.zeros(12, np.float32)
    script = torch.jit.load("motion.pt")

    def program(now: dict[str, np.ndarray]) -> np.ndarray:
        nonlocal counter, action
        counter += config["control_decimation"]
        phase = counter * config["simulation_dt"] % 0.8 / 0.8
        command = np.concatenate([now["linear_velocity_command"], now["yaw_rate_command"]])
        obs = np.concatenate([
            now["angular_velocity"] * 0.25, down(now["orientation"]), command * np.array(config["cmd_scale"]),
            now["joint_position"][order] - default, now["joint_velocity"][order] * 0.05, action,
            [np.sin(2 * np.pi * phase), np.cos(2 * np.pi * phase)],
        ]).astype(np.float32)  # fmt: skip
        action = script(torch.from_numpy(obs)[None]).numpy().squeeze()
        return (action * 0.25 + default)[[MJLAB.index(name) for name in CARD]]

    assert same_rollout(Bundle.read(told["file"]), program) < 2e-6
    verified(Path(told["description"]))


@pytest.mark.release
def test_unitree_rl_lab_s_deploy_yaml(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """As deploy/include/isaaclab of unitree_rl_lab runs it: history by term, oldest first, clip before scale."""
    monkeypatch.chdir(tmp_path)
    history, clips, scales = 3, trainers.CLIPS, trainers.SCALES
    actor, motors = trainers.unitree_rl_lab("policy.onnx", history), [CARD.index(name) for name in ISAAC]
    default = [forms.STAND[name] for name in ISAAC]
    code, told, _ = run(capsys, Path("policy.onnx"), robot="go2", episodes=0)
    assert (code, told["blanks"]) == (0, [])
    buffers: dict[str, deque[np.ndarray]] = {}
    last = np.zeros(12)

    def program(now: dict[str, np.ndarray]) -> np.ndarray:
        nonlocal last
        q = now["orientation"]
        values = {
            "base_ang_vel": now["angular_velocity"], "projected_gravity": down(q),
            "velocity_commands": np.concatenate([now["linear_velocity_command"], now["yaw_rate_command"]]),
            "joint_pos_rel": now["joint_position"][motors] - default, "joint_vel_rel": now["joint_velocity"][motors],
            "last_action": last,
        }  # fmt: skip
        parts = []
        for name, value in values.items():
            buffer = buffers.setdefault(name, deque([value] * history, maxlen=history))
            buffer.append(value)
            for old in buffer:
                clipped = np.clip(old, *clips[name]) if name in clips else old
                parts.append(clipped * scales[name])
        obs = torch.from_numpy(np.concatenate(parts).astype(np.float32))[None]
        last = actor(obs).numpy()[0]
        sdk = np.zeros(12)
        sdk[motors] = last * 0.25 + default
        return sdk

    bundle = Bundle.read(told["file"])
    assert same_rollout(bundle, program) < 2e-6
    assert bundle.contract.commands[0].law.stiffness == (25.0,) * 12  # type: ignore[union-attr]
    known = load_task(told["task"])
    assert known.spec.ranges["command/x"].end == (-0.5, 1.0)
    verified(Path(told["description"]))


@pytest.mark.release
def test_isaac_lab_s_env_yaml_with_an_rsl_rl_checkpoint(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """rsl_rl's own model and normaliser give the actions; patterns of joints are read once the order is known."""
    monkeypatch.chdir(tmp_path)
    model = trainers.isaac_lab("model_5.pt")
    assert "python/tuple" in Path("params/env.yaml").read_text()
    code, told, _ = run(capsys, Path("model_5.pt"), robot="go2", episodes=0)
    assert (code, told["blanks"]) == (1, ["joints", "default", "action.scale", "gains.stiffness", "gains.damping"])
    code, told, _ = run(capsys, Path("model_5.pt"), robot="go2", joints=tuple(ISAAC), episodes=0)
    assert code == 0
    default, order = np.array([forms.STAND[name] for name in ISAAC]), [CARD.index(name) for name in ISAAC]
    scale = np.array([0.125 if "hip" in name else 0.25 for name in ISAAC])
    script, last = model.as_jit().eval(), np.zeros(12)

    def program(now: dict[str, np.ndarray]) -> np.ndarray:
        nonlocal last
        seen = np.concatenate([
            now["angular_velocity"] * 0.25, down(now["orientation"]), now["linear_velocity_command"],
            now["yaw_rate_command"], now["joint_position"][order] - default, now["joint_velocity"][order] * 0.05, last,
        ]).astype(np.float32)  # fmt: skip
        with torch.no_grad():
            last = script(torch.from_numpy(seen)[None]).numpy()[0]
        return (default + scale * last)[[ISAAC.index(name) for name in CARD]]

    assert same_rollout(Bundle.read(told["file"]), program) < 2e-6
    verified(Path(told["description"]))


def test_stable_baselines3_s_zip_with_its_statistics(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    pytest.importorskip("stable_baselines3", reason="needs stable-baselines3: pip install 'robo-rl[dev]'")
    monkeypatch.chdir(tmp_path)
    model, env = trainers.stable_baselines3("walk.zip")
    code, told, _ = run(capsys, Path("walk.zip"), episodes=0)
    assert code == 1
    assert "layers.statistics" in told["blanks"]
    env.save("vecnormalize.pkl")
    toml = Path(told["description"])
    toml.unlink()
    code, told, _ = run(capsys, Path("walk.zip"), robot="go2", rate=50.0, joints=tuple(CARD), episodes=0)
    assert "layers.statistics" not in told["blanks"]
    default = [forms.STAND[name] for name in CARD]
    fill(toml, TERMS, default=default, scale=0.25, stiffness=35.0, damping=0.5)
    code, told, _ = run(capsys, Path("walk.zip"), episodes=0)
    assert code == 0
    last = np.zeros(12, np.float32)

    def program(now: dict[str, np.ndarray]) -> np.ndarray:
        nonlocal last
        seen = np.concatenate([
            now["angular_velocity"] * 0.25, down(now["orientation"]), now["linear_velocity_command"],
            now["yaw_rate_command"], now["joint_position"] - default, now["joint_velocity"] * 0.05, last,
        ]).astype(np.float32)  # fmt: skip
        last = model.predict(env.normalize_obs(seen[None]), deterministic=True)[0][0]
        return default + 0.25 * last

    assert same_rollout(Bundle.read(told["file"]), program) < 2e-6


@pytest.mark.release
def test_beyondmimic_s_onnx_brings_its_clip(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """As whole_body_tracking exports it: the clip's joints and bodies are outputs, by a time step that is an input."""
    monkeypatch.chdir(tmp_path)
    steps, rng = 40, np.random.default_rng(0)
    default = np.array([forms.STAND[name] for name in ISAAC], np.float32)
    joints = (default + 0.05 * rng.normal(size=(steps, 12))).astype(np.float32)
    speeds = (0.1 * rng.normal(size=(steps, 12))).astype(np.float32)
    quaternions = rng.normal(size=(steps, 2, 4)).astype(np.float32) * 0.1 + np.array([1, 0, 0, 0], np.float32)
    quaternions /= np.linalg.norm(quaternions, axis=-1, keepdims=True)  # w first

    class Exported(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.actor = mlp(24 + 6 + 3 + 36, seed=2)
            for name, value in (("joint_pos", joints), ("joint_vel", speeds), ("body_quat_w", quaternions)):
                self.register_buffer(name, torch.from_numpy(value))

        def forward(self, x: torch.Tensor, time_step: torch.Tensor) -> tuple[torch.Tensor, ...]:
            at = torch.clamp(time_step.long().squeeze(-1), max=steps - 1)
            return (self.actor(x), *(self.get_buffer(n)[at] for n in ("joint_pos", "joint_vel", "body_quat_w")))

    model = Exported().eval()
    torch.onnx.export(
        model, (torch.zeros(1, 69), torch.zeros(1, 1)), "dance.onnx", input_names=["obs", "time_step"],
        output_names=["actions", "joint_pos", "joint_vel", "body_quat_w"], dynamo=True, verbose=False,
        external_data=False,
    )  # fmt: skip
    import onnx

    file = onnx.load("dance.onnx")
    csv = lambda values: ",".join(f"{v:.3f}" if isinstance(v, float) else str(v) for v in values)  # noqa: E731
    names = "command,motion_anchor_ori_b,base_ang_vel,joint_pos,joint_vel,actions"
    for key, value in {
        "run_path": "x", "joint_names": csv(ISAAC), "joint_stiffness": csv([35.0] * 12),
        "joint_damping": csv([0.5] * 12),
        "default_joint_pos": csv([float(x) for x in default]), "command_names": "motion", "observation_names": names,
        "observation_history_lengths": "1,1,1,1,1,1", "action_scale": csv([0.25] * 12), "anchor_body_name": "base",
        "body_names": "thigh,base",
    }.items():  # fmt: skip
        file.metadata_props.add(key=key, value=value)
    onnx.save(file, "dance.onnx")
    code, told, _ = run(capsys, Path("dance.onnx"), robot="go2", rate=50.0, episodes=0)
    assert (code, told["blanks"]) == (0, [])
    order, last, step, turn = [CARD.index(name) for name in ISAAC], np.zeros(12, np.float32), 0, None
    from scipy.spatial.transform import Rotation

    def program(now: dict[str, np.ndarray]) -> np.ndarray:
        nonlocal last, step, turn
        w, x, y, z = quaternions[min(step, steps - 1), 1]
        reference, robot = Rotation.from_quat([x, y, z, w]), Rotation.from_quat(now["orientation"])
        if turn is None:
            first = reference.as_euler("ZYX")[0]
            turn = Rotation.from_euler("z", robot.as_euler("ZYX")[0] - first)
        seen = (robot.inv() * turn * reference).as_matrix()[:, :2].reshape(-1)
        now_step = min(step, steps - 1)
        obs = np.concatenate([
            joints[now_step], speeds[now_step], seen, now["angular_velocity"], now["joint_position"][order] - default,
            now["joint_velocity"][order], last,
        ]).astype(np.float32)  # fmt: skip
        last = model.actor(torch.from_numpy(obs)[None]).numpy()[0]
        step += 1
        return (default + 0.25 * last)[[ISAAC.index(name) for name in CARD]]

    bundle = Bundle.read(told["file"])
    assert same_rollout(bundle, program) < 3e-6
    assert "source/motion.npz" in bundle.attached.files
    verified(Path(told["description"]))


def test_a_clip_is_turned_to_the_robot_s_heading_at_any_attitude() -> None:
    from scipy.spatial.transform import Rotation

    from robo_rl.adapters.foreign.motion import START, STEP, Motion

    rng, none = np.random.default_rng(0), torch.zeros(9, 12)
    clip, robots = (Rotation.random(n, random_state=rng) for n in (9, 50))
    motion = Motion(none, none, torch.from_numpy(clip.as_quat().astype(np.float32)))
    memory = {STEP: torch.zeros(50, 1), START: torch.zeros(50, 3)}
    seen = torch.from_numpy(robots.as_quat().astype(np.float32))
    found = motion.orientation(seen, memory).numpy()
    later = {**motion.remembered(seen, memory)}
    angle = robots.as_euler("ZYX")[:, 0] - clip[0].as_euler("ZYX")[0]
    turn = Rotation.from_rotvec(angle[:, None] * [0.0, 0.0, 1.0])
    expected = (robots.inv() * turn * clip[0]).as_matrix()[:, :, :2].reshape(50, 6)
    assert np.abs(found - expected).max() < 1e-5
    moved = robots * Rotation.from_rotvec([0.3, -0.2, 0.5])
    found = motion.orientation(torch.from_numpy(moved.as_quat().astype(np.float32)), later).numpy()
    expected = (moved.inv() * turn * clip[1]).as_matrix()[:, :, :2].reshape(50, 6)
    assert np.abs(found - expected).max() < 1e-5


# --- refusals -------------------------------------------------------------------------------------------------


def test_a_scan_of_the_ground_is_refused_with_what_can_be_done(tmp_path: Path) -> None:
    told = statements.onnx_metadata(
        {
            "joint_names": "a", "default_joint_pos": "0.0",
            "observation_names": "base_ang_vel,height_scan", "observation_terms_scale": "1.0,1.0",
            "observation_terms_clip": "-inf;inf,-inf;inf", "observation_terms_flatten_history_dim": "True,True",
            "observation_terms_history_length": "0,0",
        },
        ["obs"],
    )  # fmt: skip
    assert told is not None
    assert told.data["observations"][1]["term"] == "?"
    assert "no robot here measures: train without the term; or" in told.reasons["observations[1].term"]
    toml = (
        'network = "n"\nrobot = "go2"\nrate = 50.0\njoints = ["a"]\ndefault = [0.0]\n[action]\nscale = 1.0\n[gains]\n'
        'stiffness = 1.0\ndamping = 1.0\n[[observations]]\nterm = "height_scan"\n'
    )
    (tmp_path / "policy.toml").write_text(toml)
    with pytest.raises(AdoptionError, match=r"observations\[0\]\.term is 'height_scan', heights of the ground"):
        description.read(tmp_path / "policy.toml")


def test_an_onnx_file_of_another_program_is_told_from_a_damaged_bundle(tmp_path: Path) -> None:
    file = forms.to_onnx(mlp(), PLAIN, tmp_path / "policy.onnx")
    with pytest.raises(BundleError, match=r"obs 1 × 45; outputs actions 1 × 12.*robo-rl adopt"):
        Bundle.read(file)
    (tmp_path / "damaged.onnx").write_bytes(file.read_bytes()[:300])
    with pytest.raises(BundleError, match="no digest in it"):
        Bundle.read(tmp_path / "damaged.onnx")


def test_the_description_of_another_file_of_the_same_name_is_not_taken_for_this_one(
    tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    """Every run of a trainer has its exported/policy.onnx: joints, scales and gains of the first must not be its."""
    monkeypatch.chdir(tmp_path)
    for folder in ("one", "two"):
        Path(folder).mkdir()
        torch.jit.script(mlp()).save(f"{folder}/policy.pt")
    assert run(capsys, Path("one/policy.pt"), robot="go2")[0] == 1
    assert run(capsys, Path("one/policy.pt"))[0] == 1
    with pytest.raises(AdoptionError, match=r"is '\.\./one/policy\.pt'; expected \.\./two/policy\.pt.*--out FOLDER"):
        adopt.main(Path("two/policy.pt"))
    assert run(capsys, Path("two/policy.pt"), out=Path("other"))[0] == 1


def test_a_pickle_that_would_run_something_is_refused(tmp_path: Path) -> None:
    import pickle

    from robo_rl.adapters.foreign import parameters

    class Evil:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "ran",)

    data = pickle.dumps({"model_state_dict": Evil()})
    with pytest.raises(AdoptionError, match="can't be read"):
        parameters.read(data, "model.pt")
    with pytest.raises(AdoptionError, match=r"no VecNormalize|can't be read"):
        parameters.read_statistics(data, "statistics.pkl")
    assert not (tmp_path / "ran").exists()


def test_tags_of_python_in_yaml_are_read_as_data_and_nothing_is_run(tmp_path: Path) -> None:
    from robo_rl.adapters.foreign import yaml_file

    run = f"!!python/object/apply:os.system ['touch {tmp_path}/ran']"
    text = f"a: {run}\nb: !!python/tuple [1, 2]\nc: !!python/name:os.x ''"
    assert yaml_file.read(text.encode(), "x.yaml")["b"] == [1, 2]
    assert not (tmp_path / "ran").exists()
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)
    )
    with pytest.raises(AdoptionError, match=r"x\.yaml.*aliases"):
        yaml_file.read(bomb.encode(), "x.yaml")


def test_a_torchscript_with_a_memory_or_a_branch_is_refused(tmp_path: Path) -> None:
    from robo_rl.adapters.foreign import script_network

    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.seen[:] = self.seen + 1
            return x * self.seen

    class Branching(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if bool(x.sum() > 0):
                return x
            return -x

    for module, match in ((Counting(), "memory of its own"), (Branching(), "a branch")):
        path = tmp_path / "m.pt"
        torch.jit.script(module).save(str(path))
        with pytest.raises(AdoptionError, match=match):
            script_network.read(path.read_bytes(), "m.pt")


@pytest.mark.parametrize(("content", "sentence"), [(None, "there is no such file"), (b"none", "can't be read as ONNX")])
def test_a_file_that_is_refused_leaves_no_folder(
    tmp_path: Path, monkeypatch: Any, content: bytes | None, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("walk.onnx").write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        adopt.main(Path("walk.onnx"), robot="go2", rate=50.0)
    assert not Path("walk-adopted").exists()
