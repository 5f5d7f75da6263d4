"""Which bodies of a robot a clip is compared by, and where they are in each of its frames."""

from __future__ import annotations

import mujoco
import numpy as np

from robo_rl.controllers.rotation import heading, turn_back
from robo_rl.sim.robots.legged import LeggedCard
from robo_rl.sim.tasks.legged.clips import Clip
from robo_rl.sim.tasks.legged.limbs import standing


def tracked_bodies(card: LeggedCard) -> tuple[str, ...]:
    """Of each limb the second, the middle and the last body that a joint moves: of a G1 hip, knee and ankle, shoulder,
    elbow and wrist (as BeyondMimic, Liao et al. 2025, has them); of a chain that carries other limbs the last."""
    model, _, _ = standing(card)
    moved = [int(model.jnt_bodyid[model.joint(name).id]) for name in card.joint_names]
    before = {body: _parent(model, body, moved) for body in moved}
    found: list[int] = []
    for last in moved:
        children = [body for body in moved if before[body] == last]
        if len(children) == 1:
            continue
        chain = [last]
        while (body := before[chain[0]]) and sum(before[other] == body for other in moved) == 1:
            chain.insert(0, body)
        picked = [chain[-1]] if children else [chain[min(1, len(chain) - 1)], chain[len(chain) // 2], chain[-1]]
        found += [body for body in dict.fromkeys(picked) if body not in found]
    return tuple(model.body(body).name for body in found)


def _parent(model: mujoco.MjModel, body: int, moved: list[int]) -> int:
    """The nearest body towards the base that a joint moves; 0 for none."""
    body = int(model.body_parentid[body])
    while body and body not in moved:
        body = int(model.body_parentid[body])
    return body


def relative_places(clip: Clip, card: LeggedCard, bodies: tuple[str, ...]) -> np.ndarray:
    """(T, 3 B) m: places of bodies beside the base, forward and left of its heading, and their heights above ground."""
    model, data, indices = standing(card)
    free, ids = indices.free_position, [model.body(name).id for name in bodies]
    found = np.zeros((len(clip), len(bodies), 3))
    for frame in range(len(clip)):
        data.qpos[free : free + 3] = clip.position[frame]
        data.qpos[free + 3 : free + 7] = clip.orientation[frame, [3, 0, 1, 2]]
        data.qpos[indices.position] = clip.angles[frame]
        mujoco.mj_kinematics(model, data)
        away = data.xpos[ids] - clip.position[frame] * [1.0, 1.0, 0.0]
        cosine, sine = heading(tuple(np.asarray(x) for x in clip.orientation[frame]))
        found[frame] = np.stack(turn_back(tuple(away.T), cosine, sine), -1)
    return found.reshape(len(clip), -1)


def limb_ends(card: LeggedCard) -> tuple[str, ...]:
    """Of each limb the last body that a joint moves: feet, hands."""
    model, _, _ = standing(card)
    moved = [int(model.jnt_bodyid[model.joint(name).id]) for name in card.joint_names]
    before = {_parent(model, body, moved) for body in moved}
    return tuple(model.body(body).name for body in moved if body not in before)
