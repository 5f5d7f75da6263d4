"""The policies of one robot, and the active one: switching is possible while the robot runs, without a jump.

The successor is warmed up first: it sees the signals and fills its memory, and commands nothing. Then the command goes
over from one to the other, in a straight line, and the gate's rate limits hold as ever. The first policy's contract
is the one that gate, recorder and topics follow, so the others may read fewer signals than it, but no others.

"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from robo_rl.contract import Contract
from robo_rl.deploy.robot.bundle import BundleError
from robo_rl.deploy.robot.runtime import Policy, SignalError

Value = TypeVar("Value")

WARM_UP = 0.2
"""s in which a successor only watches: as long as the longest history that our own tasks keep, and some."""
HAND_OVER = 0.5
"""s from one policy's command to the other's."""
BETWEEN = -1
"""The number of the policy while two share the command."""


class PolicySwitcher:
    """Policies by name, in order; the first is active at first. It is stepped as a ``Policy`` is."""

    def __init__(self, policies: Mapping[str, Policy]) -> None:
        """BundleError where a policy can't take turns with the first."""
        self.policies = dict(policies)
        self.name, *others = self.policies
        self.contract = self.policies[self.name].contract
        for name in others:
            require_compatible(self.contract, name, self.policies[name].contract)
        self._numbers = {name: number for number, name in enumerate(self.policies)}
        self._period = self.contract.control_period
        self._successor, self._passed = "", 0
        self.number = 0
        """Which policy made the last command, in order; ``BETWEEN`` where two had a part in it."""
        self.trouble = ""
        """Why the last successor did not take over; "" if nothing went wrong."""

    @property
    def policy(self) -> Policy:
        """The active one."""
        return self.policies[self.name]

    @property
    def state(self) -> np.ndarray:
        """(1, S) the memory of the active one."""
        return getattr(self.policy, "state", self.contract.initial_state[None])

    def select(self, name: str, values: Mapping[str, np.ndarray]) -> str:
        """Let ``name`` take over on signals like ``values``. A sentence; ValueError if it can't."""
        if name not in self.policies:
            raise ValueError(f"'{name}' is not one of the policies {list(self.policies)}")
        if self._successor:
            raise ValueError(f"'{self._successor}' is taking over; wait until it has")
        if name == self.name:
            return f"'{name}' is already active"
        successor = self.policies[name]
        try:
            successor.check(_own(successor, values))
        except SignalError as error:
            raise ValueError(f"'{name}' can't take over: {error}") from None
        successor.reset()
        self._passed, self.trouble = 0, ""
        self._successor = name  # the control thread looks at this first
        return f"'{name}' takes over"

    def replace(self, policy: Policy) -> None:
        """Let another policy of the same contract go on in place of the active one, with its memory."""
        policy.continue_from(self.policy)
        self.policies[self.name] = policy
        self._numbers[self.name] = BETWEEN  # no log has its bundle

    def close(self) -> None:
        """Let go of the policies."""
        for policy in self.policies.values():
            policy.close()

    def reset(self) -> None:
        """Reset the memory. While no policy is active, a switch is immediate."""
        if self._successor:
            self.name, self._successor = self._successor, ""
        self.number = self._numbers[self.name]
        self.policy.reset()

    def step(self, values: Mapping[str, np.ndarray], ages: Mapping[str, float] | None = None) -> dict[str, np.ndarray]:
        """Commands (k,) by name for signals by name, and the ages (s) of those that were not measured now.

        SignalError if the active one has none.
        """
        policy, ages = self.policy, ages or {}
        own, self.number = policy.step(_own(policy, values), ages=_own(policy, ages)), self._numbers[self.name]
        if not self._successor:
            return own
        successor = self.policies[self._successor]
        try:
            other = successor.step(_own(successor, values), ages=_own(successor, ages))
        except SignalError as error:
            self.trouble = f"'{self._successor}' did not take over: {error}"
            self._successor = ""
            return own
        self._passed += 1
        part = min(1.0, max(0.0, (self._passed * self._period - WARM_UP) / HAND_OVER))
        if part > 0.0:
            self.number = BETWEEN
        if part == 1.0:
            self.name, self._successor = self._successor, ""
        return {name: own[name] + np.float32(part) * (other[name] - own[name]) for name in own}


def _own(policy: Policy, values: Mapping[str, Value]) -> dict[str, Value]:
    return {signal.name: values[signal.name] for signal in policy.contract.signals if signal.name in values}


def require_compatible(first: Contract, name: str, other: Contract) -> None:
    """BundleError unless a policy with the contract ``other`` can take turns with one with the contract ``first``."""
    same = {
        "is for the robot": (first.robot_name, other.robot_name),
        "steps every (s)": (first.control_period, other.control_period),
        "commands": (first.commands, other.commands),
        "is for a robot with the figures": (first.robot, other.robot),
        "has the safety envelope": (first.safety, other.safety),
    }
    for what, (wanted, found) in same.items():
        if wanted != found:
            raise BundleError(f"policy '{name}' {what} {str(found)[:300]}; the first has {str(wanted)[:300]}")
    known = {s.name: (s.elements, s.dimensions, s.unit, s.frame, s.kind, s.source) for s in first.signals}
    for s in other.signals:
        found = (s.elements, s.dimensions, s.unit, s.frame, s.kind, s.source)
        if known.get(s.name) != found:
            raise BundleError(
                f"policy '{name}' reads the signal '{s.name}' as {found}; the first reads "
                f"{known.get(s.name, 'no such signal')}"
            )
