"""robo-rl inspect."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import Annotated

import tyro

from robo_rl.console import give, say
from robo_rl.contract import Contract, Legged, Multirotor


def main(file: Annotated[Path, tyro.conf.Positional], json: bool = False) -> int:
    """Show what a policy file reads, commands and promises. Needs neither torch nor a simulator.

    With --json: file, digest, contract_digest, golden_steps, golden_error, contract.

    Args:
        file: A bundle (*.onnx).
        json: Print one JSON object on the last line of stdout.
    """
    from deploy.bundle import Bundle

    bundle = Bundle.read(file)
    error = bundle.golden_error()
    say(f"{file}\n", json)
    say(describe(bundle.contract), json)
    say(f"\ngolden    {len(bundle.golden)} steps, reproduced here within {error:.1g} of the commands' range", json)
    say(f"digest    {bundle.digest} (file)\n          {bundle.contract.digest} (contract)", json)
    give(
        {
            "file": str(file),
            "digest": bundle.digest,
            "contract_digest": bundle.contract.digest,
            "golden_steps": len(bundle.golden),
            "golden_error": error,
            "contract": json_text.loads(bundle.contract.to_json()),
        },
        json,
    )
    return 0


def describe(contract: Contract) -> str:
    """A contract for people."""
    made = contract.provenance
    robot = contract.robot
    lines = [
        f"task      {contract.task}, robot {contract.robot_name}, {1 / contract.control_period:g} Hz",
        f"trained   {made.algorithm}, seed {made.seed}, {made.environment_steps:,} control steps, "
        + ", ".join(f"{name} {version}" for name, version in made.versions.items()),
        f"network   {' × '.join(map(str, made.hidden))} {made.activation}",
        "",
        "signals",
    ]
    for signal in contract.signals:
        kind = "quaternion, " if signal.kind == "quaternion" else ""
        source = " (from the operator)" if signal.source == "operator" else ""
        lines.append(f"  {signal.name:<26}{', '.join(signal.elements)}   {signal.unit}, {kind}{signal.frame}{source}")
        lines.append(f"  {'':<26}valid {_span(signal.lower, signal.upper)}")
        if signal.seen_low is not None and signal.seen_high is not None:
            lines.append(f"  {'':<26}met   {_span(signal.seen_low, signal.seen_high)}")
        if signal.noise is not None:
            low, high = (1000 * x for x in signal.delay)
            lines.append(f"  {'':<26}noise {_list(signal.noise)}, latency {low:g} to {high:g} ms")
    lines += ["", "commands"]
    for command in contract.commands:
        lines.append(f"  {command.name:<26}{', '.join(command.elements)}   {command.unit}, {command.frame}")
        lines.append(f"  {'':<26}limits {_span(command.lower, command.upper)}, safe {_list(command.safe)}")
    lines += ["", "memory"]
    lines += [f"  {block.name:<26}{' × '.join(map(str, block.shape))}" for block in contract.state]
    safety = contract.safety
    lines += [
        "",
        f"safety    signals older than {1000 * safety.signal_timeout:g} ms or a tilt beyond "
        f"{safety.tilt_limit:.2f} rad are faults; on a fault: {safety.on_fault}",
    ]
    lines += _multirotor(robot) if isinstance(robot, Multirotor) else _legged(robot)
    return "\n".join(lines)


def _multirotor(robot: Multirotor) -> list[str]:
    lines = [f"robot     {robot.kind}, {robot.mass:g} kg, inertia {_list(robot.inertia)} kg m²"]
    for rotor in robot.rotors:
        place = ", ".join(f"{x:+.3f}" for x in rotor.position)
        curve = " ".join(f"{c:+.4g}{unit}" for c, unit in zip(rotor.thrust, ("", " Ω", " Ω²"), strict=True) if c)
        lines.append(f"  {rotor.name:<8}at ({place}) m, {rotor.spin:<4} T = {curve} N, {rotor.rise:g}/{rotor.fall:g} s")
    return lines


def _legged(robot: Legged) -> list[str]:
    lines = [f"robot     {robot.kind}, feet {', '.join(robot.feet)}"]
    width = max(len(joint.name) for joint in robot.joints)
    for joint in robot.joints:
        lines.append(
            f"  {joint.name:<{width}}  stands at {joint.stand:+.3f} rad, {joint.lower:+.3f} to {joint.upper:+.3f}, "
            f"{joint.effort:g} N m, {joint.velocity:g} rad/s, gains {joint.stiffness:g} and {joint.damping:g}"
        )
    return lines


def _list(numbers: tuple[float, ...]) -> str:
    same = len(set(numbers)) == 1
    return f"{numbers[0]:g}" if same else "[" + ", ".join(f"{x:.4g}" for x in numbers) + "]"


def _span(low: tuple[float, ...], high: tuple[float, ...]) -> str:
    if len(set(low)) == 1 and len(set(high)) == 1:
        return f"{low[0]:g} to {high[0]:g}"
    return ", ".join(f"{a:.3g} to {b:.3g}" for a, b in zip(low, high, strict=True))
