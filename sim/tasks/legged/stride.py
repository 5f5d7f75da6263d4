"""The stride that a walk on any number of legs follows: footsteps, the body above them, and joint angles, as a table.

Legs are two sets that swing in turn: each leg in the set that its neighbours in front, behind and beside are not in, so
that a biped lifts its feet one after the other, a quadruped its diagonals, a hexapod three legs at once. One set swings
in the first half of a stride and the other in the second, for 80 % of that half; in between all feet stand. The body is
upright at one height, and its centre of mass moves as a pendulum on the feet that stand (``footsteps``). Joint angles
come from inverse kinematics (``leg_kinematics``), at 40 phases of a stride for a grid of velocities.

Policies, simulators and microcontrollers evaluate the table as a sum: Fourier series of the stride's phase whose
coefficients are polynomials of degree 2 in the velocity, fitted by least squares. ``Stride.misfit`` tells what that
loses.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import mujoco
import numpy as np
import torch

from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.legged import LeggedCard
from robo_rl.sim.tasks.legged.footsteps import centre_of_mass, divergence_rate, divergent_at_steps
from robo_rl.sim.tasks.legged.leg_kinematics import reach
from robo_rl.sim.tasks.legged.limbs import Limbs, find_limbs, foot_pose, standing

PHASES = 40
"""Of a stride, one for each control step of 20 ms."""
TIME = 0.8  # s, of a stride: two steps; 0.4 to 0.5 s a step are usual for robots of a G1's size
DOUBLE = 0.2  # part of the time in which all feet stand
LIFT = 0.08  # m, of a G1's foot in mid-swing
CROUCH = 0.944  # of the height of a biped that stands: 0.74 m of a G1, whose legs then reach far enough
NARROW = 0.85  # of the distance between the feet of a biped that stands: 0.20 m of a G1
LEG = 0.78  # m, from the base of a G1 to the ground as it stands
FASTEST = (0.7, 0.25, 0.4)  # m/s, m/s, rad/s: forward, left and turning, of a G1
SLOWEST = (-0.2, -0.25, -0.4)
HARMONICS = 6
NONE = 1e-6
"""Part of the speeds aside and of turns that robots have whose legs swing in one plane: none, but no division by it."""
FLAT = 0.99
"""Cosine between a joint's axis and the base's y axis, in whose plane it swings."""
RUN = 12
"""Steps, an even number, before and after the stride that counts, so that neither end is felt: e^(-12 w T) < 1e-8."""
ASTRAY = 1e-3  # m and rad, by which a foot may be off its place
SINE = math.sin(0.5 * math.pi * DOUBLE)
"""Of the phase's angle as a foot leaves the ground."""


class Plan(NamedTuple):
    """A stride at one velocity, at its PHASES."""

    feet: np.ndarray
    """(PHASES, F, 3) m, in the base frame."""
    yaws: np.ndarray
    """(PHASES, F) rad, how far feet are turned from the base's heading."""
    velocity: np.ndarray
    """(PHASES, 2) m/s of the base, in its frame."""


