"""A shell in which the commands of a page are run one after the other, as a reader would."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from walk.pages import ROOT

LINKS = ("examples", "benchmarks", "docs")
PATIENCE = 420.0  # s, for one command on a busy computer
STRIPPED = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Session:
    """In a folder of its own, with the repository's ``examples`` and ``benchmarks``, and a home of its own."""

    def __init__(self, folder: Path, domain: str) -> None:
        self.folder = folder
        self.told = ""
        """All that the page's commands have printed."""
        self._running: list[subprocess.Popen[str]] = []
        programs = folder / ".programs"
        programs.mkdir()
        for name, words in (("robo-rl", "-m robo_rl "), ("pytest", "-m pytest "), ("python", "")):
            (programs / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {words}"$@"\n')
            (programs / name).chmod(0o755)
        for name in LINKS:
            (folder / name).symlink_to(ROOT / name)
        (folder / ".home").mkdir()
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        self.environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT}:{ROOT}/ros2_ws/src/robo_rl_ros",
            "PYTHONUNBUFFERED": "1",
            "HOME": str(folder / ".home"),
            "XDG_CACHE_HOME": cache,
            "BROWSER": "true",
            "COLUMNS": "200",
            "ROOT": str(ROOT),
            "ROS_DOMAIN_ID": domain,
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        }

    def _start(self, text: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", text], cwd=self.folder, env=self.environment, text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def run(self, text: str) -> tuple[int, str]:
        """The exit code and all that it printed."""
        if text.startswith("cd "):
            self.folder /= text.removeprefix("cd ")  # of the commands below it
            return 0, ""
        if re.fullmatch(r"\w+=\S+", text):
            name, value = text.split("=", 1)
            self.environment[name] = value
            return 0, ""
        process = self._start(text)
        try:
            out, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            stop(process, signal.SIGKILL)
            out, _ = process.communicate()
            return 124, STRIPPED.sub("", out)
        return process.returncode, STRIPPED.sub("", out)

    def run_until(self, text: str, shown: str, stays: bool) -> tuple[int, str]:
        """Until it has printed a line with the pattern ``shown``, and then Ctrl-C; 124 if it never does."""
        process = self._start(text)
        deadline = threading.Timer(PATIENCE, stop, (process, signal.SIGKILL))
        deadline.start()
        lines, found = [], False
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(STRIPPED.sub("", line))
            if re.search(shown, lines[-1]):
                found = True
                break
        deadline.cancel()
        if found and stays:
            threading.Thread(target=process.stdout.read, daemon=True).start()  # so that it never waits for a reader
            self._running.append(process)
            return 0, "".join(lines)
        stop(process, signal.SIGINT)
        lines.append(process.stdout.read())
        code = process.wait()
        return (0 if found and code in (0, 130, -signal.SIGINT) else code or 124), "".join(lines)

    def unlink(self) -> None:
        """As where only the package is installed."""
        for name in LINKS:
            (self.folder / name).unlink()

    def close(self) -> None:
        """End what still runs."""
        for process in self._running:
            stop(process, signal.SIGINT)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                stop(process, signal.SIGKILL)


def stop(process: subprocess.Popen[str], how: signal.Signals) -> None:
    """All processes of a command."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, how)


@contextlib.contextmanager
def opened(folder: Path, domain: str) -> Iterator[Session]:
    """A session that is ended with the page."""
    session = Session(folder, domain)
    try:
        yield session
    finally:
        session.close()
