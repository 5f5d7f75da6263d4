"""From a bundle to what it goes on learning with on a microcontroller: a reward in its graph, and a first critic.

The critic learns in simulation what the policy earns there, by regression on discounted sums, so that learning on the
robot begins with errors that mean something.
"""

from __future__ import annotations

import itertools
import struct
import zlib

import numpy as np
import torch
from onnx import ModelProto
from torch import Tensor, nn

from robo_rl.contract import Contract
from robo_rl.deploy.build.c.learning import REWARD, Learning
from robo_rl.deploy.build.export import graph_with
from robo_rl.deploy.build.verify import torch_policy
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.learn.stream import Floats, Net, Start, StreamConfig
from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks import Task

ROBOTS, STEPS, ROUNDS, BATCH = 64, 1500, 600, 2048
"""Of the simulation that the critic learns from, and of its regression."""


class LearningError(ValueError):
    """A policy can't go on learning. The message says why."""


def learning_of(bundle: Bundle, task: Task, config: StreamConfig) -> Learning:
    """How ``bundle``, a policy of ``task``, goes on learning."""
    policy, network = torch_policy(bundle, task), bundle.contract.network
    single = {
        name: torch.zeros(1, *s.dimensions) for name, s in zip(_names(bundle.contract), task.spec.signals, strict=True)
    }
    memory = policy.unpack(policy.initial_state(1))
    if task.measured_reward(single, memory) is None:
        raise LearningError(f"task '{task.name}' has no reward that is measured on a robot (Task.measured_reward)")
    plain = type(policy) is PolicyGraph and not (network.recurrent or network.encoders or network.chunk)
    if not plain or network.activation != "tanh" or not network.hidden:
        raise LearningError(f"{bundle.path}: network is {network}; expected hidden layers with tanh, and nothing else")
    sizes = (task.observation_size, *network.hidden, task.action_size)
    actor = torch.cat([parameter.detach().flatten() for parameter in policy.network.parameters()]).numpy()
    critic, scale = _critic(policy, sizes, config)
    model = _rewarded(policy, bundle.contract)
    return Learning(model, Start(sizes, actor.astype(np.float32), critic, scale), config)


def _names(contract: Contract) -> list[str]:
    return [signal.name for signal in contract.signals]


def _rewarded(policy: PolicyGraph, contract: Contract) -> ModelProto:
    """The bundle's graph with one more output, what the last commands earned."""

    def reward(signals: dict[str, Tensor], state: Tensor) -> Tensor:
        return policy.task.measured_reward(signals, policy.unpack(state))

    return graph_with(policy, contract, {REWARD: reward})


@torch.no_grad()
def _collected(policy: PolicyGraph, config: StreamConfig) -> tuple[Tensor, Tensor]:
    """Observations (s, k) in simulation, and the discounted sums (s,) of what was earned after them."""
    task, generator = policy.task, torch.Generator().manual_seed(config.seed)
    env = VecEnv(task, ROBOTS, config.seed)
    state, signals = policy.initial_state(ROBOTS), env.signals()
    seen, earned, ends = [], [], []
    for _ in range(STEPS):
        memory = policy.unpack(state)
        earned.append(task.measured_reward(signals, memory))
        features = policy.features(task.observe(signals, memory))
        seen.append(features.clone())
        action = policy.network(features)
        action = action + config.deviation * torch.randn(action.shape, generator=generator)
        commands, remembered = task.act(action, signals, memory, policy._limit)
        state = policy.pack(remembered) if policy.memory else state
        step = env.step(commands)
        signals = {name: value.clone() for name, value in step.signals.items()}
        state[step.ids] = policy.initial_state(len(step.ids))
        ends.append(step.failed | step.timeout | step.succeeded)
    value, sums = torch.zeros(ROBOTS), []
    for reward, end in zip(reversed([*earned[1:], earned[-1]]), reversed(ends), strict=True):
        value = torch.where(end, value.mean(), reward + config.gamma * value)
        sums.append(value)
    kept = slice(0, STEPS - round(min(STEPS / 2, 3 / (1 - config.gamma))))
    return torch.stack(seen)[kept].flatten(0, 1), torch.stack(sums[::-1])[kept].flatten()


def _critic(policy: PolicyGraph, sizes: tuple[int, ...], config: StreamConfig) -> tuple[Floats, float]:
    """Parameters of a critic, and the factor on rewards in whose units it tells values."""
    seen, sums = _collected(policy, config)
    scale = 1.0 / max(float(sums.std()), 1e-6)
    torch.manual_seed(config.seed)
    layers: list[nn.Module] = []
    for columns, rows in itertools.pairwise(sizes[:-1]):
        layers += [nn.Linear(columns, rows), nn.Tanh()]
    critic = nn.Sequential(*layers, nn.Linear(sizes[-2], 1))
    optimizer = torch.optim.Adam(critic.parameters(), 3e-3)
    for place in range(ROUNDS):
        optimizer.param_groups[0]["lr"] = 3e-3 * (1.0 - place / ROUNDS)
        ids = torch.randint(len(seen), (BATCH,))
        loss = (critic(seen[ids])[:, 0] - scale * sums[ids]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    flat = torch.cat([parameter.detach().flatten() for parameter in critic.parameters()]).numpy()
    assert len(flat) == Net.count((*sizes[:-1], 1))
    return flat.astype(np.float32), scale


MAGIC, HEAD = b"RRLS", struct.Struct("<4sI64sI8x")
"""Of a slot: sequence, SHA-256 of the bundle, number of weights. Then the weights, and a CRC-32 of all."""


def weights_of(slot: bytes, bundle: Bundle, where: str = "slot") -> tuple[int, Floats]:
    """Sequence and weights of what ``policy_learn_save`` gave; LearningError unless it is whole, and of this bundle."""
    if len(slot) < HEAD.size + 4:
        raise LearningError(f"{where}: {len(slot)} bytes; expected {HEAD.size} and the weights of a slot")
    magic, sequence, digest, count = HEAD.unpack(slot[: HEAD.size])
    end = HEAD.size + 4 * count
    if magic != MAGIC or len(slot) < end + 4 or sequence == 0:
        raise LearningError(f"{where}: no learnt weights; expected {MAGIC.decode()} and a sequence from 1 on")
    if zlib.crc32(slot[:end]) != struct.unpack("<I", slot[end : end + 4])[0]:
        raise LearningError(f"{where}: its CRC is wrong; expected a slot that was written to its end")
    if digest != bundle.digest.encode():
        told = digest[:12].decode(errors="replace")
        raise LearningError(f"{where}: weights of the bundle {told}…; expected those of {bundle.digest[:12]}…")
    return sequence, np.frombuffer(slot[HEAD.size : end], "<f4")


def learned_policy(bundle: Bundle, task: Task, slot: bytes | None) -> PolicyGraph:
    """The policy of a bundle with the weights in a slot; None: its own."""
    policy = torch_policy(bundle, task)
    if slot is not None:
        _, weights = weights_of(slot, bundle)
        parameters = list(policy.network.parameters())
        count = sum(parameter.numel() for parameter in parameters)
        if len(weights) != count or not np.isfinite(weights).all():
            raise LearningError(f"slot: {len(weights)} weights; expected {count} finite ones")
        nn.utils.vector_to_parameters(torch.from_numpy(weights.copy()), parameters)
    return policy.requires_grad_(False).eval()
