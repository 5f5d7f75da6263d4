"""Getting up: a robot on four legs that fell, in whatever pose, stands up within five seconds.

Robots are dropped in any attitude with their legs anywhere within their stops, and all of their shapes touch the
ground. The policy sees what the robot measures and the last joint angles and targets; there is no gait and no
command. Rewarded are being upright, and, as far as it is upright, the base's height and the stance (after Hwangbo et
al. 2019, Learning Agile and Dynamic Motor Skills for Legged Robots, section on recovery). The network moves the targets
away from where the joints are (as Go1Getup of MuJoCo Playground does, Zakka et al. 2025): so chance brings a leg
anywhere in time, while around a fixed stance it never brought a robot off its back. A memory begins with the stance, so
the very first target is near it, wherever the legs are. At first robots begin hardly tilted, and some on their feet, so
that the value of standing is known early; fewer do as more get up.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Safety
from robo_rl.controllers.rotation import body_z, multiply
from robo_rl.sim.plants import Articulated
from robo_rl.sim.ranges import Range, Rule
from robo_rl.sim.robots.legged import LeggedCard
from robo_rl.sim.tasks import Measure, Tensors
from robo_rl.sim.tasks.legged.ranges import PUSHES, initial_ranges, physical_ranges
from robo_rl.sim.tasks.legged.walk import HISTORY, FlatWalk

TIME = 5.0  # s, to get up
REACH = 0.5  # rad, of the network's output: from where a joint was to its target
UPRIGHT = 0.9  # cosine of the base's tilt, above which a robot stands
HIGH = 0.65  # part of the standing height, likewise
DROP = 0.7  # m, height from which a Go2 falls: no leg reaches the ground from there
EASY = 0.2  # part of the robots that begin on their feet at first


class Recover(FlatWalk):
    """Stand up from any pose within 5 s, and stay."""

    name = "go2-recover"
    summary = "stand up from any pose"
    survival = "stands in time"
    contacts = "all"
    shortest = TIME + 0.1
    measures = (Measure("base_height_error", "m", "end"), Measure("tilt_error", "rad", "end"))
    goal_size = 3 * PUSHES
    pushed = 0
    settings = MappingProxyType(
        {"ppo": {**FlatWalk.settings["ppo"], "updates": 1000, "initial_deviation": 0.8, "entropy": 0.003}}
    )

    weights = {
        "upright": 1.0,
        "height": 2.0,
        "stance": 2.0,
        "torque": -1e-4,
        "joint_velocity": -2e-4,
        "target_change": -0.02,
    }

    def __init__(self, card: LeggedCard | None = None) -> None:
        super().__init__(card)
        count = self.action_size
        self.observation_size = 6 + 2 * count + 2 * HISTORY * count
        self.height = 0.0
        self.spec = dataclasses.replace(
            self.spec,
            episode_length=TIME + 1.0,
            signals=tuple(signal for signal in self.spec.signals if signal.source == "sensor"),
            memory=tuple(block for block in self.spec.memory if block.name != "gait"),
            safety=Safety(signal_timeout=0.04),  # no tilt is a fall here
            ranges={
                **initial_ranges(count),
                **physical_ranges(count, self.legs.mass),
                "initial/tilt": Range((0.0, 0.1), (0.0, 1.0)),
                "initial/lean": Range.fixed(-math.pi, math.pi, unit="rad"),
                "initial/joint_position": Range.fixed(0.0, 1.0, count=count, unit="× way between stops"),
                "initial/easy": Range((0.0, 1.0), (EASY, 1.0)),
            },
            rules=(
                Rule("initial/tilt", "survived", up=0.5, down=0.5, step=0.1),
                Rule("initial/easy", "survived", up=0.5, down=0.5, step=0.05),
            ),
        )

    def facts(self) -> dict[str, Any]:
        told = super().facts()
        references = {name: text for name, text in told["references"].items() if not name.endswith("_command")}
        stands = {"within_s": TIME, "tilt_below_rad": math.acos(UPRIGHT), "higher_than_part_of_stand": HIGH}
        return {**told, "references": references, "success": stands}

    def simulate(self, engine: Callable[..., Articulated], n: int, **settings: Any) -> Articulated:
        plant = super().simulate(engine, n, **settings)
        self.height = plant.height
        return plant

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        return {"elapsed": time[:, None]}

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, goal_size): no pushes, except those of a user of the live page."""
        return torch.zeros(len(drawn["noise"]), self.goal_size, device=drawn["noise"].device)

    def place(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        easy = drawn["initial/easy"][:, None] < EASY
        joints = self.lower + drawn["initial/joint_position"] * (self.upper - self.lower)
        upright = torch.tensor([[0.0, 0.0, 0.0, 1.0]], device=joints.device)
        height = torch.where(easy, plant.height + 0.02, DROP * self.size)
        plant.place(
            ids,
            position=torch.cat([torch.zeros_like(height), torch.zeros_like(height), height], -1),
            orientation=torch.where(
                easy, upright, attitude(drawn["initial/tilt"], drawn["initial/lean"], drawn["initial/yaw"])
            ),
            linear_velocity=drawn["initial/linear_velocity"],
            angular_velocity=drawn["initial/angular_velocity"],
            joint_position=torch.where(easy, self.stand, joints),
            joint_velocity=torch.zeros_like(joints),
        )

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        changes = memory["joint_history"] - signals["joint_position"][:, None]
        return torch.cat(
            [
                self._down(signals["orientation"]),
                0.25 * signals["angular_velocity"],
                signals["joint_position"] - self.stand,
                0.05 * signals["joint_velocity"],
                4.0 * changes.flatten(1),
                memory["target_history"].flatten(1),
            ],
            -1,
        )

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        target = memory["joint_history"][:, 0] + REACH * action
        return {"joint_position_target": torch.clamp(target, self.lower, self.upper)}

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        newest = (commands["joint_position_target"] - self.stand) / REACH
        return {
            "joint_history": torch.cat([signals["joint_position"][:, None], memory["joint_history"][:, :-1]], 1),
            "target_history": torch.cat([newest[:, None], memory["target_history"][:, :-1]], 1),
        }

    def errors(self, truth: Tensors) -> dict[str, Any]:
        """How far the base is from its standing height (m) and from being upright (rad), (n,) each."""
        up = body_z(truth["orientation"].unbind(-1))
        return {
            "base_height_error": abs(truth["position"][:, 2] - self.height),
            "tilt_error": torch.atan2(torch.sqrt(up[0].square() + up[1].square()), up[2]),
        }

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        up = body_z(truth["orientation"].unbind(-1))[2]
        near = torch.clamp(up, min=0.0).square()
        short = torch.clamp(1.0 - truth["position"][:, 2] / self.height, min=0.0)
        pose = truth["joint_position"] - self.stand
        change = commands["joint_position_target"] - previous["joint_position_target"]
        return {
            "upright": 0.5 + 0.5 * up,
            "height": near * torch.exp(-short.square() / 0.1),
            "stance": near / (1.0 + 0.5 * pose.square().sum(-1)),  # tells the way from afar too
            "torque": truth["joint_torque"].square().sum(-1),
            "joint_velocity": truth["joint_velocity"].square().sum(-1),
            "target_change": change.square().sum(-1),
        }

    def failed(self, truth: Tensors) -> Any:
        """Whether the time to get up is over and the robot does not stand."""
        up = body_z(truth["orientation"].unbind(-1))[2]
        lies = (up < UPRIGHT) | (truth["position"][:, 2] < HIGH * self.height)
        return lies & (truth["elapsed"][:, 0] > TIME)

    def failures(self, truth: Tensors) -> dict[str, Any]:
        return {"does not stand in time": self.failed(truth)}

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        return torch.cat(
            [
                truth["linear_velocity"],
                self._down(truth["orientation"]),
                0.25 * truth["angular_velocity"],
                truth["position"][:, 2:],
                truth["joint_position"] - self.stand,
                0.05 * truth["joint_velocity"],
                0.1 * truth["joint_torque"],
                10.0 * truth["foot_position"][:, 2::3],
                0.02 * truth["foot_force"],
                truth["elapsed"],
                parameters.ground_friction[:, None],
                50.0 * parameters.command_delay[:, :1],
            ],
            -1,
        )


def attitude(tilt: Tensor, lean: Tensor, yaw: Tensor) -> Tensor:
    """Quaternions (m, 4) x, y, z, w: a turn by ``yaw`` (rad), then a tilt about the horizontal axis at ``lean`` (rad).

    ``tilt`` is half of one less the cosine of the tilt: 0 upright, 1 upside down. Where it is uniform between them, and
    the angles over the circle, all attitudes are equally likely.
    """
    sine, cosine, half = torch.sqrt(tilt), torch.sqrt(1.0 - tilt), 0.5 * yaw
    zero = torch.zeros_like(tilt)
    about = (torch.cos(lean) * sine, torch.sin(lean) * sine, zero, cosine)
    return torch.stack(multiply(about, (zero, zero, torch.sin(half), torch.cos(half))), -1)
