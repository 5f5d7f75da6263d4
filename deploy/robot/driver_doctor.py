"""The bench check of a robot through its driver: what is there, how often, how old, and what it does in silence.

Nothing is enabled and nothing moves: it connects, reads for some seconds at the policy's rate, and closes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robo_rl.contract import Contract
from robo_rl.deploy.robot.doctor import Finding, Series, examine, lane
from robo_rl.deploy.robot.drivers.bus_servos.joint_order import examine_order, joints_of
from robo_rl.deploy.robot.drivers.driver import Driver, DriverError, Identity
from robo_rl.deploy.robot.drivers.ticks import MOST, NOTABLE

BUSY, MOSTLY = 0.5, 0.95
"""Part of a control period that so many of the readings may take: the policy and the commands need the rest."""
UNITS = {"V": "V", "A": "A", "%": "%", "m": "m", "degC": "°C"}
"""With which the names in ``Health.figures`` end, and as people write them."""
CLOCK = "clock's rate"
"""The name under which drivers tell how fast their robot's clock runs, in ``Health.figures``."""


@dataclass
class Recording:
    """What a driver gave for some seconds."""

    signals: dict[str, Series] = field(default_factory=dict)
    """Of each signal, its samples with a new stamp."""
    took: list[float] = field(default_factory=list)
    """s, of each reading."""
    problems: list[str] = field(default_factory=list)
    figures: Mapping[str, float] = field(default_factory=dict)
    """The newest, by name and unit."""


def listen(driver: Driver, contract: Contract, seconds: float, clock: Any = time) -> Recording:
    """Read a connected driver at the contract's rate. ``clock`` does what ``time`` does."""
    found, stamps = Recording(), dict[str, int]()
    begun = clock.monotonic_ns()
    for step in range(round(seconds / contract.control_period)):
        wait = begun / 1e9 + step * contract.control_period - clock.monotonic_ns() / 1e9
        clock.sleep(max(0.0, wait))
        now, real = clock.monotonic_ns() // 1000, time.perf_counter()
        samples = driver.read(now)
        found.took.append(time.perf_counter() - real)
        for name, (value, stamp) in samples.items():
            if stamps.get(name) != stamp:
                stamps[name] = stamp
                found.signals.setdefault(name, Series()).add(1e-6 * now, 1e-6 * (now - stamp), np.asarray(value))
        health = driver.health()
        found.problems += [problem for problem in health.problems if problem not in found.problems]
        found.figures = health.figures
    return found


def examine_driver(
    driver: Driver, contract: Contract, seconds: float, clock: Any = time, say: Callable[[str], object] = str,
    motion: float = 0.0,
) -> list[Finding]:  # fmt: skip
    """Findings on a robot that is connected to here, and left as it is; ``say`` is told what to do meanwhile.

    For ``motion`` s after that a person moves the joints of a robot whose servos may be exchanged.
    """
    try:
        identity = driver.connect()
    except DriverError as error:
        return [Finding(False, "connection", str(error))]
    findings = describe(driver, identity)
    say(f"recording for {seconds:g} s; keep the robot at rest")
    found = listen(driver, contract, seconds, clock)
    findings += [Finding(False, "problem", problem) for problem in found.problems]
    measured = set(driver.measured)
    findings += [one for one in examine(contract, found.signals) if one.subject in measured]
    elsewhere = [s.name for s in contract.signals if s.source == "sensor" and s.name not in measured]
    if elsewhere:
        findings.append(Finding(False, "signals", f"this driver does not measure {', '.join(elsewhere)}"))
    findings += [*lane(contract), _reading(found, contract), *_clock(found), *_figures(found)]
    return findings + _order(driver, contract, motion, clock, say)


def _order(
    driver: Driver, contract: Contract, motion: float, clock: Any, say: Callable[[str], object]
) -> list[Finding]:
    if not getattr(driver, "by_hand", False):
        return []
    if motion <= 0:
        told = "nothing here tells which servo is which joint: move each by hand once, with --motion 40"
        return [Finding(True, "joints", told)]
    names = ", ".join(name for name, *_ in joints_of(contract))
    say(f"now move one joint after the other by hand for {motion:g} s, by 0.3 rad or more, holding the others: {names}")
    return examine_order(contract, listen(driver, contract, motion, clock).signals)


def describe(driver: Driver, identity: Identity) -> list[Finding]:
    """What the robot says of itself, and what it does without commands."""
    details = ", ".join(f"{name} {value}" for name, value in identity.details.items())
    silence = f"without commands it {driver.silence.value}" + (f"; {driver.guard}" if driver.guard else "")
    return [Finding(True, "robot", f"{identity.robot}: {details}"), Finding(True, "silence", silence)]


def _reading(found: Recording, contract: Contract) -> Finding:
    median, long = np.quantile(found.took, [0.5, MOSTLY])
    most = BUSY * contract.control_period
    took = f"a reading takes {1e3 * median:.1f} ms in the median, {1e3 * long:.1f} ms at {100 * MOSTLY:.0f} %"
    return Finding(bool(long <= most), "reading", took if long <= most else f"{took}; expected {1e3 * most:.1f} ms")


def _clock(found: Recording) -> list[Finding]:
    rate = found.figures.get(CLOCK)
    if rate is None:
        return []
    if abs(rate - 1.0) < NOTABLE:
        return [Finding(True, "clock", "the robot's clock runs as this computer's does")]
    return [Finding(abs(rate - 1.0) <= MOST, "clock", f"the robot's clock runs at {rate:.3f} of this computer's")]


def _figures(found: Recording) -> list[Finding]:
    """A line for each quantity that several parts have, such as the temperatures of joints; one for each other one."""
    findings, groups = [], dict[tuple[str, str], list[str]]()
    for name, value in found.figures.items():
        quantity, _, part = name.partition("/")
        label, unit = _unit(part or quantity)
        if name == CLOCK:
            continue
        if part:
            groups.setdefault((quantity, unit), []).append(f"{label} {value:.4g}")
        else:
            findings.append(Finding(True, "counter" if not unit else "measured", f"{label}: {value:.4g}{unit}"))
    findings += [Finding(True, name, f"{', '.join(parts)}{unit}") for (name, unit), parts in groups.items()]
    return findings


def _unit(name: str) -> tuple[str, str]:
    """A name and its unit, which begins with a space: "battery V" is ("battery", " V")."""
    label, _, last = name.rpartition(" ")
    return (label, f" {UNITS[last]}") if last in UNITS else (name, "")
