"""Replay a log: the recorded signals through a bundle and the gate, and the first step that differs.

Policy and gate are functions of what was recorded, so the same files give the same decisions, years later and on
another computer. A difference means that something was not what it is now: another bundle, another release, or a
computer that does other arithmetic.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robo_rl.contract import Contract, Signal
from robo_rl.controllers.gate.codes import Problem, Reason, Request, State, explain
from robo_rl.controllers.gate.config import GateConfig
from robo_rl.controllers.gate.safety import Inputs, initial
from robo_rl.controllers.gate.safety import step as gate_step
from robo_rl.deploy.robot.bundle import Bundle, BundleError
from robo_rl.deploy.robot.logs.logfile import LogError, StepRecord, element_names
from robo_rl.deploy.robot.logs.reader import Log, read_log
from robo_rl.deploy.robot.runtime import GOLDEN_TOLERANCE


@dataclass(frozen=True)
class Difference:
    """The first difference between replay and record."""

    step: int
    time: float
    """s since the log began."""
    what: str
    """``rotor_speed/m3``, ``memory[17]``, ``gate state`` and so on."""
    recorded: float
    replayed: float

    def __str__(self) -> str:
        return (
            f"step {self.step} ({self.time:.3f} s): {self.what} was {self.recorded:.6g} and is now {self.replayed:.6g}"
        )


@dataclass(frozen=True)
class Replay:
    """What a replay found."""

    steps: int
    compared: int
    """Steps in which this policy proposed, and alone: fewer than ``steps`` where there were several policies."""
    duration: float
    """s."""
    whole: bool
    """The file has its end, and nothing in it is damaged."""
    damage: list[str]
    """Every part of the file that can't be read, as a sentence."""
    missing: int
    """Steps that are known to be missing."""
    same_bundle: bool
    """It is the one that was recorded, or one of them."""
    policy: Difference | None
    """The first command or memory of the policy that differs; in units of its range for ``greatest``."""
    greatest: float
    """The greatest difference of a command, in units of its range."""
    gate: Difference | None
    """The first decision of the gate, or sent command, that differs."""
    gate_compared: int
    """Steps of the gate that were compared: those before the first that is missing."""
    outside: dict[str, float]
    """Fraction of the steps in which an element of a signal was outside of the range seen in training."""
    first_outside: str
    """The first signal that left the range seen in training, as a sentence; "" if none did."""
    faults: list[str]
    """Every fault of the record, as a sentence with its time."""


def replay(source: str | Path | Log, bundle_path: str | Path) -> Replay:
    """Run a log, or the one at a path, through a bundle. Refuses a bundle with other signals or commands."""
    log, bundle = source if isinstance(source, Log) else read_log(source), Bundle.read(bundle_path)
    if not log.steps:
        damage = "".join(f"; {damage}" for damage in log.damage)
        raise LogError(f"{log.path}: no step in it; expected a session of at least one{damage}")
    recorded = log.about.get("digests", log.about.get("digest", "")).split()
    same = bundle.digest in recorded
    if not same:
        require_same_interface(log, bundle)
    number = recorded.index(bundle.digest) if same else 0
    policy, greatest = _replay_policy(log, bundle, same, number)
    outside, first = _outside(log)
    times = [step.time for step in log.steps]
    return Replay(
        steps=len(log.steps),
        compared=sum(_flew(step, number) and step.proposed is not None for step in log.steps),
        duration=(times[-1] - times[0]) * 1e-6 if times else 0.0,
        whole=log.whole,
        damage=[str(damage) for damage in log.damage],
        missing=log.missing,
        same_bundle=same,
        policy=policy,
        greatest=greatest,
        gate=_replay_gate(log),
        gate_compared=log.gaps[0] if log.gaps else len(log.steps),
        outside=outside,
        first_outside=first,
        faults=_faults(log),
    )


def require_same_interface(log: Log, bundle: Bundle) -> None:
    """BundleError unless a bundle has a log's signals and commands, in its order, units and frames."""

    def interface(contract: Contract) -> list[tuple]:
        channels = (*contract.signals, *contract.commands)
        return [(c.name, c.elements, c.dimensions, c.unit, c.frame) for c in channels]

    if interface(log.contract) != interface(bundle.contract):
        raise BundleError(
            f"{bundle.path}: its signals and commands are {element_names(bundle.contract.signals)}, "
            f"{element_names(bundle.contract.commands)}; the log {log.path} has {element_names(log.contract.signals)}, "
            f"{element_names(log.contract.commands)}"
        )


