"""Slow sensors, ages and what drops out, on a device: what it commands is what the plain loop in Python commands.

On this computer, and on an emulated board, which needs the Arm compiler and QEMU:
apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm
"""

from __future__ import annotations

import dataclasses
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from onnx import helper

sys.path.append(str(Path(__file__).parents[1]))
from graphs import make_bundle, make_contract, position, target
from seeing import PROVENANCE, drawn_signals
from test_loop import PATIENCE, VirtualTime

from robo_rl.contract import Safety, Signal, StateBlock
from robo_rl.controllers.gate.codes import Event, Request, Source, State
from robo_rl.controllers.gate.held import Samples
from robo_rl.deploy.build.c.device import Answer, HostDevice, write_device
from robo_rl.deploy.build.c.device import Request as Parcel
from robo_rl.deploy.build.c.fuzzing import build as build_fuzzer
from robo_rl.deploy.build.c.fuzzing import run as run_fuzzer
from robo_rl.deploy.build.c.generate import Generated, generate
from robo_rl.deploy.build.c.host import host_flags
from robo_rl.deploy.build.export import write_bundle
from robo_rl.deploy.build.firmware.build import COMPILER, EMULATOR, INSTALL, build_device
from robo_rl.deploy.build.firmware.faults import FAULTS, try_faults
from robo_rl.deploy.build.firmware.loop import Devices, Loop, fly_devices
from robo_rl.deploy.build.firmware.rig import Board
from robo_rl.deploy.build.firmware.targets import TARGETS
from robo_rl.deploy.build.verify import PARITY_TOLERANCE
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.link import Decoder, LinkError, Type, encode
from robo_rl.deploy.robot.link.messages import AGE_NEVER, Commands, Fault, Sample
from robo_rl.deploy.robot.loop import Loop as PlainLoop
from robo_rl.deploy.robot.loop import Step
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.evaluate.evaluation import Conditions
from robo_rl.policy import PolicyGraph
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots import load_robot
from robo_rl.sim.tasks.multirotor.quadrotor import QuadrotorHover

missing = [tool for tool in (COMPILER, EMULATOR) if shutil.which(tool) is None]
on_a_board = [
    pytest.mark.firmware,
    pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not found, so nothing flew on a target; {INSTALL}"),
]
M4 = TARGETS["cortex-m4"]
STEPS = 40
SCAN_LATE, JOINTS_LATE = 55_000, 15_000  # µs: the time-out of the contract, and the period where there is one


# --- what a robot measures ----------------------------------------------------------------------------------------


class Measured(NamedTuple):
    """A measurement that is there by the step in which it is listed."""

    name: str
    value: Any
    ago: int
    """µs, from then."""


Story = Sequence[Sequence[Measured]]
"""What is measured, by step."""


def story(seed: int, lost: Mapping[str, range] | None = None, every: Mapping[str, int] | None = None) -> Story:
    """Joints at every step, a scan at every fourth and an object at every second, but not in the steps ``lost``."""
    draw, lost = np.random.default_rng(seed), lost or {}
    every = {"joint_position": 1, "scan": 4, "object": 2, **(every or {})}
    lower, upper = {"joint_position": -1.0, "scan": 0.0, "object": 0.5}, {"joint_position": 1, "scan": 10, "object": 4}
    size = {"joint_position": 3, "scan": 2, "object": 1}
    return [
        [
            Measured(n, tuple(draw.uniform(lower[n], upper[n], size[n]).tolist()), int(draw.integers(0, 3_000)))
            for n in every
            if k % every[n] == 0 and k not in lost.get(n, ())
        ]
        for k in range(STEPS)
    ]


