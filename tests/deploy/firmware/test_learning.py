"""A microcontroller that learns: its power fails and its flash is damaged; what it says and gives over the link."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import shutil
import subprocess
import threading
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
import torch

from robo_rl.commands.running import link as link_command
from robo_rl.contract import Network, Provenance
from robo_rl.controllers.gate.codes import Request as GateRequest
from robo_rl.controllers.gate.codes import State
from robo_rl.deploy.build import learning as build
from robo_rl.deploy.build.c.device import Answer, HostDevice, Request
from robo_rl.deploy.build.c.generate import Generated, Options, generate
from robo_rl.deploy.build.c.learning import Learning
from robo_rl.deploy.build.export import export
from robo_rl.deploy.build.firmware.build import COMPILER, EMULATOR, INSTALL, build_device, build_power
from robo_rl.deploy.build.firmware.emulate import power
from robo_rl.deploy.build.firmware.emulator import Emulator
from robo_rl.deploy.build.firmware.loop import fly_devices
from robo_rl.deploy.build.firmware.package import package
from robo_rl.deploy.build.firmware.targets import TARGETS
from robo_rl.deploy.build.learning import learning_of, weights_of
from robo_rl.deploy.build.verify import task_of
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.link import Layout, LinkError, encode
from robo_rl.deploy.robot.link.messages import Ask, Hello, Role, Signals, frame_of
from robo_rl.deploy.robot.link.port import Link
from robo_rl.deploy.robot.link.pulling import pulled
from robo_rl.evaluate.evaluation import Conditions
from robo_rl.learn.factory import graph_of
from robo_rl.learn.stream import StreamConfig
from robo_rl.sim.tasks.loading import load_task

M4 = TARGETS["cortex-m4"]
AT_ONCE = StreamConfig(gamma=0.9, lam=0.8, deviation=0.1, bound=0.05, block=2, warm_up=1, worse=1e9, seed=3)
"""Learning begins within a few steps of power-up."""
emulated = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in (COMPILER, EMULATOR)), reason=f"no emulator; {INSTALL}"
)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    torch.manual_seed(0)
    policy = graph_of(load_task("pmsm-speed"), Network((12, 12), "tanh", False)).requires_grad_(False)
    policy.network[-1].bias.uniform_(-0.1, 0.1)
    return export(policy, Provenance("none", 0, 0, ""), tmp_path_factory.mktemp("power") / "motor.onnx")


@pytest.fixture(scope="module")
def learning(bundle: Bundle) -> Learning:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "STEPS", 150)
        patch.setattr(build, "ROUNDS", 20)
        return learning_of(bundle, task_of(bundle), AT_ONCE)


@pytest.fixture(scope="module")
def made(bundle: Bundle, learning: Learning, tmp_path_factory: pytest.TempPathFactory) -> Generated:
    return generate(bundle, tmp_path_factory.mktemp("learner"), Options(learning=learning))


@emulated
def test_after_any_reset_and_with_damaged_flash_the_weights_are_the_last_good_or_the_exported_ones(
    made: Generated,
) -> None:
    found = power(build_power(made, M4, trials=150), M4)
    assert (found["trials"], found["wrong"]) == (150, 0)
    assert min(found["newest"], found["older"], found["exported"], found["writes_cut"]) >= 10, found


@emulated
def test_an_emulated_board_tells_its_weights_at_rest(bundle: Bundle, made: Generated, learning: Learning) -> None:
    with Emulator(build_device(made, M4, "serial"), M4, serial=True) as board:
        slot = pulled(Link(board.wire, bundle.contract, Role.HOST))
    sequence, weights = weights_of(slot, bundle)
    assert (sequence, weights.tobytes()) == (1, learning.start.actor.tobytes())


@contextmanager
def plugged_in(made: Generated) -> Iterator[Path]:
    """A device of the same C on this computer, behind a serial port: its path."""
    device, begun, off = HostDevice(made), time.monotonic(), threading.Event()
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    os.set_blocking(ours, False)

    def live() -> None:
        while not off.wait(0.002):
            data = b""
            with suppress(BlockingIOError):
                data = os.read(ours, 4096)
            (answer,) = device.exchange([Request(0, data, round((time.monotonic() - begun) * 1e6))])
            with suppress(BlockingIOError):
                os.write(ours, answer.said)

    thread = threading.Thread(target=live)
    thread.start()
    try:
        yield Path(os.ttyname(theirs))
    finally:
        off.set()
        thread.join()
        os.close(ours)
        os.close(theirs)


def test_the_link_shows_how_learning_goes(bundle: Bundle, made: Generated, capsys: pytest.CaptureFixture[str]) -> None:
    with plugged_in(made) as port:
        assert link_command.main("show", port, bundle.path, seconds=1.0, json=True) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["device"]["control_period_us"] == 1000
    assert told["progress"] is not None, "one in a hundred steps"
    assert (told["progress"]["steps"], told["progress"]["off"]) == (0, 0), "nothing is learnt before it is activated"


@pytest.mark.release
def test_a_policy_file_is_made_of_what_the_link_tells(
    bundle: Bundle, made: Generated, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "learnt.onnx"
    with plugged_in(made) as port:
        code = link_command.main("pull-weights", port, bundle.path, out=out, episodes=100, json=True)
    assert code == 0, capsys.readouterr().out
    assert Bundle.read(out).contract.provenance.algorithm == "none-stream"


MAIN = """
#include <stdio.h>

#include "policy_learn.h"
#include "policy_onboard.h"

