"""The environment: many robots at one task, stepped together.

``VecEnv`` owns time, sensors, randomization, failures and resets. It speaks the language of a robot: signals
out, commands in, both in SI units. What a policy makes of the signals is the policy's affair, so the same
environment serves learning, a classical controller and an exported file.

Finished environments restart within the same step. Their last signals come beside the new ones, so that a
time-out can be bootstrapped from the true final observation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sim.fuse import empty_block, fuse
from sim.ranges import Levels
from sim.sensors import Sensors
from sim.tasks import Task, Tensors

DIVERGED = 1e30
"""A state whose numbers add up to more, in SI units, is no longer one of a robot."""


class EpisodeState(NamedTuple):
    """What the environment keeps from step to step besides the plant's state."""

    time: Tensor
    """(n,) s since the episode began."""
    delay_buffer: Tensor
    """(n, steps, elements) true readings of the last steps, for latency."""
    previous: dict[str, Tensor]
    """The last commands."""


class Draws(NamedTuple):
    """What is drawn at the start of an episode and holds through it, besides the plant's parameters."""

    goal: Tensor
    """(n, k) of the set-points."""
    delay: Tensor
    """(n,) latency of the sensors, s."""
    noise: Tensor
    """(n,) factor on the sensors' noise."""
    bias: Any
    """(n, elements) constant errors of the sensors, or () where the task has none."""


class Outcome(NamedTuple):
    """What ``transition`` makes of one step."""

    episode: EpisodeState
    signals: dict[str, Any]
    reward: Any
    failed: Any
    terms: Any
    finite: Any


class Step(NamedTuple):
    """What ``VecEnv.step`` returns. Finished environments have begun again; ``ids`` tells which they are."""

    signals: dict[str, Tensor]
    """Measured signals, (n, k) each; of a new episode where one ended."""
    reward: Tensor
    """(n,)."""
    failed: Tensor
    """(n,) bool: the episode ended in failure."""
    timeout: Tensor
    """(n,) bool: the episode ended because its time was over."""
    ids: Tensor
    """(m,) the environments whose episode ended."""
    final_signals: dict[str, Tensor]
    """(m, k) each: the last signals of the episodes that ended."""
    final_truth: dict[str, Tensor]
    """(m, k) each: the true quantities then."""
    final_privileged: Tensor
    """(m, p): what a critic saw then; (m, 0) if nobody ever asked for ``privileged``."""


def transition(
    task: Task, sensors: Sensors, truth: Tensors, commands: Tensors, episode: EpisodeState, draws: Draws, noise: Any
) -> Outcome:
    """Reward, failure and the next signals, after the plant moved to ``truth`` under ``commands``.

    Pure, so that an environment, a fused differentiable step and a stand-in robot share it. ``noise``: standard
    normal (n, elements). ``failed`` and ``finite`` are 1.0 or 0.0; ``terms`` (n, t) are the weighted rewards, in the
    task's order.
    """
    time = episode.time + task.spec.control_period
    full = {**truth, **task.reference(time, draws.goal)}
    terms_by_name = task.reward(full, commands, episode.previous)
    weighted = [weight * terms_by_name[name] for name, weight in task.spec.reward.items()]
    failed = torch.where(task.failed(full), 1.0, 0.0)
    noise = sensor_errors(sensors, noise, draws)
    signals, delay_buffer = sensors.measure(full, episode.delay_buffer, draws.delay, noise)
    terms = torch.stack(weighted, -1)
    size = sum(value.abs().sum(-1) for value in (*truth.values(), terms))
    finite = torch.where(size < DIVERGED, 1.0, 0.0)  # false for NaN
    return Outcome(EpisodeState(time, delay_buffer, dict(commands)), signals, sum(weighted), failed, terms, finite)


def privileged_observation(task: Task, truth: Tensors, time: Any, goal: Any, parameters: Any) -> Any:
    """(n, p) what a critic may see."""
    return task.privileged({**truth, **task.reference(time, goal)}, parameters)


