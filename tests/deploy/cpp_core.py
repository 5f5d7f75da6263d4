"""The C++ core as a program that tests feed with steps, beside Python's session on the same steps."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robo_rl.contract import Contract
from robo_rl.controllers.gate.codes import Request, State
from robo_rl.deploy.robot.session import MODES, Proposal, Samples, Session

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "ros2_ws" / "src" / "robo_rl_controller"
STRICT = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-ffp-contract=off"]
CHANGES = ("", "promote", "demote")
DISARMED = (State.IDLE, State.FAULT)
SAME = 255
FROM_POLICY = 2


@dataclass(frozen=True)
class Step:
    """What one step is given. ``mode``: a new session begins, in that mode; None: the one before goes on."""

    now: int
    samples: Samples
    requests: Request = Request.NONE
    operator_stamp: int = -1
    intact: bool = True
    mode: str | None = None
    change: str = ""
    proposal: np.ndarray | None = None
    """(M,) a command from elsewhere; only where ``decides``."""
    decides: bool = False


def build_replay(folder: Path, *flags: str, compiler: str = "g++") -> Path:
    """Compile core and program."""
    program = folder / "replay"
    sources = [*sorted((PACKAGE / "src").glob("*.cpp")), Path(__file__).parent / "cpp" / "replay.cpp"]
    includes = ["-I", str(PACKAGE / "include"), "-I", str(ROOT / "deploy" / "build" / "c")]
    words = [compiler, *STRICT, "-O2", *flags, *includes, *map(str, sources), "-ldl", "-o", str(program)]
    subprocess.run(words, check=True)
    return program


class Expected:
    """What Python's session answers, and, as bytes, what it was given: for the program."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.given: list[bytes] = []
        self.answers: list[tuple] = []
        self.size = sum(command.size for command in contract.commands)

    def step(self, session: Session, step: Step) -> None:
        """Step the session, which is a new one where ``step.mode`` says so."""
        changed, sentence = False, ""
        if step.change:
            try:
                sentence, changed = getattr(session, step.change)(), True
            except ValueError as error:
                sentence = str(error)
        if step.decides:
            memory = session.policies.state[0]
            decision = session.decide(
                step.now, step.samples, Proposal(step.proposal, memory, 0.0, 0), step.requests, step.operator_stamp,
                step.intact,
            )  # fmt: skip
        else:
            decision = session.step(step.now, step.samples, step.requests, step.operator_stamp, step.intact)
        assert session._unfinished is not None
        other, landing = session._unfinished[3], decision.inputs.fallback
        out = decision.output
        problem, obstacle = out.problem, session.reserve.obstacle(decision.inputs)
        self.answers.append((
            int(out.state), int(out.source), int(problem.reason), int(out.events), MODES.index(session.mode),
            decision.send is not None, decision.policy is not None, bool(decision.doubt), changed,
            session.reserve.at_rest, problem.channel, problem.element,
            (int(obstacle.reason), obstacle.channel, obstacle.element) if out.state in DISARMED else None,
            session.authority, session.explain(problem),
            decision.doubt, sentence,
            self._floats(decision.send), self._floats(out.command), self._floats(decision.policy),
            self._floats(session.last_resort),
        ))  # fmt: skip
        head = np.array([step.now, step.operator_stamp, step.now], np.int64).tobytes()
        command = int(step.proposal is not None) if step.decides else FROM_POLICY
        restart = SAME if step.mode is None else MODES.index(step.mode)
        head += bytes([int(step.requests), step.intact, other is not None, landing is not None, command, restart,
                       CHANGES.index(step.change)])  # fmt: skip
        rest = [self._floats(values) for values in (other, landing, step.proposal)]
        self.given.append(head + self._samples(step.samples) + b"".join(rest))

    def _samples(self, samples: Samples) -> bytes:
        parts = []
        for signal in self.contract.signals:
            value, stamp = samples.get(signal.name, (np.zeros(signal.dimensions, np.float32), -1))
            present = bytes([signal.name in samples])
            parts.append(present + np.int64(stamp).tobytes() + np.asarray(value, np.float32).tobytes())
        return b"".join(parts)

    def _floats(self, values: np.ndarray | None) -> bytes:
        return (np.zeros(self.size, np.float32) if values is None else values.astype(np.float32)).tobytes()


OBSTACLE = ("obstacle", "obstacle_channel", "obstacle_element")
TAIL = np.dtype([
    *((name, "u1") for name in ("state", "source", "reason", "events", "mode", "sent", "proposed", "refused",
                                "doubted", "changed", "rests")),
    ("channel", "<i2"), ("element", "<i2"), ("obstacle", "u1"), ("obstacle_channel", "<i2"),
    ("obstacle_element", "<i2"), ("authority", "<f8"), ("problem", "S256"), ("doubt", "S256"),
    ("change", "S256"),
])  # fmt: skip


def replayed(
    program: Path, library: Path, expected: Expected, controller: bool, digest: str = "", words: Sequence[str] = ()
) -> tuple[list[tuple], str]:
    """The program's answers to the same steps, and what it says at the end."""
    run = [*words, str(program), str(library), digest, "controller" if controller else "alone"]
    done = subprocess.run(run, input=b"".join(expected.given), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    row, data = TAIL.itemsize + 16 * expected.size, done.stdout
    assert len(data) == row * len(expected.given)
    return [_answer(data[i : i + row], expected.size) for i in range(0, len(data), row)], done.stderr.decode()


def _answer(data: bytes, size: int) -> tuple:
    tail, ends = np.frombuffer(data[: TAIL.itemsize], TAIL)[0], TAIL.itemsize
    arrays = [data[ends + 4 * size * i : ends + 4 * size * (i + 1)] for i in range(4)]
    texts = (tail[name].decode() for name in ("problem", "doubt", "change"))
    return (
        int(tail["state"]), int(tail["source"]), int(tail["reason"]), int(tail["events"]), int(tail["mode"]),
        bool(tail["sent"]), bool(tail["proposed"]), bool(tail["doubted"]), bool(tail["changed"]),
        bool(tail["rests"]),
        int(tail["channel"]), int(tail["element"]),
        tuple(int(tail[name]) for name in OBSTACLE) if tail["state"] in DISARMED else None,
        float(tail["authority"]), *texts, *arrays,
    )  # fmt: skip


def first_difference(found: Iterable[tuple], expected: Iterable[tuple]) -> str:
    """A sentence about the first step that differs; "" if none does."""
    for k, (one, other) in enumerate(zip(found, expected, strict=True)):
        if one != other:
            return f"step {k}: the core answers {one}; Python's session {other}"
    return ""
