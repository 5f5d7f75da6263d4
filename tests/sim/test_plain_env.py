"""The environment in plain torch: the same episodes as the compiled one, whatever the plant and the signals."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from robo_rl.sim.accelerate.compiled_env import CompiledEnv
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.loading import load_task

STEPS = 45


def pair(name: str, n: int) -> tuple[VecEnv, VecEnv]:
    task = load_task(name)
    compiled, plain = (VecEnv(task, n, seed=3, episode_length=0.4, compiled=way) for way in (True, False))
    assert isinstance(compiled, CompiledEnv)
    assert not isinstance(plain, CompiledEnv)
    return compiled, plain


def random_commands(task: Task, n: int, seed: int) -> dict[str, Tensor]:
    numbers = torch.Generator().manual_seed(seed)
    limits = {command.name: torch.tensor([command.lower, command.upper]) for command in task.spec.commands}
    return {
        name: low + (high - low) * torch.rand(n, len(low), generator=numbers) for name, (low, high) in limits.items()
    }


@pytest.mark.parametrize(
    ("name", "n"), [("quadrotor-track", 40), ("go2-flat", 8), ("diff-nav", 6), ("car-lanes", 6), ("arm-place", 4)]
)
def test_plain_and_compiled_episodes_are_the_same(name: str, n: int) -> None:
    compiled, plain = pair(name, n)
    torch.testing.assert_close(plain.privileged(), compiled.privileged(), atol=1e-4, rtol=1e-4)
    ended = 0
    for k in range(STEPS):
        commands = random_commands(plain.task, n, k)
        ours, theirs = plain.step(commands), compiled.step(commands)
        ended += len(ours.ids)
        for field, value in ours._asdict().items():
            torch.testing.assert_close(value, getattr(theirs, field), atol=1e-3, rtol=1e-3)
    assert ended >= n
    ids = torch.arange(n)
    expected = compiled.state(ids)
    for part, value in plain.state(ids).tensors.items():
        torch.testing.assert_close(value, expected[part], atol=1e-3, rtol=1e-3)


def test_a_plain_environment_goes_on_from_its_state_and_its_checkpoint() -> None:
    _, env = pair("quadrotor-track", 12)
    ids, commands = torch.arange(12), [random_commands(env.task, 12, k) for k in range(60)]
    for given in commands[:30]:
        env.step(given)
    state, saved = env.state(ids), {name: value.clone() for name, value in env.save().items()}
    first = [env.step(given) for given in commands[30:]]
    copies = [value.clone() for value in first[0].signals.values()]
    for restore in (lambda: env.set_state(ids, state), lambda: env.load(saved)):
        restore()
        again = [env.step(given) for given in commands[30:]]
        for one, other in zip(first, again, strict=True):
            assert torch.equal(one.reward, other.reward)
            assert torch.equal(one.signals["position"], other.signals["position"])
    assert all(torch.equal(a, b) for a, b in zip(first[0].signals.values(), copies, strict=True))
    assert env.stream[:, 3].max() > 1
