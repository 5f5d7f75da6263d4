"""Action chunks: one inference gives several actions, which are executed one per control step.

The chunk lives in the policy's memory: the actions that are left, and how many they are. The graph takes the next one
of them, and the network's answer only when none is left. So whatever runs a policy (the simulator, onnxruntime, the
generated C, the safety gate) sees single actions and needs no special case. Between two inferences the network's answer
is not used: the generated C leaves that part of the graph out then.

After Zhao et al. 2023 (action chunks) and Patel and Sutskever 2024 (Overcoming Slow Decision Frequencies in Continuous
Control, sequence reinforcement learning): actions of a chunk differ, where a slow policy would hold the last one.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch

from robo_rl.contract import Chunk, StateBlock
from robo_rl.contract.provenance import CHUNK_BLOCKS
from robo_rl.sim.tasks import Task

PLANNED, LEFT = CHUNK_BLOCKS


def chunked(task: Task, chunk: Chunk) -> Task:
    """The task with actions (n, length · action_size): those of the next control steps, the first one first."""
    made: Any = copy.copy(task)
    shape = (chunk.length, task.action_size)
    size = chunk.length * task.action_size
    blocks = (StateBlock(PLANNED, shape, (0.0,) * size), StateBlock(LEFT, (1,), (0.0,)))
    made.spec = dataclasses.replace(task.spec, memory=(*task.spec.memory, *blocks))
    made.action_size, made.action_names = size, ()

    def act(
        action: Any,
        signals: Mapping[str, Any],
        memory: Mapping[str, Any],
        limit: Callable[[str, Any], Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        over = memory[LEFT] < 0.5
        planned = torch.where(over[:, :, None], action.reshape(-1, *shape), memory[PLANNED])
        commands, remembered = task.act(planned[:, 0], signals, memory, limit)
        left = torch.where(over, 0.0 * memory[LEFT] + float(chunk.length), memory[LEFT]) - 1.0
        return commands, {**remembered, PLANNED: torch.cat([planned[:, 1:], planned[:, -1:]], 1), LEFT: left}

    def command(action: Any, memory: Mapping[str, Any]) -> dict[str, Any]:
        return task.command(action[:, : task.action_size], memory)

    made.act, made.command = act, command
    return made