REQUESTS = {0: Request.ARM, 2: Request.ACTIVATE}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """Commands are a sixteenth of beam, object and age, and of a memory of what was seen; all products are exact."""
    signals = [
        position(),
        Signal("scan", (), "m", "lidar", 0.0, 10.0, shape=(2,), period=0.04),
        Signal("object", ("x",), "m", "camera", (0.5,), (4.0,), period=0.02),
        Signal("object_age", ("age",), "s", "none", (0.0,), (0.05,), source="runtime", age_of="object"),
    ]
    state = [StateBlock("past", (3,), (0.0,) * 3)]
    contract = make_contract(signals, [target()], state, safety=Safety(JOINTS_LATE * 1e-6))
    nodes = [
        helper.make_node("Gather", ["scan", "first"], ["beam"], axis=1),
        helper.make_node("Concat", ["beam", "object", "object_age"], ["all"], axis=1),
        helper.make_node("Add", ["all", "joint_position"], ["now"]),
        helper.make_node("Mul", ["state", "half"], ["before"]),
        helper.make_node("Add", ["now", "before"], ["next_state"]),
        helper.make_node("Mul", ["next_state", "small"], ["joint_target"]),
    ]
    constants = {
        "first": np.array([0]), "half": np.array(0.5, np.float32), "small": np.array(0.03125, np.float32),
    }  # fmt: skip
    given = {
        "joint_position": np.zeros((2, 3)), "scan": np.ones((2, 2)), "object": np.ones((2, 1)),
        "object_age": np.zeros((2, 1)),
    }  # fmt: skip
    return make_bundle(tmp_path_factory.mktemp("slow"), contract, nodes, given, constants)


@pytest.fixture(scope="module")
def made(bundle: Bundle) -> Generated:
    return generate(bundle, bundle.path.parent / "c")


@pytest.fixture(params=["host", pytest.param("cortex-m4", marks=on_a_board)])
def device(request: pytest.FixtureRequest, made: Generated) -> Iterator[Devices]:
    """A device, freshly powered up."""
    if request.param == "host":
        yield HostDevice(made)
    else:
        with Board(build_device(made, M4, "rig"), M4, 3) as board:
            yield board


class Told:
    """A driver that reads a story, and what the plain loop made of it."""

    def __init__(self, story: Story) -> None:
        self.story, self.newest, self.samples = story, {}, []  # type: ignore[var-annotated]
        self.steps: list[Step] = []
        self.loop: Any = None

    def read(self, now: int) -> Samples:
        k = len(self.samples)
        for name, value, ago in self.story[k] if k < len(self.story) else ():
            self.newest[name] = (np.array(value, np.float32), now - ago)
        self.samples.append((now, dict(self.newest)))
        self.loop.request(REQUESTS.get(k, Request.NONE))
        return dict(self.newest)

    def write(self, commands: Any, source: Any) -> None:
        """Nothing moves."""


def plain(bundle: Bundle, told: Story) -> Told:
    """The plain loop, with onnxruntime, a step for every line of the story."""
    driver = Told(told)
    driver.loop = PlainLoop(Policy(bundle), driver, driver.steps.append, clock=VirtualTime(), patience=PATIENCE)
    driver.loop.run(0.01 * (len(told) + 5))
    return driver


def on_the_device(bundle: Bundle, devices: Devices, driver: Told) -> tuple[list[Commands], list[Fault]]:
    """What the device commands for the same samples at the same times, over the link."""
    times = [now for now, _ in driver.samples]
    loop = Loop(bundle.contract, devices, 1, time=times[0] - 10_000)
    loop.hello()
    commands = []
    for k, (now, samples) in enumerate(driver.samples[:STEPS]):
        loop.time = now
        commands += loop.tell([samples], REQUESTS.get(k, Request.NONE))
    return commands, loop.faults


def assert_same(bundle: Bundle, devices: Devices, told: Story, as_if: Story | None = None) -> list[Commands]:
    """Commands bit for bit, states and reasons of device and plain loop; returns the device's commands.

    ``as_if``: what the plain loop is told instead.
    """
    commands, faults = on_the_device(bundle, devices, plain(bundle, told))
    outputs = [step.output for step in plain(bundle, as_if or told).steps[:STEPS]]
    assert [(State(c.state), Source(c.source)) for c in commands] == [(o.state, o.source) for o in outputs]
    different = [k for k, (c, o) in enumerate(zip(commands, outputs, strict=True)) if (c.values != o.command).any()]
    assert different == []
    problems = [o.problem for o in outputs if o.events & Event.FAULTED]
    assert [(f.reason, f.channel, f.element) for f in faults] == [(p.reason, p.channel, p.element) for p in problems]
    return commands


def flew(commands: Sequence[Commands]) -> list[bool]:
    return [command.source == Source.POLICY for command in commands]


