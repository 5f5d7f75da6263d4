"""The clip inside a BeyondMimic policy: reference joints and anchor by time step, read out of its own ONNX file."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from robo_rl.adapters.foreign.description import AdoptionError
from robo_rl.controllers.rotation import multiply

OUTPUTS = ("joint_pos", "joint_vel", "body_quat_w")
LONGEST = 20_000
"""Steps of a clip: 400 s at 50 Hz."""
STEP, START = "motion_step", "motion_start"
"""Blocks of memory: the step of the clip, and cosine, sine and 1 of the heading at which it was begun."""


@dataclass(frozen=True)
class Motion:
    """Joints in the policy's order, (steps, joints) rad and rad/s; the anchor's quaternions (steps, 4), x, y, z, w."""

    joint_position: Tensor
    joint_velocity: Tensor
    anchor: Tensor

    def __len__(self) -> int:
        return len(self.anchor)

    def _now(self, table: Tensor, memory: Mapping[str, Any]) -> Tensor:
        """(n, k) the table's row at each robot's step."""
        step = torch.clamp(memory[STEP][:, 0], 0.0, float(len(self) - 1))  # whatever a memory holds
        return table.index_select(0, step.long())

    def command(self, memory: Mapping[str, Any]) -> Tensor:
        """(n, 2 joints): reference positions, then velocities."""
        return torch.cat([self._now(self.joint_position, memory), self._now(self.joint_velocity, memory)], -1)

    def orientation(self, orientation: Any, memory: Mapping[str, Any]) -> Tensor:
        """(n, 6) the reference anchor in the frame of the robot's: two columns of the rotation matrix, row by row.

        The clip is turned by the heading that the robot had at its first step.
        """
        half = self.start(orientation, memory)
        turn = (torch.zeros_like(half[:, 0]), torch.zeros_like(half[:, 0]), half[:, 1], half[:, 0])
        reference = multiply(turn, self._now(self.anchor, memory).unbind(-1))
        x, y, z, w = orientation.unbind(-1)
        return rotation_columns(torch.stack(multiply((-x, -y, -z, w), reference), -1))

    def start(self, orientation: Any, memory: Mapping[str, Any]) -> Tensor:
        """(n, 2) cosine and sine of half the angle by which the clip is turned about z."""
        cosine, sine = yaw(orientation)
        first_cosine, first_sine = yaw(self.anchor[:1])
        c, s = cosine * first_cosine + sine * first_sine, sine * first_cosine - cosine * first_sine
        ahead, behind = torch.stack([1 + c, s], -1), torch.stack([s, 1 - c], -1)  # each along (cos, sin) of half of it
        now = torch.where((c > 0)[:, None], ahead, behind)
        now = now / torch.linalg.vector_norm(now, dim=-1, keepdim=True)
        begun = memory[START][:, 2:]
        return begun * memory[START][:, :2] + (1 - begun) * now

    def remembered(self, orientation: Any, memory: Mapping[str, Any]) -> dict[str, Any]:
        """The memory after this step: the clip ends in its last pose."""
        start = self.start(orientation, memory)
        return {
            STEP: torch.clamp(memory[STEP] + 1.0, max=float(len(self) - 1)),
            START: torch.cat([start, torch.ones_like(start[:, :1])], -1),
        }

    def to_bytes(self) -> bytes:
        """A .npz file."""
        packed = io.BytesIO()
        np.savez_compressed(packed, **{name: value.numpy() for name, value in vars(self).items()})
        return packed.getvalue()


def yaw(orientation: Any) -> tuple[Any, Any]:
    """Cosine and sine of the yaw of Euler angles (z, y, x), by which trackers of clips align headings."""
    x, y, z, w = orientation.unbind(-1)
    cosine, sine = 1 - 2 * (y * y + z * z), 2 * (w * z + x * y)
    scale = 1 / torch.clamp(torch.sqrt(cosine * cosine + sine * sine), min=1e-6)
    return cosine * scale, sine * scale


def rotation_columns(orientation: Any, columns: int = 2) -> Any:
    """(n, 3 · columns) the first columns of the rotation matrix, row by row, as trackers of clips have it."""
    x, y, z, w = orientation.unbind(-1)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return torch.stack([row[k] for row in rows for k in range(columns)], -1)


def read(path: Path, joints: int) -> Motion:
    """A clip out of a .npz file; AdoptionError where it is none."""
    try:
        with np.load(path, allow_pickle=False) as packed:
            arrays = {name: torch.from_numpy(np.asarray(packed[name], np.float32)) for name in Motion.__annotations__}
    except (OSError, ValueError, KeyError) as error:
        raise AdoptionError(f"{path}: it can't be read as a clip ({error})") from None
    found = Motion(**arrays)
    shapes = [tuple(value.shape) for value in arrays.values()]
    if shapes != [(len(found), joints), (len(found), joints), (len(found), 4)]:
        raise AdoptionError(f"{path}: its arrays are {shapes}; expected {joints} joints and an anchor at each step")
    return found


def motion_of(file: Any, where: str) -> Motion | None:
    """The clip in an ONNX file that takes a time step besides the observation; None for another policy."""
    if "time_step" not in file.inputs:
        return None
    lacking = [name for name in OUTPUTS if name not in file.outputs]
    if lacking:
        raise AdoptionError(f"{where}: it takes a time_step but lacks the outputs {lacking} of a clip")
    tables = {name: _table(file, name, where) for name in OUTPUTS}
    names = [part.strip() for part in file.metadata.get("body_names", "").split(",")]
    anchor = file.metadata.get("anchor_body_name", "")
    if anchor not in names:
        raise AdoptionError(f"{where}: anchor_body_name is '{anchor}'; expected one of its body_names {names}")
    w_first = tables["body_quat_w"][:, names.index(anchor)]
    arrays = (tables["joint_pos"], tables["joint_vel"], w_first[:, [1, 2, 3, 0]])
    if len({len(array) for array in arrays}) != 1 or len(w_first) > LONGEST:
        raise AdoptionError(
            f"{where}: its clip has {[len(a) for a in arrays]} steps; expected at most {LONGEST}, alike"
        )
    return Motion(*(torch.from_numpy(np.ascontiguousarray(array, np.float32)) for array in arrays))


def _table(file: Any, output: str, where: str) -> np.ndarray:
    """What an output takes its rows from, by the time step."""
    made = next((node for node in file.nodes if output in node.outputs), None)
    while made is not None and made.operator in ("Identity", "Squeeze"):
        made = next((node for node in file.nodes if made.inputs[0] in node.outputs), None)
    name = made.inputs[0] if made is not None and made.operator in ("Gather", "GatherND") else ""
    constant = next((node.attributes["value"]["array"] for node in file.nodes
                     if name in node.outputs and node.operator == "Constant"), name)  # fmt: skip
    if constant not in file.arrays:
        raise AdoptionError(f"{where}: output '{output}' is not taken from a table by the time step; expected a clip")
    return file.arrays[constant]
