"""A policy and a stand-in robot as two processes that talk over DDS on this computer, and a hand on both."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import prepared
import pytest
import suite

if TYPE_CHECKING:
    from robo_rl.deploy.robot.logs.reader import Log

PACKAGE = Path(__file__).parents[2] / "ros2_ws/src/robo_rl_ros"
if str(PACKAGE) not in sys.path:
    sys.path.append(str(PACKAGE))

os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
os.environ["RCUTILS_LOGGING_BUFFERED_STREAM"] = "0"
PATIENCE = 90.0  # s
MORTAL = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
"""Put before a command, it dies with its parent."""
DOMAINS = range(1, 102)
"""Those whose ports are free for use on Linux, without the one that everybody is in."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = str(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.ros)


class Domain:
    """A ROS domain that no other test on this computer uses at the time, also not in another process."""

    def __init__(self) -> None:
        order = random.Random(os.getpid() * 1000 + time.time_ns()).sample(DOMAINS, len(DOMAINS))
        for number in order:
            file = (Path(tempfile.gettempdir()) / f"robo-rl-ros-domain-{number}.lock").open("w")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.close()
                continue
            self.name, self._file = str(number), file
            return
        pytest.fail("every ROS domain from 1 to 101 is in use")

    def free(self) -> None:
        self._file.close()


def end(process: subprocess.Popen[bytes] | prepared.Started) -> None:
    """End a process that was started as the first of a group, and then what is left of the group."""
    process.terminate()
    try:
        process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=60)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


