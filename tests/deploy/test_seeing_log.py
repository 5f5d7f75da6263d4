"""A session of a policy that sees: logged for ROS tools, read back to the bit, and replayed."""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mcap_ros2", reason="mcap_ros2 is missing: pip install 'robo-rl[train]'")

sys.path.append(str(Path(__file__).parent))
from seeing import PROVENANCE, drawn_signals, seeing_policy

from robo_rl.controllers.gate.config import GateConfig
from robo_rl.controllers.gate.safety import Inputs, initial
from robo_rl.controllers.gate.safety import step as gate_step
from robo_rl.deploy.build.export import write_bundle
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.logs.logfile import GATE_FIELDS, LogWriter, StepRecord, element_names, spans
from robo_rl.deploy.robot.logs.reader import read_log
from robo_rl.deploy.robot.logs.record import pack, unpack
from robo_rl.deploy.robot.logs.replay import plot, replay

STEPS, EVERY = 30, {"scan": 10, "depth": 5, "neighbours": 7}  # steps between measurements


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    policy = seeing_policy()
    path = tmp_path_factory.mktemp("log") / "policy.onnx"
    return write_bundle(policy, PROVENANCE, drawn_signals(policy, 64, 4), path)


def session(bundle: Bundle) -> list[StepRecord]:
    """Steps of a policy that never takes off, whose slow signals are held."""
    contract = bundle.contract
    config = GateConfig.from_contract(contract)
    gate, state, steps = initial(config), contract.initial_state[None], []
    drawn = drawn_signals(seeing_policy(), STEPS, 1, seed=5)
    period = round(1e6 * contract.control_period)
    for k in range(STEPS):
        now = 1_000_000 + period * k
        held = {s.name: k - k % EVERY.get(s.name, 1) for s in contract.signals}
        seen = {s.name: drawn[s.name][held[s.name], 0] for s in contract.signals}
        flat = np.concatenate([seen[s.name].ravel() for s in contract.signals])
        stamps = tuple(1_000_000 + period * held[s.name] for s in contract.signals)
        commands, _ = bundle.run({name: value[None] for name, value in seen.items()}, state)
        proposed = np.concatenate([commands[c.name][0] for c in contract.commands])
        given = Inputs(now, flat, stamps, proposed, now, operator_stamp=now, bundle_intact=True)
        gate, answer = gate_step(config, gate, given)
        problem = answer.problem
        told = {
            "state": answer.state, "source": answer.source, "reason": problem.reason, "channel": problem.channel,
            "element": problem.element, "intact": 1, "operator_stamp": now,
        }  # fmt: skip
        steps.append(
            StepRecord(
                now, 1_700_000_000_000_000_000 + 1000 * now, flat, stamps, state[0], proposed, proposed, None,
                answer.command, {name: float(told.get(name, 0.0)) for name in GATE_FIELDS}, number=k,
            )
        )  # fmt: skip
    return steps


def written(bundle: Bundle, steps: list[StepRecord], path: Path) -> Path:
    writer = LogWriter(path, bundle.contract, {"digest": bundle.digest, "bundle": "policy.onnx", "wall": "1"})
    for step in steps:
        writer.write(step)
    writer.close()
    return path


def test_a_log_holds_every_bit_of_every_signal(bundle: Bundle, tmp_path: Path) -> None:
    steps = session(bundle)
    span = spans(bundle.contract)["depth"]
    strange = steps[7].signals.copy()
    strange[span][:4] = [np.nan, -np.inf, -0.0, np.float32(1e-42)]
    steps[7] = dataclasses.replace(steps[7], signals=strange)
    log = read_log(written(bundle, steps, tmp_path / "log.mcap"))
    assert log.contract == bundle.contract
    for found, step in zip(log.steps, steps, strict=True):
        assert found.signals.tobytes() == step.signals.tobytes()
        assert found.stamps == step.stamps
        assert found.memory.tobytes() == step.memory.tobytes()


def test_ros_tools_see_a_scan_an_image_and_a_table_whenever_they_are_measured(bundle: Bundle, tmp_path: Path) -> None:
    """By the general reader of MCAP files with ROS messages."""
    from mcap_ros2.reader import read_ros2_messages

    steps = session(bundle)
    path = written(bundle, steps, tmp_path / "log.mcap")
    messages = [(m.channel.topic, m.ros_msg) for m in read_ros2_messages(path)]
    counted = Counter(topic for topic, _ in messages)
    assert {name: counted[f"/policy/signal/{name}"] for name in EVERY} == {"scan": 3, "depth": 6, "neighbours": 5}
    first = {topic.removeprefix("/policy/signal/"): message for topic, message in reversed(messages)}
    where, flat = spans(bundle.contract), steps[0].signals
    scan, depth, table = first["scan"], first["depth"], first["neighbours"]
    np.testing.assert_array_equal(np.float32(scan.ranges), flat[where["scan"]])
    assert (scan.angle_min, scan.range_max) == pytest.approx((-np.pi, 10.0))
    assert scan.angle_increment == pytest.approx(2 * np.pi / 64)
    assert scan.header.stamp.sec == steps[0].wall // 1_000_000_000
    assert (depth.height, depth.width, depth.encoding, depth.step, depth.is_bigendian) == (32, 32, "32FC1", 128, 0)
    assert bytes(depth.data) == flat[where["depth"]].tobytes()
    assert [(d.size, d.stride) for d in table.layout.dim] == [(8, 16), (2, 2)]
    np.testing.assert_array_equal(np.float32(table.data), flat[where["neighbours"]])
    vectors = next(message for topic, message in messages if topic == "/policy/signals")
    assert not any(name.startswith(tuple(EVERY)) and not name.startswith("neighbours_age") for name in vectors.name)
    assert "neighbours_age/age" in vectors.name


def test_the_recorder_s_pipe_carries_every_bit(bundle: Bundle) -> None:
    for step in session(bundle)[:3]:
        found = unpack(pack(step, step.number), bundle.contract)
        assert found.signals.tobytes() == step.signals.tobytes()
        assert found.sent.tobytes() == step.sent.tobytes()


def test_a_replay_finds_no_difference_and_finds_one_pixel_that_is_another(bundle: Bundle, tmp_path: Path) -> None:
    steps = session(bundle)
    found = replay(written(bundle, steps, tmp_path / "log.mcap"), bundle.path)
    assert (found.steps, found.policy, found.gate) == (STEPS, None, None)
    assert found.greatest <= 1e-6
    changed = steps[12].signals.copy()
    changed[spans(bundle.contract)["depth"]] = 4.9
    steps[12] = dataclasses.replace(steps[12], signals=changed)
    found = replay(written(bundle, steps, tmp_path / "changed.mcap"), bundle.path)
    assert found.policy is not None
    assert (found.policy.step, found.policy.what[:11]) == (12, "rotor_speed")


def test_a_plot_shows_arrays_by_their_least_mean_and_greatest(bundle: Bundle, tmp_path: Path) -> None:
    plot(written(bundle, session(bundle), tmp_path / "log.mcap"), tmp_path / "log.svg")
    assert (tmp_path / "log.svg").stat().st_size < 3_000_000
    assert "<svg" in (tmp_path / "log.svg").read_text()[:1000]


def test_elements_of_a_signal_with_a_shape_have_names(bundle: Bundle) -> None:
    names = element_names([bundle.contract.signal("neighbours"), bundle.contract.signal("scan")])
    assert names[:3] == ["neighbours/0_x", "neighbours/0_y", "neighbours/1_x"]
    assert names[-1] == "scan/63"