static policy_onboard robot;
static policy_arena arena;
static unsigned step;

static void run(unsigned steps, uint8_t request)
{
    for (unsigned i = 0; i < steps; i++) {
        const int64_t now = 1000 * (int64_t)step;
        robot.signals = policy_recorded_signals[step++ % POLICY_GOLDEN_STEPS];
        int64_t *const stamps = (int64_t *)(void *)&robot.stamps;
        for (size_t k = 0; k < sizeof robot.stamps / sizeof(int64_t); k++) {
            stamps[k] = now;
        }
        robot.operator_stamp = now;
        policy_onboard_step(&robot, now, i == 0u ? request : GATE_REQUEST_NONE);
    }
    policy_learn_progress seen;
    policy_learn_progress_now(&seen);
    printf("%d %u\\n", robot.gate.state, (unsigned)seen.steps);
}

int main(void)
{
    policy_onboard_start(&robot, &arena);
    run(5u, GATE_REQUEST_ARM);
    run(30u, GATE_REQUEST_ACTIVATE);
    run(20u, GATE_REQUEST_STOP);
    return 0;
}
"""


def test_a_package_of_a_learner_learns_while_its_gate_is_active_and_not_before_or_after(
    bundle: Bundle, learning: Learning, tmp_path: Path
) -> None:
    made = package(bundle, tmp_path, "cmake", Options(learning=learning))
    assert "src/policy_learn.c" in (tmp_path / "CMakeLists.txt").read_text()
    (tmp_path / "main.c").write_text(MAIN)
    sources = [*map(str, sorted(made.folder.glob("*.c"))), str(tmp_path / "main.c")]
    program, flags = str(tmp_path / "program"), ["-std=c99", "-Wall", "-Werror", f"-I{made.folder}"]
    subprocess.run(["gcc", *flags, *sources, "-lm", "-o", program], check=True)
    told = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split("\n")[:3]
    ready, active, stopped = ([int(word) for word in line.split()] for line in told)
    assert ready == [State.READY, 0]
    assert active[0] == State.ACTIVE
    assert 20 <= active[1] <= 30
    assert stopped[0] == State.FAULT
    assert stopped[1] <= active[1] + 1


def test_firmware_that_does_not_learn_gives_no_weights(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("robo_rl.deploy.robot.link.pulling.PATIENCE", 0.5)
    with plugged_in(generate(bundle, tmp_path)) as port, pytest.raises(LinkError, match="firmware made with --learn"):
        pulled(Link.open(port, bundle.contract))


@pytest.mark.parametrize(("task", "released"), [("pmsm-current", True), ("pmsm-speed", False), ("bldc-speed", True)])
def test_a_motor_whose_windings_0_v_would_short_is_switched_off_in_a_stop(
    task: str, released: bool, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    policy = graph_of(load_task(task), Network((12, 12), "tanh", False)).requires_grad_(False)
    found = export(policy, Provenance("none", 0, 0, ""), tmp_path / "motor.onnx")
    device = HostDevice(generate(found, tmp_path / "c"))
    assert [outcome.enabled for outcome in stopped(found, device)] == [True, not released]


def stopped(bundle: Bundle, device: HostDevice) -> list[Answer]:
    """What a device does while its policy is active, and when the operator has stopped it."""
    contract = bundle.contract
    period, layout = round(contract.control_period * 1e6), Layout.of(contract)
    values = np.concatenate([bundle.golden.signals[s.name][0].ravel() for s in contract.signals])
    greeting = Hello(Role.HOST, True, layout.signal_size, layout.command_size, period, 0, layout.digest)
    asked = {1: Ask(GateRequest.ARM), 2: Ask(GateRequest.ACTIVATE), 6: Ask(GateRequest.STOP)}
    answers, sequence, now = [], 1, period
    device.exchange([Request(0, encode(frame_of(greeting, 0)), now)])
    for step in range(9):
        now += period
        moved = values + np.float32(1e-3 * step)  # a signal that stands still is frozen
        signals = Signals(now, 0, (0,) * layout.signal_count, moved.astype(np.float32))
        for message in (*([asked[step]] if step in asked else []), signals):
            (answer,) = device.exchange([Request(0, encode(frame_of(message, sequence)), now)])
            sequence += 1
        answers.append(answer)
    return [answers[5], answers[8]]


def learnt_steps(bundle: Bundle, learning: Learning, folder: Path) -> int:
    """Steps in which learning was allowed, of one simulated episode through link and gate."""
    device = HostDevice(generate(bundle, folder, Options(learning=learning)))
    flown = fly_devices(bundle, device, None, Conditions(episodes=1, seconds=0.1), "running")
    assert flown.steps >= 100
    progress = np.zeros(7, np.uint32)
    ctypes.CDLL(str(folder / "libdevice.so")).policy_learn_progress_now(progress.ctypes)
    return int(progress[0])


def test_a_step_whose_command_the_gate_changes_is_not_learnt_from(
    bundle: Bundle, learning: Learning, tmp_path: Path
) -> None:
    """Its reward says nothing of the action that the policy took."""
    (command,) = bundle.contract.commands
    slow = dataclasses.replace(command, rate=(1.0,))  # A/s: the policy changes it by more in every step
    contract = dataclasses.replace(bundle.contract, commands=(slow,))
    assert learnt_steps(bundle, learning, tmp_path / "free") >= 80
    assert learnt_steps(dataclasses.replace(bundle, contract=contract), learning, tmp_path / "cut") <= 20
