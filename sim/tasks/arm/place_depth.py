"""Placing by what a depth camera on the hand sees: ``arm-place`` for a robot that nobody tells where its cube is.

A policy of ``arm-place`` teaches it (``robo-rl distill``): the teacher is told the cube's place, the student gets the
image. Its network learns where the cube is, and the script of ``arm-place`` acts on that, within the policy's graph.
The memory holds whether the hand has been where its camera sees all of the workspace, where every episode goes first,
and an estimate from the gripper whether something is held. The network sees images as heights above the ground,
computed with the camera's pose of the card; the true pose differs from that a little in every episode.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Encoder, Image, Signal, StateBlock
from robo_rl.controllers.skills.placing import RATE, below, place, size
from robo_rl.sim.cameras import rays
from robo_rl.sim.engines import Engine
from robo_rl.sim.plants import Articulated
from robo_rl.sim.ranges import PROBABILITY, Range
from robo_rl.sim.robots.arm import ArmCard, load_arm
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.mechanism import DepthCamera
from robo_rl.sim.tasks import Task, Tensors
from robo_rl.sim.tasks.arm.hand import XYZ
from robo_rl.sim.tasks.arm.place import Place

NAME = "wrist_depth"
SHAPE = 36, 64
"""Rows and columns: every tenth pixel of a camera's 640 x 360, every twentieth of its 1280 x 720."""
IMAGE_DELAY = (0.02, 0.06)  # s, from exposure to arrival
AHEAD = 0.05  # m, from the middle of the workspace along the tool's x, where the hand looks first
ARRIVED, EASE = 0.05, 0.03  # m, from there, where it has looked, and over which that comes to be so
GROWTH = 1.5  # per step, of a beginning of having looked: between looking and not, a hand would stay where it is
DROP = 0.6  # half edges, how high above its place a cube is let go: its height is only seen
TALL = 0.04  # m, of a height that the network sees as 1
REACH = 0.1  # m, from the tool to where the cube is seen, that the network tells by 1


