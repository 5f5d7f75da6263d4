"""Eight small multirotors change places in a room with columns, and hit nothing.

After Huang et al. 2024, Collision Avoidance and Navigation for a Quadrotor Swarm Using End-to-end Deep Reinforcement
Learning: their room of 8 m with cells of 1 m, of which some have a column of 0.6 m, here at half the size. Each robot
knows its own state, and of the others what their radio messages said: where they were and how fast, 20 times per
second, late, and some of them lost. Attention weighs these messages, and the nearest columns.

ORCA is part of the graph. The network's action is what it is asked for beside the straight way to the goal, and how
cautious it is; a law makes a thrust and body rates of the velocity that comes out, as autopilots take them. So a policy
that has learnt nothing flies as that baseline does. Memory carries what is steady: a wrong mass, a push, and the rates
at which rotors that differ turn nothing. A robot hovers where it starts until hits count.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Encoder, StateBlock
from robo_rl.controllers.multirotor import OrcaController, Surroundings, VoronoiController
from robo_rl.controllers.multirotor.avoidance import SWEEPS, TRIM, TRIMMED, TURN
from robo_rl.controllers.rotation import body_z, heading, matrix, turn_back
from robo_rl.sim.drawing import GREY, SLATE, Line, Marker, Sphere, Trail
from robo_rl.sim.engines import Engine
from robo_rl.sim.plants.multirotor.swarm import MultirotorSwarm, bounds_of, length, others, reach_of
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.multirotor import GRAVITY, MultirotorCard, load_multirotor
from robo_rl.sim.tasks import Measure, Tensors
from robo_rl.sim.tasks.multirotor.avoiding import PACE, TRAINED, avoiding
from robo_rl.sim.tasks.multirotor.quadrotor import attitude
from robo_rl.sim.tasks.multirotor.rates import RATES, QuadrotorRates
from robo_rl.sim.tasks.multirotor.room import (
    ARRIVED,
    CELL,
    COLUMN,
    COLUMNS,
    GRACE,
    LARGEST,
    MOST_COLUMNS,
    ROOM,
    SECONDS,
    SEEN,
    STALE,
    TEAM,
    column_signal,
    drawn_rooms,
    messages,
    room_ranges,
)

NOSE = 2.0  # 1/s, of the heading's error
OBSERVE = 1.5  # 1/s, the poles of the observer of what is steady
OFFSET = 2.0  # m/s², what the observer may find, less than what a way up asks for: on the floor it sees a lift
NOTICED = 0.8  # m, from surface to surface, within which a network is told twice of what is near
MARGIN = 0.12  # m, from surface to surface, within which the reward feels others


FLOOR = 0.5 * torch.tensor(ROOM) * torch.tensor([[1, 1, 0], [-1, 1, 0], [-1, -1, 0], [1, -1, 0], [1, 1, 0]])
"""(5, 3) m, the edges of the room's floor."""