class Flight:
    """Two processes, ``policy`` and ``twin``; one may be missing."""

    package = PACKAGE
    as_users = False
    """Whether each process is started as a user does; otherwise by a fork where that is possible, which is quicker."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes] | prepared.Started] = {}
        self._domain = Domain()
        os.environ["ROS_DOMAIN_ID"] = self.domain = self._domain.name
        self.folder.mkdir(parents=True, exist_ok=True)

    def start(
        self,
        what: str,
        *arguments: str,
        before: tuple[str, ...] = (),
        env: dict[str, str] | None = None,
        stdin: int | None = None,
    ) -> int:
        """Start ``robo-rl ros what``; see ``run``."""
        path = os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])
        variables = {"PYTHONPATH": path, **(env or {})}
        if before or self.as_users or "PYTHONPATH" in (env or {}) or not prepared.POSSIBLE:
            command = [*before, sys.executable, "-m", "robo_rl", "ros", what, *arguments]
            return self.run(what, command, variables, stdin)
        return self._keep(
            what, lambda log: prepared.start(["ros", what, *arguments], log, self._environment(variables), stdin)
        )

    def run(self, name: str, command: Sequence[str], env: dict[str, str], stdin: int | None = None) -> int:
        """Start a command in this domain; returns the process's id. Its output is kept in a file.

        A process of that name that still runs is ended first. It ends with this process, whatever ends that.
        """
        environment = self._environment(env)
        return self._keep(
            name,
            lambda log: subprocess.Popen(
                [*MORTAL, *command], stdin=stdin, stdout=log, stderr=log, env=environment, start_new_session=True
            ),
        )

    def _environment(self, env: dict[str, str]) -> dict[str, str]:
        return {**os.environ, "OMP_NUM_THREADS": "1", "ROS_DOMAIN_ID": self.domain, **env}

    def _keep(self, name: str, started: Callable[[int], subprocess.Popen[bytes] | prepared.Started]) -> int:
        if name in self.processes:
            self.stop(name)
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = process = started(log.fileno())
        return process.pid

    def log(self, what: str) -> str:
        """What the process has printed."""
        return (self.folder / f"{what}.log").read_text(errors="replace")

    def stop(self, what: str) -> None:
        """End one process."""
        end(self.processes.pop(what))
        self.forget()

    def forget(self) -> None:
        """Whatever was heard so far."""
        for heard in (self.gates, self.truth, self.applied):
            heard.clear()
        self.status = {}

    def take_off_again(self) -> None:
        """From whatever state of an active node, back to a policy that climbs, which a busy computer may prevent."""
        for _ in range(5):
            self._take_off()
            if self.state == "ACTIVE":
                return
        raise AssertionError(self.gates)

    def _take_off(self) -> None:
        self.operator.fault("")
        self.operator.do("stop")
        self.operator.do("reset")
        self.operator.restart_twin()
        self.patiently("arm")
        self.gates.clear()
        self.operator.do("engage")
        self.until(lambda: self.state == "ACTIVE", "the policy's turn")
        self.applied.clear()
        begun = self.truth[-1][0]
        self.until(lambda: self.truth[-1][0] > begun + 0.5, "half a second of flight")

    def patiently(self, action: str) -> None:
        """Do it as soon as it is not refused any more: signals may not all have arrived yet."""
        start = time.monotonic()
        while True:
            try:
                self.operator.do(action)
                return
            except ValueError:
                if time.monotonic() - start > PATIENCE:
                    raise

    def close(self) -> None:
        """End all, the twin last: without its clock the policy would wait for the end of its stop, for 6 s."""
        for name, process in self.processes.items():
            if name != "twin":
                process.terminate()
        for _, process in sorted(self.processes.items(), key=lambda entry: entry[0] == "twin"):
            end(process)

    def __enter__(self) -> Flight:
        from nav_msgs.msg import Odometry
        from sensor_msgs.msg import JointState
        from std_msgs.msg import String

        from robo_rl.ros import quality
        from robo_rl.ros.operate import Operator

        self.operator = Operator(patience=PATIENCE).__enter__()
        node = self.operator.node
        self.gates: list[dict[str, Any]] = []
        self.status: dict[str, Any] = {}
        self.truth: list[tuple[float, np.ndarray]] = []
        self.applied: list[tuple[float, np.ndarray]] = []
        node.create_subscription(String, "/policy/gate", self._on_gate, quality.LATCHED)
        node.create_subscription(String, "/twin/status", self._on_status, quality.LATCHED)
        node.create_subscription(Odometry, "/twin/truth", self._on_truth, quality.SENSOR)
        node.create_subscription(JointState, "/twin/applied", self._on_applied, quality.SENSOR)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self.operator.__exit__()
        self._domain.free()

    def _on_gate(self, message: Any) -> None:
        import json

        self.gates.append(json.loads(message.data))

    def _on_status(self, message: Any) -> None:
        import json

        self.status = json.loads(message.data)

    def _on_truth(self, message: Any) -> None:
        p = message.pose.pose.position
        self.truth.append((_seconds(message), np.array([p.x, p.y, p.z])))

    def _on_applied(self, message: Any) -> None:
        self.applied.append((_seconds(message), np.array(message.position)))

    def until(self, condition: Callable[[], Any], what: str) -> None:
        """Wait for ``condition()``."""
        if not self.operator.wait(condition, PATIENCE):
            logs = "\n".join(f"--- {name}\n{self.log(name)[-3000:]}" for name in self.processes)
            pytest.fail(f"waited {PATIENCE:g} s in vain for {what}; gate: {self.gates[-3:]}\n{logs}")

    def fly(self, until: float = 1.0) -> None:
        """Configure, arm, engage, and fly for ``until`` s of the twin's time."""
        self.until(lambda: self.truth, "the twin")
        self.operator.do("configure")
        self.until(lambda: self.gates, "the gate")
        self.patiently("activate")
        self.operator.do("engage")
        begun = self.truth[-1][0]
        self.until(lambda: self.truth[-1][0] >= begun + until or self.state == "FAULT", f"{until} s of flight")

    @property
    def state(self) -> str:
        """The gate's state."""
        return self.gates[-1]["state"] if self.gates else ""

    def fault(self) -> dict[str, Any]:
        """The first decision with which the gate went into fault; waits for it."""
        self.until(lambda: any(g["state"] == "FAULT" for g in self.gates), "a fault")
        return next(g for g in self.gates if g["state"] == "FAULT")


def whole_log(file: Path, cut_off: bool = False) -> Log:
    """The log in ``file``: read to its end unless it was ``cut_off``, and no step missing up to there."""
    from robo_rl.deploy.robot.logs.reader import read_log

    log = read_log(file)
    assert log.whole or cut_off
    assert [step.number for step in log.steps] == list(range(1, len(log.steps) + 1))
    return log


@pytest.fixture(scope="session")
def read_whole_log() -> Callable[..., Log]:
    """``whole_log``, for tests."""
    return whole_log


def _seconds(message: Any) -> float:
    return message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec


@pytest.fixture(scope="session")
def make_flight() -> type[Flight]:
    """The class, for fixtures that live longer than a test."""
    return Flight


