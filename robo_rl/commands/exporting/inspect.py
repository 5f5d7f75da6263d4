"""robo-rl inspect."""

from __future__ import annotations

import hashlib
import json as json_text
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from robo_rl.console import give, say
from robo_rl.contract import Command, Contract, Law, Numbers, RateLaw, Robot, Signal

if TYPE_CHECKING:
    from robo_rl.deploy.robot.bundle import Bundle
    from robo_rl.deploy.robot.bundle.signing import Key

KEPT_SPACE = "\N{NO-BREAK SPACE}"
"""Where no line may end."""


def main(
    file: Annotated[Path, tyro.conf.Positional],
    extract: Path | None = None,
    trusted_keys: Path | None = None,
    json: bool = False,
) -> int:
    """Show the contract of a policy file: signals, commands, limits. Needs neither torch nor a simulator.

    A policy of a robot or a task that robo-rl doesn't include brings their files, which --extract writes.

    With --json: file, digest, contract_digest, golden_steps, golden_error, signers (fingerprint, and
    name where the key is trusted), attached (SHA-256 of the files that it brings, by name), contract.

    Args:
        file: A bundle (*.onnx).
        extract: Write the files of robot and task that it brings into this new folder; nothing of them is run.
        trusted_keys: Refuse a file that no key in this file of public keys signed.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.deploy.robot.bundle.signing import read_signed

    bundle, _ = read_signed(file, trusted_keys)
    error = bundle.golden_error()
    say(f"{file}\n", json)
    say(describe(bundle.contract), json)
    say(f"\ngolden    {len(bundle.golden)} steps, reproduced here within {error:.1g} of the commands' range", json)
    say(f"digest    {bundle.digest} (file)\n          {bundle.contract.digest} (contract)", json)
    known, problem = _signers(bundle, trusted_keys)
    attached = {name: hashlib.sha256(data).hexdigest() for name, data in bundle.attached.files.items()}
    for i, (name, found) in enumerate(attached.items()):
        say(f"{'' if i else 'brings':<10}{name}, {len(bundle.attached.files[name]):,} bytes, {found[:16]}…", json)
    if extract is not None:
        bundle.attached.write(extract)
        say(f"{extract}: {len(attached)} files", json)
    say(f"signed    {problem or ', '.join(map(str, known)) or 'no'}", json)
    give(
        {
            "file": str(file),
            "digest": bundle.digest,
            "contract_digest": bundle.contract.digest,
            "golden_steps": len(bundle.golden),
            "golden_error": error,
            "signers": [{"fingerprint": key.fingerprint, "name": key.name} for key in known],
            "attached": attached,
            "contract": json_text.loads(bundle.contract.to_json()),
        },
        json,
    )
    return 0


def _signers(bundle: Bundle, trusted_keys: Path | None) -> tuple[list[Key], str]:
    """Whose right signatures there are, or why that can't be told. Names are of keys that are trusted."""
    from robo_rl.deploy.robot.bundle.signing import Key, SignatureError, read_trusted, signers

    names = {key.text: key.name for key in read_trusted(trusted_keys)} if trusted_keys else {}
    try:
        return [Key(key.text, names.get(key.text, "")) for key in signers(bundle.path, bundle.digest)], ""
    except SignatureError as error:
        return [], str(error)


def describe(contract: Contract) -> str:
    """A contract for people."""
    made, network = contract.provenance, contract.network
    lines = [
        f"task      {contract.task}, robot {contract.robot_name}, {1 / contract.control_period:g} Hz",
        f"trained   {made.algorithm}, seed {made.seed}, {made.environment_steps:,} control steps, "
        + ", ".join(f"{name} {version}" for name, version in made.versions.items()),
        f"network   {' × '.join(map(str, network.hidden))} {network.activation}"
        + (f", recurrent {network.recurrent}" if network.recurrent else "")
        + (f", {network.actions} actions per inference" if network.actions > 1 else "")
        + "".join(f", {e.kind} on {e.group} {' × '.join(map(str, e.shape))}" for e in network.encoders),
        *([f"source    {made.source}, SHA-256 {made.source_digest}"] if made.source else []),
        "",
        "signals",
    ]
    for signal in contract.signals:
        lines += _signal(contract, signal)
    lines += ["", "commands"]
    for command in contract.commands:
        lines += _command(contract, command)
    lines += ["", "memory"]
    lines += [f"  {block.name:<26}{' × '.join(map(str, block.shape))}" for block in contract.state]
    told = {name: value for name, value in contract.facts.items() if name != "ranges"}
    facts = ["facts", *_facts(told, 2)] if told else []
    return "\n".join([*lines, "", *_safety(contract), *_robot(contract.robot), *facts])


def _signal(contract: Contract, signal: Signal) -> list[str]:
    kind = "quaternion, " if signal.kind == "quaternion" else ""
    source = {"operator": " (from the operator)", "runtime": f" (the runtime tells how old {signal.age_of} is)"}
    shape = "" if signal.shape is None else " × ".join(map(str, signal.shape)) + " "
    unit = _unit(signal.unit)
    lines = [
        f"  {signal.name:<26}{kind}{unit or 'no unit'}, frame {signal.frame}{source.get(signal.source, '')}",
        *_wrapped("", f"{shape}{', '.join(signal.elements)}"),
        *_wrapped("valid", _span(signal.lower, signal.upper), unit),
    ]
    if signal.seen_low is not None and signal.seen_high is not None:
        lines += _wrapped("seen", _span(signal.seen_low, signal.seen_high), unit)
    if signal.noise is not None:
        low, high = (1000 * x for x in signal.delay)
        lines += _wrapped("noise", _list(signal.noise), unit) + _wrapped("latency", f"{low:g} to {high:g} ms")
    if signal.period is not None:
        timeout = contract.timeout(signal)
        old = "may be absent" if timeout is None else f"a fault when older than {1000 * timeout:g} ms"
        lines.append(f"  {'':<26}every {1000 * signal.period:g} ms, held in between, {old}")
    return lines


