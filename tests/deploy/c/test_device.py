"""The device: link, policy and gate as one piece of C, compiled for this computer."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from robo_rl.controllers.gate.codes import Event, Reason, Request, State
from robo_rl.deploy.build.c.device import HostDevice, write_device
from robo_rl.deploy.build.c.device import Request as Parcel
from robo_rl.deploy.build.c.fuzzing import SOURCES, build, run
from robo_rl.deploy.build.c.generate import Generated, generate
from robo_rl.deploy.build.c.host import STRICT
from robo_rl.deploy.build.firmware.faults import FAULTS, hello, try_faults
from robo_rl.deploy.build.firmware.loop import APART, LATENCY, Loop, fly_devices
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.link import Decoder, Layout, encode
from robo_rl.deploy.robot.link.messages import (
    Ask,
    Commands,
    Fault,
    Hello,
    Message,
    Refusal,
    Signals,
    Statistics,
    frame_of,
    parse,
)
from robo_rl.evaluate.evaluation import Conditions
from tests.suite import representatives

ROOT = Path(__file__).parents[3]
SECOND = 1_000_000  # µs


@pytest.fixture(scope="module")
def bundle(bundle_file: Path) -> Bundle:
    return Bundle.read(bundle_file)


@pytest.fixture(scope="module")
def made(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Generated:
    return generate(bundle, tmp_path_factory.mktemp("device"))


def recorded(bundle: Bundle, k: int) -> np.ndarray:
    return np.concatenate([bundle.golden.signals[signal.name][k] for signal in bundle.contract.signals])


def heard(bundle: Bundle, said: bytes) -> list[Message]:
    layout = Layout.of(bundle.contract)
    return [parse(frame, layout) for frame in Decoder().feed(said)]


def test_device_flies_like_onnxruntime_in_closed_loop(bundle: Bundle, made: Generated) -> None:
    flown = fly_devices(bundle, HostDevice(made, 4), None, Conditions(episodes=4), "flying")
    assert flown.flights["success"] == 1.0
    assert flown.steps == 4 * 500
    assert flown.worst <= 1e-5
    assert not flown.faults


def test_every_fault_on_the_wire_is_borne_or_ends_in_the_safe_command_in_time(bundle: Bundle, made: Generated) -> None:
    timeout = round(bundle.contract.safety.signal_timeout * SECOND)
    outcomes = try_faults(bundle, HostDevice(made, len(FAULTS)))
    assert [outcome.fault.name for outcome in outcomes if not outcome.passed(timeout)] == []
    assert len({outcome.fault.name for outcome in outcomes}) == len(FAULTS) >= 20


def test_a_device_whose_self_test_fails_does_not_arm(bundle: Bundle, made: Generated, tmp_path: Path) -> None:
    shutil.copytree(made.folder, tmp_path, dirs_exist_ok=True)
    source = tmp_path / "policy.c"
    text, changes = re.subn(r"(weights0\[\d+\] = \{\s+)[^,]+,", r"\g<1>2.0f,", source.read_text())
    assert changes == 1
    source.write_text(text)
    loop = Loop(bundle.contract, HostDevice(dataclasses.replace(made, folder=tmp_path)), 1)
    loop.hello()
    (commands,) = loop.step(recorded(bundle, 0)[None], Request.ARM)
    assert commands.state == State.IDLE
    (commands,) = loop.step(recorded(bundle, 1)[None], Request.ACTIVATE)
    assert commands.state == State.IDLE
    assert not commands.values.any()


def test_why_a_device_does_not_arm_is_told(bundle: Bundle, made: Generated) -> None:
    device, contract = HostDevice(made), bundle.contract
    values = recorded(bundle, 0)
    values[0] = np.nan
    signals = Signals(20_000, 0, (0,) * len(contract.signals), values)
    data = hello(contract, 0) + encode(frame_of(Ask(Request.ARM), 1)) + encode(frame_of(signals, 2))
    (answer,) = device.exchange([Parcel(0, data, 20_000)])
    (fault,) = [message for message in heard(bundle, answer.said) if isinstance(message, Fault)]
    assert (fault.events, fault.reason, fault.channel, fault.element) == (
        Event.REFUSED, Reason.SIGNAL_NOT_FINITE, 0, 0,
    )  # fmt: skip


def test_device_says_hello_until_it_is_answered(bundle: Bundle, made: Generated) -> None:
    device, period = HostDevice(made), round(bundle.contract.control_period * SECOND)
    answers = device.exchange([Parcel(0, b"", k * period) for k in range(301)])
    hellos = [m for answer in answers for m in heard(bundle, answer.said) if isinstance(m, Hello)]
    assert 3 <= len(hellos) <= 4  # at power-up, and every hundred steps
    assert all(message.answer and message.digest.hex() == bundle.contract.digest for message in hellos)
    answers = device.exchange(
        [Parcel(0, hello(bundle.contract, 0) if k == 301 else b"", k * period) for k in range(301, 520)]
    )
    assert [m.answer for a in answers for m in heard(bundle, a.said) if isinstance(m, Hello)] == [False]


def test_another_contract_is_refused_with_the_own_digest(bundle: Bundle, made: Generated) -> None:
    wrong = dataclasses.replace(bundle.contract, task="another")
    (answer,) = HostDevice(made).exchange([Parcel(0, hello(wrong, 0), 0)])
    (refusal,) = [message for message in heard(bundle, answer.said) if isinstance(message, Refusal)]
    assert refusal.digest.hex() == bundle.contract.digest


def test_steps_nearly_keep_their_rate_when_signals_do_not(bundle: Bundle, made: Generated) -> None:
    """Signals at random times, half as many again as they should be: nearly as many steps as control periods."""
    contract, draw = bundle.contract, np.random.default_rng(0)
    period, device = round(contract.control_period * SECOND), HostDevice(made)
    times = np.sort(draw.integers(1, 200 * period, 300))
    parcels = {int(k) * 500: b"" for k in range(400 * period // 1000)} | {0: hello(contract, 0)}
    for i, time in enumerate(times):
        signals = Signals(int(time), 0, (0,) * len(contract.signals), recorded(bundle, i % 64))
        parcels[int(time)] = parcels.get(int(time), b"") + encode(frame_of(signals, i + 1))
    answers = device.exchange([Parcel(0, parcels[time], time) for time in sorted(parcels)])
    commands = [m for answer in answers for m in heard(bundle, answer.said) if isinstance(m, Commands)]
    assert abs(len(commands) - 200) <= 40
    assert np.diff([message.time for message in commands]).max() <= 3 * period // 2 + 500


def test_statistics_count_what_came(bundle: Bundle, made: Generated) -> None:
    loop = Loop(bundle.contract, HostDevice(made), 1)
    loop.hello()
    link = loop.links[0]
    found: list[Statistics] = []
    for k in range(120):
        link.send(Signals(loop.time, 0, (0,) * len(bundle.contract.signals), recorded(bundle, k % 64)))
        parcel = Parcel(0, loop.mailboxes[0].collect() + b"\7\0", APART + loop.time + LATENCY)
        (answer,) = loop.devices.exchange([parcel])
        found += [message for message in heard(bundle, answer.said) if isinstance(message, Statistics)]
        loop.time += loop.period
    (one,) = found
    assert (one.steps, one.late_steps) == (100, 1)  # the late one before the first signals
    assert (one.decoder.frames, one.decoder.framing) == (101, 98)  # with two hellos; noise after every signals


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_sources_compile_without_a_warning(made: Generated, compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed; apt-get install {compiler}")
    command = [compiler, *STRICT, "-Wshadow", "-Wdouble-promotion", "-O2", "-c", *map(str, write_device(made))]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_device_needs_no_heap(made: Generated, tmp_path: Path) -> None:
    sources = [str(path) for path in write_device(made)]
    subprocess.run(["gcc", *STRICT, "-O2", "-ffreestanding", "-c", *sources], cwd=tmp_path, check=True)
    objects = [f"{Path(source).stem}.o" for source in sources]
    command = ["nm", "-u", *objects]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    undefined = {line.split()[-1] for line in done.stdout.splitlines() if line.strip().startswith("U")}
    own = {name for name in undefined if name.startswith(("policy_", "gate_", "held_", "link_", "device_"))}
    assert undefined - own <= {"memcpy", "memset", "_GLOBAL_OFFSET_TABLE_"}


@pytest.mark.parametrize("options", [["--enable=warning,style,performance,portability"], ["--addon=misra"]])
def test_cppcheck_finds_only_the_deviations_that_the_document_lists(made: Generated, options: list[str]) -> None:
    if shutil.which("cppcheck") is None:
        pytest.skip("cppcheck is not installed; apt-get install cppcheck")
    write_device(made)
    sources = [str(made.folder / name) for name in ("device.c", "exchange.c")]
    suppressed = ["--suppress=missingIncludeSystem", "--suppress=unusedFunction"]
    command = ["cppcheck", "--std=c99", "-q", *suppressed, *options, *sources]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = set(re.findall(r"\[([\w.-]+)\]$", done.stderr, re.MULTILINE))
    listed: set[str] = set()
    for page in ("safety.md", "firmware.md"):
        table = (ROOT / "docs" / page).read_text().partition("## MISRA")[2].partition("| rule |")[2]
        listed |= {f"misra-c2012-{rule}" for rule in re.findall(r"\b\d+\.\d+\b", table)}
    assert done.returncode == 0
    assert found <= (listed if "--addon=misra" in options else set())


@pytest.mark.slow
@pytest.mark.firmware
@pytest.mark.usefixtures("fuzzer")
@pytest.mark.parametrize("what", representatives(list(SOURCES), ["gate", "policy", "device"]))  # link: test_link.py
def test_fuzzing_finds_nothing(bundle: Bundle, what: str, tmp_path: Path) -> None:
    """Some seconds each; benchmarks/fuzz.py is for longer runs."""
    assert run(build(what, bundle, tmp_path), seconds=2).inputs > 0
