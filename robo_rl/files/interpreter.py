"""Python processes that we start: none imports what lies in the current folder, whoever put it there.

``python -m NAME`` and ``python -c TEXT`` import from the current folder before anything else: where somebody has left
a ``numpy.py`` or a ``socket.py`` there, that is what runs. ``-P`` (Python 3.11) leaves the folder out.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

OURS = Path(__file__).resolve().parents[2]
"""Where the packages of robo-rl are."""
SAFE = "PYTHONSAFEPATH"
"""The variable that means -P, for interpreters whose words are not ours. Python 3.10 does not know it."""
OLDER = "import sys; del sys.path[0], sys.argv[0]; import runpy; runpy.run_module(sys.argv[0], None, '__main__', True)"
"""-P for Python 3.10: ``sys`` is built in, and before anything else is imported the current folder is gone."""


def module(name: str, *arguments: str) -> list[str]:
    """The words that run a module of ours in a new interpreter, as ``python -m`` does, without the current folder."""
    flags = ["-P", "-m"] if sys.version_info >= (3, 11) else ["-c", OLDER]
    return [sys.executable, *flags, name, *arguments]


def program(file: str, *arguments: str) -> list[str]:
    """The words that run a file in a new interpreter, which may import what lies beside that file."""
    return [sys.executable, file, *arguments]


def environment() -> dict[str, str]:
    """This process's variables, with a PYTHONPATH by which a helper finds what this process does.

    The current folder is not in it, which is in ``sys.path`` of a program that ``python -m`` started, unless robo-rl
    itself is there.
    """
    here = Path.cwd()
    kept = [path for path in sys.path if path and (Path(path).resolve() != here or here == OURS)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(kept)}


@contextlib.contextmanager
def safe_path() -> Iterator[None]:
    """Interpreters that a library starts within the block, such as multiprocessing's, are started as by ``-P``."""
    before = os.environ.get(SAFE)
    os.environ[SAFE] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(SAFE, None)
        else:
            os.environ[SAFE] = before
