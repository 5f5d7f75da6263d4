"""A policy with slow sensors, and with quantities that may be absent, stepped as on a robot; and its link."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

sys.path.append(str(Path(__file__).parent))
from graphs import make_bundle, make_contract, position, target
from test_loop import PATIENCE, VirtualTime

from robo_rl.contract import Contract, Safety, Signal
from robo_rl.controllers.gate.held import NEVER, Samples
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.link import (
    Clock,
    Decoder,
    Layout,
    LinkError,
    Session,
    Type,
    Verdict,
    encode,
    signals_together,
)
from robo_rl.deploy.robot.link.messages import AGE_NEVER, Hello, Sample, Signals, frame_of, messages_of, parse, stamp_of
from robo_rl.deploy.robot.loop import Loop
from robo_rl.deploy.robot.runtime import Policy, SignalError

SCAN = Signal("scan", (), "m", "lidar", 0.0, 10.0, shape=(2,), period=0.04)  # every fourth step
OBJECT = Signal("object", ("x",), "m", "camera", (0.5,), (4.0,), period=0.02)
AGE = Signal("object_age", ("age",), "s", "none", (0.0,), (0.05,), source="runtime", age_of="object")


def contract() -> Contract:
    return make_contract([position(), SCAN, OBJECT, AGE], [target()], safety=Safety(0.015))


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    """Commands are a tenth of: what the first beam sees, where the object is, and how long ago that was."""
    nodes = [
        helper.make_node("Gather", ["scan", "first"], ["beam"], axis=1),
        helper.make_node("Concat", ["beam", "object", "object_age"], ["all"], axis=1),
        helper.make_node("Mul", ["all", "tenth"], ["small"]),
        helper.make_node("Mul", ["joint_position", "nothing"], ["zero"]),
        helper.make_node("Add", ["small", "zero"], ["joint_target"]),
    ]
    constants = {"first": np.array([0]), "tenth": np.array(0.1, np.float32), "nothing": np.array(0.0, np.float32)}
    given = {
        "joint_position": np.zeros((2, 3)), "scan": np.ones((2, 2)), "object": np.ones((2, 1)),
        "object_age": np.zeros((2, 1)),
    }  # fmt: skip
    return make_bundle(tmp_path, contract(), nodes, given, constants)


HERE = {"joint_position": [0.0, 0.0, 0.0]}


def seen(policy: Policy, time: float | None = None, ages: dict | None = None, **signals: object) -> list[float]:
    """Beam, object and age that the policy saw in a step."""
    commands = policy.step({**HERE, **signals}, time, ages)  # type: ignore[dict-item]
    return [round(float(x), 5) for x in 10 * commands["joint_target"]]


def test_a_slow_signal_may_be_left_out_and_keeps_its_value(bundle: Bundle) -> None:
    policy = Policy(bundle)
    assert seen(policy, scan=[3.0, 4.0], object=[2.0]) == [3.0, 2.0, 0.0]
    assert [seen(policy)[0] for _ in range(5)] == [3.0] * 5  # 50 ms: its period, and 10 of the 15 ms of grace
    assert seen(policy, scan=[5.0, 4.0])[0] == 5.0


def test_a_slow_signal_that_is_late_by_its_own_measure_is_refused_until_it_comes(bundle: Bundle) -> None:
    policy = Policy(bundle)
    seen(policy, scan=[3.0, 4.0])
    for _ in range(5):
        seen(policy)
    for _ in range(2):  # a refusal changes nothing, the clock neither
        with pytest.raises(SignalError, match=r"signal 'scan' was measured 0\.06 s ago; expected at most 0\.055 s"):
            seen(policy)
    assert seen(policy, scan=[6.0, 4.0])[0] == 6.0


def test_a_set_point_that_is_too_old_by_its_own_timeout_is_refused(tmp_path: Path) -> None:
    asked = Signal("asked", ("x",), "m", "world", (0.0,), (1.0,), source="operator", timeout=0.03)
    nodes = [
        helper.make_node("Mul", ["joint_position", "asked"], ["zero"]),
        helper.make_node("Tanh", ["zero"], ["joint_target"]),
    ]
    given = {"joint_position": np.zeros((2, 3)), "asked": np.ones((2, 1))}
    policy = Policy(make_bundle(tmp_path, make_contract([position(), asked], [target()]), nodes, given))
    policy.step({**HERE, "asked": [0.5]}, ages={"asked": 0.03})
    with pytest.raises(SignalError, match=r"signal 'asked' was measured 0\.0301 s ago; expected at most 0\.03 s"):
        policy.step({**HERE, "asked": [0.5]}, ages={"asked": 0.0301})


def test_a_slow_signal_must_be_in_the_first_step(bundle: Bundle) -> None:
    policy = Policy(bundle)
    with pytest.raises(
        SignalError, match="signal 'scan' was never measured; expected 2 numbers in m, in the first step"
    ):
        seen(policy, object=[2.0])
    seen(policy, scan=[3.0, 4.0])
    policy.reset()
    with pytest.raises(SignalError, match="signal 'scan' was never measured"):
        seen(policy)


def test_other_signals_are_still_needed_at_every_step(bundle: Bundle) -> None:
    policy = Policy(bundle)
    seen(policy, scan=[3.0, 4.0])
    with pytest.raises(SignalError, match="signal 'joint_position' is missing; expected 3 numbers"):
        policy.step({"scan": [3.0, 4.0]})


def test_what_may_be_absent_begins_as_zeros_within_its_limits_with_the_greatest_age(bundle: Bundle) -> None:
    policy = Policy(bundle)
    assert seen(policy, scan=[3.0, 4.0]) == [3.0, 0.5, 0.05]
    assert seen(policy, object=[2.0]) == [3.0, 2.0, 0.0]
    assert [seen(policy, scan=[3.0, 4.0])[1:] for _ in range(7)] == [
        [2.0, 0.01], [2.0, 0.02], [2.0, 0.03], [2.0, 0.04], [2.0, 0.05], [2.0, 0.05], [2.0, 0.05],
    ]  # fmt: skip


def test_ages_count_from_the_measurement(bundle: Bundle) -> None:
    policy = Policy(bundle)
    assert seen(policy, None, {"object": 0.02}, scan=[3.0, 4.0], object=[2.0]) == [3.0, 2.0, 0.02]
    assert seen(policy) == [3.0, 2.0, 0.03]
    with pytest.raises(SignalError, match=r"signal 'scan' was measured 0\.0551 s ago; expected at most 0\.055 s"):
        seen(policy, None, {"scan": 0.0551}, scan=[5.0, 4.0])
    assert seen(policy, None, {"scan": 0.055}, scan=[5.0, 4.0]) == [5.0, 2.0, 0.04]


class Watched:
    """A policy whose commands are kept, and a driver that saw the object 30 ms ago."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.contract, self.reset = policy, policy.contract, policy.reset
        self.commands: list[np.ndarray] = []

    def step(self, signals: Any, ages: Any = None) -> Any:
        commands = self.policy.step(signals, ages=ages)
        self.commands.append(10 * commands["joint_target"])
        return commands

    def read(self, now: int) -> Samples:
        measured = {"joint_position": ([0, 0, 0], now), "scan": ([3, 4], now - 10_000), "object": ([2], now - 30_000)}
        return {name: (np.array(value, np.float32), stamp) for name, (value, stamp) in measured.items()}

    def write(self, commands: Any, source: Any) -> None:
        """Nothing moves."""


