"""A horizon of teams of robots under a policy, forward and back: the analytic policy gradient where robots meet.

``GradientRollout`` prepares a horizon of single robots once, for networks that are vectors alone. Here robots of a team
act on each other between two control steps, and networks may have encoders, so torch's autograd keeps the books. What
a robot does by itself (what it observes and commands, its plant's step, sensors, reward) is a native loop in between,
with the gradient of such a loop.

The gradient goes through all that robots do to each other: each learns also from what it does to the others' rewards.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from robo_rl.learn.experience.collision_replay import CollisionReplay, begin
from robo_rl.learn.gradient_rollout import World
from robo_rl.policy import PolicyGraph
from robo_rl.sim.accelerate.compiled_env import CompiledEnv
from robo_rl.sim.accelerate.fuse import empty_block, fuse
from robo_rl.sim.accelerate.fuse.structure import flatten, unflatten
from robo_rl.sim.env import VecEnv
from robo_rl.sim.env_state import write
from robo_rl.sim.episode import EpisodeState, Outcome, transition
from robo_rl.sim.sensors import Chance, without_large


class TeamRollout:
    """As ``GradientRollout``, of teams."""

    def __init__(self, env: VecEnv, policy: PolicyGraph, horizon: int, replay: CollisionReplay | None = None) -> None:
        """``replay``: where episodes begin shortly before a mishap of an earlier one (``Task.mishap``)."""
        if not isinstance(env, CompiledEnv) or env.plant.dynamics is None or env.large:
            raise ValueError(f"task '{env.task.name}' has no differentiable simulation of its teams; use ppo")
        self.env, self.policy, self.horizon, self.replay = env, policy, horizon, replay
        self._ids = torch.arange(env.n, device=env.device)
        task = env.task
        self._observe, self._act = fuse(task.observe), fuse(lambda a, signals, memory: task.act(a, signals, memory))
        self._judge, self._chance = fuse(self._transition), fuse(env.sensors.chance)
        alive = torch.ones(env.n, device=env.device)
        memory = task.first_memory(env.n, env.device)
        signals = env.signals()
        world = World(env.plant.current, env.episode, env.draws.goal, memory, signals, alive, 0.0 * alive)
        parts: list[Tensor] = []
        structure = flatten(world, parts)
        self.first_block, room = empty_block(env.n, [part.shape[1:] for part in parts], env.device, packed=False)
        self.world: World = unflatten(structure, iter(room))
        """Where the next horizon begins, in ``first_block``."""
        self._terms, self._loss = torch.zeros(env.n, len(task.spec.reward)), torch.zeros(())

    def _transition(
        self, truth: dict[str, Any], commands: dict[str, Any], episode: EpisodeState, draws: Any, chance: Chance
    ) -> Outcome:
        return transition(self.env.task, self.env.sensors, truth, commands, episode, draws, chance)

    @property
    def alive(self) -> float:
        """Part of the robots whose episode had not ended at the end of the horizon."""
        return float(self._last.alive.mean())

    def start(self) -> None:
        """Begin all episodes, in the middle of their time: else all would end at once."""
        self._place(self._ids, self.env.reset(self._ids))
        team, steps = self.env.team, self.env.episode_steps
        begun = torch.randint(steps, (self.env.n // team,)).repeat_interleave(team)
        self.world.episode.step.copy_(begun)

    def forward(self) -> Tensor:
        """Roll out; returns the mean reward per step."""
        if self.replay is not None:
            self._before = self.env.state(self._ids), self.first_block.clone()
            self._mishap = torch.zeros(self.env.n, dtype=torch.bool, device=self.env.device)
        with torch.enable_grad():
            world, terms = self.world, torch.zeros_like(self._terms)
            world = World(*(_copied(part) for part in world))
            for _ in range(self.horizon):
                world, earned = self._control_step(world)
                terms = terms + earned
            self._loss = -terms.sum(-1).mean() / self.horizon
        self._last, self._terms = world, terms.detach()
        return -self._loss.detach()

    def _control_step(self, world: World) -> tuple[World, Tensor]:
        env, task, team = self.env, self.env.task, self.env.team
        observation = self._observe(world.signals, world.memory)
        action = self.policy.network(self.policy.features(observation))
        commands, memory = self._act(action, world.signals, world.memory)
        parameters = env.plant.parameters
        new = env.plant.dynamics(world.state, commands, parameters)
        here = world.alive > 0.5
        state = type(new)(*(torch.where(here[:, None], a, b) for a, b in zip(new, world.state, strict=True)))
        truth = {**env.plant.truth(), **state._asdict()}
        teams = {name: value.unflatten(0, (-1, team)) for name, value in truth.items()}
        truth |= {name: value.flatten(0, 1) for name, value in task.neighbours(teams).items()}
        with torch.no_grad():
            chance = self._chance(env.stream, world.episode.step + 1.0)
            if self.replay is not None:
                full = {**truth, **task.reference((world.episode.step + 1.0) * task.spec.control_period, world.goal)}
                self._mishap |= task.mishap(full) & here
        draws = env.draws._replace(goal=world.goal)
        outcome = self._judge(without_large(truth), commands, world.episode, draws, chance)
        failed = task.team_failed((outcome.failed | ~outcome.finite).unflatten(0, (-1, team)))
        won = torch.zeros_like(failed)
        if isinstance(outcome.succeeded, Tensor):
            won = task.team_succeeded(outcome.succeeded.unflatten(0, (-1, team))) & ~failed
        failed, won = (value.repeat_interleave(team) for value in (failed, won))
        alive = torch.where(failed | won, 0.0, world.alive)
        won = torch.where(here, won.float(), world.won)
        goal = torch.where(here[:, None], outcome.goal, world.goal) if isinstance(outcome.goal, Tensor) else world.goal
        episode = outcome.episode._replace(step=torch.where(here, outcome.episode.step, world.episode.step))
        terms = torch.where((here & outcome.finite)[:, None], outcome.terms, 0.0)
        return World(state, episode, goal, memory, outcome.signals, alive, won), terms

    def backward(self) -> None:
        """Set the policy parameters' ``grad`` to the gradient of minus the mean reward."""
        self.policy.zero_grad(set_to_none=True)
        self._loss.backward()

    def carry_on(self) -> tuple[Tensor, Tensor]:
        """Start the next horizon from the end of this one; reset the episodes that have ended.

        Returns the rewards of this one, (n,), and the environments (m,) whose episode has ended.
        """
        env = self.env
        last = World(*(_copied(part) for part in self._last))
        write(self.world, last)
        over = last.alive < 0.5
        ids = (over | (last.episode.step >= env.episode_steps)).nonzero()[:, 0]
        env.continue_from(last.state, last.episode, last.goal, self._terms)
        assert env.teams is not None
        env.teams.update(env.plant.truth())
        if len(ids):
            won = last.won[ids] > 0.5
            self._place(ids, env.end(ids, over[ids] & ~won, won if env.task.knows_success else None))
        if self.replay is not None:
            self.replay.keep(*self._before, self._mishap, env.team)
            self._replayed(self.replay, ids)
        return self._terms.sum(1), ids

    def _replayed(self, replay: CollisionReplay, ids: Tensor) -> None:
        """Let some of the teams among ``ids`` (m,), which have begun as the task's own do, begin before a mishap."""
        for team in ids.unflatten(0, (-1, self.env.team)):
            moment = replay.draw()
            if moment is not None:
                begin(self.env, team, moment.state)
                self.first_block[:, team] = moment.kept
                self.world.episode.step[team], self.world.won[team], self.world.alive[team] = 0.0, 0.0, 1.0

    def _place(self, ids: Tensor, signals: dict[str, Tensor]) -> None:
        """Put the environment's newly begun episodes ``ids`` into the world."""
        env, one = self.env, torch.ones(len(ids), device=self.env.device)
        begun = World(
            type(env.plant.current)(*(value[ids] for value in env.plant.current)),
            _rows(env.episode, ids), env.draws.goal[ids], env.task.first_memory(len(ids), env.device), signals,
            one, 0.0 * one,
        )  # fmt: skip
        write(self.world, begun, ids)


def _copied(value: Any) -> Any:
    """The same numbers without their past, through tuples and dictionaries."""
    return _each(value, lambda tensor: tensor.detach().clone())


def _rows(value: Any, ids: Tensor) -> Any:
    return _each(value, lambda tensor: tensor[ids])


def _each(value: Any, function: Any) -> Any:
    parts: list[Tensor] = []
    structure = flatten(value, parts)
    return unflatten(structure, iter([function(part) for part in parts]))
