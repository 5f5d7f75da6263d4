"""Hyperparameters of the learning algorithms. Apart from the algorithms, so that reading them loads no torch."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from re import fullmatch
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints


class Bound(NamedTuple):
    """What a hyperparameter has to be."""

    words: str
    holds: Callable[[Any], object]


MOST = 2**31 - 1
Count = Annotated[int, Bound("at least 1, and below 2³¹", lambda x: 1 <= x <= MOST)]
Robots = Annotated[int, Bound("1 to 1000000", lambda x: 1 <= x <= 1_000_000)]
"""Simulated at once."""
Whole = Annotated[int, Bound("at least 0, and below 2³¹", lambda x: 0 <= x <= MOST)]
Positive = Annotated[float, Bound("a positive number", lambda x: 0.0 < x < inf)]
NotNegative = Annotated[float, Bound("0 or a positive number", lambda x: 0.0 <= x < inf)]
Part = Annotated[float, Bound("0 to 1", lambda x: 0.0 <= x <= 1.0)]
Betas = Annotated[tuple[float, float], Bound("two numbers, 0 to below 1", lambda x: all(0.0 <= b < 1.0 for b in x))]
Rationality = Annotated[
    tuple[float, float], Bound("two numbers, 0 to 1000 each", lambda x: all(0.0 <= b <= 1000.0 for b in x))
]
Finite = Annotated[float, Bound("a finite number", lambda x: -inf < x < inf)]
Digest = Annotated[str, Bound('a SHA-256 as 64 hexadecimal digits, or ""', lambda x: fullmatch("([0-9a-f]{64})?", x))]
BaseName = Annotated[
    str, Bound('"script", a SHA-256 as 64 hexadecimal digits, or ""', lambda x: fullmatch("(script|[0-9a-f]{64})?", x))
]
Amount = Annotated[float, Bound("above 0, and at most 2", lambda x: 0.0 < x <= 2.0)]
Widths = Annotated[
    tuple[int, ...], Bound("widths of layers, each at least 1, and below 2³¹", lambda x: all(1 <= w <= MOST for w in x))
]


Chunk = Annotated[int, Bound("1 to 64", lambda x: 1 <= x <= 64)]


class Bounded:
    """Checks itself: ValueError names the hyperparameter, its value and what was expected."""

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(type(self), include_extras=True).items():
            value = getattr(self, name)
            kind, *bounds = get_args(hint) if get_origin(hint) is Annotated else (hint,)
            if not _is(value, kind):
                raise ValueError(f"{name} is {_shown(value)}; expected {_words(kind)}")
            for bound in bounds:
                if not bound.holds(value):
                    raise ValueError(f"{name} is {_shown(value)}; expected {bound.words}")


def _is(value: Any, kind: Any) -> bool:
    """Whether ``value`` is of a type; integers are floats if they are no larger, lists from JSON are tuples."""
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    if get_origin(kind) is tuple:
        first, *others = get_args(kind)
        long = others == [...] or (isinstance(value, list | tuple) and len(value) == 1 + len(others))
        return isinstance(value, list | tuple) and long and all(_is(x, first) for x in value)
    if kind is float:
        return isinstance(value, float) or (type(value) is int and abs(value) <= 2**53)
    return type(value) is kind


def _words(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {list(get_args(kind))}"
    if get_origin(kind) is tuple:
        return f"a list, each {_words(get_args(kind)[0])}"
    return {int: "an integer", float: "a number", bool: "true or false", str: "a text"}[kind]


def _shown(value: Any) -> str:
    return reprlib.repr(value) if isinstance(value, str | list | dict | int) else str(value)


@dataclass(frozen=True)
class ApgConfig(Bounded):
    """Hyperparameters of the analytic policy gradient."""

    updates: Count = 110
    """Gradient steps, times the task's update scale; the learning rate falls to zero along half a cosine over them."""
    environments: Robots = 192
    """Robots simulated at once."""
    horizon: Count = 32
    """Control steps that a gradient sees."""
    learning_rate: Positive = 0.016
    """Adam's step size at the start."""
    betas: Betas = (0.8, 0.9)
    """Adam's averaging. The gradient is exact but for the draw of environments, so short averages do."""
    gradient_norm: Positive = 0.1
    """Longer gradients are cut to this norm."""
    hidden: Widths = (64, 64)
    """Widths of the policy's hidden layers."""
    activation: Literal["tanh"] = "tanh"
    """What follows the hidden layers."""
    chunk: Chunk = 1
    """Actions that one inference gives, one for each of the next control steps."""
    replay: Part = 0.0
    """Of teams: the part of the episodes that begin shortly before a mishap of an earlier one."""
    adversary: tuple[str, ...] = ()
    """Ranges that an adversary draws; see docs/algorithms.md."""
    rationality: Rationality = (0.0, 2.0)
    """Of the adversary, at the first and the last update: 0 draws at random."""


