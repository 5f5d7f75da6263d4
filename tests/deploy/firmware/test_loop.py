"""Processor in the loop: emulated boards fly the simulated task over their links.

Need the Arm compiler and QEMU: apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm
"""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from robo_rl.controllers.gate.codes import Request, Source, State
from robo_rl.deploy.build.c.budget import recorded_samples
from robo_rl.deploy.build.c.device import HostDevice
from robo_rl.deploy.build.c.device import Request as Parcel
from robo_rl.deploy.build.c.generate import Generated, Options, generate
from robo_rl.deploy.build.c.host import compile_host, host_flags
from robo_rl.deploy.build.firmware.build import COMPILER, EMULATOR, INSTALL, build_device, build_replay
from robo_rl.deploy.build.firmware.emulate import EmulationError
from robo_rl.deploy.build.firmware.emulator import Emulator
from robo_rl.deploy.build.firmware.faults import FAULTS, table, try_faults
from robo_rl.deploy.build.firmware.loop import APART, Loop, fly_devices
from robo_rl.deploy.build.firmware.parity import parity, recorded_flights
from robo_rl.deploy.build.firmware.rig import Board, Boards
from robo_rl.deploy.build.firmware.targets import TARGETS
from robo_rl.deploy.build.pack import pack
from robo_rl.deploy.build.verify import PARITY_TOLERANCE, task_of
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.link.messages import Ask, Commands, Hello, Role, Signals
from robo_rl.deploy.robot.link.port import Link
from robo_rl.evaluate.evaluation import Conditions
from tests.suite import representatives

missing = [tool for tool in (COMPILER, EMULATOR) if shutil.which(tool) is None]
pytestmark = [
    pytest.mark.firmware,
    pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not found, so nothing flew on a target; {INSTALL}"),
]
needs_fma = pytest.mark.skipif(
    not host_flags(),
    reason="needs a processor with fused multiply-add (x86-64-v3, arm64): others round otherwise",
)
M4 = TARGETS["cortex-m4"]
COMMANDS = 4


@pytest.fixture(scope="module")
def bundle(bundle_file: Path) -> Bundle:
    return Bundle.read(bundle_file)


