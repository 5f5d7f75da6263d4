"""The vocabulary of observations: what trainers call a term, as a function of signals and memory.

Names are those of Isaac Lab and mjlab; ``ALIASES`` has what others call the same. Joints are in the policy's order,
vectors in the base frame (x forward, y left, z up), angles in rad.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from robo_rl.controllers.rotation import dot, matrix


@dataclass(frozen=True)
class Term:
    """One term of an observation: value, then clip and scale (or scale and clip), ``history`` steps of it."""

    name: str
    scale: float | tuple[float, ...] = 1.0
    clip: tuple[float, float] | None = None
    clip_first: bool = True
    """Whether it is clipped before it is scaled."""
    history: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)

    def shaped(self, value: Tensor) -> Tensor:
        """(n, k) clipped and scaled."""
        if self.clip is None and self.scale == 1.0:
            return value
        scale = self.scale if isinstance(self.scale, float) else torch.tensor(self.scale)
        if self.clip is None:
            return value * scale
        if self.clip_first:
            return torch.clamp(value, *self.clip) * scale
        return torch.clamp(value * scale, *self.clip)


@dataclass(frozen=True)
class View:
    """What terms may see of a policy's step. Joints are in the policy's order."""

    signals: Mapping[str, Any]
    memory: Mapping[str, Any]
    joint_position: Any
    joint_velocity: Any
    default: Any
    """(1, joints) rad."""
    period: float
    """s, of a control step."""
    motion: Any = None
    """``motion.Motion``, of a policy that follows a clip."""


Check = tuple[Callable[[Any], bool], str]
_number: Check = (lambda x: isinstance(x, int | float) and not isinstance(x, bool), "a number")
_positive: Check = (lambda x: isinstance(x, int | float) and x > 0, "a positive number")
_numbers: Check = (
    lambda x: isinstance(x, list) and len(x) > 0 and all(isinstance(v, int | float) for v in x), "a list of numbers",
)  # fmt: skip


def _one_of(*choices: str) -> Check:
    return (lambda x: x in choices, f"one of {list(choices)}")


@dataclass(frozen=True)
class Definition:
    """A word of the vocabulary."""

    value: Callable[[View, Mapping[str, Any]], Tensor]
    size: Callable[[int, Mapping[str, Any]], int]
    """For so many joints."""
    settings: Mapping[str, Check] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()
    """Those that it needs besides the usual ones of the robot."""


def gravity(orientation: Any) -> Any:
    """(n, 3) the direction of gravity in the base frame, (0, 0, -1) when upright."""
    x, y, z, w = orientation.unbind(-1)
    return torch.stack([2 * (w * y - x * z), -2 * (y * z + w * x), 2 * (x * x + y * y) - 1], -1)


def _gravity(view: View, settings: Mapping[str, Any]) -> Tensor:
    down = gravity(view.signals["orientation"])
    return -down if settings.get("direction") == "up" else down


def _velocity(view: View, settings: Mapping[str, Any]) -> Tensor:
    """An estimator gives it in the world's frame."""
    rows, world = matrix(view.signals["orientation"].unbind(-1)), view.signals["linear_velocity"].unbind(-1)
    return torch.stack([dot(column, world) for column in zip(*rows, strict=True)], -1)


def _quaternion(view: View, settings: Mapping[str, Any]) -> Tensor:
    q = view.signals["orientation"]
    return torch.cat([q[:, 3:], q[:, :3]], -1) if settings["order"] == "wxyz" else q


def _roll_pitch(view: View, settings: Mapping[str, Any]) -> Tensor:
    x, y, z, w = view.signals["orientation"].unbind(-1)
    roll = torch.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    return torch.stack([roll, torch.asin(torch.clamp(2 * (w * y - z * x), -1.0, 1.0))], -1)


def _phase(view: View, settings: Mapping[str, Any]) -> Tensor:
    clock = view.memory["phase"]  # cosine, sine
    return clock if settings.get("order") == "cos sin" else torch.cat([clock[:, 1:], clock[:, :1]], -1)