class Stride:
    """The stride of a robot with legs of this kind."""

    def __init__(self, card: LeggedCard) -> None:
        """CardError where its legs don't reach."""
        self.limbs = find_limbs(card)
        self.sets = two_sets(self.limbs)
        """(F,) 1 of feet that swing in the first half of a stride, -1 of the others."""
        self._robot, count = standing(card), len(card.joints)
        _, data, indices = self._robot
        feet = np.array(self.limbs.feet)
        biped = len(feet) == 2
        self.size = float(-feet[:, 2].mean()) / LEG
        """Of the robot, where a G1 is 1."""
        self.lift = LIFT * self.size
        self.height = float(-feet[:, 2].mean()) * (CROUCH if biped else 1.0)
        """m, of the base above the soles (or the feet's centres)."""
        speed = math.sqrt(self.size)  # alike walks go with the square root of the length (Froude)
        self.flat = all((np.abs(data.xaxis[self._axes(card, leg), 1]) > FLAT).all() for leg in self.limbs.legs)
        """Whether no leg can step aside: the stride leads ahead and back."""
        speeds = np.array([speed, speed * NONE, NONE] if self.flat else [speed, speed, 1.0])
        self.fastest = np.array(FASTEST) * speeds
        self.slowest = np.array(SLOWEST) * speeds
        self.centre = data.subtree_com[indices.base].copy()
        self._homes = (feet - feet.mean(0))[:, :2] * [1.0, NARROW if biped else 1.0]
        self.rate = divergence_rate(self.height + self.centre[2])
        grid = itertools.product(
            *([low, (low + high) / 2, high] for low, high in zip(self.slowest, self.fastest, strict=True))
        )
        self.velocities = np.array(list(grid))
        """(velocities, 3) m/s, m/s, rad/s, of the table."""
        plans = [self.plan(velocity) for velocity in self.velocities]
        self.table = self._tabulate(card, plans)
        """(velocities, PHASES, J) rad."""
        design = np.einsum("vm,pf->vpmf", _monomials(self.velocities / self.fastest), _harmonics())
        design, wanted = design.reshape(self.table[..., 0].size, -1), self.table.reshape(-1, count)
        fitted = np.linalg.lstsq(design, wanted, rcond=None)[0]
        self.misfit = float(np.abs(design @ fitted - wanted).max())
        """rad, the most by which the sum is off the table."""
        begun = np.linalg.lstsq(
            _monomials(self.velocities / self.fastest), np.array([plan.velocity[0] for plan in plans]), rcond=None
        )[0]
        self._count = count
        self._coefficients = torch.from_numpy(fitted.reshape(10, -1)).float()
        self._begun = torch.from_numpy(begun).float()
        self._fastest = torch.from_numpy(self.fastest[None]).float()
        self._slowest = torch.from_numpy(self.slowest[None] / self.fastest[None]).float()
        self._sets = torch.tensor([self.sets])

    def _axes(self, card: LeggedCard, leg: tuple[int, ...]) -> list[int]:
        """Of joints of the card, in the model."""
        return [self._robot[0].joint(card.joint_names[joint]).id for joint in leg]

    def first_velocity(self, velocity: Any) -> Any:
        """(n, 2) m/s of the base, in its frame, as a stride at ``velocity`` (n, 3) begins."""
        return torch.matmul(self._powers(velocity), self._begun)

    def _powers(self, velocity: Any) -> Any:
        """(n, 10) monomials of a velocity (n, 3), which is cut to what the table holds."""
        x, y, w = torch.clamp(velocity / self._fastest, self._slowest, 1.0 + 0.0 * self._fastest).split([1, 1, 1], -1)
        return torch.cat([torch.ones_like(x), x, y, w, x * x, y * y, w * w, x * y, x * w, y * w], -1)

    def reference(self, clock: Any, velocity: Any) -> tuple[Any, Any]:
        """Joint angles (n, J) rad and speeds (n, J) rad/s, at a ``clock`` (n, 2), cosine and sine of the phase's angle,
        for ``velocity`` (n, 3) m/s, m/s, rad/s, which is cut to what the table holds."""
        # a table, no layer of a network
        rows = (self._powers(velocity).unsqueeze(-1) * self._coefficients[None]).sum(1)
        rows = rows.reshape(-1, 1 + 2 * HARMONICS, self._count)
        turn = 2 * math.pi / TIME
        cosine, sine = torch.clamp(clock, -1.0, 1.0).split([1, 1], -1)  # of a damaged memory: powers must not grow
        waves, slopes = [torch.ones_like(cosine)], [torch.zeros_like(cosine)]
        c, s = cosine, sine
        for k in range(1, HARMONICS + 1):
            waves += [c, s]
            slopes += [-k * turn * s, k * turn * c]
            c, s = c * cosine - s * sine, s * cosine + c * sine
        wave, slope = torch.cat(waves, -1).unsqueeze(-1), torch.cat(slopes, -1).unsqueeze(-1)
        return (rows * wave).sum(1), (rows * slope).sum(1)

    def swing(self, sine: Any) -> Any:
        """(n, F) how far up each foot is, 0 to 1, at the sine (n, 1) of the phase's angle; 0 where it stands."""
        return torch.clamp((self._sets * sine - SINE) / (1.0 - SINE), min=0.0).square()

    def plan(self, velocity: np.ndarray) -> Plan:
        """The stride at a velocity (3,) m/s, m/s, rad/s."""
        step, half, count = TIME / 2, PHASES // 2, len(self._homes)
        numbers = np.arange(2 * RUN + 2)
        headings, middle = velocity[2] * (numbers + 0.5) * step, path(velocity, (numbers + 0.5) * step)
        prints = middle[:, None] + turned(self._homes[None], headings[:, None])  # (steps, F, 2): beside the path
        stands = (numbers % 2 == 0)[:, None] != (np.array(self.sets) > 0)[None]
        supports = (prints * stands[..., None]).sum(1) if count == 2 else middle  # more feet stand around the path
        times = np.arange(half) / half * step
        divergent = divergent_at_steps(supports, self.rate, step)
        places, speeds = centre_of_mass(supports, divergent, self.rate, step, times)
        feet, yaws = np.zeros((PHASES, count, 3)), np.zeros((PHASES, count))
        centre = places[RUN : RUN + 2].reshape(PHASES, 2)
        heading = velocity[2] * (RUN * step + np.arange(PHASES) / half * step)
        base = centre - turned(self.centre[None, :2], heading)
        lifted = (
            self.lift
            * np.clip(
                (np.sin(2 * np.pi * np.arange(PHASES) / PHASES)[:, None] * self.sets - SINE) / (1 - SINE), 0.0, None
            )
            ** 2
        )
        share = np.clip((np.arange(half) / half - DOUBLE / 2) / (1 - DOUBLE), 0.0, 1.0)
        share = share**3 * (10 - 15 * share + 6 * share**2)  # of minimum jerk
        for phase in range(PHASES):
            number, way = RUN + phase // half, share[phase % half]
            before, after = np.where(stands[number], number, number - 1), np.where(stands[number], number, number + 1)
            each = np.arange(count)
            spot = (1 - way) * prints[before, each] + way * prints[after, each]
            feet[phase, :, :2] = turned(spot - base[phase], -heading[phase])
            yaws[phase] = (1 - way) * headings[before] + way * headings[after] - heading[phase]
        feet[..., 2] = lifted - self.height
        if self.flat:
            feet[..., 1], yaws[:] = np.array(self.limbs.feet)[:, 1], 0.0
        # the base's origin is beside the centre of mass, around which it turns
        aside = turned(self.centre[None, :2], heading)
        own = speeds[RUN : RUN + 2].reshape(PHASES, 2) - velocity[2] * np.stack([-aside[:, 1], aside[:, 0]], -1)
        return Plan(feet, yaws, turned(own, -heading))

    def _left_angles(self, card: LeggedCard, velocity: np.ndarray, plan: Plan) -> np.ndarray:
        """(PHASES, J) rad of the joints of legs on the left, the others as the robot stands."""
        model, data, indices = self._robot
        limits = np.array([[joint.lower, joint.upper] for joint in card.joints])
        found = np.tile([joint.stand for joint in card.joints], (PHASES, 1))
        for foot in [number for number, place in enumerate(self.limbs.feet) if place[1] >= 0]:
            leg, name = np.array(self.limbs.legs[foot]), card.feet[foot]
            columns = indices.position[leg]
            data.qpos[indices.position] = [joint.stand for joint in card.joints]
            mujoco.mj_kinematics(model, data)
            _, flat = foot_pose(model, data, name)
            for phase in range(PHASES):
                turn = _about_z(plan.yaws[phase, foot]) @ flat
                off = reach(model, data, name, columns, plan.feet[phase, foot], turn, limits[leg])
                if off > ASTRAY:
                    raise CardError(
                        f"{card.model}: foot '{name}' stays {off:.3f} m and rad off where a stride at "
                        f"{velocity.round(2).tolist()} m/s, m/s, rad/s has it; expected longer legs, wider stops, or "
                        "'stand' angles of legs that are bent"
                    )
                found[phase, leg] = data.qpos[columns]
        return found

    def _tabulate(self, card: LeggedCard, plans: list[Plan]) -> np.ndarray:
        """(velocities, PHASES, J) rad. Legs on the right do what the left ones of the mirror image did half a stride
        before."""
        table = np.stack([self._left_angles(card, *each) for each in zip(self.velocities, plans, strict=True)])
        images = [int(np.abs(self.velocities - v * [1.0, -1.0, -1.0]).sum(1).argmin()) for v in self.velocities]
        later = np.roll(table[images], PHASES // 2, 1)[..., list(self.limbs.opposite)] * self.limbs.signs
        left = [j for foot, leg in enumerate(self.limbs.legs) if self.limbs.feet[foot][1] >= 0 for j in leg]
        later[..., left] = table[..., left]
        return later


def path(velocity: np.ndarray, times: np.ndarray) -> np.ndarray:
    """(…, 2) m, places at ``times`` (s) of a path from the origin at a steady velocity and rate of turn."""
    turn = velocity[2] * times
    along = (np.sinc(turn / (2 * np.pi)) * times)[..., None] * velocity[:2]  # the chord of an arc: sin(h/2) / (h/2)
    return turned(along, turn / 2)


def two_sets(limbs: Limbs) -> list[float]:
    """(F,) 1 of feet that swing in the first half of a stride, the foremost left one among them, -1 of the others."""
    feet = np.array(limbs.feet)
    sides = [np.flatnonzero(feet[:, 1] >= 0), np.flatnonzero(feet[:, 1] < 0)]
    sets = [0.0] * len(feet)
    for side, members in enumerate(sides):
        for rank, foot in enumerate(members[np.argsort(-feet[members, 0], kind="stable")]):
            sets[foot] = 1.0 if (rank + side) % 2 == 0 else -1.0
    if any(sets[foot] == sets[image] for foot, image in enumerate(limbs.opposite_foot)):
        raise CardError(f"feet are at {feet.round(2).tolist()}; expected as many on each side, opposite one another")
    return sets


def _monomials(velocities: np.ndarray) -> np.ndarray:
    """(v, 10): the products of degree 0 to 2 of velocities (v, 3), in parts of the fastest."""
    x, y, w = velocities.T
    return np.stack([np.ones_like(x), x, y, w, x * x, y * y, w * w, x * y, x * w, y * w], -1)


def _harmonics() -> np.ndarray:
    """(PHASES, 1 + 2 HARMONICS): 1, and cosine and sine of each multiple of the phase's angle."""
    angle = 2 * np.pi * np.arange(PHASES) / PHASES
    waves = [wave(k * angle) for k in range(1, HARMONICS + 1) for wave in (np.cos, np.sin)]
    return np.stack([np.ones(PHASES), *waves], -1)


def turned(vectors: np.ndarray, angles: Any) -> np.ndarray:
    """Vectors (…, 2) turned by angles (…) rad."""
    c, s = np.cos(angles), np.sin(angles)
    return np.stack([c * vectors[..., 0] - s * vectors[..., 1], s * vectors[..., 0] + c * vectors[..., 1]], -1)


def _about_z(angle: float) -> np.ndarray:
    return np.array([[math.cos(angle), -math.sin(angle), 0], [math.sin(angle), math.cos(angle), 0], [0, 0, 1.0]])