def _unit(unit: str) -> str:
    """A contract's unit as people write it; "" for a number without one."""
    return "" if unit == "1" else unit.replace("*", " ").replace("^2", "²").replace("^3", "³")


def _wrapped(word: str, text: str, unit: str = "") -> list[str]:
    """Lines of at most 100 characters, below a name, the unit at the end. No line ends within a range."""
    indent = " " * 28
    begin = f"{word:<8}" if word else ""
    unit = f" {unit}".replace(" ", KEPT_SPACE) if unit else ""
    whole = text.replace(" to ", f"{KEPT_SPACE}to{KEPT_SPACE}") + unit
    lines = textwrap.wrap(whole, 100, initial_indent=indent + begin, subsequent_indent=indent + " " * len(begin))
    return [line.replace(KEPT_SPACE, " ") for line in lines]


def _command(contract: Contract, command: Command) -> list[str]:
    safe = command.safe if command.safe == "hold" else _list(command.safe)
    unit = _unit(command.unit)
    lines = [
        f"  {command.name:<26}{unit or 'no unit'}, frame {command.frame}",
        *_wrapped("", ", ".join(command.elements)),
        *_wrapped("limits", _span(command.lower, command.upper), unit),
        *_wrapped("safe", f"{safe}, stops by '{command.stop}'"),
    ]
    if command.needs_feedback:
        names = dict.fromkeys(name for name, _ in contract.feedback(command))
        lines.append(f"  {'':<26}measured by {', '.join(names)}")
    if command.law is not None:
        lines.append(f"  {'':<26}law {_law(command.law)}")
    return lines


def _law(law: Law) -> str:
    if isinstance(law, RateLaw):
        return f"{law.kind}, at least {_list(law.bandwidth)} 1/s, trained with {_span(*law.trained)}"
    gains = [(name, value) for name, value in vars(law).items() if name != "kind"]
    return f"{law.kind}" + "".join(f", {name} {_list(x) if isinstance(x, tuple) else x}" for name, x in gains)


def _safety(contract: Contract) -> list[str]:
    safety = contract.safety
    tilt = "" if safety.tilt_limit is None else f" or a tilt beyond {safety.tilt_limit:.2f} rad"
    lines = [
        f"safety    signals older than {1000 * safety.signal_timeout:g} ms{tilt} are faults; "
        f"on a fault: {safety.on_fault}"
    ]
    for envelope in safety.envelope:
        limits = [f"{name} {x}" for name, x in vars(envelope).items() if name != "signal" and x is not None]
        lines.append(f"          {envelope.signal}: {', '.join(limits)} {contract.signal(envelope.signal).unit}")
    if safety.collision is not None:
        watched = safety.collision
        lines.append(f"          {watched.scan}: at least {watched.time:g} s to a collision")
    return lines


def _robot(robot: Robot) -> list[str]:
    width = max(len(actuator.name) for actuator in robot.actuators)
    lines = [f"robot     {robot.name}, {robot.kind}"]
    for a in robot.actuators:
        effort = {"rad": "N m", "rad/s": "N m", "N*m": "N m"}.get(a.unit, "N")
        strength = "" if a.effort is None else f", {a.effort:g} {effort}"
        speed = "" if a.speed is None else f", {a.speed:g} {'m/s' if effort == 'N' else 'rad/s'}"
        lines.append(f"  {a.name:<{width}}  {a.quantity} {a.lower:g} to {a.upper:g} {_unit(a.unit)}{strength}{speed}")
    return [*lines, *_facts(robot.facts, 2)]


def _facts(facts: dict[str, Any], indent: int) -> list[str]:
    """The kind's own facts, objects in lists one per line."""
    lines = []
    for name, value in facts.items():
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            lines.append(f"{' ' * indent}{name}")
            lines += [f"{' ' * (indent + 2)}{', '.join(f'{k} {_fact(v)}' for k, v in item.items())}" for item in value]
        elif isinstance(value, dict):
            lines += [f"{' ' * indent}{name}", *_facts(value, indent + 2)]
        else:
            lines.append(f"{' ' * indent}{name} {_fact(value)}")
    return lines


def _fact(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_fact, value)) + "]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _list(numbers: Numbers | float) -> str:
    values = numbers if isinstance(numbers, tuple) else (numbers,)
    same = len(set(values)) == 1
    return f"{values[0]:g}" if same else "[" + ", ".join(f"{x:.4g}" for x in values) + "]"


def _span(low: Numbers | float, high: Numbers | float) -> str:
    lows, highs = (x if isinstance(x, tuple) else (x,) for x in (low, high))
    count = max(len(lows), len(highs))
    lows, highs = (x * count if len(x) < count else x for x in (lows, highs))
    if len(set(lows)) == 1 and len(set(highs)) == 1:
        return f"{lows[0]:g} to {highs[0]:g}"
    return ", ".join(f"{a:.3g} to {b:.3g}" for a, b in zip(lows, highs, strict=True))
