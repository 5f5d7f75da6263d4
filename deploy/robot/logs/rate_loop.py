"""How fast an autopilot's rate loop follows, from the log of a flight by a policy that commands body rates.

A loop of the bandwidth g turns w towards the commanded rate c: w' = g (c − w), so over a time h in which c stands,
w(t + h) = c + (w(t) − c) exp(−g h). The command takes a while to get there. Gain and delay are those of a grid that
predict each measured rate from the one before it best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from robo_rl.contract import Contract, RateLaw
from robo_rl.deploy.robot.doctor import Finding
from robo_rl.deploy.robot.logs.logfile import StepRecord, spans

COMMAND, MEASURED = "body_rate", "angular_velocity"
DELAYS = np.arange(0.0, 0.061, 0.005)
"""s from a command's sending to the rotors, as far as it is looked for."""
GAINS = np.geomspace(0.5, 80.0, 80)
"""1/s, 7 % apart."""
EARLY, LATE = -0.01, 1.0
"""s that measurements may be old in the middle, when they are used."""
ENOUGH, MOTION = 100, 0.05
"""Steps, and rad/s rms by which the vehicle has to turn otherwise than commanded, to tell a gain by."""
LEAST = (10.0, 10.0, 1.0)
"""1/s about x, y, z, for contracts whose command of body rates has no law: zoo:quadrotor-rates flies at 8 with twice
the error, and falls at 6 (the emulated PX4, yaw at 2.4)."""


def rate_loop_gains(contract: Contract, steps: Sequence[StepRecord]) -> np.ndarray:
    """(3,) 1/s about x, y, z; NaN where the log does not tell. ValueError where the contract has no such loop."""
    signals = {signal.name: i for i, signal in enumerate(contract.signals)}
    commands = [command.name for command in contract.commands]
    if COMMAND not in commands or MEASURED not in signals:
        raise ValueError(f"the policy commands {commands}; expected {COMMAND}, and {MEASURED} among its signals")
    at = sum(signal.size for signal in contract.signals[: signals[MEASURED]])
    first = sum(command.size for command in contract.commands[: commands.index(COMMAND)])
    stamps = np.array([step.stamps[signals[MEASURED]] for step in steps]) / 1e6
    rates = np.array([step.signals[at : at + 3] for step in steps], float).reshape(-1, 3)
    sent = np.array([step.sent[first : first + 3] for step in steps], float).reshape(-1, 3)
    times = np.array([step.time for step in steps]) / 1e6
    new = np.flatnonzero(np.diff(stamps, prepend=-np.inf) > 0)
    if len(new) < ENOUGH:
        return np.full(3, np.nan)
    return np.array([_gain(times, sent[:, i], stamps[new], rates[new, i]) for i in range(3)])


def _gain(times: np.ndarray, sent: np.ndarray, stamps: np.ndarray, rates: np.ndarray) -> float:
    """Of one axis: the gain and the delay that predict each rate from the one before it best."""
    best, gain = math.inf, math.nan
    begin, end, before, after = stamps[:-1], stamps[1:], rates[:-1], rates[1:]
    for delay in DELAYS:
        at = np.searchsorted(times + delay, begin, "right") - 1
        inside = (at >= 0) & (at + 1 < len(times))
        at = at[inside]
        change = np.minimum(times[at + 1] + delay, end[inside])  # the next command gets there, perhaps
        first, then = sent[at], sent[at + 1]
        if inside.sum() < ENOUGH or np.sqrt(np.mean((first - before[inside]) ** 2)) < MOTION:
            continue
        for trial in GAINS:
            there = first + (before[inside] - first) * np.exp(-trial * (change - begin[inside]))
            left = then + (there - then) * np.exp(-trial * (end[inside] - change)) - after[inside]
            if (squares := float(np.mean(left**2))) < best:
                best, gain = squares, float(trial)
    return gain


def needed(contract: Contract) -> tuple[float, ...]:
    """(3,) 1/s about x, y and z: the bandwidth that the policy needs."""
    law = contract.command(COMMAND).law
    return law.bandwidth if isinstance(law, RateLaw) else LEAST


def _impossible(contract: Contract, steps: Sequence[StepRecord]) -> str:
    """Why times, stamps, rates or commands of a log are none, a sentence; "" if they may be."""
    index = next(i for i, signal in enumerate(contract.signals) if signal.name == MEASURED)
    times, stamps = np.array([(step.time, step.stamps[index]) for step in steps]).T
    if (np.diff(times) <= 0).any() or (np.diff(stamps) < 0).any():
        return "its stamps, or the times of steps, go backwards"
    if not EARLY <= (age := float(np.median(times - stamps)) * 1e-6) <= LATE:
        return f"by its stamps it is {age:.3g} s old; expected at most {LATE:g} s: are they of the same clock?"
    where, (low, high) = spans(contract)[MEASURED], contract.signals[index].bounds
    rates = np.array([step.signals[where] for step in steps])
    if not ((rates >= low) & (rates <= high)).all():
        return f"it is not always a number from {low.min():g} to {high.max():g} {contract.signals[index].unit}"
    return "" if np.isfinite([step.sent for step in steps]).all() else "commands are not always finite numbers"


def examine_rate_loop(contract: Contract, steps: Sequence[StepRecord]) -> list[Finding]:
    """A finding for each axis: what was measured, and what the contract says that the policy needs.

    One alone where values, times or stamps are none that a robot gives.
    """
    if steps and MEASURED in spans(contract) and (sentence := _impossible(contract, steps)):
        return [Finding(False, MEASURED, sentence)]
    findings, gains = [], rate_loop_gains(contract, steps)
    for axis, gain, least in zip("xyz", gains, needed(contract), strict=True):
        subject = f"rate loop {axis}"
        if math.isnan(gain):
            told = f"too little motion to tell how fast body rates follow; the policy needs {least:g} 1/s"
            findings.append(Finding(True, subject, told))
            continue
        told = f"body rates follow at {gain:.1f} 1/s about {axis}; the policy needs {least:g}"
        if gain < least:
            told += ": raise the autopilot's rate gains (PX4: MC_ROLLRATE_K and alike)"
        findings.append(Finding(bool(gain >= least), subject, told))
    return findings
