"""Write a bundle as a folder of C: policy.h, policy.c, policy_self_test.c, the kernels, and a README."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Literal

import numpy as np

from robo_rl.contract import Command, Contract, Signal
from robo_rl.deploy.build.c.chunks import set_apart
from robo_rl.deploy.build.c.emit import Source, literal
from robo_rl.deploy.build.c.graph import UnsupportedError, load
from robo_rl.deploy.build.c.hooks import hooks
from robo_rl.deploy.build.c.learning import Learning
from robo_rl.deploy.build.c.lower import c_names, lower, require_distinct
from robo_rl.deploy.build.c.plan import Plan, plan
from robo_rl.deploy.build.c.quantize import quantize, record
from robo_rl.deploy.robot.bundle import CONTRACT_KEY, Bundle, Golden, onnx_file
from robo_rl.deploy.robot.runtime import GOLDEN_TOLERANCE
from robo_rl.files import sandbox as confined
from robo_rl.files.escaping import c_comment, c_identifier, c_string, markdown

HERE = Path(__file__).parent
INDENT = "    "
GOLDEN_BYTES = 1 << 17
RESUMED = 4
"""Steps after which the self-test goes on with the memory as it was recorded: rounding may grow while signals don't
follow what it does."""
MAX_OPERATIONS, MAX_CONSTANTS = 50_000, 1 << 24
"""More than any microcontroller has room for, and as much as a compiler takes in a minute."""


Precision = Literal["float32", "int16", "int8"]


@dataclass(frozen=True)
class Generated:
    """C sources and what they will need. Sizes in bytes."""

    folder: Path
    name: str
    contract: Contract
    constant_bytes: int
    arena_bytes: int
    state_bytes: int
    golden_bytes: int
    tolerance: float
    """What the self-test may return."""
    learns: bool = False
    """Whether it goes on learning (``learning``)."""

    @property
    def sources(self) -> list[Path]:
        """The files to compile."""
        learning = [self.folder / f"{self.name}_learn.c"] if self.learns else []
        return [self.folder / f"{self.name}.c", self.folder / f"{self.name}_self_test.c", *learning]


@dataclass(frozen=True)
class Options:
    """How to write a bundle as C."""

    name: str = "policy"
    """What functions and files begin with."""
    golden_steps: int | None = None
    """Recorded steps in the self-test; None for all, or as many as there is room for in ``GOLDEN_BYTES``."""
    precision: Precision = "float32"
    samples: Mapping[str, np.ndarray] | None = None
    """Signals and state (n, k) by name, for the scales of integers; None for those of the golden vectors."""
    tolerance: float = GOLDEN_TOLERANCE
    """Of the self-test."""
    learning: Learning | None = None
    """For a policy that goes on learning; float32 alone."""

    def __post_init__(self) -> None:
        if c_identifier(self.name) != self.name:
            raise ValueError(f"name is {self.name[:100]!r}; expected a C identifier that is no keyword and no macro")
        if self.learning and self.precision != "float32":
            raise ValueError(f"precision is {self.precision}; expected float32 of a policy that goes on learning")


def generate(bundle: Bundle, folder: str | Path, options: Options | None = None) -> Generated:
    """Write the sources of ``bundle`` into ``folder``."""
    folder, contract, options = Path(folder).absolute(), bundle.contract, options or Options()
    source = _source(bundle, options)
    floats = sum(s.size for s in contract.signals) + sum(c.size for c in contract.commands)
    steps = min(len(bundle.golden), options.golden_steps or max(1, GOLDEN_BYTES // (4 * floats)))
    name, texts = options.name, _interface(bundle, options.name, steps, options.tolerance)
    body = _body(source, contract, name, texts["guard"])
    folder.mkdir(parents=True, exist_ok=True)
    for kernel in sorted((HERE / "kernels").glob("*.h")):
        shutil.copyfile(kernel, folder / kernel.name)
    _write(folder / f"{name}.h", "policy.h", texts | {"arena": _arena_members(source.plan)})
    code = {"constants": "\n\n".join(source.constants.values()), "body": _indented(body)}
    safe = {"safe": _safe(contract, name, texts["guard"])}
    hooked = hooks(name, options.learning is not None)
    _write(folder / f"{name}.c", "policy.c", texts | _limits(contract) | safe | code | hooked)
    if options.learning is not None:
        for ending in ("h", "c"):
            _write(folder / f"{name}_learn.{ending}", f"learn.{ending}", texts | options.learning.texts(bundle.digest))
    _write(folder / f"{name}_self_test.c", "self_test.c", texts | _golden(bundle, name, steps))
    arena = 4 * max(source.plan.floats, 1) + 2 * source.plan.integers
    golden_bytes = 4 * (steps * floats + len(_resumed(bundle, steps)) * contract.state_size)
    made = Generated(
        folder, name, contract, source.constant_bytes, arena, 4 * contract.state_size, golden_bytes, options.tolerance,
        options.learning is not None,
    )  # fmt: skip
    told = {"title": markdown(title(contract)), "contract_digest": contract.digest, "bundle_digest": bundle.digest}
    _write(folder / "README.md", "README.md", texts | told | _table(made))
    return made


def title(contract: Contract) -> str:
    """What is generated, in words."""
    return f"{contract.task} for {contract.robot_name}"


def _source(bundle: Bundle, options: Options) -> Source:
    data = bundle.data()
    if not bundle.shipped:
        try:
            confined.attempt("robo_rl.deploy.build.c.generate:trial", data)
        except confined.Refused as error:
            raise UnsupportedError(f"{error}") from None
    model = load(data)
    if options.learning is not None:
        program = options.learning.lowered(bundle.contract, f"{options.name}_learn_act")
    else:
        program = lower(model, bundle.contract)
    if options.precision != "float32":
        samples = options.samples or golden_samples(bundle.golden)
        quantize(program, record(model, program, samples), 16 if options.precision == "int16" else 8)
    left, inference = set_apart(program, bundle.contract)
    return Source(program, plan(program), left, inference)


def trial(data: bytes) -> bytes:
    """Lower the graph of a bundle: what a process that is confined does with a stranger's file."""
    contract = Contract.from_json(onnx_file.metadata(data)[CONTRACT_KEY])
    program = lower(load(data), contract)
    constants = 4 * sum(buffer.size for buffer in program.buffers if buffer.values is not None)
    for what, found, most in (("operations", len(program.ops), MAX_OPERATIONS), ("bytes", constants, MAX_CONSTANTS)):
        if found > most:
            raise UnsupportedError(f"{found} {what} of C; expected at most {most} for a microcontroller")
    return b""


