"""Files of policies as other trainers write them, with networks that stand: drawn at random, of small actions.

Each writes into the current folder, as a reader of docs/bring-your-policy.md has them.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from torch import nn

sys.path.append(str(Path(__file__).parent))
import adopted as forms

CARD, MJLAB, ISAAC = forms.CARD, forms.MJLAB, forms.ISAAC
PLAIN = 45
"""Numbers of a plain walker's observation, ``forms.TERMS``."""


def mlp(size: int = PLAIN, seed: int = 0) -> nn.Sequential:
    """Actions of some 0.1: enough to tell joints apart, too small to fall."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(size, 32), nn.ELU(), nn.Linear(32, 32), nn.ELU(), nn.Linear(32, 12))
    with torch.no_grad():
        net[-1].weight.mul_(0.3)
        net[-1].bias.mul_(0.3)
    return net.requires_grad_(False)


def mjlab(file: str) -> Any:
    """The zoo's walk behind mjlab's observations and metadata, which lack robot, rate and the clock's period."""
    walker = forms.Walker(MJLAB)
    forms.to_onnx(walker, forms.size_of(walker), Path(file), forms.mjlab_metadata(walker))
    return walker


def unitree_rl_gym(network: str = "motion.pt", config: str = "go2.yaml") -> dict[str, Any]:
    """TorchScript, and what deploy/deploy_mujoco/configs has of it, which lacks the joints; its table."""
    torch.jit.script(mlp(PLAIN + 2)).save(network)
    table = {
        "policy_path": "x", "simulation_dt": 0.002, "control_decimation": 10, "kps": [35.0] * 12, "kds": [0.5] * 12,
        "default_angles": [forms.STAND[name] for name in MJLAB], "ang_vel_scale": 0.25, "dof_pos_scale": 1.0,
        "dof_vel_scale": 0.05, "action_scale": 0.25, "cmd_scale": [2.0, 2.0, 0.25], "num_actions": 12,
        "num_obs": PLAIN + 2, "cmd_init": [0.5, 0, 0],
    }  # fmt: skip
    Path(config).write_text(yaml.dump(table))
    return table


CLIPS = {"joint_vel_rel": [-2.0, 2.0]}
SCALES = {"base_ang_vel": 0.2, "projected_gravity": 1.0, "velocity_commands": 1.0, "joint_pos_rel": 1.0,
          "joint_vel_rel": 0.05, "last_action": 1.0}  # fmt: skip


def unitree_rl_lab(network: str, history: int = 3) -> nn.Module:
    """ONNX, and params/deploy.yaml with ``CLIPS``, ``SCALES`` and so many steps of each term; the network."""
    actor = mlp(history * PLAIN, seed=1)
    Path(network).parent.mkdir(exist_ok=True)
    forms.to_onnx(actor, history * PLAIN, Path(network))
    default = [forms.STAND[name] for name in ISAAC]
    sizes = dict(zip(SCALES, (3, 3, 3, 12, 12, 12), strict=True))
    table = {
        "joint_ids_map": [CARD.index(name) for name in ISAAC], "step_dt": 0.02, "stiffness": [25.0] * 12,
        "damping": [0.5] * 12, "default_joint_pos": default,
        "commands": {"base_velocity": {"ranges": {"lin_vel_x": [-0.5, 1.0], "lin_vel_y": [-0.3, 0.3],
                                                  "ang_vel_z": [-0.2, 0.2], "heading": None}}},
        "actions": {"JointPositionAction": {"clip": None, "joint_names": [".*"], "scale": [0.25] * 12,
                                            "offset": default, "joint_ids": None}},
        "observations": {name: {"params": {}, "clip": CLIPS.get(name), "scale": [scale] * sizes[name],
                                "history_length": history} for name, scale in SCALES.items()},
    }  # fmt: skip
    Path("params").mkdir(exist_ok=True)
    text = yaml.dump(table, sort_keys=False).replace(
        "joint_ids: null", "joint_ids: !!python/object/apply:builtins.slice [null, null, null]"
    )
    Path("params/deploy.yaml").write_text(text)
    return actor


