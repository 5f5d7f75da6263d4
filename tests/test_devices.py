"""What claims a device other than the CPU mixes no devices: each task, plant and algorithm, without a GPU at hand.

Warp's engine can't run here on such tensors: MuJoCo stands in for it, with the same interface. ``make gpu`` runs the
same trainings where there is a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from robo_rl.commands.training.train import require_device, require_plant
from robo_rl.learn import apg, bc, distilled, ppo, sac
from robo_rl.learn.config import ApgConfig, BcConfig, DistillConfig, PpoConfig, SacConfig
from robo_rl.policy import PolicyGraph
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.loading import load_task, task_class, task_names
from tests.elsewhere import DEVICE, Elsewhere, There
from tests.suite import representatives

SMALL = {"environments": 6, "horizon": 3, "updates": 2}


CLAIMING = [name for name in task_names() if "cuda" in task_class(name).devices]
OTHERS = [name for name in task_names() if name not in CLAIMING]
DIFFERENTIABLE = [name for name in CLAIMING if "apg" in task_class(name).algorithms]


def there(value: Any) -> Any:
    if isinstance(value, tuple):
        return type(value)._make(map(there, value)) if hasattr(value, "_make") else tuple(map(there, value))
    return There(value) if isinstance(value, Tensor) and not isinstance(value, There) else value


def here(value: Any) -> Any:
    if isinstance(value, tuple):
        return type(value)._make(map(here, value)) if hasattr(value, "_make") else tuple(map(here, value))
    if isinstance(value, Mapping):
        return {name: here(part) for name, part in value.items()}
    if isinstance(value, Tensor):
        assert isinstance(value, There), f"{tuple(value.shape)} is on the cpu; expected it where the plant is"
        return value.inner
    return value


class StandIn:
    """Robots that MuJoCo simulates, whose quantities are elsewhere."""

    def __init__(
        self, mechanism: Any, n: int, period: float, physics: Any = None, device: Any = None, **own: Any
    ) -> None:
        assert torch.device(device) == DEVICE
        self._own = MujocoPlant(mechanism, n, period, physics, **own)
        self.nominal = there(self._own.nominal)
        self.device = DEVICE

    @property
    def parameters(self) -> Any:
        return there(self._own.parameters)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._own, name)
        if not callable(value):
            return there(value)
        return lambda *args, **named: self._answer(value(*map(here, args), **here(named)))

    def _answer(self, value: Any) -> Any:
        return {name: there(part) for name, part in value.items()} if isinstance(value, dict) else there(value)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("robo_rl.sim.plants.warp.WarpPlant", StandIn)
    monkeypatch.setattr(ppo.Learner, "collect", torch.no_grad()(ppo.Learner.collect.__wrapped__))
    with Elsewhere() as mode:
        yield mode


def on_device(name: str, config: Any) -> tuple[Task, PolicyGraph]:
    """As a training makes them (``robo_rl.commands.training.train``)."""
    with torch.device(DEVICE):
        task = load_task(name)
        policy = PolicyGraph(task, config.hidden, config.activation, getattr(config, "normalize", False))
    if task.plants:
        task.plant = "warp"
    return task, policy


@pytest.mark.parametrize("name", representatives(CLAIMING, CLAIMING[::3]))
def test_ppo_learns_where_the_robots_are(name: str, elsewhere: Any) -> None:
    torch.manual_seed(0)
    config = PpoConfig(**SMALL, mini_batches=2, hidden=(8,), critic_hidden=(8,))
    task, policy = on_device(name, config)
    learner = ppo.Learner(task, policy, config, 0, str(DEVICE))
    learner.env.env.episode.step[0] = learner.env.env.episode_steps - 2  # an episode ends
    for _ in range(2):
        metrics = learner.update()
    tensors, numbers = learner.save()
    learner.load(tensors, numbers)
    assert metrics["reward"] == metrics["reward"]
    assert all(value.device == DEVICE for value in policy.state_dict().values())


@pytest.mark.parametrize("name", representatives(DIFFERENTIABLE, DIFFERENTIABLE[:1]))
def test_gradients_flow_where_the_robots_are(name: str, elsewhere: Any) -> None:
    torch.manual_seed(0)
    config = ApgConfig(**SMALL, hidden=(8,))
    learner = apg.Learner(*on_device(name, config), config, 0, str(DEVICE))
    for _ in range(2):
        metrics = learner.update()
    assert metrics["gradient_norm"] > 0.0
    tensors, numbers = learner.save()
    learner.load(tensors, numbers)


@pytest.mark.parametrize("name", OTHERS)
def test_a_task_without_a_plant_for_a_device_refuses_it_in_a_sentence(name: str) -> None:
    with pytest.raises(ValueError, match=f"device is 'cuda', but '{name}' is simulated on cpu alone"):
        require_plant(None, name, "cuda")
    with pytest.raises(ValueError, match="device"):
        load_task(name).make_plant(1, "cuda")


@pytest.mark.parametrize("algorithm", ["sac", "bc", "distilled"])
def test_an_algorithm_that_is_for_the_cpu_alone_refuses_a_device_in_a_sentence(algorithm: str) -> None:
    module, config = {
        "sac": (sac, SacConfig()), "bc": (bc, BcConfig(demonstrations="0" * 64)),
        "distilled": (distilled, DistillConfig(hidden=(8,), activation="tanh", updates=1)),
    }[algorithm]  # fmt: skip
    task = load_task("quadrotor-hover")
    with pytest.raises(ValueError, match=f"device is 'cuda', but {algorithm} learns on the cpu alone"):
        require_device("cuda", algorithm)
    with pytest.raises(ValueError, match="cpu"):
        module.Learner(task, PolicyGraph(task, (8,)), config, 0, "cuda")
