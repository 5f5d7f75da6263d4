"""What wrappers do to observations and actions is in the exported graph, or the export is refused and names them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.wrappers import vector as many
from torch import nn

import robo_rl
import robo_rl.adapters.gym
from robo_rl.adapters.gym import ACTION_SCALE
from robo_rl.adapters.wrappers import unwrap
from robo_rl.deploy.build.export import ExportError
from robo_rl.deploy.build.verify import BundlePolicy
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.loading import load_task

TASK = load_task("quadrotor-hover")
SIZE, COUNT = TASK.observation_size, TASK.action_size


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(SIZE, 16), nn.Tanh(), nn.Linear(16, COUNT))


def make() -> Any:
    return gymnasium.make("quadrotor-hover")


def used(env: Any, steps: int = 30) -> Any:
    """After some steps, so that statistics are not those of the beginning."""
    env.reset(seed=0)
    for _ in range(steps):
        env.step(0.3 * env.action_space.sample())
    return env


def agrees(bundle: Any, by_hand: Callable[[np.ndarray], np.ndarray], scale: float = ACTION_SCALE) -> None:
    """The file gives the commands of actions ``by_hand`` (one observation in, one action out)."""
    signals = VecEnv(TASK, 16, seed=3).reset()
    memory = TASK.first_memory(16)
    seen = TASK.observe(signals, memory).numpy()
    actions = torch.from_numpy(np.stack([by_hand(row) for row in seen]).astype(np.float32))
    (expected,) = TASK.command(scale * actions, memory).values()
    limits = TASK.spec.commands[0]
    expected = torch.clamp(expected, torch.tensor(limits.lower), torch.tensor(limits.upper))
    policy = BundlePolicy(bundle)
    (found,) = policy(signals, policy.initial_state(16))[0].values()
    assert torch.allclose(found, expected, rtol=1e-4, atol=2e-2)  # rad/s, of 2,000


def act(module: nn.Module, seen: Any) -> np.ndarray:
    with torch.no_grad():
        return module(torch.from_numpy(np.asarray(seen, np.float32))[None])[0].numpy()


def test_normalized_observations_are_normalized_in_the_file(tmp_path: Path) -> None:
    env, actor = used(gymnasium.wrappers.NormalizeObservation(make())), network()
    with pytest.raises(ExportError, match="wrapped by NormalizeObservation"):
        robo_rl.export(actor, env, tmp_path / "policy.onnx")
    bundle = robo_rl.export(actor, env, tmp_path / "policy.onnx", wrappers="include")
    env.update_running_mean = False
    agrees(bundle, lambda seen: act(actor, env.observation(seen)))


def test_the_wrappers_of_cleanrl_are_in_the_file(tmp_path: Path) -> None:
    """ppo_continuous_action.py of CleanRL, in its order, around one of several environments."""

    def wrapped() -> Any:
        env = gymnasium.wrappers.FlattenObservation(make())
        env = gymnasium.wrappers.RecordEpisodeStatistics(env)
        env = gymnasium.wrappers.ClipAction(env)
        env = gymnasium.wrappers.NormalizeObservation(env)
        env = gymnasium.wrappers.TransformObservation(env, lambda seen: np.clip(seen, -0.5, 0.5), env.observation_space)
        env = gymnasium.wrappers.NormalizeReward(env)
        return gymnasium.wrappers.TransformReward(env, lambda reward: np.clip(reward, -10, 10))

    actor = network()
    with torch.no_grad():
        actor[2].weight.mul_(20.0)
    envs = used(gymnasium.vector.SyncVectorEnv([wrapped]))
    bundle = robo_rl.export(actor, envs, tmp_path / "policy.onnx", wrappers="include")
    single = envs.envs[0].env.env.env  # NormalizeObservation
    single.update_running_mean = False
    agrees(bundle, lambda seen: np.clip(act(actor, np.clip(single.observation(seen), -0.5, 0.5)), -1, 1))
    two = used(gymnasium.vector.SyncVectorEnv([wrapped, wrapped]))
    with pytest.raises(ExportError, match="statistics of its own"):
        robo_rl.export(actor, two, tmp_path / "two.onnx", wrappers="include")


LOW, HIGH = np.float32(-3.0), np.float32(2.0)
CASES: dict[str, tuple[Callable[[], Any], Callable[[np.ndarray, nn.Module], np.ndarray]]] = {
    "RescaleAction": (
        lambda: gymnasium.wrappers.RescaleAction(make(), LOW, HIGH),
        lambda seen, actor: -1 + 2 * (act(actor, seen) - LOW) / (HIGH - LOW),
    ),
    "ClipAction": (lambda: gymnasium.wrappers.ClipAction(make()), lambda seen, actor: np.clip(act(actor, seen), -1, 1)),
    "TransformAction": (
        lambda: gymnasium.wrappers.TransformAction(make(), lambda a: 0.5 * np.tanh(a) - 0.1, make().action_space),
        lambda seen, actor: 0.5 * np.tanh(act(actor, seen)) - 0.1,
    ),
    "TransformObservation": (
        lambda: gymnasium.wrappers.TransformObservation(make(), lambda o: o / 4.0 - 0.2, make().observation_space),
        lambda seen, actor: act(actor, seen / 4.0 - 0.2),
    ),
    "vector ClipAction": (
        lambda: many.ClipAction(gymnasium.make_vec("quadrotor-hover", num_envs=3)),
        lambda seen, actor: np.clip(act(actor, seen), -1, 1),
    ),
    "vector RescaleAction": (
        lambda: many.RescaleAction(gymnasium.make_vec("quadrotor-hover", num_envs=3), LOW, HIGH),
        lambda seen, actor: -1 + 2 * (act(actor, seen) - LOW) / (HIGH - LOW),
    ),
    "vector TransformObservation": (
        lambda: many.TransformObservation(
            gymnasium.make_vec("quadrotor-hover", num_envs=3, vectorization_mode="sync"),
            lambda o: np.clip(o, -0.1, 0.1),
        ),
        lambda seen, actor: act(actor, np.clip(seen, -0.1, 0.1)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_wrapper_does_is_around_the_policy(name: str) -> None:
    made, by_hand = CASES[name]
    actor = network(1)
    with torch.no_grad():
        actor[2].weight.mul_(5.0)
    around = unwrap(made()).around(actor)
    for seen in np.random.default_rng(0).normal(size=(20, SIZE)).astype(np.float32):
        assert np.allclose(act(around, seen), by_hand(seen, actor), atol=1e-5)


def test_statistics_of_many_environments_together_are_around_the_policy() -> None:
    envs = used(many.NormalizeObservation(gymnasium.make_vec("quadrotor-hover", num_envs=3, vectorization_mode="sync")))
    actor = network()
    around = unwrap(envs).around(actor)
    envs.update_running_mean = False
    for seen in np.random.default_rng(0).normal(size=(20, SIZE)).astype(np.float32):
        assert np.allclose(act(around, seen), act(actor, envs.observations(seen[None])[0]), atol=1e-5)


class Shifted(gymnasium.ObservationWrapper):
    """A user's own."""

    def observation(self, observation: Any) -> Any:
        return observation + 1.0


