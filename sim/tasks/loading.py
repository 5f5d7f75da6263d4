"""Tasks by name: those that come with robo-rl, those of installed packages, and those in a user's own file.

``quadrotor-hover`` is a name; ``./circle.py:Circle`` is the class ``Circle`` in a file, which may import what lies
beside it. A package offers its tasks by the entry point ``robo_rl.tasks``. A user's file is run only when it is named.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from sim.robots import load_robot
from sim.tasks import Task

FILE = re.compile(r"(?P<file>.*\.py):(?P<name>[A-Za-z_]\w*)")
MODULE = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Source:
    """Where a user's own task is written: its file, and those beside it that it imports."""

    file: Path
    class_name: str
    files: tuple[Path, ...]
    """Absolute paths, sorted; ``file`` is among them."""

    @property
    def label(self) -> str:
        """ "circle.py:Circle"."""
        return f"{self.file.name}:{self.class_name}"

    @property
    def digest(self) -> str:
        """SHA-256 over the names of the files, relative to the task's folder, and what they hold."""
        found = hashlib.sha256()
        for path in self.files:
            data = path.read_bytes()
            found.update(f"{path.relative_to(self.file.parent).as_posix()}\0{len(data)}\0".encode() + data)
        return found.hexdigest()


def task_names() -> list[str]:
    """All tasks that are known by a name."""
    return sorted(_named())


def load_task(name: str, robot: str | None = None) -> Task:
    """The task of that name, or in the file of that path, for its own robot or another one.

    ``name`` as in the text of this module; ``robot`` is a name, or the path of a card. ValueError says what is wrong,
    also with a user's class.
    """
    task = task_class(name)
    return task() if robot is None else task(load_robot(robot, task.card_type))  # type: ignore[call-arg]


def task_class(name: str) -> type[Task]:
    """The class of a task."""
    if match := FILE.fullmatch(name):
        return _from_file(Path(match["file"]), match["name"])
    known = _named()
    if name not in known:
        raise ValueError(f"task '{name}' is not known; expected one of {sorted(known)}, or FILE.py:CLASS")
    return known[name]


def _named() -> dict[str, type[Task]]:
    from sim.tasks import legged, multirotor

    packaged = {point.name: point.load() for point in entry_points(group="robo_rl.tasks")}
    return {**packaged, **{task.name: task for task in (*legged.tasks(), *multirotor.tasks())}}


def _from_file(file: Path, class_name: str) -> type[Task]:
    """The class in a user's file, which is run, with its folder first among those that imports look in."""
    where = f"{file}:{class_name}"
    if not file.is_file():
        raise ValueError(f"{file}: there is no such file; expected one with the task '{class_name}'")
    if not MODULE.fullmatch(file.stem):
        raise ValueError(f"{file}: expected a name that Python can import, of letters, digits and _")
    module = _run(file.resolve())
    found = getattr(module, class_name, None)
    if not inspect.isclass(found):
        tasks = [n for n, c in vars(module).items() if inspect.isclass(c) and issubclass(c, Task) and c is not Task]
        raise ValueError(f"{where}: there is no such class; the file has the tasks {tasks}")
    if not issubclass(found, Task):
        raise ValueError(f"{where}: it is not a task; expected a subclass of sim.tasks.Task")
    lacking = sorted(found.__abstractmethods__)
    lacking += [n for n in ("name", "summary", "card_type", "measures") if not hasattr(found, n)]
    if lacking:
        raise ValueError(f"{where}: it lacks {', '.join(lacking)}; see docs/own-task.md")
    found.source = Source(file.resolve(), class_name, _imported(file.resolve().parent))
    return found


def _run(file: Path) -> Any:
    """The module of a file; the same one if it is asked for again and no file beside it has changed."""
    folder = file.parent
    _bring_in(folder)
    known = sys.modules.get(file.stem)
    if known is not None and getattr(known, "__file__", None) == str(file):
        return known
    if known is not None or importlib.util.find_spec(file.stem).origin != str(file):  # type: ignore[union-attr]
        raise ValueError(f"{file}: there is another module '{file.stem}'; expected a file of another name")
    try:
        module = importlib.import_module(file.stem)
    except Exception as error:
        for name in _modules(folder):
            del sys.modules[name]
        trace = traceback.extract_tb(error.__traceback__)
        line = next((frame.lineno for frame in reversed(trace) if frame.filename == str(file)), None)
        line = error.lineno if isinstance(error, SyntaxError) else line
        what = f"{type(error).__name__}: {error}"
        raise ValueError(f"{file}, line {line}: {what}; expected a file that can be imported") from error
    _folders[folder] = _modules(folder)
    _digests[folder] = {path: path.read_bytes() for path in _imported(folder)}
    return module


_folders: dict[Path, dict[str, ModuleType]] = {}
"""Modules of the users' own files that were loaded, by folder: two runs may hold files of the same name."""
_digests: dict[Path, dict[Path, bytes]] = {}
"""What those files held."""


def _bring_in(folder: Path) -> None:
    """Let imports find the files of ``folder``, and no longer those of other tasks' folders."""
    for other, modules in _folders.items():
        for name in modules:
            sys.modules.pop(name, None)
        if str(other) in sys.path:
            sys.path.remove(str(other))
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    unchanged = all(path.is_file() and path.read_bytes() == data for path, data in _digests.get(folder, {}).items())
    sys.modules.update(_folders.get(folder, {}) if unchanged else {})


def _modules(folder: Path) -> dict[str, ModuleType]:
    """The modules that were imported from a folder and below."""
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and file.endswith(".py"):
            path = Path(file).resolve()
            if path.is_relative_to(folder) and "site-packages" not in path.parts:
                found[name] = module
    return found


def _imported(folder: Path) -> tuple[Path, ...]:
    """Their files."""
    return tuple(sorted({Path(str(module.__file__)).resolve() for module in _modules(folder).values()}))