def test_the_plain_loop_tells_policy_and_gate_how_old_a_measurement_is(bundle: Bundle) -> None:
    robot = Watched(Policy(bundle))
    loop = Loop(robot, robot, clock=VirtualTime(), patience=PATIENCE)  # type: ignore[arg-type]
    loop.run(0.05)
    np.testing.assert_allclose(robot.commands, [[3.0, 2.0, 0.03]] * len(robot.commands), rtol=1e-5)
    assert robot.commands
    np.testing.assert_allclose(loop.reserve.gate.values[-2:], [2.0, 0.03], rtol=1e-6)


def test_ages_go_by_the_time_of_the_step_where_it_is_given(bundle: Bundle) -> None:
    policy = Policy(bundle)
    assert seen(policy, 0.0, {"object": 0.02}, scan=[3.0, 4.0], object=[2.0]) == [3.0, 2.0, 0.02]
    assert seen(policy, 0.012) == [3.0, 2.0, 0.032]
    assert seen(policy, 0.020) == [3.0, 2.0, 0.04]


@pytest.mark.parametrize("ages", [{"scann": 1.0}, {"object": 0.0}, {"scan": -0.1}, {"scan": np.nan}, {"scan": np.inf}])
def test_ages_of_what_is_not_given_or_that_are_none_are_refused(bundle: Bundle, ages: dict) -> None:
    (name,) = ages
    with pytest.raises(SignalError, match=rf"the age of '{name}' is .* s; expected 0 or more, of one of \['joint_pos"):
        seen(Policy(bundle), None, ages, scan=[3.0, 4.0])


