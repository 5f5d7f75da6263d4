"""What runs on an NVIDIA GPU, where there is one: make gpu."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from robo_rl.cli import main
from robo_rl.learn.config import PpoConfig
from robo_rl.learn.ppo import Learner
from robo_rl.learn.runs.folder import Run
from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.loading import load_task, task_class, task_names

DEVICE = "cuda"
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available(),
        reason="needs an NVIDIA GPU, and torch with CUDA: pip install torch, then make gpu",
    ),
]


def flown(device: str) -> dict[str, torch.Tensor]:
    """Signals of robots after half a second at hover thrust, drawn from all ranges but noise."""
    task = load_task("quadrotor-hover")
    env = VecEnv(task, 64, seed=3, device=device, fixed={"noise": 0.0}, evaluation=True)
    commands = task.command(torch.zeros(64, task.action_size, device=device), task.first_memory(64, device))
    for _ in range(50):
        env.step(commands)
    return {name: value.cpu() for name, value in env.signals().items()}


def test_robots_on_a_gpu_fly_as_on_the_cpu() -> None:
    here, there = flown("cpu"), flown(DEVICE)
    for name, value in here.items():
        torch.testing.assert_close(there[name], value, rtol=1e-3, atol=1e-3, msg=name)


def run(*words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert ended.value.code == 0


def trained(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    run("train", *words, "--device", DEVICE, "--runs", str(folder), "--json")
    return json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.mark.slow
def test_a_policy_trained_through_gradients_on_a_gpu_flies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert trained(tmp_path, capsys, "quadrotor-hover", "--episodes", "500")["success"] >= 0.95


@pytest.mark.slow
def test_ppo_on_a_gpu_learns_and_goes_on_from_its_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shape = ("--algorithm", "ppo", "--ppo.updates", "5", "--ppo.environments", "256", "--episodes", "100")
    result = trained(tmp_path, capsys, "quadrotor-hover", *shape)
    rewards = [line["reward"] for line in Run.open(result["run"]).metrics()]
    assert rewards[-1] > rewards[0]
    run("resume", result["run"], "--device", DEVICE, "--episodes", "10")


@pytest.mark.slow
def test_walking_robots_in_mujoco_warp_stand_and_are_learnt_from() -> None:
    torch.manual_seed(0)
    task = load_task("go2-flat")
    task.plant = "warp"
    settings = task.settings["ppo"] | {"environments": 64}
    config = PpoConfig(**settings)
    with torch.device(DEVICE):
        policy = PolicyGraph(task, config.hidden, config.activation, config.normalize)
    learner = Learner(task, policy, config, seed=0, device=DEVICE)
    for _ in range(3):
        metrics = learner.update()
    assert learner.env.env.diverged == 0
    assert all(torch.isfinite(value).all() for value in policy.state_dict().values())
    assert metrics["reward"] > 0


CLAIMING = [name for name in task_names() if "cuda" in task_class(name).devices]


@pytest.mark.parametrize("name", CLAIMING)
@pytest.mark.parametrize("algorithm", ["apg", "ppo"])
def test_what_claims_a_gpu_learns_there_and_goes_on(
    name: str, algorithm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if algorithm not in load_task(name).algorithms:
        pytest.skip(f"{name} is not learnt by {algorithm}")
    size = (f"--{algorithm}.updates", "2", f"--{algorithm}.environments", "64", "--episodes", "0")
    result = trained(tmp_path, capsys, name, "--algorithm", algorithm, *size)
    assert result["diverged"] == result["skipped"] == 0
    run("resume", result["run"], "--device", DEVICE, "--episodes", "0")
