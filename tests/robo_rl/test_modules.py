"""Policies of other people's learners become bundles that do what the module does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from torch import Tensor, nn

import robo_rl
from robo_rl.adapters.gym import ACTION_SCALE
from robo_rl.deploy.build.export import ExportError
from robo_rl.deploy.build.verify import BundlePolicy, verify
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.loading import load_task

TASK = load_task("quadrotor-hover")


class Skip(nn.Module):
    """Two ways through, with a normaliser: no stack of layers."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.full((TASK.observation_size,), 0.1))
        self.wide = nn.Linear(TASK.observation_size, 8)
        self.norm = nn.LayerNorm(8)
        self.last = nn.Linear(8, TASK.action_size)

    def forward(self, observation: Tensor) -> Tensor:
        seen = self.wide(observation - self.get_buffer("mean"))
        return 0.1 * torch.tanh(self.last(seen + torch.relu(self.norm(seen))))


def commands_by_hand(module: nn.Module, signals: dict[str, Tensor], scale: float) -> Tensor:
    """The task's command for what the module gives for the task's observation, in a policy's first step."""
    memory = TASK.first_memory(len(signals["position"]))
    with torch.no_grad():
        (command,) = TASK.command(scale * module(TASK.observe(signals, memory)), memory).values()
    given = TASK.spec.commands[0]
    return torch.clamp(command, torch.tensor(given.lower), torch.tensor(given.upper))


def require_same(bundle: Bundle, module: nn.Module, scale: float) -> None:
    signals = VecEnv(TASK, 16, seed=3).reset()
    policy = BundlePolicy(bundle)
    (found,) = policy(signals, policy.initial_state(16))[0].values()
    assert torch.allclose(found, commands_by_hand(module.eval(), signals, scale), rtol=1e-4, atol=1e-2)  # rad/s


def test_any_module_becomes_a_bundle_that_does_the_same(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = Skip().train()
    bundle = robo_rl.export(module, "quadrotor-hover", tmp_path / "skip.onnx", algorithm="mine", environment_steps=7)
    assert module.training
    assert (bundle.contract.provenance.algorithm, bundle.contract.provenance.environment_steps) == ("mine", 7)
    assert bundle.golden_error() < 1e-5
    require_same(bundle, module, 1.0)
    found = verify(bundle.path, episodes=2, min_success=0.0, foreign=True)
    assert found.max_abs_error is None
    with pytest.raises(ValueError, match="checked, as far as it can be, by --foreign"):
        verify(bundle.path, episodes=2)


def test_a_stack_of_layers_is_told_in_the_contract_and_verified(tmp_path: Path) -> None:
    """As CleanRL writes them, trained in gymnasium, whose actions are in other units than the task's."""
    torch.manual_seed(1)
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(gymnasium.make_vec("quadrotor-hover", num_envs=4))
    size, count = envs.single_observation_space.shape[0], envs.single_action_space.shape[0]  # type: ignore[index]
    mean = nn.Sequential(nn.Linear(size, 16), nn.Tanh(), nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, count))
    with torch.no_grad():
        mean[-1].weight.mul_(0.01)
    bundle = robo_rl.export(mean, envs, tmp_path / "stack.onnx")
    network = bundle.contract.network
    assert (network.hidden, network.activation, network.normalize) == ((16, 8), "tanh", False)
    require_same(bundle, mean, ACTION_SCALE)
    found = verify(bundle.path, episodes=2, min_success=0.0)
    assert found.graph.same
    assert found.max_abs_error is not None
    assert found.max_abs_error < 1e-5


