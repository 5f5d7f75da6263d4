"""Whether a robot can follow a clip: its joints' limits and speeds, its feet's slip, and its balance.

The clip goes through the robot's own model, frame by frame: kinematics tell where soles are, inverse dynamics which
force the ground has to give. That acts at the zero-moment point (Vukobratovic and Borovac 2004), which has to be within
the convex hull of the soles that stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np

from robo_rl.sim.robots.legged import LeggedCard
from robo_rl.sim.tasks.legged.clips import PERIOD, Clip, ClipError
from robo_rl.sim.tasks.legged.limbs import foot_body, standing

PART = 0.9
"""Of a joint's range about its middle, and of its greatest speed, that a clip may use: what is left is for balance."""
SLIP = 0.005  # m, by which a foot that stands may move
RAISED = 0.01  # m, above which a sole does not stand
SUNK = 0.01  # m, by which a sole may be in the ground
OUTSIDE = 0.01  # m, by which the zero-moment point may be out of the soles
STILL = 0.1  # rad/s and m/s, as a clip begins and ends: a robot stands there before and after
LIGHTEST = 0.1  # of its weight, with which it presses on the ground at least
GRAVITY = 9.81  # m/s²
FASTEST = 5.0  # m/s and rad/s, of the base


def require_possible(clip: Clip, card: LeggedCard) -> None:
    """ClipError with a sentence for each thing that forbids it."""
    if clip.joints != card.joint_names:
        raise ClipError(
            f"clip '{clip.name}' has the joints {list(clip.joints)}; expected those of '{card.name}' in its order, "
            f"{list(card.joint_names)}"
        )
    found = [*_of_joints(clip, card), *_of_the_whole(clip, card)]
    if found:
        raise ClipError("\n  ".join([f"clip '{clip.name}' can't be followed by '{card.name}':", *found]))


def _of_joints(clip: Clip, card: LeggedCard) -> Iterator[str]:
    speeds = np.gradient(clip.angles, PERIOD, axis=0)
    for number, joint in enumerate(card.joints):
        angles, middle = clip.angles[:, number], 0.5 * (joint.lower + joint.upper)
        half = 0.5 * PART * (joint.upper - joint.lower)
        low, high = min(middle - half, joint.stand), max(middle + half, joint.stand)
        frame = int(np.maximum(low - angles, angles - high).argmax())
        if not low <= angles[frame] <= high:
            yield (
                f"joint '{joint.name}' is at {angles[frame]:.3f} rad after {PERIOD * frame:.2f} s; expected {low:.3f} "
                f"to {high:.3f} rad, {PART:.0%} of its range"
            )
        frame = int(np.abs(speeds[:, number]).argmax())
        if abs(speeds[frame, number]) > PART * joint.velocity:
            yield (
                f"joint '{joint.name}' moves at {abs(speeds[frame, number]):.1f} rad/s after {PERIOD * frame:.2f} s; "
                f"expected at most {PART * joint.velocity:.1f} rad/s, {PART:.0%} of its greatest speed"
            )
    for name, frame in (("begins", 0), ("ends", -1)):
        if np.abs(speeds[frame]).max() > STILL:
            number = int(np.abs(speeds[frame]).argmax())
            yield (
                f"it {name} with joint '{card.joint_names[number]}' at {speeds[frame, number]:.2f} rad/s; expected a "
                f"pose at rest (at most {STILL} rad/s): add frames that lead there"
            )


def _of_the_whole(clip: Clip, card: LeggedCard) -> Iterator[str]:
    model, data, indices = standing(card)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    qpos = np.tile(data.qpos, (len(clip), 1))
    free, spin = indices.free_position, indices.free_velocity
    qpos[:, free : free + 3], qpos[:, free + 3 : free + 7] = clip.position, clip.orientation[:, [3, 0, 1, 2]]
    qpos[:, indices.position] = clip.angles
    velocities, accelerations = _derivatives(model, qpos)
    fastest = int(np.abs(velocities[:, spin : spin + 6]).max(1).argmax())
    if np.abs(velocities[fastest, spin : spin + 6]).max() > FASTEST:
        yield (
            f"the base moves at {velocities[fastest, spin : spin + 6].round(1).tolist()} m/s and rad/s "
            f"after {PERIOD * fastest:.2f} s; expected at most {FASTEST}: frames without jumps, and quaternions in "
            "their order"
        )
        return
    soles = _soles(model, card)
    places = np.zeros((len(clip), len(soles), 3))
    points, ups = np.zeros((len(clip), 2)), np.zeros(len(clip))
    for frame in range(len(clip)):
        data.qpos[:], data.qvel[:], data.qacc[:] = qpos[frame], velocities[frame], accelerations[frame]
        mujoco.mj_inverse(model, data)
        places[frame] = [data.xpos[body] + data.xmat[body].reshape(3, 3) @ at for _, body, at in soles]
        ups[frame] = data.qfrc_inverse[spin + 2]
        points[frame] = _zero_moment_point(data, indices.base, spin)
    heights, below = places[..., 2], int(places[..., 2].min(1).argmin())
    if heights[below].min() < -SUNK:
        yield (
            f"foot '{soles[int(heights[below].argmin())][0]}' is {-heights[below].min():.3f} m in the ground after "
            f"{PERIOD * below:.2f} s; expected level ground at height 0"
        )
    standing_soles = heights < RAISED
    yield from _of_slip(card, soles, places, standing_soles)
    lightest, weight = int(ups.argmin()), float(model.body_subtreemass[indices.base]) * GRAVITY
    if ups[lightest] < LIGHTEST * weight:
        yield (
            f"the ground has to pull or hardly carries it after {PERIOD * lightest:.2f} s "
            f"({ups[lightest]:.0f} N); expected at least {LIGHTEST * weight:.0f} N, {LIGHTEST:.0%} of its weight: "
            "frames without jumps"
        )
        return
    yield from _of_balance(places, points, standing_soles)


