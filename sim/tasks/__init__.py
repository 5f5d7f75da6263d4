"""Tasks: what a robot should do, each in one file that reads from top to bottom.

A task says which signals and commands it has, what the policy observes of them, what is rewarded, what is a
failure, and how episodes begin. Its methods are pure functions of tensors with environments first. Those that
run on a robot (``observe``, ``command``, ``remember``) are traced into the exported policy, so no second
implementation of them exists anywhere.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import torch
from torch import Tensor

from robo_rl.contract import Command, Contract, Encoder, Network, Provenance, Safety, Signal, StateBlock
from robo_rl.sim.accelerate.fuse import empty_block
from robo_rl.sim.drawing import Marker
from robo_rl.sim.engines import Engine
from robo_rl.sim.plants import Plant
from robo_rl.sim.ranges import Range, Rule
from robo_rl.sim.robots import Card

if TYPE_CHECKING:
    from robo_rl.sim.tasks.loading import Source

Tensors = Mapping[str, Any]
P = TypeVar("P", bound=Plant)
"""The plant that a task needs."""


@dataclass(frozen=True)
class Spec:
    """A task as data."""

    name: str
    summary: str
    robot: Card
    control_period: float
    episode_length: float
    signals: tuple[Signal, ...]
    commands: tuple[Command, ...]
    memory: tuple[StateBlock, ...]
    safety: Safety
    reward: Mapping[str, float]
    ranges: Mapping[str, Range]
    rules: tuple[Rule, ...] = field(default=())
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the contract tells of the task to who rebuilds its interface: plain data, see docs/bundle.md."""
    team: int = 1
    """Robots that share an environment and its end; each is one row of every tensor."""

    @property
    def episode_steps(self) -> int:
        """Control steps until an episode times out."""
        return round(self.episode_length / self.control_period)

    def contract(
        self, provenance: Provenance, network: Network, memory: tuple[StateBlock, ...] | None = None
    ) -> Contract:
        """The contract of a policy trained on this task, which may have more ``memory`` than the task."""
        return Contract(
            task=self.name,
            control_period=self.control_period,
            signals=self.signals,
            commands=self.commands,
            state=self.memory if memory is None else memory,
            safety=self.safety,
            robot=self.robot.facts(),
            network=network,
            provenance=provenance,
            facts={**self.facts, "episode": self.episode_length, "ranges": self._drawn()},
        )

    def _drawn(self) -> dict[str, Any]:
        """What differs between episodes at the end of training, as plain data."""
        found = {}
        for name, bounds in self.ranges.items():
            low, high = bounds.end
            if math.isfinite(low) and math.isfinite(high):
                unit = {"unit": bounds.unit[:64]} if bounds.unit else {}
                key = re.sub(r"[^A-Za-z0-9_.:-]", ".", name)[:64].lstrip("_.:-") or "range"
                found[key] = {"from": float(low), "to": float(high), **unit}
        return found


@dataclass(frozen=True)
class Measure:
    """One figure of how well a task is done: an error of ``Task.errors``, taken over a part of each episode.

    ``over``: "end" for the mean over the last ``seconds``, "mean" and "rms" for mean and root mean square from
    ``seconds`` on; None: the last 2 s, or from 1 s on. Of an episode that ends before that, all of it counts.
    """

    error: str
    unit: str
    over: Literal["end", "mean", "rms"]
    seconds: float | None = None
    failed: float | None = None
    """What it is multiplied by for episodes that failed, such as a score; None: they don't count."""

    @property
    def window(self) -> float:
        """s: see ``over``."""
        return self.seconds if self.seconds is not None else 2.0 if self.over == "end" else 1.0

    @property
    def described(self) -> str:
        """Which part of an episode it is taken over, for people: "mean over the last 2 s"."""
        what = "root mean square" if self.over == "rms" else "mean"
        if self.over == "end" and self.window <= 0.1:
            return f"at the end (last {self.window:g} s)"
        if self.over == "end":
            return f"{what} over the last {self.window:g} s"
        return f"{what} from {self.window:g} s on" if self.window else f"{what} over the whole episode"

    @property
    def key(self) -> str:
        """Of its mean over episodes, in summaries: "position_error_mean_m"."""
        return f"{self.error}_{'rms' if self.over == 'rms' else 'mean'}_{self.unit.replace('/', '_')}"

    @property
    def tail_key(self) -> str:
        """Of what 95 % of episodes stay below."""
        return f"{self.error}_p95_{self.unit.replace('/', '_')}"


def any_of(conditions: Mapping[str, Any]) -> Any:
    """(n,) whether any of the conditions (n,) holds."""
    return functools.reduce(operator.or_, conditions.values())


