"""Policies that walk, in the forms of other trainers: the zoo's go2-flat behind a peer's observations.

``Walker`` takes an observation in the layout of a peer, finds the zoo's own observation in it, asks the zoo's network,
and gives an action in the peer's units. So it walks as the zoo's policy does, and nothing had to be trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import Tensor, nn

from robo_rl.deploy.build.verify import torch_policy
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.sim.tasks.legged.walk import HISTORY, SCALE, FlatWalk
from robo_rl.zoo import located

TASK = FlatWalk()
CARD = list(TASK.card.joint_names)
MJLAB = [f"{leg}_{part}_joint" for leg in ("FL", "FR", "RL", "RR") for part in ("hip", "thigh", "calf")]
ISAAC = [f"{leg}_{part}_joint" for part in ("hip", "thigh", "calf") for leg in ("FL", "FR", "RL", "RR")]
STAND = {joint.name: joint.stand for joint in TASK.card.joints}
STIFFNESS, DAMPING = 35.0, 0.5
PERIOD = 0.4  # s, of the gait's clock

TERMS = """
[[observations]]
term = "base_ang_vel"
scale = 0.25
[[observations]]
term = "projected_gravity"
[[observations]]
term = "velocity_commands"
[[observations]]
term = "joint_pos_rel"
[[observations]]
term = "joint_vel_rel"
scale = 0.05
[[observations]]
term = "last_action"
"""
"""Of a plain walker, in the form of a description: 45 numbers for twelve joints."""


class Walker(nn.Module):
    """Terms: base_ang_vel, gravity or orientation, velocity_commands, joint_pos_rel × 4, last_action × 3, phase."""

    def __init__(self, joints: Sequence[str], scale: float = 0.25, **layout: Any) -> None:
        """``layout``: ``by`` "term" or "frame", ``newest_first``, ``quaternion`` None, "wxyz" or "xyzw", scales."""
        super().__init__()
        bundle = Bundle.read(located("zoo:go2-flat"))
        self.policy = torch_policy(bundle, TASK)
        self.joints, self.scale, self.layout = list(joints), scale, layout
        self.order = torch.tensor([self.joints.index(name) for name in CARD])
        self.back = torch.tensor([CARD.index(name) for name in self.joints])
        self.rates = layout.get("rates", (0.25, 1.0, 1.0))  # of angular velocity, commands, joint positions

    def terms(self) -> list[dict[str, Any]]:
        """Of its description."""
        quaternion = self.layout.get("quaternion")
        down: dict[str, Any] = {"term": "projected_gravity"}
        if quaternion:
            down = {"term": "orientation", "order": quaternion}
        history = HISTORY + 1
        frames = self.layout.get("by") == "frame"
        first = [
            {"term": "base_ang_vel", "scale": self.rates[0]},
            down,
            {"term": "velocity_commands", "scale": self.rates[1]},
            {"term": "joint_vel_rel", "scale": 0.05},
            {"term": "gait_phase", "period": PERIOD, "order": "sin cos"},
        ]
        last = [
            {"term": "joint_pos_rel", "scale": self.rates[2], "history": history},
            {"term": "last_action", "history": history if frames else HISTORY},
        ]
        if frames:
            first = [{**term, "history": history} for term in first]
        return [*first, *last]

    def sizes(self) -> list[int]:
        n = len(self.joints)
        return [3, 4 if self.layout.get("quaternion") else 3, 3, n, 2, n, n]

    def forward(self, observation: Tensor) -> Tensor:
        rate, down, command, velocity, phase, positions, actions = self._split(observation)
        if self.layout.get("quaternion"):
            q = down[:, -1]
            q = torch.cat([q[:, 1:], q[:, :1]], -1) if self.layout["quaternion"] == "wxyz" else q
            gravity = -FlatWalk._down(q)
        else:
            gravity = down[:, -1]
        joints = positions.index_select(2, self.order) / self.rates[2]  # oldest first, relative to the stand
        past = joints[:, :-1].flip(1)  # newest first
        now, clock = joints[:, -1], torch.cat([phase[:, -1, 1:], phase[:, -1, :1]], -1)
        given = command[:, -1] / self.rates[1]
        targets = self.scale * actions[:, -HISTORY:].flip(1).index_select(2, self.order) / SCALE
        memory = {
            "gait": torch.cat([clock, given], -1),
            "joint_history": past + TASK.stand[:, None],
            "target_history": targets,
        }
        signals = {
            "joint_position": now + TASK.stand,
            "angular_velocity": rate[:, -1] / self.rates[0],
            "joint_velocity": velocity[:, -1].index_select(1, self.order) / 0.05,
            "linear_velocity_command": given[:, :2],
            "yaw_rate_command": given[:, 2:],
            "orientation": gravity,
        }
        seen = _Seen.observe(self.policy.task, signals, memory)
        target = self.policy.task.command(self.policy.network(self.policy.features(seen)), memory)
        offset = target["joint_position_target"] - TASK.stand
        return offset.index_select(1, self.back) / self.scale

    def _split(self, observation: Tensor) -> list[Tensor]:
        """(n, steps, k) of each term, oldest first."""
        terms, sizes = self.terms(), self.sizes()
        lengths = [term.get("history", 1) for term in terms]
        if self.layout.get("by") == "frame":
            frames = observation.unflatten(1, (lengths[0], sum(sizes)))
            parts = list(frames.split(sizes, 2))
        else:
            flat = observation.split([a * b for a, b in zip(sizes, lengths, strict=True)], 1)
            parts = [part.unflatten(1, (a, b)) for part, a, b in zip(flat, lengths, sizes, strict=True)]
        return [part.flip(1) for part in parts] if self.layout.get("newest_first") else parts


class _Seen(FlatWalk):
    """The zoo's observation, for gravity's direction in the place of the orientation."""

    @staticmethod
    def observe(task: Any, signals: Any, memory: Any) -> Any:  # type: ignore[override]
        keep = task._down
        task._down = lambda gravity: -gravity
        try:
            return FlatWalk.observe(task, signals, memory)
        finally:
            task._down = keep


def to_onnx(module: nn.Module, size: int, path: Path, metadata: dict[str, str] | None = None) -> Path:
    """As Isaac Lab and mjlab export: one row, "obs" to "actions"."""
    torch.onnx.export(
        module.eval(),
        (torch.zeros(1, size),),
        str(path),
        input_names=["obs"],
        output_names=["actions"],
        dynamo=True,
        verbose=False,
        external_data=False,
    )
    model = onnx.load(path)
    for key, value in (metadata or {}).items():
        model.metadata_props.add(key=key, value=value)
    onnx.save(model, path)
    return path


def mjlab_metadata(walker: Walker) -> dict[str, str]:
    """As mjlab 1.6 writes it: rl/exporter_utils.py, three decimals."""
    terms = walker.terms()
    names = {
        "joint_pos_rel": "joint_pos",
        "joint_vel_rel": "joint_vel",
        "velocity_commands": "command",
        "last_action": "actions",
        "gait_phase": "phase",
    }

    def csv(values: Sequence[Any]) -> str:
        return ",".join(f"{v:.3f}" if isinstance(v, int | float) else str(v) for v in values)

    return {
        "run_path": "local",
        "joint_names": csv(walker.joints),
        "joint_stiffness": csv([STIFFNESS] * 12),
        "joint_damping": csv([DAMPING] * 12),
        "default_joint_pos": csv([STAND[name] for name in walker.joints]),
        "command_names": "twist",
        "observation_names": ",".join(names.get(term["term"], term["term"]) for term in terms),
        "observation_terms_scale": csv([float(term.get("scale", 1.0)) for term in terms]),
        "observation_terms_flatten_history_dim": ",".join(["True"] * len(terms)),
        "observation_terms_history_length": csv([term.get("history", 0) for term in terms]),
        "observation_terms_clip": ",".join(["-inf;inf"] * len(terms)),
        "action_scale": csv([walker.scale] * 12),
    }


def size_of(walker: Walker) -> int:
    return sum(a * term.get("history", 1) for a, term in zip(walker.sizes(), walker.terms(), strict=True))
