"""Runs: the folder in which a training keeps all that it makes.

runs/quadrotor-hover-seed0-1/
    run.json                  what was trained and how; enough to do it again
    source/                   the files of the task, if it is a user's own
    base.safetensors          the frozen policy that this one corrects, if it does
    lock                      held by the process that trains
    checkpoint.safetensors    the newest state of the training
    metrics.jsonl             one line per report
    events.out.tfevents.…     the same for TensorBoard
    done.json                 written last: the digest of the trained policy, and its evaluation
    policy.onnx, report.html  what export and report write, if told nothing else
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import itertools
import json
import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from robo_rl.console import finite
from robo_rl.contract import Chunk, Flow, Network, Provenance
from robo_rl.contract.checks import require
from robo_rl.files import read_bytes, write
from robo_rl.files.escaping import file_name
from robo_rl.files.text import fits, read_json
from robo_rl.learn.config import CONFIGS
from robo_rl.learn.factory import graph_of
from robo_rl.learn.residual import network_of, put_base
from robo_rl.learn.runs import checkpoint
from robo_rl.learn.runs.results import is_metric, metrics_lines, require_result
from robo_rl.policy import PolicyGraph
from robo_rl.sim.ranges import replaced
from robo_rl.sim.robots import load_robot, place_of
from robo_rl.sim.robots.figures import is_number
from robo_rl.sim.sensors import Sensors
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.attached import attached_of
from robo_rl.sim.tasks.loading import FILE, load_task

MOST_TOLD = 5
"""Runs that are named where the folder of all is given in place of one."""
HELD_OUT = 1 << 20
"""Seeds of evaluations begin here; those of trainings are smaller."""
SOURCE = "source"
"""The folder in a run's folder with the files of a user's own task."""


class RunError(ValueError):
    """A run's folder is missing or damaged. The message names the file."""


