"""Clips: generated ones, files, what a robot can't do, and the sum that policies evaluate."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from robo_rl.sim.robots.legged import LeggedCard, load_legged
from robo_rl.sim.tasks.legged.clips import PERIOD, Clip, ClipError, signed_alike
from robo_rl.sim.tasks.legged.clips.bodies import tracked_bodies
from robo_rl.sim.tasks.legged.clips.checks import distance_outside, require_possible
from robo_rl.sim.tasks.legged.clips.files import read_clip, write_clip
from robo_rl.sim.tasks.legged.clips.generated import DEPTH, GENERATED, SWAY
from robo_rl.sim.tasks.legged.clips.reference import Reference, angle_squared, seen_axes
from robo_rl.sim.tasks.legged.clips.spline import LOST, Spline
from robo_rl.sim.tasks.legged.limbs import foot_pose, standing


@pytest.fixture(scope="module")
def card() -> LeggedCard:
    return load_legged("g1")


@pytest.fixture(scope="module")
def squat(card: LeggedCard) -> Clip:
    return GENERATED["squat"](card)


def test_a_squat_leaves_the_feet_and_the_centre_of_mass_where_they_are(card: LeggedCard, squat: Clip) -> None:
    model, data, indices = standing(card)
    feet, centres = [], []
    for frame in range(0, len(squat), 20):
        data.qpos[indices.free_position :][:3] = squat.position[frame]
        data.qpos[indices.position] = squat.angles[frame]
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        feet.append([foot_pose(model, data, foot)[0] for foot in card.feet])
        centres.append(data.subtree_com[0, :2].copy())
    assert np.ptp(feet, axis=0).max() < 1e-3
    assert np.ptp(centres, axis=0).max() < 1e-3
    assert squat.position[:, 2].min() == pytest.approx(squat.position[0, 2] - DEPTH, abs=1e-3)
    np.testing.assert_allclose(squat.angles[[0, -1]], [[joint.stand for joint in card.joints]] * 2, atol=1e-3)


@pytest.mark.parametrize("name", ["squat", "sway"])
def test_generated_clips_can_be_followed(name: str, card: LeggedCard) -> None:
    clip = GENERATED[name](card)
    require_possible(clip, card)
    if name == "sway":
        assert np.ptp(clip.position[:, 1]) > 1.8 * SWAY


def test_a_wave_needs_an_arm(card: LeggedCard) -> None:
    with pytest.raises(ClipError, match="g1 has no joint 'right_elbow_joint'"):
        GENERATED["wave"](card)


def test_the_bodies_of_a_humanoid_are_those_of_whole_body_tracking() -> None:
    limbs = [("hip_roll", "knee", "ankle_roll"), ("shoulder_roll", "elbow", "wrist_yaw")]
    expected = {f"{side}_{part}_link" for side in ("left", "right") for limb in limbs for part in limb}
    assert set(tracked_bodies(load_legged("g1_29"))) == expected | {"torso_link"}  # and the base, the pelvis


def test_what_forbids_a_clip_is_said(card: LeggedCard, squat: Clip) -> None:
    bent, fast, sliding, low = squat.angles.copy(), squat.angles.copy(), squat.position.copy(), squat.position.copy()
    bent[100, 3] = 2.8
    fast[100, 3] -= 1.0
    sliding[:, 1] += np.linspace(0, 0.3, len(squat)) ** 2
    low[:, 2] -= 0.05
    turned, leaning = squat.orientation.copy(), squat.orientation.copy()
    turned[100:] = [0.0, 0.0, 1.0, 0.0]
    leaning[:] = [0.0, np.sin(0.1), 0.0, np.cos(0.1)]  # with the feet, so that the toes are in the ground
    begun = {"position": squat.position[50:], "orientation": squat.orientation[50:], "angles": squat.angles[50:]}
    cases = {
        "joint 'left_knee_joint' is at 2.800 rad after 2.00 s; expected": {"angles": bent},
        r"joint 'left_knee_joint' moves at .* rad/s after .*; expected at most 18.0 rad/s, 90%": {"angles": fast},
        "foot 'left_foot' slips by 0.0": {"position": sliding},
        "foot '.*' is 0.05. m in the ground": {"position": low},
        "the base moves at": {"orientation": turned},
        "out of balance after": {"orientation": leaning},
        "it begins with joint '.*' at": begun,
        "expected those of 'g1' in its order": {"joints": squat.joints[::-1]},
    }
    for sentence, changes in cases.items():
        with pytest.raises(ClipError, match=sentence):
            require_possible(dataclasses.replace(squat, **changes), card)


def test_how_far_a_point_is_outside_of_a_square() -> None:
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1.0]])
    assert distance_outside(np.array([0.5, 0.9]), square) == 0.0
    assert distance_outside(np.array([0.5, 1.25]), square) == pytest.approx(0.25)
    assert distance_outside(np.array([4.0, 5.0]), square) == pytest.approx(5.0)
    assert distance_outside(np.array([0.5, -2.0]), square[:2]) == pytest.approx(2.0)


def test_the_sum_is_the_clip_at_its_frames_and_rests_beyond_its_end() -> None:
    times = PERIOD * np.arange(151)
    spline = Spline(np.stack([np.sin(2 * times), times], -1), PERIOD)
    value, speed = spline.at(torch.tensor(times, dtype=torch.float32)[:, None], moving=2)
    np.testing.assert_allclose(value[:, 0], np.sin(2 * times), atol=LOST)
    np.testing.assert_allclose(speed[5:-5, 0], 2 * np.cos(2 * times)[5:-5], atol=0.02)
    after, still = spline.at(torch.tensor([[-1.0], [7.0]]), moving=2)
    np.testing.assert_allclose(after[:, 1], [0.0, 3.0], atol=1e-4)
    assert still[1].tolist() == [0.0, 0.0]


def test_a_base_that_turns_is_told_as_scipy_has_it(card: LeggedCard, squat: Clip) -> None:
    """Velocities at starts, axes, places of bodies beside the heading, and the rotation that a robot sees."""
    times = PERIOD * np.arange(len(squat))
    turns = Rotation.from_euler("ZYX", np.stack([1.0 + np.sin(times), 0.3 * np.sin(2 * times), 0.1 * times], -1))
    clip = dataclasses.replace(squat, orientation=signed_alike(turns.as_quat()))
    follow = Reference(clip, card, ("left_knee_link",))
    frames = torch.tensor([40, 100, 160])
    spins = (turns[:-1].inv() * turns[1:]).as_rotvec() / PERIOD
    expected = 0.5 * (spins[frames] + spins[frames - 1])
    np.testing.assert_allclose(follow.start(frames).angular_velocity, expected, atol=2e-3)
    found = follow.all(PERIOD * frames[:, None].float())
    matrices = turns[frames.numpy()].as_matrix()
    np.testing.assert_allclose(found["clip_axes"], matrices[:, :, :2].transpose(0, 2, 1).reshape(3, 6), atol=0.01)
    robots = Rotation.from_euler("ZYX", [[0.5, 0.1, -0.2], [2.0, 0.0, 0.3], [-1.0, -0.4, 0.0]])
    seen = seen_axes(found["clip_axes"], torch.from_numpy(robots.as_quat()).float())
    between = robots.inv() * turns[frames.numpy()]
    np.testing.assert_allclose(seen, between.as_matrix()[:, :, :2].reshape(3, 6), atol=0.01)
    np.testing.assert_allclose(angle_squared(seen), 2 - 2 * np.cos(between.magnitude()), atol=0.02)


# --- files ---------------------------------------------------------------------------------------------------------


def as_csv(path: Path, clip: Clip, rate: int, names: dict[str, str] | None = None) -> None:
    """Every frame at ``rate`` (1/s), columns in another order than the card's."""
    step = round(1 / rate / PERIOD)
    columns = {"time": PERIOD * np.arange(len(clip))}
    columns |= {name: clip.angles[:, k] for k, name in reversed(list(enumerate(clip.joints)))}
    columns |= {f"q{name}": clip.orientation[:, k] for k, name in enumerate("xyzw")}
    columns |= {name: clip.position[:, k] for k, name in enumerate("xyz")}
    header = ",".join((names or {}).get(name, name) for name in columns)
    rows = np.stack(list(columns.values()), -1)[::step]
    path.write_text(header + "\n" + "\n".join(",".join(f"{x:.7g}" for x in row) for row in rows) + "\n")