class SwarmSwap(QuadrotorRates):
    """See the module's text."""

    name = "swarm-swap"
    summary = "eight Crazyflies change places in a room with columns"
    goal_size = COLUMNS.stop
    seconds = SECONDS
    algorithms = ("apg", "ppo")
    devices: tuple[str, ...] = ("cpu",)
    expected = 0.65  # of teams, in which all eight are without fault
    update_scale = 1.0
    perturbed = ("downwash", "mass", "thrust", "delay", "noise")
    encoders: tuple[Encoder, ...] = (
        Encoder("peers", (TEAM - 1, 19), "attention", (32, 32), 32),
        Encoder("columns", (SEEN, 13), "attention", (32, 32), 16),
    )
    measures: tuple[Measure, ...] = (
        Measure("distance", "m", "end", 0.5, failed=1.0),
        Measure("hit", "1", "end", 0.02, failed=1.0),
        Measure("lost", "1", "end", 0.02, failed=1.0),
        Measure("away", "1", "mean", 0.0, failed=1.0),
    )
    """Of robots: the distance from the goal, the part that hit something, the part that did or is not at its goal at
    the end, and the part of the time that is spent on the way."""
    weights = {
        "goal": -1.0,
        "near": 0.5,
        "robots": -10.0,
        "columns": -20.0,
        "contact": -6.0,
        "turning": -0.003,
    }
    settings = {
        "apg": {"environments": 32, "horizon": 64, "updates": 64, "learning_rate": 0.003},
        "ppo": {"spread": True, "gamma": 0.98, "environments": 128, "updates": 300},
    }

    def __init__(self, card: MultirotorCard | None = None) -> None:
        super().__init__(card or load_multirotor("crazyflie"))
        self.observation_size, self.action_size = 27, 4
        self.reach = reach_of(self.card)
        if self.reach > LARGEST:
            reach = f"robot '{self.card.name}' reaches {self.reach:.2f} m from its middle"
            raise CardError(f"{self.name}: {reach}; expected at most {LARGEST:g} m, in cells of {CELL:g} m")
        kept = [signal for signal in self.spec.signals if signal.name != "linear_velocity_setpoint"]
        self.spec = dataclasses.replace(
            self.spec,
            episode_length=self.seconds,
            signals=(*kept, *messages(), column_signal()),
            memory=(
                StateBlock("last_action", (4,), (0.0,) * 4),
                StateBlock("drift", (2, 3), (0.0,) * 6),
                StateBlock("trim", (2,), (0.0,) * 2),
            ),
            ranges={**self.spec.ranges, **room_ranges()},
            rules=(),
            reward=dict(type(self).weights),
            team=TEAM,
        )

    def facts(self) -> dict[str, Any]:
        own = super().facts()
        return {
            **own,
            "references": {
                "position": "of the centre of mass; world z is up from the floor, x and y are from the room's middle",
                "position_setpoint": "where the centre of mass is to be at the end",
                "peer1": "where another robot said that it was, and where it would be 1 s later at its velocity",
                "column_position": "axes of the nearest columns; 50 where there is none",
            },
            "room_m": list(ROOM),
            "robots": TEAM,
            "column_radius_m": COLUMN,
            "robot_radius_m": reach_of(self.card),
            "success": {"within_m": ARRIVED, "at_s": self.seconds, "no_hit_after_s": GRACE},
        }

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> MultirotorSwarm:
        if torch.device(device).type != "cpu":
            raise ValueError(f"device is {device}; swarms are simulated on the cpu")
        return MultirotorSwarm(self.card, n, self.period, TEAM, ROOM, MOST_COLUMNS, COLUMN, device)

    def engines(self) -> list[Engine]:
        return []

    def controller(self) -> OrcaController:
        return OrcaController(*self._flown())

    def controllers(self) -> tuple[VoronoiController, ...]:
        return (VoronoiController(*self._flown()),)

    def _flown(self) -> tuple[Any, ...]:
        low, high = zip(*bounds_of(ROOM), strict=True)
        return self.card.airframe, self.period, (*RATES, self.most), Surroundings(low, high, self.reach, COLUMN, STALE)

    # --- how episodes begin ------------------------------------------------------------------------------------

    def goal_ranges(self) -> dict[str, Range]:
        return {}

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, 33): goal and start (x, y, z each, m), 1 after a hit, and x and y of all columns."""
        return drawn_rooms(drawn)

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        setpoint = torch.where(time[:, None] < GRACE, goal[:, 3:6], goal[:, :3])
        return {"position_setpoint": setpoint, "hits": goal[:, 6:7], "time": time[:, None]}

    def advance(self, truth: Tensors, goal: Any) -> Any:
        return torch.cat([goal[:, :6], self.hits(truth)[:, None], goal[:, 7:]], -1)

    def randomize(self, plant: Any, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        super().randomize(plant, ids, drawn)
        plant.param("downwash")[ids] = drawn["downwash"]

    def place(self, plant: Any, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        state = plant.current
        state.position[ids] = goal[:, 3:6] + drawn["initial/position"]
        state.linear_velocity[ids], state.angular_velocity[ids] = (
            drawn[f"initial/{name}_velocity"] for name in ("linear", "angular")
        )
        state.rotor_speed[ids] = self.card.hover_speed * drawn["initial/rotor_speed"][:, None]
        state.orientation[ids] = attitude(drawn["initial/tilt"], drawn["initial/direction"], drawn["initial/yaw"])
        plant.param("columns")[ids] = goal[:, COLUMNS].unflatten(1, (MOST_COLUMNS, 2))

    # --- what robots see ---------------------------------------------------------------------------------------

    def neighbours(self, truth: Tensors) -> dict[str, Any]:
        """Messages, nearest columns, and how near anything is; ``others`` is what only a critic may see."""
        place, speed, columns = truth["position"], truth["linear_velocity"], truth["columns"]
        index = others(TEAM).to(place.device)
        track = torch.stack([place, place + speed], 2)[:, index]  # (teams, K, K - 1, 2, 3)
        apart = torch.cat([place[:, index] - place[:, :, None], speed[:, index] - speed[:, :, None]], -1)
        far, away = length(apart[..., :3]), length(columns - place[:, :, None, :2])
        low, high = place.new_tensor(bounds_of(ROOM)).unbind(1)
        walls = torch.cat([place - low, high - place], -1) - self.reach
        to_robots, to_columns = far - 2 * self.reach, away - COLUMN - self.reach
        nearest = far.argsort(-1)[..., None].expand_as(apart)
        closest = away.topk(SEEN, -1, largest=False).indices
        return {
            **{f"peer{k + 1}": track[:, :, k] for k in range(TEAM - 1)},
            "column_position": columns.gather(2, closest[..., None].expand(-1, -1, -1, 2)),
            "others": apart.gather(2, nearest),
            "clearance": torch.stack([to_robots.amin(-1), torch.cat([to_columns, walls], -1).amin(-1)], -1),
            "proximity": torch.stack([felt(to_robots).sum(-1), felt(to_columns).sum(-1) + felt(2 * walls).sum(-1)], -1),
        }

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        q = signals["orientation"].split(1, -1)
        turn = heading(q)
        place, speed = signals["position"], signals["linear_velocity"]
        way = torch.cat(turn_back((signals["position_setpoint"] - place).split(1, -1), *turn), -1)
        moving = torch.cat(turn_back(speed.split(1, -1), *turn), -1)
        up = torch.cat(turn_back(body_z(q), *turn), -1)
        middle = torch.cat([place[:, :2] * 0.5, place[:, 2:] - 1.0], -1)
        ahead = torch.clamp(way, -1.0, 1.0)
        own = [
            ahead, torch.clamp(3.0 * way, -1.0, 1.0), 0.7 * moving, up, 0.2 * signals["angular_velocity"], middle,
            *turn, memory["last_action"], memory["drift"][:, 1],
        ]  # fmt: skip
        vector = torch.cat(own, -1)
        rows = [self._row(signals, k, place, speed, turn, ahead, moving) for k in range(1, TEAM)]
        return {"policy": vector, "peers": torch.stack(rows, 1), "columns": self._columns(signals, turn, ahead, moving)}

    def _row(self, signals: Tensors, k: int, place: Any, speed: Any, turn: Any, ahead: Any, moving: Any) -> Any:
        """(n, 19) of a peer: where it is by now if it went on, from here, and how it moves; zeros where that is old."""
        track, age = signals[f"peer{k}"], signals[f"peer{k}_age"]
        velocity = track[:, 1] - track[:, 0]
        apart = track[:, 0] + velocity * torch.clamp(age, max=STALE) - place
        distance = torch.sqrt(apart.square().sum(-1, keepdim=True) + 1e-6)
        valid = torch.where(age < STALE, 1.0, 0.0)
        gap, way = distance - 2 * self.reach, turn_back((apart / distance).split(1, -1), *turn)
        relative = turn_back((velocity - speed).split(1, -1), *turn)
        columns = [
            *turn_back(torch.clamp(apart, -2.0, 2.0).split(1, -1), *turn),
            *(torch.clamp(0.7 * part, -3.0, 3.0) for part in relative),
            *weighed(gap, way, relative, ahead),
            ahead,
            moving,
            torch.ones_like(age),
        ]
        return valid * torch.cat(columns, -1)

    def _columns(self, signals: Tensors, turn: Any, ahead: Any, moving: Any) -> Any:
        """(n, SEEN, 13) of the nearest columns; zeros where there is none."""
        rows = []
        for k in range(SEEN):
            apart = signals["column_position"][:, k] - signals["position"][:, :2]
            distance = torch.sqrt(apart.square().sum(-1, keepdim=True) + 1e-6)
            valid = torch.where(distance < 2.0, 1.0, 0.0)
            x, y, zero = turn_back((*torch.clamp(apart, -2.0, 2.0).split(1, -1), 0.0 * distance), *turn)
            way = turn_back((*(apart / distance).split(1, -1), zero), *turn)
            near = weighed(distance - COLUMN - self.reach, way, (-moving).split(1, -1), ahead)
            rows.append(valid * torch.cat([x, y, *near, ahead[:, :2], moving[:, :2], torch.ones_like(x)], -1))
        return torch.stack(rows, 1)

    # --- what robots do ----------------------------------------------------------------------------------------

    def act(self, action: Any, signals: Tensors, memory: Tensors, limit: Any = None) -> tuple[dict, dict]:
        """The velocity that avoids all, as thrust and body rates."""
        q = signals["orientation"].split(1, -1)
        cosine, sine = heading(q)
        speed, ask = signals["linear_velocity"], torch.tanh(action)
        sweeps = TRAINED if limit is None else SWEEPS  # a policy that flies has limits
        x, y, z = (PACE.follow * (avoiding(ask, signals, (cosine, sine), self.reach, sweeps) - speed)).split(1, -1)
        expected, drift = memory["drift"].unbind(1)
        x = torch.clamp(x, -6.0, 6.0) - drift[:, :1]
        y = torch.clamp(y, -6.0, 6.0) - drift[:, 1:2]
        z = torch.clamp(z, -4.0, 4.0) - drift[:, 2:] + GRAVITY
        ahead, left, up = zip(*matrix(q), strict=True)
        size = torch.sqrt(x * x + y * y + z * z + 1e-6)
        rates = [
            -TURN / size * (left[0] * x + left[1] * y + left[2] * z),
            TURN / size * (ahead[0] * x + ahead[1] * y + ahead[2] * z),
            -NOSE * sine,
        ]
        wanted = torch.cat(rates[:2], -1)
        trim = memory["trim"] + (self.period * TRIM) * (wanted - signals["angular_velocity"][:, :2])
        trim = torch.clamp(trim, -TRIMMED, TRIMMED)
        rates = [rates[0] + trim[:, :1], rates[1] + trim[:, 1:], rates[2]]
        rates = [torch.clamp(rate, -most, most) for rate, most in zip(rates, RATES, strict=True)]
        thrust = torch.clamp(up[0] * x + up[1] * y + up[2] * z, 0.3 * GRAVITY, self.most)
        commands = {"body_rate": torch.cat(rates, -1), "thrust": thrust}
        if limit is not None:
            commands = {name: limit(name, value) for name, value in commands.items()}
        error = speed - expected
        x, y, z = (commands["thrust"] * part for part in up)
        given = torch.cat([x, y, z - GRAVITY], -1)
        expected = expected + self.period * (given + drift + 2 * OBSERVE * error)
        drift = torch.clamp(drift + (self.period * OBSERVE**2) * error, -OFFSET, OFFSET)
        return commands, {"last_action": ask, "drift": torch.stack([expected, drift], 1), "trim": trim}

    def command(self, action: Any, memory: Tensors | None = None) -> dict[str, Any]:
        """Of an upright robot at its goal."""
        return {"body_rate": 0.0 * action[:, :3], "thrust": 0.0 * action[:, :1] + GRAVITY}

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        """Of commands that are somebody else's: nothing is learnt of them."""
        return {name: value * 1.0 for name, value in memory.items()}

    # --- what it comes to --------------------------------------------------------------------------------------

    def touching(self, truth: Tensors) -> Any:
        """(n,) whether it is in contact with anything."""
        return (truth["clearance"][:, 0] < 0.0) | (truth["clearance"][:, 1] < 0.0)

    def mishap(self, truth: Tensors) -> Any:
        return self.touching(truth)

    def hits(self, truth: Tensors) -> Any:
        """(n,) 1 if it has hit anything so far, since hits count."""
        now = self.touching(truth) & (truth["time"][:, 0] > GRACE)
        return torch.where(now, 1.0, truth["hits"][:, 0])

    def distance(self, truth: Tensors) -> Any:
        """(n,) m from the goal."""
        return torch.sqrt((truth["position"] - truth["position_setpoint"]).square().sum(-1) + 1e-9)

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        distance = self.distance(truth)
        return {
            "goal": distance,
            "near": torch.exp(-((distance / 0.3) ** 2)),
            "robots": truth["proximity"][:, 0],
            "columns": truth["proximity"][:, 1],
            "contact": torch.where(self.touching(truth), 1.0, 0.0),
            "turning": commands["body_rate"].square().sum(-1),
        }

    def errors(self, truth: Tensors) -> dict[str, Any]:
        distance, hits = self.distance(truth), self.hits(truth)
        away = torch.where(distance > ARRIVED, 1.0, 0.0)
        return {"distance": distance, "hit": hits, "lost": torch.maximum(hits, away), "away": away}

    def _over(self, truth: Tensors) -> Any:
        return truth["time"][:, 0] > self.seconds - 0.5 * self.period

    def _good(self, truth: Tensors) -> Any:
        return (self.hits(truth) < 0.5) & (self.distance(truth) < ARRIVED)

    def failures(self, truth: Tensors) -> dict[str, Any]:
        over = self._over(truth)
        return {
            "hit something": over & (self.hits(truth) > 0.5),
            "not at its goal": over & (self.distance(truth) >= ARRIVED),
            "faster than the gyroscope": truth["angular_velocity"].abs().amax(-1) > self.card.gyroscope_range,
        }

    def succeeded(self, truth: Tensors) -> Any:
        return self._over(truth) & self._good(truth)

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        way = truth["position_setpoint"] - truth["position"]
        near = truth["column_position"] - truth["position"][:, None, :2]
        return torch.cat(
            [
                torch.clamp(way, -1.0, 1.0),
                torch.clamp(3.0 * way, -1.0, 1.0),
                truth["linear_velocity"],
                truth["orientation"],
                0.2 * truth["angular_velocity"],
                truth["position"],
                truth["others"].flatten(1),
                torch.exp(-3.0 * torch.sqrt(truth["others"][:, :, :3].square().sum(-1) + 1e-6)),
                torch.clamp(near, -2.0, 2.0).flatten(1),
                torch.exp(-3.0 * torch.sqrt(near.square().sum(-1) + 1e-6)),
                torch.clamp(truth["clearance"], -1.0, 1.0),
                truth["proximity"],
                truth["time"] / self.seconds,
            ],
            -1,
        )

    def markers(self, truth: Tensors) -> list[Marker]:
        """Goals, trails, and, once for a team, columns and the edges of the floor."""
        n = len(truth["position"])
        first = (torch.arange(n) % TEAM == 0)[:, None, None]
        columns = torch.where(first, truth["columns"], torch.nan)
        edges = torch.where(first, FLOOR.expand(n, -1, -1), torch.nan)
        return [
            Sphere("goal", truth["position_setpoint"], 0.02),
            Trail("path", truth["position"], 3.0),
            Line("columns", outlines(columns), SLATE),
            Line("room", edges, GREY),
        ]


