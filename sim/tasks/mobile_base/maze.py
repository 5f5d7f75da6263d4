"""Find the way through a maze, with a reward at its end and nowhere else.

A mobile base begins at one end of a maze, the goal is at the other, and nothing on the way says that it is the right
one: actions at random do not get there. Random network distillation does (``robo_rl.learn.rnd``): it rewards what
was seldom seen. The maze is always the same, so the policy learns the way by the pose of the odometry, and by
the lidar not to touch its walls. Another maze is another text: ``class Mine(AgvMaze): maze = ...``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Command, Safety, Scan, StateBlock
from robo_rl.sim.plants.mobile_base.in_room import CELL, BaseInMaze
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.mobile_base import CARD, MobileBaseCard
from robo_rl.sim.scenes.rooms import COLUMNS, ROWS, drawn, ends
from robo_rl.sim.scenes.rooms.edits import NO_WAY
from robo_rl.sim.tasks import Measure, Spec, Tensors
from robo_rl.sim.tasks.mobile_base.lidar_base import ToGoal, last_command, measured, randomize_motors, skid_ranges

PERIOD = 0.2  # s
LENGTH = 4.1  # × the length of the room at the greatest speed: 100 s
BEAMS = 20
TURN = 1.5  # rad/s, the greatest turn rate that is commanded
WAVES = (0.5, 1.0, 2.0, 4.0)  # half-waves of the critic's coordinates across the maze

MAZE = """
......................
......................
......................
......................
......................
......................
......................
......................
......................
################......
################......
......................
......................
......................
......................
......................
......................
......................
......................
......................
......................
......################
......################
......................
......................
......................
......................
......................
......................
......................
......................
......................
"""


class AgvMaze(ToGoal[BaseInMaze]):
    """A way through a maze that only its end rewards."""

    name = "agv-maze"
    summary = "find the way through a maze, where only its end is rewarded"
    card_type = MobileBaseCard
    card: MobileBaseCard
    algorithms = ("ppo",)
    measures = (Measure("path_left", "m", "end", PERIOD), Measure("arrival_time", "s", "end", PERIOD))
    perturbed = ("speed_scale", "turn_scale", "delay", "noise")
    observation_size = BEAMS + 8
    action_size = 2
    goal_size = 2
    expected = 0.9
    weights = {"arrival": 30.0}
    maze = MAZE
    settings = {
        "ppo": {
            "updates": 100, "environments": 512, "horizon": 64, "gamma": 0.995, "lam": 0.97, "anneal": 0.5,
            "desired_kl": 0.01, "initial_deviation": 1.0, "rnd": 0.5,
        }
    }  # fmt: skip

    def __init__(self, card: MobileBaseCard | None = None) -> None:
        card = card or load_robot("turtlebot3", CARD)
        self.card, self.cells = card, drawn(self.maze)
        low, high = card.lidar_range
        self.scan = Scan(-math.pi, 2 * math.pi / BEAMS, low, high)
        self.wide = card.radius / 0.105
        self.cell = CELL * card.radius  # m
        self.top, self.turn = card.speed_max, min(TURN, card.turn_rate_max)
        self.spec = Spec(
            name=self.name,
            summary=self.summary,
            robot=card,
            control_period=PERIOD,
            episode_length=float(round(LENGTH * ROWS * self.cell / card.speed_max)),
            signals=(
                *measured(card, self.scan, BEAMS, PERIOD),
            ),
            commands=(
                Command("forward_speed", ("vx",), "m/s", "body", (0.0,), (self.top,), safe=(0.0,)),
                Command("turn_rate", ("wz",), "rad/s", "body", (-self.turn,), (self.turn,), safe=(0.0,)),
            ),
            memory=(StateBlock("last_command", (2,), (0.0, 0.0)),),
            safety=Safety(signal_timeout=0.3, on_fault="stop"),
            reward=dict(self.weights),
            ranges={
                "initial/across": Range.fixed(0.0, 0.2, unit="× width"),
                "initial/heading": Range.fixed(-math.pi, math.pi, unit="rad"),
                "acceleration": Range.fixed(0.5, 1.0, unit="×"),
                "motor_time": Range.fixed(0.5, 2.0, unit="×"),
                "speed_scale": Range.fixed(0.98, 1.02, unit="×"),
                "turn_scale": Range.fixed(0.995, 1.005, unit="×"),
                "delay": Range.fixed(0.0, 0.1, unit="s"),
                "noise": Range.fixed(0.5, 1.5, unit="×"),
                **skid_ranges(card),
            },
        )  # fmt: skip

        if self.maze != MAZE:
            self._require_a_way()

    def _require_a_way(self) -> None:
        """ValueError unless the goal can be reached from wherever robots begin."""
        low, high = self.spec.ranges["initial/across"].end
        begin = {"initial/across": torch.tensor([low, high]), "initial/heading": torch.zeros(2)}
        plant = self.make_plant(2)
        self.place(plant, torch.arange(2), begin, self.goal(begin))
        truth = plant.truth()
        if float(truth["path"].max()) > NO_WAY or float(truth["clearance"].min()) <= 0:
            raise ValueError(
                "maze: the robot has no way from the left end of the last line to the middle of the first; expected "
                "ways of two letters or more"
            )

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> BaseInMaze:
        if torch.device(device).type != "cpu":
            raise ValueError(f"device is {device}; bases in rooms are simulated on the cpu")
        return BaseInMaze(self.card, n, PERIOD, self.scan, BEAMS, self.cells)

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, 2) m: the middle of the far end, in the world."""
        across = torch.full_like(drawn["initial/across"], 0.5)
        return ends(across, across, self.cell)[1]

    def randomize(self, plant: BaseInMaze, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        randomize_motors(plant, ids, drawn)

    def place(self, plant: BaseInMaze, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        across = drawn["initial/across"]
        plant.param("room_start")[ids] = ends(across, across, self.cell)[0]
        plant.param("room_goal")[ids] = goal
        plant.refresh(ids)
        plant.put(ids, drawn["initial/heading"])

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        return {"time": time[:, None]}

    def _place(self, position: Any) -> Any:
        """(n, 2): places (n, 2) m in the maze, between -1 and 1."""
        size = (COLUMNS * self.cell, ROWS * self.cell)
        return torch.cat([2.0 * position[:, k : k + 1] / size[k] - 1.0 for k in range(2)], -1)

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        scan = signals["scan"] / self.wide
        z, w = signals["orientation"][:, 2:3], signals["orientation"][:, 3:4]
        return torch.cat(
            [
                scan / (scan + 0.5),
                self._place(signals["position"]),
                1.0 - 2.0 * z * z,
                2.0 * z * w,
                signals["wheel_speed"] / self.top,
                signals["yaw_rate"] / self.turn,
                memory["last_command"],
            ],
            -1,
        )

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        return {
            "forward_speed": self.top * torch.sigmoid(action[:, :1] + 1.0),
            "turn_rate": self.turn * torch.tanh(action[:, 1:]),
        }

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        return {"last_command": last_command(commands, self.top, self.turn)}

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        return {"arrival": torch.where(self.succeeded(truth), 1.0, 0.0)}

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        # places by waves of several lengths, so that what is learnt of one says little of others (Tancik et al. 2020,
        # Fourier Features Let Networks Learn High Frequency Functions in Low Dimensional Domains)
        phase = [math.pi * k * self._place(truth["place"]) for k in WAVES]
        heading = [torch.cos(truth["heading"]), torch.sin(truth["heading"])]
        return torch.cat([*heading, *(torch.cos(x) for x in phase), *(torch.sin(x) for x in phase)], -1)
