"""Following a clip: a robot on legs repeats a motion of its whole body (``clips``), and keeps its balance while pushed.

In the form of BeyondMimic (Liao et al. 2025) without state estimation. The policy sees the clip's joint angles and
speeds, the clip's base as seen from the robot's (two columns of a rotation matrix), body rates, joint angles and
speeds, and its last targets: 154 numbers for 29 joints. There is no velocity of the base, and no place: the clip is
compared at the robot's own place and heading, so that drift is forgiven. The anchor is the base, which has the IMU.
Targets are the clip's angles, ahead by what the motors' damping lags behind its speeds, plus what the network adds, in
quarters of the motors' torque. Gains are those that hold the stance: those of a gait don't carry a humanoid.

Which frame it is follows from the number of steps, which is memory of the graph, as is the heading in which the first
one was taken: nothing but sensors is needed. After its last frame the clip holds it. A robot begins with the first
frame, to which the gate moves its joints before (the ``start`` of the contract's command). Training begins anywhere.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Command, StateBlock
from robo_rl.controllers.rotation import body_z, heading, multiply, turn_back
from robo_rl.sim.drawing import Marker, Sphere
from robo_rl.sim.plants import Articulated
from robo_rl.sim.ranges import Range, Rule
from robo_rl.sim.robots.legged import LeggedCard, load_legged
from robo_rl.sim.robots.mechanism import Frame
from robo_rl.sim.tasks import Measure, Tensors
from robo_rl.sim.tasks.legged.clips import Clip
from robo_rl.sim.tasks.legged.clips.bodies import limb_ends, tracked_bodies
from robo_rl.sim.tasks.legged.clips.checks import require_possible
from robo_rl.sim.tasks.legged.clips.files import read_clip
from robo_rl.sim.tasks.legged.clips.generated import GENERATED
from robo_rl.sim.tasks.legged.clips.reference import Reference, angle_squared, level, seen_axes, turned_axes
from robo_rl.sim.tasks.legged.legs_stand import ON_LEGS, LegsStand, with_hold_gains
from robo_rl.sim.tasks.legged.on_legs import PERIOD

AFTER = 2.0  # s, for which the last frame is held
ASTRAY = 0.25  # m, of heights of a G1's base, hands and feet, beyond which the clip is lost (BeyondMimic)
TURNED = 0.5  # cosine of the angle between the verticals of robot and clip, likewise: 60 degrees
CLIP = 0.045  # sizes of the robot, the radius of the balls that show the clip
LIMIT = 0.9  # of a joint's range, beyond which it is penalised


class LegsTrack(LegsStand):
    """Follow a clip from its first frame to its last, and hold that, while being pushed twice by 0.5 m/s."""

    name = "g1-track-squat"
    summary = "squat and rise, following a clip, while being pushed"
    clip: str = "squat"
    """A generated clip's name, or a file beside that of the class: NAME.npz, NAME.csv."""
    robot: str = "g1"
    """Where no other is asked for."""
    survival = "whole clip"
    measures = (
        Measure("drift", "m", "end", 0.5),
        Measure("joint_error", "rad", "mean", 0.0),
        Measure("body_error", "m", "mean", 0.0),
    )
    part = 0.25  # as in BeyondMimic
    pushes = 2
    first_pushes = (0.0, 0.1)
    pushed = 3
    goal_size = pushed + 3 * pushes
    settings = MappingProxyType({"ppo": {**ON_LEGS, "updates": 400}})
    weights: Mapping[str, float] = {
        "alive": 0.5,
        "anchor_position": 0.5,
        "anchor_orientation": 1.0,
        "body_position": 1.0,
        "joint_position": 1.0,
        "joint_velocity": 0.5,
        "velocity": 1.0,
        "rates": -0.03,
        "torque": -1e-5,
        "target_change": -0.1,
        "limits": -10.0,
    }
    """Per second; of torques for a G1's mass."""

    def __init__(self, card: LeggedCard | None = None) -> None:
        card = with_hold_gains(card or load_legged(self.robot))
        clip = self.find_clip(card)
        require_possible(clip, card)
        self.bodies = tracked_bodies(card)
        self.follow = Reference(clip, card, self.bodies)
        self._ahead = torch.tensor([[joint.damping / joint.stiffness for joint in card.joints]])
        self._ends = [self.bodies.index(name) for name in limb_ends(card)]
        super().__init__(card)
        self.observation_size = 5 * len(card.joints) + 9
        middle, half = 0.5 * (self.lower + self.upper), 0.5 * LIMIT * (self.upper - self.lower)
        self._low, self._high = middle - half, middle + half
        self.spec = dataclasses.replace(self.spec, episode_length=round(clip.duration + AFTER, 6))

    def find_clip(self, card: LeggedCard) -> Clip:
        """The clip, for the robot of ``card``; ClipError where there is none."""
        if self.clip in GENERATED:
            return GENERATED[self.clip](card)
        return read_clip(Path(inspect.getfile(type(self))).parent / self.clip, card.joint_names)

    # --- the task as data -----------------------------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        """As of one that stands, with the clip (rad and m off it count as lost)."""
        lost = {"tilt_off_clip_below_rad": math.acos(TURNED), "height_off_clip_below_m": ASTRAY * self.size}
        return super().facts() | {"success": lost, "clip": self.clip_facts()}

    def clip_facts(self) -> dict[str, Any]:
        """What the contract tells of the clip, whose frames are in the graph."""
        clip = self.follow.clip
        return {
            "name": clip.name,
            "source": clip.source,
            "sha256": clip.digest,
            "frames": len(clip),
            "period": PERIOD,
            "first": [round(float(angle), 4) for angle in clip.angles[0]],
            "height": round(float(clip.position[0, 2]), 4),
            "bodies": list(self.bodies),
        }

    def memory(self) -> tuple[StateBlock, ...]:
        """The last target, and where in the clip it is: steps, cosine and sine of the heading in which the clip was
        begun, and whether it was."""
        first = tuple(round(float(angle), 6) for angle in self.follow.clip.angles[0])
        return StateBlock("last_target", (len(first),), first), StateBlock("clip", (4,), (0.0, 1.0, 0.0, 0.0))

    def commands(self) -> tuple[Command, ...]:
        """Targets; the gate moves the joints to the clip's first frame before."""
        first = tuple(round(float(angle), 6) for angle in self.follow.clip.angles[0])
        return tuple(dataclasses.replace(command, start=first) for command in super().commands())

    def initial_ranges(self) -> dict[str, Range]:
        """``initial/frame``: part of the clip that is over as an episode begins; in evaluations none is."""
        return super().initial_ranges() | {"initial/frame": Range((0.0, 1.0), (0.0, 0.0))}

    def goal_ranges(self) -> dict[str, Range]:
        """Pushes, at any time."""
        last = self.follow.clip.duration + AFTER - 0.5
        return {
            **super().goal_ranges(),
            "push/time": Range.fixed(0.2, last, count=self.pushes, unit="s"),
        }

    def rules(self) -> tuple[Rule, ...]:
        """Pushes grow for robots that don't lose the clip; training goes on to begin anywhere in it."""
        pushes = Rule("push/speed", "survived", up=0.5, down=0.5, step=0.25)
        return pushes, Rule("initial/frame", "survived", up=2.0, down=2.0, step=0.1)

    def simulate(self, engine: Callable[..., Articulated], n: int, **settings: Any) -> Articulated:
        """With the bodies that are compared among what is measured."""
        frames = tuple(Frame(name, name) for name in self.bodies)
        return engine(dataclasses.replace(self.card.mechanism, frames=frames), n, PERIOD, **settings)

    # --- episodes -------------------------------------------------------------------------------------------------

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, 9): s of the clip that are over at the start, cosine and sine of the heading; of each push s, N, N."""
        start = PERIOD * (drawn["initial/frame"] * (len(self.follow.clip) - 1)).round()
        yaw = drawn["initial/yaw"]
        return torch.cat([torch.stack([start, torch.cos(yaw), torch.sin(yaw)], -1), super().goal(drawn)], -1)

    def memory_at(self, goal: Tensor) -> dict[str, Tensor]:
        steps = (goal[:, :1] / PERIOD).round().clamp(0, len(self.follow.clip) - 1)  # a file of states may tell any goal
        start = self.follow.start(steps[:, 0].cpu())
        clip = torch.cat([steps, torch.ones_like(steps), torch.zeros_like(steps), torch.zeros_like(steps)], -1)
        return {"clip": clip, "last_target": start.joint_position.to(goal)}

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        found = self.follow.all((time + goal[:, 0])[:, None])
        cosine, sine = goal[:, 1], goal[:, 2]
        for name in ("clip_position", "clip_velocity"):
            x, y, z = found[name].unbind(-1)
            found[name] = torch.stack([cosine * x - sine * y, sine * x + cosine * y, z], -1)
        return found | {"clip_axes": turned_axes(found["clip_axes"], cosine, sine)}

    def place(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        start = self.follow.start((goal[:, 0] / PERIOD).round())
        half, (cosine, sine) = 0.5 * drawn["initial/yaw"], (goal[:, 1], goal[:, 2])
        zero = torch.zeros_like(half)
        turn = (zero, zero, torch.sin(half), torch.cos(half))

        def turned(vectors: Tensor) -> Tensor:
            x, y, z = vectors.unbind(-1)
            return torch.stack([cosine * x - sine * y, sine * x + cosine * y, z], -1)

        plant.place(
            ids,
            position=turned(start.position),
            orientation=torch.stack(multiply(turn, tuple(start.orientation.unbind(-1))), -1),
            linear_velocity=turned(start.linear_velocity) + drawn["initial/linear_velocity"],
            angular_velocity=start.angular_velocity + drawn["initial/angular_velocity"],
            joint_position=torch.clamp(start.joint_position + drawn["initial/joint_position"], self.lower, self.upper),
            joint_velocity=start.joint_velocity,
        )

    # --- what is exported -----------------------------------------------------------------------------------------

    def _heading(self, orientation: Any, memory: Any, axes: Any) -> tuple[Any, Any]:
        """Cosine and sine (n,) of the heading in which the clip was begun, or is now: of its axes (n, 6) to the
        robot's."""
        x, y, z, w = orientation.unbind(-1)
        cosine, sine = level(1 - 2 * (y * y + z * z), 2 * (x * y + w * z))
        c, s = level(*axes.unbind(-1)[:2])
        begun = memory[:, 3] > 0.5
        return (
            torch.where(begun, memory[:, 1], cosine * c + sine * s),
            torch.where(begun, memory[:, 2], sine * c - cosine * s),
        )

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        pose = self.follow.pose(PERIOD * memory["clip"][:, :1])
        axes = turned_axes(pose.axes, *self._heading(signals["orientation"], memory["clip"], pose.axes))
        return torch.cat(
            [
                pose.joint_position - self.stand,
                0.05 * pose.joint_velocity,
                seen_axes(axes, signals["orientation"]),
                0.25 * signals["angular_velocity"],
                signals["joint_position"] - pose.joint_position,
                0.05 * (signals["joint_velocity"] - pose.joint_velocity),
                (memory["last_target"] - pose.joint_position) / self.scale,
            ],
            -1,
        )

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        pose = self.follow.pose(PERIOD * memory["clip"][:, :1])
        target = pose.joint_position + self._ahead * pose.joint_velocity + self.scale * action
        return {"joint_position_target": torch.clamp(target, self.lower, self.upper)}

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        pose = self.follow.pose(PERIOD * memory["clip"][:, :1])
        cosine, sine = self._heading(signals["orientation"], memory["clip"], pose.axes)
        steps = torch.clamp(memory["clip"][:, 0] + 1.0, 0.0, float(len(self.follow.clip)))
        return {
            "last_target": commands["joint_position_target"],
            "clip": torch.stack([steps, cosine, sine, torch.ones_like(cosine)], -1),
        }

    # --- how well it is done --------------------------------------------------------------------------------------

    def _away(self, truth: Tensors) -> Any:
        """(n, B + 1, 3) m, how far bodies, the base last, are from the clip that is put at the robot's place and
        heading, and at the height that is its own."""
        cosine, sine = heading(truth["orientation"].unbind(-1))
        x, y, z = truth["position"].unbind(-1)
        zero, found = torch.zeros_like(x), []
        for number, name in enumerate(self.bodies):
            place = truth[f"{name}_position"].unbind(-1)
            own = turn_back((place[0] - x, place[1] - y, place[2]), cosine, sine)
            found.append(torch.stack(own, -1) - truth["clip_bodies"][:, 3 * number : 3 * number + 3])
        return torch.stack([*found, torch.stack([zero, zero, z - truth["clip_position"][:, 2]], -1)], 1)

    def _seen(self, truth: Tensors) -> Any:
        return seen_axes(truth["clip_axes"], truth["orientation"])

    def errors(self, truth: Tensors) -> dict[str, Any]:
        """m from the clip's place; rad, root mean square over joints; m, mean over bodies of their distances."""
        aside = truth["position"] - truth["clip_position"]
        off = truth["joint_position"] - truth["clip_joint_position"]
        return {
            "drift": torch.linalg.vector_norm(aside[:, :2], dim=-1),
            "joint_error": torch.sqrt(off.square().mean(-1)),
            "body_error": torch.sqrt(self._away(truth).square().sum(-1)).mean(-1),
        }

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        size = self.size
        aside = (truth["position"] - truth["clip_position"]) / size
        joints = truth["joint_position"]
        off = joints - truth["clip_joint_position"]
        faster = truth["joint_velocity"] - truth["clip_joint_velocity"]
        moving = truth["linear_velocity"] - truth["clip_velocity"]
        change = (commands["joint_position_target"] - previous["joint_position_target"]) / self.scale
        beyond = torch.clamp(self._low - joints, min=0.0) + torch.clamp(joints - self._high, min=0.0)
        away = (self._away(truth) / size).square().sum(-1).mean(-1)
        return {
            "alive": torch.ones_like(away),
            "anchor_position": torch.exp(-aside.square().sum(-1) / 0.09),
            "anchor_orientation": torch.exp(-angle_squared(self._seen(truth)) / 0.04),
            "body_position": torch.exp(-away / 0.01),
            "joint_position": torch.exp(-off.square().mean(-1) / 0.04),
            "joint_velocity": torch.exp(-faster.square().mean(-1) / 4.0),
            "velocity": torch.exp(-moving.square().sum(-1) / (0.25 * size)),
            "rates": truth["angular_velocity"].square().sum(-1),
            "torque": truth["joint_torque"].square().sum(-1),
            "target_change": change.square().sum(-1),
            "limits": beyond.sum(-1),
        }

    def markers(self, truth: Tensors) -> list[Marker]:
        """Those of legs, and where the clip has the tracked bodies, as they are compared."""
        cosine, sine = heading(truth["orientation"].unbind(-1))
        x, y, _ = truth["position"].unbind(-1)
        clip: list[Marker] = []
        for place in truth["clip_bodies"].unflatten(-1, (-1, 3)).unbind(1):
            ahead, left, height = place.unbind(-1)
            there = torch.stack([x + cosine * ahead - sine * left, y + sine * ahead + cosine * left, height], -1)
            clip.append(Sphere("clip", there, CLIP * self.size))
        return [*super().markers(truth), *clip]

    def failures(self, truth: Tensors) -> dict[str, Any]:
        heights, far = abs(self._away(truth)[:, :, 2]), ASTRAY * self.size
        up = body_z(truth["orientation"].unbind(-1))
        a, b, c, d, e, f = truth["clip_axes"].unbind(-1)
        along = up[0] * (b * f - c * e) + up[1] * (c * d - a * f) + up[2] * (a * e - b * d)
        return {
            "tilts by over 60 degrees": along < TURNED,
            "base off in height": heights[:, -1] > far,
            "hand or foot off in height": torch.stack([heights[:, k] for k in self._ends], -1).amax(-1) > far,
        }

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        cosine, sine = heading(truth["orientation"].unbind(-1))

        def own(vectors: Any) -> Any:
            return torch.stack(turn_back(tuple(vectors.unbind(-1)), cosine, sine), -1)

        return torch.cat(
            [
                own(truth["linear_velocity"]),
                own(truth["linear_velocity"] - truth["clip_velocity"]),
                own(truth["position"] - truth["clip_position"]),
                self._seen(truth),
                self._down(truth["orientation"]),
                0.25 * truth["angular_velocity"],
                truth["clip_joint_position"] - self.stand,
                0.05 * truth["clip_joint_velocity"],
                truth["joint_position"] - truth["clip_joint_position"],
                0.05 * (truth["joint_velocity"] - truth["clip_joint_velocity"]),
                0.02 * truth["joint_torque"],
                5.0 * self._away(truth).flatten(1),
                10.0 * self.foot_height(truth),
                0.01 * truth["foot_force"],
                0.01 * own(parameters.force),
                parameters.ground_friction[:, None],
                50.0 * parameters.command_delay[:, :1],
            ],
            -1,
        )


class TrackWave(LegsTrack):
    """Wave with the right arm."""

    name = "g1-track-wave"
    summary = "wave with an arm, following a clip, while being pushed"
    clip, robot = "wave", "g1_29"
