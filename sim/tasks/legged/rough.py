"""Walking on rough ground: slopes, stairs, blocks and gaps, of a height that grows with what the robot can do.

``RoughWalk`` sees what the robot measures, as on flat ground, and what its joints did half a stride and a stride ago:
on stairs a leg meets now what the opposite one met then. ``RoughTeacher`` also sees the ground around it, its true
velocity and its feet's loads, which only a simulation knows. It learns faster, and ``robo-rl distill`` teaches what it
does to a policy of ``RoughWalk`` (after Lee et al. 2020, Learning Quadrupedal Locomotion over Challenging Terrain).

Feet are lifted higher than on flat ground, and may be lifted higher still.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Signal, StateBlock
from robo_rl.controllers.rotation import heading, turn_back
from robo_rl.sim.plants import Articulated
from robo_rl.sim.plants.height_scan import HeightScan
from robo_rl.sim.ranges import NOT_NEGATIVE, Range, Rule
from robo_rl.sim.robots.legged import LeggedCard
from robo_rl.sim.scenes.terrain import Ground, rough_ground
from robo_rl.sim.tasks import Tensors
from robo_rl.sim.tasks.legged.gait import JOINTS, PACE, polar
from robo_rl.sim.tasks.legged.ranges import XYZ
from robo_rl.sim.tasks.legged.walk import PERIOD, SCALE, FlatWalk

AHEAD = tuple(round(-0.45 + 0.12 * i, 2) for i in range(11))  # m, forward of the base, of the scan's points
ASIDE = (0.3, 0.15, 0.0, -0.15, -0.3)  # m, to the left
STRIDE = round(1 / (PACE * PERIOD))  # control steps
DEEP = 0.28  # m, of the base above the ground when a Go2 walks


class RoughWalk(FlatWalk):
    """Walk on rough ground at commanded velocities, by what the robot measures."""

    name = "go2-rough"
    summary = "walk on slopes, stairs, blocks and gaps by what the robot measures"
    ground: Ground
    expected = 0.7  # the widest gaps are hardly passable
    settings = MappingProxyType({"ppo": {**FlatWalk.settings["ppo"], "updates": 1400}})
    fold = 0.34
    lift = 0.16
    lowest = 0.1
    weights = {
        **FlatWalk.weights,
        "tilt": -0.5,
        "vertical_velocity": -0.5,
        "torque": -5e-5,
        "target_change": -0.1,
        "foot_lift": -50.0,
    }

    def __init__(self, card: LeggedCard | None = None) -> None:
        super().__init__(card)
        count = self.action_size
        self.ground = _ground()
        self.observation_size += 4 * count
        spec, tracking = self.spec, PERIOD * self.weights["linear_velocity"]
        self.spec = dataclasses.replace(
            spec,
            episode_length=10.0,
            memory=(*spec.memory, StateBlock("stride", (STRIDE, 2 * count), (0.0,) * (2 * STRIDE * count))),
            ranges={
                **spec.ranges,
                # friction as in Rudin et al. 2022; slopes of 20° ask for 0.36
                "ground_friction": Range.fixed(0.5, 1.25, limits=NOT_NEGATIVE),
                "command/x": Range.fixed(-0.5, 1.0, spec.ranges["command/x"].count, unit="m/s"),
                "command/yaw": Range.fixed(-0.5, 0.5, spec.ranges["command/yaw"].count, unit="rad/s"),
                "initial/place": Range.fixed(-0.3, 0.3, count=2, unit="m"),  # m from the middle of the platform
                "ground/kind": Range.fixed(0.0, 8 / 7),  # the first, which is the hardest to learn, twice as often
                "ground/difficulty": Range((0.0, 0.3), (0.3, 1.0)),
            },
            rules=(
                Rule("ground/difficulty", "linear_velocity", up=0.65 * tracking, down=0.45 * tracking, step=0.15),
                Rule("ground/difficulty", "survived", up=2.0, down=0.5, step=0.15),  # after a fall never up
            ),
        )

    def simulate(self, engine: Callable[..., Articulated], n: int, **settings: Any) -> Articulated:
        points = [(ahead, aside) for ahead in AHEAD for aside in ASIDE]
        return HeightScan(super().simulate(engine, n, ground=self.ground, **settings), self.ground, points)

    def start(self, drawn: Mapping[str, Tensor]) -> Tensor:
        middle = self.ground.start(drawn["ground/difficulty"], drawn["ground/kind"])
        return torch.cat([middle[:, :2] + drawn["initial/place"], middle[:, 2:]], -1)

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        past, now = memory["stride"], signals["joint_position"] - self.stand
        count = self.action_size
        stride = [torch.cat([past[:, k, :count] - now, past[:, k, count:]], -1) for k in (STRIDE // 2 - 1, STRIDE - 1)]
        side = self.gait.side(memory["gait"][:, :2])
        known = super().observe(signals, memory)
        return torch.cat([known, self.gait.mirrored(self.gait.legwise(torch.cat(stride, -1)), side, JOINTS)], -1)

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        angle = signals["joint_position"] - self.stand
        missing = SCALE * memory["target_history"][:, 0] - angle  # of the way to the target: what loads the leg
        newest = torch.cat([angle, 2.0 * missing], -1)
        stride = torch.cat([newest[:, None], memory["stride"][:, :-1]], 1)
        return {**super().remember(memory, signals, commands), "stride": stride}

    def lift_error(self, truth: Tensors, swing: Any) -> Any:
        """As on flat ground, but a foot in the air may be higher."""
        error = super().lift_error(truth, swing)
        return torch.where(swing > 0.0, torch.clamp(error, max=0.0), error)

    def foot_height(self, truth: Tensors) -> Any:
        return truth["foot_height"]

    def base_height(self, truth: Tensors) -> Any:
        return truth["base_height"]

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        side = self.gait.side(truth["clock"])
        return torch.cat([super().privileged(truth, parameters), self._seen(truth["height_scan"], side)], -1)

    def _seen(self, scan: Any, side: Any) -> Any:
        """The scan (n, P) as the mirror shows it, about 0 on level ground."""
        lines, width = len(AHEAD), len(ASIDE)
        opposite = [line * width + width - 1 - i for line in range(lines) for i in range(width)]
        exchanged = torch.cat([scan[:, i : i + 1] for i in opposite], -1)
        return 5.0 * (torch.where(side < 0.0, exchanged, scan) - DEEP * self.size)


class RoughTeacher(RoughWalk):
    """Walk on rough ground at commanded velocities, with privileged observations."""

    name = "go2-rough-teacher"
    summary = "teacher of go2-rough: also sees the ground, its velocity and the load of its feet"
    student = RoughWalk.name

    def __init__(self, card: LeggedCard | None = None) -> None:
        super().__init__(card)
        points = len(AHEAD) * len(ASIDE)
        self.observation_size += points + 11
        self.spec = dataclasses.replace(self.spec, signals=(*self.spec.signals, *_seen_by_simulation(self.card)))

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        side = self.gait.side(memory["gait"][:, :2])
        cosine, sine = heading(signals["orientation"].unbind(-1))
        velocity = torch.stack(turn_back(signals["linear_velocity"].unbind(-1), cosine, sine), -1)
        feet = torch.cat([10.0 * (signals["foot_height"] - self.legs.radius), 0.02 * signals["foot_force"]], -1)
        return torch.cat(
            [
                super().observe(signals, memory),
                polar(velocity, side),
                self.gait.mirrored(feet, side),
                self._seen(signals["height_scan"], side),
            ],
            -1,
        )


@cache
def _ground() -> Ground:
    """What all robots walk on."""
    return rough_ground()


def _seen_by_simulation(card: LeggedCard) -> tuple[Signal, ...]:
    points = tuple(f"x{ahead:.2f}y{aside:.2f}" for ahead in AHEAD for aside in ASIDE)
    feet, force = len(card.feet), 2000.0
    return (
        Signal("linear_velocity", XYZ, "m/s", "world", (-20.0,) * 3, (20.0,) * 3, source="simulation"),
        Signal("foot_height", card.feet, "m", "world", (-5.0,) * feet, (5.0,) * feet, source="simulation"),
        Signal("foot_force", card.feet, "N", "world", (-force,) * feet, (force,) * feet, source="simulation"),
        Signal("height_scan", points, "m", "heading", (-5.0,) * len(points), (5.0,) * len(points), source="simulation"),
    )