def test_what_rsl_rl_s_runner_has_learnt_becomes_a_bundle(tmp_path: Path) -> None:
    from rsl_rl.runners import OnPolicyRunner

    from robo_rl.adapters.rsl_rl_env import RslRlEnv

    env = RslRlEnv(VecEnv(TASK, 16, seed=0))
    model = {"class_name": "MLPModel", "hidden_dims": [16], "activation": "elu", "obs_normalization": True}
    config = {
        "num_steps_per_env": 8,
        "save_interval": 10,
        "obs_groups": {"actor": ["policy"], "critic": ["privileged"]},
        "algorithm": {"class_name": "PPO", "num_learning_epochs": 1, "num_mini_batches": 2},
        "actor": {**model, "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 0.5}},
        "critic": model,
    }
    torch.manual_seed(0)
    runner = OnPolicyRunner(env, config, log_dir=str(tmp_path), device="cpu")
    runner.learn(num_learning_iterations=2)
    actor = runner.alg.actor.as_jit()
    bundle = robo_rl.export(actor, env, tmp_path / "rsl.onnx", algorithm="rsl_rl")
    require_same(bundle, actor, 1.0)


def test_what_stable_baselines3_has_learnt_becomes_a_bundle(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3", reason="needs stable-baselines3: pip install 'robo-rl[dev]'")
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

    from robo_rl.adapters.sb3_env import FARTHEST, Sb3Env, actor

    env = VecMonitor(VecNormalize(Sb3Env("quadrotor-hover", 8), norm_reward=False))
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=32, n_epochs=1, seed=0, device="cpu").learn(128)
    module = actor(model)
    bundle = robo_rl.export(module, env, tmp_path / "sb3.onnx", algorithm="sb3")
    require_same(bundle, module, 1.0)
    raw = np.random.default_rng(0).normal(size=(5, TASK.observation_size)).astype(np.float32)
    normalized: Any = env.venv
    theirs, _ = model.predict(normalized.normalize_obs(raw), deterministic=True)
    with torch.no_grad():
        mine = module(torch.from_numpy(raw)).numpy()
    assert np.allclose(mine, theirs, atol=1e-4)
    assert np.abs(mine).max() <= FARTHEST


class Noisy(nn.Module):
    """Gives another action every time."""

    def forward(self, observation: Tensor) -> Tensor:
        return torch.rand(len(observation), TASK.action_size)


class Pair(nn.Module):
    """Gives two things."""

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        return observation, observation


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        (nn.Linear(3, 4), "the module can't take observations"),
        (nn.Linear(TASK.observation_size, 3), r"gives \(3, 3\) for 3 observations; expected actions \(3, 4\)"),
        (Pair(), "gives a tuple for 3 observations"),
    ],
)
def test_a_module_that_is_no_policy_for_the_task_is_refused(module: nn.Module, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=sentence):
        robo_rl.export(module, "quadrotor-hover", tmp_path / "x.onnx")
    assert list(tmp_path.iterdir()) == []


class ByTheBatch(nn.Module):
    """A branch of Python, of which a trace keeps one side."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(TASK.observation_size, 4)

    def forward(self, seen: Tensor) -> Tensor:
        return torch.tanh(self.layer(seen)) * (1.0 if seen.shape[0] > 1 else -1.0)


def test_a_module_that_asks_for_the_size_of_its_batch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="other actions for an observation alone"):
        robo_rl.export(ByTheBatch(), "quadrotor-hover", tmp_path / "policy.onnx")
    assert not list(tmp_path.iterdir())


def test_weights_that_are_no_numbers_are_named(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Linear(TASK.observation_size, 8), nn.ReLU(), nn.Linear(8, 4))
    module[2].weight.data[1, 2] = float("nan")
    with pytest.raises(ExportError, match=r"the module's 2\.weight has NaN in it"):
        robo_rl.export(module, "quadrotor-hover", tmp_path / "policy.onnx")


def test_a_module_that_is_not_the_same_every_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (the reader of bundles, or the comparison: which depends on torch)
        robo_rl.export(Noisy(), "quadrotor-hover", tmp_path / "x.onnx")


def test_what_is_no_environment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="task is a int; expected a task, its name, or one of its environments"):
        robo_rl.export(Skip(), 3, tmp_path / "x.onnx")
