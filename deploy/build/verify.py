"""Prove that an exported file does what was trained: torch = onnxruntime in closed loop, and it flies.

The torch graph is built again from the task's code and the parameters in the file. Both fly the same flights:
onnxruntime's commands move the robots, and at every step torch is asked the same question with the same signals
and the same state. Then ``robo_rl.deploy.build.examination`` compares the graphs and searches where no flight goes.

A graph that robo-rl did not export has no parameters to build a torch graph from. It is flown and searched alone, and
only if the caller says that it is ``foreign``: else whoever plants something would only have to rename a parameter.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from robo_rl.contract import Command, Contract
from robo_rl.deploy.build.examination import GraphCheck, Search, Seen, check_graph, search
from robo_rl.deploy.build.export import read_parameters
from robo_rl.deploy.build.rows import Apart, Batching, batching
from robo_rl.deploy.robot.bundle import Bundle, BundleError, command_differences, greatest
from robo_rl.deploy.robot.bundle.attachment import INSIDE, SOURCE, Attached
from robo_rl.deploy.robot.runtime import GOLDEN_TOLERANCE
from robo_rl.evaluate.evaluation import Conditions, rollout
from robo_rl.files.escaping import shell_word
from robo_rl.learn.factory import MEMORY, graph_of
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.loading import FILE, load_task

PARITY_TOLERANCE = 1e-5  # commands in units of their range, states as they are
MANY = 100  # episodes, in which all parts of the shipped policies move, those of a policy for rooms included


@dataclass(frozen=True)
class Verification:
    """What was found. ``failures`` holds one sentence per check that failed."""

    golden_error: float
    max_abs_error: float | None
    """None of a foreign graph."""
    steps: int
    flights: Mapping[str, float]
    task: Task
    graph: GraphCheck
    search: Search
    failures: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.failures


class BundlePolicy:
    """An exported file as a policy, each robot of a batch as if it were alone.

    BundleError if its graph mixes the rows of a batch, and by ``__call__`` when rows are seen to differ.
    """

    def __init__(self, bundle: Bundle, found: Batching | None = None) -> None:
        """``found``: what is known of the graph's rows; a fault in it is the caller's affair then."""
        self.bundle, self.network, self.strict = bundle, bundle.contract.network, found is None
        found = found or batching(bundle)
        if self.strict and found.fault:
            raise BundleError(f"{bundle.path}: {found.fault}")
        self.apart = Apart(bundle, found)

    def initial_state(self, n: int) -> Tensor:
        return torch.from_numpy(np.tile(self.bundle.contract.initial_state, (n, 1)))

    def __call__(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        arrays = {name: np.ascontiguousarray(value.numpy()) for name, value in signals.items()}
        commands, following = self.apart.run(arrays, state.numpy())
        if self.strict and self.apart.told:
            raise BundleError(f"{self.bundle.path}: {self.apart.told}")
        return {name: torch.from_numpy(value) for name, value in commands.items()}, torch.from_numpy(following)


class Witness(BundlePolicy):
    """Flies by the file, asks torch the same at every step, and keeps the greatest difference and what was seen."""

    def __init__(self, bundle: Bundle, policy: PolicyGraph | None, found: Batching | None = None) -> None:
        super().__init__(bundle, found)
        self.policy, self.worst, self.steps, self.seen = policy, 0.0, 0, Seen()

    def __call__(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        self.seen.add({name: value.numpy() for name, value in signals.items()}, state.numpy())
        commands, following = super().__call__(signals, state)
        self.steps += len(state)
        if self.policy is None:
            return commands, following
        with torch.no_grad():
            expected, expected_state = self.policy(signals, state)
        differences = command_differences(self.bundle.contract, commands, expected)
        self.worst = max(self.worst, greatest([*differences, (following - expected_state).numpy()]))
        return commands, following


def named_task(policy: Bundle | Contract, task: str | None = None, robot: str | None = None) -> Task:
    """The task that a policy's contract names, or another one, for its robot, or for the card ``robot``.

    A bundle brings the card of a robot that is not ours. It may bring the source of a user's own task too, which is
    run if ``task`` is "inside". Raises BundleError if the task is a user's own and ``task`` does not say where that is.
    """
    contract = policy.contract if isinstance(policy, Bundle) else policy
    attached = policy.attached if isinstance(policy, Bundle) else Attached()
    own = contract.provenance.source
    if (task is None and own) or (task == INSIDE and not attached.source_digest):
        raise BundleError(_where_is_it(policy, own, bool(attached.source_digest)))
    if task == INSIDE:
        task = str(attached.folder() / SOURCE / own)
    if robot is None and attached.card:
        robot = str(attached.folder() / attached.card)
    name = task or contract.task
    if robot is None and FILE.fullmatch(name):  # its robot may have a card beside it
        found = load_task(name)
        if found.spec.robot.name == contract.robot_name:
            return found
    return load_task(name, robot or contract.robot_name)


def _where_is_it(policy: Bundle | Contract, own: str, brought: bool) -> str:
    if not own:
        return f"--task is '{INSIDE}', but its task is not from a user's own file; leave --task out"
    if not brought:
        return f"its task is from a user's own file, '{own}'; say where that is: --task PATH/TO/{own}"
    path = shell_word(policy.path) if isinstance(policy, Bundle) else "FILE"
    return (
        f"its task is a program that the file brings, '{own}'; to run it with your rights, add --task {INSIDE} (to "
        f"read it first:  robo-rl inspect {path} --extract FOLDER)"
    )


def task_of(policy: Bundle | Contract, robot: str | None = None, task: str | None = None) -> Task:
    """As ``named_task``, if it is the task that the policy was trained with.

    Raises BundleError if it is not, or if today's task has other signals, commands or memory than the contract.
    """
    contract = policy.contract if isinstance(policy, Bundle) else policy
    found = named_task(policy, task, robot)
    require_source(contract, found)
    memory = (*found.spec.memory, *(block for block in contract.state if block.name in MEMORY))
    now = found.spec.contract(contract.provenance, contract.network, memory)
    for name, theirs, ours in (
        ("task", contract.task, now.task),
        ("control_period", contract.control_period, now.control_period),
        ("commands", [_command(c) for c in contract.commands], [_command(c) for c in now.commands]),
        ("state", contract.state, now.state),
        ("robot", contract.robot, now.robot),
    ):
        if theirs != ours:
            raise BundleError(
                f"{name} of the contract is {theirs}; the task '{found.name}' for robot "
                f"'{found.spec.robot.name}' has {ours}"
            )
    seen, known = ([(s.name, s.elements, s.dimensions, s.unit, s.frame) for s in c.signals] for c in (contract, now))
    if seen != known:
        raise BundleError(f"signals of the contract are {seen}; the task '{found.name}' has {known}")
    return found


def renewed(contract: Contract, task: Task) -> Contract:
    """The contract that a policy of ``contract`` has by its task (``task_of``) today, of the newest version.

    What tells how the policy was trained stays: limits, noise and latency of signals, and what was seen.
    """
    now = task.spec.contract(contract.provenance, contract.network, contract.state)
    kept = ("lower", "upper", "noise", "delay", "seen_low", "seen_high")
    signals = tuple(
        dataclasses.replace(signal, **{name: getattr(contract.signal(signal.name), name) for name in kept})
        for signal in now.signals
    )
    return dataclasses.replace(now, signals=signals)


def require_source(contract: Contract, task: Task) -> None:
    """BundleError unless the files of a user's own task are those that the policy was trained with."""
    made = contract.provenance
    if made.source_digest == (task.source.digest if task.source else ""):
        return
    if task.source is None:
        raise BundleError(f"its task is from a user's own file, '{made.source}'; '{task.name}' is not")
    if not made.source:
        raise BundleError(f"its task '{contract.task}' is not from a user's own file; {task.source.label} is")
    raise BundleError(
        f"{task.source.file} and what it imports give the SHA-256 {task.source.digest[:12]}…, but the policy was "
        f"trained with {made.source_digest[:12]}…; expected the files as they were: the run's folder 'source' has them"
    )


