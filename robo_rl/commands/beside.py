"""The live page of a training that goes on, in a process beside it that gives way to it.

    python -P -m robo_rl.commands.beside RUN PORT OPEN

It ends when its standard input does, which is when the process ends that started it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from robo_rl.files import interpreter

POLITE = 10
"""What is added to its niceness: it only takes what a training leaves."""
ROBOTS = 4


def start(run: Path, port: int, no_open: bool) -> subprocess.Popen[bytes]:
    """Start it; the caller closes its ``stdin`` to end it."""
    words = interpreter.module("robo_rl.commands.beside", str(run), str(port), "0" if no_open else "1")
    environment = {**interpreter.environment(), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=sys.stderr, env=environment)


def main() -> None:
    """Serve until standard input ends. It gives way once it serves: until then somebody waits for its address."""
    from robo_rl.commands.looking.play import serve
    from robo_rl.learn.runs.folder import Run
    from robo_rl.policies.loading import load

    folder, port, opens = sys.argv[1:]
    stop = threading.Event()

    def wait() -> None:
        sys.stdin.buffer.read()
        stop.set()

    threading.Thread(target=wait, daemon=True).start()
    run = Run.open(folder)
    loaded = load(folder)
    seconds = loaded.task.spec.episode_length
    os.nice(POLITE)
    serve(loaded, ROBOTS, 0, seconds, {}, {}, int(port), "127.0.0.1", opens == "0", False, [run], stop)


if __name__ == "__main__":
    main()
