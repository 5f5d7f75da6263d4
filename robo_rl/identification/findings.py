"""What is found in the logs of a robot of any kind that can be identified: a kind's folder here finds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from robo_rl.contract.kinds import kinds_in, of_kind
from robo_rl.identification.estimate import Estimate
from robo_rl.identification.recorded import require_fit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from robo_rl.deploy.robot.logs.reader import Log
    from robo_rl.sim.tasks import Task

PACKAGE = "robo_rl.identification"
ITERATIONS = 9
Progress = Callable[[int, str], None]


@dataclass(frozen=True)
class Findings:
    """A fit, for people, for the training, and for programs."""

    recorded: str
    """What was fitted: "1200 control steps, 24.0 s"."""
    estimates: tuple[Estimate, ...]
    notes: tuple[str, ...]
    """Sentences on how good the fit is, and on what can't be told apart."""
    faults: tuple[str, ...]
    """Why it must not be believed, each with what to do; none if it may."""
    bounds: dict[str, tuple[float, float]]
    """The task's ranges that the logs determine, with the bounds that they leave."""
    figures: dict[str, Any]
    """Those of ``--json`` besides the parameters."""
    draw: Callable[[], Figure]


class Finder(Protocol):
    """What the module of a kind gives."""

    def find(self, logs: Sequence[Log], task: Task, iterations: int, progress: Progress) -> Findings: ...


def find(logs: Sequence[Log], task: Task, progress: Progress = lambda done, note: None) -> Findings:
    """Find the parameters of the robot of ``logs``, sessions at ``task``; ValueError if that is not possible."""
    kind = task.spec.robot.kind
    finder: Finder | None = of_kind(PACKAGE, kind)
    if finder is None:
        raise ValueError(f"{logs[0].path} is of a robot of kind '{kind}'; expected one of {list(kinds_in(PACKAGE))}")
    for log in logs:
        require_fit(log, task)
    return finder.find(logs, task, ITERATIONS, progress)