def isaac_lab(checkpoint: str) -> Any:
    """A checkpoint of rsl_rl, and params/env.yaml and agent.yaml beside it, without the order of joints; its model."""
    from rsl_rl.models import MLPModel
    from tensordict import TensorDict

    torch.manual_seed(3)
    obs = TensorDict({"policy": torch.zeros(1, PLAIN)}, batch_size=[1])
    model = MLPModel(obs, {"actor": ["policy"]}, "actor", 12, [32, 16], "elu", obs_normalization=True)
    model.obs_normalizer._mean.normal_(0.0, 0.1)
    model.obs_normalizer._std.uniform_(0.5, 1.5)
    critic = MLPModel(obs, {"critic": ["policy"]}, "critic", 1, [16], "elu")
    saved = {"actor_state_dict": model.state_dict(), "critic_state_dict": critic.state_dict(), "iter": 5, "infos": None}
    params = Path(checkpoint).parent / "params"
    params.mkdir(parents=True)
    torch.save({**saved, "optimizer_state_dict": {"state": {}, "param_groups": []}}, checkpoint)
    term = {"params": {}, "noise": None, "clip": None, "scale": None, "history_length": 0}
    functions = {"base_ang_vel": 0.25, "projected_gravity": None, "generated_commands": None, "joint_pos_rel": None,
                 "joint_vel_rel": 0.05, "last_action": None}  # fmt: skip
    env = {
        "decimation": 4, "sim": {"dt": 0.005},
        "scene": {"robot": {
            "init_state": {"joint_pos": {".*_hip_joint": 0.0, ".*_thigh_joint": 0.9, ".*_calf_joint": -1.8}},
            "actuators": {"legs": {"joint_names_expr": [".*_hip_joint", ".*_thigh_joint", ".*_calf_joint"],
                                   "stiffness": 25.0, "damping": 0.5}},
        }},
        "actions": {"joint_pos": {"joint_names": [".*"], "scale": {".*_hip_joint": 0.125, "^(?!.*_hip_joint).*": 0.25},
                                  "use_default_offset": True, "clip": None}},
        "observations": {"policy": {"history_length": None, "concatenate_terms": True, **{
            name: {**term, "func": f"isaaclab.envs.mdp.observations:{name}", "scale": scale}
            for name, scale in functions.items()}}},
        "commands": {"base_velocity": {"ranges": {"lin_vel_x": (-1.0, 1.0), "lin_vel_y": (-0.5, 0.5)}}},
    }  # fmt: skip
    (params / "env.yaml").write_text(yaml.dump(env, sort_keys=False))  # with Isaac Lab's tags of tuples
    (params / "agent.yaml").write_text(yaml.dump({"policy": {"activation": "elu"}, "clip_actions": None}))
    return model


def stable_baselines3(file: str) -> tuple[Any, Any]:
    """A .zip of PPO after 16 steps; the model, and the environment that has its statistics."""
    import gymnasium
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    class Plain(gymnasium.Env):  # type: ignore[type-arg]
        observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (PLAIN,), np.float32)
        action_space = gymnasium.spaces.Box(-1.0, 1.0, (12,), np.float32)

        def reset(self, **_: Any) -> Any:
            return self.np_random.normal(0.2, 0.7, PLAIN).astype(np.float32), {}

        def step(self, action: Any) -> Any:
            return self.np_random.normal(0.2, 0.7, PLAIN).astype(np.float32), 0.0, False, False, {}

    env = VecNormalize(DummyVecEnv([Plain]), norm_reward=False)
    model = PPO("MlpPolicy", env, n_steps=16, batch_size=16, n_epochs=1, device="cpu", seed=0).learn(16)
    model.save(file)
    return model, env


def fill(toml: Path, terms: str | None = None, **values: Any) -> None:
    """What a user does: put values in the place of blanks, by the fields' names; ``terms``: the observation."""
    text = toml.read_text()
    if terms is not None:
        text = text.split("[[observations]]")[0]
    for name, value in values.items():
        text, count = re.subn(rf'^{name} = "\?".*$', f"{name} = {json.dumps(value)}", text, flags=re.MULTILINE)
        assert count == 1, name
    toml.write_text(text + (terms or ""))
