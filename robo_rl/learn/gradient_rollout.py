"""A horizon of many environments under a policy, prepared for running forward and back many times.

One update of the analytic policy gradient is a few thousand small operations, always the same on the same
memory. So they are prepared once: per control step one native call forward and one back
(``robo_rl.sim.accelerate.fuse``), and
the few matrix products of the network in between. That is four times as fast as leaving the bookkeeping to
autograd, which gives the same gradient (a test compares them).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from robo_rl.sim.accelerate.compiled_env import CompiledEnv
from robo_rl.sim.accelerate.fuse import Fused, blocks_like, empty_block, fuse
from robo_rl.sim.accelerate.fuse.structure import flatten
from robo_rl.sim.env import VecEnv
from robo_rl.sim.episode import Draws, EpisodeState, transition, within
from robo_rl.sim.sensors import Chance
from robo_rl.sim.tasks import Task


class World(NamedTuple):
    """All that a control step depends on and changes."""

    state: Any
    episode: EpisodeState
    goal: Any
    """() where goals don't advance."""
    memory: dict[str, Any]
    signals: dict[str, Any]
    """What the policy last saw."""
    alive: Any
    """(n,) 1, or 0 once the episode has failed, succeeded or diverged; its robot stays as it is until the horizon
    ends."""
    won: Any
    """(n,) 1 where the episode has succeeded, else 0; () if the task defines no success."""


class Moment(NamedTuple):
    """What a control step gives."""

    world: World
    observation: Any
    terms: Any
    """(n, t) weighted rewards, zero once the episode has failed."""


def keep_where(alive: Any, new: Any, old: Any) -> Any:
    """``new`` where ``alive``, else ``old``, through tuples and dictionaries."""
    if isinstance(new, dict):
        return {name: keep_where(alive, new[name], old[name]) for name in new}
    if isinstance(new, tuple):
        parts = [keep_where(alive, a, b) for a, b in zip(new, old, strict=True)]
        return type(new)(*parts) if hasattr(new, "_fields") else tuple(parts)
    return torch.where(alive.reshape(-1, *[1] * (new.ndim - 1)) > 0.5, new, old)


def copy_rows(source: Any, target: Any, ids: Tensor) -> None:
    """Copy the rows ``ids`` of all tensors of ``source`` into ``target``, which has the same structure."""
    sources: list[Tensor] = []
    targets: list[Tensor] = []
    flatten(source, sources)
    flatten(target, targets)
    for a, b in zip(sources, targets, strict=True):
        b[ids] = a[ids]


def _numbers(value: Any) -> int:
    """How many floats per environment the tensors in ``value`` hold."""
    tensors: list[Tensor] = []
    flatten(value, tensors)
    return sum(tensor[0].numel() for tensor in tensors)