def _of_slip(card: LeggedCard, soles: list[Any], places: np.ndarray, stands: np.ndarray) -> Iterator[str]:
    for foot in card.feet:
        own = [number for number, (name, _, _) in enumerate(soles) if name == foot]
        worst, when, anchor = 0.0, 0, None
        for frame in range(len(places)):
            if not stands[frame, own].all():
                anchor = None
                continue
            anchor = places[frame, own, :2] if anchor is None else anchor
            moved = float(np.linalg.norm(places[frame, own, :2] - anchor, axis=1).max())
            worst, when = (moved, frame) if moved > worst else (worst, when)
        if worst > SLIP:
            yield (
                f"foot '{foot}' slips by {worst:.3f} m while it stands, until {PERIOD * when:.2f} s; expected at most "
                f"{SLIP} m"
            )


def _of_balance(places: np.ndarray, points: np.ndarray, stands: np.ndarray) -> Iterator[str]:
    worst, when, why = 0.0, 0, ""
    for frame in range(len(places)):
        below = places[frame, stands[frame], :2]
        if not len(below):
            yield f"no foot stands after {PERIOD * frame:.2f} s; expected clips without flight"
            return
        outside = distance_outside(points[frame], below)
        if outside > worst:
            worst, when, why = outside, frame, str(points[frame].round(3).tolist())
    if worst > OUTSIDE:
        yield (
            f"it is out of balance after {PERIOD * when:.2f} s: the zero-moment point at {why} m is {worst:.3f} m "
            f"beside the soles that stand; expected at most {OUTSIDE} m"
        )


def distance_outside(point: np.ndarray, corners: np.ndarray) -> float:
    """m, from a point (2,) to the convex hull of ``corners`` (k, 2); 0 within."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        edges = ConvexHull(corners).equations
        if (edges[:, :2] @ point + edges[:, 2] <= 1e-9).all():
            return 0.0
    except (QhullError, ValueError):  # all on a line, or too few
        pass
    ends = np.repeat(corners, len(corners), 0), np.tile(corners, (len(corners), 1))
    along = ends[1] - ends[0]
    length = np.maximum((along**2).sum(1), 1e-12)
    part = np.clip(((point - ends[0]) * along).sum(1) / length, 0.0, 1.0)
    return float(np.linalg.norm(ends[0] + part[:, None] * along - point, axis=1).min())


def _derivatives(model: mujoco.MjModel, qpos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(T, nv) velocities and accelerations of frames (T, nq), by central differences; at rest at both ends."""
    steps = np.zeros((len(qpos) - 1, model.nv))
    for frame in range(len(steps)):
        mujoco.mj_differentiatePos(model, steps[frame], PERIOD, qpos[frame], qpos[frame + 1])
    padded = np.concatenate([steps[:1] * 0, steps, steps[:1] * 0])
    return 0.5 * (padded[1:] + padded[:-1]), (padded[1:] - padded[:-1]) / PERIOD


def _soles(model: mujoco.MjModel, card: LeggedCard) -> list[tuple[str, int, np.ndarray]]:
    """Foot, body and place (3,) m in the body of points at which shapes of feet can touch level ground."""
    found = []
    for foot in card.feet:
        body = foot_body(model, foot)
        shape = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, foot)
        first = int(model.body_geomadr[body])
        for own in [shape] if shape >= 0 else range(first, first + int(model.body_geomnum[body])):
            turn = np.zeros(9)
            mujoco.mju_quat2Mat(turn, model.geom_quat[own])
            for corner in _corners(int(model.geom_type[own]), model.geom_size[own], turn.reshape(3, 3)):
                found.append((foot, body, model.geom_pos[own] + corner))
    return found


def _corners(kind: int, size: np.ndarray, turn: np.ndarray) -> list[np.ndarray]:
    """m, about the middle of a shape, of a body whose z axis is up when the robot stands."""
    down = np.array([0.0, 0.0, -1.0])
    if kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
        return [turn[:, 2] * size[1] * end + down * size[0] for end in (-1, 1)]
    if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
        return [down * size[0]]
    if kind == mujoco.mjtGeom.mjGEOM_BOX:
        return [turn @ (size * [x, y, -1]) for x in (-1, 1) for y in (-1, 1)]
    raise ClipError(
        "a foot's shape is neither sphere, capsule nor box; expected one of these to check a clip's balance"
    )


def _zero_moment_point(data: Any, base: int, spin: int) -> np.ndarray:
    """(2,) m, where the ground's force has to act, by the force and torque that the free base lacks."""
    force = data.qfrc_inverse[spin : spin + 3]
    torque = data.xmat[base].reshape(3, 3) @ data.qfrc_inverse[spin + 3 : spin + 6]  # of its own frame
    place, up = data.xpos[base], max(float(force[2]), 1e-6)
    return np.array(
        [
            place[0] - (torque[1] + place[2] * force[0]) / up,
            place[1] + (torque[0] - place[2] * force[1]) / up,
        ]
    )
