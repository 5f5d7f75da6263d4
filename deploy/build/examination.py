"""What a file's graph is, and what it does where no flight goes: for ``robo_rl.deploy.build.verify``.

The graph is compared with what the exporter would write for the task, the network of the contract and the file's own
weights. Then the whole of the signals' ranges is searched, and the graph's inside for parts that flights never use.
docs/verify.md tells what that finds and what it can't.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx
import torch
from onnx import ModelProto

from robo_rl.deploy.build.dormant import resting, steep
from robo_rl.deploy.build.export import ExportError, exported_graph
from robo_rl.deploy.build.rows import Apart
from robo_rl.deploy.build.search import JUMP, Jump, Rows, find_jump, growing, late_jump, saturated, scaled, spread_rows
from robo_rl.deploy.build.structure import SHOWN, differences, structure_of, weights_digest
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.policy import PolicyGraph

WIDE_TOLERANCE = 1e-4
"""Torch against onnxruntime all over the ranges: commands in units of their range, memory as a part of its size."""
KEPT, EVERY, LONGEST = 64, 8, 1000
"""Of flights: so many robots, every eighth step; and one robot's steps."""
ALONE = 256
"""Rows from all over the ranges that are asked together and one by one."""


@dataclass(frozen=True)
class GraphCheck:
    """The graph against what the exporter would write."""

    same: bool | None
    """None: not an export of ours, nothing to compare with."""
    structure_digest: str
    weights_digest: str
    operators: tuple[str, ...]
    foreign_operators: tuple[str, ...]
    """Those that the exported policy has not."""
    differences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Search:
    """What was found all over the ranges of signals and memory."""

    rows: int
    torch_error: float | None
    """Greatest difference between torch and onnxruntime; None where there is no torch graph."""
    jump: float
    """Greatest change of a command, of its range, across 1e-4 of a signal's range."""
    jump_at: str
    memory_jump: float
    """As ``jump``, across 1e-4 of the range of memory, which may have clocks in it."""
    saturated: float
    """Part of the rows where all commands are at a limit."""
    saturated_in_flight: float
    growing: tuple[str, ...]
    """Elements of memory that go on growing."""
    resting: tuple[str, ...]
    """Decisions and units that flights never use."""


@dataclass
class Seen:
    """What flights have shown, collected while they go on."""

    rows: list[Rows] = field(default_factory=list)
    flight: list[Rows] = field(default_factory=list)
    steps: int = 0

    def add(self, signals: dict[str, np.ndarray], state: np.ndarray) -> None:
        """One step of a batch."""
        if self.steps % EVERY == 0:
            part = np.arange(min(KEPT, len(state)))
            self.rows.append(Rows(signals, state).take(part))
        if self.steps < LONGEST:
            self.flight.append(Rows(signals, state).take(np.arange(1)))
        self.steps += 1


def check_graph(bundle: Bundle, policy: PolicyGraph | None) -> tuple[GraphCheck, list[str]]:
    """Compare the file's graph with that of ``policy``, which has its weights; and sentences on what is wrong."""
    model = _model(bundle)
    names = frozenset(policy.state_dict()) if policy is not None else frozenset()
    found = structure_of(model, names)
    operators = tuple(sorted(found.operators))
    weights = weights_digest(model, names or frozenset(tensor.name for tensor in model.graph.initializer))
    if policy is None:
        return GraphCheck(None, found.digest, weights, operators, ()), [f"graph: {odd}" for odd in found.oddities]
    try:
        expected = structure_of(exported_graph(policy, bundle.contract), names)
    except ExportError as error:
        return (
            GraphCheck(False, found.digest, weights, operators, (), (str(error),)),
            [f"graph: its weights can't be exported again ({error})"],
        )
    told = differences(found, expected)
    strange = tuple(sorted(found.operators - expected.operators))
    failures = []
    if told:
        failures.append(
            f"graph: {'; '.join(told)}. It is not what the task, network and weights give{_release(bundle)}"
        )
    if strange:
        failures.append(f"graph: operators {', '.join(strange)}, which the policy has no use for")
    return GraphCheck(not told, found.digest, weights, operators, strange, tuple(told)), failures