def golden_samples(golden: Golden) -> dict[str, np.ndarray]:
    """Signals and state of all golden steps."""
    return {**golden.signals, "state": golden.states[:-1]}


def _arena_members(planned: Plan) -> str:
    lines = [f"{INDENT}float floats[{max(planned.floats, 1)}];"]
    if planned.integers:
        lines.append(f"{INDENT}int16_t integers[{planned.integers}];")
    return "\n".join(lines)


def _write(path: Path, template: str, texts: dict[str, str]) -> None:
    path.write_text(Template((HERE / "templates" / template).read_text()).substitute(texts))


def _body(source: Source, contract: Contract, name: str, guard: str) -> list[str]:
    program = source.program
    refuse = f"return {guard}_NOT_FINITE;"
    for signal, member in zip(contract.signals, signal_names(contract), strict=True):
        source.require(f"all_finite(signals->{member}, {signal.size}u)", refuse)
    source.add_all()
    commands = list(zip(contract.commands, _command_names(contract), strict=True))
    for command, member in commands:
        source.copy(program.results[f"command:{command.name}"], f"proposed.{member}")
        source.require(f"all_finite(proposed.{member}, {command.size}u)", refuse)
    blocks = [buffer for buffer in program.buffers if buffer.kind == "state"]
    following = [program.results[f"state:{block.name}"] for block in contract.state]
    for before, after in zip(blocks, following, strict=True):
        source.require_finite(after[(after < before.base) | (after >= before.base + before.size)], refuse)
    for command, member in commands:
        source.statements.append(_bounded(name, command, member, "proposed"))
    for before, after in zip(blocks, following, strict=True):
        source.store_state(before.addresses, after)
    used = "\n".join(source.statements)
    unused = [f"(void){name};" for name in ("signals", "state", "arena") if f"{name}->" not in used]
    return [*unused, *source.statements]


