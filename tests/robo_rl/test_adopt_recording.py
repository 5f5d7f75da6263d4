"""A LeRobotDataset of an arm becomes a task and demonstrations by the hints that ``robo-rl adopt`` prints."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from robo_rl.adapters.datasets import Dataset, DatasetError, arm_recording, lerobot
from robo_rl.adapters.datasets.arm_recording import angles, driven, parse
from robo_rl.adapters.datasets.arm_task import RecordedArm
from robo_rl.commands.exporting import adopt
from robo_rl.deploy.emulate.servos.arm import calibrated
from robo_rl.learn import bc
from robo_rl.learn.config import BcConfig
from robo_rl.learn.experience import demonstrations
from robo_rl.policy import PolicyGraph
from robo_rl.sim.robots.arm import load_arm
from robo_rl.sim.tasks.loading import load_task

SO101 = load_arm("so101")
JOINTS = driven(SO101)
NAMES = tuple(f"{joint.name}.pos" for joint in JOINTS)
RATE, STEPS = 30, (40, 25)


def lerobot_value(joint: Any, steps: float, use_degrees: bool, low: int, high: int, drive_mode: int = 0) -> float:
    """LeRobot 0.4's ``MotorsBus._normalize``, of a servo's steps."""
    bounded = min(high, max(low, steps))
    if joint.name == "gripper":
        part = (bounded - low) / (high - low) * 100
        return 100 - part if drive_mode else part
    if use_degrees:
        return (steps - (low + high) / 2) * 360 / 4095
    part = (bounded - low) / (high - low) * 200 - 100
    return -part if drive_mode else part


def motion() -> tuple[np.ndarray, np.ndarray]:
    """(s, 6) rad, measured and commanded: all joints swing within 0.9 of their ranges, targets two steps ahead."""
    time = np.concatenate([np.arange(length + 2.0) for length in STEPS])
    low, high = (np.array([getattr(joint, side) for joint in JOINTS]) for side in ("lower", "upper"))
    swing = 0.5 * (low + high) + 0.45 * (high - low) * np.sin(0.1 * time[:, None] + np.arange(6))
    first = np.cumsum([0, STEPS[0] + 2])
    rows = [np.arange(at, at + length) for at, length in zip(first, STEPS, strict=True)]
    measured = np.concatenate([swing[row] for row in rows])
    return measured, np.concatenate([swing[row + 2] for row in rows])


def recorded(folder: Path, use_degrees: bool, drive_mode: int = 0, **change: Any) -> tuple[Path, np.ndarray]:
    """A recording of ``motion`` and the calibration of its arm beside; and what was measured, rad."""
    told = {joint.name: calibrated(i + 1, 100, joint.lower, joint.upper) for i, joint in enumerate(JOINTS)}
    columns = []
    for rows in motion():
        column = np.zeros_like(rows, dtype=np.float32)
        for i, joint in enumerate(JOINTS):
            low, high = told[joint.name].range_min, told[joint.name].range_max
            sign = -1 if drive_mode else 1
            steps = (low + high) / 2 + sign * (rows[:, i] - 0.5 * (joint.lower + joint.upper)) * 4096 / (2 * np.pi)
            column[:, i] = [lerobot_value(joint, at, use_degrees, low, high, drive_mode) for at in steps]
        columns.append(column)
    episode = np.repeat([0, 1], STEPS)
    data: dict[str, Any] = {
        "task": "Wave", "robot": "so101_follower", "fps": float(RATE), "episode": episode,
        "columns": dict(zip(("observation.state", "action"), columns, strict=True)),
        "names": {"observation.state": NAMES, "action": NAMES},
    }  # fmt: skip
    lerobot.write(folder / "wave", Dataset(**{**data, **change}))
    entries = {name: {**vars(one), "drive_mode": drive_mode} for name, one in told.items()}
    (folder / "arm.json").write_text(json.dumps(entries))
    return folder / "wave", motion()[0]


def described(**change: Any) -> dict[str, Any]:
    told = {"robot": "so101", "rate": 30.0, "joints": [joint.name for joint in JOINTS], "units": "percent"}
    return {**told, "calibration": "arm.json", **change}


@pytest.mark.parametrize("drive_mode", [0, 1])
@pytest.mark.parametrize("units", ["degrees", "percent"])
def test_angles_are_the_models_whatever_lerobot_recorded(tmp_path: Path, units: str, drive_mode: int) -> None:
    folder, true = recorded(tmp_path, units == "degrees", drive_mode)
    found, _ = angles(lerobot.read(folder), parse(described(units=units), "policy.toml"), tmp_path)
    np.testing.assert_allclose(found, true, atol=2e-3)


def fill(toml: Path, **values: str) -> None:
    text = toml.read_text()
    for name, value in values.items():
        text, count = re.subn(rf'^{name} = "\?"', f'{name} = "{value}"', text, flags=re.MULTILINE)
        assert count == 1, (name, text)
    toml.write_text(text)


def test_the_printed_hints_lead_to_a_policy_that_does_what_was_recorded(
    tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    _, true = recorded(tmp_path, use_degrees=True)
    assert adopt.main(Path("wave"), json=True) == 1
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["blanks"] == ["robot", "units", "calibration"]
    fill(Path(told["description"]), robot="so101", units="degrees", calibration="arm.json")
    (tmp_path / "wave-adopted/arm.json").write_bytes((tmp_path / "arm.json").read_bytes())
    assert adopt.main(Path("wave")) == 0
    hint = capsys.readouterr().out
    assert "robo-rl train wave-adopted/policy_task.py:Policy --demonstrations wave-adopted/demonstrations" in hint
    task: Any = load_task("wave-adopted/policy_task.py:Policy")
    contract = demonstrations.contract_of(task)
    assert [signal.name for signal in contract.signals] == ["joint_position", "gripper_position"]
    assert contract.control_period == pytest.approx(1 / RATE)
    assert contract.commands[0].upper == tuple(joint.upper for joint in SO101.joints)
    shown = demonstrations.tensors_of(tmp_path / "wave-adopted/demonstrations.safetensors", task)
    np.testing.assert_allclose(shown["signal/joint_position"], true[:, :5], atol=2e-3)
    np.testing.assert_allclose(shown["command/joint_position_target"], motion()[1][:, :5], atol=2e-3)
    torch.manual_seed(0)
    policy = PolicyGraph(task, (64,), "tanh", encoders=())
    (tmp_path / demonstrations.FILE_NAME).write_bytes(
        (tmp_path / "wave-adopted/demonstrations.safetensors").read_bytes()
    )
    digest = demonstrations.digest(tmp_path / demonstrations.FILE_NAME)
    learner = bc.Learner(task, policy, BcConfig(updates=4, demonstrations=digest), 0, folder=tmp_path)
    for _ in range(4):
        learner.update()
    with torch.no_grad():
        commands, _ = policy(
            {name.removeprefix("signal/"): value for name, value in shown.items() if name.startswith("signal/")},
            policy.initial_state(len(true)),
        )
    away = commands["joint_position_target"].numpy() - motion()[1][:, :5]
    assert float(np.sqrt(np.mean(away**2))) < 0.15  # of a swing of 1.5 rad and more


def test_the_past_that_a_policy_sees_is_that_of_its_episode(tmp_path: Path) -> None:
    folder, _ = recorded(tmp_path, use_degrees=False)
    data = lerobot.read(folder)
    told = parse(described(history=3), "policy.toml")
    task = RecordedArm(told=told)
    shown = task.demonstrations(data, *angles(data, told, tmp_path))
    now = shown["observation"][:, -6:]
    first = STEPS[0]
    expected = torch.cat([now[first].repeat(2), now[first]])
    torch.testing.assert_close(shown["observation"][first], expected)
    torch.testing.assert_close(shown["observation"][first + 5], now[first + 3 : first + 6].flatten())


def longer(column: np.ndarray) -> dict[str, Any]:
    both = {name: np.concatenate([column, column], 1) for name in ("observation.state", "action")}
    return {"columns": both, "names": {}}


@pytest.mark.parametrize(
    ("told", "change", "sentence"),
    [
        ({"units": "percent"}, {}, r"units 'percent': observation\.state of '\w+' is '.*'; expected .* other units"),
        ({"calibration": "../arm.json"}, {}, r"calibration is '\.\./arm\.json'; expected the name of a file beside"),
        ({"calibration": "other.json"}, {}, r"other\.json: there is no such file"),
        ({"robot": "panda"}, {}, r"joints is .*; expected those of panda"),
        ({"images": "keep"}, {}, r"images is 'keep'; expected \"drop\""),
        ({"rate": 0}, {}, r"rate is '0'; expected 1 to 1000 Hz"),
        ({"joints": ["a", "a"]}, {}, r"joints is .*; expected different names"),
        ({"joint": []}, {}, r"joint is '\[\]'; expected one of the fields"),
        ({}, longer(np.zeros((65, 6), np.float32)), r"column 'observation\.state' is '12 numbers'; expected 6, one"),
        ({"units": "radians"}, {}, r"joint 'shoulder_pan' is at .* rad in episode 0, control step \d"),
    ],
    ids=["units", "outside", "no file", "robot", "images", "rate", "twice", "unknown", "two arms", "radians"],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_field_value_and_expectation(
    tmp_path: Path, told: dict[str, Any], change: dict[str, Any], sentence: str
) -> None:
    folder, _ = recorded(tmp_path, use_degrees=True, **change)
    with pytest.raises(DatasetError, match=sentence):
        angles(lerobot.read(folder), parse(described(**{"units": "degrees", **told}), "policy.toml"), tmp_path)


def test_other_columns_than_joints_and_targets_are_refused(tmp_path: Path) -> None:
    data = Dataset("t", "r", 30.0, np.zeros(3, int), {"observation.state": np.zeros((3, 6), np.float32)})
    with pytest.raises(DatasetError, match=r"column 'action' is .*; expected positions of joints, and targets"):
        arm_recording.draft(data, {}, "wave")


def test_texts_of_several_lines_are_refused_before_a_description_is_written(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    recorded(tmp_path, use_degrees=True, robot='x\nrobot = "panda"\n\x1b[2J')
    with pytest.raises(DatasetError, match=r"robot_type is .*; expected a line") as refusal:
        adopt.main(Path("wave"))
    assert str(refusal.value).isprintable()
    assert not (tmp_path / "wave-adopted").exists()


def test_a_link_to_another_file_is_refused_without_what_is_in_it(tmp_path: Path) -> None:
    folder, _ = recorded(tmp_path, use_degrees=True)
    (file,) = folder.glob("data/*/*.parquet")
    file.unlink()
    (tmp_path / "secret").write_text("root:x:0:0")
    file.symlink_to(tmp_path / "secret")
    with pytest.raises(DatasetError, match=r"can't be read as Parquet") as refusal:
        lerobot.read(folder)
    assert "root:x" not in str(refusal.value)


def test_names_in_a_table_of_motors_are_joints(tmp_path: Path) -> None:
    folder, _ = recorded(tmp_path, use_degrees=True)
    info = folder / "meta/info.json"
    told = json.loads(info.read_text())
    for name in ("observation.state", "action"):
        told["features"][name]["names"] = {"motors": [f"main_{joint.name}" for joint in JOINTS]}
    info.write_text(json.dumps(told))
    found, reasons = arm_recording.draft(lerobot.read(folder), {}, "wave")
    assert found["joints"] == [joint.name for joint in JOINTS]
    assert "before LeRobot 0.3" in reasons["calibration"]
