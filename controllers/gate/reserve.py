"""The gate's step with the classical controller of the robot's kind in reserve, where there is one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from robo_rl.contract import Contract
from robo_rl.controllers import fallback
from robo_rl.controllers.gate.codes import Event, Problem, Request, Source, State
from robo_rl.controllers.gate.config import GateConfig
from robo_rl.controllers.gate.held import Holding, Samples, may_wait
from robo_rl.controllers.gate.moves import arrived, at_rest
from robo_rl.controllers.gate.safety import Inputs, Output, initial, step

Values = Mapping[str, np.ndarray]


class Reserve:
    """A contract's gate from power-up, and the controller that it may call for."""

    def __init__(self, contract: Contract) -> None:
        self.config = GateConfig.from_contract(contract)
        self.gate = initial(self.config)
        self.controller = fallback(contract)
        self._holding, self._waits = Holding.from_contract(contract), may_wait(contract)

    def ages(self, samples: Samples, now: int) -> dict[str, float]:
        """s since the slow signals, and those that may be absent, were measured: what ``Policy.step`` must know."""
        known = self._waits & samples.keys()
        return {name: max(0, now - samples[name][1]) * 1e-6 for name in known}

    def flat_signals(self, samples: Samples, now: int) -> tuple[np.ndarray, tuple[int, ...]]:
        """Values (N,) and stamps of all signals, ages among them, as the policy sees them at ``now`` (µs)."""
        return self.config.flat_signals(self._holding.completed(samples, now) if self._waits else samples)

    def step(self, given: Inputs, values: Values) -> tuple[Inputs, Output]:
        """One step of the gate, and what it was given in the end. ``values``: the signals by name."""
        gate, output = step(self.config, self.gate, given)
        if output.events & Event.FALLBACK_LOST:  # the gate is pure: ask again, with the controller that it wants
            given = dataclasses.replace(given, fallback=self._landing(values, given.time))
            gate, output = step(self.config, self.gate, given)
        self.gate = gate
        return given, output

    def obstacle(self, given: Inputs) -> Problem:
        """Why the gate would not arm, if it were asked to on these inputs."""
        return step(self.config, self.gate, dataclasses.replace(given, requests=Request.ARM))[1].problem

    def finish(self, output: Output, values: Values) -> None:
        """What the controller must know of a step, after its command has left."""
        if self.controller is None:
            return
        if output.events & Event.ARMED:
            self.controller.arm(values)
        if output.state in (State.IDLE, State.READY):
            self.controller.rest()
        else:
            self.controller.follow(output.command)

    def proposal(self, values: Values) -> np.ndarray | None:
        """(M,) what the controller would do in the policy's place."""
        return self.controller.propose(values) if self._can(values) else None  # type: ignore[union-attr]

    @property
    def arrived(self) -> bool:
        """Whether the policy may take over: the start pose is what is commanded."""
        return self.gate.state == State.READY and arrived(self.config, self.gate)

    @property
    def at_rest(self) -> bool:
        """Whether the robot is stopped, and its stop has come to an end."""
        return self.gate.reaction == Source.SILENT or at_rest(self.config, self.gate)

    @property
    def last_resort(self) -> np.ndarray | None:
        """(M,) what to send where not even the gate can be asked: off what can be off, the rest as it was sent last.

        None before the first arming.
        """
        if self.gate.reaction == Source.SILENT:
            return None
        return np.where(self.config.off, self.config.safe, self.gate.command)

    def _can(self, values: Values) -> bool:
        return self.controller is not None and all(name in values for name in self.controller.needed)

    def _landing(self, values: Values, time: int) -> np.ndarray | None:
        landing = self.controller.land(values, time * 1e-6) if self._can(values) else None  # type: ignore[union-attr]
        if landing is None or not np.isfinite(landing).all():
            return None
        return np.clip(landing, self.config.command_lower, self.config.command_upper)