class Counting(gymnasium.Wrapper):
    """A user's own, that looks only."""

    def step(self, action: Any) -> Any:
        return self.env.step(action)


class Idle(gymnasium.Wrapper):
    """A user's own, that adds a method."""

    def told(self) -> str:
        return "something"


REFUSED: dict[str, Callable[[], Any]] = {
    "FrameStackObservation": lambda: gymnasium.wrappers.FrameStackObservation(make(), 2),
    "DelayObservation": lambda: gymnasium.wrappers.DelayObservation(make(), 2),
    "StickyAction": lambda: gymnasium.wrappers.StickyAction(make(), 0.2),
    "TimeAwareObservation": lambda: gymnasium.wrappers.TimeAwareObservation(
        gymnasium.make("quadrotor-hover", max_episode_steps=100)
    ),
    "TransformObservation": lambda: gymnasium.wrappers.TransformObservation(
        make(), lambda seen: seen / np.linalg.norm(seen), make().observation_space
    ),
    "TransformAction": lambda: gymnasium.wrappers.TransformAction(
        make(), lambda action: action[::-1].copy(), make().action_space
    ),
    "NormalizeObservation": lambda: gymnasium.wrappers.NormalizeObservation(make()),  # before the first observation
    "DiscretizeAction": lambda: gymnasium.wrappers.DiscretizeAction(make(), 3),
    "Shifted": lambda: Shifted(make()),
    "Counting": lambda: Counting(make()),
    "AsyncVectorEnv": lambda: gymnasium.make_vec("quadrotor-hover", num_envs=2, vectorization_mode="async"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrapper_that_can_t_be_in_the_file_is_refused_by_its_name(name: str, tmp_path: Path) -> None:
    env = REFUSED[name]()
    try:
        with pytest.raises(ExportError, match=f"'{name}'"):
            robo_rl.export(network(), env, tmp_path / "policy.onnx")
    finally:
        env.close()
    assert not list(tmp_path.iterdir())


def test_wrappers_that_change_nothing_are_no_hindrance() -> None:
    env = Idle(gymnasium.wrappers.RecordEpisodeStatistics(make()))
    assert not unwrap(env).names
    assert not unwrap(Counting(env), passive=("Counting",)).names


def test_a_module_that_does_what_the_wrapper_does_is_left_alone(tmp_path: Path) -> None:
    actor = nn.Sequential(network(), nn.Hardtanh())
    env = gymnasium.wrappers.ClipAction(make())
    bundle = robo_rl.export(actor, env, tmp_path / "policy.onnx", wrappers="inside")
    agrees(bundle, lambda seen: np.clip(act(actor[0], seen), -1, 1))


# --- stable-baselines3 --------------------------------------------------------------------------------------


@pytest.fixture
def trained(tmp_path: Path) -> Any:
    """A model, its environment, and both as files."""
    pytest.importorskip("stable_baselines3", reason="needs stable-baselines3: pip install 'robo-rl[dev]'")
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecNormalize

    from robo_rl.adapters.sb3_env import Sb3Env

    env = VecNormalize(Sb3Env("quadrotor-hover", 8), norm_reward=False, clip_obs=2.0)
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=32, n_epochs=1, seed=0, device="cpu").learn(256)
    model.save(tmp_path / "model.zip")
    env.save(tmp_path / "statistics.pkl")
    return model, env


def predicted(model: Any, env: Any) -> Callable[[np.ndarray], np.ndarray]:
    return lambda seen: model.predict(env.normalize_obs(seen[None]), deterministic=True)[0][0]


def test_a_model_loaded_without_its_environment_is_normalized_by_the_one_that_is_given(
    trained: Any, tmp_path: Path
) -> None:
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

    from robo_rl.adapters.sb3_env import Sb3Env, actor

    model, env = trained
    again = PPO.load(tmp_path / "model.zip", device="cpu")
    wrapped = VecMonitor(VecNormalize.load(str(tmp_path / "statistics.pkl"), Sb3Env("quadrotor-hover", 8)))
    agrees(robo_rl.export(actor(model), env, tmp_path / "good.onnx"), predicted(model, env), 1.0)
    around = actor(model)  # by a task's name, what the model brings
    for seen in np.random.default_rng(0).normal(size=(20, SIZE)).astype(np.float32):
        assert np.allclose(act(around, seen), predicted(model, env)(seen), atol=1e-5)
    agrees(robo_rl.export(actor(again), wrapped, tmp_path / "again.onnx"), predicted(model, env), 1.0)
    with pytest.raises(ExportError, match="loaded from a file"):
        robo_rl.export(actor(again), "quadrotor-hover", tmp_path / "none.onnx")
    bare = Sb3Env("quadrotor-hover", 8)
    with pytest.raises(ExportError, match="the environment has no VecNormalize"):
        robo_rl.export(actor(again), bare, tmp_path / "none.onnx")
    bundle = robo_rl.export(actor(again), bare, tmp_path / "inside.onnx", wrappers="inside")
    agrees(bundle, lambda seen: again.predict(seen[None], deterministic=True)[0][0], 1.0)
    wrapped.venv.obs_rms.mean += 0.5
    with pytest.raises(ExportError, match="different statistics"):
        robo_rl.export(actor(model), wrapped, tmp_path / "other.onnx")


def test_a_module_that_keeps_a_result_of_its_training_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """As a policy of stable-baselines3 does, right after ``learn``."""
    kept = network()
    kept.last = 2.0 * kept[0].weight  # type: ignore[assignment]
    with pytest.raises(ExportError, match=r"can't be copied .*actor\(model\)"):
        robo_rl.export(kept, "quadrotor-hover", tmp_path / "none.onnx")


def test_wrappers_of_the_training_that_the_given_environment_lacks_are_named(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3", reason="needs stable-baselines3: pip install 'robo-rl[dev]'")
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack

    from robo_rl.adapters.sb3_env import Sb3Env, actor

    env = DummyVecEnv([lambda: gymnasium.wrappers.RescaleAction(make(), LOW, HIGH)])
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=8, n_epochs=1, seed=0, device="cpu").learn(8)
    with pytest.raises(ExportError, match="wrapped by RescaleAction"):
        robo_rl.export(actor(model), "quadrotor-hover", tmp_path / "policy.onnx")
    bundle = robo_rl.export(actor(model), model.get_env(), tmp_path / "policy.onnx")

    def by_hand(seen: np.ndarray) -> np.ndarray:
        action = model.predict(seen[None], deterministic=True)[0][0]
        return -1 + 2 * (action - LOW) / (HIGH - LOW)

    agrees(bundle, by_hand)
    with pytest.raises(ExportError, match="'VecFrameStack'"):
        robo_rl.export(network(), VecFrameStack(Sb3Env("quadrotor-hover", 2), 2), tmp_path / "stack.onnx")
