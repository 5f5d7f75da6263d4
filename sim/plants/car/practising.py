"""Cars that practise: each on a track of its own with way-points, never set back by hand.

A car that touches a wall rebounds by 2 cm and stands; nothing is damaged. A car that has touched a wall, or has been
stuck, is recovered by a rule: it drives in reverse for a second with a steering angle of chance (Stachowicz et al.
2023, FastRLAP: A System for Learning High-Speed Driving via Deep RL and Autonomous Practicing). Between walls that are
as near as here that is not enough, so two signals of the car have a say: if the next way-point is far from straight
ahead, it steers so that it turns towards it, and if it got nowhere in reverse, it drives forward for a second with the
wheels turned the other way, as in a three-point turn. That happens within the control step in which it is noticed;
``clock`` counts its time, too. Attended cars are not recovered: someone ends the episode.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from robo_rl.contract import Scan
from robo_rl.sim.accelerate.fuse import empty_block
from robo_rl.sim.plants.car.on_track import NAMES, CarOnTrack, OnTrackState
from robo_rl.sim.plants.saving import Saved, live
from robo_rl.sim.robots.car import CarCard

if TYPE_CHECKING:
    from robo_rl.sim.scenes.tracks.courses import Course

STEP = 0.025  # s between looks at the walls
BACK = 1.0  # m/s, the speed of the recovery (FastRLAP)
RECOVERY = 1.0  # s (FastRLAP)
ASIDE = 0.5  # rad: a way-point that is farther from straight ahead is steered for
REBOUND = 0.02  # m, from a wall: an estimate, of 1 m/s with restitution 0.3, which friction of 0.2 stops
WEDGED = 0.1  # m: a recovery in reverse that led less far has led nowhere
STUCK = (0.3, 3.0)  # m, s: no farther from where it was within that time (FastRLAP: 30 positions within 0.3 m)
APART = 4.0  # m between way-points, about
REACH = 2.0  # m along the track: a way-point that is nearer has been reached
TURNS = 32  # steering angles of recoveries that are drawn; after them they come again

OWN = ("recovery", "recovery_steering", "attended")
"""Parameters besides those of ``CarOnTrack``: whether the rule is there (0 or 1), its steering angles as parts of the
limit, and whether someone attends (0 or 1)."""
Parameters = cast(Any, namedtuple("Parameters", (*NAMES, *OWN)))


class Practice(NamedTuple):
    """What cars keep from step to step, (n, k) each, live."""

    begun: Tensor
    """m along the track, where the car was placed."""
    anchor: Tensor
    """(n, 2) m, world: where the car was when it last had moved on."""
    waited: Tensor
    """s since then."""
    clock: Tensor
    """s since the car was placed, recoveries included."""
    recoveries: Tensor
    """How many there were."""
    advance: Tensor
    """m along the track in the last step, by its own driving."""
    contact: Tensor
    """1 where it touched a wall in the last step, by its own driving, else 0."""
    stuck: Tensor
    """1 where it was found to be stuck in the last step, else 0."""
    waypoint_position: Tensor
    """(n, 2) m, body: where the next way-point is."""


class PractisingCar(Saved):
    """n cars, stepped in place at one control rate."""

    dynamics = None

    def __init__(
        self, card: CarCard, n: int, period: float, scan: Scan, beams: int, courses: Sequence[Course] = ()
    ) -> None:
        """As ``CarOnTrack``; ``period`` (s) is a multiple of ``STEP``."""
        self.card, self.n, self.period, self.device = card, n, period, torch.device("cpu")
        self.substeps = round(period / STEP)
        self.on = CarOnTrack(card, n, period / self.substeps, scan, beams, (), courses)
        own = [torch.ones(1), torch.linspace(-1.0, 1.0, TURNS).roll(TURNS // 4)[None], torch.zeros(1)]
        self.nominal = Parameters(*self.on.nominal, *own)
        self.parameters = Parameters(*self.on.parameters, *live(n, own))
        _, kept = empty_block(n, [(1,), (2,), (1,), (1,), (1,), (1,), (1,), (1,), (2,)])
        self.practice = Practice(*kept)
        _, (self._orders, self._speeds, self._clearance) = empty_block(n, [(1,), (1,), (1,)])
        self.begin(torch.arange(n))

    @property
    def tracks(self) -> Any:
        """``robo_rl.sim.scenes.tracks.Tracks`` of all cars."""
        return self.on.tracks

    def refresh(self, ids: Tensor) -> None:
        """Make the tracks of ``ids`` (m,) by their parameters."""
        self.on.refresh(ids)

    def put(self, ids: Tensor, part: Tensor, offset: Tensor, turn: Tensor, speed: Tensor) -> None:
        """Put cars on their tracks by hand, see ``CarOnTrack.put``; their practice begins."""
        self.on.put(ids, part, offset, turn, speed)
        self.begin(ids)

    def begin(self, ids: Tensor) -> None:
        """Let the practice of the cars ``ids`` (m,) begin where they are."""
        for value in self.practice:
            value[ids] = 0.0
        self.practice.anchor[ids] = self.on.car.current.position[ids]
        self.practice.begun[ids] = self.on.station[ids] - self.on.progress[ids]
        self._see()

    def spacing(self) -> Tensor:
        """(n, 1) m between way-points along the track: a whole number of them."""
        length = self.tracks.length[:, None]
        return length / torch.clamp((length / APART).round(), min=3.0)

    def waypoints(self) -> Tensor:
        """(n, 2) m, world: the next way-point of each car, on the centre line."""
        apart, travelled = self.spacing(), self.practice.begun + self.on.progress
        number = ((travelled + REACH) / apart).floor() + 1.0
        station = torch.remainder(number * apart, self.tracks.length[:, None])
        return self.tracks.point(torch.arange(self.n), station[:, 0])[0]

    def _see(self) -> None:
        """Write where the way-points are, seen from the cars."""
        now = self.on.car.current
        x, y = (self.waypoints() - now.position).unbind(-1)
        cosine, sine = now.heading[:, 0].cos(), now.heading[:, 0].sin()
        self.practice.waypoint_position[:, 0] = cosine * x + sine * y
        self.practice.waypoint_position[:, 1] = cosine * y - sine * x

    def truth(self) -> dict[str, Tensor]:
        """Every quantity by name, live views (n, …), see ``CarOnTrack.truth`` and ``Practice``."""
        flags = {name: self.param(name)[:, None] for name in ("recovery", "attended")}
        return {**self.on.truth(), **self.practice._asdict(), **flags}

    def step(self, commands: Mapping[str, Tensor]) -> None:
        """One control period under ``steering_angle`` (n, 1) rad and ``speed`` (n, 1) m/s, and recoveries."""
        kept, place = self.practice, self.on.car.current.position
        self._orders.copy_(commands["steering_angle"])
        self._speeds.copy_(commands["speed"])
        before = self.on.progress.clone()
        touched = self._drive(self.substeps)
        kept.advance.copy_(self.on.progress - before)
        kept.contact.copy_(touched[:, None])
        kept.clock.add_(self.period)
        moved = torch.linalg.vector_norm(place - kept.anchor, dim=-1, keepdim=True) > STUCK[0]
        kept.anchor.copy_(torch.where(moved, place, kept.anchor))
        kept.waited.copy_(torch.where(moved, 0.0, kept.waited + self.period))
        kept.stuck.copy_(kept.waited > STUCK[1] - 0.5 * self.period)
        wanted = ((kept.contact + kept.stuck > 0) & (self.parameters.recovery[:, None] > 0.5))[:, 0]
        ids = (wanted & (self.parameters.attended < 0.5)).nonzero()[:, 0]
        if len(ids):
            self._recover(ids)
        kept.waited[kept.stuck > 0] = 0.0
        self._see()

    def _drive(self, steps: int) -> Tensor:
        """So many times ``STEP``; returns which cars (n,) touched a wall, 1 or 0. They stand, a little away from it."""
        every, touched = torch.arange(self.n), torch.zeros(self.n)
        orders = {"steering_angle": self._orders, "speed": self._speeds}
        for _ in range(steps):
            before = self.on.state(every)
            self.on.step(orders)
            hit = (self.tracks.located.clearance[:, 0] <= 0.0).nonzero()[:, 0]
            if len(hit):
                touched[hit] = 1.0
                still = {name: torch.zeros_like(getattr(before, name)) for name in ("velocity", "yaw_rate", "drive")}
                free = before._replace(**still, steering=self.on.car.current.steering.clone())
                away = free._replace(position=before.position + REBOUND * self._away())
                self.on.set_state(hit, OnTrackState(*(part[hit] for part in away)))
                again = hit[self.tracks.located.clearance[hit, 0] <= 0.0]
                self.on.set_state(again, OnTrackState(*(part[again] for part in free)))
        return touched

    def _away(self) -> Tensor:
        """(n, 2), world: unit vectors from the nearer wall to the centre line."""
        way = self.tracks.point(torch.arange(self.n), self.on.station[:, 0])[1]
        left = torch.stack([-torch.sin(way), torch.cos(way)], -1)
        return torch.where(self.tracks.located.offset > 0, -left, left)

    def _recover(self, ids: Tensor) -> None:
        """Let the rule drive the cars ``ids`` (m,) while the others wait."""
        kept, place = self.practice, self.on.car.current.position[ids].clone()
        self._see()
        aside = torch.atan2(kept.waypoint_position[ids, 1:], kept.waypoint_position[ids, :1])
        turn = torch.remainder(kept.recoveries[ids], TURNS).long()
        chance = self.parameters.recovery_steering[ids].gather(1, turn)
        # in reverse, wheels to the right turn the car to the left
        steering = self.card.steering_limit * torch.where(aside.abs() > ASIDE, -aside.sign(), chance)
        self._drive_alone(ids, steering, -BACK)
        wedged = torch.linalg.vector_norm(self.on.car.current.position[ids] - place, dim=-1) < WEDGED
        if wedged.any():
            self._drive_alone(ids[wedged], -steering[wedged], BACK)
        kept.recoveries[ids] += 1.0
        kept.waited[ids] = 0.0
        kept.anchor[ids] = self.on.car.current.position[ids]

    def _drive_alone(self, ids: Tensor, steering: Tensor, speed: float) -> None:
        """Let the cars ``ids`` (m,) drive for RECOVERY with ``steering`` (m, 1) rad at ``speed`` (m/s)."""
        others = torch.ones(self.n, dtype=torch.bool)
        others[ids] = False
        waiting = others.nonzero()[:, 0]
        theirs = self.on.state(waiting)
        self._orders[ids] = steering
        self._speeds[ids] = speed
        self._drive(round(RECOVERY / STEP))
        self.on.set_state(waiting, theirs)
        self.practice.clock[ids] += RECOVERY

    def state(self, ids: Tensor) -> Any:
        """A copy of the state of the cars ``ids`` (m,)."""
        return PractisingState(*self.on.state(ids), *(value[ids] for value in self.practice))

    def set_state(self, ids: Tensor, state: Any) -> None:
        """Put the cars ``ids`` (m,) into a state."""
        count = len(OnTrackState._fields)
        self.on.set_state(ids, OnTrackState(*state[:count]))
        for mine, given in zip(self.practice, state[count:], strict=True):
            mine[ids] = given

    def push(self, ids: Tensor, velocity: Tensor) -> None:
        """Change the cars' velocity by what of ``velocity`` (3,) m/s, world, is along the ground."""
        self.on.push(ids, velocity)

    def drawing(self) -> Any:
        """A MuJoCo model of how a car looks; its track is drawn by the task's markers."""
        return self.on.drawing()

    def poses(self, ids: Tensor) -> np.ndarray:
        """(m, bodies, 7) m and quaternion x, y, z, w: of the bodies of ``drawing``."""
        return self.on.poses(ids)

    def save(self) -> dict[str, Tensor]:
        """All that changes, for a checkpoint."""
        own = {name: self.param(name) for name in OWN}
        return {**self.on.save(), **{f"practice/{k}": v for k, v in self.practice._asdict().items()}, **own}

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Continue from ``save``, bit by bit."""
        self.on.load(saved)
        for name in OWN:
            self.param(name).copy_(saved[name])
        for name, value in self.practice._asdict().items():
            value.copy_(saved[f"practice/{name}"])


PractisingState = cast(Any, namedtuple("PractisingState", (*OnTrackState._fields, *Practice._fields)))
