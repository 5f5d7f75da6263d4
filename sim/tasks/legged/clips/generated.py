"""Generated clips, which need no recording: both feet stay where they are, and inverse kinematics does the rest.

The trunk stays upright and goes down by what is asked, arms move as asked, and in every frame the base is moved until
the centre of mass is above the same spot of the ground as when the robot stands, or beside it by what is asked. All
profiles have minimum jerk (Flash and Hogan 1985), and all clips begin and end at rest in the stance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import mujoco
import numpy as np

from robo_rl.sim.robots.legged import LeggedCard
from robo_rl.sim.tasks.legged.clips import PERIOD, Clip, ClipError
from robo_rl.sim.tasks.legged.leg_kinematics import reach
from robo_rl.sim.tasks.legged.limbs import find_limbs, foot_pose, standing

REST = 0.5  # s, in the stance before and after a motion
DEPTH = 0.15  # m, by which a G1 squats, a fifth of its legs
SWAY = 0.05  # m, to each side, of a G1's centre of mass
LEG = 0.78  # m, from the base of a G1 to the ground as it stands
CLOSE = 2e-5  # m, from where the centre of mass should be
ASTRAY = 1e-3  # m and rad, by which a foot may be off its place
ROUNDS = 12
ARM = {
    "right_shoulder_pitch_joint": -0.6, "right_shoulder_roll_joint": -1.2, "right_shoulder_yaw_joint": 0.0,
    "right_elbow_joint": -0.5,
}  # fmt: skip
"""rad, added to a G1's stance: the upper arm out to the side, the forearm up."""
WAVES, WAVE, SWING = 2, 1.0, 0.4
"""Waves, s of each, and rad to both sides."""


def smooth(times: np.ndarray, begin: float, end: float) -> np.ndarray:
    """(T,) from 0 at ``begin`` to 1 at ``end`` (s), of minimum jerk."""
    x = np.clip((times - begin) / (end - begin), 0.0, 1.0)
    return x**3 * (10 - 15 * x + 6 * x**2)


def there_and_back(times: np.ndarray, move: float, stay: float) -> np.ndarray:
    """(T,) 0 at rest, in ``move`` s up to 1, there for ``stay`` s, and back."""
    return smooth(times, REST, REST + move) - smooth(times, REST + move + stay, REST + 2 * move + stay)


def squat(card: LeggedCard) -> Clip:
    """Down within 1.25 s, half a second there, and up again: 4 s."""
    times = _times(2 * REST + 2 * 1.25 + 0.5)
    depth = DEPTH * _size(card)
    return on_both_feet(card, "squat", f"generated: squat by {depth:.2f} m", depth * there_and_back(times, 1.25, 0.5))


def sway(card: LeggedCard) -> Clip:
    """The weight to the left, to the right, and back: 5 s."""
    times = _times(2 * REST + 4.0)
    aside = SWAY * _size(card)
    left = smooth(times, REST, REST + 1) - 2 * smooth(times, REST + 1, REST + 3) + smooth(times, REST + 3, REST + 4)
    shift = np.stack([np.zeros_like(times), aside * left], -1)
    return on_both_feet(card, "sway", f"generated: sway by {aside:.2f} m", np.zeros_like(times), shift)


def wave(card: LeggedCard) -> Clip:
    """The right arm goes up, waves twice, and comes down: 5 s."""
    lacking = sorted(set(ARM) - set(card.joint_names))
    if lacking:
        raise ClipError(f"{card.model}: {card.name} has no joint '{lacking[0]}'; expected an arm that can wave")
    times = _times(2 * REST + 2 * 1.0 + WAVES * WAVE)
    up = there_and_back(times, 1.0, WAVES * WAVE)
    phase = np.clip(times - REST - 1.0, 0.0, WAVES * WAVE) / WAVE
    swing = SWING * np.sin(2 * np.pi * phase) * (smooth(phase, 0.0, 0.5) - smooth(phase, WAVES - 0.5, WAVES))
    arm = {name: angle * up for name, angle in ARM.items()}
    arm["right_shoulder_yaw_joint"] = arm["right_shoulder_yaw_joint"] + swing
    return on_both_feet(card, "wave", "generated: wave of the right arm", np.zeros_like(times), joints=arm)


GENERATED: Mapping[str, Callable[[LeggedCard], Clip]] = {"squat": squat, "sway": sway, "wave": wave}


def on_both_feet(
    card: LeggedCard, name: str, source: str, drop: np.ndarray, shift: np.ndarray | None = None,
    joints: Mapping[str, np.ndarray] | None = None,
) -> Clip:  # fmt: skip
    """A clip of a robot whose feet stay where they are.

    ``drop`` (T,) m by which the base is lower than in the stance, ``shift`` (T, 2) m by which the centre of mass is
    beside its place there, ``joints`` (T,) rad by name, added to the stance of joints that move no foot. ClipError
    where legs don't reach.
    """
    limbs, (model, data, indices) = find_limbs(card), standing(card)
    stand = np.array([joint.stand for joint in card.joints])
    limits = np.array([[joint.lower, joint.upper] for joint in card.joints])
    legs = [np.array(leg) for leg in limbs.legs]
    feet = [foot_pose(model, data, foot) for foot in card.feet]
    centre = data.subtree_com[indices.base, :2].copy()
    angles = np.tile(stand, (len(drop), 1))
    for joint, course in (joints or {}).items():
        angles[:, card.joint_names.index(joint)] += course
    wanted = centre + (np.zeros((len(drop), 2)) if shift is None else shift)
    moved = np.zeros((len(drop), 3))
    moved[:, 2] = -drop
    others, base = list(limbs.others), np.zeros(3)
    for frame in range(len(drop)):
        data.qpos[indices.position[others]] = angles[frame, others]
        base[2] = moved[frame, 2]
        for _ in range(ROUNDS):
            off = max(
                reach(model, data, foot, indices.position[leg], place - base, turn, limits[leg])
                for foot, leg, (place, turn) in zip(card.feet, legs, feet, strict=True)
            )
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            away = wanted[frame] - base[:2] - data.subtree_com[indices.base, :2]
            if np.abs(away).max() < CLOSE:
                break
            base[:2] += away
        if off > ASTRAY:
            raise ClipError(
                f"{card.model}: clip '{name}': after {PERIOD * frame:.2f} s a foot stays {off:.3f} m and rad off its "
                "place; expected longer legs, wider stops, or 'stand' angles of legs that are bent"
            )
        moved[frame], angles[frame] = base, data.qpos[indices.position]
    position = moved + np.array([[0.0, 0.0, limbs.height]])
    return Clip(name, card.joint_names, position, np.tile([0.0, 0.0, 0.0, 1.0], (len(drop), 1)), angles, source)


def _times(duration: float) -> np.ndarray:
    return PERIOD * np.arange(round(duration / PERIOD) + 1)


def _size(card: LeggedCard) -> float:
    """Of the robot, where a G1 is 1."""
    feet = find_limbs(card).feet
    return -sum(foot[2] for foot in feet) / len(feet) / LEG
