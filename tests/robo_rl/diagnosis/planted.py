"""The task of examples/own_kind with one mistake each, as people make them."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from balance import Balance

from robo_rl.sim.ranges import Range, Rule


class Sound(Balance):
    """Without a mistake."""


class AlwaysZero(Balance):
    """The set-point less itself."""

    def reward(self, truth: Any, commands: Any, previous: Any) -> Any:
        wrong = truth["cart_position_setpoint"] - truth["cart_position_setpoint"]
        return {**super().reward(truth, commands, previous), "place": wrong.square()[:, 0]}


class HugePenalty(Balance):
    """A weight in other units."""

    weights = {**Balance.weights, "rate": -100.0}


class Bang(Balance):
    """An action that is taken for a force in mN."""

    def command(self, action: Any, memory: Any) -> Any:
        return {"cart_force": self.card.force * torch.tanh(1000.0 * action)}


class ConstantObservation(Balance):
    """What should have been the angle."""

    def observe(self, signals: Any, memory: Any) -> Any:
        seen = super().observe(signals, memory)
        return torch.cat([seen[:, :2], 0.0 * seen[:, 2:3], seen[:, 3:]], -1)


class Millimetres(Balance):
    """An observation that is 1000 times as large as the others."""

    def observe(self, signals: Any, memory: Any) -> Any:
        seen = super().observe(signals, memory)
        return torch.cat([1000.0 * signals["cart_position"], seen[:, 1:]], -1)


class FailsAtOnce(Balance):
    """An inequality the wrong way round."""

    def failed(self, truth: Any) -> Any:
        return truth["pole_angle"].abs()[:, 0] < 0.7


class WrongSign(Balance):
    """A reward for being away from the set-point."""

    weights = {**Balance.weights, "place": 40.0}


class NoAlive(Balance):
    """Only costs, so that it is best to fail."""

    weights = {"place": -4.0, "angle": -2.0, "rate": -0.5, "force_change": -0.05, "time": -5.0}

    def reward(self, truth: Any, commands: Any, previous: Any) -> Any:
        terms = super().reward(truth, commands, previous)
        return {**{name: terms[name] for name in self.weights if name != "time"}, "time": terms.pop("alive")}


class IgnoredAction(Balance):
    """A command that does not use what the network gives."""

    def command(self, action: Any, memory: Any) -> Any:
        return {"cart_force": 0.0 * action}


class RuleOutOfReach(Balance):
    """A part of episodes above one."""

    def __init__(self, card: Any = None) -> None:
        super().__init__(card)
        self.spec = dataclasses.replace(
            self.spec, rules=(Rule("initial/angle", "survived", up=1.5, down=-1.0, step=0.25),)
        )


class BlindCritic(Balance):
    """A critic that sees nothing of the state."""

    def privileged(self, truth: Any, parameters: Any) -> Any:
        return 0.0 * super().privileged(truth, parameters)


class LogarithmOfLess(Balance):
    """A logarithm of what is negative for poles that lean more than they do at first."""

    def reward(self, truth: Any, commands: Any, previous: Any) -> Any:
        terms = super().reward(truth, commands, previous)
        return {**terms, "rate": torch.log(0.5 - truth["pole_angle"].abs()[:, 0])}


class Wide(Balance):
    """Nothing wrong but a wider start: poles that fall now and then."""

    def __init__(self, card: Any = None) -> None:
        super().__init__(card)
        ranges = {**self.spec.ranges, "initial/angle": Range((-0.1, 0.1), (-0.3, 0.3))}
        self.spec = dataclasses.replace(self.spec, ranges=ranges)
