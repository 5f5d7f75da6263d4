"""A training that stands still once it has saved: who kills it then, however late, does so in the middle of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

PATIENCE = 300.0  # s
LINES = 3
"""Lines of metrics after the first checkpoint, at which it is held."""
HELD = f"""
import os, signal
from pathlib import Path
from robo_rl.learn.runs import training
from robo_rl.learn.runs.training import _Log

mark, save, write = Path(os.environ["ROBO_RL_HELD"]), training.save, _Log.write
lines = -1

def saving(*words):
    global lines
    save(*words)
    lines = max(lines, 0)

def writing(*words):
    global lines
    write(*words)
    lines += lines >= 0
    if lines == {LINES} and not mark.exists():
        mark.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)

training.save, _Log.write = saving, writing
"""
"""Of several processes, in the first. Once: what goes on afterwards is not held again."""


def started(words: list[str], folder: Path) -> subprocess.Popen[str]:
    """``robo-rl train`` with these words, which is held; see ``held``. ``folder`` is for what holds it."""
    folder.mkdir()
    text = f"import os, sys\nif 'train' in sys.orig_argv and os.environ.get('RANK', '0') == '0':\n    exec({HELD!r})\n"
    (folder / "sitecustomize.py").write_text(text)  # every Python process reads it when it begins
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "ROBO_RL_HELD": str(folder / "held")}
    command = [sys.executable, "-P", "-m", "robo_rl", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def held(process: subprocess.Popen[str], folder: Path) -> int:
    """Wait until it is; the process that stands still."""
    mark, end = folder / "held", time.monotonic() + PATIENCE
    while not (mark.is_file() and mark.read_text() and _state(int(mark.read_text())) == "T"):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
    return int(mark.read_text())


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
