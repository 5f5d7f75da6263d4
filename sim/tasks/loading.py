"""Tasks by name: those that come with robo-rl, those of installed packages, and those in a user's own file.

The first are the ``tasks()`` of the folders here, one for each kind of robots.

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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

from robo_rl.contract.checks import LABEL
from robo_rl.contract.kinds import kinds_in, of_kind, offered
from robo_rl.files.suggestions import expected_one_of
from robo_rl.sim.robots import load_robot
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.beginning import PACKAGE
from robo_rl.sim.tasks.planned import SUFFIX, planned

FILE = re.compile(r"(?P<file>.*\.py):(?P<name>[A-Za-z_]\w*)", re.ASCII | re.DOTALL)
MODULE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
OURS = ("controllers", "deploy", "robo_rl", "sim")
"""What is robo-rl's own, by its names of today and of before."""
OWN_FOLDERS = [(Path(__file__).parents[2] / name).resolve() for name in (".", "controllers", "deploy", "sim")]


@dataclass(frozen=True)
class Source:
    """Where a user's own task is written: its file, those beside it that it imports, and those that it names."""

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
    return sorted({*included_tasks(), *_offered()})


def load_task(name: str, robot: str | None = None) -> Task:
    """The task of that name, or in the file of that path, for its own robot or another one.

    ``name`` as in the text of this module; ``robot`` is a name, or the path of a card. ValueError says what is wrong,
    also with a user's class.
    """
    task = task_class(name)
    card = None if robot is None else load_robot(robot, task.card_type)
    if task.source is None:
        made = task() if card is None else task(card)  # type: ignore[call-arg]
    else:
        with told(str(task.source.file), f"{task.source.class_name} can't be made", task.source.file.parent):
            made = task() if card is None else task(card)  # type: ignore[call-arg]
    if robot is not None and robot.endswith(".toml"):
        made.card_file = Path(robot)
    return made


def task_class(name: str) -> type[Task]:
    """The class of a task. NAME-plans is that of a robot that follows plans (``robo_rl.sim.tasks.planned``)."""
    if name.endswith(SUFFIX) and name.removesuffix(SUFFIX) in (known := included_tasks()):
        return planned(known[name.removesuffix(SUFFIX)])
    if match := FILE.fullmatch(name):
        return _from_file(Path(match["file"]), match["name"])
    if name in (shipped := included_tasks()):
        return shipped[name]
    if name in (offered := _offered()):
        return _from_package(offered[name])
    hint = f"; of a file, say which class: {name}:CLASS" if name.endswith(".py") else ", or FILE.py:CLASS"
    raise ValueError(f"task '{name}' is not known{expected_one_of(name, task_names())}{hint}")


def included_tasks() -> dict[str, type[Task]]:
    """The classes of those that come with robo-rl."""
    return {task.name: task for kind in kinds_in(PACKAGE) for task in of_kind(PACKAGE, kind).tasks()}


def _offered() -> dict[str, EntryPoint]:
    """By installed packages."""
    return {point.name: point for point in offered("robo_rl.tasks")}


def _from_package(point: EntryPoint) -> type[Task]:
    where = f"task '{point.name}' of the package '{point.dist.name if point.dist else point.module}'"
    try:
        found = point.load()
    except Exception as error:
        raise ValueError(f"{where} ({point.value}): {type(error).__name__}: {error}") from error
    return _task(found, f"{where} ({point.value})")


def _task(found: object, where: str) -> type[Task]:
    """The class of a task; ValueError unless it is one, with all that a task must have."""
    if not inspect.isclass(found) or not issubclass(found, Task):
        raise ValueError(f"{where}: it is not a task; expected a subclass of robo_rl.sim.tasks.Task")
    lacking = sorted(found.__abstractmethods__)
    lacking += [n for n in ("name", "summary", "card_type", "measures") if not hasattr(found, n)]
    if lacking:
        raise ValueError(f"{where}: it lacks {', '.join(lacking)}; see docs/own-task.md")
    return found


# --- a user's own file --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Loaded:
    """What running a user's file has brought in."""

    module: ModuleType
    modules: dict[str, ModuleType]
    """Of the file and of those beside it that it imported."""
    contents: dict[Path, bytes]
    """Of their files."""

    @property
    def unchanged(self) -> bool:
        return all(path.is_file() and path.read_bytes() == data for path, data in self.contents.items())


_files: dict[Path, _Loaded] = {}
"""By file. Two runs may hold files of the same name, so only one file's modules are among Python's at a time."""


