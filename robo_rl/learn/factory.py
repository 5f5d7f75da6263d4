"""The policy graph that a contract's ``network`` describes."""

from __future__ import annotations

import dataclasses

from robo_rl.contract import Network
from robo_rl.contract.provenance import CHUNK_BLOCKS
from robo_rl.learn.residual import ResidualGraph
from robo_rl.policy import RECURRENT, PolicyGraph
from robo_rl.policy.chunk import chunked
from robo_rl.policy.flow import CHUNK, LEFT, NOISE, FlowGraph
from robo_rl.sim.tasks import Task

MEMORY = (RECURRENT, CHUNK, LEFT, NOISE, *CHUNK_BLOCKS)
"""Blocks of memory that are the network's, not the task's."""


def graph_of(task: Task, network: Network) -> PolicyGraph:
    """An untrained policy graph of a task."""
    hidden, activation, normalize = network.hidden, network.activation, network.normalize
    if network.base is not None:
        return ResidualGraph(task, hidden, activation, normalize, network.base)
    if network.flow is not None:
        return FlowGraph(task, hidden, activation, network.flow)
    if network.chunk is not None:
        policy = PolicyGraph(chunked(task, network.chunk), hidden, activation, normalize, encoders=network.encoders)
        policy.shape = dataclasses.replace(policy.shape, chunk=network.chunk)
        return policy
    return PolicyGraph(task, hidden, activation, normalize, network.recurrent, network.encoders)
