"""Insertion: an arm pushes a square peg, which it holds, into a hole whose place a camera knows to 3 mm.

What the policy commands is a displacement of the tool from where it was measured, of an impedance, so that it feels
with what it presses: the deflection of the tool from its target, which is the force over the stiffness. Its memory
holds the deflection, and a clock of how long the peg has been pressed on the rim, with the point of a spiral that
belongs to it (``robo_rl.controllers.skills.inserting``): what a search without a trace of itself can't do. It also
holds the height at which the peg was pressed, from which it knows how deep the peg is. Rewarded is success alone. An
episode succeeds once the peg's end is 2 cm below the rim, for a fifth of a second.

The hole is 25 mm wide; ``clearance`` says how much narrower the peg is: 3 mm, and with ``--bounds
clearance:0.001:0.001`` 1 mm.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Safety, Signal, StateBlock
from robo_rl.controllers.skills.inserting import SEARCH_TIME, below_rim, insert, pressed, searched, spiral, touched
from robo_rl.sim.drawing import Marker, Sphere
from robo_rl.sim.engines import Engine
from robo_rl.sim.plants import Articulated
from robo_rl.sim.ranges import NOT_NEGATIVE, Range
from robo_rl.sim.robots.arm import ArmCard, load_arm
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.mechanism import FreeObject
from robo_rl.sim.tasks import Measure, Spec, Task, Tensors
from robo_rl.sim.tasks.arm.hand import XYZ, ToolHand
from robo_rl.sim.tasks.arm.joints import Joints
from robo_rl.sim.tasks.arm.physical import arm_envelope, arm_facts, arm_ranges, randomize_arm, simulated
from robo_rl.sim.tasks.arm.workspace import workspace
from robo_rl.sim.tasks.scripted import Scripted

PERIOD = 0.05  # s; SERL and HIL-SERL insert at 10 Hz
HOLE = 0.0125  # m, half of the hole's width
RIM = 0.03  # m, its depth, down to the ground
BLOCK = 0.04  # m, half of the width of the block that it is in
HEAVY = 20.0  # kg, of the block: it stays where it stands
CLEARANCE = 0.003  # m, by which the peg is narrower than the hole
LENGTH = 0.035  # m, half of the peg's
BELOW = 0.02  # m, of the peg's middle below the tool's
MASS = 0.08  # kg, of the peg
KNOWN = 0.003  # m, error of the measured place of the hole, along x and y, the same for all of an episode
DEEP = 0.02  # m, how deep the peg has to be
HELD = 4  # control steps for which it has to be there
LOST = 0.05  # m, of the peg from the hand
STEP = 0.015  # m, displacement at an action of 1
HEIGHT = (0.1, 0.17)  # m, of the tool above the ground at first
ROOM = 0.015  # m, of the hole from the border of the workspace: the tool has to search around it
BESIDE, TOUCHING = 0.015, 0.002  # m, of the peg's end from the hole's middle, level, and from the rim's height
WAY = 0.04  # m, along x and y from there to the hole at most


class Insert(Task[Articulated]):
    """Insert a peg, with an arm that takes poses of its tool."""

    name = "arm-insert"
    summary = "insert a peg into a hole"
    card_type = ArmCard
    plants = ("mujoco", "warp")
    solving: Mapping[str, float] = MappingProxyType({"impratio": 10.0, "tolerance": 1e-7})
    measures = (Measure("peg_position_error", "m", "end", 0.1),)
    perturbed = ("clearance", "peg_friction", "bias/hole_position", "strength", "command_delay", "noise")
    action_size = 3
    action_names = XYZ
    goal_size = 1
    observation_size = 18
    algorithms = ("bc", "sac", "ppo")
    families = ("near_hole", "on_rim", "partly_in")
    settings = MappingProxyType(
        {
            "ppo": {
                "updates": 80, "environments": 256, "horizon": 64, "hidden": (128, 128), "activation": "elu",
                "initial_deviation": 0.5, "entropy": 0.001, "anneal": 0.3,
            }
        }
    )  # fmt: skip

    def __init__(self, card: ArmCard | None = None) -> None:
        card = card or load_arm("panda")
        if card.impedance is None:
            raise CardError(
                f"robot '{card.name}' has no [impedance]; expected one: '{self.name}' feels by its deflection"
            )
        self.card, self.space = card, workspace(card)
        self.hand = ToolHand(card, self.space.lower, self.space.upper)
        self.end = BELOW + LENGTH
        """m, of the peg's end below the tool."""
        low, high = (int((self.space.places[:, 2] < height).sum()) for height in HEIGHT)
        if low == high:
            raise CardError(f"robot '{card.name}': expected a workspace that goes from {HEIGHT[0]} to {HEIGHT[1]} m")
        self.first, self.last = low, high
        far = (2.0,) * 3
        self.spec = Spec(
            name=self.name,
            summary=self.summary,
            robot=card,
            control_period=PERIOD,
            episode_length=10.0,
            signals=(
                *self.hand.signals,
                Signal("hole_position", XYZ, "m", "base", (-2.0,) * 3, far, noise=(0.0002,) * 3),
            ),
            commands=self.hand.commands,
            memory=(
                *self.hand.memory,
                StateBlock("deflection", (3,), (0.0,) * 3),
                StateBlock("contact", (1,), (0.0,)),
                StateBlock("touched", (1,), (0.0,)),
                StateBlock("search", (1,), (0.0,)),
            ),
            safety=Safety(signal_timeout=0.15, envelope=arm_envelope(card, self.space)),
            reward={"success": 1.0, "change": -0.0002},
            ranges=self.physical_ranges(),
            facts=self.facts(),
        )

    def facts(self) -> dict[str, Any]:
        """What the contract tells of the task."""
        return {
            **arm_facts(self.card, self.space),
            "object": {
                "shape": "square peg, upright in the hand", "length": 2.0 * LENGTH, "width": 2.0 * HOLE - CLEARANCE,
                "end_below_tool": self.end, "mass": MASS,
            },
            "hole": {
                "shape": "square, its sides along x and y of the base", "width": 2.0 * HOLE, "depth": RIM,
                "block_width": 2.0 * BLOCK,
            },
            "references": {"hole_position": "the middle of the hole at its rim, less exact by bias.hole_position"},
            "success": {"deeper_than_m": DEEP, "for_s": HELD * PERIOD},
        }  # fmt: skip

    def physical_ranges(self) -> dict[str, Range]:
        """All that differs between episodes."""
        return {
            "initial/pose": Range.fixed(0.0, 1.0),
            "initial/way": Range.fixed(-WAY, WAY, count=2, unit="m"),
            "initial/grasp": Range.fixed(-0.002, 0.002, count=2, unit="m"),
            "initial/yaw": Range.fixed(-0.015, 0.015, unit="rad"),
            "clearance": Range.fixed(CLEARANCE, CLEARANCE, unit="m"),
            "peg_friction": Range.fixed(0.2, 0.5, limits=NOT_NEGATIVE),
            "peg_mass": Range.fixed(0.5, 2.0, unit="×"),
            "bias/hole_position": Range.fixed(-KNOWN, KNOWN, count=3, unit="m"),
            **arm_ranges(),
        }

    # --- simulation ----------------------------------------------------------------------------------------------

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> Articulated:
        return simulated(self, n, device)

    def simulate(self, engine: Callable[..., Articulated], n: int, **settings: Any) -> Articulated:
        """n arms with a peg and a block with a hole in an engine, a class of ``robo_rl.sim.plants``."""
        x, y = self.space.origin[0, :2].tolist()
        thick = HOLE - 0.5 * CLEARANCE
        peg = FreeObject("peg", "box", (thick, thick, LENGTH), MASS, position=(x, y, RIM + 2.0 * LENGTH))
        hole = FreeObject("hole", mjcf=block(), position=(x, y, RIM))
        return engine(dataclasses.replace(self.card.mechanism, objects=(peg, hole)), n, PERIOD, **settings)

    def engines(self) -> list[Engine]:
        from robo_rl.sim.tasks.arm import engines

        return engines.engines(self)

    def randomize(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        nominal = plant.nominal
        mass, size, friction = (plant.param(f"object_{name}") for name in ("mass", "size", "friction"))
        mass[ids, 0] = nominal.object_mass[:, 0] * drawn["peg_mass"].to(mass)
        size[ids, 0, :2] = (HOLE - 0.5 * drawn["clearance"].to(size))[:, None]
        friction[ids] = drawn["peg_friction"].to(friction)[:, None]
        randomize_arm(self.card, plant, ids, drawn)

    # --- episodes ------------------------------------------------------------------------------------------------

    def _pose(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m,) number of the arm's pose in the workspace's."""
        return (self.first + drawn["initial/pose"] * (self.last - self.first)).long().clamp(max=self.last - 1)

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, 1): control steps for which the peg has been in."""
        return torch.zeros(len(drawn["initial/pose"]), 1)

    def place(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        pose, upright = self._pose(drawn), torch.tensor([0.0, 0.0, 0.0, 1.0])
        tool = self.space.places[pose]
        room = torch.tensor([self.space.lower[:2], self.space.upper[:2]])
        level = torch.clamp(tool[:, :2] + drawn["initial/way"], room[0] + ROOM, room[1] - ROOM)
        half_yaw = 0.5 * drawn["initial/yaw"]
        zero = torch.zeros_like(half_yaw)
        x, z = drawn["initial/grasp"].unbind(-1)
        peg = tool + torch.stack([x, zero, z - BELOW], -1)
        thick = HOLE - 0.5 * drawn["clearance"]
        plant.place(
            ids,
            **Joints(self.card).apart(self.space.angles[pose], "position"),
            gripper_position=self.space.closed_on(thick - 2e-4)[:, None],
            peg_position=peg,
            peg_orientation=upright.expand(len(ids), 4),
            hole_position=torch.cat([level, torch.full_like(level[:, :1], RIM)], -1),
            hole_orientation=torch.stack([zero, zero, torch.sin(half_yaw), torch.cos(half_yaw)], -1),
        )

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        return {"been_in": goal[:, :1]}

    def advance(self, truth: Tensors, goal: Any) -> Any:
        return torch.where(self._is_in(truth)[:, None], truth["been_in"] + 1.0, 0.0)

    # --- what runs on the robot ----------------------------------------------------------------------------------

    def _away(self, signals: Tensors) -> Any:
        """(n, 3) m, the way from the peg's end to the middle of the rim, as measured."""
        down = torch.tensor([[0.0, 0.0, self.end]])
        return signals["hole_position"] - signals["tool_position"] + down

    def _depth(self, signals: Tensors, memory: Tensors) -> Any:
        """(n,) m, how far the peg's end is below the rim as it was touched."""
        seen = signals["hole_position"][:, 2] + self.end
        return below_rim(signals["tool_position"][:, 2], memory["touched"][:, 0], seen)

    def _point(self, memory: Tensors) -> Any:
        """(n, 2) m, of the spiral."""
        return torch.stack(spiral(memory["search"][:, 0], torch.sin, torch.cos), -1)

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        away, point, depth = self._away(signals), self._point(memory), self._depth(signals, memory)
        aside = away[:, :2] + point
        return torch.cat(
            [
                torch.clamp(25.0 * away, -4.0, 4.0),
                torch.clamp(200.0 * aside, -3.0, 3.0),
                torch.clamp(100.0 * away[:, 2:], -3.0, 3.0),
                torch.clamp(10.0 * signals["tool_linear_velocity"], -3.0, 3.0),
                torch.clamp(100.0 * memory["deflection"], -3.0, 3.0),
                300.0 * point,
                torch.clamp(400.0 * depth[:, None], -3.0, 3.0),
                2.0 * memory["search"] / SEARCH_TIME - 1.0,
                torch.clamp(20.0 * aside, -2.0, 2.0),
            ],
            -1,
        )

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        moved = STEP / self.hand.step * torch.clamp(action, -1.0, 1.0)
        closed = 0.0 * moved[:, :1] - 1.0
        return self.hand.command(torch.cat([moved, closed], -1), memory)

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        height, upwards = signals["tool_position"][:, 2], signals["tool_linear_velocity"][:, 2]
        contact = pressed(memory["deflection"][:, 2], upwards, -self._away(signals)[:, 2])
        touching = contact * memory["contact"][:, 0]  # twice: a hand that has just been told to go down is not pressed
        clock = searched(memory["search"][:, 0], touching, self._depth(signals, memory), PERIOD)
        return {
            **self.hand.remember(memory, signals, commands),
            "deflection": signals["tool_position"] - commands["tool_position_target"],
            "contact": contact[:, None],
            "touched": touched(memory["touched"][:, 0], height, touching)[:, None],
            "search": clock[:, None],
        }

    def script(self, signals: Tensors, memory: Tensors) -> Any:
        """(n, 3) actions of the script."""
        depth = self._depth(signals, memory)
        ahead = insert(self._away(signals).unbind(-1), depth, self._point(memory).unbind(-1))
        return torch.stack([torch.clamp(x / STEP, -1.0, 1.0) for x in ahead], -1)

    def hold(self, signals: Tensors, memory: Tensors) -> Any:
        """The target is where the tool is: the peg is not pressed on anything."""
        return 0.0 * signals["tool_position"]

    def family(self, truth: Mapping[str, Tensor]) -> Tensor:
        """The peg's end beside the hole above the rim, on the rim, and below it in the hole."""
        left = self._ends(truth)
        aside, depth = left[:, :2].norm(dim=-1), left[:, 2] + RIM
        found = torch.where((aside < BESIDE) & (depth < -TOUCHING) & (depth > -RIM), 0, -1)
        found = torch.where((aside < BESIDE) & (depth.abs() <= TOUCHING), 1, found)
        inside = (aside < HOLE) & (depth > TOUCHING) & (depth < DEEP)
        return torch.where(inside, 2, found)

    def controller(self) -> Any:
        """The script, as part of the policy's own graph."""
        return Scripted(self, self.script)

    # --- reward and end ------------------------------------------------------------------------------------------

    def _ends(self, truth: Tensors) -> Any:
        """(n, 3) m, the way from the peg's end to the middle of the hole's ground."""
        x, y, z, w = truth["peg_orientation"].unbind(-1)
        axis = torch.stack([2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)], -1)
        ground = torch.tensor([[0.0, 0.0, -RIM]])
        return truth["hole_position"] + ground - truth["peg_position"] + LENGTH * axis

    def _is_in(self, truth: Tensors) -> Any:
        """(n,) whether the peg's end is deep enough in the hole."""
        left = self._ends(truth)
        return (left[:, 2] > DEEP - RIM) & (left[:, :2].square().sum(-1) < HOLE**2)

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        return {
            "success": torch.where(self.succeeded(truth), 1.0, 0.0),
            "change": self.hand.change(commands, previous),
        }

    def errors(self, truth: Tensors) -> dict[str, Any]:
        """How far the peg's end is from the hole's ground, (n,) m."""
        return {"peg_position_error": torch.sqrt(self._ends(truth).square().sum(-1))}

    def failed(self, truth: Tensors) -> Any:
        """Whether the hand has lost the peg."""
        down = torch.tensor([[0.0, 0.0, BELOW]])
        return (truth["peg_position"] - truth["tool_position"] + down).square().sum(-1) > LOST**2

    def failures(self, truth: Tensors) -> dict[str, Any]:
        return {"peg lost by the hand": self.failed(truth)}

    def succeeded(self, truth: Tensors) -> Any:
        return self._is_in(truth) & (truth["been_in"][:, 0] > HELD - 1.5)

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        left = self._ends(truth)
        return torch.cat(
            [
                25.0 * left,
                torch.clamp(200.0 * left, -4.0, 4.0),
                10.0 * truth["tool_linear_velocity"],
                torch.clamp(0.05 * truth["pad_force"], 0.0, 4.0),
                truth["been_in"],
                300.0 * (truth["tool_position"] - truth["peg_position"])[:, :2],
                parameters.object_friction[:, :1],
                500.0 * (HOLE - parameters.object_size[:, 0, :1]),
                50.0 * parameters.command_delay[:, :1],
            ],
            -1,
        )

    def markers(self, truth: Tensors) -> list[Marker]:
        return [Sphere("hole", truth["hole_position"], radius=0.008)]


def block() -> str:
    """The block with the hole as MJCF of four walls and a plate, its origin in the middle of the rim."""
    wall, plate = 0.5 * (BLOCK - HOLE), 0.002
    height = 0.5 * (RIM - plate)
    at = HOLE + wall
    walls = "".join(
        f'<geom type="box" size="{sx} {sy} {height}" pos="{x} {y} {-height}" rgba="0.55 0.58 0.62 1"/>'
        for sx, sy, x, y in (
            (wall, BLOCK, at, 0), (wall, BLOCK, -at, 0), (HOLE, wall, 0, at), (HOLE, wall, 0, -at),
        )
    )  # fmt: skip
    plate_at = f'size="{BLOCK} {BLOCK} {0.5 * plate}" pos="0 0 {0.5 * plate - RIM}"'
    inertia = HEAVY * BLOCK**2 / 3
    inertial = f'<inertial mass="{HEAVY}" pos="0 0 {-0.5 * RIM}" diaginertia="{inertia} {inertia} {2 * inertia}"/>'
    return (
        f'<mujoco><worldbody><body name="hole">{inertial}{walls}'
        f'<geom type="box" {plate_at} rgba="0.55 0.58 0.62 1"/></body></worldbody></mujoco>'
    )
