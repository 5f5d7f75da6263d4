"""No Python that we start imports what lies in the current folder: whoever left a ``numpy.py`` there runs nothing."""

from __future__ import annotations

import ast
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from robo_rl.deploy.build import fuzz_readers
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.drivers.deadman import DeadmanProcess
from robo_rl.deploy.robot.drivers.unitree.link import KeeperProcess
from robo_rl.deploy.robot.isolation import IsolatedGraph
from robo_rl.deploy.robot.logs.record import Recorder
from robo_rl.deploy.robot.service import install
from robo_rl.files import interpreter
from robo_rl.files import sandbox as confined
from robo_rl.learn.distributed import launch
from robo_rl.learn.distributed.engines import ray, slurm, start
from robo_rl.policies.grid import Target, _evaluated
from robo_rl.sim.plants.bullet import _Worker as BulletWorker
from robo_rl.zoo import located

ROOT = Path(interpreter.__file__).resolve().parents[2]
PRODUCT = ("robo_rl", "deploy", "sim", "controllers", "ros2_ws", "docker", "plugins")
PLANTED = ("numpy", "struct", "socket", "json", "select", "runpy", "contextlib", "multiprocessing", "pickle", "robo_rl")
MARK = "import pathlib; (pathlib.Path(__file__).parent / 'RAN').write_text(__name__)\n"
STARTERS = {"Process", "ProcessPoolExecutor", "elastic_launch", "init", "get_context", "Pool"}
"""What starts interpreters in libraries: of multiprocessing, concurrent.futures, torchrun and Ray."""
LIBRARIES = {"multiprocessing", "context", "ray"}
"""Where they are called by those names."""


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, where a stranger has left modules. None of them may have run in the end."""
    folder = tmp_path / "strangers"
    folder.mkdir()
    for name in PLANTED:
        (folder / f"{name}.py").write_text(MARK)
    monkeypatch.chdir(folder)
    yield folder
    assert not (folder / "RAN").exists(), (folder / "RAN").read_text()


def test_what_is_planted_runs_where_nobody_takes_care(tmp_path: Path) -> None:
    for name in PLANTED:
        (tmp_path / f"{name}.py").write_text(MARK)
    subprocess.run([sys.executable, "-m", "robo_rl.deploy.robot.logs.record"], cwd=tmp_path, capture_output=True)
    assert (tmp_path / "RAN").exists()


def isolated(folder: Path) -> None:
    bundle = Bundle.read(located("zoo:quadrotor-hover"))
    graph = IsolatedGraph(bundle)
    golden = bundle.golden
    commands, _ = graph.run({n: v[0] for n, v in golden.signals.items()}, golden.states[:1])
    np.testing.assert_allclose(commands["rotor_speed"], golden.commands["rotor_speed"][0], rtol=1e-4)
    graph.close()


def recorded(folder: Path) -> None:
    recorder = Recorder(folder.parent / "log.mcap", Bundle.read(located("zoo:quadrotor-hover")), on_failure=print)
    recorder.close()
    assert (folder.parent / "log.mcap").stat().st_size


def deadman(folder: Path) -> None:
    ours, theirs = os.openpty()
    process = DeadmanProcess(theirs, [b"stop"])
    process.leave()
    process.close()
    os.close(ours)
    os.close(theirs)


def keeper(folder: Path) -> None:
    process = KeeperProcess("no such port")
    with contextlib.suppress(OSError):  # it says that it can't work, or is gone
        process.receive(timeout=20.0)
    process.process.kill()
    process.process.wait()


def started_trial(folder: Path) -> None:
    found = confined._started("robo_rl.files.text:parse_toml", [b"a = 1"], confined.MEMORY, 4.0)
    assert found == b'{"a": 1}'


def sweep_job(folder: Path) -> None:
    job = start(folder.parent, 0, 1)
    assert job.wait(timeout=120) != 0  # there is no sweep in that folder
    assert "sweep" in (folder.parent / "logs" / "0.log").read_text()


def several(folder: Path) -> None:
    environment = dict(os.environ)
    assert launch._together(["tasks"], 1) == []
    os.environ.clear()
    os.environ.update(environment)


def grid(folder: Path) -> None:
    with pytest.raises(ValueError, match="neither a run's folder"):
        list(_evaluated([(Target("nothing", None, None, 1, 1.0), {}, 0, 1)] * 2, 2))


def bullet(folder: Path) -> None:
    """A worker that refuses at once: what it is given is no robot."""
    worker = BulletWorker(None, 1, None)  # type: ignore[arg-type]
    with pytest.raises(ChildProcessError):
        worker.answer()


def fuzzing(folder: Path) -> None:
    with contextlib.suppress(Exception):  # where atheris is not installed
        fuzz_readers.run("contract", folder.parent / "corpus", 1)


def plans(folder: Path) -> None:
    """What is no agreement is refused by the process itself: so it has imported all of its own."""
    pytest.importorskip("websockets", reason="websockets is missing: pip install 'robo-rl[plans]'")
    process = subprocess.Popen(
        interpreter.module("robo_rl.deploy.robot.plans.client"), stdin=subprocess.PIPE, stderr=subprocess.PIPE,
        env=interpreter.environment(),
    )  # fmt: skip
    _, complaint = process.communicate(b"{", timeout=60)
    assert b"JSONDecodeError" in complaint


STARTS: dict[str, Callable[[Path], None]] = {
    "isolation": isolated, "record": recorded, "deadman": deadman, "keeper": keeper, "confined": started_trial,
    "sweep": sweep_job, "launch": several, "grid": grid, "bullet": bullet,
    "fuzzing": fuzzing, "plans": plans,
}  # fmt: skip


@pytest.mark.parametrize("what", STARTS)
def test_nothing_of_the_current_folder_is_imported(what: str, planted: Path) -> None:
    STARTS[what](planted)


def test_workers_of_ray_import_nothing_of_the_current_folder(planted: Path) -> None:
    library = pytest.importorskip("ray")
    ray.connect(1, "local")
    try:
        path = library.get(library.remote(lambda: __import__("sys").path).remote())
        assert str(planted) not in path
        assert "" not in path
    finally:
        library.shutdown()


def test_a_python_without_the_flag_is_as_safe(planted: Path) -> None:
    """Python 3.10 has no -P. The words for it work in any Python."""
    words = [sys.executable, "-c", interpreter.OLDER, "timeit", "-n", "1", "pass"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0
    assert "loop" in done.stdout


def test_units_and_scripts_for_others_have_the_flag(planted: Path) -> None:
    install(planted.parent / "unit", "robot", "so101", ["ros", "policy"])
    assert '"-P" "-m" "robo_rl"' in (planted.parent / "unit" / "robot.service").read_text()
    assert " -P -m robo_rl work " in slurm.script(planted.parent, [0], 1)


def test_the_path_of_helpers_is_without_the_current_folder(planted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", str(planted), "/elsewhere", *sys.path])
    parts = interpreter.environment()["PYTHONPATH"].split(os.pathsep)
    assert str(planted) not in parts
    assert "" not in parts
    assert "/elsewhere" in parts


def test_every_start_of_a_python_is_without_the_current_folder() -> None:
    """Whoever starts an interpreter asks ``robo_rl.files.interpreter`` for the words; what libraries start is in a
    block of
    ``safe_path``."""
    found = [start for file in sources() if file.name != "interpreter.py" for start in unsafe(file)]
    assert not found, found


def test_the_search_for_starts_finds_them(tmp_path: Path) -> None:
    for text in (
        "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'x'])",
        "from sys import executable",
        "import subprocess\nsubprocess.run(['python3', '-m', 'x'])",
        "import os\nos.execvp('/usr/bin/python', ['python', 'x'])",
        "import multiprocessing\ndef f():\n    multiprocessing.Process(target=f).start()",
        "from concurrent.futures import ProcessPoolExecutor\ndef f():\n    return ProcessPoolExecutor()",
        "import ray\ndef f():\n    ray.init()",
        "TEXT = 'exec python3 -m robo_rl'",
    ):
        file = tmp_path / "one.py"
        file.write_text(text)
        assert unsafe(file), text
    shell = tmp_path / "one.sh"
    shell.write_text("exec python3 -m robo_rl\n")
    assert unsafe(shell)


def sources() -> list[Path]:
    done = subprocess.run(["git", "ls-files", *PRODUCT], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / line for line in done.stdout.splitlines() if line.endswith((".py", ".sh", ".service", "Dockerfile"))]


def unsafe(file: Path) -> list[str]:
    """Where a file starts a Python that would import from the current folder."""
    text = file.read_text()
    if file.suffix != ".py":
        lines = enumerate(text.splitlines(), 1)
        return [f"{file}:{k}" for k, line in lines if _words(line) and "RUN" not in line and "colcon" not in line]
    if not any(word in text for word in ("python", "executable", *STARTERS - {"init"}, "ray.init")):
        return []
    tree = ast.parse(text)
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # documentation
    words = {id(item) for node in ast.walk(tree) for item in _items(node)}
    safe = {id(inner) for node in ast.walk(tree) if _is_safe(node) for inner in ast.walk(node)}
    found = []
    for node in ast.walk(tree):
        name = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
        if name == "sys.executable" or (isinstance(node, ast.ImportFrom) and _imports_it(node)):
            found.append(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            first = id(node) in words and re.fullmatch(r"(\S*/)?python[\d.]*", node.value)
            if first or _words(node.value):
                found.append(node)
        elif isinstance(node, ast.Call) and id(node) not in safe and _starts(node.func):
            found.append(node)
    return [f"{file}:{node.lineno}" for node in found]


def _items(node: ast.AST) -> list[ast.expr]:
    """Of a list or tuple, or what a function is called with."""
    if isinstance(node, ast.List | ast.Tuple):
        return node.elts
    return node.args if isinstance(node, ast.Call) else []


def _imports_it(node: ast.ImportFrom) -> bool:
    return node.module == "sys" and any(one.name == "executable" for one in node.names)


def _is_safe(node: ast.AST) -> bool:
    """A function or block that says ``safe_path``."""
    return isinstance(node, ast.FunctionDef | ast.With) and any(
        word in ast.unparse(node) for word in ("safe_path(", "_elsewhere(", "interpreter.module(")
    )


def _words(text: str) -> bool:
    return bool(re.search(r"\bpython[\d.]* +(-[^P\s]\S* +)*-[mc]\b", text)) and " -P" not in text


def _starts(called: ast.expr) -> bool:
    if isinstance(called, ast.Attribute):
        owner = ast.unparse(called.value).split(".")[-1]
        return called.attr in STARTERS - {"init"} | ({"init"} if owner == "ray" else set()) and owner in LIBRARIES
    return isinstance(called, ast.Name) and called.id in STARTERS - {"init"}
