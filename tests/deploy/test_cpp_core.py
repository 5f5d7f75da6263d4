"""The C++ core does what Python's session does, bit for bit, and allocates and locks nothing meanwhile."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from robo_rl.contract import Contract, Signal
from robo_rl.controllers import fallback
from robo_rl.controllers.gate.codes import Request, State
from robo_rl.deploy.build.c.generate import Generated
from robo_rl.deploy.build.c.native import compile_native
from robo_rl.deploy.build.c.robot import write_robot
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.deploy.robot.session import MODES, Samples, Session
from robo_rl.deploy.robot.switcher import PolicySwitcher

sys.path.append(str(Path(__file__).parent))
from cpp_core import ROOT, Expected, Step, build_replay, first_difference, replayed
from test_gate_c import read_contract, read_inputs

ROBOTS = (
    "quadrotor-hover",
    "go2-flat",
    pytest.param("arm-reach", marks=pytest.mark.release),
    "arm-place",
    pytest.param("car-race", marks=pytest.mark.release),
    pytest.param("diff-nav", marks=pytest.mark.release),
)
STEPS = 60
SANITIZED = ["-DSANITIZED", "-g", "-fno-sanitize-recover=all"]
NEXT = {State.IDLE: Request.ARM, State.READY: Request.ACTIVATE, State.FAULT: Request.RESET}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("there is no g++; install it with: apt-get install g++")
    return build_replay(tmp_path_factory.mktemp("core"))


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {}


@pytest.fixture
def library(libraries: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``library(name)``: of a bundle of the zoo, compiled once."""

    def compiled(name: str) -> Path:
        if name not in libraries:
            out = tmp_path_factory.mktemp("bundle") / f"{name}.so"
            libraries[name] = compile_native(Bundle.read(f"zoo:{name}"), out)
        return libraries[name]

    return compiled