class GradientRollout:
    """A horizon of n environments, prepared for running forward and back many times."""

    def __init__(self, env: VecEnv, network: nn.Sequential, horizon: int) -> None:
        if not isinstance(env, CompiledEnv) or not env.fused:
            raise ValueError(f"task '{env.task.name}' has no differentiable simulation of single robots; use ppo")
        self.env, self.horizon = env, horizon
        self.layers = [layer for layer in network if isinstance(layer, nn.Linear)]
        self.advances, self.ends = self._what_moves()
        self._prepare_chance()
        self._record(fuse(self._control_step))

    def _what_moves(self) -> tuple[bool, bool]:
        """Whether goals advance, and whether episodes succeed."""
        task = type(self.env.task)
        return task.advance is not Task.advance, task.succeeded is not Task.succeeded

    def _prepare_chance(self) -> None:
        """Room for the random numbers of a horizon, one control step beside the other, and what fills it."""
        env, horizon = self.env, self.horizon
        _, (stream, step) = empty_block(horizon * env.n, [(4,), ()], env.device)
        self._streams, self._steps = stream.mT.unflatten(1, (horizon, env.n)), step.unflatten(0, (horizon, env.n))
        draw = fuse(env.sensors.chance)
        _, (drawn,) = draw.results(stream, step)
        # a second thread would then wait actively for milliseconds, as long as a whole update takes
        self._draw = draw.bind(stream, step, out=drawn, threads=1)
        self.chance = [
            Chance(*[part[t * env.n : (t + 1) * env.n] if isinstance(part, Tensor) else part for part in drawn])
            for t in range(horizon)
        ]
        """Of each control step."""

    def _control_step(self, world: World, parameters: Any, draws: Draws, action: Any, chance: Chance) -> Moment:
        env, task = self.env, self.env.task
        commands, memory = task.act(action, world.signals, world.memory)
        state = env.plant.dynamics(world.state, commands, parameters)
        if self.advances:
            draws = draws._replace(goal=world.goal)
        outcome = transition(task, env.sensors, state._asdict(), commands, world.episode, draws, chance)
        finite = outcome.finite
        over, won = outcome.failed | ~finite, world.won
        if self.ends:
            succeeded = outcome.succeeded & ~over
            over, won = over | succeeded, torch.where(succeeded, 1.0, 0.0)
        alive = world.alive * torch.where(over, 0.0, 1.0)
        new = World(state, outcome.episode, outcome.goal, memory, outcome.signals, alive, won)
        terms = torch.where(finite[:, None], world.alive[:, None] * outcome.terms, 0.0)
        kept = keep_where(world.alive * torch.where(finite, 1.0, 0.0), new, world._replace(alive=alive))
        return Moment(kept, task.observe(outcome.signals, memory), terms)

    def _record(self, step: Fused) -> None:
        env, n, horizon = self.env, self.env.n, self.horizon
        alive = torch.ones(n, device=env.device)
        goal, won = env.draws.goal if self.advances else (), torch.zeros_like(alive) if self.ends else ()
        memory = env.task.first_memory(n, env.device)
        signals = env.signals()
        world = World(env.plant.current, env.episode, goal, memory, signals, alive, won)
        fixed = (env.plant.parameters, env.draws)
        sizes = [layer.out_features for layer in self.layers]
        # all that a horizon computes: moments and the network's layers, and what the reward feels of each
        outputs = [torch.zeros(horizon, size, n, device=env.device) for size in sizes]
        actions = [x.mT for x in outputs[-1]]
        self._blocks, self.moments = step.results(world, *fixed, actions[0], self.chance[0], copies=horizon + 1)
        bars, bar_parts = blocks_like((self.moments[0].world, actions[0]), horizon + 1)
        above = _numbers(self.moments[0].world)
        observed = self.layers[0].in_features
        observation_bars = torch.zeros(horizon + 1, observed, n, device=env.device)
        self.values = [self._blocks[:-1, above : above + observed], *outputs]
        self.deltas = [observation_bars[:-1], *(torch.zeros_like(x) for x in outputs[:-1]), bars[:-1, above:]]
        self._values = list(zip(*(x.unbind(0) for x in self.values), strict=True))
        self._deltas = list(zip(*(x.unbind(0) for x in self.deltas), strict=True))
        self._weights = [(layer.weight.detach(), layer.bias.detach()[:, None]) for layer in self.layers]
        self._transposed = [layer.weight.detach().mT for layer in self.layers]
        self._terms = self._blocks[1:, above + observed :].movedim(1, 2)  # (horizon, n, t)
        terms_bar = torch.full_like(self.moments[0].terms, -1.0 / (n * horizon))
        self._forward: list[Callable[[], None]] = []
        self._backward: list[Callable[[], None]] = []
        for t in range(horizon):
            inputs = (self.moments[t].world, *fixed, actions[t], self.chance[t])
            self._forward.append(step.bind(*inputs, out=self.moments[t + 1]))
            cotangents = Moment(bar_parts[t + 1][0], observation_bars[t + 1].mT, terms_bar)
            wanted = (inputs[0], actions[t])
            self._backward.append(step.bind_gradient(*inputs, cotangents=cotangents, wanted=wanted, out=bar_parts[t]))

    @property
    def first_block(self) -> Tensor:
        """All that the next horizon begins with."""
        return self._blocks[0]

    @property
    def alive(self) -> float:
        """Part of the robots whose episode had not ended at the end of the horizon."""
        return float(self.moments[-1].world.alive.mean())

    def start(self) -> None:
        """Begin all episodes."""
        ids = torch.arange(self.env.n, device=self.env.device)
        self._place(ids, self.env.reset(ids))

    def carry_on(self) -> tuple[Tensor, Tensor]:
        """Start the next horizon from the end of this one; reset the episodes that have ended.

        Returns the rewards of this one, (n,), and the environments (m,) whose episode has ended.
        """
        self._blocks[0].copy_(self._blocks[-1])
        world = self.moments[0].world
        over = (world.alive < 0.5) | ~within(self.moments[0].observation)
        ids = (over | (world.episode.step >= self.env.episode_steps)).nonzero()[:, 0]
        terms = self._terms.sum(0)
        self.env.continue_from(world.state, world.episode, world.goal, terms)
        if len(ids):
            won = world.won[ids] > 0.5 if self.ends else None
            failed = over[ids] if won is None else over[ids] & ~won
            self.env.diverged += int((failed & ~self.env.task.failed(self.env.truth(ids))).sum())
            self._place(ids, self.env.end(ids, failed, won))
        return terms.sum(1), ids

    def _place(self, ids: Tensor, signals: dict[str, Tensor]) -> None:
        """Put the environment's newly begun episodes ``ids`` into the first moment."""
        env, task, first = self.env, self.env.task, self.moments[0]
        memory = task.first_memory(len(ids), env.device)
        copy_rows((env.plant.current, env.episode), (first.world.state, first.world.episode), ids)
        if self.advances:
            first.world.goal[ids] = env.draws.goal[ids]
        for mine, begun in ((first.world.memory, memory), (first.world.signals, signals)):
            for name, value in begun.items():
                mine[name][ids] = value
        first.world.alive[ids] = 1.0
        if self.ends:
            first.world.won[ids] = 0.0
        first.observation[ids] = task.observe(signals, memory)

    def forward(self) -> Tensor:
        """Roll out; returns the mean reward per step."""
        begun = self.moments[0].world.episode.step
        self._streams.copy_(self.env.stream.mT[:, None])
        for t, steps in enumerate(self._steps):
            torch.add(begun, t + 1.0, out=steps)
        self._draw()
        last = len(self.layers) - 1
        for call, values in zip(self._forward, self._values, strict=True):
            for place, (weight, bias) in enumerate(self._weights):
                torch.addmm(bias, weight, values[place], out=values[place + 1])
                if place < last:
                    values[place + 1].tanh_()
            call()
        return self._terms.sum(-1).mean()

    def backward(self) -> None:
        """Set the policy parameters' ``grad`` to the gradient of minus the mean reward."""
        for t in reversed(range(self.horizon)):
            self._backward[t]()
            values, deltas = self._values[t], self._deltas[t]
            for place in reversed(range(len(self.layers))):
                below = torch.mm(self._transposed[place], deltas[place + 1], out=deltas[place])
                if place:
                    torch.ops.aten.tanh_backward.grad_input(below, values[place], grad_input=below)
        for layer, x, delta in zip(self.layers, self.values, self.deltas[1:], strict=False):
            layer.weight.grad = torch.bmm(delta, x.mT).sum(0)
            layer.bias.grad = delta.sum((0, 2))
