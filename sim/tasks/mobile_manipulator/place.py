"""Fetch and place: a base with two driven wheels drives its arm to a cube, lifts it, and sets it down somewhere else.

What the arm does, what counts as placed, and the reward are those of ``robo_rl.sim.tasks.arm.place``, in the frame
of the base.
A camera sees the cube in that frame; its place is given in the frame of the odometry, which drifts. The script drives
until the cube is in the arm's reach (``robo_rl.controllers.skills.approaching``), and, once it is held, until its
place is; the
network corrects both. An episode succeeds once the cube was lifted by 4 cm, and lies within 5 cm of its true place, at
rest and free, for a fifth of a second: what the odometry gets wrong on the way counts.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Command, Signal, StateBlock
from robo_rl.controllers.skills.approaching import Reach, approach, approach_all_ways, settled
from robo_rl.controllers.skills.placing import SURE, UNSURE, Grasp, below, by_width
from robo_rl.sim.drawing import Marker, Sphere
from robo_rl.sim.engines import Engine
from robo_rl.sim.plants import Articulated
from robo_rl.sim.plants.mobile_manipulator import MobileManipulatorPlant
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.mobile_manipulator import CARD, MobileManipulatorCard
from robo_rl.sim.tasks import Tensors, any_of
from robo_rl.sim.tasks.arm.hand import XYZ
from robo_rl.sim.tasks.arm.place import ADDED, OLDEST, POSE_DELAY, Place
from robo_rl.sim.tasks.arm.starts import Start, ranges
from robo_rl.sim.tasks.mobile_base.lidar_base import PLANE, randomize_motors

PERIOD = 0.04  # s
HELD = 5  # control steps for which the cube has to lie
NEAR = 0.05  # m, from the cube's place, level
FAR = 5.0  # m, where nothing is any more
LOST = 3.0  # m, of the cube from the base
DISTANCE = (0.5, 1.2)  # m, of the cube from the base at first: its corners turn within 0.24 m
WAY = (0.3, 1.0)  # m, from the cube to its place
ASIDE = 0.1  # m, by which the script is told that a place is farther away, while the base is not there yet
STEP = 0.024  # m, of the tool at an action of 1
AROUND = 0.1  # m, from the middle of the workspace, and from the cube to its place: how far the arm's script looks


class MobilePlace(Place):
    """Drive to a cube, lift it, and place it, with an arm on a mobile base whose gripper points down."""

    name = "mobile-place"
    summary = "drive to a cube, lift it and place it"
    card_type = MobileManipulatorCard
    plants: tuple[str, ...] = ()
    action_size = 6
    period = PERIOD
    student = None
    wide = False
    perturbed = (
        "cube_mass", "cube_friction", "cube_size", "strength", "command_delay", "delay/cube_position", "speed_scale",
        "turn_scale", "motor_time", "noise",
    )  # fmt: skip

    def __init__(self, card: MobileManipulatorCard | None = None) -> None:
        self.whole = card or load_robot("turtlebot3_manipulation", CARD)
        super().__init__(self.whole.arm)
        drive, far = self.whole.drive, (FAR,) * 3
        self.hand.step = STEP
        self.sizes = self.sizes._replace(arriving=self.sizes.soft)
        self.axes = len(drive.commands)
        self.action_size = 4 + self.axes
        self.observation_size, self.near, self.held = self.observation_size + 4 + self.axes, NEAR, HELD
        self.reach = Reach(float(self.space.origin[0, 0]), drive.speed_max, drive.turn_rate_max)
        self.start_above = int((self.space.places[:, 2] < self.sizes.hop).sum())
        minus, base = (-FAR,) * 3, []
        for name, element in drive.commands:
            most, unit = (drive.turn_rate_max, "rad/s") if element == "wz" else (drive.speed_max, "m/s")
            base.append(Command(name, (element,), unit, "body", (-most,), (most,), safe=(0.0,)))
        self.spec = dataclasses.replace(
            self.spec,
            robot=self.whole,
            control_period=PERIOD,
            episode_length=30.0,
            signals=(
                # without noise: odometry at rest repeats, and is no frozen sensor
                Signal("position", PLANE, "m", "world", (-FAR, -FAR), (FAR, FAR)),
                Signal(
                    "orientation", ("x", "y", "z", "w"), "1", "body to world", (-1.001,) * 4, (1.001,) * 4,
                    kind="quaternion",
                ),
                *self.hand.signals,
                Signal("cube_position", XYZ, "m", "base", minus, far, noise=(0.002,) * 3, delay=POSE_DELAY),
                Signal("cube_age", ("age",), "s", "cube", (0.0,), (OLDEST,), source="runtime", age_of="cube_position"),
                Signal("cube_position_setpoint", XYZ, "m", "world", minus, far, source="operator"),
            ),
            commands=(*base, *self.hand.commands),
            memory=(
                *self.hand.memory,
                StateBlock("script", (5 + self.axes,), (0.0, 0.0, 0.0, 0.25, 0.0, *(0.0,) * self.axes)),
            ),
            safety=dataclasses.replace(self.spec.safety, signal_timeout=0.12),
            rules=(),
            facts=self.facts(),
        )  # fmt: skip

    def facts(self) -> dict[str, Any]:
        told, drive = super().facts(), self.whole.drive
        frames = {
            "position": "of the middle between the driven wheels, by odometry, which drifts by speed_scale, turn_scale",
            "cube_position": "the cube's centre in the frame base, x ahead, y left, z up from the ground",
            "cube_position_setpoint": "where the cube's centre is to be, in the odometry's frame",
        }
        base = {"acceleration": drive.acceleration, "turn_acceleration": drive.turn_acceleration,
                "motor_time": drive.motor_time}  # fmt: skip
        return {**told, "references": {**told["references"], **frames}, "drive": base}

    def physical_ranges(self) -> dict[str, Range]:
        physical = {name: found for name, found in super().physical_ranges().items() if name not in ranges()}
        return {
            "initial/pose": Range.fixed(0.0, 1.0),
            "initial/grip": Range.fixed(0.6, 1.0, unit="× open"),
            "initial/distance": Range.fixed(*DISTANCE, unit="m"),
            "initial/direction": Range.fixed(-math.pi, math.pi, unit="rad"),
            "initial/yaw": Range.fixed(-math.pi / 4, math.pi / 4, unit="rad"),
            "goal/way": Range.fixed(*WAY, unit="m"),
            "goal/direction": Range.fixed(-math.pi, math.pi, unit="rad"),
            **physical,
            "acceleration": Range.fixed(0.5, 1.0, unit="×"),
            "motor_time": Range.fixed(0.5, 2.0, unit="×"),
            "speed_scale": Range.fixed(0.99, 1.01, unit="×"),
            "turn_scale": Range.fixed(0.99, 1.01, unit="×"),
        }

    # --- simulation ----------------------------------------------------------------------------------------------

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> Articulated:
        if torch.device(device).type != "cpu":
            raise ValueError(f"device is {device}; arms on mobile bases are simulated on the cpu")
        return super().make_plant(n, device)

    def simulate(self, engine: Callable[..., Articulated], n: int, **settings: Any) -> Articulated:
        mechanism = dataclasses.replace(self.whole.mechanism, objects=self.objects())
        return MobileManipulatorPlant(self.whole.drive, mechanism, n, PERIOD, **settings)

    def engines(self) -> list[Engine]:
        """Other contacts and time steps of MuJoCo, which alone simulates them."""
        return [engine for engine in super().engines() if engine.name != "bullet"]

    def randomize(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        super().randomize(plant, ids, drawn)
        randomize_motors(plant, ids, drawn)

    # --- episodes ------------------------------------------------------------------------------------------------

    def _start(self, drawn: Mapping[str, Tensor]) -> Start:
        """The base at the origin, its hand high and open, and the cube around it; all in the world."""
        first, count = self.start_above, len(self.space.places)
        half = self.half * drawn["cube_size"]
        cube = _polar(drawn["initial/distance"], drawn["initial/direction"], half)
        jaw = self.card.gripper.joint
        return Start(
            pose=(first + drawn["initial/pose"] * (count - first)).long().clamp(max=count - 1),
            gripper=jaw.lower + (jaw.upper - jaw.lower) * drawn["initial/grip"],
            cube=cube,
            yaw=drawn["initial/direction"] + drawn["initial/yaw"],
            place=cube + _polar(drawn["goal/way"], drawn["goal/direction"], 0.0 * half),
            lifted=torch.zeros_like(half),
        )

    # --- what runs on the robot ----------------------------------------------------------------------------------

    def wanted(self, signals: Tensors) -> Any:
        """(n, 3) m, in the base's frame, by odometry."""
        _, _, z, w = signals["orientation"].unbind(-1)
        return _seen(signals["cube_position_setpoint"], signals["position"], 1.0 - 2.0 * z * z, 2.0 * z * w)

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        cube, goal = signals["cube_position"], self.wanted(signals)
        level = torch.cat([cube[:, :2], goal[:, :2]], -1)
        return torch.cat([super().observe(signals, memory), torch.clamp(2.0 * level, -4.0, 4.0)], -1)

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        drive = torch.clamp(memory["script"][:, 5:] + ADDED * action[:, 4:], -1.0, 1.0)
        return {
            **{
                name: most * drive[:, k : k + 1 if k + 1 < self.axes else None]
                for k, (name, most) in enumerate(self._most())
            },
            **super().command(action[:, :4], memory),
        }

    def _jaw(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        return {}

    def _grasp(self, memory: Tensors, signals: Tensors) -> Grasp:
        return by_width(signals["gripper_position"][:, 0], self.sizes)

    def _most(self) -> list[tuple[str, float]]:
        """What the base is commanded, and the greatest, m/s and rad/s."""
        most = {"wz": self.reach.turn_rate}
        return [(name, most.get(element, self.reach.speed)) for name, element in self.whole.drive.commands]

    def _script(self, memory: Tensors, signals: Tensors, wanted: Any = None) -> Any:
        """(n, 5 + axes): as the arm's, and the base's speeds and turn rate as parts of the greatest ones.

        The arm is told of nothing farther away than it reaches: its script multiplies ways by up to a thousand, and the
        last bit of a metre would be seen in commands.
        """
        cube, goal = signals["cube_position"].unbind(-1), self.wanted(signals).unbind(-1)
        held = below(SURE, memory["script"][:, 4], UNSURE)
        there = settled(goal[0], goal[1], self.reach)
        way = torch.stack([goal[0] + ASIDE * (1.0 - there) - cube[0], goal[1] - cube[1]], -1)
        middle = self.space.origin[:, :2]
        level = middle + torch.clamp(signals["cube_position"][:, :2] - middle, -AROUND, AROUND)
        aim = torch.cat([level + torch.clamp(way, -AROUND, AROUND), goal[2][:, None]], -1)
        seen = {**signals, "cube_position": torch.cat([level, cube[2][:, None]], -1)}
        way_to = approach if self.axes == 2 else approach_all_ways
        to_cube, to_goal = way_to(cube[0], cube[1], self.reach), way_to(goal[0], goal[1], self.reach)
        drive = [held * b + (1.0 - held) * a for a, b in zip(to_cube, to_goal, strict=True)]
        return torch.cat([super()._script(memory, seen, aim), torch.stack(drive, -1)], -1)

    # --- reward and end ------------------------------------------------------------------------------------------

    def destination(self, truth: Tensors) -> Any:
        heading = truth["heading_position"][:, 0]
        return _seen(truth["cube_position_setpoint"], truth["base_position"], torch.cos(heading), torch.sin(heading))

    def closeness(self, distance: Any, sharp: float) -> Any:
        """Half of it over the ways that a base drives."""
        return 0.5 * super().closeness(distance, sharp) + 0.5 * super().closeness(distance, 1.0)

    def failed(self, truth: Tensors) -> Any:
        return any_of(self.failures(truth))

    def failures(self, truth: Tensors) -> dict[str, Any]:
        cube = truth["cube_position"]
        return {
            "cube below the floor": cube[:, 2] < -0.01,
            "cube too far away": cube[:, :2].square().sum(-1) > LOST**2,
        }

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        level = torch.cat([truth["cube_position"][:, :2], self.destination(truth)[:, :2]], -1)
        moving = torch.cat([4.0 * truth["base_velocity"], truth["heading_velocity"]], -1)
        return torch.cat([super().privileged(truth, parameters), 2.0 * level, moving], -1)

    def markers(self, truth: Tensors) -> list[Marker]:
        return [Sphere("place", truth["cube_position_setpoint"], radius=0.02)]


def _polar(distance: Tensor, direction: Tensor, height: Tensor) -> Tensor:
    """(m, 3) m."""
    return torch.stack([distance * torch.cos(direction), distance * torch.sin(direction), height], -1)


def _seen(place: Any, base: Any, cosine: Any, sine: Any) -> Any:
    """(n, 3) m in the frame of a base at (n, 2) m, whose heading has this cosine and sine, of places in the world."""
    x, y = place[:, 0] - base[:, 0], place[:, 1] - base[:, 1]
    return torch.stack([cosine * x + sine * y, cosine * y - sine * x, place[:, 2]], -1)