@dataclass(frozen=True)
class Run:
    """What a training is: everything that its result depends on."""

    folder: Path
    task_name: str
    robot: str | None
    algorithm: str
    seed: int
    hyperparameters: dict[str, Any]
    ranges: dict[str, list[float]] = field(default_factory=dict)
    """Bounds, low and high, in place of some of the task's own ranges."""
    begun_from: str | None = None
    """Digest of the policy that this one began with (``robo_rl.learn.runs.warm_start``)."""
    plant: str | None = None
    """Engine of the training, where the task's robots can be simulated by several."""
    source_digest: str = ""
    """Of a task from a user's own file, whose copy is in the folder ``source``."""
    stop_below: dict[str, float] = field(default_factory=dict)
    """By update, in digits, the reward below which the training ends there."""

    @classmethod
    def create(
        cls, root: Path, task_name: str, robot: str | None, algorithm: str, seed: int,
        hyperparameters: dict[str, Any], ranges: Mapping[str, Sequence[float]] | None = None, origin: Run | None = None,
        plant: str | None = None, name: str | None = None, stop_below: Mapping[str, float] | None = None,
    ) -> Run:  # fmt: skip
        """A new folder under ``root``, called ``name``, or after the task and the seed with the next free number.

        A user's own task, card and ranges are copied into it: the run stays whole.
        """
        task = load_task(task_name, robot)  # a wrong name should fail before a folder exists
        check_whole(task)
        if not 0 <= seed < HELD_OUT:
            raise ValueError(f"seed is {seed}; expected 0 to {HELD_OUT - 1}: larger ones are reserved for evaluation")
        folder = _new_folder(root, label_of(task, algorithm, seed)) if name is None else _named_folder(root, name)
        if robot is not None and robot.endswith(".toml"):
            card = load_robot(robot, task.card_type)
            for file in card.files():
                copy = folder / place_of(file, Path(robot))
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, copy)
            own = folder / f"{card.name}.toml"  # a file card.toml is called after its folder, which it now leaves
            robot = Path(shutil.copy(robot, own)).name
        moved = {name: list(pair) for name, pair in (ranges or {}).items()}
        newest = read_bytes(origin.checkpoint_file, checkpoint.MOST_BYTES) if origin else b""
        begun_from = hashlib.sha256(newest).hexdigest() if origin else None
        digest = ""
        if task.source is not None:
            digest, task_name = task.source.digest, f"{SOURCE}/{task.source.label}"
            for path in task.source.files:
                copy = folder / SOURCE / path.relative_to(task.source.file.parent)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, copy)
        floors = dict(stop_below or {})
        run = cls(folder, task_name, robot, algorithm, seed, hyperparameters, moved, begun_from, plant, digest, floors)
        if task.source is not None:
            try:
                run._check_copy(task)
            except ValueError:
                shutil.rmtree(folder)
                raise
        write(folder / "run.json", json.dumps(run.description(), indent=2) + "\n")
        return run

    def _check_copy(self, task: Task) -> None:
        """RunError unless the files in the folder are all that a user's own task needs."""
        hint = "expected a class whose 'files' name all the files that it reads"
        try:
            robot = self.task().spec.robot.name
        except ValueError as error:
            raise RunError(
                f"{task.source and task.source.label}: its copy can't be loaded ({error}); {hint}"
            ) from error
        if robot != task.spec.robot.name:
            raise RunError(
                f"{task.source and task.source.label}: the robot '{task.spec.robot.name}' is called '{robot}' where a "
                f"run keeps it; expected a card with the robot's name, as in '{task.spec.robot.name}.toml'"
            )

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """The run in an existing folder."""
        path = Path(folder) / "run.json"
        if not path.is_file():
            inside = [str(run.parent) for run in sorted(Path(folder).glob("*/run.json"))[:MOST_TOLD]]
            expected = f"one of the runs in it: {', '.join(inside)}" if inside else "the folder of a run"
            raise RunError(f"{path} does not exist; expected {expected}, created by 'robo-rl train'")
        try:
            data = read_json(path)
            data.pop("versions")
            run = cls(folder=Path(folder), **data)
            run._check()
            chosen = vars(CONFIGS[run.algorithm](**run.hyperparameters))
            Network(tuple(chosen["hidden"]), chosen["activation"], False, chosen.get("recurrent", 0))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise RunError(f"{path}: {repr(error)[:300]}; expected a file written by 'robo-rl train'") from None
        return run

    def _check(self) -> None:
        """ValueError unless everything is of its type: a file may have been changed by hand."""
        texts = (self.task_name, self.algorithm, self.source_digest)
        optional = (self.robot, self.begun_from, self.plant)
        require(all(isinstance(x, str) for x in texts), "task_name, algorithm, source_digest", texts, "texts")
        named = all(x is None or isinstance(x, str) for x in optional)
        require(named, "robot, begun_from, plant", optional, "texts or null")
        require(self.algorithm in CONFIGS, "algorithm", self.algorithm, f"one of {list(CONFIGS)}")
        good = type(self.seed) is int and 0 <= self.seed < HELD_OUT
        require(good, "seed", self.seed, f"an integer from 0 to {HELD_OUT - 1}")
        require(isinstance(self.hyperparameters, dict), "hyperparameters", self.hyperparameters, "an object")
        require(isinstance(self.ranges, dict), "ranges", self.ranges, "an object")
        for name, bounds in self.ranges.items():
            good = isinstance(bounds, list) and len(bounds) == 2 and all(is_number(x) for x in bounds)
            require(good and bounds[0] <= bounds[1], f"ranges: {name}", bounds, "two numbers, the lower one first")
        require(isinstance(self.stop_below, dict), "stop_below", self.stop_below, "an object")
        for update, floor in self.stop_below.items():
            require(update.isdecimal() and is_number(floor), f"stop_below: {update}", floor, "an update and a number")
        within = Path(self.task_name).parts[:1] == (SOURCE,) and ".." not in self.task_name
        require(within or not self.source_digest, "task_name", self.task_name, f"a file in the folder {SOURCE}")
        known = FILE.fullmatch(self.task_name) is None or bool(self.source_digest)
        require(known, "task_name", self.task_name, f"a task's name, or a file in the folder {SOURCE} with its digest")
        own = self.robot is not None and self.robot.endswith(".toml")
        require(not own or Path(str(self.robot)).name == self.robot, "robot", self.robot, "a card in the run's folder")

    def description(self) -> dict[str, Any]:
        """What run.json holds."""
        data = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "folder"}
        if not self.stop_below:  # as in earlier releases, whose digests stay
            del data["stop_below"]
        return {**data, "versions": versions()}

    def task(self) -> Task:
        """The task, for the robot of this run."""
        task = load_task(self.task_source, self.robot_source)
        if task.source is not None and task.source.digest != self.source_digest:
            raise RunError(
                f"{self.folder / SOURCE}: the files of the task were changed since the start of the training"
            )
        try:
            task.spec = dataclasses.replace(task.spec, ranges=replaced(task.spec.ranges, self.ranges))
            Sensors(task.spec.signals, task.spec.control_period, task.spec.ranges)  # whose memory latency is
        except ValueError as error:
            raise RunError(f"{self.folder / 'run.json'}: {error}") from None
        return task

    @property
    def task_source(self) -> str:
        """Name of the task, or path of the file in the run's folder that it is in, with its class."""
        return str(self.folder / self.task_name) if self.source_digest else self.task_name

    @property
    def robot_source(self) -> str | None:
        """Name of the robot, or path of its card; None for the task's own."""
        own = self.robot is not None and self.robot.endswith(".toml")
        return str(self.folder / str(self.robot)) if own else self.robot

    @property
    def checkpoint_file(self) -> Path:
        return self.folder / "checkpoint.safetensors"

    @property
    def done_file(self) -> Path:
        return self.folder / "done.json"

    def done(self) -> dict[str, Any] | None:
        """What done.json holds; None while there is none, or if run.json was changed since. RunError if damaged."""
        if not self.done_file.exists():
            return None
        try:
            found = read_json(self.done_file)
            require_result(self.done_file, found)
        except ValueError as error:
            raise RunError(f"{error}; expected a file written by 'robo-rl train'") from None
        return found if found.get("configuration_digest") == self.configuration_digest else None

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write done.json: the training has ended, and its ``result`` is this."""
        tensors, _ = checkpoint.load(self.checkpoint_file)
        digests = {"policy_digest": policy_digest(tensors), "configuration_digest": self.configuration_digest}
        content = finite({**result, **digests, "versions": versions()})
        write(self.done_file, json.dumps(content, indent=2, allow_nan=False) + "\n")

    def metrics(self) -> list[dict[str, float]]:
        """The lines of metrics.jsonl; the last may be cut off, by a kill or a full disk, and is left out then."""
        file, found = self.folder / "metrics.jsonl", []
        if not file.exists():
            return []
        for number, line in enumerate(metrics_lines(file)[:-1], 1):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            counts = [row.get(name) for name in ("update", "environment_steps")] if isinstance(row, dict) else [None]
            good = all(type(count) is int and 0 <= count <= checkpoint.MOST_COUNTED for count in counts)
            if not good or not all(k.isprintable() and is_metric(x) for k, x in row.items()):
                raise RunError(f"{file}, line {number}: {line[:80]!r}; expected numbers by name, one object per line")
            found.append(row)
        return found

    def new_policy(self) -> PolicyGraph:
        """An untrained policy graph of this run's shape, with the base that it corrects, if there is one."""
        chosen = vars(CONFIGS[self.algorithm](**self.hyperparameters))  # an earlier release may have told fewer
        base, task = chosen.get("base", ""), self.task()
        normalize, recurrent = chosen.get("normalize", False), chosen.get("recurrent", 0)
        corrected = network_of(self.folder, base, chosen["bound"]) if base else None
        flow = Flow(chosen["flow"], chosen["chunk"]) if chosen.get("flow") else None
        encoders = () if base or flow else task.encoders
        length = 1 if flow else chosen.get("chunk", 1)
        chunk = Chunk(length) if length > 1 else None
        shape = Network(chosen["hidden"], chosen["activation"], normalize, recurrent, encoders, corrected, flow, chunk)
        policy = graph_of(task, shape)
        put_base(policy, self.folder, base)
        return policy

    def policy(self) -> tuple[PolicyGraph, Provenance]:
        """The trained policy graph of the newest checkpoint, on the CPU, and where it is from."""
        tensors, numbers = checkpoint.load(self.checkpoint_file)
        policy, prefix = self.new_policy(), "policy/"
        own = {name: value for name, value in tensors.items() if name.startswith(prefix)}
        checkpoint.require_finite(self.checkpoint_file, own, "its training had diverged; expected another run")
        with fits(self.checkpoint_file, str(self.folder / "run.json"), RunError):
            policy.load_state_dict(checkpoint.part(own, prefix))
        environment_steps = checkpoint.require_count(self.checkpoint_file, numbers, "environment_steps")
        policy.requires_grad_(False)
        return policy.eval(), self.provenance(environment_steps)

    @property
    def configuration_digest(self) -> str:
        """SHA-256 of what the run is told."""
        described = {k: v for k, v in self.description().items() if k != "versions"}
        return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()

    def provenance(self, environment_steps: int) -> Provenance:
        """Where a policy of this run comes from."""
        return Provenance(
            algorithm=self.algorithm,
            seed=self.seed,
            environment_steps=environment_steps,
            configuration_digest=self.configuration_digest,
            source=Path(self.task_name).name if self.source_digest else "",
            source_digest=self.source_digest,
            versions=versions(),
        )


