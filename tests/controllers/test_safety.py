"""The gate between policy and actuators: every fault ends in a stop, in time, and latches; stops do not jump."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from robo_rl.contract import Contract, ContractError
from robo_rl.controllers.gate.codes import MEANING, Event, Reason, Request, Source, State
from robo_rl.controllers.gate.config import NEVER, SLOW_TIME, GateConfig
from robo_rl.controllers.gate.moves import arrived
from robo_rl.controllers.gate.safety import Gate, Inputs, Output, initial, step

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "tests" / "vectors" / "gate"
PERIOD = 10_000  # µs, of the contract below
DEADLINE = 25_000  # µs, its signal_timeout


def inspector(name: str = "stop", **safety: Any) -> Contract:
    """A multirotor with a camera gimbal, or an arm: see tests/vectors/gate_story.py."""
    text = (VECTORS / "configurations" / f"{name}.json").read_text()
    contract = Contract.from_json(json.dumps(json.loads(text)["contract"]))
    return dataclasses.replace(contract, safety=dataclasses.replace(contract.safety, **safety))


class Flight:
    """A healthy robot at its control rate, whose inputs a fault may change."""

    def __init__(self, contract: Contract) -> None:
        self.config = GateConfig.from_contract(contract)
        self.gate, self.time, self.noise = initial(self.config), 0, np.random.default_rng(0)

    def inputs(self, requests: Request = Request.NONE) -> Inputs:
        gimbal = np.array([0.25, 0.0]) + self.noise.normal(0, 0.001, 2)
        return Inputs(
            time=self.time,
            signals=np.array([0, 0, 0, 1, *gimbal, 1.5], np.float32),
            stamps=[self.time] * 3,
            command=np.array([400, 400, 400, 400, 0.25, 0], np.float32),
            command_stamp=self.time,
            operator_stamp=self.time,
            bundle_intact=True,
            requests=requests,
        )

    def step(self, requests: Request = Request.NONE, dt: int = PERIOD, **changes: Any) -> Output:
        self.time += dt
        self.gate, output = step(self.config, self.gate, dataclasses.replace(self.inputs(requests), **changes))
        return output

    def activate(self) -> Flight:
        assert self.step(Request.ARM).state == State.READY
        while not arrived(self.config, self.gate):
            self.step()
        assert self.step(Request.ACTIVATE).state == State.ACTIVE
        return self


Fault = Callable[[Inputs, int], dict[str, Any]]
"""What a fault makes of healthy inputs, ``age`` µs after it began."""


def signal(index: int, value: float) -> Fault:
    return lambda healthy, age: {"signals": np.where(np.arange(7) == index, np.float32(value), healthy.signals)}


def attitude(*q: float) -> Fault:
    return lambda healthy, age: {"signals": np.array([*q, *healthy.signals[4:]], np.float32)}


def silent(index: int) -> Fault:
    """The last message of a signal is from one period before the fault began."""
    return lambda healthy, age: {"stamps": [t - (i == index) * (age + PERIOD) for i, t in enumerate(healthy.stamps)]}


def missing(index: int) -> Fault:
    return lambda healthy, age: {"stamps": [NEVER if i == index else t for i, t in enumerate(healthy.stamps)]}


def commanded(index: int, value: float) -> Fault:
    return lambda healthy, age: {"command": np.where(np.arange(6) == index, np.float32(value), healthy.command)}


FAULTS: dict[str, tuple[Reason, Fault]] = {
    "stop button": (Reason.OPERATOR_STOP, lambda healthy, age: {"requests": Request.STOP if age == 0 else 0}),
    "bundle edited": (Reason.BUNDLE, lambda healthy, age: {"bundle_intact": False}),
    "sensor clock ahead": (Reason.CLOCK, lambda healthy, age: {"stamps": [healthy.time + 1] * 3}),
    "clock jumps back": (Reason.CLOCK, lambda healthy, age: {"time": healthy.time - 1_000_000}),
    "clock jumps ahead": (Reason.OVERRUN, lambda healthy, age: {"time": healthy.time + 1_000_000}),
    "operator walks away": (
        Reason.OPERATOR_LOST,
        lambda healthy, age: {"operator_stamp": healthy.time - age - 40_000},
    ),
    "sensor unplugged": (Reason.SIGNAL_MISSING, missing(0)),
    "set-point absent": (Reason.SIGNAL_MISSING, missing(2)),
    "sensor silent": (Reason.SIGNAL_STALE, silent(1)),
    "estimator silent": (Reason.SIGNAL_STALE, silent(0)),
    "sensor gives NaN": (Reason.SIGNAL_NOT_FINITE, signal(5, math.nan)),
    "sensor gives infinity": (Reason.SIGNAL_NOT_FINITE, signal(4, math.inf)),
    "degrees for radians": (Reason.SIGNAL_RANGE, signal(4, math.degrees(0.25))),
    "set-point outside": (Reason.SIGNAL_RANGE, signal(6, 10.5)),
    "quaternion of zeros": (Reason.SIGNAL_NORM, attitude(0, 0, 0, 0)),
    "quaternion doubled": (Reason.SIGNAL_NORM, attitude(0.9, 0, 0, 0.9)),
    "quaternion order swapped": (Reason.TILT, attitude(1, 0, 0, 0)),  # (w, x, y, z) of the level robot
    "robot falls": (Reason.TILT, attitude(0, math.sin(0.6), 0, math.cos(0.6))),
    "sensor frozen": (
        Reason.SIGNAL_FROZEN,
        lambda healthy, age: {"signals": np.array([0, 0, 0, 1, 0.3, 0.1, 1.5], np.float32)},
    ),
    "policy dead": (Reason.COMMAND_MISSING, lambda healthy, age: {"command": None}),
    "policy hangs": (
        Reason.COMMAND_STALE,
        lambda healthy, age: {"command_stamp": healthy.time - age - PERIOD},
    ),
    "policy gives NaN": (Reason.COMMAND_NOT_FINITE, commanded(0, math.nan)),
    "policy gives infinity": (Reason.COMMAND_NOT_FINITE, commanded(5, -math.inf)),
    "command outside": (Reason.COMMAND_RANGE, commanded(3, 1000.1)),
    "command runs away": (Reason.COMMAND_RATE, commanded(4, -1.5)),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_fault_leads_to_the_safe_command_in_time_and_latches(name: str) -> None:
    reason, fault = FAULTS[name]
    contract = inspector("off")
    flight = Flight(contract).activate()
    for _ in range(20):
        assert flight.step().source == Source.POLICY
    began = flight.time + PERIOD
    output = flight.step(**fault(dataclasses.replace(flight.inputs(), **_moved(flight, PERIOD)), 0))
    while output.state != State.FAULT and flight.time < began + 10 * DEADLINE:
        healthy = dataclasses.replace(flight.inputs(), **_moved(flight, PERIOD))
        output = flight.step(**fault(healthy, flight.time + PERIOD - began))
    assert output.problem.reason == reason
    assert output.events & Event.FAULTED
    # a value counts as frozen, and a rate as cut, from the second sample on
    assert flight.time - began <= DEADLINE + PERIOD * (reason in (Reason.SIGNAL_FROZEN, Reason.COMMAND_RATE))
    safe = [x for command in contract.commands for x in command.safe]
    assert output.command.tolist() == safe
    flight.time = flight.gate.time
    for k in range(200):  # all is well again, and nothing but a reset is asked for
        output = flight.step([Request.NONE, Request.ARM, Request.ACTIVATE, Request.DISARM][k % 4])
        assert (output.state, output.problem.reason, output.command.tolist()) == (State.FAULT, reason, safe)
    assert flight.step(Request.RESET).state == State.IDLE
    assert flight.activate().step().source == Source.POLICY


def _moved(flight: Flight, dt: int) -> dict[str, Any]:
    """Times of healthy inputs at the next step."""
    now = flight.time + dt
    return {"time": now, "stamps": [now] * 3, "command_stamp": now, "operator_stamp": now}


def test_stalled_control_thread_is_a_fault_at_its_first_step_after_the_deadline() -> None:
    for dt, state in ((DEADLINE, State.ACTIVE), (DEADLINE + 1, State.FAULT)):
        flight = Flight(inspector()).activate()
        assert flight.step(dt=dt).state == state


@pytest.mark.parametrize(
    ("error", "state"), [(0.009, State.ACTIVE), (-0.009, State.ACTIVE), (0.03, State.FAULT), (-0.03, State.FAULT)]
)
def test_control_rate_may_be_wrong_by_one_percent(error: float, state: State) -> None:
    flight = Flight(inspector()).activate()
    for _ in range(2000):
        flight.step(dt=round(PERIOD * (1 + error)))
    assert flight.gate.state == state
    if state == State.FAULT:
        assert flight.gate.problem.reason == (Reason.OVERRUN if error > 0 else Reason.TOO_FAST)


def test_one_step_in_a_hundred_may_be_missed() -> None:
    flight = Flight(inspector()).activate()
    for k in range(5000):
        flight.step(dt=2 * PERIOD if k % 100 == 0 else PERIOD)
    assert flight.gate.state == State.ACTIVE


@given(st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: np.linalg.norm(q) > 0.1), st.floats(0.96, 1.04))
def test_tilt_is_the_angle_between_body_z_and_world_z(q: tuple[float, ...], norm: float) -> None:
    flight = Flight(inspector())
    up = Rotation.from_quat(q).apply([0, 0, 1])[2]
    angle = math.acos(np.clip(up, -1, 1))
    unit = np.array(q) / np.linalg.norm(q) * norm
    if np.abs(unit).max() > 1.009 or abs(angle - 1.0) < 1e-5:
        return
    output = flight.step(Request.ARM, signals=np.array([*unit, 0.25, 0, 1.5], np.float32))
    assert output.problem.reason == (Reason.TILT if angle > 1.0 else Reason.NONE)


STEPS = st.lists(
    st.fixed_dictionaries(
        {
            "requests": st.sampled_from([0, 0, 0, 0, 1, 2, 2, 2, 4, 8, 16, 17, 31, 32]),
            "command": st.lists(st.floats(-3, 1100, width=32) | st.floats(-3, 3, width=32), min_size=6, max_size=6),
            "fallback": st.none() | st.lists(st.floats(-1, 3, width=32), min_size=6, max_size=6),
            "healthy": st.sampled_from([True, True, True, True, True, False]),
        }
    ),
    max_size=40,
)


def run(contract: Contract, steps: list[dict[str, Any]], active: bool) -> Iterator[tuple[Gate, Inputs, Gate, Output]]:
    flight = Flight(contract)
    if active:
        flight.activate()
    for change in steps:
        flight.time += PERIOD
        inputs = dataclasses.replace(
            flight.inputs(Request(change["requests"])),
            command=np.array(change["command"], np.float32),
            fallback=None if change["fallback"] is None else np.array(change["fallback"], np.float32),
        )
        if not change["healthy"]:
            inputs = dataclasses.replace(inputs, stamps=[NEVER] * 3)
        before = flight.gate
        flight.gate, output = step(flight.config, before, inputs)
        yield before, inputs, flight.gate, output


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["stop", "off", "hold", "controller"]), STEPS, st.booleans())
def test_whatever_happens_commands_keep_the_contracts_limits(on_fault: str, steps: list[Any], active: bool) -> None:
    contract = inspector(on_fault)
    for before, _, gate, output in run(contract, steps, active):
        low = [x for c in contract.commands for x in c.lower]
        high = [x for c in contract.commands for x in c.upper]
        assert (output.command >= low).all()
        assert (output.command <= high).all()
        if output.source not in (Source.SILENT, Source.SAFE) and before.reaction != Source.SILENT:
            change = np.abs(output.command[4:].astype(float) - before.command[4:])
            assert (change <= np.array([6.25, 3.125]) * 0.01 + 1e-6).all()
        np.testing.assert_array_equal(gate.command, output.command)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["stop", "off", "hold", "controller"]), STEPS, st.booleans())
def test_states_change_only_as_documented(on_fault: str, steps: list[Any], active: bool) -> None:
    ways = {
        (State.IDLE, State.READY),
        (State.READY, State.ACTIVE),
        (State.READY, State.IDLE),
        (State.ACTIVE, State.IDLE),
        (State.IDLE, State.FAULT),
        (State.READY, State.FAULT),
        (State.ACTIVE, State.FAULT),
        (State.FAULT, State.IDLE),
    }
    for before, inputs, gate, output in run(inspector(on_fault), steps, active):
        if before.state == gate.state:
            assert gate.state != State.FAULT or gate.problem == before.problem  # the first reason stays
            continue
        assert (before.state, gate.state) in ways
        needed = {State.READY: Request.ARM, State.ACTIVE: Request.ACTIVATE}.get(gate.state)
        if before.state == State.FAULT:
            needed = Request.RESET
        assert needed is None or inputs.requests & needed
        if gate.state == State.IDLE:
            assert output.source in (Source.SILENT, Source.SAFE if on_fault == "off" else Source.STOP)


@settings(max_examples=50, deadline=None)
@given(STEPS)
def test_step_changes_neither_gate_nor_inputs(steps: list[Any]) -> None:
    contract = inspector("controller")
    config = GateConfig.from_contract(contract)
    for before, inputs, _, output in run(contract, steps, True):
        kept = copy.deepcopy((before, inputs))
        _, again = step(config, before, inputs)
        np.testing.assert_array_equal(again.command, output.command)
        for now, then in zip((before, inputs), kept, strict=True):
            for field in dataclasses.fields(now):
                np.testing.assert_array_equal(getattr(now, field.name), getattr(then, field.name))


def test_start_pose_is_reached_at_the_slow_rate_from_the_measured_pose() -> None:
    flight = Flight(inspector())
    sent = [flight.step(Request.ARM, signals=np.array([0, 0, 0, 1, -1.0, 1.0, 1.5], np.float32)).command]
    while not (flight.gate.command == flight.config.start).all():
        sent.append(flight.step().command)
    poses = np.array(sent)
    slow = np.array([3.0, 5.0]) / SLOW_TIME * 0.01  # ranges of pitch and yaw, per step
    np.testing.assert_allclose(poses[0, 4:], [-1 + slow[0], 1 - slow[1]], rtol=1e-6)
    assert len(poses) == math.ceil(max(1.25 / slow[0], 1.0 / slow[1]))
    assert (poses[:, :4] == 0).all()  # motors idle


def test_hold_keeps_the_last_good_command() -> None:
    flight = Flight(inspector("hold")).activate()
    good = np.array([10, 20, 30, 40, 0.26, 0.01], np.float32)
    assert flight.step(command=good).source == Source.POLICY
    for _ in range(5):
        output = flight.step(command=np.full(6, np.nan, np.float32))
        assert output.source == Source.HOLD
        np.testing.assert_array_equal(output.command, good)


def test_a_ramp_begins_at_the_measured_value_and_reaches_the_safe_command_at_the_slow_rate() -> None:
    flight = Flight(inspector()).activate()
    far, rate = np.array([0, 0, 0, 1, 0.75, 0, 1.5], np.float32), 0.0625
    while flight.gate.state == State.ACTIVE:  # the policy pulls one way, and the gimbal is stuck on the other side
        flight.step(signals=_wobbling(flight, far), command=np.array([1000, 0, 1000, 0, -1.5, 0], np.float32))
    pulled = flight.gate.command[4]  # its rate was cut for too long
    sent = [flight.step(signals=_wobbling(flight, far)).command for _ in range(600)]
    assert all((command[:4] == 0).all() for command in sent)
    pitch = np.array([pulled, *(command[4] for command in sent)])
    assert np.abs(np.diff(pitch)).max() <= rate * (1 + 1e-6)
    peak = int(np.argmax(pitch))
    assert pitch[peak] == pytest.approx(0.7, abs=0.05)  # first it gives way to where the gimbal is, about
    slow = 3.0 / SLOW_TIME * 0.01
    np.testing.assert_allclose(np.diff(pitch[peak + 1 : peak + 100]), -slow, rtol=1e-3)
    assert pitch[-1] == 0.0


def _wobbling(flight: Flight, signals: np.ndarray) -> np.ndarray:
    return signals + np.float32(flight.time % 20_000 / 1e8) * np.array([0, 0, 0, 0, 1, 1, 0], np.float32)


def test_nothing_is_sent_before_the_first_arming_and_a_stop_for_ever_after_it() -> None:
    for name, stopped in (("off", Source.SAFE), ("stop", Source.STOP)):
        flight = Flight(inspector(name))
        for request in (Request.NONE, Request.STOP, Request.ARM, Request.RESET, Request.ACTIVATE, Request.DISARM):
            assert flight.step(request).source == Source.SILENT
        assert flight.activate().step(Request.DISARM).source == stopped
        for request in (Request.NONE, Request.STOP, Request.NONE, Request.RESET, Request.NONE):
            assert flight.step(request).source == stopped
        assert flight.activate().step(command=None).source == stopped
        assert flight.step(Request.RESET).source == stopped


def test_controller_flies_until_it_has_landed_and_never_again() -> None:
    flight = Flight(inspector("controller")).activate()
    landing = np.array([200, 200, 200, 200, 0.25, 0], np.float32)
    assert flight.step(bundle_intact=False, fallback=landing).source == Source.FALLBACK
    for _ in range(50):
        assert flight.step(bundle_intact=False, fallback=landing).command.tolist() == landing.tolist()
    assert flight.step(fallback=None).events & Event.FALLBACK_LOST
    output = flight.step(fallback=landing)
    assert (output.source, output.state) == (Source.STOP, State.FAULT)
    assert output.problem.reason == Reason.BUNDLE


def test_python_reproduces_every_vector() -> None:
    files = sorted(VECTORS.glob("*.json"))
    assert len(files) > 100
    for file in files:
        story = json.loads(file.read_text())
        contract = json.loads((VECTORS / story["configuration"]).read_text())["contract"]
        config = GateConfig.from_contract(Contract.from_json(json.dumps(contract)))
        gate = initial(config)
        for k, line in enumerate(story["steps"]):
            given, answer = line["given"], line["answer"]
            for name in ("signals", "command", "fallback"):
                given[name] = None if given[name] is None else np.array([float(x) for x in given[name]], np.float32)
            gate, out = step(config, gate, Inputs(**{**given, "requests": Request(given["requests"])}))
            found = (out.source, out.state, *dataclasses.astuple(out.problem), out.events)
            wanted = [answer[name] for name in ("source", "state", "reason", "channel", "element", "events")]
            assert (list(found), out.command.tolist()) == (wanted, answer["command"]), f"{file.name}, step {k}"


def test_vectors_are_what_their_script_writes() -> None:
    script = ROOT / "tests" / "vectors" / "make_gate_vectors.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_reason_has_a_vector_and_a_meaning() -> None:
    stories = [json.loads(file.read_text()) for file in VECTORS.glob("*.json")]
    met = {line["answer"]["reason"] for story in stories for line in story["steps"]}
    assert met == set(Reason) == set(MEANING)


def test_arrays_of_another_layout_are_refused() -> None:
    flight = Flight(inspector())
    with pytest.raises(ContractError, match=r"signals is float64\(7,\); expected float32\(7,\)"):
        flight.step(signals=np.zeros(7))
    with pytest.raises(ContractError, match=r"command is float32\(1,\); expected float32\(6,\)"):
        flight.step(command=np.zeros(1, np.float32))
    with pytest.raises(ContractError, match="stamps are 2; expected 3"):
        flight.step(stamps=[0, 0])


def test_the_gate_needs_numpy_alone() -> None:
    code = "import sys, robo_rl.controllers.gate.safety; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"numpy", "robo_rl", "robo_rl.controllers"} <= set(loaded)
    assert not {"torch", "mujoco", "onnxruntime", "scipy", "robo_rl.sim", "robo_rl.deploy"} & set(loaded)
