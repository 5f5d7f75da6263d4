"""Generated C in the layout that others build: CMake, Arduino and PlatformIO, Zephyr, Crazyflie, SimpleFOC."""

from __future__ import annotations

from pathlib import Path
from string import Template
from typing import Literal

import numpy as np

from robo_rl.controllers.multirotor.facts import Multirotor
from robo_rl.deploy.build.c.emit import literal
from robo_rl.deploy.build.c.generate import Generated, Options, generate, title
from robo_rl.deploy.build.c.onboard import write_onboard
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.files.escaping import c_comment, cmake_string, json_string, kconfig_string, properties_value

TITLES = {
    ".txt": cmake_string,
    ".c": c_comment,
    ".h": c_comment,
    ".json": json_string,
    ".properties": properties_value,
    "Kconfig": kconfig_string,
}
"""How the title is written in a file, by the end of its name."""
DESCRIPTION = "a trained policy as plain C"
PACKAGES = Path(__file__).parent / "packages"
Package = Literal["cmake", "arduino", "zephyr", "crazyflie", "simplefoc"]
CRAZYFLIE_LOOP_HZ = 1000
CRAZYFLIE_SIGNALS = {
    "position", "orientation", "linear_velocity", "angular_velocity", "position_setpoint", "linear_velocity_setpoint",
}  # fmt: skip
SIMPLEFOC = {
    ("current_target", ("q",)): ("speed", {"rotor_speed", "current", "rotor_speed_setpoint"}),
    ("voltage", ("d", "q")): ("current", {"rotor_speed", "current", "bus_voltage", "current_setpoint"}),
}
"""By the one command: which loop of SimpleFOC it is, and the signals that are there."""
SHIFT = 0.1
"""Of a sensor's noise, by which a package shifts a reading that would repeat at rest."""


class PackageError(ValueError):
    """The policy does not fit the package."""


def package(bundle: Bundle, folder: str | Path, kind: Package, options: Options | None = None) -> Generated:
    """Write sources, gate and link included, into ``folder / "src"``; around them what a build system needs, and a main
    that arms, steps and stops.
    """
    folder, contract = Path(folder), bundle.contract
    rate = round(1 / contract.control_period)
    roots, own = [PACKAGES / kind], {}
    if kind == "crazyflie":
        _require_crazyflie(bundle, rate)
        own = {"thrusts": _thrusts(bundle)}
    if kind == "simplefoc":
        loop, own = _simplefoc(bundle)
        roots = [PACKAGES / kind / part for part in ("both", loop)]
    made = generate(bundle, folder / "src", options)
    sources = [*made.sources, *write_onboard(made)]
    texts = {
        "name": made.name,
        "guard": made.name.upper(),
        "contract_digest": contract.digest,
        "rate": str(rate),
        "sources": " ".join(f"src/{source.name}" for source in sources),
        "objects": "\n".join(f"obj-y += {source.stem}.o" for source in sources),
        **own,
    }
    for root, file in sorted((one, path) for one in roots for path in one.rglob("*") if path.is_file()):
        target = folder / file.relative_to(root)
        target = target.with_stem(file.stem.replace("policy", made.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        escaped = TITLES.get(file.suffix or file.name)
        told = {"title": escaped(f"{title(contract)}: {DESCRIPTION}")} if escaped else {}
        target.write_text(Template(file.read_text()).substitute(texts | told))
    return made


def _require_crazyflie(bundle: Bundle, rate: int) -> None:
    contract = bundle.contract
    signals = {signal.name for signal in contract.signals}
    commands = [(command.name, command.size) for command in contract.commands]
    if signals != CRAZYFLIE_SIGNALS or commands != [("rotor_speed", 4)]:
        raise PackageError(
            f"{bundle.path}: its signals are {sorted(signals)} and its commands {commands}; the Crazyflie app gives "
            f"{sorted(CRAZYFLIE_SIGNALS)} and takes four rotor speeds"
        )
    if CRAZYFLIE_LOOP_HZ % rate:
        raise PackageError(f"{bundle.path}: its rate is {rate} Hz; expected a divisor of {CRAZYFLIE_LOOP_HZ} Hz")


def _thrusts(bundle: Bundle) -> str:
    """The rotors' thrust curves as C, from the facts in the contract, in the order of the commands."""
    try:
        rotors = [rotor.thrust for rotor in Multirotor.of(bundle.contract.robot).rotors]
    except ValueError as error:
        raise PackageError(f"{bundle.path}: {error}; the Crazyflie app needs the rotors' thrust curves") from None
    return ",\n".join(f"    {{{', '.join(literal(np.float32(c)) for c in rotor)}}}" for rotor in rotors)


def _simplefoc(bundle: Bundle) -> tuple[str, dict[str, str]]:
    """The loop that the policy takes the place of, and the contract's figures as C."""
    contract = bundle.contract
    signals = {signal.name: signal for signal in contract.signals}
    commands = [(command.name, command.elements) for command in contract.commands]
    loop, expected = SIMPLEFOC.get(commands[0], ("", set())) if len(commands) == 1 else ("", set())
    if set(signals) != expected:
        raise PackageError(
            f"{bundle.path}: its signals are {sorted(signals)} and its commands {commands}; a SimpleFOC motor "
            "fits policies of pmsm-speed, whose command is the current in q, and of pmsm-current, whose is the voltage"
        )
    command = contract.commands[0]
    figures = {
        f"{short}_shift": SHIFT * float(np.min(signals[name].noise or 0.0)) if name in signals else 0.0
        for short, name in (("speed", "rotor_speed"), ("current", "current"), ("voltage", "bus_voltage"))
    }
    figures["current"] = max(command.upper)
    figures["bandwidth"] = getattr(command.law, "bandwidth", 0.0)
    return loop, {name: literal(np.float32(figure)) for name, figure in figures.items()}