class FaultTable:
    """Rows for the documentation: what was done to the system, and what came of it."""

    def __init__(self) -> None:
        self.rows: list[str] = []

    def add(self, fault: str, passed: float | None, answer: str, reason: str, sentence: str) -> None:
        """``passed`` (s) from the fault's beginning to the decision; None where that has no beginning."""
        shown = "at the next step" if passed is None and answer in ("SAFE", "FALLBACK") else ""
        shown = f"{1e3 * passed:.0f} ms" if passed is not None else shown
        self.rows.append(f"| {fault} | {shown} | {answer} | {reason} | {sentence.replace('|', '/')} |")

    def write(self, path: Path) -> None:
        """Put the rows between the marks in a page. Rows of faults that were not injected this time stay."""
        begin, end = "<!-- faults -->\n", "<!-- end of faults -->"
        text = path.read_text()
        head, rest = text.split(begin, 1)
        before, tail = rest.split(end, 1)
        rows = {row.split(" | ")[0]: row for row in before.splitlines()[4:]}
        rows |= {row.split(" | ")[0]: row for row in self.rows}
        title = "| Fault | Decided after | Answer | Reason | What the gate says |\n| --- | --- | --- | --- | --- |"
        path.write_text(
            head + begin + "\n".join([f"{len(rows)} faults:", "", title, *rows.values()]) + "\n" + end + tail
        )


@pytest.fixture(scope="session")
def fault_table() -> Iterator[FaultTable]:
    """Collects rows; with ROBO_RL_FAULT_TABLE=docs/ros.md they replace the table in that page."""
    table = FaultTable()
    yield table
    if "ROBO_RL_FAULT_TABLE" in os.environ and table.rows:
        table.write(Path(os.environ["ROBO_RL_FAULT_TABLE"]))


@pytest.fixture
def flight(tmp_path: Path) -> Iterator[Flight]:
    """Nodes that are not yet started."""
    with Flight(tmp_path / "logs") as made:
        yield made


@pytest.fixture(scope="session")
def interfaces(tmp_path_factory: pytest.TempPathFactory) -> str:
    """robo_rl_msgs and tf2_msgs, built as 'robo-rl ros messages' does: the XDG_CACHE_HOME where they are found."""
    from robo_rl.ros.interfaces import PACKAGES, build, definitions, folder

    def make(cache: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(cache))
            for package in PACKAGES:  # also those that this process has imported from where the user built them
                given = definitions(package)
                build(package, given, folder(package, given))

    return str(suite.once_for_all(tmp_path_factory, "interfaces", make))


@pytest.fixture(scope="module")
def messages(interfaces: str) -> Iterator[dict[str, str]]:
    """The same, to be imported; what processes need in their environment."""
    from robo_rl.ros.interfaces import importable

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", interfaces)
        assert importable("robo_rl_msgs")
        assert importable("tf2_msgs")
        yield {"XDG_CACHE_HOME": interfaces}


@pytest.fixture
def domain() -> Iterator[int]:
    """The number of a domain for nodes in this process."""
    made = Domain()
    yield int(made.name)
    made.free()


@pytest.fixture(scope="session")
def realtime() -> tuple[str, ...]:
    """What to put before a command that must keep real time, where this computer allows it."""
    chrt = shutil.which("chrt")
    allowed = chrt and subprocess.run([chrt, "-f", "20", "true"], capture_output=True).returncode == 0
    return (chrt, "-f", "20") if chrt and allowed else ()


def variant(bundle: Path, out: Path, **safety: Any) -> Path:
    """A copy of a bundle whose contract has other safety figures, with a digest that is right again."""
    import dataclasses

    import onnx

    from robo_rl.deploy.robot.bundle import CONTRACT_KEY, DIGEST_KEY, NO_DIGEST, Bundle, seal

    contract = Bundle.read(bundle).contract
    changed = dataclasses.replace(contract, safety=dataclasses.replace(contract.safety, **safety))
    model = onnx.load(str(bundle))
    for entry in model.metadata_props:
        if entry.key == CONTRACT_KEY:
            entry.value = changed.to_json()
        if entry.key == DIGEST_KEY:
            entry.value = NO_DIGEST
    out.write_bytes(seal(model.SerializeToString()))
    return out


@pytest.fixture
def vary() -> Callable[..., Path]:
    """``vary(bundle, out, operator_timeout=0.5)``: a copy of any bundle with that in its contract."""
    return variant


@pytest.fixture(scope="session")
def change_safety() -> Callable[..., Path]:
    """``variant``, for fixtures that live longer than a test."""
    return variant


@pytest.fixture
def make_variant(bundle_file: Path, tmp_path: Path) -> Callable[..., Path]:
    """``make_variant(operator_timeout=0.5)``: the bundle with that in its contract."""
    return lambda **safety: variant(bundle_file, tmp_path / "variant.onnx", **safety)