def search(
    bundle: Bundle, policy: PolicyGraph | None, seen: Seen, same: bool, seed: int, apart: Apart
) -> tuple[Search, list[str]]:
    """Search the ranges of signals and memory; and sentences on what is wrong there.

    ``apart`` asks it with batches; some rows are compared with the same rows alone. ``same``: the graph is known to be
    that of ``policy``, so what its task's code does on its own account is no fault.
    """
    contract, generator = bundle.contract, np.random.default_rng(seed)

    def run(signals: dict[str, np.ndarray], state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        commands, following = apart.run(signals, state)
        return scaled(contract, commands), following

    rows, failures = Rows.joined(seen.rows), list[str]()
    spread = spread_rows(contract, rows, generator)
    few = spread.take(np.arange(min(ALONE, len(spread))))
    apart.compare(few.signals, few.state)
    wide = [run(part.signals, part.state) for part in spread.parts()]
    commands, following = (np.concatenate([part[k] for part in wide]) for k in (0, 1))
    if not (np.isfinite(commands).all() and np.isfinite(following).all()):
        failures.append("search: commands or memory are not finite within the signals' limits")
    error = None if policy is None else _torch_error(policy, bundle, spread, commands, following)
    if error is not None and not error <= WIDE_TOLERANCE:
        failures.append(
            f"search: torch and onnxruntime differ by {error:.2g} within the signals' limits; expected at most "
            f"{WIDE_TOLERANCE:g}"
        )
    jump = find_jump(contract, run, rows, generator)
    if not jump.size <= JUMP and not (same and policy is not None and _observed(policy, jump, rows)):
        failures.append(f"search: commands jump by {jump.size:.2g} of their range at {jump.where}")
    memory = find_jump(contract, run, rows, generator, True).size if contract.state_size else 0.0
    grown = growing(contract, run, Rows.joined(seen.flight))
    for element in grown:
        late = late_jump(contract, run, rows, element)
        if not late.size <= JUMP:
            failures.append(
                f"search: memory grows, and commands jump by {late.size:.2g} of their range at {late.where}"
            )
    asleep = [*resting(contract, _model(bundle), rows, spread, not same), *steep(contract, _model(bundle), rows)]
    if asleep:
        more = f"; and {len(asleep) - SHOWN} more" if len(asleep) > SHOWN else ""
        failures.append(f"search: {'; '.join(asleep[:SHOWN])}{more}")
    names = [f"{block.name}[{k}]" for block in contract.state for k in range(block.size)]
    in_flight = float(saturated(run(rows.signals, rows.state)[0]).mean())
    found = Search(
        len(spread), error, jump.size, jump.where, memory, float(saturated(commands).mean()), in_flight,
        tuple(names[k] for k in grown), tuple(asleep),
    )  # fmt: skip
    return found, failures


def _model(bundle: Bundle) -> ModelProto:
    return onnx.load_from_string(bundle.data())


def _release(bundle: Bundle) -> str:
    """What else may have changed a graph."""
    theirs, ours = bundle.contract.provenance.versions.get("torch", "unknown"), torch.__version__
    if theirs == ours:
        return ""
    return f", or it is an export of another release (torch {theirs}, here {ours}): export it again"


def _torch_error(
    policy: PolicyGraph, bundle: Bundle, spread: Rows, commands: np.ndarray, following: np.ndarray
) -> float:
    """The greatest difference of commands and memory, of which what is not finite on both sides alike is none."""
    parts = []
    with torch.no_grad():
        for part in spread.parts():
            signals = {name: torch.from_numpy(value) for name, value in part.signals.items()}
            given, state = policy(signals, torch.from_numpy(part.state))
            parts.append((scaled(bundle.contract, {n: v.numpy() for n, v in given.items()}), state.numpy()))
    expected, expected_state = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    apart = np.abs(commands - expected).max(initial=0.0)
    state_apart = (np.abs(following - expected_state) / (1 + np.abs(expected_state))).max(initial=0.0)
    worst = float(max(apart, state_apart))
    return worst if np.isfinite(apart) and np.isfinite(state_apart) else float("inf")


def _observed(policy: PolicyGraph, jump: Jump, rows: Rows) -> bool:
    """Whether a jump is one of what the task observes, which its code tells and training has known."""
    with torch.no_grad():
        low, high = _features(policy, jump.ends)
        usual = _features(policy, rows.take(np.arange(len(rows))[:: max(1, len(rows) // 1024)])).std(0)
    return bool(((high - low).abs() > 0.5 * usual.clamp(min=1e-6)).any())


def _features(policy: PolicyGraph, rows: Rows) -> torch.Tensor:
    signals = {name: torch.from_numpy(value) for name, value in rows.signals.items()}
    memory = policy.unpack(torch.from_numpy(rows.state))
    return policy.features(policy.task.observe(signals, memory))
