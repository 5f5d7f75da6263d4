"""The model that current controllers have of a synchronous machine: predictions, and the voltage for a current.

Plain arithmetic on numbers (n,) of any array library, so controllers, policies and their guard share it. Currents and
voltages are pairs d, q; ``omega`` is the electrical speed, rad/s.

With M = τ J, where J is the derivative of i' by i, a period under a constant voltage is exactly i + τ φ₁(M) i', and its
inverse is φ₁(M)⁻¹ = 1 − M/2 + M²/12 − M⁴/720 + …; both are cut after M².
"""

from __future__ import annotations

from typing import Any, NamedTuple

from robo_rl.contract import ContractError, Robot

Pair = tuple[Any, Any]


class PmsmModel(NamedTuple):
    """The figures of a card, and the control period."""

    period: float
    """s."""
    pole_pairs: float
    resistance: float
    """ohm."""
    inductance_d: float
    """H."""
    inductance_q: float
    flux: float
    """Wb."""

    @classmethod
    def of(cls, robot: Robot, period: float) -> PmsmModel:
        """Of a contract's robot."""
        if robot.facts["machine"] != "pmsm":
            raise ContractError(f"robot: facts: machine is '{robot.facts['machine']}'; expected 'pmsm'")
        return cls(period, *(float(robot.facts[name]) for name in cls._fields[1:]))

    def rate(self, current: Pair, voltage: Pair, omega: Any) -> Pair:
        """A/s: the derivative of the current."""
        u, v = self.drop(current, omega)
        return (voltage[0] - u) * (1.0 / self.inductance_d), (voltage[1] - v) * (1.0 / self.inductance_q)

    def drop(self, current: Pair, omega: Any) -> Pair:
        """V that resistance and rotation take: the voltage at which the current stays."""
        d, q = current
        back = omega * (self.inductance_d * d + self.flux)
        return self.resistance * d - omega * (self.inductance_q * q), self.resistance * q + back

    def _twice(self, vector: Pair, omega: Any, first: float, second: float) -> Pair:
        """vector + first M vector + second M² vector."""
        x = self._times(vector, omega)
        y = self._times(x, omega)
        return tuple(v + first * a + second * b for v, a, b in zip(vector, x, y, strict=True))

    def _times(self, vector: Pair, omega: Any) -> Pair:
        d, q = vector
        turn, ratio = self.period * omega, self.inductance_q / self.inductance_d
        decay = self.period * self.resistance
        x = (turn * ratio) * q - (decay / self.inductance_d) * d
        return x, -(turn * (1.0 / ratio)) * d - (decay / self.inductance_q) * q

    def predict(self, current: Pair, voltage: Pair, omega: Any) -> Pair:
        """A: the current a period later."""
        change = self._twice(self.rate(current, voltage, omega), omega, 1.0 / 2.0, 1.0 / 6.0)
        return tuple(i + self.period * x for i, x in zip(current, change, strict=True))

    def needed(self, change: Pair, omega: Any) -> Pair:
        """V by which a period's voltage differs where its end differs by ``change`` A."""
        d, q = self._twice(change, omega, -1.0 / 2.0, 1.0 / 12.0)
        return d * (self.inductance_d / self.period), q * (self.inductance_q / self.period)

    def deadbeat(self, current: Pair, goal: Pair, omega: Any) -> Pair:
        """V that leads from a current to the ``goal`` in a period."""
        x, y = self.needed((goal[0] - current[0], goal[1] - current[1]), omega)
        u, v = self.drop(current, omega)
        return x + u, y + v
