"""Walking on any number of legs: a robot follows commanded velocities by following a stride (``stride``).

What a trot is for a quadruped, a generated stride is for a biped: footsteps, a pendulum above them, and the joint
angles of both. Targets are the stride's angles, ahead by what the motors' damping lags behind its speeds, plus what the
network adds. Episodes begin in mid-stride, at the stride's angles, speeds and velocity: robots that begin from a stand
find that standing pays and never step. As they get better, more of them begin from a stand, commands and pushes grow.

The policy sees what the robot measures, no velocity of the base, and the stride's phase. In the second half of a stride
it sees the mirror image of robot and command, and its action is mirrored: so it is symmetric by construction, exactly.
The reward is that of following angles, feet and velocity (after Siekmann et al. 2021; Rudin et al. 2022). A commanded
velocity of zero is walked on the spot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Safety, Signal, StateBlock
from robo_rl.controllers.rotation import body_z, heading, turn_back
from robo_rl.sim.plants import Articulated
from robo_rl.sim.ranges import Range, Rule
from robo_rl.sim.robots.legged import LeggedCard, load_legged
from robo_rl.sim.tasks import Measure, Tensors
from robo_rl.sim.tasks.legged.gait import axial, polar
from robo_rl.sim.tasks.legged.legs_stand import ON_LEGS, SCALE, TILT, LegsStand
from robo_rl.sim.tasks.legged.on_legs import LOADED, PERIOD, with_commands
from robo_rl.sim.tasks.legged.ranges import signals
from robo_rl.sim.tasks.legged.stride import TIME, Stride

SEGMENT = 4.0  # s between changes of the commanded velocity
SEGMENTS = 6  # in an episode of 20 s that begins anywhere in the first
SLEW_RATE = (1.0, 1.0, 1.5)
"""m/s², m/s², rad/s²: how fast the policy takes up another commanded velocity. Of robots that followed jumps at once,
three times as many fell."""
EARLY = math.pi * PERIOD / TIME
"""rad, half a phase, by which the mirror is taken up before the clock's half turn: rounding must not decide."""
LIFTED = 1e-3  # of its greatest height, above which a foot should be off the ground
EASY = 0.8  # of the draw of ``initial/standing``, above which an episode begins from a stand