# --- the same as in Python ----------------------------------------------------------------------------------------


def test_slow_signals_are_held_and_their_ages_told(bundle: Bundle, device: Devices) -> None:
    commands = assert_same(bundle, device, story(0))
    assert flew(commands) == [k >= 2 for k in range(STEPS)]


def test_what_drops_out_grows_old_and_is_no_fault(bundle: Bundle, device: Devices) -> None:
    commands = assert_same(bundle, device, story(1, {"object": range(10, 30)}))
    assert all(flew(commands)[2:])


def test_what_was_never_there_is_zeros_within_its_limits(bundle: Bundle, device: Devices) -> None:
    commands = assert_same(bundle, device, story(2, {"object": range(STEPS)}))
    assert all(flew(commands)[2:])


@pytest.mark.parametrize(("name", "index", "allowed"), [("joint_position", 0, JOINTS_LATE), ("scan", 1, SCAN_LATE)])
def test_only_what_is_late_by_its_own_measure_is_a_fault(
    bundle: Bundle, device: Devices, name: str, index: int, allowed: int
) -> None:
    told = story(3, {name: range(21, STEPS)})
    commands = assert_same(bundle, device, told)
    last = max(k for k, measured in enumerate(told) if name in [m.name for m in measured])
    (ago,) = [m.ago for m in told[last] if m.name == name]
    ages = [ago + 10_000 * (k - last) for k in range(STEPS)]
    assert flew(commands) == [k >= 2 and ages[k] <= allowed for k in range(STEPS)]
    assert max(age for age in ages if age <= allowed) > allowed - 10_000
    assert index == [signal.name for signal in bundle.contract.signals].index(name)


def test_a_slow_signal_that_never_came_lets_nothing_begin(bundle: Bundle, device: Devices) -> None:
    commands = assert_same(bundle, device, story(4, {"scan": range(STEPS)}))
    assert {State(command.state) for command in commands} == {State.IDLE}


@pytest.mark.parametrize("seed", range(10, 12))
def test_random_measurements_give_the_same_commands(bundle: Bundle, device: Devices, seed: int) -> None:
    draw = np.random.default_rng(seed)
    lost = {"object": range(*sorted(draw.integers(0, STEPS, 2))), "scan": range(*sorted(draw.integers(15, STEPS, 2)))}
    every = {"scan": int(draw.integers(1, 6)), "object": int(draw.integers(1, 9))}
    assert_same(bundle, device, story(seed, lost, every))


def test_a_slow_measurement_out_of_its_range_is_a_fault(bundle: Bundle, device: Devices) -> None:
    told = [list(measured) for measured in story(5)]
    told[20] = [Measured("scan", (5.0, 11.0), 0), *(m for m in told[20] if m.name != "scan")]
    commands = assert_same(bundle, device, told)
    assert flew(commands) == [2 <= k < 20 for k in range(STEPS)]


# --- over the wire ------------------------------------------------------------------------------------------------


class Wire:
    """A device, and what happens to samples on the way to it."""

    def __init__(self, device: Devices, change: Any) -> None:
        self.device, self.change, self.count = device, change, 0
        self.bytes: list[int] = []

    def exchange(self, requests: Sequence[Parcel]) -> list[Answer]:
        changed = []
        for request in requests:
            frames = Decoder().feed(request.data)
            kept = [self.change(self.count, frame) if frame.type == Type.SAMPLE else frame for frame in frames]
            data = b"\0" + b"".join(encode(frame) for frame in kept if frame is not None)
            changed.append(Parcel(request.device, data, request.time))
            self.bytes.append(len(data))
        self.count += 1
        return self.device.exchange(changed)

    def restart(self) -> None:
        self.device.restart()


@pytest.mark.parametrize(("step", "borne"), [(22, True), (20, False)], ids=["object", "scan"])
def test_a_sample_that_the_wire_loses_is_as_if_it_was_not_measured(
    bundle: Bundle, device: Devices, step: int, borne: bool
) -> None:
    told = story(6)
    without = [[m for m in measured if m.name == "joint_position" or k != step] for k, measured in enumerate(told)]
    wire = Wire(device, lambda count, frame: None if count == step + 1 else frame)  # the first exchange is the hello
    assert all(flew(assert_same(bundle, wire, told, without))[2:]) == borne


