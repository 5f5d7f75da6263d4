"""What is hidden in a simulated arm is found from its motion; a payload weighs what it weighs; nonsense is refused."""

from __future__ import annotations

import dataclasses
import functools
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from deploy.bundle import Bundle
from deploy.drawn_goals import DrawnGoals
from deploy.log_reader import read_log
from deploy.simulated import record
from robo_rl.identification.arm_motion import Motion
from robo_rl.identification.arm_observer import ArmObserver
from robo_rl.identification.arms import MOVE, SLOWEST, find, unknowns
from robo_rl.identification.fit import Identified, identify
from robo_rl.identification.joint_findings import groups
from robo_rl.identification.judge import faults
from robo_rl.identification.smooth_search import search
from sim.env import VecEnv
from sim.tasks.arm.reach import Reach
from sim.tasks.loading import load_task

HIDDEN = {"joint_friction": 1.8, "armature": 1.4, "payload": 0.2, "command_delay": 0.02}
KNOWN = {"stiffness": 1.0, "damping": 1.0, "strength": 1.0, "noise": 1.0}


@functools.cache
def reach() -> Reach:
    found = load_task("arm-reach", "so101")
    assert isinstance(found, Reach)
    return found


@functools.cache
def moved(seconds: float = 16.0, part: float = 1.0) -> Motion:
    """A SO-101 with hidden figures whose targets jump about home every half second, seen through its sensors."""
    task, random = reach(), np.random.default_rng(0)
    late = 0.004
    fixed = {**HIDDEN, **KNOWN, "delay/joint_position": late}
    env = VecEnv(task, 1, 0, fixed=fixed, evaluation=True, episode_length=seconds + 1)
    rows, home = [], np.array(task.card.home)
    jaw = task.card.gripper.joint.upper
    for k in range(round(seconds * 50)):
        if k % 25 == 0:
            aim = part * random.uniform(-0.25, 0.25, 5)
        env.draws.goal[:, 3] = -1e6  # never there for long: no success
        seen = [env.signals()[name][0].double().numpy() for name in ("joint_position", "joint_velocity")]
        target = home + aim * min(1.0, (k % 25 + 1) / 6)
        rows.append((*seen, np.append(target, jaw)))
        told = {"joint_position_target": target[None], "gripper_position_target": [[jaw]]}
        assert not env.step({name: torch.tensor(np.array(value)).float() for name, value in told.items()}).failed.any()
    return Motion("moved", 0.02, *(np.stack(column) for column in zip(*rows, strict=True)), late, (0.002, 0.05))


def fitted(motion: Motion, iterations: int) -> tuple[Identified, list[str]]:
    card, plant = reach().card, reach().make_plant(1, "cpu")
    asked = [unknown for unknown in unknowns(card, plant) if unknown.name in HIDDEN]
    follower = ArmObserver.of(card)
    found = identify(card.mechanism, motion, plant.physics, asked, iterations, follower=follower, searched=search)
    return found, faults(motion, found, SLOWEST, MOVE)


def test_hidden_friction_armature_payload_and_delay_of_an_arm_are_found() -> None:
    found, wrong = fitted(moved(), 5)
    assert wrong == []
    for estimate in found.estimates:
        assert estimate.determined
        assert estimate.value == pytest.approx(HIDDEN[estimate.unknown.name], rel=0.1)
    assert found.error_nominal > 3 * found.error_fitted


@pytest.mark.parametrize(
    ("nonsense", "sentence"),
    [("a sign", "times the sensors' noise"), ("at rest", f"the joints move at .*{MOVE[:20]}"), ("late", "noise")],
)
def test_a_motion_that_is_none_of_this_arm_is_refused(nonsense: str, sentence: str) -> None:
    motion = moved()
    if nonsense == "a sign":
        sign = np.array([1.0, -1.0, 1.0, 1.0, 1.0])
        motion = dataclasses.replace(
            motion, joint_position=motion.joint_position * sign, joint_velocity=motion.joint_velocity * sign
        )
    if nonsense == "late":
        motion = dataclasses.replace(motion, target=np.roll(motion.target, 10, 0))
    _, wrong = fitted(moved(16.0, 0.0) if nonsense == "at rest" else motion, 2)
    assert any(re.search(sentence, fault) for fault in wrong)


def test_a_payload_bends_an_arm_by_its_weight() -> None:
    """By the card's chain, whatever the simulator: a torque of weight times lever, over the servo's stiffness."""
    task = load_task("arm-reach", "ur5e")  # whose controller carries its links, not what is bolted to it
    card, payload = task.spec.robot, 1.0
    still = dict.fromkeys(("stiffness", "damping", "strength", "armature"), 1.0) | {"noise": 0.0, "command_delay": 0.0}
    env = VecEnv(task, 1, 0, fixed={**still, "payload": payload, "initial/pose": 0.5}, evaluation=True)
    target = env.plant.truth()["joint_position"].clone()
    for _ in range(100):
        env.draws.goal[:, 3] = -1e6
        env.step({"joint_position_target": target})
    bent = (target - env.plant.truth()["joint_position"])[0].numpy()
    pose = card.chain.pose([float(q) for q in target[0]])
    body = env.plant.model.body(env.plant.model.site(card.tool).bodyid[0])
    axes = np.array([pose.x, pose.y, pose.z]).T
    hand = np.array(pose.position) + axes @ (body.ipos - env.plant.model.site(card.tool).pos)
    down = np.array([0.0, 0.0, -payload * 9.81])
    torque = [np.dot(axis, np.cross(hand - at, down)) for axis, at in zip(pose.axes, pose.origins, strict=True)]
    stiffness = np.array([joint.stiffness for joint in card.joints])
    np.testing.assert_allclose(bent, -np.array(torque) / stiffness, atol=2e-4)
    assert np.abs(bent).max() > 2e-3


def test_new_goals_keep_a_recorded_arm_moving_within_its_workspace(tmp_path: Path) -> None:
    task, path = load_task("arm-reach"), tmp_path / "panda.mcap"
    record(task, Bundle.read("zoo:arm-reach"), path, 6.0, 0, {}, renew=1.5)
    log = read_log(path)
    cuts = np.cumsum([signal.size for signal in log.contract.signals])[:-1]
    names = [signal.name for signal in log.contract.signals]
    parts = dict(zip(names, np.split(np.stack([step.signals for step in log.steps]), cuts, 1), strict=True))
    goals = np.unique(parts["tool_position_setpoint"], axis=0)
    assert len(goals) == 4
    assert (goals > np.array(task.space.lower)).all()
    assert (goals < np.array(task.space.upper)).all()
    assert np.abs(np.diff(parts["tool_position"], axis=0)).max() < 0.05  # success does not put it elsewhere
    with pytest.raises(ValueError, match=r"of 'panda', which takes poses of its tool"):
        find([log], task, 9, lambda done, note: None)


def test_goals_are_refused_where_there_is_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match=r"--new-goal-every is 0\.01 s; expected at least 0\.1 s"):
        DrawnGoals(reach(), 0.01)


def test_parameters_that_hang_together_by_pairs_are_one_group() -> None:
    assert groups([("a", "b", 0.99), ("c", "d", 0.98), ("b", "e", -0.99)]) == [["c", "d"], ["a", "b", "e"]]
