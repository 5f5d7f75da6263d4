"""A policy that an operator can take over from at any time, and give back: one graph, one memory, one contract.

The operator is a signal, ``intervention``: whether they have the robot, and the action that they want, −1 to 1 each. So
a takeover passes the same limits, the same gate and the same recorder as whatever the policy does, and the memory holds
what was done, whoever did it. Two blocks of the memory tell of the step before: the policy's ``own_action``, and the
``action`` that was taken.

As in HIL-SERL (Luo et al. 2024, Precise and Dexterous Robotic Manipulation via Human-in-the-Loop Reinforcement
Learning), an intervention replaces the policy's action.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import ModelProto, numpy_helper
from torch import Tensor

from robo_rl.contract import Contract, Provenance, Signal, StateBlock
from robo_rl.deploy.build.export import record_golden, write_bundle
from robo_rl.deploy.robot.actor import INTERVENTION
from robo_rl.deploy.robot.bundle import CONTRACT_KEY, DIGEST_KEY, GOLDEN_KEY, NO_DIGEST, Bundle, Golden, seal
from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, rollout_signals
from robo_rl.files import write
from robo_rl.policy import PolicyGraph

ENGAGED = "engaged"
"""Its first element: above 0.5 while the operator has the robot."""
OWN, DONE = "own_action", "action"
SILENT = 0.5
"""s without a word of the operator after which the gate stops the robot: nobody watches it."""


class InterventionPolicy(PolicyGraph):
    """A policy graph with the operator's signal; its network is that of the policy that it was made from."""

    def __init__(self, policy: PolicyGraph) -> None:
        """ValueError for a policy with a recurrent network, or with encoders of images and scans."""
        shape = policy.shape
        if shape.recurrent or shape.encoders:
            raise ValueError(
                f"task '{policy.task.name}': its policy has a recurrent network or encoders; expected a network of "
                "hidden layers on a vector, to learn from interventions"
            )
        super().__init__(policy.task, shape.hidden, shape.activation, shape.normalize)
        self.network, self.normalizer = policy.network, policy.normalizer
        zeros = (0.0,) * policy.task.action_size
        self.memory = (*self.memory, *(StateBlock(name, (len(zeros),), zeros) for name in (OWN, DONE)))

    def contract(self, provenance: Provenance) -> Contract:
        """The task's contract with the operator's signal."""
        found = super().contract(provenance)
        return dataclasses.replace(found, signals=(*found.signals, self.signal))

    @property
    def signal(self) -> Signal:
        """The operator's."""
        count = self.task.action_size
        names = self.task.action_names or tuple(f"action_{i}" for i in range(count))
        low, high = (0.0, *(-1.0,) * count), (1.0,) * (1 + count)
        return Signal(
            INTERVENTION, (ENGAGED, *names), "1", "action", low, high, source="operator", timeout=SILENT
        )  # fmt: skip

    def initial_state(self, n: int) -> Tensor:
        blocks = {name: torch.zeros(n, self.task.action_size) for name in (OWN, DONE)}
        return self.pack({**self.task.first_memory(n), **blocks})

    def forward(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """As of every policy graph."""
        memory, given = self.unpack(state), signals[INTERVENTION]
        observation = self.task.observe(signals, memory)
        own = self.network(self.features(observation))
        action = torch.where(given[:, :1] > 0.5, given[:, 1:], self.acted(own, observation, signals))
        commands, remembered = self.task.act(action, signals, memory, self._limit)
        return commands, self.pack({**remembered, OWN: own, DONE: action})

    def acted(self, own: Tensor, observation: Tensor, signals: Mapping[str, Tensor]) -> Tensor:
        """The action (n, a) that is taken while nobody else has the robot."""
        return own

    def beside(self, steps: int, episodes: int) -> dict[str, np.ndarray]:
        """(steps, episodes, k) by name: signals that no simulation has, for golden vectors."""
        return {INTERVENTION: takeovers(self, steps, episodes)}


def export(policy: InterventionPolicy, provenance: Provenance, out: Path) -> Bundle:
    """Write the bundle of a policy, after simulated episodes; its golden vectors hold takeovers."""
    plain = PolicyGraph(policy.task, policy.shape.hidden, policy.shape.activation, policy.shape.normalize)
    plain.network, plain.normalizer = policy.network, policy.normalizer
    seen = rollout_signals(policy.task, GraphPolicy(plain), Conditions(episodes=64, seed=7))
    steps, episodes = next(iter(seen.values())).shape[:2]
    return write_bundle(policy, provenance, {**seen, **policy.beside(steps, episodes)}, out)


def takeovers(policy: InterventionPolicy, steps: int, episodes: int) -> np.ndarray:
    """(steps, episodes, 1 + k) float32: an operator who has the robot for 8 of 16 steps, with all sorts of actions."""
    k = np.arange(steps)[:, None, None]
    engaged = np.broadcast_to(k // 8 % 2, (steps, episodes, 1))
    action = np.sin(k * (1.0 + np.arange(policy.task.action_size)) + np.arange(episodes)[None, :, None])
    return np.concatenate([engaged, action], -1).astype(np.float32)


def export_again(policy: InterventionPolicy, before: Bundle, out: Path) -> Bundle:
    """Write the bundle of a policy with other weights than in the bundle ``before``, and the same contract: quickly."""
    model: ModelProto = onnx.load_from_string(before.data())
    weights = {name: value.numpy(force=True) for name, value in policy.state_dict().items()}
    for tensor in model.graph.initializer:
        if tensor.name in weights:
            tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(weights.pop(tensor.name)), tensor.name))
    if weights:
        raise ValueError(f"{before.path}: it has no weights {sorted(weights)}; expected a bundle of the same network")
    seen = {name: value[:, None] for name, value in before.golden.signals.items()}
    golden: Golden = record_golden(policy, before.contract, seen)
    entries = {CONTRACT_KEY: before.contract.to_json(), GOLDEN_KEY: golden.to_json(), DIGEST_KEY: NO_DIGEST}
    for entry in model.metadata_props:
        entry.value = entries.get(entry.key, entry.value)
    write(out, seal(model.SerializeToString(deterministic=True)))
    return Bundle.read(out)