def sensor_errors(sensors: Sensors, noise: Any, draws: Draws) -> Any:
    """(n, elements) errors of the sensors: noise, given as standard normal numbers, and bias."""
    errors = noise * sensors.noise * draws.noise[:, None]
    return errors if isinstance(draws.bias, tuple) else errors + draws.bias


class VecEnv:
    """n robots at a task."""

    def __init__(
        self,
        task: Task,
        n: int,
        seed: int = 0,
        device: str | torch.device = "cpu",
        fixed: Mapping[str, float | Tensor] | None = None,
        evaluation: bool = False,
        episode_length: float | None = None,
        make_plant: Callable[[int], Any] | None = None,
    ) -> None:
        """``fixed`` sets named ranges to one value, or to one per environment (n,), where NaN fixes nothing.

        ``evaluation`` puts all ranges at their end, without rules; ``episode_length`` (s) replaces the task's, and
        ``make_plant`` (of n robots) its plant, by another one of the same parameters and quantities.
        """
        self.episode_length = episode_length or task.spec.episode_length
        self.task, self.n, self.device = task, n, torch.device(device)
        spec, fixed = task.spec, dict(fixed or {})
        self.generator = torch.Generator(device).manual_seed(seed)
        self.levels = Levels(spec.ranges, () if evaluation else spec.rules, n, device)
        for name, value in fixed.items():
            self.levels.fix(name, value)
        self.plant: Any = make_plant(n) if make_plant else task.make_plant(n, device)
        self.sensors = Sensors(spec.signals, spec.control_period, self._longest_delay(fixed.get("delay")), device)
        self.diverged = 0
        """Environments that were ended because their state was no longer finite."""
        self._idle = task.command(torch.zeros(1, task.action_size, device=device), task.first_memory(1, device))
        self._allocate()
        self.reset()
        nobody = torch.arange(0, device=self.device)
        self._nothing = self.truth(nobody)

    def _longest_delay(self, fixed: float | Tensor | None) -> float:
        """The longest latency (s) that can be drawn where it is fixed like this."""
        drawn = max(self.task.spec.ranges["delay"].start[1], self.task.spec.ranges["delay"].end[1])
        if fixed is None:
            return drawn
        values = torch.as_tensor(fixed, dtype=torch.float64)
        return max(drawn if values.isnan().any() else 0.0, float(values.nan_to_num(0.0).max()))

    def _allocate(self) -> None:
        """One block holds all that ``transition`` writes, episode state included, so that a step allocates nothing."""
        n, commands = self.n, self.task.spec.commands
        _, (self._noise,) = empty_block(n, [(self.sensors.size,)], self.device)
        _, sent = empty_block(n, [(command.size,) for command in commands], self.device)
        self._commands = {command.name: part for command, part in zip(commands, sent, strict=True)}
        self._limits = {
            command.name: torch.tensor([command.lower, command.upper], device=self.device).unbind(0)
            for command in commands
        }
        biased = [f"bias/{signal.name}" in self.task.spec.ranges for signal in self.sensors.sensed]
        bias = [(self.sensors.size,)] if any(biased) else []
        self._draws_block, draws = empty_block(n, [(self.task.goal_size,), (), (), *bias], self.device)
        self.draws = Draws(*draws, *([()] if not bias else []))
        _, (time, delay_buffer) = empty_block(n, [(), (self.sensors.steps, self.sensors.size)], self.device)
        arguments = (
            self.plant.truth(),
            self._commands,
            EpisodeState(time, delay_buffer, self._commands),
            self.draws,
            self._noise,
        )
        fused = fuse(functools.partial(transition, self.task, self.sensors))
        (self._block,), (self._outcome,) = fused.results(*arguments)
        self.episode: EpisodeState = self._outcome.episode
        arguments = (self.plant.truth(), self._commands, self.episode, self.draws, self._noise)
        self._judge = fused.bind(*arguments, out=self._block)
        self._observe_privileged: Callable[[], None] | None = None
        self._privileged = torch.zeros(n, 0, device=self.device)
        self._sums = torch.zeros_like(self._outcome.terms)

    def seed(self, seed: int) -> None:
        """From the next ``reset`` on, be as an environment that was made with this seed; levels start again."""
        self.generator.manual_seed(seed)
        self.levels.restart()

    def reset(self, ids: Tensor | None = None) -> dict[str, Tensor]:
        """Begin new episodes in the environments ``ids`` (m,), or in all; returns their signals, (m, k) each."""
        ids = torch.arange(self.n, device=self.device) if ids is None else ids
        drawn = self.levels.draw(ids, self.generator)
        self.draws.goal[ids] = goal = self.task.goal(drawn)
        self.task.randomize(self.plant, ids, drawn)
        self.task.place(self.plant, ids, drawn, goal)
        self.draws.delay[ids] = drawn["delay"]
        self.draws.noise[ids] = drawn["noise"]
        if not isinstance(self.draws.bias, tuple):
            self.draws.bias[ids] = self._bias(drawn)
        truth = self.truth(ids)
        delay_buffer = self.sensors.start(truth)
        self.episode.time[ids] = 0.0
        self.episode.delay_buffer[ids] = delay_buffer
        for name, value in self._idle.items():
            self.episode.previous[name][ids] = value
        self._sums[ids] = 0.0
        noise = torch.randn(len(ids), self.sensors.size, generator=self.generator, device=self.device)
        _, delay, factor, bias = self.draws
        here = Draws(goal, delay[ids], factor[ids], bias if isinstance(bias, tuple) else bias[ids])
        signals, _ = self.sensors.measure(truth, delay_buffer, here.delay, sensor_errors(self.sensors, noise, here))
        for name, value in signals.items():
            self._outcome.signals[name][ids] = value
        return signals

    @property
    def drawn(self) -> dict[str, Tensor]:
        """Live views of the last draw from every range, (n,) or (n, k) by name."""
        return self.levels.last

    def apply(self, changes: Mapping[str, float]) -> None:
        """Let all environments be, from now on, as if the ranges ``changes`` had been drawn with these values.

        Where an episode begins is not changed any more. Later draws are not changed: see ``Levels.fix``.
        """
        drawn, ids = self.drawn, torch.arange(self.n, device=self.device)
        for name, value in changes.items():
            drawn[name][:] = value
        self.draws.goal.copy_(self.task.goal(drawn))
        self.task.randomize(self.plant, ids, drawn)
        if hasattr(self.plant, "refresh"):
            self.plant.refresh(ids)
        self.draws.delay.copy_(drawn["delay"])
        self.draws.noise.copy_(drawn["noise"])
        if not isinstance(self.draws.bias, tuple):
            self.draws.bias.copy_(self._bias(drawn))

    def _bias(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, elements) constant errors of the sensors: the draws "bias/<signal>", 0 where there is none."""
        m = len(drawn["noise"])
        parts = [drawn.get(f"bias/{s.name}", torch.zeros(m, s.size, device=self.device)) for s in self.sensors.sensed]
        return torch.cat(parts, 1)

    def truth(self, ids: Tensor) -> dict[str, Tensor]:
        """Copies of every true quantity of the environments ``ids``, set-points included."""
        states = {name: value[ids] for name, value in self.plant.truth().items()}
        return {**states, **self.task.reference(self.episode.time[ids], self.draws.goal[ids])}

    def privileged(self) -> Tensor:
        """(n, p) what a critic may see."""
        observe = self._observe_privileged or self._bind_privileged()
        for place, copy in self._copies.items():
            copy.copy_(self.plant.parameters[place])
        observe()
        return self._privileged.clone()

    def _bind_privileged(self) -> Callable[[], None]:
        """Room for a float32 copy of the parameters that ``privileged_observation`` reads, and for its result."""
        _, parts = empty_block(self.n, [value.shape[1:] for value in self.plant.parameters], self.device)
        parameters = type(self.plant.parameters)(*parts)
        arguments = (self.plant.truth(), self.episode.time, self.draws.goal, parameters)
        fused = fuse(functools.partial(privileged_observation, self.task))
        read = fused.reads(*arguments)[-len(parts) :]
        self._copies = {place: part for place, part in enumerate(parts) if read[place]}
        (block,), (self._privileged,) = fused.results(*arguments)
        self._observe_privileged = fused.bind(*arguments, out=block)
        return self._observe_privileged

    def signals(self) -> dict[str, Tensor]:
        """Copies of the newest signals."""
        return {name: value.clone() for name, value in self._outcome.signals.items()}

    def step(self, commands: Mapping[str, Tensor]) -> Step:
        """One control period under ``commands``, tensors (n, k) in SI units, clamped to their limits.

        A state that is no longer finite ends its episode as a failure with reward 0, and is counted.
        """
        before = self.signals()
        for command, buffer in zip(self.task.spec.commands, self._commands.values(), strict=True):
            torch.clamp(commands[command.name], *self._limits[command.name], out=buffer)
        self._noise.copy_(torch.randn(self._noise.shape, generator=self.generator, device=self.device))
        for name, value in self.task.disturb(self.episode.time, self.draws.goal).items():
            self.plant.param(name).copy_(value)
        self.plant.step(self._commands)
        self._judge()
        outcome = self._outcome
        finite = outcome.finite > 0.5
        failed = (outcome.failed > 0.5) | ~finite
        timeout = (self.episode.time > self.episode_length - 1e-4) & ~failed
        reward = torch.where(finite, outcome.reward, 0.0)
        self._sums += torch.where(finite[:, None], outcome.terms, 0.0)
        ids = (failed | timeout).nonzero()[:, 0]
        good = finite[ids, None]
        final_signals = {k: torch.where(good, v[ids], before[k][ids]) for k, v in outcome.signals.items()}
        final_truth, final_privileged = self._nothing, self._privileged[ids]
        if len(ids):
            final_truth = self.truth(ids)
            final_privileged = self.privileged()[ids] if self._observe_privileged else final_privileged
            self.diverged += int((~finite).sum())
            self.end(ids, failed[ids])
        return Step(self.signals(), reward, failed, timeout, ids, final_signals, final_truth, final_privileged)

    def set_state(self, state: Any, episode: EpisodeState, terms: Tensor) -> None:
        """Go on from a state that was computed outside, in which ``terms`` (n, t) were earned since the last one."""
        for mine, given in zip((*self.plant.state, *self.episode[:2]), (*state, *episode[:2]), strict=True):
            mine.copy_(given)
        for name, value in episode.previous.items():
            self.episode.previous[name].copy_(value)
        self._sums += terms

    def end(self, ids: Tensor, failed: Tensor) -> dict[str, Tensor]:
        """End the episodes of ``ids``: apply the rules of the ranges to their metrics, and begin new ones."""
        steps = (self.episode.time[ids] / self.task.spec.control_period).clamp(min=1.0)
        terms = self._sums[ids] / steps[:, None]
        metrics = {name: terms[:, i] for i, name in enumerate(self.task.spec.reward)}
        self.levels.update(ids, {**metrics, "survived": 1.0 - failed.float()})
        return self.reset(ids)

    def save(self) -> dict[str, Tensor]:
        """All that changes, for a checkpoint."""
        return {
            "block": self._block,
            "draws": self._draws_block,
            "sums": self._sums,
            "levels": self.levels.level,
            "generator": self.generator.get_state(),
            **{f"plant/{name}": value for name, value in self.plant.save().items()},
        }

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Continue from ``save``, bit by bit."""
        self._block.copy_(saved["block"])
        self._draws_block.copy_(saved["draws"])
        self._sums.copy_(saved["sums"])
        self.levels.level.copy_(saved["levels"])
        self.generator.set_state(saved["generator"])
        plant = {name.removeprefix("plant/"): value for name, value in saved.items() if name.startswith("plant/")}
        self.plant.load(plant)