def test_files_read_back_and_are_resampled(tmp_path: Path, squat: Clip, card: LeggedCard) -> None:
    write_clip(tmp_path / "a.npz", squat)
    again = read_clip(tmp_path / "a.npz", card.joint_names)
    assert again.digest == squat.digest
    as_csv(tmp_path / "b.csv", squat, 25)
    found = read_clip(tmp_path / "b.csv", card.joint_names)
    assert (len(found), found.source, found.joints) == (len(squat), "file: b.csv", card.joint_names)
    np.testing.assert_allclose(found.angles, squat.angles, atol=2e-3)
    require_possible(found, card)


def test_the_order_of_quaternions_is_declared(tmp_path: Path, card: LeggedCard, squat: Clip) -> None:
    turned = np.tile([0.0, 0.0, np.sin(0.5), np.cos(0.5)], (len(squat), 1))
    arrays = {"fps": 50.0, "position": squat.position, "joint_names": np.array(card.joint_names),
              "joint_position": squat.angles}  # fmt: skip
    np.savez(tmp_path / "a.npz", orientation=turned[:, [3, 0, 1, 2]], quaternion="wxyz", **arrays)
    np.testing.assert_allclose(read_clip(tmp_path / "a.npz", card.joint_names).orientation, turned, atol=1e-6)
    np.savez(tmp_path / "b.npz", orientation=turned, quaternion="zyxw", **arrays)
    with pytest.raises(ClipError, match=r"b.npz: .*quaternion is 'zyxw'; expected one of"):
        read_clip(tmp_path / "b.npz", card.joint_names)
    np.savez(tmp_path / "c.npz", orientation=turned, **arrays)
    with pytest.raises(ClipError, match=r"c.npz: .*'quaternion'.* is missing"):
        read_clip(tmp_path / "c.npz", card.joint_names)