def test_a_sample_of_unknown_age_is_none(bundle: Bundle, device: Devices) -> None:
    def undate(count: int, frame: Any) -> Any:
        sample = Sample.parse(frame.payload)
        bad = Sample(sample.time, AGE_NEVER, sample.index, np.full_like(sample.values, np.nan))
        return dataclasses.replace(frame, payload=bad.payload()) if 10 <= count < 12 else frame

    told = story(7, every={"scan": 1})
    commands, faults = on_the_device(bundle, Wire(device, undate), plain(bundle, told))
    assert all(flew(commands)[2:])
    assert faults == []


def test_slow_signals_take_the_wire_only_when_they_are_measured(bundle: Bundle, made: Generated) -> None:
    wire = Wire(HostDevice(made), lambda count, frame: frame)
    on_the_device(bundle, wire, plain(bundle, story(8)))
    scan, thing = 14 + 4 * 2 + 12, 14 + 4 + 12  # with the frame, its stuffing and its end
    step = wire.bytes[2]
    assert [size - step for size in wire.bytes[4:8]] == [0, scan + thing, 0, thing]


def test_a_device_that_starts_anew_is_sent_all_samples_again(bundle: Bundle, device: Devices) -> None:
    driver = plain(bundle, story(9))
    loop = Loop(bundle.contract, device, 1, time=driver.samples[0][0] - 10_000)
    loop.hello()
    asked = {0: Request.ARM, 1: Request.ACTIVATE, 4: Request.ARM, 5: Request.ACTIVATE}
    samples, measured, states = driver.samples[0][1], loop.time, []
    for k in range(6):
        if k == 2:
            measured = loop.time  # the scan, for the last time
        if k == 3:
            device.restart()
        newest = {name: (value, measured if name == "scan" else loop.time) for name, (value, _) in samples.items()}
        states += [State(command.state) for command in loop.tell([newest], asked.get(k, Request.NONE))]
    assert states == [State.READY, State.ACTIVE, State.ACTIVE, State.IDLE, State.READY, State.ACTIVE]


def test_an_image_is_held_too(tmp_path: Path) -> None:
    """Of 32 by 32 places and 25 Hz: more than a rig took at once."""
    depth = Signal("depth", (), "m", "camera", 0.0, 5.0, shape=(32, 32), period=0.04)
    contract = make_contract([position(), depth], [target()])
    nodes = [
        helper.make_node("Slice", ["depth", "from", "to", "axes"], ["corner"]),
        helper.make_node("Reshape", ["corner", "flat"], ["pixels"]),
        helper.make_node("Mul", ["pixels", "small"], ["seen"]),
        helper.make_node("Add", ["seen", "joint_position"], ["joint_target"]),
    ]
    constants = {
        "from": np.array([31, 29]), "to": np.array([32, 32]), "axes": np.array([1, 2]), "flat": np.array([-1, 3]),
        "small": np.array(0.125, np.float32),
    }  # fmt: skip
    given = {"joint_position": np.zeros((2, 3)), "depth": np.ones((2, 32, 32))}
    bundle = make_bundle(tmp_path, contract, nodes, given, constants)
    made, told = generate(bundle, tmp_path / "c"), image_story()
    assert all(flew(assert_same(bundle, HostDevice(made), told))[2:])
    if not missing:
        with Board(build_device(made, M4, "rig"), M4, 3) as board:
            assert all(flew(assert_same(bundle, board, told))[2:])


def image_story() -> Story:
    draw = np.random.default_rng(0)
    joints = [Measured("joint_position", tuple(draw.uniform(-0.3, 0.3, 3).tolist()), 0) for _ in range(STEPS)]
    images = [Measured("depth", draw.uniform(0, 5, (32, 32)).tolist(), 2_000) for _ in range(STEPS)]
    return [[joints[k], images[k]] if k % 4 == 0 else [joints[k]] for k in range(STEPS)]


# --- policies in flight -------------------------------------------------------------------------------------------

AGE = Signal("position_age", ("age",), "s", "none", (0.0,), (1.0,), source="runtime", age_of="position")
SLOW = {"position": 0.04, "linear_velocity": 0.02}