class Robot:
    """Random steps of one robot: mostly healthy ones, whose measured actuators follow the commands, and faults."""

    def __init__(self, policy: Policy, seed: int) -> None:
        self.rng, self.contract = np.random.default_rng(seed), policy.contract
        self.golden = policy.bundle.golden
        self.signals = [signal for signal in self.contract.signals if signal.source != "runtime"]
        self.limits = {
            s.name: tuple(b.astype(np.float32).reshape(s.dimensions) for b in s.bounds) for s in self.signals
        }
        self.period = round(1e6 * self.contract.control_period)
        self.begin()

    def begin(self) -> None:
        self.now, self.row = 10_000_000, int(self.rng.integers(len(self.golden)))
        self.samples: dict[str, tuple[np.ndarray, int]] = {}

    def chance(self, part: float) -> bool:
        return bool(self.rng.random() < part)

    def step(self, session: Session, mode: str | None) -> Step:
        self.now += self.period
        if self.chance(0.02):
            self.now += int(self.rng.choice([-self.period, -self.period // 2, self.period, 1 << 20, -1 << 21]))
        for signal in self.signals:
            self.measure(signal)
        self.follow(session)
        samples: Samples = {
            name: self.damaged(value) if self.chance(0.004) else value for name, value in self.samples.items()
        }
        if self.chance(0.01):
            samples = {name: value for name, value in samples.items() if name != self.rng.choice(list(samples))}
        requests = NEXT.get(session.gate.state, Request.NONE) if self.chance(0.4) else Request.NONE
        if self.chance(0.02):
            requests = Request(int(self.rng.integers(64)))
        change = str(self.rng.choice(["promote", "promote", "demote"])) if self.chance(0.04) else ""
        stamp = self.now if self.chance(0.99) else int(self.rng.choice([-1, self.now - 5_000_000, self.now + 1]))
        return Step(self.now, samples, requests, stamp, self.chance(0.997), mode, change)

    def measure(self, signal: Signal) -> None:
        """A new sample, near the recorded one; slow signals have one now and then."""
        slow = signal.period is not None or self.contract.timeout(signal) is None
        if slow and self.chance(0.6):
            return
        lower, upper = self.limits[signal.name]
        golden = self.golden.signals[signal.name][self.row]
        noise = 1e-3 * self.rng.normal(size=golden.shape) * (1.0 if signal.kind == "quaternion" else upper - lower)
        value = np.clip((golden + noise).astype(np.float32), lower, upper)
        age = int(self.rng.integers(self.period)) if self.chance(0.3) else 0
        self.samples[signal.name] = value, self.now - age

    def follow(self, session: Session) -> None:
        """The measured values of actuators are what was commanded."""
        if session.gate.state == State.IDLE:
            return
        for sent, place in zip(session.gate.command, session.config.feedback, strict=True):
            watch = next((w for w in session.config.signals if w.offset <= place < w.offset + w.size), None)
            if watch is not None and watch.name in self.samples:
                index = place - watch.offset
                lower, upper = (limits.flat[index] for limits in self.limits[watch.name])
                self.samples[watch.name][0].flat[index] = np.clip(sent, lower, upper)

    def damaged(self, sample: tuple[np.ndarray, int]) -> tuple[np.ndarray, int]:
        value, stamp = sample[0].copy(), sample[1]
        kind = int(self.rng.integers(6))
        if kind == 0:
            value.flat[int(self.rng.integers(value.size))] = self.rng.choice([np.nan, np.inf, -np.inf, 1e30, -0.0])
        elif kind == 1:
            value = np.roll(value, 1)
        elif kind == 2:
            value = -value
        elif kind == 3:
            stamp -= int(self.rng.choice([200_000, 1_000_000, 60_000_000]))
        elif kind == 4:
            stamp = int(self.rng.choice([-1, -7, self.now + 1, 1 << 60]))
        else:
            value = value * np.float32(1.07)
        return value, stamp


def sequences(name: str, library: Path | None, count: int, seed: int, given: bool = False) -> tuple[Expected, bool]:
    """That many random sequences, and whether the robot has a classical controller. ``given``: the policy's commands
    are recorded ones, and not computed.
    """
    policy = Policy.load(f"zoo:{name}", None, native=library or False)
    controller = fallback(policy.contract) is not None
    modes = [mode for mode in MODES if mode != "blend" or controller]
    expected, robot = Expected(policy.contract), Robot(policy, seed)
    for k in range(count):
        mode: str | None = modes[k % len(modes)]
        session = Session(policy, str(mode))
        robot.begin()
        for _ in range(STEPS):
            step = robot.step(session, mode)
            if given:
                proposal = np.concatenate([values[robot.row].ravel() for values in robot.golden.commands.values()])
                step = replace(step, decides=True, proposal=proposal.astype(np.float32))
            expected.step(session, step)
            mode = None
    return expected, controller


@pytest.mark.parametrize("name", ROBOTS)
def test_the_core_answers_what_the_session_answers(name: str, program: Path, library: Callable[[str], Path]) -> None:
    expected, controller = sequences(name, library(name), 40, 0)
    answers, end = replayed(program, library(name), expected, controller)
    assert first_difference(answers, expected.answers) == ""
    assert "allocations 0 locks 0" in end
    states = Counter(answer[0] for answer in answers)
    assert all(states[int(state)] > 20 for state in State), states


@pytest.mark.release
@pytest.mark.parametrize("name", ["quadrotor-hover", "go2-flat", "arm-place", "car-race", "diff-nav"])
def test_two_thousand_sequences_of_each_kind_are_answered_alike(
    name: str, program: Path, library: Callable[[str], Path]
) -> None:
    for seed in range(2, 22):
        expected, controller = sequences(name, library(name), 100, seed)
        answers, end = replayed(program, library(name), expected, controller)
        assert first_difference(answers, expected.answers) == "", seed
        assert "allocations 0 locks 0" in end


@pytest.mark.slow
@pytest.mark.parametrize("sanitizers", ["address,undefined", pytest.param("thread", marks=pytest.mark.release)])
def test_the_core_is_clean_under_sanitizers(library: Callable[[str], Path], tmp_path: Path, sanitizers: str) -> None:
    program = build_replay(tmp_path, *SANITIZED, f"-fsanitize={sanitizers}")
    for name in ("quadrotor-hover", "arm-place"):
        expected, controller = sequences(name, library(name), 20, 1)
        answers, _ = replayed(program, library(name), expected, controller)
        assert first_difference(answers, expected.answers) == ""


def refusal(program: Path, library: Path, digest: str = "") -> str:
    done = subprocess.run([program, library, digest, "alone"], input=b"", capture_output=True, check=False)
    assert done.returncode == 1
    return done.stderr.decode()


def test_libraries_that_do_not_fit_are_refused_in_a_sentence(
    program: Path, library: Callable[[str], Path], tmp_path: Path
) -> None:
    hover, other = library("quadrotor-hover"), tmp_path / "other.so"
    assert "expected 0123abcd…. Compile it again" in refusal(program, hover, "0123abcd")
    digest = Bundle.read("zoo:quadrotor-hover").digest
    other.write_bytes(hover.read_bytes().replace(digest.encode(), b"f" * len(digest)))
    assert "compiled from the bundle ffffffffffff…" in refusal(program, other, digest)
    assert "can't load it" in refusal(program, tmp_path / "absent.so")
    other.write_text("no library")
    assert "can't load it" in refusal(program, other)
    compile_c("int nothing = 0;", other)
    assert "has no 'robo_rl_robot'" in refusal(program, other)
    compile_c('const char robo_rl_native_needs[] = ""; const unsigned robo_rl_robot[64] = {999, 8};', other)
    assert "its interface is 999 of 8 bytes; expected 3 of" in refusal(program, other)


def compile_c(text: str, out: Path) -> None:
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", out], input=text.encode(), check=True)


POLICY = """#include <stdint.h>
#define POLICY_BUNDLE_DIGEST "none"
#define POLICY_CONTRACT_DIGEST "none"
#define POLICY_TOLERANCE 1e-5f
typedef struct {{ float values[{signals}]; }} policy_signals;
typedef struct {{ float values[{commands}]; }} policy_commands;
typedef struct {{ float nothing; }} policy_state;
typedef struct {{ float nothing; }} policy_arena;
static inline float policy_self_test(policy_state *s, policy_arena *a) {{ (void)s; (void)a; return {error}f; }}
static inline void policy_reset(policy_state *s) {{ (void)s; }}
static inline unsigned policy_step(const policy_signals *g, policy_state *s, policy_commands *c, policy_arena *a)
{{ (void)g; (void)s; (void)c; (void)a; return 1; }}
"""


def without_policy(contract: Contract, folder: Path, error: str = "0.0", compiler: str = "gcc") -> Path:
    """A library of a contract whose policy refuses every step."""
    folder.mkdir(exist_ok=True)
    sizes = {"signals": sum(s.size for s in contract.signals), "commands": sum(c.size for c in contract.commands)}
    (folder / "policy.h").write_text(POLICY.format(**sizes, error=error))
    (folder / "needs.c").write_text('const char robo_rl_native_needs[] = "";')
    sources = [*write_robot(Generated(folder, "policy", contract, 0, 0, 0, 0, 1e-5)), folder / "needs.c"]
    out = folder / "policy.so"
    subprocess.run([compiler, "-std=c99", "-O1", "-shared", "-fPIC", *map(str, sources), "-o", str(out)], check=True)
    return out


def test_a_library_that_misses_its_golden_vectors_is_refused(program: Path, tmp_path: Path) -> None:
    contract = Bundle.read("zoo:quadrotor-hover").contract
    for error in ("1e-4", "1e30f * 1e30"):
        text = refusal(program, without_policy(contract, tmp_path, error))
        assert "its golden vectors have an error of" in text


def gate_stories() -> tuple[dict[str, Expected], dict[str, bool]]:
    """Every vector of the gate as steps of sessions, and whether these have a classical controller."""
    agreed = Counter()
    stories: dict[str, Expected] = {}
    with_controller: dict[str, bool] = {}
    for file in sorted((ROOT / "tests" / "vectors" / "gate").glob("*.json")):
        story = json.loads(file.read_text())
        name = Path(story["configuration"]).stem
        if name == "damp":
            continue  # a reaction of version 1, which no contract of version 2 has
        contract = read_contract(name)
        if contract.robot.kind == "car":
            continue  # a robot without the figures that the session's controller needs
        expected = stories.setdefault(name, Expected(contract))
        session = Session(PolicySwitcher({"policy": SimpleNamespace(contract=contract)}))  # type: ignore[dict-item]
        with_controller[name] = session.fallback is not None
        for k, line in enumerate(story["steps"]):
            given, config = read_inputs(line["given"]), session.config
            parts = [given.signals[w.offset : w.offset + w.size].reshape(w.shape) for w in config.signals]
            computed = {signal.name for signal in contract.signals if signal.source == "runtime"}
            rows = zip(config.signals, parts, given.stamps, strict=True)
            samples = {watch.name: (part, stamp) for watch, part, stamp in rows if watch.name not in computed}
            step = Step(given.time, samples, given.requests, given.operator_stamp, given.bundle_intact,
                        None if k else "live", "", given.command, decides=True)  # fmt: skip
            expected.step(session, step)
            agreed[expected.answers[-1][1:4:2] == (line["answer"]["source"], line["answer"]["events"])] += 1
    assert agreed[True] > 0.5 * agreed.total(), agreed
    return stories, with_controller


def test_the_core_answers_every_vector_of_the_gate_as_the_session_does(program: Path, tmp_path: Path) -> None:
    stories, with_controller = gate_stories()
    for name, expected in stories.items():
        library = without_policy(expected.contract, tmp_path / name)
        answers, end = replayed(program, library, expected, with_controller[name])
        assert first_difference(answers, expected.answers) == "", name
        assert "allocations 0 locks 0" in end


@pytest.mark.skipif(
    not (shutil.which("aarch64-linux-gnu-g++") and shutil.which("qemu-aarch64")),
    reason="needs gcc-aarch64-linux-gnu, g++-aarch64-linux-gnu and qemu-user",
)
def test_on_aarch64_the_core_answers_what_the_session_answers_here(tmp_path: Path) -> None:
    """Bit for bit, where the policy's commands are given: its own sums are rounded differently by another processor."""
    program = build_replay(tmp_path, compiler="aarch64-linux-gnu-g++")
    emulator = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")
    stories, with_controller = gate_stories()
    for name, expected in stories.items():
        library = without_policy(expected.contract, tmp_path / name, compiler="aarch64-linux-gnu-gcc")
        answers, end = replayed(program, library, expected, with_controller[name], words=emulator)
        assert first_difference(answers, expected.answers) == "", name
        assert "allocations 0 locks 0" in end
    bundle = Bundle.read("zoo:go2-flat")
    library = compile_native(bundle, tmp_path / "go2.so", "aarch64")
    expected, controller = sequences("go2-flat", None, 40, 0, given=True)
    answers, end = replayed(program, library, expected, controller, words=emulator)
    assert first_difference(answers, expected.answers) == ""
    assert "allocations 0 locks 0" in end
    assert all(sum(answer[0] == state for answer in answers) > 20 for state in State)
