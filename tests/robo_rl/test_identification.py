"""What is hidden in a simulated robot is found from what its sensors tell; what is not told is said to be so."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from robo_rl.commands.own_robots import sysid
from robo_rl.commands.running.record import CALM
from robo_rl.commands.running.record import main as record_walk
from robo_rl.contract import Network, Provenance
from robo_rl.controllers.gate.codes import State
from robo_rl.deploy.robot.logs.logfile import BLEND, LIVE, LogWriter, StepRecord, spans
from robo_rl.deploy.robot.logs.reader import Log, read_log
from robo_rl.identification import UNKNOWNS, IdentificationError, Identified, Record, faults, identify, walk
from robo_rl.identification.estimate import Estimate, Residual, Unknown
from robo_rl.identification.excitation import unexcited
from robo_rl.identification.findings import find
from robo_rl.identification.observer import Observer
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.ranges import read_ranges
from robo_rl.sim.robots.legged import load_legged
from robo_rl.sim.tasks.loading import load_task

GO2 = load_legged("go2").mechanism
HIDDEN = {"joint_friction": 1.8, "armature": 1.5, "payload": 1.5, "command_delay": 0.02}
SOME = tuple(unknown for unknown in UNKNOWNS if unknown.name in HIDDEN)
NOMINAL = {
    "base_mass": 1.0,
    "strength": 1.0,
    "stiffness": 1.0,
    "damping": 1.0,
    "ground_friction": 0.8,
    "center_of_mass": 0.0,
}


@functools.cache
def bows(seconds: float, noise: float = 0.3) -> Record:
    """A robot with hidden figures that bends its knees and sways, seen through its sensors."""
    task = load_task("go2-flat")
    fixed = {**dict.fromkeys(CALM, 0.0), **NOMINAL, "noise": noise, **HIDDEN}
    env = VecEnv(task, 1, 0, fixed=fixed, evaluation=True, episode_length=seconds + 1)
    stand, rows = np.array([joint.home for joint in GO2.joints]), []
    for k in range(round(seconds * 50)):
        time = 2 * np.pi * 0.02 * k
        sway, knee = 0.06 * np.sin(0.9 * time) + 0.05 * np.sin(3.7 * time), 0.12 * np.sin(1.3 * time + 0.3)
        leg = [sway, 0.1 * np.sin(1.3 * time), 0.1 - knee]
        target = stand + np.tile(leg, 4)
        signals = {name: value[0].double().numpy() for name, value in env.signals().items()}
        rows.append({**signals, "target": target})
        assert not env.step({"joint_position_target": torch.from_numpy(target)[None]}).failed.any()
    seen = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    return Record(
        "bows", 0.02, seen["orientation"], seen["angular_velocity"], seen["joint_position"], seen["joint_velocity"],
        seen["target"], np.zeros((len(rows), 2)), noise=(0.02, 0.1, 0.006, 0.5),
    )  # fmt: skip


def log(path: Path, task: str, steps: int, change: tuple[str, float] | None = None) -> Log:
    """A session without movement; with ``change`` a signal has another value in its last step."""
    made, network = Provenance("ppo", 0, 1, "0" * 64), Network((8,), "elu", False)
    contract = load_task(task).spec.contract(made, network)
    writer, gate = LogWriter(path, contract, {"wall": "0"}), {"state": State.ACTIVE, "mode": LIVE}
    command = np.zeros(sum(c.size for c in contract.commands))
    for k in range(steps):
        time = round(1e6 * contract.control_period) * (k + (1 if k > 30 else 0))  # one step is missing
        stamps = (time - 5000,) * len(contract.signals)
        signals = np.concatenate(
            [np.eye(4)[3] if s.kind == "quaternion" else np.clip(0.0, *s.bounds) for s in contract.signals]
        )
        if change is not None and k == steps - 1:
            signals[spans(contract)[change[0]]] = change[1]
        row = StepRecord(
            time, 1000 * time, signals, stamps, contract.initial_state, command, command, None, command, gate, number=k
        )
        writer.write(row)
    writer.close()
    return read_log(path)


@pytest.mark.slow
def test_hidden_friction_armature_payload_and_delay_are_found_and_predict_better() -> None:
    found = identify(GO2, bows(13.0), Physics(), SOME, iterations=7)
    for estimate in found.estimates:
        true = HIDDEN[estimate.unknown.name]
        assert estimate.determined
        assert estimate.value == pytest.approx(true, rel=0.1)
        low, high = estimate.range
        assert low < estimate.value < high
    assert found.error_nominal > 3 * found.error_fitted
    assert faults(bows(13.0), found) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nonsense", "sentence"),
    [
        ("swapped legs", "times the sensors' noise"),
        pytest.param("targets of another time", "times the sensors' noise", marks=pytest.mark.release),
        pytest.param("noise", "times the sensors' noise", marks=pytest.mark.release),
        ("at rest", "the joints move at"),
    ],
)
def test_a_fit_of_nonsense_is_refused(nonsense: str, sentence: str) -> None:
    record, noise = bows(13.0), np.random.default_rng(0)
    order = [3, 4, 5, 0, 1, 2, 6, 7, 8, 9, 10, 11]
    steps, joints = record.target.shape
    still = np.tile(record.joint_position[:1], (steps, 1))
    changed = {
        "swapped legs": {"joint_position": record.joint_position[:, order], "target": record.target + 0.1},
        "targets of another time": {"target": np.roll(record.target, 37, 0)},
        "noise": {"joint_position": still + noise.normal(0, 0.2, (steps, joints))},
        "at rest": {
            "joint_position": still + noise.normal(0, 0.002, (steps, joints)),
            "joint_velocity": noise.normal(0, 0.15, (steps, joints)),
            "orientation": np.tile(record.orientation[:1], (steps, 1)),
            "angular_velocity": noise.normal(0, 0.03, (steps, 3)),
            "target": np.tile(record.target[:1], (steps, 1)),
        },
    }[nonsense]
    wrong = dataclasses.replace(record, **changed)
    found = identify(GO2, wrong, Physics(), SOME, iterations=3)
    assert any(sentence in fault for fault in faults(wrong, found))


def good_fit() -> Identified:
    """Figures of a fit that nothing is wrong with."""
    left = Residual(1.1, 4.0, 1.3, 0.2)
    return Identified(
        estimates=[Estimate(unknown, unknown.nominal, unknown.enough / 2) for unknown in SOME], alike=[],
        error_nominal=0.1, error_fitted=0.01, pieces=10, fitted=tuple(unknown.name for unknown in SOME),
        halves=np.ones(len(SOME)), starts=np.zeros(len(SOME)),
        residuals=dict.fromkeys(("attitude", "body rates", "joint angles", "joint speeds"), left), predictions={},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"error_fitted": 0.2}, "predicts joint angles 10 steps ahead worse than the card's figures do"),
        ({"residuals": {"joint angles": Residual(2.0, 9.0, 6.0, 0.2)}}, "what is left of joint angles 6 times"),
        ({"residuals": {"attitude": Residual(1.0, 9.0, 1.1, 0.95)}}, r"to step \(correlation of attitude 0.95\)"),
        ({"halves": np.array([0, 0, 8.0, 0])}, "the halves of the record disagree about payload"),
        ({"starts": np.array([0, 0, 1.5, 0])}, "another start ended elsewhere in payload"),
        ({"estimates": [Estimate(u, u.most, 0.01, "its end") for u in SOME]}, "came out at the end"),
        ({"estimates": [Estimate(u, u.nominal, 1e3) for u in SOME]}, "nothing is determined"),
        ({"error_fitted": float("nan")}, "worse than the card's figures"),
    ],
)  # fmt: skip
def test_each_fault_of_a_fit_is_told(change: dict, sentence: str) -> None:
    assert faults(bows(13.0), good_fit()) == []
    told = faults(bows(13.0), dataclasses.replace(good_fit(), **change))
    assert len([fault for fault in told if re.search(sentence, fault)]) == 1


def test_strength_is_searched_for_only_where_motors_come_near_their_limits() -> None:
    record = bows(13.0)
    assert list(unexcited(GO2, record)) == ["strength"]
    assert unexcited(GO2, dataclasses.replace(record, target=record.target + 1.5)) == {}


def test_the_observer_stays_with_a_record_under_its_own_parameters_only() -> None:
    record = bows(13.0)
    observer = Observer(GO2, record, Physics(), SOME)
    both = [
        [u.inner(value) for u, value in zip(SOME, values, strict=True)]
        for values in (HIDDEN.values(), [u.nominal for u in SOME])
    ]
    errors, _ = observer.follow(np.array(both), np.array([100]), 300)
    true, wrong = np.sqrt(np.mean(np.square(errors[:, 0, 100:, 6:18]), (1, 2)))
    assert true < 0.005  # rad; the sensors' noise is 0.002
    assert wrong > 5 * true


def test_a_delay_of_half_a_physics_step_is_between_none_and_a_whole_one() -> None:
    record = bows(13.0)
    delay = (next(u for u in UNKNOWNS if u.name == "command_delay"),)
    observer = Observer(GO2, record, Physics(), delay)
    errors, _ = observer.follow(np.array([[0.0], [0.005], [0.01]]), np.array([50]), 2)
    none, half, whole = errors[:, 0, 1, 6:18]
    assert np.abs(whole - none).max() > 1e-4
    np.testing.assert_allclose(half, (none + whole) / 2, atol=0.2 * np.abs(whole - none).max())


def test_a_factor_is_found_as_its_logarithm() -> None:
    friction: Unknown = SOME[0]
    assert friction.outer(friction.inner(1.7)) == pytest.approx(1.7)
    assert friction.inner(friction.nominal) == 0.0


def test_a_record_that_is_too_short_is_refused() -> None:
    record = bows(13.0)
    short = Record("short.mcap", 0.02, *(getattr(record, name)[:400] for name in (
        "orientation", "angular_velocity", "joint_position", "joint_velocity", "target", "velocity")))  # fmt: skip
    with pytest.raises(IdentificationError, match=r"short\.mcap: 400 control steps; expected at least 606"):
        identify(GO2, short, Physics(), SOME)


def test_a_log_of_a_robot_without_legs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IdentificationError, match=r"it has no \['joint_position', .*expected a walk"):
        walk(log(tmp_path / "flight.mcap", "quadrotor-hover", 5))


def test_the_longest_part_without_a_gap_is_read_with_the_age_of_its_measurements(tmp_path: Path) -> None:
    record = walk(log(tmp_path / "still.mcap", "go2-flat", 100))
    assert len(record) == 69  # of 100 after the gap at 31
    assert record.age == pytest.approx(0.005)
    assert record.noise == (0.02, 0.1, 0.006, 0.5)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("angular_velocity", np.nan), "angular_velocity.x is not finite; expected -"),
        (("joint_position", 1e30), r"joint_position.FR_hip_joint is 1e\+30; expected -"),
        (("orientation", 0.0), "orientation has the length .*expected a unit quaternion"),
    ],
)
def test_a_value_that_no_sensor_gives_is_refused(tmp_path: Path, change: tuple[str, float], sentence: str) -> None:
    with pytest.raises(IdentificationError, match=rf"walk\.mcap: step 99: {sentence}"):
        walk(log(tmp_path / "walk.mcap", "go2-flat", 100, change))


def test_stamps_that_go_backwards_or_are_years_old_are_refused(tmp_path: Path) -> None:
    good = log(tmp_path / "walk.mcap", "go2-flat", 100)
    for shift, sentence in ((-(10**12), "step 99: stamps go backwards"), (10**14, "s old on average, by their stamps")):
        last = dataclasses.replace(good.steps[-1], stamps=tuple(stamp + shift for stamp in good.steps[-1].stamps))
        with pytest.raises(IdentificationError, match=sentence):
            walk(dataclasses.replace(good, steps=[*good.steps[:-1], last]))


def test_a_sensor_that_gives_one_value_for_seconds_is_refused(tmp_path: Path) -> None:
    good = log(tmp_path / "walk.mcap", "go2-flat", 320)
    rates = spans(good.contract)["angular_velocity"]
    noise = np.random.default_rng(0)
    steps = []
    for step in good.steps:
        signals = step.signals - noise.uniform(0.0, 1e-3, len(step.signals)).astype(np.float32)
        signals[rates] = step.signals[rates]
        steps.append(dataclasses.replace(step, signals=signals))
    with pytest.raises(IdentificationError, match="'angular_velocity' is the same in all 289 steps from step 31 on"):
        walk(dataclasses.replace(good, steps=steps))


@pytest.mark.parametrize("gate", [{"state": State.IDLE}, {"state": State.READY}, {"mode": BLEND - 1}])
def test_commands_that_were_not_sent_are_not_fitted(gate: dict[str, int], tmp_path: Path) -> None:
    good = log(tmp_path / "walk.mcap", "go2-flat", 100)
    steps = [dataclasses.replace(s, gate={**s.gate, **gate}) if s.number > 60 else s for s in good.steps]
    assert len(walk(dataclasses.replace(good, steps=steps))) == 31  # before the gap; after it 30 were sent
    steps = [dataclasses.replace(s, gate={**s.gate, **gate}) for s in good.steps]
    with pytest.raises(IdentificationError, match="it has no control steps under an ACTIVE gate that sent"):
        walk(dataclasses.replace(good, steps=steps))


def test_joints_in_another_order_than_the_robot_s_are_refused(tmp_path: Path) -> None:
    good = log(tmp_path / "walk.mcap", "go2-flat", 10)
    joints = good.contract.signal("joint_position")
    turned = tuple(
        dataclasses.replace(signal, elements=joints.elements[::-1]) if signal.name == joints.name else signal
        for signal in good.contract.signals
    )
    other = dataclasses.replace(good, contract=dataclasses.replace(good.contract, signals=turned))
    with pytest.raises(IdentificationError, match=r"walk\.mcap: signals: 'joint_position': elements is"):
        find([other], load_task("go2-flat"))


@pytest.mark.parametrize(
    ("task", "sentence"),
    [("go2-rough", "go2-rough, on rough ground; expected a walk"), ("go2-recover", "all shapes touch the ground")],
)
def test_logs_of_other_ground_than_walks_on_a_plane_are_refused(tmp_path: Path, task: str, sentence: str) -> None:
    path = tmp_path / "other.mcap"
    log(path, task, 5)
    with pytest.raises(ValueError, match=sentence):
        sysid.main(path)


@pytest.mark.release  # with every change an arm at rest: test_arm_identification.py
def test_a_robot_that_stands_is_refused_and_its_ranges_are_written_by_force_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "stands.mcap", tmp_path / "stands.toml"
    still = dict.fromkeys(("command/x", "command/y", "command/yaw"), 0.0)
    assert record_walk(Path("zoo:go2-flat"), path, seconds=14.0, fixed=still) == 0
    assert sysid.main(path, json=True) == 1
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["accepted"], told["file"]) == (False, None)
    assert any("expected at least 0.5: record a walk" in fault for fault in told["faults"])
    assert not out.exists()
    assert sysid.main(path, force=True) == 1
    assert "# REFUSED, and written by --force: the joints move at" in out.read_text()
    assert read_ranges(out, "go2-flat", load_task("go2-flat").spec.ranges)