def test_an_age_that_is_given_is_refused(bundle: Bundle) -> None:
    with pytest.raises(SignalError, match=r"signals \['object_age'\] are ages, which are computed here; expected only"):
        seen(Policy(bundle), scan=[3.0, 4.0], object_age=[0.0])


def test_what_is_out_of_range_is_refused_and_the_held_value_stays(bundle: Bundle) -> None:
    policy = Policy(bundle)
    seen(policy, scan=[3.0, 4.0], object=[2.0])
    with pytest.raises(SignalError, match=r"signal 'object': x is 0.4 m; expected a number from 0\.5 to 4"):
        seen(policy, object=[0.4])
    with pytest.raises(SignalError, match="signal 'scan': 1 is nan m"):
        seen(policy, scan=[3.0, float("nan")])
    assert seen(policy) == [3.0, 2.0, 0.01]


def test_commands_that_hold_what_is_measured_hold_slow_measurements_too(tmp_path: Path) -> None:
    slow = make_contract([position(period=0.04)], [target(safe="hold", stop="hold")])
    nodes = [helper.make_node("Identity", ["joint_position"], ["joint_target"])]
    policy = Policy(make_bundle(tmp_path, slow, nodes, {"joint_position": np.zeros((1, 3))}))
    policy.step({"joint_position": [0.1, 0.2, 0.3]})
    policy.step({})
    np.testing.assert_array_equal(policy.safe_commands["joint_target"], np.array([0.1, 0.2, 0.3], np.float32))


# --- over the link ------------------------------------------------------------------------------------------------


def test_only_what_was_measured_anew_is_sent_alone() -> None:
    here, sent = np.array([0.1, 0.2, 0.3], np.float32), {}
    samples: dict[str, tuple[np.ndarray, int]] = {"joint_position": (here, 100), "scan": (np.ones(2, np.float32), 90)}
    messages, sent = messages_of(contract(), samples, 110, 5, sent)
    assert [type(message) for message in messages] == [Sample, Signals]
    first, second = messages
    assert isinstance(first, Sample)
    assert isinstance(second, Signals)
    assert (first.index, first.age, first.values.tolist()) == (1, 20, [1.0, 1.0])
    assert (second.ages, second.operator_age) == ((10,), 5)
    np.testing.assert_array_equal(second.values, here)
    messages, sent = messages_of(contract(), samples, 120, 5, sent)
    assert [type(message) for message in messages] == [Signals]
    samples["object"] = (np.array([2.0], np.float32), 115)
    samples["scan"] = (np.ones(2, np.float32), 118)  # the same value, measured anew
    messages, sent = messages_of(contract(), samples, 120, 5, sent)
    assert [m.index for m in messages if isinstance(m, Sample)] == [1, 2]
    assert sent == {"scan": 118, "object": 115}


