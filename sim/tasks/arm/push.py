"""Pushing: an arm moves a block to a place at least 10 cm away with its closed hand, without grasping it.

Rewarded is success alone, so that a policy has to find it, or to be shown it: the script
(``robo_rl.controllers.skills.pushing``) is
what is demonstrated. What the policy commands is a displacement of the tool. It sees where the tool is along the line
from the block to its place, as the script does. An episode succeeds once the block lies within 2 cm of its place, at
rest, for a fifth of a second.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Safety, Signal
from robo_rl.controllers.skills.pushing import Sizes, line, push
from robo_rl.sim.drawing import Marker, Sphere
from robo_rl.sim.engines import Engine
from robo_rl.sim.plants import Articulated
from robo_rl.sim.ranges import NOT_NEGATIVE, PROBABILITY, Range
from robo_rl.sim.robots.arm import ArmCard, load_arm
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.mechanism import FreeObject
from robo_rl.sim.tasks import Measure, Spec, Task, Tensors
from robo_rl.sim.tasks.arm.hand import XYZ, hand
from robo_rl.sim.tasks.arm.joints import Joints
from robo_rl.sim.tasks.arm.physical import arm_envelope, arm_facts, arm_ranges, randomize_arm, simulated
from robo_rl.sim.tasks.arm.place import ABOVE, OLDEST, POSE_DELAY, turned
from robo_rl.sim.tasks.arm.starts import TRIES, far_enough
from robo_rl.sim.tasks.arm.workspace import workspace
from robo_rl.sim.tasks.scripted import Scripted

PERIOD = 0.05  # s
WIDE = 1.5  # half edges of the card's cube, half of the block's width: a closed hand has a face to push
NEAR = 0.02  # m, from the block's place
SLOW = 0.03  # m/s, of the block
HELD = 4  # control steps for which it has to lie there
GAP = 1.6  # half widths, from the block's middle to a hand behind it, and half of a hand
HAND = 0.014  # m
CLEAR = 0.02  # m, of the tool above the block on its way across
STEP = 0.03  # m, displacement at an action of 1
SIDES = torch.tensor([[1.0], [-1.0]])


class Push(Task[Articulated]):
    """Push a block to a place, with an arm whose gripper points down and is closed."""

    name = "arm-push"
    summary = "push a block to a place"
    card_type = ArmCard
    solving: Mapping[str, float] = MappingProxyType({"impratio": 10.0, "tolerance": 1e-6})
    measures = (Measure("block_position_error", "m", "end", 0.1),)
    perturbed = ("block_mass", "block_friction", "strength", "command_delay", "delay/block_position", "noise")
    action_size = 3
    goal_size = 4
    algorithms = ("bc", "sac", "ppo")

    def __init__(self, card: ArmCard | None = None) -> None:
        from robo_rl.sim.tasks.arm.room import require_room  # MuJoCo, which lists of tasks do without

        card = card or load_arm("panda")
        self.card, self.space = card, workspace(card)
        require_room(card, self.space)
        self.hand = hand(card, self.space.lower, self.space.upper)
        self.observation_size = 12 + self.hand.motion_size
        self.half, self.height = 0.5 * WIDE * card.grasp.size, 0.5 * card.grasp.size
        low = self.space.lower[2] + 0.002
        high = min(low + 2.0 * self.height + CLEAR, self.space.upper[2] - 0.002)
        self.sizes = Sizes(self.half, GAP * self.half + HAND, low, high)
        widths = [b - a for a, b in zip(self.space.lower[:2], self.space.upper[:2], strict=True)]
        if min(widths) < 2.0 * self.sizes.gap + self.half:
            raise CardError(
                f"robot '{card.name}' has a workspace of {widths[0]:.2f} m x {widths[1]:.2f} m; expected at least "
                f"{2.0 * self.sizes.gap + self.half:.2f} m each way: '{self.name}' goes behind its block on all sides"
            )
        room = (self.sizes.gap,) * 2
        self.inner = torch.tensor([self.space.lower[:2], self.space.upper[:2]]) + torch.tensor([room]) * SIDES
        """(2, 2) m, the corners within which a block begins and is to be: a hand has to be behind it."""
        far = (2.0,) * 3
        self.spec = Spec(
            name=self.name,
            summary=self.summary,
            robot=card,
            control_period=PERIOD,
            episode_length=12.0,
            signals=(
                *self.hand.signals,
                Signal("block_position", XYZ, "m", "base", (-2.0,) * 3, far, noise=(0.001,) * 3, delay=POSE_DELAY),
                Signal(
                    "block_age", ("age",), "s", "block", (0.0,), (OLDEST,), source="runtime", age_of="block_position"
                ),
                Signal("block_position_setpoint", XYZ, "m", "base", (-2.0,) * 3, far, source="operator"),
            ),
            commands=self.hand.commands,
            memory=self.hand.memory,
            safety=Safety(signal_timeout=0.15, envelope=arm_envelope(card, self.space)),
            reward={"success": 1.0, "change": -0.0002},
            ranges={
                "initial/pose": Range.fixed(0.0, 1.0),
                "initial/block": Range.fixed(0.0, 1.0, count=2, unit="× workspace"),
                "initial/yaw": Range.fixed(-math.pi / 4, math.pi / 4, unit="rad"),
                "goal/place": Range.fixed(0.0, 1.0, count=2 * TRIES, unit="× workspace"),
                "block_mass": Range.fixed(0.5, 2.0, unit="×"),
                "block_friction": Range.fixed(0.3, 1.0, limits=NOT_NEGATIVE),
                "delay/block_position": Range.fixed(*POSE_DELAY, unit="s"),
                "dropout/block_position": Range.fixed(0.0, 0.1, limits=PROBABILITY),
                **arm_ranges(),
            },
            facts={
                **arm_facts(card, self.space),
                "object": {
                    "shape": "box", "size": [2.0 * self.half, 2.0 * self.half, 2.0 * self.height],
                    "mass": 2.0 * card.grasp.mass, "position": "its centre",
                },
                "references": {"block_position_setpoint": "where the centre of the block is to be, lying"},
                "success": {"block_within_m": NEAR, "slower_than_m_s": SLOW, "for_s": HELD * PERIOD},
            },
        )  # fmt: skip

    # --- simulation ----------------------------------------------------------------------------------------------

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> Articulated:
        return simulated(self, n, device)

    def simulate(self, engine: Callable[..., Articulated], n: int, **settings: Any) -> Articulated:
        """n arms with a block in an engine, a class of ``robo_rl.sim.plants``."""
        x, y = self.space.origin[0, :2].tolist()
        size = (self.half, self.half, self.height)
        block = FreeObject("block", "box", size, 2.0 * self.card.grasp.mass, position=(x, y, self.height))
        return engine(dataclasses.replace(self.card.mechanism, objects=(block,)), n, PERIOD, **settings)

    def engines(self) -> list[Engine]:
        from robo_rl.sim.tasks.arm import engines

        return engines.engines(self)

    def randomize(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        mass, friction = plant.param("object_mass"), plant.param("object_friction")
        mass[ids] = plant.nominal.object_mass * drawn["block_mass"].to(mass)[:, None]
        friction[ids] = drawn["block_friction"].to(friction)[:, None]
        randomize_arm(self.card, plant, ids, drawn)

    # --- episodes ------------------------------------------------------------------------------------------------

    def _block(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, 2) m."""
        return self.inner[0] + (self.inner[1] - self.inner[0]) * drawn["initial/block"]

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, 4): the block's place (m), and the steps for which it has been there."""
        tries = self.inner[0] + (self.inner[1] - self.inner[0]) * drawn["goal/place"].unflatten(-1, (TRIES, 2))
        place = far_enough(tries, self._block(drawn), self.inner)
        height = torch.full_like(place[:, :1], self.height)
        return torch.cat([place, height, torch.zeros_like(height)], -1)

    def place(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        first, count = self.space.first_high, len(self.space.places)
        pose = (first + drawn["initial/pose"] * (count - first)).long().clamp(max=count - 1)
        block = self._block(drawn)
        closed = torch.full_like(block[:, :1], self.card.gripper.joint.lower)
        plant.place(
            ids,
            **Joints(self.card).apart(self.space.angles[pose], "position"),
            gripper_position=closed,
            block_position=torch.cat([block, torch.full_like(closed, self.height)], -1) + ABOVE,
            block_orientation=turned(drawn["initial/yaw"]),
        )

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        return {"block_position_setpoint": goal[:, :3], "lain": goal[:, 3:4]}

    def advance(self, truth: Tensors, goal: Any) -> Any:
        lain = torch.where(self._there(truth)[:, None], truth["lain"] + 1.0, 0.0)
        return torch.cat([goal[:, :3], lain], -1)

    # --- what runs on the robot ----------------------------------------------------------------------------------

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        tool, block = self.hand.tool(signals), signals["block_position"]
        x, y, left, along, beside = line(
            tool.unbind(-1), block.unbind(-1), signals["block_position_setpoint"].unbind(-1)
        )
        ahead = along + self.sizes.gap
        seen = [
            x, y, torch.clamp(10.0 * left, max=4.0), torch.clamp(50.0 * left, max=2.0),
            torch.clamp(10.0 * along, -3.0, 3.0), torch.clamp(50.0 * ahead, -2.0, 2.0),
            torch.clamp(10.0 * beside, -3.0, 3.0), torch.clamp(50.0 * beside, -2.0, 2.0),
            25.0 * (tool[:, 2] - self.sizes.low),
        ]  # fmt: skip
        middle = 8.0 * (tool - self.space.origin)[:, :2]
        return torch.cat([torch.stack(seen, -1), middle, self.hand.motion(signals), 5.0 * signals["block_age"]], -1)

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        moved = STEP / self.hand.step * torch.clamp(action, -1.0, 1.0)
        return self.hand.command(torch.cat([moved, 0.0 * moved[:, :1] - 1.0], -1), memory)

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        return self.hand.remember(memory, signals, commands)

    def script(self, signals: Tensors, memory: Tensors) -> Any:
        """(n, 3) actions of the script."""
        tool, block, goal = self.hand.tool(signals), signals["block_position"], signals["block_position_setpoint"]
        ahead = push(tool.unbind(-1), block.unbind(-1), goal.unbind(-1), signals["block_age"][:, 0], self.sizes)
        return torch.stack([torch.clamp(x / STEP, -1.0, 1.0) for x in ahead], -1)

    def controller(self) -> Any:
        """The script, as part of the policy's own graph."""
        return Scripted(self, self.script)

    # --- reward and end ------------------------------------------------------------------------------------------

    def _there(self, truth: Tensors) -> Any:
        """(n,) whether the block is at its place and at rest."""
        slow = truth["block_linear_velocity"].square().sum(-1) < SLOW**2
        return (self.errors(truth)["block_position_error"] < NEAR) & slow

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        return {
            "success": torch.where(self.succeeded(truth), 1.0, 0.0),
            "change": self.hand.change(commands, previous),
        }

    def errors(self, truth: Tensors) -> dict[str, Any]:
        """How far the block is from its place, (n,) m."""
        away = truth["block_position"] - truth["block_position_setpoint"]
        return {"block_position_error": torch.sqrt(away.square().sum(-1))}

    def failed(self, truth: Tensors) -> Any:
        """Whether the block has left the workspace."""
        return self.space.outside(truth["block_position"])

    def failures(self, truth: Tensors) -> dict[str, Any]:
        return {"block left the workspace": self.failed(truth)}

    def succeeded(self, truth: Tensors) -> Any:
        return self._there(truth) & (truth["lain"][:, 0] > HELD - 1.5)

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        tool, block, goal = truth["tool_position"], truth["block_position"], truth["block_position_setpoint"]
        x, _, z, w = truth["block_orientation"].unbind(-1)
        return torch.cat(
            [
                8.0 * (tool - self.space.origin),
                10.0 * (block - tool),
                10.0 * (goal - block)[:, :2],
                2.0 * truth["tool_linear_velocity"],
                5.0 * truth["block_linear_velocity"],
                torch.stack([z * w, z * z, x * w], -1),
                torch.clamp(0.1 * truth["pad_force"], 0.0, 4.0),
                truth["lain"],
                parameters.object_friction,
                5.0 * parameters.object_mass,
                50.0 * parameters.command_delay[:, :1],
            ],
            -1,
        )

    def markers(self, truth: Tensors) -> list[Marker]:
        return [Sphere("place", truth["block_position_setpoint"], radius=0.018)]