def _safe(contract: Contract, name: str, guard: str) -> str:
    """The body of the function that gives the safe commands."""
    signals = dict(zip((s.name for s in contract.signals), signal_names(contract), strict=True))
    commands = list(zip(contract.commands, _command_names(contract), strict=True))
    held = [(command, member) for command, member in commands if command.safe == "hold"]
    lines = [f"{name}_commands measured;"] if held else ["(void)signals;"]
    for command, member in held:
        places = [f"signals->{signals[signal]}[{i}]" for signal, i in contract.feedback(command)]
        lines += [f"measured.{member}[{i}] = {place};" for i, place in enumerate(places)]
        fact = f"all_finite(measured.{member}, {command.size}u)"
        lines.append(f"if (!{fact}) {{\n{INDENT}return {guard}_NOT_FINITE;\n}}")
    for command, member in commands:
        if command.safe == "hold":
            lines.append(_bounded(name, command, member, "measured"))
        else:
            values = enumerate(literal(np.float32(value)) for value in command.safe)
            lines += [f"commands->{member}[{i}] = {value};" for i, value in values]
    return _indented([*lines, f"return {guard}_OK;"])


def _bounded(name: str, command: Command, member: str, source: str) -> str:
    """The statement that gives a command, from floats in ``source``, within its limits."""
    limits = f"{name}_lower.{member}, {name}_upper.{member}"
    return f"bounded({source}.{member}, {limits}, commands->{member}, {command.size}u);"


def _interface(bundle: Bundle, name: str, steps: int, tolerance: float) -> dict[str, str]:
    contract, guard = bundle.contract, name.upper()
    return {
        "name": name,
        "guard": guard,
        "title": c_comment(title(contract)),
        "period": literal(np.float32(contract.control_period)),
        "period_ms": f"{1000 * contract.control_period:g}",
        "contract_digest": c_string(contract.digest),
        "bundle_digest": c_string(bundle.digest),
        "golden_steps": str(steps),
        "tolerance": literal(np.float32(tolerance)),
        "signals": _members(signal_names(contract), contract.signals),
        "commands": _members(_command_names(contract), contract.commands),
        "state": _state_members(contract),
        "elements": _elements(contract, guard),
        "initial": _state_values(contract),
    }


def signal_names(contract: Contract) -> list[str]:
    """The members of the signals' structure in C."""
    return c_names([signal.name for signal in contract.signals], "signals")


def _command_names(contract: Contract) -> list[str]:
    return c_names([command.name for command in contract.commands], "commands")


def _block_names(contract: Contract) -> list[str]:
    return c_names([block.name for block in contract.state], "state")


def _members(names: Sequence[str], channels: Sequence[Signal | Command]) -> str:
    lines = []
    for name, channel in zip(names, channels, strict=True):
        kind = "unit quaternion, " if getattr(channel, "kind", "") == "quaternion" else ""
        text = c_comment(f"{channel.unit}, {kind}{channel.frame}: {_order(channel)}")
        lines.append(f"{INDENT}float {name}[{channel.size}]; /* {text} */")
    return "\n".join(lines)


def _order(channel: Signal | Command) -> str:
    """The order of a channel's floats, in words."""
    names = ", ".join(channel.elements) if len(channel.elements) <= 16 else f"{channel.elements[0]} and so on"
    if channel.dimensions == (len(channel.elements),):
        return names
    places = " x ".join(map(str, channel.dimensions)) + (", row by row" if len(channel.dimensions) > 1 else "")
    return f"{places}: {names}" if names else places


def _state_members(contract: Contract) -> str:
    lines = [
        f"{INDENT}float {name}[{block.size}]; /* {' x '.join(map(str, block.shape))} */"
        for name, block in zip(_block_names(contract), contract.state, strict=True)
    ]
    return "\n".join(lines) or f"{INDENT}uint8_t nothing;"


def _state_values(contract: Contract) -> str:
    named = zip(_block_names(contract), contract.state, strict=True)
    values = [_initializer(name, block.initial) for name, block in named]
    return _indented(values, 2) or f"{INDENT}{INDENT}0"


def _elements(contract: Contract, guard: str) -> str:
    channels: list[tuple[str, Signal | Command]] = [
        *zip(signal_names(contract), contract.signals, strict=True),
        *zip(_command_names(contract), contract.commands, strict=True),
    ]
    elements = [(name, element, i) for name, channel in channels for i, element in enumerate(channel.elements)]
    taken = set(re.findall(r"\$\{guard\}(_\w+)", (HERE / "templates" / "policy.h").read_text()))
    names = []
    for name, element, _ in elements:
        ending = re.sub(r"\W", "_", f"_{name}_{element}", flags=re.ASCII).upper()
        names.append(f"{guard}{ending}_" if ending in taken else f"{guard}{ending}")
    require_distinct(names, [f"{name}/{element}" for name, element, _ in elements], "elements")
    return ",\n".join(f"{INDENT}{name} = {i}" for name, (_, _, i) in zip(names, elements, strict=True))


