"""What is hidden in a simulated arm is found from its motion; a payload weighs what it weighs; nonsense is refused."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from robo_rl.deploy.emulate.drawn_goals import DrawnGoals
from robo_rl.deploy.emulate.simulated import record
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.logs.reader import read_log
from robo_rl.identification.arm import MOVE, SLOWEST, find, unknowns
from robo_rl.identification.arm.motion import Motion
from robo_rl.identification.arm.observer import ArmObserver
from robo_rl.identification.estimate import Estimate, Unknown
from robo_rl.identification.fit import SETTLING, STRETCH, Identified, identify
from robo_rl.identification.following import Following
from robo_rl.identification.joint_findings import groups, wide
from robo_rl.identification.judge import ELSEWHERE, faults
from robo_rl.identification.recorded import IdentificationError
from robo_rl.identification.smooth_search import search
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.arm.reach import Reach
from robo_rl.sim.tasks.loading import load_task

HIDDEN = {"joint_friction": 1.8, "armature": 1.4, "payload": 0.2, "command_delay": 0.02}
KNOWN = {"stiffness": 1.0, "damping": 1.0, "strength": 1.0, "noise": 1.0}
UP = np.array([0.0, -0.15, 0.0, 0.0, 0.0])
"""rad, from the home pose, about which it does not touch the table."""


@functools.cache
def reach() -> Reach:
    found = load_task("arm-reach", "so101")
    assert isinstance(found, Reach)
    return found


@functools.cache
def moved(seconds: float = 16.0, part: float = 1.0) -> Motion:
    """A SO-101 with hidden figures, seen through its sensors; its targets jump about above home every half second."""
    task, random = reach(), np.random.default_rng(0)
    late = 0.004
    fixed = {**HIDDEN, **KNOWN, "delay/joint_position": late}
    env = VecEnv(task, 1, 0, fixed=fixed, evaluation=True, episode_length=seconds + 1)
    rows, home = [], np.array(task.card.home) + UP
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
    [
        pytest.param("a sign", "times the sensors' noise", marks=pytest.mark.release),
        ("at rest", f"the joints move at .*{MOVE[:20]}"),
        pytest.param("late", "noise", marks=pytest.mark.release),
    ],
)
def test_a_motion_that_is_none_of_this_arm_is_refused(nonsense: str, sentence: str) -> None:
    motion = moved()
    if nonsense == "a sign":
        sign = np.array([-1.0, 1.0, 1.0, 1.0, 1.0])
        motion = dataclasses.replace(
            motion, joint_position=motion.joint_position * sign, joint_velocity=motion.joint_velocity * sign
        )
    if nonsense == "late":
        motion = dataclasses.replace(motion, target=np.roll(motion.target, 10, 0))
    if nonsense == "at rest":
        still = moved(16.0, 0.0)  # after a second on the way from where the episode began
        motion = dataclasses.replace(
            still,
            joint_position=still.joint_position[50:],
            joint_velocity=still.joint_velocity[50:],
            target=still.target[50:],
        )
    _, wrong = fitted(motion, 2)
    assert any(re.search(sentence, fault) for fault in wrong)


class Alike(Following):
    """Errors that are linear in two factors which move nearly alike; above ``table`` of the first a touch adds to them.

    ``slopes`` (T, 2), ``measured`` (T,) and the errors are in the sensor's deviations.
    """

    def __init__(self, table: float) -> None:
        random, time = np.random.default_rng(0), np.arange(1000)
        self.slopes = np.stack([np.sin(time / 7), -np.sin(time / 7) + 0.1 * np.cos(time / 11)], 1) / 0.02
        self.measured = self.slopes @ [0.5, 0.4] + random.uniform(-1.7, 1.7, len(time))
        self.record, self.first, self.noise, self.table = time, 1, np.ones(1), table
        self.unknowns = tuple(
            Unknown(name, "", 1.0, 0.1, 10.0, spread=10.0, step=0.1, bias=0.0, enough=0.1) for name in "ab"
        )

    def ways(self) -> np.ndarray:
        return np.array([[0.1, 0.1], [0.0, 0.1]])

    def follow(self, inner, starts, steps, states=None, corrected=True, keep=None):
        k = starts[:, None] + np.arange(steps + 1)
        errors = self.measured[k] - np.einsum("nkp,mp->mnk", self.slopes[k], inner)
        touched = (k // 100 == 3) & (inner[:, :1, None] > self.table)
        return (errors + 20.0 * touched)[..., None], {int(k): np.zeros(1) for k in (() if keep is None else keep)}

    _guess = _compare = _load = None


def test_a_search_ends_at_the_least_squares_and_is_as_uncertain() -> None:
    observer, begins = Alike(math.inf), np.arange(100, 900, 100)
    solved = search(observer, begins, np.zeros(2), 9, lambda done, note: None)
    counted = (begins[:, None] + np.arange(SETTLING, STRETCH)).ravel()
    least = np.linalg.lstsq(observer.slopes[counted], observer.measured[counted], rcond=None)[0]
    deviation = np.sqrt(np.diag(np.linalg.inv(observer.slopes[counted].T @ observer.slopes[counted])))
    np.testing.assert_allclose(solved.inner, least, atol=0.1 * deviation.min())
    assert (solved.starts < 0.01).all()
    found = np.sqrt(np.diag(solved.covariance)) / deviation
    assert ((found > 1.0) & (found < 2.0)).all()  # by the pieces' disagreement and by the noise, each about 1


def test_a_search_that_stops_on_the_way_is_told_by_another_start() -> None:
    solved = search(Alike(0.35), np.arange(100, 900, 100), np.zeros(2), 9, lambda done, note: None)
    assert solved.starts.max() > ELSEWHERE


def test_pieces_in_which_the_hand_is_at_the_table_are_left_out() -> None:
    card, physics, motion = reach().card, reach().make_plant(1, "cpu").physics, moved()
    reaching = [0.0, 0.45, *card.home[2:]]
    assert card.chain.pose(reaching).position[2] < -0.01  # the tool is below the table
    lower = motion.joint_position.copy()
    lower[400:403] = reaching
    observer = ArmObserver.of(card)(card.mechanism, dataclasses.replace(motion, joint_position=lower), physics, ())
    begins = np.arange(100, 700, 100)
    assert observer.usable(begins, STRETCH).tolist() == [True, True, False, False, True, True]
    down = dataclasses.replace(motion, joint_position=np.tile(reaching, (len(motion), 1)))
    with pytest.raises(IdentificationError, match="moved: the robot touches something in 6 of 6 pieces of 2 s"):
        fitted(down, 1)


def test_what_is_known_to_more_than_a_tenth_only_is_told_with_what_to_record() -> None:
    heavy = Unknown("payload", "kg", 0.0, -1.0, 2.0, spread=0.3, step=0.03, bias=0.0, enough=0.05, factor=False)
    stiff = Unknown("stiffness", "", 1.0, 0.3, 3.0, spread=0.3, step=0.06, bias=0.0, enough=0.1)
    known = [Estimate(heavy, 0.2, 0.009), Estimate(stiff, 3.0, 0.04)]
    assert wide(known, "move") == []
    assert wide([Estimate(heavy, 0.2, 0.02), known[1]], "move") == [
        "  two standard deviations are more than 10 %: payload 20 %; move"
    ]


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