def _from_file(file: Path, class_name: str) -> type[Task]:
    """The class in a user's file, which is run, with its folder first among those that imports look in."""
    where = f"{file}:{class_name}"
    if not file.is_file():
        raise ValueError(f"{file}: the file does not exist; expected one with the task '{class_name}'")
    if not MODULE.fullmatch(file.stem) or not LABEL.fullmatch(f"{file.name}:{class_name}"):
        raise ValueError(f"{where}: expected names of letters, digits and _, at most 64 characters in all")
    path = file.resolve()
    loaded = _run(path)
    found = vars(loaded.module).get(class_name)
    if not inspect.isclass(found):
        tasks = [n for n, c in vars(loaded.module).items() if inspect.isclass(c) and issubclass(c, Task)]
        own = [name for name in tasks if vars(loaded.module)[name].__module__ == path.stem]
        raise ValueError(f"{where}: the class does not exist; the file has the tasks {own}")
    task = _task(found, where)
    task.source = Source(path, class_name, _kept(task, where, path, loaded))
    return task


def _kept(task: type[Task], where: str, file: Path, loaded: _Loaded) -> tuple[Path, ...]:
    """The files that a task is made of."""
    named = [(name, (file.parent / name).resolve()) for name in task.files]
    for name, path in named:
        if not path.is_file() or not path.is_relative_to(file.parent):
            raise ValueError(f"{where}: files has '{name}'; expected the names of files beside it or below")
    return tuple(sorted({*loaded.contents, *(path for _, path in named)}))


def _run(file: Path) -> _Loaded:
    """Run a file; nothing is run again if it is asked for again and no file has changed."""
    known = _files.get(file)
    for other in _files.values():
        for name, module in other.modules.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
        sys.path[:] = [entry for entry in sys.path if entry != str(Path(str(other.module.__file__)).parent)]
    if known is None or not known.unchanged:
        known = _import(file)
    sys.modules.update(known.modules)
    sys.path.append(str(file.parent))  # last: what lies there must not come before what robo-rl imports later
    _files[file] = known
    return known


def _import(file: Path) -> _Loaded:
    folder, name = file.parent, file.stem
    for other in _modules(folder):  # imported by another module: they have to be found again, to be known
        del sys.modules[other]
    written = sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # a file that was changed within a second would be taken for the old one
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        spec = None if name in sys.modules else importlib.util.find_spec(name)
        if spec is None or spec.origin != str(file):
            raise ValueError(f"{file}: there is another module '{name}'; expected a file of another name")
        with told(str(file), "it can't be imported", folder):
            module = importlib.import_module(name)
    except BaseException:
        for other in _modules(folder):
            del sys.modules[other]
        raise
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = written
    modules = _modules(folder)
    return _Loaded(module, modules, {path: path.read_bytes() for path in _paths(modules)})


def imported_later(source: Source) -> list[str]:
    """Files beside a task that were imported after it: a run does not keep them."""
    later = _paths(_modules(source.file.parent)) - set(source.files)
    return sorted(path.relative_to(source.file.parent).as_posix() for path in later)


def _modules(folder: Path) -> dict[str, ModuleType]:
    """The modules that were found in a folder, by their names; not what is installed somewhere below, nor robo-rl."""
    found, below = {}, str(folder)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not any(str(place).startswith(below) for place in ([file] if file else getattr(module, "__path__", ()))):
            continue  # nearly all of thousands
        first, *_ = parts = name.split(".")
        if first in OURS or first == "__main__":
            continue
        place = folder.joinpath(*parts)
        if file is None:  # a folder without __init__.py
            here = str(place) in map(str, getattr(module, "__path__", ()))
        else:
            here = Path(file) in (place.with_suffix(".py"), place / "__init__.py")
        if here:
            found[name] = module
    return found


def _paths(modules: Mapping[str, ModuleType]) -> set[Path]:
    """Their files."""
    return {Path(module.__file__) for module in modules.values() if getattr(module, "__file__", None)}  # type: ignore[arg-type]


@contextmanager
def told(where: str, what: str, folder: Path) -> Iterator[None]:
    """Errors of a user's own code, which lies in ``folder``, as one sentence with the line that they come from."""
    try:
        yield
    except (Exception, SystemExit) as error:
        raise ValueError(f"{where}: {what} ({_place(error, folder)}{type(error).__name__}: {error})") from error


def _place(error: BaseException, folder: Path) -> str:
    """ "circle.py, line 5: ": the innermost line of the user's own code."""
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_relative_to(folder):
        return f"{Path(error.filename).relative_to(folder)}, line {error.lineno}: "
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(folder) and not any(path.resolve().is_relative_to(place) for place in OWN_FOLDERS):
            return f"{path.relative_to(folder)}, line {frame.lineno}: "
    return ""