def outlines(columns: Tensor) -> Tensor:
    """(n, k, 3) m: lines along the edges of prisms about columns (n, C, 2), as high as the room; rows of NaN between.

    Rows of columns that are not there are NaN.
    """
    corner = torch.arange(7) * (torch.pi / 3)
    ring = COLUMN * torch.stack([corner.cos(), corner.sin()], -1)  # (7, 2), closed
    ring = ring[torch.tensor([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6])]
    up = torch.tensor([0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0]) * ROOM[2]
    place = torch.where(columns.abs() < ROOM[0], columns, torch.nan)[:, :, None] + ring
    prism = torch.cat([place, up[:, None].expand(*place.shape[:-1], 1)], -1)
    bottom = torch.cat([place[:, :, ::2], torch.zeros_like(place[:, :, ::2, :1])], -1)
    gap = torch.full_like(prism[:, :, :1], torch.nan)
    top = bottom + torch.tensor([0.0, 0.0, ROOM[2]])
    return torch.cat([prism, gap, bottom, gap, top, gap], 2).flatten(1, 2)


def weighed(gap: Any, way: Any, velocity: Any, ahead: Any) -> list[Any]:
    """Six columns (n, 1) of what is near: how near, 0 at ``NOTICED`` m between surfaces to 1 in contact; and, times
    that, the way to it (a unit vector), how fast it gets shorter at a ``velocity``, and its side of the way ``ahead``.
    """
    near = torch.clamp(1.0 - gap / NOTICED, 0.0, 1.0)
    closing = -(velocity[0] * way[0] + velocity[1] * way[1] + velocity[2] * way[2])
    side = ahead[:, :1] * way[1] - ahead[:, 1:2] * way[0]
    return [near, *(2.0 * near * part for part in (*way, closing, side))]


def felt(gap: Any) -> Any:
    """How much the reward feels of a gap (m) between surfaces: 0 from ``MARGIN`` on, 1 in contact, steeper towards."""
    return torch.clamp(1 - gap / MARGIN, 0.0, 1.5).square()
