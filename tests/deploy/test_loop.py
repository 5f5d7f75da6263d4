"""The plain loop: whatever the policy, the driver or the user does, the robot is stopped from where it is."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from robo_rl.controllers.gate.codes import UNANSWERED, Reason, Request, Source, State
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.isolation import IsolatedGraph
from robo_rl.deploy.robot.loop import Loop, Step
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.zoo import located
from tests.suite import representatives

ROBOTS = {"quadrotor-hover": 100, "go2-flat": 50}
STOPPED = (Source.SAFE, Source.STOP, Source.FALLBACK)
PATIENCE = 0.3  # s of real time for a period of virtual time: the computer may be busy
FLOWN = 5  # steps of the policy before it misbehaves


class VirtualTime:
    """A clock for which a computer is never too slow."""

    def __init__(self) -> None:
        self.nanoseconds = 1_000_000_000

    def monotonic_ns(self) -> int:
        return self.nanoseconds

    def sleep(self, seconds: float) -> None:
        self.nanoseconds += round(seconds * 1e9)


class Robot:
    """A driver for a robot at rest whose joints go where they are told, and what it was told."""

    def __init__(self, policy: Policy) -> None:
        self.contract = policy.contract
        self.noise = np.random.default_rng(0)
        rest = {"joint_position": list(self.contract.commands[0].start or ()), "position": [0.0, 0.0, 0.5]}
        self.places = {
            s.name: np.array(rest.get(s.name, [0, 0, 0, 1] if s.kind == "quaternion" else [0.0] * s.size), float)
            for s in self.contract.signals
        }
        self.written: list[np.ndarray | None] = []
        self.broken: Exception | None = None

    def read(self, now: int) -> dict[str, tuple[np.ndarray, int]]:
        if self.broken is not None:
            raise self.broken
        return {name: (place + 1e-3 * self.noise.normal(size=place.size), now) for name, place in self.places.items()}

    def write(self, commands: Mapping[str, np.ndarray] | None, source: Source) -> None:
        self.written.append(None if commands is None else np.concatenate(list(commands.values())))


def endless() -> onnxruntime.InferenceSession:
    """A graph that never comes to its end; onnxruntime lets go of Python's lock while it runs."""
    names = [helper.make_tensor_value_info(n, TensorProto.BOOL, []) for n in ("go", "goes")]
    count = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    body = helper.make_graph([helper.make_node("Identity", ["go"], ["goes"])], "turn", [count, names[0]], [names[1]])
    loop = helper.make_node("Loop", ["", "always"], [], body=body)
    end = helper.make_node("Identity", ["always"], ["end"])
    given = helper.make_tensor_value_info("always", TensorProto.BOOL, [])
    graph = helper.make_graph(
        [loop, end], "endless", [given], [helper.make_tensor_value_info("end", TensorProto.BOOL, [])]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


class Misbehaving:
    """A policy that does something else than answering, from some step of its flight on."""

    def __init__(self, policy: Policy, how: str) -> None:
        self.policy, self.contract, self.how = policy, policy.contract, how
        self.flying = self.begun = False
        self.left, self.released = FLOWN, threading.Event()
        self.options = onnxruntime.RunOptions()
        self.reset = policy.reset

    def step(self, signals: Any, ages: Any = None) -> Any:
        self.left -= self.flying
        if self.left < 0:
            self.begun = True
            return getattr(self, self.how)(self.policy.step(signals, ages=ages))
        return self.policy.step(signals, ages=ages)

    def release(self) -> None:
        self.released.set()
        self.options.terminate = True

    def hangs(self, commands: Any) -> Any:
        self.released.wait()
        return commands

    def spins(self, commands: Any) -> Any:
        while not self.released.is_set():
            pass
        return commands

    def never_ends(self, commands: Any) -> Any:
        endless().run(None, {"always": np.array(True)}, self.options)

    def is_slow(self, commands: Any) -> Any:
        self.released.wait(10 * PATIENCE)
        return commands

    def fails(self, commands: Any) -> Any:
        raise RuntimeError("out of luck")

    def gives_nothing(self, commands: Any) -> Any:
        return None

    def gives_nan(self, commands: Any) -> Any:
        return {name: np.full_like(value, np.nan) for name, value in commands.items()}

    def changes_shape(self, commands: Any) -> Any:
        return {name: value[:-1] for name, value in commands.items()}

    def renames(self, commands: Any) -> Any:
        return {f"{name}s": value for name, value in commands.items()}


@pytest.fixture(params=ROBOTS)
def policy(request: pytest.FixtureRequest) -> Policy:
    return Policy.load(located(f"zoo:{request.param}"), ROBOTS[request.param])


def take_off(loop: Loop, steps: list[Step], enough: int) -> Callable[[Step], None]:
    """Arm, activate, and end the loop ``enough`` steps after a fault."""

    def note(step: Step) -> None:
        steps.append(step)
        if step.number == 3:
            loop.request(Request.ARM)
        elif loop.reserve.arrived:
            loop.request(Request.ACTIVATE)
        if sum(s.output.state == State.FAULT for s in steps) == enough:
            loop.end()

    return note


def pass_time(loop: Loop) -> None:
    """While the policy holds the loop's thread, nobody else moves virtual time."""
    if loop.watchdog.waited:
        loop.clock.sleep(1.0)


@pytest.fixture
def flown(policy: Policy) -> Iterator[Callable[[str], tuple[Loop, Robot, list[Step]]]]:
    """``flown(how)``: what came of a policy that misbehaves so."""
    wrong: list[Misbehaving] = []

    def fly(how: str) -> tuple[Loop, Robot, list[Step]]:
        wrong.append(Misbehaving(policy, how))
        robot, steps = Robot(policy), []
        loop = Loop(wrong[0], robot, clock=VirtualTime(), patience=PATIENCE)  # type: ignore[arg-type]
        note = take_off(loop, steps, 4)

        def watched(step: Step) -> None:
            pass_time(loop)
            wrong[0].flying = step.output.state == State.ACTIVE
            note(step)

        loop.note = watched
        loop.run(60.0)
        return loop, robot, steps

    yield fly
    for policy_ in wrong:
        policy_.release()


@pytest.mark.parametrize(
    "how",
    representatives(
        ["hangs", "spins", "never_ends", "is_slow", "fails", "gives_nothing", "gives_nan", "changes_shape", "renames"],
        ["hangs", "is_slow", "fails", "gives_nan"],
    ),
)
def test_a_misbehaving_policy_leads_to_a_stop_in_the_next_step(how: str, flown: Any, policy: Policy) -> None:
    _, robot, steps = flown(how)
    sources = [Source(step.output.source) for step in steps]
    last = max(k for k, source in enumerate(sources) if source == Source.POLICY)
    assert sources.count(Source.POLICY) == FLOWN + 1  # the step that activates is one
    assert all(source in STOPPED for source in sources[last + 1 :])  # the step that it spoilt is the stop
    reason = steps[last + 1].output.problem.reason
    assert reason in (*UNANSWERED, Reason.COMMAND_NOT_FINITE)
    if policy.contract.robot.kind == "legged":
        sent = np.array(robot.written[last + 1])
        assert np.abs(sent - robot.places["joint_position"]).max() < 0.05  # from where the joints are
    assert len(robot.written) == len(steps)


def test_nothing_is_sent_before_the_first_arming(policy: Policy) -> None:
    robot, steps = Robot(policy), []
    loop = Loop(policy, robot, clock=VirtualTime(), patience=PATIENCE)
    loop.note = take_off(loop, steps, 1)
    loop.run(2.0)
    armed = next(k for k, step in enumerate(steps) if step.output.state == State.READY)
    assert robot.written[:armed] == [None] * armed
    assert all(sent is not None for sent in robot.written[armed:])


def test_after_a_late_step_the_sentence_names_it_and_says_what_to_do(policy: Policy) -> None:
    steps: list[Step] = []
    loop = Loop(policy, Robot(policy), clock=VirtualTime(), patience=PATIENCE)
    note = take_off(loop, steps, 1)

    def watched(step: Step) -> None:
        note(step)
        if sum(step.output.source == Source.POLICY for step in steps) == FLOWN:
            loop.clock.sleep(1.0)  # as where the computer does something else

    loop.note = watched
    loop.run(10.0)
    fault = next(step for step in steps if step.output.state == State.FAULT)
    assert fault.output.problem.reason == Reason.OVERRUN
    assert re.search(rf"step {fault.number} began at [\d.]+ s, 10\d\d ms after the one before it", fault.sentence)
    assert "taskset" in fault.sentence


@pytest.mark.parametrize("broken", ["read", "write", "note", "end"])
def test_whatever_ends_the_loop_the_robot_is_stopped(broken: str, policy: Policy) -> None:
    robot, steps = Robot(policy), []
    loop = Loop(policy, robot, clock=VirtualTime(), patience=PATIENCE)
    note, write, failures = take_off(loop, steps, 10**9), robot.write, []

    def once(*_: Any) -> None:
        if broken != "end" and not failures and sum(step.output.source == Source.POLICY for step in steps) > FLOWN:
            failures.append(1)
            raise OSError("the cable is out")

    def watched(step: Step) -> None:
        note(step)
        if broken == "note":
            once()
        if broken == "read" and sum(step.output.source == Source.POLICY for step in steps) > FLOWN:
            robot.broken = OSError("the cable is out")

    def writing(commands: Any, source: Any) -> None:
        if broken == "write":
            once()
        write(commands, source)

    loop.note, robot.write = watched, writing  # type: ignore[method-assign]
    if broken == "end":
        assert loop.run(8.0) == 0
    else:
        with pytest.raises(OSError, match="the cable is out"):
            loop.run(60.0)
    first = next(k for k, step in enumerate(steps) if step.output.source == Source.POLICY)
    stops = [step.output for step in steps[first:] if step.output.source in STOPPED]
    assert stops[0].problem.reason == (Reason.NONE if broken == "end" else Reason.HALTED)  # a planned end is no fault
    assert stops[-1].source in (Source.SAFE, Source.STOP)
    if policy.contract.robot.kind == "multirotor":
        assert not robot.written[-1].any()
    elif broken != "read":
        assert np.abs(np.array(robot.written[-1]) - robot.places["joint_position"]).max() < 0.05
        stopping = [step.output.command for step in steps if step.output.source == Source.STOP]
        assert np.abs(np.array(stopping) - robot.places["joint_position"]).max() < 0.05


def test_a_stop_is_answered_while_the_policy_hangs(policy: Policy) -> None:
    wrong, steps = Misbehaving(policy, "hangs"), []
    wrong.flying, wrong.left = True, 1
    loop = Loop(wrong, Robot(policy), clock=VirtualTime(), patience=PATIENCE)  # type: ignore[arg-type]

    def note(step: Step) -> None:
        pass_time(loop)
        steps.append(step)
        if wrong.begun and not any(s.output.state == State.FAULT for s in steps):
            loop.request(Request.STOP)
        if step.output.state == State.FAULT:
            loop.end()

    loop.note = note
    loop.run(60.0)
    wrong.release()
    assert wrong.begun
    first = next(step.output for step in steps if step.output.state == State.FAULT)
    assert first.problem.reason == Reason.OPERATOR_STOP


SCRIPT = """
import sys, threading
from robo_rl.controllers.gate.codes import Request, Source, State
sys.path[:0] = [{tests!r}, {root!r}]
from test_loop import FLOWN, Misbehaving, Robot
from robo_rl.deploy.robot.loop import Loop
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.zoo import located
policy = Policy.load(located("zoo:quadrotor-hover"), 100)
wrong, robot = Misbehaving(policy, {how!r}), Robot(policy)
flying = []
def note(step):
    wrong.flying = step.output.state == State.ACTIVE
    if step.number == 3:
        loop.request(Request.ARM)
    elif loop.reserve.arrived:
        loop.request(Request.ACTIVATE)
    elif step.output.state == State.FAULT and not ({hangs} and wrong.begun):
        loop.request(Request.RESET)  # the computer is busy: once more
    elif step.output.state == State.IDLE and step.number > 3:
        loop.request(Request.ARM)
    if (step.output.source == Source.POLICY or {hangs} and wrong.begun) and not flying:
        flying.append(1)
        print("flying", flush=True)
loop = Loop(wrong, robot, note)
code = loop.run()
print("left", robot.written[-1].tolist(), flush=True)
import os
os._exit(code) if loop.stuck else sys.exit(code)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("hangs", [False, True])
def test_a_signal_ends_the_process_with_the_stop(number: int, hangs: bool, tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    how = "never_ends" if hangs else "hangs"
    here = Path(__file__)
    text = SCRIPT.format(tests=str(here.parent), root=str(here.parents[2]), how=how, hangs=hangs)
    script.write_text(text if hangs else text.replace("flying = []", "flying = []; wrong.left = 10 ** 9"))
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "flying"
    process.send_signal(number)
    rest = process.stdout.read()
    assert process.wait(timeout=60) in (0, 1)
    assert "left [0.0, 0.0, 0.0, 0.0]" in rest


# --- isolation ------------------------------------------------------------------------------------------------------

WORKER = """
import ctypes, os, signal, sys
import robo_rl.deploy.robot.isolation as isolation
isolation.PATIENCE = 0.3
class Graph(isolation.BoundGraph):
    def run(self, signals, state):
        Graph.count += 1
        if Graph.count > 12:
            {what}
        return super().run(signals, state)
Graph.count = 0
isolation.BoundGraph = Graph
isolation.main(sys.argv[1:])
"""
DEATHS = {
    "crashes": "os.kill(os.getpid(), signal.SIGSEGV)",
    "is killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "leaves": "os._exit(0)",
    "hangs in C with Python's lock": "ctypes.PyDLL(None).sleep(1000)",
    "spins": "exec('while True: pass')",
}


@pytest.mark.parametrize("what", DEATHS)
def test_an_isolated_graph_dies_alone(what: str, tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text(WORKER.format(what=DEATHS[what]))
    bundle = Bundle.read(located("zoo:quadrotor-hover"))
    graph = IsolatedGraph(bundle, [str(script)])
    robot, steps = Robot(Policy(bundle)), []
    loop = Loop(Policy(bundle, graph), robot, clock=VirtualTime(), patience=PATIENCE)
    loop.note = take_off(loop, steps, 40)
    assert loop.run(60.0) == 1
    faults = [step.output for step in steps if step.output.state == State.FAULT]
    assert faults[0].problem.reason in UNANSWERED
    assert any("the policy's process has ended" in s.sentence or "not answered" in s.sentence for s in steps)
    graph.close()


def test_an_isolated_graph_gives_the_same_bits(policy: Policy) -> None:
    isolated = Policy(policy.bundle, IsolatedGraph(policy.bundle))
    golden = policy.bundle.golden
    for k in range(len(golden)):
        signals = {name: value[k] for name, value in golden.signals.items()}
        ours, theirs = policy.step(signals), isolated.step(signals)
        for name in ours:
            np.testing.assert_array_equal(ours[name], theirs[name])
        np.testing.assert_array_equal(policy.state, isolated.state)
    isolated.close()


@pytest.mark.realtime
@pytest.mark.parametrize("how", ["hangs", "spins", "never_ends"])
def test_in_real_time_the_stop_comes_within_two_periods(how: str) -> None:
    policy = Policy.load(located("zoo:quadrotor-hover"), 100)
    wrong, robot, steps = Misbehaving(policy, how), Robot(policy), []
    loop, times = Loop(wrong, robot), []  # type: ignore[arg-type]
    note = take_off(loop, steps, 4)

    def watched(step: Step) -> None:
        wrong.flying = step.output.state == State.ACTIVE
        times.append(time.monotonic())
        note(step)

    loop.note = watched
    loop.run(30.0)
    wrong.release()
    last = max(k for k, step in enumerate(steps) if step.output.source == Source.POLICY)
    assert times[last + 1] - times[last] <= 3 * 0.01 + 5e-3  # it was asked a period after its last answer


class Hanging(Robot):
    """A driver one of whose calls does not return, and that has something that watches over the program."""

    def __init__(self, policy: Policy, call: str) -> None:
        super().__init__(policy)
        self.call, self.hangs, self.goes_on, self.abandoned = call, threading.Event(), threading.Event(), []

    def read(self, now: int) -> dict[str, tuple[np.ndarray, int]]:
        self._perhaps("read")
        return super().read(now)

    def write(self, commands: Mapping[str, np.ndarray] | None, source: Source) -> None:
        super().write(commands, source)
        self._perhaps("write")

    def _perhaps(self, call: str) -> None:
        if call == self.call and len(self.written) > FLOWN and not self.hangs.is_set():
            self.hangs.set()
            assert self.goes_on.wait(60)

    def abandon(self) -> None:
        self.abandoned.append(threading.current_thread().name)
        self.goes_on.set()


@pytest.mark.parametrize("call", ["read", "write"])
def test_a_stop_while_a_call_of_the_robot_hangs_sets_off_its_guard(policy: Policy, call: str) -> None:
    robot = Hanging(policy, call)
    loop = Loop(policy, robot, clock=VirtualTime(), patience=0.02)
    thread = threading.Thread(target=loop.run)
    thread.start()
    assert robot.hangs.wait(60)
    time.sleep(0.2)
    assert not robot.abandoned  # nobody has asked for a stop
    loop.request(Request.STOP)
    assert robot.goes_on.wait(60)
    loop.leave()
    thread.join(60)
    assert robot.abandoned == ["watchdog"]