@dataclass(frozen=True)
class PpoConfig(Bounded):
    """Hyperparameters of proximal policy optimisation, by rsl_rl's names where it has them."""

    updates: Count = 300
    """Iterations of collecting and learning, times the task's update scale."""
    environments: Robots = 1024
    """Robots simulated at once."""
    horizon: Count = 32
    """Control steps collected per environment and update."""
    learning_rate: Positive = 1e-3
    """Adam's step size at the start; it adapts to the wanted divergence."""
    desired_kl: Positive = 0.02
    """Divergence between policies before and after an update that the step size aims at."""
    anneal: Part = 0.0
    """Part of the updates, the last ones, over which the wanted divergence falls to a tenth: what is left to learn then
    is finer than the noise of larger steps."""
    epochs: Count = 4
    mini_batches: Count = 4
    gamma: Part = 0.99
    """Discount per control step."""
    lam: Part = 0.95
    """λ of generalised advantage estimation."""
    clip: Positive = 0.2
    entropy: NotNegative = 0.002
    """Weight of the entropy bonus."""
    gradient_norm: Positive = 1.0
    initial_deviation: Positive = 0.4
    """Standard deviation of exploration at the start, in actions."""
    hidden: Widths = (64, 64)
    """Widths of the policy's hidden layers."""
    critic_hidden: Widths = (128, 128)
    activation: Literal["tanh", "elu", "relu", "silu"] = "tanh"
    recurrent: Whole = 0
    """Width of a recurrent network (GRU) in front of the policy's hidden layers; 0 for none."""
    chunk: Chunk = 1
    """Actions that one inference gives, one for each of the next control steps."""
    normalize: bool = True
    """Normalise observations by their running mean and deviation."""
    adversary: tuple[str, ...] = ()
    """Ranges that an adversary draws; see docs/algorithms.md."""
    rationality: Rationality = (0.0, 2.0)
    """Of the adversary, at the first and the last update: 0 draws at random."""
    cut: Part = 0.0
    """Of several processes: once this part of them has collected its horizon, the others collect no more, if they have
    a quarter of theirs (DD-PPO, Wijmans et al. 2020, who take 0.6). 0: all collect all."""
    spread: bool = False
    """The first episodes begin with only a part of their time left, drawn for each: where all episodes are equally
    long, they would else all be at the same moment in every update."""
    rnd: NotNegative = 0.0
    """Weight of novelty in the reward, by random network distillation; 0 for none."""
    reset_states: Digest = ""
    """SHA-256 of the reset states in the run's folder; "" for none. Told by --reset-states."""
    reset_weights: tuple[str, ...] = ()
    """NAME:WEIGHT, how often episodes begin with reset states of a family, or as the task's own do, "start"; all the
    same where none is given."""
    base: BaseName = ""
    """What the policy corrects: "script", the task's own, or the SHA-256 of a frozen policy in the run's folder; "" for
    nothing. Told by --base."""
    bound: Amount = 0.3
    """Of a correction of the base, in actions."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.base and self.recurrent:
            raise ValueError(f"recurrent is {self.recurrent}; expected 0 with a base")
        if self.chunk > 1 and (self.recurrent or self.base):
            raise ValueError(f"chunk is {self.chunk}; expected 1 with a recurrent network or a base")
        samples = self.environments * (1 if self.recurrent else self.horizon)
        if self.mini_batches > samples:
            kind = "the environments of a recurrent policy" if self.recurrent else "an update's samples"
            raise ValueError(f"mini_batches is {self.mini_batches}; expected at most {samples}, {kind}")


@dataclass(frozen=True)
class SacConfig(Bounded):
    """Hyperparameters of soft actor-critic, by RLPD's names where it has them."""

    updates: Count = 100
    """Rounds, each of ``steps`` control steps and what is learnt after each of them, times the task's update scale."""
    steps: Count = 50
    """Control steps per environment and round."""
    environments: Robots = 32
    """Robots simulated at once."""
    gradient_steps: Count = 8
    """Steps of the critics per control step of all robots."""
    actor_every: Count = 2
    """Steps of the critics for one of the actor and the temperature."""
    batch: Annotated[int, Bound("2 to 1000000", lambda x: 2 <= x <= 1_000_000)] = 256
    """Transitions per step, half of them from demonstrations where there are some."""
    first: Count = 2000
    """Transitions that the robots collect before the first step."""
    gamma: Part = 0.985
    """Discount per control step."""
    target_rate: Part = 0.005
    """Of the critics, per step, that goes into the slow ones which targets come from."""
    learning_rate: Positive = 3e-4
    """Adam's step size."""
    critics: Annotated[int, Bound("2 to 100", lambda x: 2 <= x <= 100)] = 2
    """In the ensemble; a target is the least of two of them, drawn at every step."""
    entropy_backup: bool = False
    """Whether targets count the entropy of later actions; RLPD leaves it out where rewards are sparse."""
    initial_temperature: Positive = 0.01
    initial_deviation: Positive = 0.4
    """Standard deviation of the first policy, in actions."""
    greatest_deviation: Positive = 1.6487212707001282
    """Of the policy, anywhere, exp(0.5) by default; where it is small, the mean has to do by itself what noise would
    find."""
    target_entropy: Finite = -0.5
    """Wanted entropy of the policy, per action."""
    deviation_price: NotNegative = 0.0
    """Price of the squared way of deviations' logarithms beyond their limits. Where they are cut they have no gradient:
    without a price, a policy that has become random in states where no action seemed better can stay so."""
    anneal: Part = 0.0
    """Part of the rounds, the last ones, in which ``final_entropy`` is wanted: what is exported is the policy's mean,
    which learns there to do without randomness."""
    final_entropy: Finite = -2.0
    """Wanted entropy, per action, in the rounds of ``anneal``."""
    warm_up: Whole = 0
    """Rounds, the first ones, in which critics learn what the policy earns, and the policy stays as it is."""
    anchor: NotNegative = 0.0
    """Price of the squared way of actions from those of the policy at the start; for one that has learnt before."""
    anchor_part: Part = 0.5
    """Part of the rounds after the warm-up over which that price falls to nothing."""
    imitation: NotNegative = 0.0
    """Price of the squared way of actions from those that were demonstrated, or are in the robot's log."""
    hidden: Widths = (128, 128)
    """Widths of the policy's hidden layers."""
    critic_hidden: Widths = (128, 128)
    activation: Literal["tanh", "elu", "relu", "silu"] = "relu"
    actors: Whole = 0
    """Processes of a Ray cluster that act beside the learning, each for a share of the environments; 0: none, robots
    and learning take turns."""
    lag: Whole = 50
    """Of actors: what was collected with weights older than so many times of learning is dropped."""
    demonstrations: Digest = ""
    """SHA-256 of the demonstrations in the run's folder; "" for none. Told by --demonstrations."""
    robot_log: Digest = ""
    """SHA-256 of a robot's log in the run's folder; "" for none. Told by --robot-log."""
    log_part: Part = 0.5
    """Of each batch that comes from the robot's log, where there is one; 1: nothing is learnt from the simulator."""
    dynamics_ratio: bool = False
    """Whether critics' errors at simulated transitions weigh as much as the robot is likely to make them (H2O); see
    ``robo_rl.learn.hybrid``."""
    ratio_noise: NotNegative = 0.1
    """Standard deviation of what is added to what its classifiers see, in deviations of the log, as in H2O."""
    reset_states: Digest = ""
    """SHA-256 of the reset states in the run's folder; "" for none. Told by --reset-states."""
    reset_weights: tuple[str, ...] = ()
    """NAME:WEIGHT, how often episodes begin with reset states of a family, or as the task's own do, "start"; all the
    same where none is given."""
    base: BaseName = ""
    """What the policy corrects: "script", the task's own, or the SHA-256 of a frozen policy in the run's folder; "" for
    nothing. Told by --base."""
    bound: Amount = 0.3
    """Of a correction of the base, in actions."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.demonstrations and self.robot_log:
            raise ValueError("demonstrations and robot_log are both given; expected one of them")
        if self.dynamics_ratio and not 0.0 < self.log_part < 1.0:
            raise ValueError(f"log_part is {self.log_part:g}; expected above 0 and below 1 with dynamics_ratio")
        if self.actors and self.reset_states:
            raise ValueError(f"actors is {self.actors}; expected 0 with reset states")
        if self.actors and self.environments % self.actors:
            raise ValueError(f"environments is {self.environments}; expected a multiple of the {self.actors} actors")


@dataclass(frozen=True)
class BcConfig(Bounded):
    """Hyperparameters of behaviour cloning."""

    updates: Count = 100
    """Rounds, times the task's update scale; the learning rate falls to zero along half a cosine over them."""
    steps: Count = 50
    """Mini-batches per round."""
    batch: Count = 256
    """Moments per mini-batch."""
    learning_rate: Positive = 1e-3
    """Adam's step size at the start."""
    noise: NotNegative = 0.02
    """Standard deviation of what is added to observations, so that what lies beside the demonstrations is learnt."""
    hidden: Widths = (128, 128)
    """Widths of the policy's hidden layers."""
    activation: Literal["tanh", "elu", "relu", "silu"] = "relu"
    flow: Annotated[int, Bound("0 to 16", lambda x: 0 <= x <= 16)] = 0
    """Integration steps of a flow policy, which does one of several ways that are shown; 0: none, but their mean."""
    chunk: Chunk = 1
    """Actions that a flow policy plans at once, and takes before it plans again."""
    demonstrations: Digest = ""
    """SHA-256 of the demonstrations in the run's folder. Told by --demonstrations."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.chunk > 1 and not self.flow:
            raise ValueError(f"chunk is {self.chunk}; expected 1 without a flow")


@dataclass(frozen=True)
class DistillConfig(Bounded):
    """Hyperparameters of distillation (``robo_rl.learn.distill``)."""

    hidden: Widths
    """Widths of the student's hidden layers."""
    activation: str
    normalize: bool = False
    """Normalise observations, by the teacher's mean and deviation."""
    updates: Count = 4000
    """Steps of learning, and of all robots."""
    environments: Robots = 256
    """Robots simulated at once."""
    mixed: Whole = 16
    """Past moments that join every update."""
    learning_rate: Positive = 1e-3
    """Adam's step size at the start; it falls to zero along half a cosine."""
    teacher_part: Part = 0.0
    """Part of the updates over which the teacher's share of the robots falls from all to none; with 0, it has all of
    them for the first 50 and none afterwards."""
    teacher: str = ""
    """Folder of the teacher's run; "" if the teacher is a bundle."""


CONFIGS = {"apg": ApgConfig, "bc": BcConfig, "ppo": PpoConfig, "sac": SacConfig, "distilled": DistillConfig}