def _command(view: View, settings: Mapping[str, Any]) -> Tensor:
    return torch.cat([view.signals["linear_velocity_command"], view.signals["yaw_rate_command"]], -1)


def _constant(view: View, settings: Mapping[str, Any]) -> Tensor:
    row = view.joint_position.new_tensor([settings["value"]])
    return row + 0.0 * view.joint_position[:, :1]


def _joints(n: int, settings: Mapping[str, Any]) -> int:
    return n


TERMS: dict[str, Definition] = {
    "base_lin_vel": Definition(_velocity, lambda n, s: 3, signals=("linear_velocity",)),
    "base_ang_vel": Definition(lambda v, s: v.signals["angular_velocity"], lambda n, s: 3),
    "projected_gravity": Definition(_gravity, lambda n, s: 3, {"direction": _one_of("down", "up")}),
    "orientation": Definition(_quaternion, lambda n, s: 4, {"order": _one_of("wxyz", "xyzw")}, ("order",)),
    "roll_pitch": Definition(_roll_pitch, lambda n, s: 2),
    "velocity_commands": Definition(_command, lambda n, s: 3),
    "joint_pos_rel": Definition(lambda v, s: v.joint_position - v.default, _joints),
    "joint_pos": Definition(lambda v, s: v.joint_position, _joints),
    "joint_vel_rel": Definition(lambda v, s: v.joint_velocity, _joints),
    "last_action": Definition(lambda v, s: v.memory["last_action"], _joints),
    "gait_phase": Definition(
        _phase, lambda n, s: 2, {"period": _positive, "order": _one_of("sin cos", "cos sin"), "first": _number},
        ("period",),
    ),
    "constant": Definition(_constant, lambda n, s: len(s["value"]), {"value": _numbers}, ("value",)),
    "motion_command": Definition(lambda v, s: v.motion.command(v.memory), lambda n, s: 2 * n),
    "motion_anchor_ori_b": Definition(
        lambda v, s: v.motion.orientation(v.signals["orientation"], v.memory), lambda n, s: 6
    ),
}  # fmt: skip
"""By name."""

ALIASES = {
    "actions": "last_action", "ang_vel": "base_ang_vel", "command": "velocity_commands",
    "commands": "velocity_commands", "dof_pos": "joint_pos_rel", "dof_vel": "joint_vel_rel",
    "generated_commands": "velocity_commands", "gravity_vec": "projected_gravity", "joint_vel": "joint_vel_rel",
    "lin_vel": "base_lin_vel", "phase": "gait_phase", "prev_action": "last_action", "previous_actions": "last_action",
    "last_actions": "last_action", "velocity_command": "velocity_commands", "base_velocity": "velocity_commands",
    "imu_ang_vel": "base_ang_vel", "imu_projected_gravity": "projected_gravity",
}  # fmt: skip
"""What trainers call a term, and its name here. Isaac Lab's and mjlab's "joint_pos" is relative to the default."""


SCANS = ("height_scan", "height_scanner", "height_map", "heights", "measured_heights")
"""What trainers call heights of the ground: mdp.height_scan of Isaac Lab and mjlab, measure_heights of legged_gym."""
UNSEEN = (
    "heights of the ground, which no robot here measures: train without the term; or, on level ground alone, say "
    'term = "constant" with value = a list of as many numbers as the scan has points (17 x 11 = 187 with Isaac Lab\'s '
    "1.6 m x 1.0 m at 0.1 m), each the height at which the base stands in m, less the term's offset (0.5)"
)


def advance(clock: Any, angle: float) -> Any:
    """The clock (n, 2), cosine and sine, an angle (rad) later; kept on the circle."""
    cosine, sine = clock[:, 0], clock[:, 1]
    c, s = math.cos(angle), math.sin(angle)
    turned = torch.stack([c * cosine - s * sine, s * cosine + c * sine], -1)
    return turned / torch.linalg.vector_norm(turned, dim=-1, keepdim=True)
