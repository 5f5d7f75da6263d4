"""What many tests need once: a policy that flies, and the file it is exported to."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    # hundreds of processes import torch, and would compile what the installation has not, half of their work
    sys.dont_write_bytecode = False

import hypothesis
import pytest
import suite
import torch
from browser import WITHOUT_GPU, Browser, find_browser

torch.set_num_threads(1)
COUNT = suite.examples(100)
hypothesis.settings.register_profile(  # as on every computer, busy or not
    "same", deadline=None, derandomize=True, max_examples=COUNT
)
hypothesis.settings.register_profile("explore", deadline=None)  # pytest --hypothesis-profile explore: others each time
hypothesis.settings.load_profile("same")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background inherits that it is ignored


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    suite.longest_first(items, config.rootpath)


def pytest_xdist_auto_num_workers() -> int:
    """One process more than cores: tests wait for a sixth of their time, for a clock, a socket or a browser."""
    told = os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS")
    return int(told) if told else (os.cpu_count() or 1) + 1


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    if found := suite.unexpected_skips(terminalreporter.stats.get("skipped", [])):
        terminalreporter.section("skips that tests/suite.py does not expect")
        terminalreporter.write_line("\n".join(found))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where CI is set, a skip that is not expected fails the run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter and suite.unexpected_skips(reporter.stats.get("skipped", [])):
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session", autouse=True)
def few_episodes_and_frames() -> Iterator[None]:
    """An export simulates 8 episodes, where 256 take most of its time: what was seen in them is less.

    Films of reports have 2 frames a second, where 15 and 20 that are drawn without a GPU take most of a report's time.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("robo_rl.deploy.build.export.EPISODES", 8)
        patch.setattr("robo_rl.report.page.FILM_FPS", 2)
        patch.setattr("robo_rl.report.worst.FPS", 2)
        yield


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run of quadrotor-hover, trained by the command with its defaults, and its bundle."""
    from robo_rl.commands.exporting.export import main as export
    from robo_rl.commands.training.train import main as train

    def make(folder: Path) -> None:
        assert train("quadrotor-hover", runs=folder / "runs", episodes=0) == 0
        (run,) = (folder / "runs").iterdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("robo_rl.deploy.build.export.EPISODES", 256)  # as for users: this one flies in many tests
            assert export(run, run / "policy.onnx") == 0

    (run,) = (suite.once_for_all(tmp_path_factory, "trained_run", make) / "runs").iterdir()
    return run


@pytest.fixture(scope="session")
def bundle_file(trained_run: Path) -> Path:
    """The bundle of that run. Copy it before you change it."""
    return trained_run / "policy.onnx"


@pytest.fixture(scope="session")
def led_policy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """A policy of quadrotor-hover that an operator can take over from, untrained, and its bundle. Change copies."""
    from robo_rl.contract import Provenance
    from robo_rl.online.interventions import InterventionPolicy, export
    from robo_rl.policy import PolicyGraph
    from robo_rl.sim.tasks.loading import load_task

    torch.manual_seed(0)
    graph = InterventionPolicy(PolicyGraph(load_task("quadrotor-hover"), (8,))).requires_grad_(False)
    for value in graph.network.parameters():
        value.add_(0.01 * torch.rand_like(value))  # as after learning, no two are equal
    return graph, export(graph, Provenance("bc", 0, 0, ""), tmp_path_factory.mktemp("led") / "policy-000001.onnx")


@pytest.fixture(scope="session")
def exploring_policy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """As ``led_policy``, one that explores, too."""
    from robo_rl.contract import Provenance
    from robo_rl.learn.config import SacConfig
    from robo_rl.learn.explorer import Spread
    from robo_rl.online.exploration import ExploringPolicy
    from robo_rl.online.interventions import export
    from robo_rl.policy import PolicyGraph
    from robo_rl.sim.tasks.loading import load_task

    torch.manual_seed(0)
    task = load_task("quadrotor-hover")
    spread = Spread(task, SacConfig(hidden=(8,), activation="tanh"))
    graph = ExploringPolicy(PolicyGraph(task, (8,)), spread).requires_grad_(False)
    for value in (*graph.network.parameters(), *graph.spread.parameters()):
        value.add_(0.01 * torch.rand_like(value))  # as after learning, no two are equal
    out = tmp_path_factory.mktemp("exploring") / "policy-000001.onnx"
    return graph, export(graph, Provenance("sac", 0, 0, ""), out)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``trained(task, *options)``: the folder of the run that ``robo-rl train`` makes, without an evaluation.

    Whoever asks for the same gets the same folder. Copy it before you change it.
    """

    def train(*words: str) -> Path:
        def make(folder: Path) -> None:
            _succeed(["train", *words, "--runs", str(folder / "runs"), "--episodes", "0"])

        (folder,) = (suite.once_for_all(tmp_path_factory, suite.short_name("trained", *words), make) / "runs").iterdir()
        return folder

    return train


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """``exported(run)``: the bundle of a run of ``trained``, as ``robo-rl export`` writes it."""

    def export(run: Path) -> Path:
        def make(folder: Path) -> None:
            _succeed(["export", str(run), "--out", str(folder / "policy.onnx")])

        return suite.once_for_all(tmp_path_factory, suite.short_name("exported", str(run)), make) / "policy.onnx"

    return export


