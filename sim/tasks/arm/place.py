"""Placing: an arm lifts a cube off the ground, carries it to a place at least 10 cm away, sets it down and lets go.

A script (``robo_rl.controllers.skills.placing``) makes a rough movement, which is in the policy's memory; the
network adds what is to
be quicker, gentler or more exact (residual learning: Silver et al. 2018, Johannink et al. 2019), so that a network that
gives nothing is the script. Rewarded is progress: the potential below rises from the hand's approach over grasp, lift
and transport to the cube at rest at its place, and only what exceeds the episode's best so far counts (as in MuJoCo
Playground's PandaPickCube, Zakka et al. 2025); so nothing is to be gained by waiting or by doing something twice. Some
episodes begin on the way at first (``starts``), fewer as more succeed, and none in an evaluation. An episode succeeds
once the cube was lifted by 4 cm, and lies within 2 cm of its place, at rest and free, for a fifth of a second.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Safety, Signal, StateBlock
from robo_rl.controllers.skills.placing import GAIN, SOFT, Grasp, Sizes, by_standstill, place
from robo_rl.sim.drawing import Marker, Sphere
from robo_rl.sim.engines import Engine
from robo_rl.sim.plants import Articulated
from robo_rl.sim.ranges import NOT_NEGATIVE, PROBABILITY, Range, Rule
from robo_rl.sim.robots.arm import ArmCard, load_arm
from robo_rl.sim.robots.mechanism import FreeObject
from robo_rl.sim.tasks import Measure, Spec, Task, Tensors
from robo_rl.sim.tasks.arm.hand import XYZ, hand
from robo_rl.sim.tasks.arm.joints import Joints
from robo_rl.sim.tasks.arm.physical import (
    arm_envelope,
    arm_facts,
    arm_ranges,
    cube_facts,
    randomize_arm,
    simulated,
    wide_facts,
    wide_ranges,
)
from robo_rl.sim.tasks.arm.starts import Start, ranges, start
from robo_rl.sim.tasks.arm.workspace import LIFTED, workspace
from robo_rl.sim.tasks.scripted import Scripted

PERIOD = 0.02  # s
NEAR = 0.02  # m, from the cube's place, level
LOW = 0.008  # m, of the cube above where it would lie
SLOW = 0.05  # m/s, of the cube
LOADED = 0.3  # N, on a pad that touches
HELD = 10  # control steps for which the cube has to lie
STILL, PRESS = 1 / 80, 1 / 40  # of the gripper's way: per step, less is standing still; closing further is pressing
PACE = 0.4  # of the gripper's pace, per step
CAREFUL = 0.35  # of the way that is left, for servos whose stiffness is hardly known: stiff ones swing with more
FIRM = 1.15  # half edges of the nominal cube: a gripper that is closed further than that holds one
SLACK = 0.03  # half edges by which the script is unsure of that
WIDE = 0.8  # half edges over which decisions by a distance change, where the tool's place is a sum over joint angles,
EASE = 0.25  # and of the gripper's way to what is decided, per step: the last bits of sums differ between computers
EMPTY, UNKNOWN = 0.4, 0.5  # of the gripper's way from closed to the smallest cube, up to which it is empty; pads yield
DROP, LET_GO = 0.2, 0.6  # half edges, how high a cube is let go; with one jaw that moves, it is pushed up while gripped
ASIDE = 0.6  # half edges, of a cube from the middle of an open gripper with one jaw that moves; turned, it is wider
HOP = 2.5  # half edges, how high the script carries a cube; at least what counts as lifted, and a quarter
ADDED = 0.5  # of an action of the script, that an output of 1 of the network adds
POSE_DELAY = (0.02, 0.06)  # s, of a camera's pose of the cube
OLDEST = 0.5  # s, of a pose that still tells something
USUAL = (0.85, 1.1)  # edges of cubes, over that of the card's
ABOVE = torch.tensor([0.0, 0.0, 1e-4])  # m, of objects over what they lie on, at first


class Place(Task[Articulated]):
    """Lift a cube and place it, with an arm whose gripper points down."""

    name = "arm-place"
    summary = "lift a cube and place it"
    card_type: type[Any] = ArmCard
    period = PERIOD
    plants: tuple[str, ...] = ("mujoco", "warp")
    solving: Mapping[str, float] = MappingProxyType({"impratio": 10.0, "tolerance": 1e-6})
    measures = (Measure("cube_position_error", "m", "end", 0.1),)
    perturbed: tuple[str, ...] = (
        "cube_mass", "cube_friction", "cube_size", "strength", "command_delay", "delay/cube_position", "noise",
    )  # fmt: skip
    action_size = 4
    action_names = (*XYZ, "gripper")
    goal_size = 6
    student: str | None = "arm-place-depth"
    settings = MappingProxyType(
        {
            "ppo": {
                "updates": 50,
                "gamma": 0.995,
                "environments": 256,
                "horizon": 32,
                "hidden": (128, 128),
                "critic_hidden": (128, 128),
                "activation": "elu",
                "initial_deviation": 0.2,
                "entropy": 0.0,
                "desired_kl": 0.015,
                "anneal": 0.3,
            }
        }
    )

    wide = True
    """Whether all is drawn that the card tells to differ: its cube, its pads, its servos' stiffness."""
    weights = {"progress": 1.0, "success": 6.0, "change": -0.001, "time": -0.01}

    def __init__(self, card: ArmCard | None = None) -> None:
        from robo_rl.sim.tasks.arm.room import require_lift, require_room  # MuJoCo, which lists of tasks do without

        card = card or load_arm("panda")
        self.card, self.space = card, workspace(card)
        require_room(card, self.space)
        require_lift(card, self.space, self.lift(card))
        self.half, self.near, self.held = 0.5 * card.grasp.size, NEAR, HELD
        self.hand = hand(card, self.space.lower, self.space.upper)
        self.observation_size = 17 + self.hand.motion_size
        less, gripped, more = self.space.closed_on(self.half * (FIRM + torch.tensor([-SLACK, 0.0, SLACK]))).tolist()
        jaw, (least, _) = card.gripper.joint, self.edges()
        smallest = float(self.space.closed_on(torch.tensor(least * self.half)))
        way = jaw.upper - jaw.lower
        both = not card.one_jaw
        hop = max(HOP * self.half, 1.25 * LIFTED)
        self.sizes = Sizes(
            self.half, hop, hop, gripped, jaw.lower + (UNKNOWN if self.wide else EMPTY) * (smallest - jaw.lower),
            soft=(SOFT if card.impedance else WIDE) * self.half, slack=more - less,
            drop=(DROP if both else LET_GO) * self.half, opened=jaw.upper, aside=ASIDE * self.half,
            arriving=SOFT * self.half, still=STILL * way, press=PRESS * way, half_open=jaw.upper - 0.5 * way,
            least=least * self.half if self.wide and card.impedance else 0.0,
            gain=CAREFUL if self.wide and card.servo_stiffness else GAIN,
        )  # fmt: skip
        far = (2.0,) * 3
        self.spec = Spec(
            name=self.name,
            summary=self.summary,
            robot=card,
            control_period=PERIOD,
            episode_length=6.0,
            signals=(
                *self.hand.signals,
                Signal("cube_position", XYZ, "m", "base", (-2.0,) * 3, far, noise=(0.001,) * 3, delay=POSE_DELAY),
                Signal("cube_age", ("age",), "s", "cube", (0.0,), (OLDEST,), source="runtime", age_of="cube_position"),
                Signal("cube_position_setpoint", XYZ, "m", "base", (-2.0,) * 3, far, source="operator"),
            ),
            commands=self.hand.commands,
            memory=(
                *self.hand.memory,
                StateBlock("script", (5,), (0.0, 0.0, 0.0, 0.25, 0.0)),
                StateBlock("jaw", (3,), (jaw.upper, 0.0, jaw.upper)),
            ),
            safety=Safety(signal_timeout=0.06, envelope=arm_envelope(card, self.space)),
            reward=dict(self.weights),
            ranges=self.physical_ranges(),
            rules=(Rule("initial/family", "success", up=0.5, down=0.5, step=0.03),),
            facts=self.facts(),
        )

    def facts(self) -> dict[str, Any]:
        """What the contract tells of the task."""
        told = self._facts()
        return {**told, **wide_facts(self.card, self.sizes, told["object"])} if self.wide else told

    def _facts(self) -> dict[str, Any]:
        return {
            **arm_facts(self.card, self.space),
            "object": cube_facts(self.card, self.physical_ranges()["cube_friction"]),
            "references": {
                "cube_position": "the cube's centre; its edges stand along the tool's within initial.yaw",
                "cube_age": "since the camera saw it",
                "cube_position_setpoint": "where the cube's centre is to be, as it lies on the ground",
            },
            "success": {
                "cube_within_m": self.near, "height_within_m": LOW, "slower_than_m_s": SLOW, "lifted_m": LIFTED,
                "for_s": round(self.held * self.period, 6), "free": "neither pad touches it",
            },
        }  # fmt: skip

    def edges(self) -> tuple[float, float]:
        """The least and the greatest edge of cubes, over that of the card's."""
        grasp = self.card.grasp
        return grasp.edges if self.wide else USUAL

    def lift(self, card: ArmCard) -> float:
        """m, by which success wants the cube lifted from the ground."""
        return LIFTED

    def physical_ranges(self) -> dict[str, Range]:
        """All that differs between episodes."""
        return {
            **ranges(),
            "cube_mass": Range.fixed(0.5, 2.0, unit="×"),
            "cube_size": Range.fixed(*self.edges(), unit="×"),
            "cube_friction": Range.fixed(0.5, 1.5, limits=NOT_NEGATIVE),
            "delay/cube_position": Range.fixed(*POSE_DELAY, unit="s"),
            "dropout/cube_position": Range.fixed(0.0, 0.1, limits=PROBABILITY),
            **arm_ranges(),
            **(wide_ranges(self.card) if self.wide else {}),
        }

    # --- simulation ----------------------------------------------------------------------------------------------

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> Articulated:
        return simulated(self, n, device)

    def simulate(self, engine: Callable[..., Articulated], n: int, **settings: Any) -> Articulated:
        """n arms with their objects in an engine, a class of ``robo_rl.sim.plants``."""
        return engine(dataclasses.replace(self.card.mechanism, objects=self.objects()), n, PERIOD, **settings)

    def objects(self) -> tuple[FreeObject, ...]:
        """What lies around: a cube."""
        x, y = self.space.origin[0, :2].tolist()
        return (FreeObject("cube", "box", (self.half,) * 3, self.card.grasp.mass, position=(x, y, self.half)),)

    def engines(self) -> list[Engine]:
        from robo_rl.sim.tasks.arm import engines

        return engines.engines(self)

    def randomize(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        nominal = plant.nominal
        plant.param("object_mass")[ids] = nominal.object_mass * drawn["cube_mass"].to(nominal.object_mass)[:, None]
        size = nominal.object_size * drawn["cube_size"].to(nominal.object_size)[:, None, None]
        plant.param("object_size")[ids] = size
        friction = drawn["cube_friction"].to(nominal.object_friction)[:, None]
        plant.param("object_friction")[ids] = friction
        randomize_arm(self.card, plant, ids, drawn)

    # --- episodes ------------------------------------------------------------------------------------------------

    def _start(self, drawn: Mapping[str, Tensor]) -> Start:
        return start(self.card, self.space, self.half * drawn["cube_size"], drawn)

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, 6): the cube's place (m), whether it was lifted, steps for which it lies there, the best potential."""
        begun = self._start(drawn)
        zero = torch.zeros(len(begun.place), 1)
        return torch.cat([begun.place, begun.lifted[:, None], zero, zero - 1.0], -1)

    def place(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        plant.place(ids, **self.begun(self._start(drawn), drawn))

    def begun(self, start: Start, drawn: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The parts of the plant's state that episodes begin with."""
        return {
            **Joints(self.card).apart(self.space.angles[start.pose], "position"),
            "gripper_position": start.gripper[:, None],
            "cube_position": start.cube + ABOVE,
            "cube_orientation": turned(start.yaw),
        }

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        return {
            "cube_position_setpoint": goal[:, :3],
            "lifted": goal[:, 3:4],
            "lain": goal[:, 4:5],
            "best": goal[:, 5:6],
        }

    def advance(self, truth: Tensors, goal: Any) -> Any:
        lifted = torch.maximum(truth["lifted"], torch.where(self._height(truth) > 1.0, 1.0, 0.0)[:, None])
        lain = torch.where(self._placed(truth)[:, None], truth["lain"] + 1.0, 0.0)
        best = torch.maximum(truth["best"], self.potential(truth)[:, None])
        return torch.cat([goal[:, :3], lifted, lain, best], -1)

    # --- what runs on the robot ----------------------------------------------------------------------------------

    def wanted(self, signals: Tensors) -> Any:
        """(n, 3) m, where the cube is to be, as measured."""
        return signals["cube_position_setpoint"]

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        tool, jaw = self.hand.tool(signals), self.card.gripper.joint
        cube, wanted = signals["cube_position"], self.wanted(signals)
        way = wanted - cube
        return torch.cat(
            [
                8.0 * (tool - self.space.origin),
                torch.clamp(10.0 * (cube - tool), -4.0, 4.0),
                torch.clamp(8.0 * way, -4.0, 4.0),
                20.0 * (cube[:, 2:] - wanted[:, 2:]),
                self.hand.motion(signals),
                2.0 * (signals["gripper_position"] - jaw.lower) / (jaw.upper - jaw.lower) - 1.0,
                5.0 * signals["cube_age"],
                memory["script"],
            ],
            -1,
        )

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        return self.hand.command(memory["script"][:, :4] + ADDED * action, memory)

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        return {
            **self.hand.remember(memory, signals, commands),
            "script": self._script(memory, signals),
            **self._jaw(memory, signals, commands),
        }

    def _jaw(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        """Where the gripper is, by how much it moves per step, and what it is told."""
        parts = signals["gripper_position"], self._pace(memory, signals), commands["gripper_position_target"]
        return {"jaw": torch.cat(parts, -1)}

    def _pace(self, memory: Tensors, signals: Tensors) -> Any:
        """(n, 1)."""
        last, pace = memory["jaw"][:, :1], memory["jaw"][:, 1:2]
        return pace + PACE * (signals["gripper_position"] - last - pace)

    def _grasp(self, memory: Tensors, signals: Tensors) -> Grasp:
        """What the gripper tells by itself."""
        pace, target = self._pace(memory, signals)[:, 0], memory["jaw"][:, 2]
        return by_standstill(signals["gripper_position"][:, 0], pace, target, self.sizes)

    def _script(self, memory: Tensors, signals: Tensors, wanted: Any = None) -> Any:
        """(n, 5): the action that the script takes next, and its estimate whether the cube is held."""
        wanted = self.wanted(signals) if wanted is None else wanted
        ahead, opened, grip = place(
            self.hand.tool(signals).unbind(-1), signals["cube_position"].unbind(-1),
            wanted.unbind(-1), signals["gripper_position"][:, 0], memory["script"][:, 4],
            signals["cube_age"][:, 0], self.sizes, self.hand.facing(signals), self._grasp(memory, signals),
        )  # fmt: skip
        moved = [torch.clamp(x / self.hand.step, -1.0, 1.0) for x in ahead]
        grasp = 2.0 * opened - 1.0
        if self.card.impedance is None:
            grasp = memory["script"][:, 3] + EASE * (grasp - memory["script"][:, 3])
        return torch.stack([*moved, grasp, grip], -1)

    def controller(self) -> Any:
        """The script alone, as part of the policy's own graph."""
        return Scripted(self, lambda signals, memory: torch.zeros(len(memory["script"]), self.action_size))

    # --- reward and end ------------------------------------------------------------------------------------------

    def destination(self, truth: Tensors) -> Any:
        """(n, 3) m, where the cube truly is to be."""
        return self.wanted(truth)

    def _height(self, truth: Tensors) -> Any:
        """(n,) how high the cube is: 0 where it lies, and 1 where it counts as lifted."""
        return (truth["cube_position"][:, 2] - self.destination(truth)[:, 2]) / LIFTED

    def _grasped(self, truth: Tensors) -> Any:
        """(n,) whether both pads press on something, the cube between them."""
        near = (truth["tool_position"] - truth["cube_position"]).square().sum(-1) < (1.5 * self.half) ** 2
        return near & (truth["pad_force"][:, 0] > LOADED) & (truth["pad_force"][:, 1] > LOADED)

    def _placed(self, truth: Tensors) -> Any:
        """(n,) whether the cube, once lifted, lies at its place at rest and free."""
        away = truth["cube_position"] - self.destination(truth)
        near = away[:, :2].square().sum(-1) < self.near**2
        slow = truth["cube_linear_velocity"].square().sum(-1) < SLOW**2
        free = (truth["pad_force"][:, 0] < LOADED) & (truth["pad_force"][:, 1] < LOADED)
        return near & (away[:, 2].abs() < LOW) & slow & free & (truth["lifted"][:, 0] > 0.5)

    def closeness(self, distance: Any, sharp: float) -> Any:
        """(n,) 1 at a distance of 0, falling to 0 over 1 / ``sharp`` m."""
        return 1.0 - torch.tanh(sharp * distance)

    def potential(self, truth: Tensors) -> Any:
        """(n,) 0 to 9: how far the episode has come."""
        tool, cube, wanted = truth["tool_position"], truth["cube_position"], self.destination(truth)
        away, way = (cube - tool).square().sum(-1), (cube - wanted).square().sum(-1)
        reached = self.closeness(torch.sqrt(away + 1e-8), 8.0)
        grasped = torch.where(self._grasped(truth), 1.0, 0.0)
        height = torch.clamp(self._height(truth), 0.0, 1.0)
        lifted = torch.maximum(truth["lifted"][:, 0], grasped * height)
        carried = self.closeness(torch.sqrt(way + 1e-8), 5.0)
        placed = torch.where(self._placed(truth), 1.0, 0.0)
        there = torch.maximum(grasped, placed)
        return torch.maximum(
            reached + grasped + 2.0 * lifted * grasped + 3.0 * truth["lifted"][:, 0] * there * carried, 9.0 * placed
        )

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        best = truth["best"][:, 0]
        gained = torch.clamp(self.potential(truth) - best, min=0.0)
        return {
            "progress": torch.where(best < 0.0, 0.0, gained),
            "success": torch.where(
                self.succeeded(truth), 1.0 - self.errors(truth)["cube_position_error"] / self.near, 0.0
            ),
            "change": self.hand.change(commands, previous),
            "time": torch.ones_like(best),
        }

    def errors(self, truth: Tensors) -> dict[str, Any]:
        """How far the cube is from its place, (n,) m."""
        away = truth["cube_position"] - self.destination(truth)
        return {"cube_position_error": torch.sqrt(away.square().sum(-1))}

    def failed(self, truth: Tensors) -> Any:
        """Whether the cube has left the workspace."""
        return self.space.outside(truth["cube_position"])

    def failures(self, truth: Tensors) -> dict[str, Any]:
        return {"cube left the workspace": self.failed(truth)}

    def succeeded(self, truth: Tensors) -> Any:
        return self._placed(truth) & (truth["lain"][:, 0] > self.held - 1.5)

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        tool, cube, place = truth["tool_position"], truth["cube_position"], self.destination(truth)
        jaw = self.card.gripper.joint
        x, y, z, w = truth["cube_orientation"].unbind(-1)
        return torch.cat(
            [
                8.0 * (tool - self.space.origin),
                10.0 * (cube - tool),
                8.0 * (place - cube),
                20.0 * (cube[:, 2:] - place[:, 2:]),
                2.0 * truth["tool_linear_velocity"],
                2.0 * truth["cube_linear_velocity"],
                torch.stack([z * w, x * w, y * w], -1),
                truth["gripper_position"] / max(abs(jaw.lower), abs(jaw.upper)),
                torch.clamp(0.1 * truth["pad_force"], 0.0, 4.0),
                truth["lifted"],
                0.1 * truth["lain"],
                truth["best"],
                torch.where(self._grasped(truth), 1.0, 0.0)[:, None],
                parameters.object_friction,
                10.0 * parameters.object_mass,
                50.0 * parameters.object_size[:, 0, :1],
                50.0 * parameters.command_delay[:, :1],
            ],
            -1,
        )

    def markers(self, truth: Tensors) -> list[Marker]:
        return [Sphere("place", self.destination(truth), radius=0.018)]


def turned(yaw: Tensor) -> Tensor:
    """(m, 4) quaternions x, y, z, w of turns about the vertical by ``yaw`` (m,) rad."""
    half, zero = 0.5 * yaw, torch.zeros_like(yaw)
    return torch.stack([zero, zero, torch.sin(half), torch.cos(half)], -1)
