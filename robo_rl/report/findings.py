"""The contents of a report: the findings about policies of any task, and sections for a kind of robot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from matplotlib.figure import Figure

from robo_rl.contract import Contract, Provenance
from robo_rl.evaluate.evaluation import Conditions, Episodes
from robo_rl.evaluate.transfer import Transfer
from robo_rl.policies.loading import CLASSICAL, Loaded
from robo_rl.report.worst import Worst
from robo_rl.sim.tasks import Measure, Task

RECORDED = 8
"""Episodes of each policy in plots and film."""


@dataclass(frozen=True)
class Subject:
    """One thing that the report is about, and its episodes."""

    target: str
    loaded: Loaded
    episodes: Episodes
    contract: Contract | None = None
    """None for the classical controller."""
    digest: str | None = None
    """Of the file, if it is one."""
    metrics: list[dict[str, float]] = field(default_factory=list)
    """Of its training, if it is a run."""

    @property
    def provenance(self) -> Provenance | None:
        """Where a policy comes from."""
        return self.contract.provenance if self.contract else None

    @property
    def figures(self) -> dict[str, float | int]:
        return self.episodes.summary()


@dataclass(frozen=True)
class Findings:
    """The contents of the page for any task. What only a kind of robot has is drawn of the first subject alone."""

    task: Task
    conditions: Conditions
    subjects: Sequence[Subject]
    classical: Subject | None = None
    """The classical controller in the same episodes, if the task has one."""
    comparisons: Sequence[Mapping[str, Any]] = ()
    """Of each subject with the controller: what ``robo_rl.evaluate.comparison.compare`` gives, and block (episodes)."""
    sweeps: Mapping[str, Mapping[str, list[dict[str, float]]]] = field(default_factory=dict)
    """By the names of ``policies``, then by range; values fixed for ``few`` episodes each."""
    few: int = 0
    transfer: Transfer | None = None
    """Of the first subject."""
    worst: Sequence[Worst] = ()
    """Its worst episodes."""
    options: str = ""
    """What of the command line says which task and robot are meant, beginning with a blank; for repeating it."""

    @property
    def measure(self) -> Measure:
        """The measure that decides comparisons."""
        return self.task.measures[-1]

    @property
    def rate(self) -> str:
        """What the rate of success is called: of a task that is never done, it is that of episodes without failure."""
        return "success" if self.task.knows_success else self.task.survival

    @property
    def policies(self) -> dict[str, Any]:
        """The subjects' policies by their names in plots, and the classical controller where there is one."""
        return {name: subject.loaded.policy for name, subject in self.named.items()}

    @property
    def episodes(self) -> dict[str, Episodes]:
        """Of the same."""
        return {name: subject.episodes for name, subject in self.named.items()}

    @property
    def named(self) -> dict[str, Subject]:
        """By their names in plots: "policy", "policy 2" and so on, "classical"."""
        found = {f"policy {k}" if k > 1 else "policy": subject for k, subject in enumerate(self.subjects, 1)}
        return {**found, **({CLASSICAL: self.classical} if self.classical else {})}

    def figures(self) -> dict[str, Any]:
        """What ``robo-rl report --json`` prints of any task."""
        rows = [{"target": one.target, "name": one.loaded.name, **one.figures} for one in self.subjects]
        for row, comparison in zip(rows, self.comparisons, strict=False):
            row["decision"] = comparison["decision"]
        found: dict[str, Any] = {**rows[0], "targets": rows}
        if self.classical is not None:
            found["classical"] = self.classical.figures
        if self.transfer is not None:
            found |= {"engines": self.transfer.engines, "least_kept": self.transfer.least_kept}
        return found


@dataclass(frozen=True)
class Plot:
    """A figure, and what to look at in it."""

    figure: Figure
    caption: str
    wide: bool = False
    """Over the whole width of the page."""


@dataclass(frozen=True)
class Cell:
    """A cell of a table: a number or words, and below it, smaller, what explains it; ``shade`` from 0 to 1."""

    text: str
    below: str = ""
    tip: str = ""
    """Shown by a pointer that rests on it."""
    shade: float = 0.0


@dataclass(frozen=True)
class Section:
    """A part of the page under a title of its own."""

    id: str
    title: str
    text: str = ""
    """What is shown and how to read it."""
    table: Mapping[str, Sequence[Cell]] = field(default_factory=dict)
    """Rows by their names."""
    plots: Sequence[Plot] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)
    """What ``robo-rl report --json`` prints of it."""
    commands: Sequence[str] = ()
    """What to type to repeat it."""
    summary: str = ""
    """The result in one line."""


class KindReport(Protocol):
    """What a module on a kind of robots gives."""

    HINTS: Mapping[str, str]
    """By range of the kind's tasks: what to look at in the plot of its sweep."""

    def sections(self, findings: Findings) -> list[Section]:
        """Parts of the page that only robots of this kind have; may run further episodes."""
