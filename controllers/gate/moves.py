"""The gate's own moves, to the start and in a stop: from where the actuators are, at a bounded rate, within reach.

A move has a reference. It begins at the measured value, goes on slowly, and stays within ``GateConfig.reach`` of the
measured value; the command follows it at the rate limit. Where feedback is missing, old or out of range, the reference
stays where it was.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robo_rl.controllers.gate.codes import Source, State, Stop
from robo_rl.controllers.gate.config import GateConfig, Watch
from robo_rl.controllers.gate.memory import Gate


def begin(config: GateConfig, gate: Gate) -> Gate:
    """Begin a move where the actuators are; where that is not known, at the command that was last sent.

    Before the first arming there was none: what is sent first is what is measured.
    """
    measured, known = _measured(config, gate)
    reference = np.where(known, measured, gate.command)
    command = reference if gate.reaction == Source.SILENT else gate.command
    return replace(gate, reference=reference, command=command, reaction=config.stopped)


def begin_stop(config: GateConfig, gate: Gate) -> Gate:
    """From now on each command is stopped, unless it is already, or nothing was ever sent."""
    if gate.state in (State.IDLE, State.FAULT) and gate.reaction in (config.stopped, Source.SILENT):
        return gate
    return begin(config, gate)


def start_step(config: GateConfig, gate: Gate) -> Gate:
    """One step of the move to the start. Motors without feedback idle until the policy takes over."""
    idle = ~config.measured
    goal = np.where(idle, config.safe, towards(gate.reference, _goal(config, gate), config.slow_step))
    return _move(config, gate, _measured(config, gate), goal, at_once=idle)


def arrived(config: GateConfig, gate: Gate) -> bool:
    """Whether the start is what is commanded."""
    return bool(((gate.command == gate.reference) & (gate.reference == _goal(config, gate))).all())


def _goal(config: GateConfig, gate: Gate) -> np.ndarray:
    """The start, or where actuators without one are."""
    return np.where(np.isnan(config.start), gate.reference, config.start)


def stop_step(config: GateConfig, gate: Gate) -> Gate:
    """One step of a stop, each command by its own. Before the first arming, all are where they are measured."""
    if gate.reaction == Source.SAFE:
        return replace(gate, command=config.safe, reference=config.safe)
    measured, known = _measured(config, gate)
    if gate.reaction == Source.SILENT:
        return replace(gate, command=np.where(config.off, config.safe, np.where(known, measured, gate.command)))
    ramp = towards(gate.reference, config.safe, config.slow_step)
    goal = np.where(config.stop == Stop.DAMP, measured, np.where(config.stop == Stop.RAMP, ramp, gate.reference))
    return _move(config, gate, (measured, known), np.where(config.off, config.safe, goal), at_once=config.off)


def at_rest(config: GateConfig, gate: Gate) -> bool:
    """Whether a stop has come to its end. Damping has none."""
    if gate.state not in (State.IDLE, State.FAULT) or gate.reaction != config.stopped:
        return False
    ended = np.where(config.stop == Stop.RAMP, gate.reference == config.safe, config.stop != Stop.DAMP)
    return bool((ended & (gate.command == gate.reference)).all())


def _move(
    config: GateConfig, gate: Gate, where: tuple[np.ndarray, np.ndarray], goal: np.ndarray, at_once: np.ndarray
) -> Gate:
    """The reference at ``goal``, but within reach of the measured value, and the command after it at the rate limit."""
    measured, known = where
    near = _bounded(goal, measured - config.reach, measured + config.reach)
    reference = np.where(at_once, goal, np.where(known, near, gate.reference))
    command = np.where(at_once, goal, towards(gate.command, reference, config.rate_step))
    return replace(gate, reference=reference, command=command)


def _measured(config: GateConfig, gate: Gate) -> tuple[np.ndarray, np.ndarray]:
    """Where the actuators are, (M,) float32 within the commands' limits, and (M,) bool, whether that is known."""
    fresh = np.array([_fresh(watch, gate, i) for i, watch in enumerate(config.signals)], bool)
    raw, places = gate.values[config.feedback], config.feedback
    known = config.measured & fresh[config.feedback_signal]
    known &= (raw >= config.signal_lower[places]) & (raw <= config.signal_upper[places])
    return _bounded(raw, config.command_lower, config.command_upper), known


def _fresh(watch: Watch, gate: Gate, i: int) -> bool:
    """Whether a signal's newest value tells where something is now."""
    stamp = gate.stamps[i]
    if not (0 <= stamp <= gate.time and gate.time - stamp <= watch.timeout):
        return False
    return not (watch.noisy and stamp - gate.changed[i] > watch.timeout)


# --- arithmetic, in float32 ---------------------------------------------------------------------------------------


def _bounded(x: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    return np.where(x < lower, lower, np.where(x > upper, upper, x))


def towards(present: np.ndarray, goal: np.ndarray, most: np.ndarray) -> np.ndarray:
    """``goal``, or as far towards it as ``most`` allows."""
    return _bounded(goal, present - most, present + most)