@pytest.fixture(scope="session")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``scripted(task, robot)``: a bundle whose network adds next to nothing to the controller that a task begins with.

    Whoever asks for the same gets the same file. Copy it before you change it.
    """

    def export(task: str, robot: str | None = None) -> Path:
        from robo_rl.contract import Provenance
        from robo_rl.deploy.build.export import export
        from robo_rl.policy import PolicyGraph
        from robo_rl.sim.tasks.loading import load_task

        def make(folder: Path) -> None:
            policy = PolicyGraph(load_task(task, robot), (8,))
            torch.manual_seed(0)
            with torch.no_grad():
                for weights in policy.network.parameters():
                    weights.normal_(std=1e-6)  # zeros would be folded away, and the export refuses that
                export(policy, Provenance("none", 0, 0, "0" * 64), folder / "script.onnx")

        name = suite.short_name("scripted", task, str(robot))
        return suite.once_for_all(tmp_path_factory, name, make) / "script.onnx"

    return export


def _succeed(words: list[str]) -> None:
    from robo_rl.cli import main

    with pytest.raises(SystemExit) as done:
        main(words)
    assert done.value.code == 0


@pytest.fixture
def robo(capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """``robo(*words)``: the object that ``robo-rl`` prints with ``--json``, of a command that succeeds."""

    def run(*words: object) -> dict[str, Any]:
        from robo_rl.cli import main

        capsys.readouterr()
        with pytest.raises(SystemExit) as done:
            main([*map(str, words), "--json"])
        out, err = capsys.readouterr()
        assert done.value.code == 0, err
        return json.loads(out.splitlines()[-1])

    return run


@pytest.fixture(scope="session")
def chromium() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs headless Chromium with options and a URL; what its console says is on stderr, as CONSOLE lines."""
    program = find_browser()
    if program is None:
        pytest.skip("needs a browser: apt-get install chromium")

    def once(options: Sequence[str], folder: str) -> subprocess.CompletedProcess[str]:
        command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
        command += ["--disable-background-networking", "--disable-dev-shm-usage", "--enable-logging=stderr", "--v=0"]
        command += [f"--user-data-dir={folder}/profile", *options]
        with open(f"{folder}/out", "w+") as out, open(f"{folder}/err", "w+") as err:
            process = subprocess.Popen(command, stdout=out, stderr=err, start_new_session=True)
            try:
                process.wait(timeout=90)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            texts = [Path(file.name).read_text(errors="replace") for file in (out, err)]
        return subprocess.CompletedProcess(command, process.returncode, *texts)

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        for _ in range(2):  # on a busy machine, headless Chromium at times never gets beyond its start
            with (
                contextlib.suppress(subprocess.TimeoutExpired),
                tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
            ):
                return once(options, folder)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            return once(options, folder)

    return run


@pytest.fixture
def open_page() -> Iterator[Callable[..., Browser]]:
    """Opens an address in headless Chromium: ``open_page(url)``, with ``Browser``'s options."""
    program = find_browser()
    if program is None:
        pytest.skip("needs a browser: apt-get install chromium")
    with contextlib.ExitStack() as stack:

        def start(url: str, options: Sequence[str] = WITHOUT_GPU, size: tuple[int, int] = (1180, 900)) -> Browser:
            folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
            browser = Browser(program, folder, tuple(options), size)
            stack.callback(browser.close)
            browser.ask("Page.navigate", url=url)
            return browser

        yield start
