"""The policy graph that a contract's ``network`` describes."""

from __future__ import annotations

from robo_rl.contract import Network
from robo_rl.policy import PolicyGraph
from robo_rl.residual import ResidualGraph
from sim.tasks import Task


def graph_of(task: Task, network: Network) -> PolicyGraph:
    """An untrained policy graph of a task."""
    hidden, activation, normalize = network.hidden, network.activation, network.normalize
    if network.base is not None:
        return ResidualGraph(task, hidden, activation, normalize, network.base)
    return PolicyGraph(task, hidden, activation, normalize, network.recurrent, network.encoders)
