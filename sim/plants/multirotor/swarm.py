"""Multirotors that share a room: downwash from those above, and contact with others, columns, walls, floor and ceiling.

Teams lie one after the other in the batch. Before each control period the air that the others push down is added to
each one's wind; after it, those that touch bounce. Both are elementwise over (robot, other) and fused to one loop.

Downwash. The rotors' air becomes a round turbulent jet below its vehicle. Far from the nozzle such a jet knows its
momentum alone, which is the weight M = m g that it carries (Pope 2000, Turbulent Flows, section 5.1, with the
measurements of Hussein, Capp and George 1994): at the depth z and the distance r from the axis

    U = B √(4 M / (π ρ)) / z · exp(−ln 2 (r / h)²)      h = arm + S z       B = 5.8, S = 0.094

and nowhere more than 2 √(M / (2 ρ A)), what momentum theory gives below discs of the area A. The half-width begins with
the arm, where the published one begins with a point. It reaches a vehicle as wind, by the rotors' axial drag. A
propeller in an axial stream also loses thrust, which that drag does not hold: the factor ``downwash`` on U, which tasks
draw, stands for it.

Contact. Vehicles are spheres of the reach of their propellers, columns are vertical cylinders as high as the room. Of
two that overlap and approach each other, the velocity of approach is given back by ``RESTITUTION``, half of it to each;
of what stands, all of it. Attitude and rates stay as they are. No force pushes apart what overlaps.
"""

from __future__ import annotations

import functools
import math
from collections import namedtuple
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse import Fused, fuse
from robo_rl.sim.plants.multirotor import MultirotorState
from robo_rl.sim.plants.multirotor.rates import FIELDS, MultirotorByRates
from robo_rl.sim.robots.multirotor import GRAVITY, MultirotorCard

AIR = 1.225
"""kg/m³, at sea level (ISO 2533)."""
JET_DECAY, JET_SPREAD = 5.8, 0.094
"""B and S of the round jet: Hussein, Capp and George 1994, as in Pope 2000, table 5.1."""
RESTITUTION = 0.3
"""Of the velocity of approach. An estimate, for plastic on plastic with propellers in between."""
NOWHERE = 50.0
"""m: x and y of columns that are not there."""

SWARM_FIELDS = (*FIELDS, "downwash", "columns")
SwarmParameters: Any = namedtuple("SwarmParameters", SWARM_FIELDS)  # type: ignore[misc]
"""Those of ``MultirotorByRates``; ``downwash`` (n,), factor on the air's velocity below others, which comes to the
``wind``; ``columns`` (n, C, 2) m, x and y of their axes."""


class MultirotorSwarm(MultirotorByRates):
    """As ``MultirotorByRates``, with ``team`` vehicles in each room."""

    def __init__(
        self, card: MultirotorCard, n: int, period: float, team: int, room: tuple[float, float, float], columns: int,
        column_radius: float, device: str | torch.device = "cpu",
    ) -> None:  # fmt: skip
        """``n`` vehicles, a multiple of ``team``. ``room`` is its length, width and height, m, with x and y from its
        middle and z from the floor; ``columns`` the most that stand in it."""
        super().__init__(card, n, period, device)
        self.team, self.room, self.reach, self.column_radius = team, room, reach_of(card), column_radius
        self.nominal = with_columns(self.nominal, columns)
        self.parameters = with_columns(self.parameters, columns)
        self._others = others(team).to(device)
        self._wash = _fused_wash(jet_of(card))
        self._bounce = _fused_bounce(self.reach, column_radius, room)

    def dynamics(self, state: MultirotorState, commands: Mapping[str, Any], parameters: Any) -> MultirotorState:
        """The state one control period later, differentiable.

        No gradient goes through the downwash, nor through blows: after some of them in turn it would be noise.
        """
        given = parameters._replace(wind=self.air(state, parameters))
        moved = self.advance(state, commands["body_rate"], commands["thrust"], given)
        now = moved.linear_velocity
        with torch.no_grad():
            blow = self._bounce(moved.position, now, *self._near(moved), parameters.columns) - now
        return moved._replace(linear_velocity=now + blow)

    def air(self, state: MultirotorState, parameters: Any) -> Tensor:
        """(n, 3) m/s, world: the wind, and what others above push down."""
        place, _ = self._near(state)
        return self._wash(state.position.detach(), place.detach(), parameters.wind, parameters.downwash)

    def step(self, commands: Mapping[str, Tensor]) -> None:
        """One control period under ``body_rate`` and ``thrust``, held constant."""
        for mine, value in zip(self.current, self.dynamics(self.current, commands, self.parameters), strict=True):
            mine.copy_(value)

    def _near(self, state: MultirotorState) -> list[Tensor]:
        """(n, team − 1, 3) each: where the others of each team are, and their velocities."""
        both = state.position, state.linear_velocity
        return [value.unflatten(0, (-1, self.team))[:, self._others].flatten(0, 1) for value in both]

    def truth(self) -> dict[str, Tensor]:
        """And where the columns are."""
        return {**self.current._asdict(), "columns": self.param("columns")}