def _flew(step: StepRecord, number: int) -> bool:
    """Whether the policy of that number proposed this step's command, and no other had a part in it."""
    return step.gate.get("policy", 0) == number


def _since(log: Log, step: StepRecord) -> float:
    return (step.time - log.steps[0].time) * 1e-6


def _by_name(channels: Sequence[Signal], flat: np.ndarray) -> dict[str, np.ndarray]:
    ends = np.cumsum([channel.size for channel in channels])
    parts = zip(channels, np.split(flat, ends[:-1]), strict=True)
    return {channel.name: part.reshape(1, *channel.dimensions) for channel, part in parts}


def _replay_policy(log: Log, bundle: Bundle, same: bool, number: int) -> tuple[Difference | None, float]:
    """The first difference beyond rounding, in the steps of the policy of that ``number``.

    A bundle other than the recorded one keeps its own memory.
    """
    contract = bundle.contract
    span = np.concatenate([np.subtract(c.upper, c.lower) for c in contract.commands])
    names = element_names(contract.commands)
    first, greatest = None, 0.0
    memory = contract.initial_state
    for k, step in enumerate(log.steps):
        active = k > 0 and k not in log.gaps and log.steps[k - 1].gate["state"] == State.ACTIVE
        memory = step.memory if same else (memory if active else contract.initial_state)
        if step.proposed is None or not _flew(step, number):
            continue
        if memory.shape != contract.initial_state.shape:
            raise LogError(
                f"{log.path}: step {step.number} has {len(memory)} numbers of memory; expected "
                f"{len(contract.initial_state)}, those of its policy"
            )
        seen = _by_name(log.contract.signals, step.signals)
        commands, after = bundle.run({signal.name: seen[signal.name] for signal in contract.signals}, memory[None])
        memory = after[0]
        found = np.concatenate([commands[c.name][0] for c in contract.commands])
        difference = np.abs(found - step.proposed) / span
        worst = int(np.argmax(np.where(np.isfinite(difference), difference, np.inf)))
        greatest = max(greatest, float(difference[worst]))
        if first is None and not difference[worst] <= GOLDEN_TOLERANCE:
            values = float(step.proposed[worst]), float(found[worst])
            first = Difference(k, _since(log, step), names[worst], *values)
        if same and first is None:
            first = _memory_difference(log, k, memory)
    return first, greatest


def _memory_difference(log: Log, k: int, memory: np.ndarray) -> Difference | None:
    """While the policy is in charge, the next step's memory is what this one leaves."""
    if k + 1 >= len(log.steps) or k + 1 in log.gaps or log.steps[k].gate["state"] != State.ACTIVE:
        return None
    if not _flew(log.steps[k + 1], int(log.steps[k].gate.get("policy", 0))):
        return None
    recorded = log.steps[k + 1].memory
    if recorded.shape != memory.shape:
        return None  # that of a step without a policy, which nothing is compared with
    difference = np.abs(memory - recorded)
    worst = int(np.argmax(difference)) if len(difference) else 0
    if not len(difference) or difference[worst] <= GOLDEN_TOLERANCE:
        return None
    at = _since(log, log.steps[k])
    return Difference(k, at, f"memory[{worst}]", float(recorded[worst]), float(memory[worst]))


def _replay_gate(log: Log) -> Difference | None:
    """The first difference before something is missing: what the gate remembers is not in the log."""
    config = GateConfig.from_contract(log.contract)
    gate, names = initial(config), element_names(log.contract.commands)
    for k, step in enumerate(log.steps[: log.gaps[0] if log.gaps else None]):
        given = Inputs(
            time=step.time,
            signals=step.signals,
            stamps=step.stamps,
            command=step.command,
            command_stamp=step.time if step.command is not None else -1,
            fallback=step.fallback,
            operator_stamp=int(step.gate["operator_stamp"]),
            bundle_intact=bool(step.gate["intact"]),
            requests=Request(int(step.gate["requests"])),
        )
        gate, output = gate_step(config, gate, given)
        at = _since(log, step)
        told = {"state": output.state, "source": output.source, "reason": output.problem.reason}
        for what, value in told.items():
            if value != step.gate[what]:
                return Difference(k, at, f"gate {what}", step.gate[what], float(value))
        worst = int(np.argmax(np.abs(output.command - step.sent)))
        if output.command[worst] != step.sent[worst]:
            return Difference(k, at, f"sent {names[worst]}", float(step.sent[worst]), float(output.command[worst]))
    return None