def _command(command: Command) -> tuple[object, ...]:
    """What a command means to the policy; how it is stopped and measured is the robot's affair."""
    limits = (command.lower, command.upper, command.start)
    return (command.name, command.elements, command.unit, command.frame, *limits)


def torch_policy(bundle: Bundle, task: Task) -> PolicyGraph:
    """The policy graph in torch, with the parameters that the file holds."""
    shape = bundle.contract.network
    try:
        policy = graph_of(task, shape)
        policy.load_state_dict(read_parameters(bundle.path))
    except (KeyError, RuntimeError) as error:
        network = f"hidden layers {shape.hidden}, {shape.activation}, normalize {shape.normalize}"
        raise BundleError(f"{bundle.path}: its parameters are not those of {network} ({error})") from None
    return policy.eval()


def verify(
    path: str | Path, episodes: int = 1000, seed: int = 1, min_success: float | None = None, robot: str | None = None,
    task: str | None = None, foreign: bool = False,
) -> Verification:  # fmt: skip
    """Check the file at ``path``: whole, golden, equal to torch, at least ``min_success`` of episodes succeed.

    Its graph must be that of its task and network, and nothing strange be found within the signals' limits.

    By default that is what its task expects of a trained policy. ``task`` tells where a user's own task is.
    ``foreign``: the graph is not an export of robo-rl, so nothing is compared with torch.
    """
    bundle = Bundle.read(path)
    known = task_of(bundle, robot, task)
    least = known.expected if min_success is None else min_success
    golden_error = bundle.golden_error()
    policy = None if foreign else _torch_policy(bundle, known)
    graph, failures = check_graph(bundle, policy)
    rows = batching(bundle)
    failures += [f"graph: {rows.fault}"] if rows.fault else []
    witness = Witness(bundle, policy, rows)
    flights = rollout(known, witness, Conditions(episodes=episodes, seed=seed), "verifying").summary()
    if not golden_error <= GOLDEN_TOLERANCE:
        failures.append(f"golden vectors: off by {golden_error:.2g}; expected at most {GOLDEN_TOLERANCE:g}")
    if not witness.worst <= PARITY_TOLERANCE:
        failures.append(f"torch and onnxruntime differ by {witness.worst:.2g}; expected at most {PARITY_TOLERANCE:g}")
    if not flights["success"] >= least:
        failures.append(f"{flights['success']:.1%} of episodes succeeded; expected at least {least:.1%}")
    asked = Apart(bundle, Batching()) if rows.fault else witness.apart
    found, strange = search(bundle, policy, witness.seen, bool(graph.same), seed, asked)
    failures += strange
    if found.resting and episodes < MANY:
        failures[-1] += f". It flew {episodes} episodes: what is at work seldom moves in more (--episodes {MANY})"
    failures += [f"rows: {witness.apart.told}"] if witness.apart.told else []
    worst = None if foreign else witness.worst
    return Verification(golden_error, worst, witness.steps, flights, known, graph, found, failures)


def _torch_policy(bundle: Bundle, task: Task) -> PolicyGraph:
    try:
        return torch_policy(bundle, task)
    except BundleError as error:
        raise BundleError(
            f"{error}. A graph that robo-rl did not export is checked, as far as it can be, by --foreign"
        ) from None