class SlowHover(QuadrotorHover):
    """Hovering by a 50 Hz velocity and a 25 Hz position that drops out now and then, and whose age is told."""

    def observe(self, signals: Mapping[str, Any], memory: Mapping[str, Any]) -> Any:
        return torch.cat([super().observe(signals, memory), signals["position_age"]], 1)


@pytest.fixture(scope="module")
def task() -> SlowHover:
    task = SlowHover(load_robot("crazyflie"))
    signals = [dataclasses.replace(s, period=SLOW.get(s.name)) for s in task.spec.signals]
    ranges = {**task.spec.ranges, "dropout/position": Range.fixed(0.3, 0.3)}
    task.spec = dataclasses.replace(task.spec, signals=(*signals, AGE), ranges=ranges)
    task.observation_size += 1
    return task


@pytest.fixture(scope="module")
def hover(task: SlowHover, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """An untrained policy that commands about what makes it hover."""
    torch.manual_seed(0)
    policy = PolicyGraph(task, (16,), "tanh", normalize=True).requires_grad_(False).eval()
    return write_bundle(policy, PROVENANCE, drawn_signals(policy, 64, 4), tmp_path_factory.mktemp("hover") / "p.onnx")


def test_flights_by_slow_signals_are_those_of_onnxruntime(task: SlowHover, hover: Bundle, tmp_path: Path) -> None:
    made, conditions = generate(hover, tmp_path), Conditions(episodes=3, seconds=1.0)
    flown = fly_devices(hover, HostDevice(made, 3), None, conditions, "flying", task)
    assert flown.steps > 100
    assert flown.faults == []
    assert flown.worst <= PARITY_TOLERANCE


@pytest.mark.firmware
@pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not found, so nothing flew on a target; {INSTALL}")
@pytest.mark.skipif(not host_flags(), reason="needs a processor with fused multiply-add: others round otherwise")
def test_a_board_flies_by_slow_signals_bit_for_bit_as_the_same_c_here(
    task: SlowHover, hover: Bundle, tmp_path: Path
) -> None:
    made, conditions = generate(hover, tmp_path), Conditions(episodes=2, seconds=1.0)
    with Board(build_device(made, M4, "rig", 2), M4, 4) as board:
        flown = fly_devices(hover, board, HostDevice(made, 2), conditions, "flying", task)
    assert flown.steps > 100
    assert (flown.different, flown.faults) == (0, [])


def test_faults_on_the_wire_end_as_promised_with_samples_too(hover: Bundle, tmp_path: Path) -> None:
    outcomes = try_faults(hover, HostDevice(generate(hover, tmp_path), len(FAULTS)))
    timeout = round(hover.contract.safety.signal_timeout * 1e6)
    assert [outcome for outcome in outcomes if not outcome.passed(timeout)] == []


@pytest.mark.slow
@pytest.mark.firmware
@pytest.mark.usefixtures("fuzzer")
def test_fuzzing_a_device_that_holds_samples_finds_nothing(bundle: Bundle, tmp_path: Path) -> None:
    assert run_fuzzer(build_fuzzer("device", bundle, tmp_path), seconds=2).inputs > 0


# --- what is refused ----------------------------------------------------------------------------------------------


def test_signals_that_no_frame_can_hold_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    depth = Signal("depth", (), "m", "camera", 0.0, 5.0, shape=(128, 130))
    nodes = [helper.make_node("Identity", ["joint_position"], ["joint_target"])]
    given = {"joint_position": np.zeros((1, 3)), "depth": np.zeros((1, 128, 130))}
    for period, sentence in (
        (0.1, "signal 'depth' has 16640 numbers; a frame holds at most 16380"),
        (None, "signals that come at every step have 16643 numbers, of which 'depth' has 16640; a frame holds at most"),
    ):
        contract = make_contract([position(), dataclasses.replace(depth, period=period)], [target()])
        folder = tmp_path / str(period)
        folder.mkdir()
        made = generate(make_bundle(folder, contract, nodes, given), folder / "c")
        with pytest.raises(LinkError, match=sentence):
            write_device(made)
        assert not (made.folder / "device.c").exists()