def test_bad_files_are_refused_with_the_reason(tmp_path: Path, card: LeggedCard, squat: Clip) -> None:
    file = tmp_path / "a.csv"
    as_csv(file, squat, 50, {"qw": "w"})
    with pytest.raises(ClipError, match="column 'qw' is missing"):
        read_clip(file, card.joint_names)
    as_csv(file, squat, 50, {"left_knee_joint": "left_knee"})
    with pytest.raises(ClipError, match="joint 'left_knee_joint' is missing"):
        read_clip(file, card.joint_names)
    as_csv(file, squat, 50)
    with pytest.raises(ClipError, match="'left_knee_joint' is no joint of the robot"):
        read_clip(file, [name for name in card.joint_names if name != "left_knee_joint"])
    text = file.read_text()
    for bad, sentence in (
        (text.replace("0.3,", "nan,", 1), "is nan in frame 0"),
        (text.replace("\n0.02,", "\n0.01,", 1).replace("\n0,", "\n0.05,", 1), "apart; expected 4 or more"),
        (text.replace("0.3,", "x,", 1), "line 2 is .*; expected numbers"),
        (text + "1,2\n", "has 2 numbers; expected 20"),
        ("", "it has no frames"),
    ):
        file.write_text(bad)
        with pytest.raises(ClipError, match=sentence):
            read_clip(file, card.joint_names)
    with pytest.raises(ClipError, match=r"NAME.csv or NAME.npz"):
        read_clip(tmp_path / "a.pkl", card.joint_names)
    with pytest.raises(ClipError, match="does not exist"):
        read_clip(tmp_path / "b.csv", card.joint_names)
    np.savez(tmp_path / "evil.npz", position=np.array([{}], dtype=object))
    with pytest.raises(ClipError, match=r"evil.npz"):
        read_clip(tmp_path / "evil.npz", card.joint_names)