def test_contracts_without_slow_signals_have_the_frames_that_they_had() -> None:
    plain = make_contract([position(), position("others")], [target()])
    layout = Layout.of(plain)
    assert layout == Layout(bytes.fromhex(plain.digest), 2, 6, 3)
    values = np.arange(6, dtype=np.float32)
    samples: Samples = {"joint_position": (values[:3], 5), "others": (values[3:], 6)}
    ((message,), _) = messages_of(plain, samples, 10, 7, {})
    expected = Signals(10, 7, (5, 4), values).payload()
    assert message.payload() == expected
    assert layout.length(Type.SIGNALS) == len(expected) == 12 + 4 * (2 + 6)


def test_a_peer_holds_what_came_alone(bundle: Bundle) -> None:
    """All frames over a wire that loses some: the peer has the newest of what arrived, with its true age."""
    layout, decoder, clock = Layout.of(bundle.contract), Decoder(), Clock()
    session, held, sent = Session(layout), {}, {}
    together = [signal.name for signal in signals_together(bundle.contract)]
    assert together == ["joint_position"]
    hello = Hello(0, False, layout.signal_size, layout.command_size, 10_000, 0, layout.digest)
    wire, sequence = [encode(frame_of(hello, 0))], 1
    scans = {0: 1.0, 4: 2.0, 8: 3.0}  # by step; the second one is lost
    samples: dict[str, tuple[np.ndarray, int]] = {}
    for k in range(10):
        now = 10_000 * (k + 1)
        samples["joint_position"] = (np.full(3, k, np.float32), now)
        if k in scans:
            samples["scan"] = (np.full(2, scans[k], np.float32), now - 2_000)
        messages, sent = messages_of(bundle.contract, samples, now, AGE_NEVER, sent)
        for message in messages:
            if not (k == 4 and isinstance(message, Sample)):
                wire.append(encode(frame_of(message, sequence)))
            sequence += 1
    ages = []
    for piece in wire:
        for frame in decoder.feed(piece):
            message = parse(frame, layout)
            now = 1_000_000 + getattr(message, "time", 0)
            assert session.accept(frame, now) in (Verdict.TAKEN, Verdict.OPENED)
            local = clock.update(message.time, now)  # type: ignore[union-attr]
            if isinstance(message, Sample):
                held[bundle.contract.signals[message.index].name] = (message.values, stamp_of(local, message.age))
            elif isinstance(message, Signals):
                held["joint_position"] = (message.values, stamp_of(local, message.ages[0]))
                ages.append((held["scan"][0][0], now - held["scan"][1]))
    assert ages[:8] == [(1.0, 2_000 + 10_000 * k) for k in range(8)]
    assert ages[8:] == [(3.0, 2_000), (3.0, 12_000)]
    assert session.counts.lost == 1
    assert held.get("object", (None, NEVER))[1] == NEVER


def test_a_signal_that_no_frame_can_hold_is_refused() -> None:
    huge = Signal("depth", (), "m", "camera", 0.0, 5.0, shape=(128, 128), period=0.1)
    with pytest.raises(LinkError, match="signal 'depth' has 16384 numbers; a frame holds at most 16380"):
        Layout.of(make_contract([position(), huge], [target()]))


def test_what_is_no_sample_of_the_contract_is_refused() -> None:
    layout = Layout.of(contract())
    session = Session(layout)
    hello = Hello(0, False, layout.signal_size, layout.command_size, 10_000, 0, layout.digest)
    session.accept(frame_of(hello, 0), 0)
    for index, size in ((0, 3), (1, 1), (1, 3), (3, 1), (4, 2), (65_535, 2)):
        frame = frame_of(Sample(0, 0, index, np.zeros(size, np.float32)), 1)
        assert session.accept(frame, 0) == Verdict.MALFORMED
        with pytest.raises(LinkError, match="expected those of a slow signal of the contract"):
            parse(frame, layout)
    assert session.accept(frame_of(Sample(0, 0, 1, np.zeros(2, np.float32)), 1), 0) == Verdict.TAKEN


def test_the_document_has_the_layout_of_a_sample() -> None:
    text = (Path(__file__).parents[2] / "docs" / "link.md").read_text()
    assert "| 8 | sample | 14 + 4 K |" in text