def policy_digest(tensors: Mapping[str, torch.Tensor]) -> str:
    """SHA-256 of a checkpoint's policy: of the names and the bytes of its tensors, and of nothing else."""
    digest = hashlib.sha256()
    for name in sorted(name for name in tensors if name.startswith("policy/")):
        value = tensors[name].contiguous()
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.numpy().tobytes())
    return digest.hexdigest()


def label_of(task: Task, algorithm: str, seed: int) -> str:
    """What the folder of a run is called after, before its number."""
    return f"{task.name}-seed{seed}" if algorithm == "apg" else f"{task.name}-{algorithm}-seed{seed}"


def free_name(root: Path, label: str) -> str:
    """The name that the next new folder of a run would get."""
    return next(name for count in itertools.count(1) if not (root / (name := f"{label}-{count}")).exists())


def _new_folder(root: Path, label: str) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for count in itertools.count(1):
        folder = root / f"{label}-{count}"
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise AssertionError


def _named_folder(root: Path, name: str) -> Path:
    if file_name(name) != name:
        raise ValueError(f"name is {name!r}; expected the name of a folder, such as {file_name(name)!r}")
    root.mkdir(parents=True, exist_ok=True)
    folder = root / name
    try:
        folder.mkdir()
    except FileExistsError:
        raise ValueError(f"{folder} exists; expected a name that is free, or 'robo-rl resume {folder}'") from None
    return folder


def check_whole(task: Task) -> None:
    """ValueError unless what is trained can be exported, and travel in a bundle; and, of a user's own task, unless its
    parts fit together, and a run can keep all its files."""
    from robo_rl.sim.tasks.checking import check, require_contract
    from robo_rl.sim.tasks.loading import imported_later

    attached_of(task)
    if task.source is None:
        return require_contract(task)
    check(task)
    if later := imported_later(task.source):
        raise ValueError(f"{task.source.label}: {later} are imported within functions; expected imports at the top")


def versions() -> dict[str, str]:
    """What the result of a training may depend on."""
    return {
        "robo-rl": importlib.metadata.version("robo-rl"),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "numerics": numerics(),
    }


def numerics() -> str:
    """What decides the last bits of a training's sums, besides versions: vector instructions, and MKL's.

    Processors with other vector instructions add in another order. With ``MKL_CBWR=AVX2 ATEN_CPU_CAPABILITY=avx2`` in
    the environment, all that have AVX2 are of one class.
    """
    return f"{torch.backends.cpu.get_cpu_capability()} {os.environ.get('MKL_CBWR', 'AUTO')}"