def with_columns(parameters: Any, count: int) -> Any:
    """And those of the room, with so many columns, none of which is there."""
    like = parameters.mass
    return SwarmParameters._make([*parameters, like.new_ones(1), like.new_full((1, count, 2), NOWHERE)])


def reach_of(card: MultirotorCard) -> float:
    """m, from the centre of mass to the tips of the propellers."""
    return card.arm + card.propeller_radius


def others(team: int) -> Tensor:
    """(team, team − 1) the numbers of the others for each of a team, beginning with the next one."""
    return (torch.arange(team)[:, None] + torch.arange(1, team)[None]) % team


def jet_of(card: MultirotorCard) -> tuple[float, float, float]:
    """Of the air below a vehicle that hovers: velocity times depth (m²/s), the greatest velocity (m/s), and its arm."""
    weight, discs = card.mass * GRAVITY, len(card.rotors) * math.pi * card.propeller_radius**2
    return JET_DECAY * math.sqrt(4 * weight / (math.pi * AIR)), 2 * math.sqrt(weight / (2 * AIR * discs)), card.arm


def washed(position: Any, near: Any, wind: Any, factor: Any, jet: tuple[float, float, float]) -> Any:
    """(n, 3) m/s, the wind below others at ``near`` (n, K, 3)."""
    strength, most, arm = jet
    down: Any = 0.0
    for k in range(near.shape[1]):
        x, y, depth = (near[:, k, i] - position[:, i] for i in range(3))
        below = torch.clamp(depth, min=1e-3)
        half = arm + JET_SPREAD * below
        speed = torch.clamp(strength / below, max=most) * torch.exp(-math.log(2.0) * (x * x + y * y) / (half * half))
        down = down + torch.where(depth > 0.0, speed, 0.0)
    return torch.stack([wind[:, 0], wind[:, 1], wind[:, 2] - factor * down], -1)


def bounced(
    position: Any, velocity: Any, near: Any, near_velocity: Any, columns: Any, reach: float, column_radius: float,
    room: tuple[float, float, float],
) -> Any:  # fmt: skip
    """(n, 3) m/s after contact."""
    place, speed = position.unbind(-1), list(velocity.unbind(-1))
    change: list[Any] = [0.0 * speed[0]] * 3
    for k in range(near.shape[1]):
        apart = [place[i] - near[:, k, i] for i in range(3)]
        distance = torch.sqrt(sum(a * a for a in apart) + 1e-9)
        closing = sum((near_velocity[:, k, i] - speed[i]) * apart[i] for i in range(3)) / distance
        hit = torch.where((distance < 2 * reach) & (closing > 0.0), 0.5 * (1 + RESTITUTION) * closing / distance, 0.0)
        change = [change[i] + hit * apart[i] for i in range(3)]
    speed = [v + c for v, c in zip(speed, change, strict=True)]
    for k in range(columns.shape[1]):
        x, y = place[0] - columns[:, k, 0], place[1] - columns[:, k, 1]
        distance = torch.sqrt(x * x + y * y + 1e-9)
        closing = -(speed[0] * x + speed[1] * y) / distance
        touching = (distance < reach + column_radius) & (closing > 0.0)
        hit = torch.where(touching, (1 + RESTITUTION) * closing / distance, 0.0)
        speed[0], speed[1] = speed[0] + hit * x, speed[1] + hit * y
    for i, (low, high) in enumerate(bounds_of(room)):
        back = -RESTITUTION * speed[i]
        speed[i] = torch.where((place[i] < low + reach) & (speed[i] < 0.0), back, speed[i])
        speed[i] = torch.where((place[i] > high - reach) & (speed[i] > 0.0), back, speed[i])
    return torch.stack(speed, -1)


def bounds_of(room: tuple[float, float, float]) -> tuple[tuple[float, float], ...]:
    """m, where a room begins and ends along x, y and z."""
    length, width, height = room
    return (-length / 2, length / 2), (-width / 2, width / 2), (0.0, height)


def length(vector: Tensor) -> Tensor:
    """(…) of vectors (…, k), many times as fast as torch's norm over so short an axis."""
    return sum(part.square() for part in vector.unbind(-1)).sqrt()  # type: ignore[union-attr]


@functools.cache
def _fused_wash(jet: tuple[float, float, float]) -> Fused:
    def downwash(position: Tensor, near: Tensor, wind: Tensor, factor: Tensor) -> Tensor:
        return washed(position, near, wind, factor, jet)

    return fuse(downwash)


@functools.cache
def _fused_bounce(reach: float, column_radius: float, room: tuple[float, float, float]) -> Fused:
    def contact(position: Tensor, velocity: Tensor, near: Tensor, near_velocity: Tensor, columns: Tensor) -> Tensor:
        return bounced(position, velocity, near, near_velocity, columns, reach, column_radius, room)

    return fuse(contact)
