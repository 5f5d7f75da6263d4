"""The C of a policy that goes on learning on the microcontroller (``robo_rl.learn.stream``).

The policy's network is cut out of the program, and a call stands in its place: ``templates/learn.c``, whose weights are
in RAM. What is observed, what is commanded and what is remembered stays the exported graph's; the reward is a second
graph of the same signals and memory.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto

from robo_rl.contract import Contract
from robo_rl.deploy.build.c.chunks import dependent
from robo_rl.deploy.build.c.emit import array, literal
from robo_rl.deploy.build.c.graph import UnsupportedError
from robo_rl.deploy.build.c.lower import lower
from robo_rl.deploy.build.c.program import Gather, Learned, Linear, Map, Program
from robo_rl.files.escaping import c_string
from robo_rl.learn.stream import LARGEST, NOISES, RATE, RETURNS, STEADY, Net, Start, StreamConfig

REWARD = "reward"
"""The output of the graph that is what the last commands earned."""


@dataclass(frozen=True, eq=False)
class Learning:
    """How a policy goes on learning."""

    model: ModelProto
    """The bundle's graph, with one more output, ``REWARD`` (n,)."""
    start: Start
    config: StreamConfig

    def lowered(self, contract: Contract, function: str) -> Program:
        """The policy as a program that calls ``function`` for its actions."""
        program = lower(self.model, contract, (REWARD,))
        reward = int(program.results.pop(REWARD)[0])
        net = Net(self.start.sizes, self.start.actor)
        layers = [_layer(program, weights, bias) for weights, bias in net.layers(net.parameters)]
        first, last = (program.ops[place] for place in (layers[0], layers[-1]))
        assert isinstance(first, Linear)
        assert isinstance(last, Linear)
        gone = {*layers, *_between(program, layers)}
        after = dependent(program, {layers[-1]})
        kept = [(place, op) for place, op in enumerate(program.ops) if place not in gone]
        observation = first.input
        before = [op for place, op in kept if place not in after]
        if first.order is not None:  # back in the order of the observation
            copy = program.buffer("arena", self.start.sizes[0])
            before.append(Gather(tuple((observation + np.argsort(first.order)).tolist()), copy.base))
            observation = copy.base
        call = Learned(function, observation, reward, last.output)
        program.ops = [*before, call, *(op for place, op in kept if place in after)]
        return program

    def texts(self, digest: str) -> dict[str, str]:
        """For ``templates/learn.h`` and ``templates/learn.c``, of a bundle with that digest."""
        config, sizes = self.config, self.start.sizes
        number: dict[str, Any] = {
            "inputs": sizes[0], "actions": sizes[-1], "layers": len(sizes) - 1, "values": sum(sizes),
            "widest": max(sizes), "actor": len(self.start.actor), "critic": len(self.start.critic),
            "block": config.block, "warm_up": config.warm_up, "seed": config.seed, "steady": STEADY,
            "most_returns": RETURNS, "noises": NOISES,
        }  # fmt: skip
        numbers = {
            "gamma": config.gamma, "decay": config.gamma * config.lam, "kappa_actor": config.kappa_actor,
            "kappa_critic": config.kappa_critic, "deviation": config.deviation, "bound": config.bound,
            "spike": config.spike, "per_block": 1.0 / config.block, "worse": config.worse,
            "reward_scale": self.start.reward_scale, "rate": RATE, "largest": LARGEST,
            "third": 1 / 3, "fifth": 1 / 5, "seventh": 1 / 7, "ninth": 1 / 9, "log_two": np.log(2.0), "turn": 2 * np.pi,
            "c4": 1 / 24, "c6": 1 / 720, "c8": 1 / 40320, "s3": 1 / 6, "s5": 1 / 120, "s7": 1 / 5040, "s9": 1 / 362880,
        }  # fmt: skip
        weights = {"golden_actor": self.start.actor, "first_critic": self.start.critic}
        return {
            **{name: str(value) for name, value in number.items()},
            **{name: literal(np.float32(value)) for name, value in numbers.items()},
            "constants": "\n\n".join(
                array("float", name, [literal(x) for x in values.astype(np.float32)])
                for name, values in weights.items()
            ),
            "actor_sizes": ", ".join(f"{size}u" for size in sizes),
            "critic_sizes": ", ".join(f"{size}u" for size in self.start.critic_sizes),
            "digest": c_string(digest),
        }


def _layer(program: Program, weights: np.ndarray, bias: np.ndarray) -> int:
    """Which operation a layer is."""
    for place, op in enumerate(program.ops):
        if isinstance(op, Linear) and op.count == 1 and op.bias is not None and op.weights.shape == weights.shape:
            own = weights if op.order is None else weights[:, op.order]
            if np.array_equal(op.weights, own) and np.array_equal(op.bias.ravel(), bias):
                return place
    raise UnsupportedError(
        f"a layer of {weights.shape} is not in the graph as it is; can't learn it on a microcontroller"
    )


def _between(program: Program, layers: list[int]) -> list[int]:
    """The activations between the layers."""
    found = []
    for one, other in itertools.pairwise(layers):
        first, second = program.ops[one], program.ops[other]
        assert isinstance(second, Linear)
        for place, op in enumerate(program.ops):
            whole = isinstance(op, Map) and op.name == "Tanh" and op.inputs[0][0] == first.output
            if whole and op.output == second.input:
                found.append(place)
    if len(found) != len(layers) - 1:
        raise UnsupportedError(
            "the network is not layers of more than 8 units with tanh between them; can't learn it here"
        )
    return found