def _initializer(name: str, values: Iterable[float]) -> str:
    numbers = np.fromiter(values, np.float64)
    with np.errstate(over="ignore"):
        single = numbers.astype(np.float32)
    lost = np.isfinite(numbers) & ~np.isfinite(single)
    if lost.any():
        raise UnsupportedError(f"{name}: {numbers[lost][0]:g}; expected numbers that a float32 can hold")
    decimals = ", ".join(f"{value:.6g}" for value in single.tolist())
    told = f" /* {decimals} */" if any("p" in literal(value) for value in single) else ""
    return f".{name} = {{{', '.join(map(literal, single))}}},{told}"


def _values(names: Sequence[str], channels: Sequence[Signal | Command], of: Callable[..., Iterable[float]]) -> str:
    return _indented([_initializer(name, of(c)) for name, c in zip(names, channels, strict=True)])


def _limits(contract: Contract) -> dict[str, str]:
    signals, commands = signal_names(contract), _command_names(contract)
    return {
        "lower": _values(commands, contract.commands, lambda c: c.lower),
        "upper": _values(commands, contract.commands, lambda c: c.upper),
        "signals_lower": _values(signals, contract.signals, lambda s: s.bounds[0]),
        "signals_upper": _values(signals, contract.signals, lambda s: s.bounds[1]),
    }


def _golden(bundle: Bundle, name: str, steps: int) -> dict[str, str]:
    contract, golden = bundle.contract, bundle.golden
    signals, commands = signal_names(contract), _command_names(contract)

    def records(which: range, names: Sequence[str], of: Callable[[int], Iterable[np.ndarray]]) -> str:
        rows = [[_initializer(n, v.ravel()) for n, v in zip(names, of(k), strict=True)] for k in which]
        return "\n".join(f"{INDENT}{{\n{_indented(row, 2)}\n{INDENT}}}," for row in rows)

    comparisons = [
        f"worst = worse(worst, commands.{n}, recorded_commands[k].{n}, {name}_lower.{n}, {name}_upper.{n}, {c.size}u);"
        for n, c in zip(commands, contract.commands, strict=True)
    ]
    resumed = _resumed(bundle, steps)
    return {
        "signals": records(range(steps), signals, lambda k: [golden.signals[s.name][k] for s in contract.signals]),
        "commands": records(range(steps), commands, lambda k: [golden.commands[c.name][k] for c in contract.commands]),
        "states": _states(name, resumed, records(resumed, _block_names(contract), lambda k: _blocks(bundle, k))),
        "resume": _resume(bool(resumed)),
        "comparisons": _indented(comparisons, 2),
    }


def _resumed(bundle: Bundle, steps: int) -> range:
    """Steps before which the self-test takes the recorded memory; none where that would take more flash than the
    recorded steps do."""
    contract, resumed = bundle.contract, range(RESUMED, steps, RESUMED)
    floats = sum(s.size for s in contract.signals) + sum(c.size for c in contract.commands)
    return resumed if 0 < len(resumed) * contract.state_size <= steps * floats else range(0)


def _blocks(bundle: Bundle, k: int) -> list[np.ndarray]:
    """The memory before a recorded step, by blocks."""
    ends = np.cumsum([int(np.prod(block.shape)) for block in bundle.contract.state])
    return np.split(bundle.golden.states[k], ends[:-1])


def _states(name: str, resumed: range, records: str) -> str:
    if not resumed:
        return ""
    return f"\nstatic const {name}_state recorded_states[{len(resumed)}] = {{\n{records}\n}};\n"


def _resume(any_are: bool) -> str:
    if not any_are:
        return ""
    lines = [
        f"if ((k > 0u) && ((k % {RESUMED}u) == 0u)) {{",
        f"{INDENT}*state = recorded_states[(k / {RESUMED}u) - 1u];",
        "}",
    ]
    return _indented(lines, 2) + "\n"


def _indented(lines: Iterable[str], depth: int = 1) -> str:
    return "\n".join(INDENT * depth + line for text in lines for line in text.split("\n"))


def _table(made: Generated) -> dict[str, str]:
    rows = {
        "constants (flash)": made.constant_bytes,
        "recorded steps of the self-test (flash)": made.golden_bytes,
        "state (RAM, one per robot)": made.state_bytes,
        "arena (RAM, may be shared)": made.arena_bytes,
    }
    return {"sizes": "\n".join(f"| {what} | {size:,} |" for what, size in rows.items())}