class LegsWalk(LegsStand):
    """Walk at commanded velocities, which jump every 4 s, for 20 s, while being pushed."""

    name = "g1-walk"
    summary = "walk at commanded velocities on any number of legs"
    measures = (Measure("yaw_rate_error", "rad/s", "mean"), Measure("linear_velocity_error", "m/s", "mean"))
    expected = 0.9
    pushes = 2
    first_pushes = (0.0, 0.1)
    pushed = 3 * SEGMENTS + 1
    goal_size = pushed + 3 * pushes
    settings = MappingProxyType({"ppo": {**ON_LEGS, "updates": 900}})
    weights: Mapping[str, float] = {
        "alive": 0.5,
        "pose": 2.0,
        "linear_velocity": 2.0,
        "yaw_rate": 1.5,
        "stride": 0.5,
        "contact": 0.5,
        "foot_height": 1.0,
        "height": 0.5,
        "tilt": -2.0,
        "vertical_velocity": -0.5,
        "roll_and_pitch_rate": -0.03,
        "torque": -1e-5,
        "target_change": -0.02,
        "foot_slip": -0.1,
    }

    def __init__(self, card: LeggedCard | None = None) -> None:
        card = card or load_legged("g1")
        self.stride = Stride(card)
        limbs = self.stride.limbs
        self._opposite, self._signs = list(limbs.opposite), torch.tensor([list(limbs.signs)])
        self._opposite_foot = list(limbs.opposite_foot)
        self._ahead = torch.tensor([[joint.damping / joint.stiffness for joint in card.joints]])
        self.slew = PERIOD * torch.tensor([SLEW_RATE])
        super().__init__(card)
        self.height = self.stride.height + self.foot_rest
        self.observation_size = 11 + 3 * len(card.joints)

    @staticmethod
    def driven(card: LeggedCard) -> LeggedCard:
        """With the gains of the gait."""
        return card

    def facts(self) -> dict[str, Any]:
        """As of one that stands, with what the commanded velocities refer to."""
        return with_commands(super().facts())

    def signals(self) -> tuple[Signal, ...]:
        """What the robot measures, and the commanded velocity."""
        return signals(self.card)

    def memory(self) -> tuple[StateBlock, ...]:
        """The last target, and the gait: cosine and sine of the stride's phase, the velocity that it is made for, on
        its way to the commanded one, and whether it has begun: the very first command is taken up at once."""
        stand = tuple(joint.stand for joint in self.card.joints)
        return StateBlock("last_target", (len(stand),), stand), StateBlock("gait", (6,), (1.0, *(0.0,) * 5))

    def safety(self) -> Safety:
        """As of one that stands, with an operator."""
        return Safety(signal_timeout=0.04, tilt_limit=TILT, operator_timeout=0.5)

    def initial_ranges(self) -> dict[str, Range]:
        """``initial/standing``: above EASY, an episode begins from a stand; with all levels at 1 every one does."""
        return super().initial_ranges() | {"initial/standing": Range((0.0, 1.0), (1.0, 1.0))}

    def goal_ranges(self) -> dict[str, Range]:
        """Commands and pushes. At first a robot walks forwards, hardly sideways, hardly turning."""
        (x, y, yaw), (back, right, clockwise) = self.stride.fastest.tolist(), self.stride.slowest.tolist()
        return {
            "command/x": Range((0.2 * x, 0.7 * x), (back, x), SEGMENTS, "m/s"),
            "command/y": Range((0.2 * right, 0.2 * y), (right, y), SEGMENTS, "m/s"),
            "command/yaw": Range((0.2 * clockwise, 0.2 * yaw), (clockwise, yaw), SEGMENTS, "rad/s"),
            "command/rest": Range.fixed(0.0, 1.0, count=SEGMENTS),
            "command/offset": Range.fixed(0.0, SEGMENT, unit="s"),
            **super().goal_ranges(),
        }

    def rules(self) -> tuple[Rule, ...]:
        """Commands, pushes and starts from a stand grow where a robot survives and strides: steps at the velocity."""
        good = 0.4 * PERIOD * self.weights["stride"]
        return tuple(
            rule
            for name in ("command/[xy]*", "push/speed", "initial/standing")
            for rule in (
                Rule(name, "stride", up=good, down=-1.0, step=0.1),
                Rule(name, "survived", up=2.0, down=0.5, step=0.1),
            )
        )

    # --- episodes -------------------------------------------------------------------------------------------------

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        commands = goal[:, : 3 * SEGMENTS]
        progress = (time + goal[:, 3 * SEGMENTS])[:, None]
        wanted = commands[:, :3]
        for k in range(1, SEGMENTS):
            wanted = torch.where(progress >= SEGMENT * k, commands[:, 3 * k : 3 * k + 3], wanted)
        angle = (2 * math.pi / TIME) * time
        return {
            "linear_velocity_command": wanted[:, :2],
            "yaw_rate_command": wanted[:, 2:],
            "clock": torch.stack([torch.cos(angle), torch.sin(angle)], -1),
        }

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, goal_size): commanded velocities of each segment, s into the first; of pushes s, N, N."""
        moving = (drawn["command/rest"] >= 0.1).float()  # every tenth command is to walk on the spot
        wanted = torch.stack([drawn[f"command/{name}"] * moving for name in ("x", "y", "yaw")], -1)
        return torch.cat([wanted.flatten(1), drawn["command/offset"][:, None], super().goal(drawn)], -1)

    def place(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        half, wanted = 0.5 * drawn["initial/yaw"], goal[:, :3]
        zero, standing = torch.zeros_like(half), (drawn["initial/standing"] >= EASY)[:, None]
        clock = torch.stack([torch.ones_like(zero), zero], -1)
        angles, speeds = self.stride.reference(clock, wanted)
        joints = torch.where(standing, self.stand, angles) + drawn["initial/joint_position"]
        x, y = self.stride.first_velocity(wanted).unbind(-1)
        c, s = torch.cos(2 * half), torch.sin(2 * half)
        velocity = torch.stack([c * x - s * y, s * x + c * y, zero], -1)
        turn = torch.cat([zero[:, None], zero[:, None], wanted[:, 2:]], -1)
        height = torch.where(standing[:, 0], plant.height, plant.height - (self.length - self.stride.height))
        plant.place(
            ids,
            position=torch.stack([zero, zero, height], -1),
            orientation=torch.stack([zero, zero, torch.sin(half), torch.cos(half)], -1),
            linear_velocity=torch.where(standing, 0.0, velocity) + drawn["initial/linear_velocity"],
            angular_velocity=torch.where(standing, 0.0, turn) + drawn["initial/angular_velocity"],
            joint_position=torch.clamp(joints, self.lower, self.upper),
            joint_velocity=torch.where(standing, 0.0, speeds),
        )

    # --- the mirror -----------------------------------------------------------------------------------------------

    def side(self, clock: Any) -> Any:
        """(n, 1) -1 in the second half of a stride, when the robot is looked at in the mirror, and 1 in the first."""
        ahead = math.cos(EARLY) * clock[:, 1:2] + math.sin(EARLY) * clock[:, 0:1]
        return torch.where(ahead < 0.0, -1.0, 1.0)

    def mirrored(self, joints: Any, side: Any) -> Any:
        """Numbers of joints (n, J), where ``side`` (n, 1) is negative those of their mirror images."""
        images = torch.cat([joints[:, k : k + 1] for k in self._opposite], 1) * self._signs
        return torch.where(side < 0.0, images, joints)

    def mirrored_velocity(self, velocity: Any, side: Any) -> Any:
        """Velocities (n, 3) m/s, m/s, rad/s, likewise."""
        x, y, yaw = velocity.split([1, 1, 1], -1)
        return torch.cat([x, side * y, side * yaw], -1)

    def _followed(self, gait: Any) -> tuple[Any, Any, Any]:
        """The side, and angles and speeds (n, J) of the stride, as the mirror shows them."""
        side = self.side(gait[:, :2])
        return side, *self.stride.reference(side * gait[:, :2], self.mirrored_velocity(gait[:, 2:5], side))

    # --- what is exported -----------------------------------------------------------------------------------------

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        side, angles, speeds = self._followed(memory["gait"])
        wanted = self._slewed(signals, memory["gait"])
        return torch.cat(
            [
                polar(self._down(signals["orientation"]), side),
                axial(0.25 * signals["angular_velocity"], side),
                2.0 * self.mirrored_velocity(wanted, side),
                self.mirrored(signals["joint_position"], side) - angles,
                0.05 * (self.mirrored(signals["joint_velocity"], side) - speeds),
                (self.mirrored(memory["last_target"], side) - angles) / SCALE,
                side * memory["gait"][:, :2],
            ],
            -1,
        )

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        side, angles, speeds = self._followed(memory["gait"])
        target = self.mirrored(angles + self._ahead * speeds + SCALE * action, side)
        return {"joint_position_target": torch.clamp(target, self.lower, self.upper)}

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        c, s = math.cos(2 * EARLY), math.sin(2 * EARLY)
        cosine, sine = memory["gait"][:, :1], memory["gait"][:, 1:2]
        clock = torch.cat([c * cosine - s * sine, s * cosine + c * sine], -1)
        clock = clock / torch.linalg.vector_norm(clock, dim=-1, keepdim=True)
        return {
            "last_target": commands["joint_position_target"],
            "gait": torch.cat([clock, self._slewed(signals, memory["gait"]), torch.ones_like(cosine)], -1),
        }

    def _slewed(self, signals: Tensors, gait: Any) -> Any:
        """(n, 3) m/s, m/s, rad/s: the velocity to be walked now, on its way from the last one to the commanded one."""
        wanted = torch.cat([signals["linear_velocity_command"], signals["yaw_rate_command"]], -1)
        change = torch.clamp(wanted - gait[:, 2:5], -self.slew, self.slew)
        return torch.where(gait[:, 5:] > 0.5, gait[:, 2:5] + change, wanted)

    # --- how well it is done --------------------------------------------------------------------------------------

    def errors(self, truth: Tensors) -> dict[str, Any]:
        return self.tracking_errors(truth)

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        error, rates = self.tracking_errors(truth), truth["angular_velocity"]
        up, clock = body_z(truth["orientation"].unbind(-1)), truth["clock"]
        wanted = torch.cat([truth["linear_velocity_command"], truth["yaw_rate_command"]], -1)
        side, angles, _ = self._followed(torch.cat([clock, wanted], -1))
        off = self.mirrored(truth["joint_position"], side) - angles
        change = (commands["joint_position_target"] - previous["joint_position_target"]) / SCALE
        swing = self.stride.swing(clock[:, 1:])
        loaded = torch.where(truth["foot_force"] > LOADED * self.size, 1.0, 0.0)
        contact = torch.where(swing > LIFTED, 1.0 - loaded, loaded).mean(-1)
        lift = (self.foot_height(truth) - self.foot_rest - self.stride.lift * swing) / self.size
        slip = truth["foot_velocity"][:, 0::3].square() + truth["foot_velocity"][:, 1::3].square()
        tracked = torch.exp(-error["linear_velocity_error"].square() / (0.15 * self.size))
        low = (self.base_height(truth)[:, 0] - self.height) / self.size
        return {
            "alive": torch.ones_like(low),
            "pose": torch.exp(-2.0 * off.square().sum(-1)),
            "linear_velocity": tracked,
            "yaw_rate": torch.exp(-error["yaw_rate_error"].square() / 0.25),
            "stride": tracked * contact,
            "contact": contact,
            "foot_height": torch.exp(-lift.square().sum(-1) / 0.002),
            "height": torch.exp(-low.square() / 0.002),
            "tilt": up[0].square() + up[1].square(),
            "vertical_velocity": truth["linear_velocity"][:, 2].square() / self.size,
            "roll_and_pitch_rate": rates[:, 0].square() + rates[:, 1].square(),
            "torque": truth["joint_torque"].square().sum(-1),
            "target_change": change.square().sum(-1),
            "foot_slip": (loaded * slip).sum(-1) / self.size,
        }

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        clock = truth["clock"]
        wanted = torch.cat([truth["linear_velocity_command"], truth["yaw_rate_command"]], -1)
        side, angles, speeds = self._followed(torch.cat([clock, wanted], -1))
        cosine, sine = heading(truth["orientation"].unbind(-1))
        velocity = torch.stack(turn_back(truth["linear_velocity"].unbind(-1), cosine, sine), -1)
        push = torch.stack(turn_back(parameters.force.unbind(-1), cosine, sine), -1)
        return torch.cat(
            [
                polar(velocity, side),
                polar(self._down(truth["orientation"]), side),
                polar(0.01 * push, side),
                axial(0.25 * truth["angular_velocity"], side),
                self.base_height(truth),
                2.0 * self.mirrored_velocity(wanted, side),
                self.mirrored(truth["joint_position"], side) - angles,
                0.05 * (self.mirrored(truth["joint_velocity"], side) - speeds),
                0.02 * self.mirrored(truth["joint_torque"], side),
                10.0 * self._mirrored_feet(self.foot_height(truth), side),
                0.01 * self._mirrored_feet(truth["foot_force"], side),
                side * clock,
                parameters.ground_friction[:, None],
                50.0 * parameters.command_delay[:, :1],
            ],
            -1,
        )

    def _mirrored_feet(self, values: Any, side: Any) -> Any:
        images = torch.cat([values[:, k : k + 1] for k in self._opposite_foot], 1)
        return torch.where(side < 0.0, images, values)