ROUNDING, SLIGHT = 1e-6, 1e-3


def beyond(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Which of the values (steps, elements) left the range seen in training, (elements,) each.

    By more than a thousandth of it, and more than float32 rounds: the extremes of a training are a sample.
    """
    room = np.maximum(SLIGHT * (high - low), ROUNDING * np.maximum(1.0, np.maximum(abs(low), abs(high))))
    return ~((values >= low - room) & (values <= high + room))


def _outside(log: Log) -> tuple[dict[str, float], str]:
    """How often, and where first, signals left the range seen in training, while the policy was in charge."""
    flying = [(k, step) for k, step in enumerate(log.steps) if step.gate["state"] == State.ACTIVE]
    parts: dict[str, float] = {}
    first: tuple[int, str] | None = None
    offset = 0
    for signal in log.contract.signals:
        span, offset = slice(offset, offset + signal.size), offset + signal.size
        if signal.seen_low is None or signal.seen_high is None or not flying:
            continue
        values = np.array([step.signals[span] for _, step in flying])
        low, high = signal.spread(signal.seen_low), signal.spread(signal.seen_high)
        out = beyond(values, low, high)
        parts[signal.name] = float(out.any(-1).mean())
        if out.any():
            row = int(np.argmax(out.any(-1)))
            element = int(np.argmax(out[row]))
            k, step = flying[row]
            unit = "" if signal.unit == "1" else f" {signal.unit}"
            if first is None or k < first[0]:
                first = (
                    k,
                    (
                        f"step {k} ({_since(log, step):.3f} s): signal '{signal.name}', element "
                        f"'{signal.labels[element]}' is {values[row, element]:.6g}{unit}; seen in training: "
                        f"{low[element]:.6g} to {high[element]:.6g}"
                    ),
                )
    return parts, first[1] if first else ""


def _faults(log: Log) -> list[str]:
    faults, before = [], State.IDLE
    for step in log.steps:
        state = State(int(step.gate["state"]))
        if state == State.FAULT and before != State.FAULT:
            faults.append(f"{_since(log, step):.3f} s: {step.sentence or _explained(log, step.gate)}")
        before = state
    return faults


def _explained(log: Log, gate: Mapping[str, float]) -> str:
    problem = Problem(Reason(int(gate["reason"])), int(gate["channel"]), int(gate["element"]))
    return explain(GateConfig.from_contract(log.contract), problem)


def plot(path: str | Path, out: str | Path) -> None:
    """A plot of every signal with its range in training, and of the commands that were sent. Needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    log = read_log(path)
    times = [_since(log, step) for step in log.steps]
    signals = np.array([step.signals for step in log.steps])
    sent = np.array([step.sent for step in log.steps])
    rows = [(s, signals) for s in log.contract.signals] + [(c, sent) for c in log.contract.commands]
    figure, axes = plt.subplots(len(rows), 1, figsize=(9, 1.8 * len(rows)), sharex=True, squeeze=False)
    start: dict[int, int] = {}
    for axis, (channel, values) in zip(axes[:, 0], rows, strict=True):
        first = start.get(id(values), 0)
        start[id(values)] = first + channel.size
        if isinstance(channel, Signal) and channel.shape is not None:
            part = values[:, first : first + channel.size]
            for name, line in {"least": part.min(1), "mean": part.mean(1), "greatest": part.max(1)}.items():
                axis.plot(times, line, linewidth=0.8, label=name)
        for i, element in enumerate(channel.labels if getattr(channel, "shape", None) is None else ()):
            (line,) = axis.plot(times, values[:, first + i], linewidth=0.8, label=element)
            if isinstance(channel, Signal) and channel.seen_low is not None and channel.seen_high is not None:
                low, high = channel.spread(channel.seen_low)[i], channel.spread(channel.seen_high)[i]
                axis.axhspan(low, high, color=line.get_color(), alpha=0.06)
        axis.set_ylabel(f"{channel.name}\n[{channel.unit}]", fontsize=7)
        axis.legend(fontsize=6, loc="upper right", ncols=4)
    axes[-1, 0].set_xlabel("time [s]; shaded: range seen in training")
    figure.tight_layout()
    figure.savefig(out, dpi=120)
    plt.close(figure)


def as_dict(found: Replay) -> dict[str, object]:
    """For --json."""
    return dataclasses.asdict(found)