@pytest.fixture(scope="module")
def made(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Generated:
    return generate(bundle, tmp_path_factory.mktemp("loop"))


@pytest.fixture
def board(made: Generated) -> Iterator[Board]:
    """A Cortex-M4F with as many devices as there are faults, freshly powered up."""
    with Board(build_device(made, M4, "rig", len(FAULTS)), M4, COMMANDS) as on:
        yield on


@needs_fma
def test_hover_flights_survive_and_every_byte_is_that_of_the_same_c_here(
    bundle: Bundle, made: Generated, board: Board
) -> None:
    flown = fly_devices(bundle, board, HostDevice(made, 2), Conditions(episodes=2), "flying")
    assert flown.flights["success"] == 1.0
    assert (flown.steps, flown.different) == (1000, 0)
    assert flown.worst <= PARITY_TOLERANCE


@needs_fma
def test_boards_side_by_side_are_one_with_all_their_devices(bundle: Bundle, made: Generated) -> None:
    image, conditions = build_device(made, M4, "rig", 2), Conditions(episodes=3, seconds=0.1)
    with Boards([lambda: Board(image, M4, COMMANDS)] * 2, 2) as boards:
        flown = fly_devices(bundle, boards, HostDevice(made, 3), conditions, "flying")
        boards.restart()
        again = fly_devices(bundle, boards, HostDevice(made, 3), conditions, "flying")
    assert (flown.steps, flown.different) == (30, 0)
    assert again == flown


@needs_fma
@pytest.mark.parametrize("name", representatives(["cortex-m7", "cortex-m33", "cortex-m55"], ["cortex-m7"]))
def test_other_boards_fly_too(bundle: Bundle, made: Generated, name: str) -> None:
    target = TARGETS[name]
    with Board(build_device(made, target, "rig"), target, COMMANDS) as board:
        flown = fly_devices(bundle, board, HostDevice(made), Conditions(episodes=1, seconds=1.2), "flying")
    assert flown.flights["success"] == 1.0
    assert flown.different == 0


def test_faults_on_the_wire_end_as_the_document_tells(bundle: Bundle, board: Board) -> None:
    timeout = round(bundle.contract.safety.signal_timeout * 1e6)
    outcomes = try_faults(bundle, board)
    assert [outcome.fault.name for outcome in outcomes if not outcome.passed(timeout)] == []
    document = (Path(__file__).parents[3] / "docs" / "firmware.md").read_text()
    assert table(outcomes) in document


def test_a_reset_of_the_processor_stops_the_motors_until_it_is_armed_again(bundle: Bundle, board: Board) -> None:
    rows = np.concatenate([bundle.golden.signals[signal.name] for signal in bundle.contract.signals], axis=1)
    moments = iter(rows[:, None])
    loop = Loop(bundle.contract, board, 1)
    loop.hello()
    requests = [Request.ARM, Request.ACTIVATE, Request.NONE]
    (commands,) = [loop.step(next(moments), request) for request in requests][-1]
    assert (commands.state, commands.source) == (State.ACTIVE, Source.POLICY)
    board.restart()
    (answer,) = board.exchange([Parcel(0, b"", APART + loop.time)])
    assert not answer.motors.any()
    loop.mailboxes[0].incoming += answer.said
    assert Hello in [type(message) for _, message in loop.links[0].receive(loop.time)]
    (commands,) = loop.step(next(moments))
    assert (commands.state, commands.source) == (State.IDLE, Source.SILENT)
    (commands,) = [loop.step(next(moments), request) for request in requests][-1]
    assert commands.state == State.ACTIVE


def test_dead_mans_switch_runs_on_the_boards_own_clock(bundle: Bundle, tmp_path: Path) -> None:
    """No rig: the board's timer is the clock, in real time. Then the wire falls silent."""
    safety = dataclasses.replace(bundle.contract.safety, signal_timeout=0.3)
    slow = dataclasses.replace(bundle.contract, safety=safety)
    patient = pack(onnx.load(str(bundle.path)), slow, bundle.golden.signals, tmp_path / "patient.onnx")
    image, timeout = build_device(generate(patient, tmp_path / "c"), M4, "serial"), 300_000
    for _ in range(5):
        answered, commands = _activate_and_fall_silent(patient, image)
        if answered is not None:
            break
    assert answered is not None, "the computer was too busy to fly in real time, five times"
    late = [command for command in commands if command.time > answered + timeout]
    assert late
    assert all(command.source == Source.SAFE and not command.values.any() for command in late)
    assert any(command.source == Source.POLICY for command in commands if command.time <= answered + timeout)


def _activate_and_fall_silent(bundle: Bundle, image: Path) -> tuple[int | None, list[Commands]]:
    """When (the board's time) the last signals were answered, and all commands since; None if it did not get there."""
    with Emulator(image, M4, serial=True) as board:
        link, heard = Link(board.wire, bundle.contract, Role.HOST), []

        def listen(enough: float = 60.0) -> Commands | None:
            deadline = time.monotonic() + enough
            while time.monotonic() < deadline:
                board.wire.wait()
                found = [message for _, message in link.receive(0) if isinstance(message, Commands)]
                heard.extend(found)
                if found:
                    return found[-1]
            return None

        link.hello(0)
        sent, state = -1, State.IDLE
        for k in range(300):
            command = listen()
            if command is None or command.state == State.FAULT:
                return None, heard
            state = State(command.state)
            if state == State.ACTIVE and command.answers == sent:
                break
            signals = [bundle.golden.signals[signal.name][k % 64] for signal in bundle.contract.signals]
            request = {State.IDLE: Request.ARM, State.READY: Request.ACTIVATE}.get(state)
            if request:
                link.send(Ask(request))
            ages = (0,) * len(bundle.contract.signals)
            sent = link.send(Signals(command.time, 0, ages, np.concatenate(signals)))
        answered = next((c.time for c in heard if c.answers == sent and c.state == State.ACTIVE), None)
        while answered is not None and heard[-1].time < answered + 400_000:
            listen()
        return answered, heard


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "allowed"), [("float32", PARITY_TOLERANCE), ("int16", 1e-2), ("int8", 0.2)])
def test_target_equals_onnxruntime_over_ten_thousand_recorded_steps(
    bundle: Bundle, precision: str, allowed: float, tmp_path: Path
) -> None:
    samples = recorded_samples(bundle, task_of(bundle.contract)) if precision != "float32" else None
    options = Options(precision=precision, samples=samples, tolerance=0.1)  # type: ignore[arg-type]
    made = generate(bundle, tmp_path, options)
    found = parity(bundle, compile_host(made), build_replay(made, M4), M4, recorded_flights(bundle, 20))
    assert found.steps == 10_000
    assert found.target <= allowed
    assert found.host <= allowed
    assert found.identical or not host_flags()


def test_an_image_that_ends_is_told_and_not_waited_for(made: Generated) -> None:
    image = build_device(made, M4, "rig")
    broken = image.with_name("broken.elf")
    broken.write_bytes(bytes(100))  # no stack, no code: the processor locks up
    with pytest.raises(EmulationError, match=r"broken\.elf on mps2-an386 has ended, with exit code"):
        Board(broken, M4, COMMANDS)


def test_command_flies_and_tries_faults(bundle_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    from robo_rl.commands.exporting.firmware import main

    assert main(bundle_file, "cortex-m4", fly=1, faults=True, out=tmp_path, json=True) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["passed"]
    assert figures["loop"]["steps"] == 500
    assert figures["loop"]["flights"]["success"] == 1.0
    assert figures["loop"]["max_abs_error"] <= PARITY_TOLERANCE
    assert len(figures["wire_faults"]["outcomes"]) == len(FAULTS)
    assert not figures["wire_faults"]["failed"]


def test_the_document_names_every_fault() -> None:
    document = (Path(__file__).parents[3] / "docs" / "firmware.md").read_text()
    rows = re.findall(r"^\| (.+?) \| (?:stops after|continues)", document, re.MULTILINE)
    assert rows == [fault.name for fault in FAULTS]