class PlaceDepth(Place):
    """Lift a cube and place it, by a depth image."""

    name = "arm-place-depth"
    summary = "lift a cube and place it, by the depth image of a camera on the hand"
    action_size = 3
    plants: tuple[str, ...] = ()
    student = None
    wide = False
    encoders = (Encoder("wrist", (2, *SHAPE), "convolution", (8, 16, 24), 64),)
    perturbed: tuple[str, ...] = (
        "cube_mass", "cube_friction", "cube_size", "strength", "command_delay", f"delay/{NAME}", "noise",
        f"grain/{NAME}", f"holes/{NAME}", f"edge_holes/{NAME}",
    )  # fmt: skip
    settings = MappingProxyType(
        {
            "distilled": {
                "hidden": (128, 128),
                "activation": "elu",
                "environments": 96,
                "mixed": 4,
                "learning_rate": 1e-3,
                "teacher_part": 0.5,
            }
        }
    )

    def __init__(self, card: ArmCard | None = None) -> None:
        card = card or load_arm("panda")
        camera = card.camera
        if camera is None or card.impedance is None or card.turned is None:
            raise CardError(
                f"robot '{card.name}' has no [camera], or its tool's turn is not kept by an [impedance]; '{self.name}' "
                "expects a card with both"
            )
        from scipy.spatial.transform import Rotation  # takes a while to load, and tasks are listed by every command

        super().__init__(card)
        self.sizes = self.sizes._replace(drop=DROP * self.half)
        self.camera = DepthCamera(
            NAME, card.tool, SHAPE, camera.fov, camera.position, camera.orientation, *camera.range
        )
        tool = Rotation.from_quat(card.turned)
        ahead = tool.apply([AHEAD, 0.0, 0.0])
        top = torch.tensor([[*self.space.origin[0, :2].tolist(), self.space.upper[2]]])
        low, high = torch.tensor([self.space.lower]), torch.tensor([self.space.upper])
        self.look = torch.minimum(torch.maximum(top + torch.tensor(ahead).float(), low), high)
        """(1, 3) m, where the hand goes first."""
        across = rays(SHAPE, camera.fov)
        turn = (tool * Rotation.from_quat(camera.orientation)).as_matrix()
        self.rise = torch.from_numpy(turn[2, 0] * across[0] + turn[2, 1] * across[1] + turn[2, 2]).float()
        """(rows, columns): by how much a point is higher than the camera, per depth."""
        self.above = float(tool.apply(camera.position)[2])
        """m, of the camera above the tool."""
        self.observation_size = 7 + self.hand.motion_size
        self.spec = dataclasses.replace(
            self.spec,
            signals=(
                *self.hand.signals,
                Signal(
                    NAME, (), "m", "camera", 0.0, camera.range[1], shape=SHAPE, period=camera.period,
                    layout=Image("depth with holes", camera.fov), delay=IMAGE_DELAY,
                ),
                Signal(
                    "cube_position_setpoint", XYZ, "m", "base", (-2.0,) * 3, (2.0,) * 3, source="operator"
                ),
            ),
            memory=(
                *self.hand.memory,
                StateBlock("looked", (1,), (0.0,)),
                StateBlock("grip", (1,), (0.0,)),
                StateBlock("gripper", (1,), (self.card.gripper.joint.upper,)),
                StateBlock("goal", (3,), (0.0, 0.0, 0.0)),
            ),
        )  # fmt: skip

    def physical_ranges(self) -> dict[str, Range]:
        """As of ``arm-place``, and the camera's."""
        assert self.card.camera is not None
        grain = self.card.camera.noise
        return {
            **super().physical_ranges(),
            f"delay/{NAME}": Range.fixed(*IMAGE_DELAY, unit="s"),
            f"dropout/{NAME}": Range.fixed(0.0, 0.05, limits=PROBABILITY),
            f"grain/{NAME}": Range.fixed(0.5 * grain, 2.0 * grain, unit="1/m"),
            f"holes/{NAME}": Range.fixed(0.0, 0.05, limits=PROBABILITY),
            f"edge_holes/{NAME}": Range.fixed(0.0, 0.5, limits=PROBABILITY),
            "camera/place": Range.fixed(-0.002, 0.002, count=3, unit="m"),
            "camera/turn": Range.fixed(-0.01, 0.01, count=3, unit="rad"),
        }

    def simulate(self, engine: Callable[..., Articulated], n: int, **settings: Any) -> Articulated:
        return super().simulate(_with(engine, self.camera), n, **settings)

    def engines(self) -> list[Engine]:
        return [engine for engine in super().engines() if engine.name != "bullet"]  # which draws no images

    def randomize(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        super().randomize(plant, ids, drawn)
        error = torch.cat([drawn["camera/place"], drawn["camera/turn"]], -1)
        plant.param("camera_mount")[ids] = error.to(plant.nominal.camera_mount)[:, None]

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        tool, jaw = signals["tool_position"], self.card.gripper.joint
        vector = [
            8.0 * (tool - self.space.origin),
            20.0 * tool[:, 2:],
            self.hand.motion(signals),
            2.0 * (signals["gripper_position"] - jaw.lower) / (jaw.upper - jaw.lower) - 1.0,
            memory["looked"],
            memory["grip"],
        ]
        depth = signals[NAME]
        height = tool[:, 2, None, None] + self.above + depth * self.rise
        known = torch.where(depth > 0.0, 1.0, 0.0)
        image = torch.stack([known * torch.clamp(height / TALL, -1.0, 4.0), 4.0 * depth], 1)
        return {"policy": torch.cat(vector, -1), "wrist": image}

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        tool = memory["tool"]
        seen = tool + REACH * torch.clamp(action, -4.0, 4.0)
        ahead, opened, _ = place(
            tool.unbind(-1), seen.unbind(-1), memory["goal"].unbind(-1), memory["gripper"][:, 0], memory["grip"][:, 0],
            0.0 * tool[:, 0], self.sizes,
        )  # fmt: skip
        script = torch.stack([*(x / self.hand.step for x in ahead), 2.0 * opened - 1.0], -1)
        first = torch.cat([(self.look - tool) / self.hand.step, torch.ones_like(tool[:, :1])], -1)
        looked = memory["looked"]
        return self.hand.command(looked * script + (1.0 - looked) * first, memory)

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        sizes, gripper = self.sizes, signals["gripper_position"]
        away = signals["tool_position"] - self.look
        there = below(size(size(away[:, :1], away[:, 1:2]), away[:, 2:]), ARRIVED, EASE)
        closed = below(gripper, sizes.gripped, sizes.slack) * below(sizes.empty, gripper, sizes.slack)
        return {
            **self.hand.remember(memory, signals, commands),
            "looked": torch.clamp(torch.maximum(GROWTH * memory["looked"], there), max=1.0),
            "grip": memory["grip"] + RATE * (closed - memory["grip"]),
            "gripper": gripper,
            "goal": signals["cube_position_setpoint"],
        }

    def controller(self) -> None:
        """None: the script needs the cube's place."""
        return None

    # --- what a teacher of arm-place gives ------------------------------------------------------------------------

    def beside(self, teacher: Task) -> Task:
        """With the teacher's signals too."""
        both = copy.copy(self)
        known = {signal.name for signal in self.spec.signals}
        more = tuple(signal for signal in teacher.spec.signals if signal.name not in known)
        both.spec = dataclasses.replace(self.spec, signals=(*self.spec.signals, *more))
        return both

    def imitated(self, commands: Tensors, signals: Tensors, memory: Tensors) -> Tensor:
        return (signals["cube_position"] - signals["tool_position"]) / REACH


def _with(engine: Any, camera: DepthCamera) -> Any:
    """An engine whose robots have a camera."""
    return lambda mechanism, *rest, **settings: engine(
        dataclasses.replace(mechanism, cameras=(camera,)), *rest, **settings
    )