class Task(ABC, Generic[P]):
    """The methods of a task. ``truth`` holds every true quantity by name, set-points included."""

    name: str
    summary: str
    spec: Spec
    observation_size: int
    action_size: int
    goal_size: int
    card_type: type[Card]
    """The class of the cards of robots that can do the task."""
    measures: tuple[Measure, ...]
    """What evaluations report; the last one decides comparisons."""
    perturbed: tuple[str, ...] = ()
    """The ranges that a sweep goes through."""
    expected: float = 0.95
    """Part of the episodes that a trained policy survives at least, over all that the ranges hold: for ``verify``."""
    shortest: float = 0.0
    """s; an episode that is shorter does not show success."""
    survival: str = "no failure"
    """What is said of episodes that did not fail, where the task knows no success: of a walk "no fall"."""
    update_scale: float = 1.0
    """How many times the algorithms' usual number of updates the task needs."""
    algorithms: tuple[Literal["apg", "bc", "ppo", "sac"], ...] = ("ppo",)
    """Those that can train it, the fastest first; "apg" needs a plant with a derivative, "bc" demonstrations."""
    action_names: tuple[str, ...] = ()
    """What the numbers of an action are called, for an operator who gives them (``robo_rl.online.interventions``)."""
    encoders: tuple[Encoder, ...] = ()
    """The networks in front of the policy's, one for each group that ``observe`` gives besides the vector."""
    settings: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    """By algorithm, hyperparameters that suit the task better than the usual ones."""
    source: Source | None = None
    """Where it is written, if that is a user's own file (``robo_rl.sim.tasks.loading``)."""
    card_file: Path | None = None
    """The card of its robot, if that is another one than the task's own and in a user's own file."""
    files: tuple[str, ...] = ()
    """In a user's own file: names of the files beside it that it reads, such as a card or a model. A run keeps them."""
    student: str | None = None
    """For a task whose policy sees what other robots don't measure: the task that ``robo-rl distill`` teaches it to."""
    clicks: tuple[str, ...] = ()
    """What a person may do by a click on the floor of the live page: "goal", "obstacle"; see ``click``."""
    plants: tuple[str, ...] = ()
    """Engines that can simulate its robots, where there is a choice."""
    families: tuple[str, ...] = ()
    """Kinds of states on the way to success, from which a training may begin
    (``robo_rl.learn.experience.reset_states``), the farthest
    first. Such a task has a script (``robo_rl.sim.tasks.scripted``), ``family`` and ``hold``."""
    plant: str | None = None
    """The one of them that ``make_plant`` takes; None for the usual one of the device."""
    devices: tuple[str, ...] = ("cpu",)
    """Kinds of devices that its plant and its tensors can be on."""

    def require_device(self, device: str | torch.device) -> None:
        """ValueError for a device that its robots can't be simulated on."""
        if torch.device(device).type not in self.devices:
            alone = " or ".join(self.devices)
            raise ValueError(f"device is '{device}', but '{self.name}' is simulated on {alone} alone")

    def first_memory(self, n: int, device: str | torch.device = "cpu") -> dict[str, Tensor]:
        """The memory of n policies before their first step, tensors (n, *shape) by name."""
        blocks = self.spec.memory
        _, parts = empty_block(n, [block.shape for block in blocks], device, packed=False)
        for block, part in zip(blocks, parts, strict=True):
            part[:] = torch.tensor(block.initial, device=device).reshape(block.shape)
        return {block.name: part for block, part in zip(blocks, parts, strict=True)}

    def memory_at(self, goal: Tensor) -> dict[str, Tensor]:
        """Blocks of memory (m, *shape) that training gives policies instead of their first ones, where episodes of
        these goals (m, goal_size) begin in the middle. On robots, and in evaluations, all begin with ``first_memory``.
        """
        return {}

    def click(self, what: str, plant: P, goal: Tensor, robot: int, place: tuple[float, float]) -> None:
        """Do one of ``clicks`` at a ``place`` (m) in the world of a robot. ``goal`` (n, goal_size) is live.

        ValueError says in a sentence why that can't be.
        """
        raise ValueError(f"click is '{what}'; task '{self.name}' has {list(self.clicks)}")

    @abstractmethod
    def make_plant(self, n: int, device: str | torch.device) -> P:
        """The simulated robot, n times."""

    @abstractmethod
    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        """(n, observation_size): what the network sees of measured signals and its memory.

        Or a dictionary of groups: that vector as "policy", and scans, images or tables (n, *shape) by the names of
        ``encoders``.
        """

    @property
    def observation_shapes(self) -> dict[str, tuple[int, ...]]:
        """The groups of ``observe`` for one robot: the vector is "policy"."""
        return {"policy": (self.observation_size,), **{encoder.group: encoder.shape for encoder in self.encoders}}

    @abstractmethod
    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        """Commands, in SI units and within their limits, for a network's output (n, action_size) and the memory."""

    @abstractmethod
    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        """The memory for the next step, after these commands were given on these signals."""

    def act(
        self,
        action: Any,
        signals: Tensors,
        memory: Tensors,
        limit: Callable[[str, Any], Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """One step of a policy: commands (n, k) by name, and the memory for the next step, of a network's output
        (n, action_size), signals and memory. ``limit`` keeps a command, by its name, within what may be sent."""
        commands = self.command(action, memory)
        if limit is not None:
            commands = {name: limit(name, value) for name, value in commands.items()}
        return commands, self.remember(memory, signals, commands)

    @abstractmethod
    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        """Set-points at ``time`` (n,) s of an episode whose ``goal`` (n, k) was drawn at its start."""

    def engines(self) -> list[Engine]:
        """Other engines and physics in which a policy can be tried (``robo-rl transfer``)."""
        return []

    def controller(self) -> Any:
        """The classical controller that can do the task, or None.

        ``(signals, state) -> (commands, state)`` on arrays of any library, with ``first_state(n)``. On the command line
        it is "classical", or its ``name`` where it has one.
        """
        return None

    def controllers(self) -> tuple[Any, ...]:
        """Others like it, to compare with; each is found by its ``name``."""
        return ()

    def planner(self) -> Any:
        """What can lead a policy of another task through this one, or None: (``robo_rl.policy.led``).

        Like a controller, ``(signals, state) -> (commands, state)``, whose commands are signals of that policy.
        """
        return None

    def beside(self, teacher: Task) -> Task:
        """The task in whose environments ``teacher`` teaches this one: with the signals of both. By default its own."""
        return teacher

    def imitated(self, commands: Tensors, signals: Tensors, memory: Tensors) -> Tensor | None:
        """(n, action_size) actions that a student should have taken, for its ``memory`` and all ``signals``, its own
        and its teacher's, where the teacher gives ``commands``.

        With None, students are judged by their commands, which tell nothing of actions beyond a limit.
        """
        return None

    def family(self, truth: Mapping[str, Tensor]) -> Tensor:
        """(n,) the number, in ``families``, of the family that a state is of; −1 for none. Called with tensors."""
        raise NotImplementedError(f"task '{self.name}' has no families of states")

    def hold(self, signals: Tensors, memory: Tensors) -> Any:
        """(n, action_size) actions that keep what has been reached as it is. Only for tasks with ``families``."""
        raise NotImplementedError(f"task '{self.name}' has no families of states")

    def disturb(self, time: Any, goal: Any) -> dict[str, Any]:
        """Parameters of the plant, (n, …) by name, that change within an episode: what they are from ``time`` on."""
        return {}

    @abstractmethod
    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        """(n, k) what only a critic may see: the true state and the drawn parameters. Never exported."""

    @abstractmethod
    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        """Unweighted terms, each (n,)."""

    def measured_reward(self, signals: Tensors, memory: Tensors) -> Any:
        """(n,) what the last commands earned, by what a robot measures; None where no signal tells.

        ``memory`` is that before the step whose ``signals`` these are. For learning on a microcontroller.
        """
        return None

    @abstractmethod
    def errors(self, truth: Tensors) -> dict[str, Any]:
        """How far the robot is from what it should do, (n,) by the names of ``measures``."""

    def markers(self, truth: Tensors) -> list[Marker]:
        """What pictures show besides the robots' bodies: set-points, velocities, contacts."""
        return []

    @abstractmethod
    def failed(self, truth: Tensors) -> Any:
        """(n,) whether the episode is over."""

    def failures(self, truth: Tensors) -> dict[str, Any]:
        """(n,) truth values by the causes for which episodes fail, as metrics name them; several may hold at once."""
        return {"failed": self.failed(truth)}

    def mishap(self, truth: Tensors) -> Any:
        """(n,) whether something has just gone wrong that a training may begin again before
        (``robo_rl.learn.experience.collision_replay``): by default, if the episode has failed."""
        return self.failed(truth)

    def succeeded(self, truth: Tensors) -> Any:
        """(n,) whether the episode has reached its end; None where a task goes on until its time is over."""
        return None

    @property
    def knows_success(self) -> bool:
        """Whether an episode can reach its end, rather than go on until its time is over."""
        return type(self).succeeded is not Task.succeeded

    def advance(self, truth: Tensors, goal: Any) -> Any:
        """The goal (n, goal_size) from now on; None where goals stay for the whole episode."""
        return None

    def neighbours(self, truth: Tensors) -> dict[str, Any]:
        """What the robots of a team have to do with each other, (teams, K, …) by name, of ``truth`` (teams, K, …).

        These are true quantities like the plant's, for rewards, signals and critics: each robot's own row of them.
        Called with tensors, not fused. Only for teams.
        """
        return {}

    def team_failed(self, failed: Tensor) -> Tensor:
        """(teams,) whether teams have failed, of which robots (teams, K) did: by default, if one has."""
        return failed.any(1)

    def team_succeeded(self, succeeded: Tensor) -> Tensor:
        """(teams,) whether teams have succeeded, of which robots (teams, K) did: by default, if all have."""
        return succeeded.all(1)

    @abstractmethod
    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """The goals (m, goal_size) of episodes, given a draw from every range."""

    @abstractmethod
    def randomize(self, plant: P, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        """Write the physical parameters of the robots ``ids`` (m,), given a draw from every range."""

    @abstractmethod
    def place(self, plant: P, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        """Put the robots ``ids`` (m,) where their episodes begin, given a draw from every range and their goals."""
