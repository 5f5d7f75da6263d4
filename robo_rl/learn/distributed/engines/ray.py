"""Jobs as tasks of a Ray cluster: one on this computer, made for it, or one that is there (``address``).

Ray gives anyone who reaches its ports and has its token the right to run programs, so an existing cluster must use
tokens, and our own one is on the loopback interface. A node that dies loses its tasks; Ray runs them again on another
one, where they resume. All nodes must see the sweep's folder under the same path and have the same robo-rl.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from robo_rl.files import interpreter

LOST = -9
"""In place of the exit code of a job whose node died too often."""
RETRIES = 3


def run(folder: Path, indices: Sequence[int], slots: int, address: str = "local") -> Iterator[tuple[int, int]]:
    """(number, exit code) of each job as it ends; each takes one of the cluster's CPUs."""
    ray = needed("the engine ray")
    connect(slots, address)
    job = ray.remote(num_cpus=1, max_retries=RETRIES)(work)
    waiting, running = deque(indices), dict[Any, int]()
    try:
        while waiting or running:
            while waiting and len(running) < 4 * slots:
                index = waiting.popleft()
                running[job.remote(str(folder.resolve()), index, str(Path.cwd()))] = index
            ended, _ = ray.wait(list(running), timeout=1.0)
            for reference in ended:
                try:
                    code = ray.get(reference)
                except ray.exceptions.RayError:
                    code = LOST
                yield running.pop(reference), code
    finally:
        for reference in running:
            ray.cancel(reference, force=True)  # its process is told to end, and saves
        ray.shutdown()


def work(folder: str, index: int, beside: str) -> int:
    """What a Ray worker does: the same command as everywhere, in the folder ``beside`` where its computer has that."""
    from robo_rl.learn.distributed.engines import start

    return start(Path(folder), index, 1, Path(beside) if Path(beside).is_dir() else None).wait()


def needed(user: str) -> Any:
    """Ray. ValueError where it is missing."""
    try:
        import ray
    except ModuleNotFoundError:
        raise ValueError(f"{user} needs the package 'ray': pip install 'robo-rl[scale]'") from None
    return ray


def connect(slots: int, address: str) -> None:
    """Join the cluster at ``address``, or make one of so many CPUs on this computer where that is "local"."""
    import ray

    if os.environ.get("RAY_AUTH_MODE") == "disabled":
        raise ValueError("RAY_AUTH_MODE is disabled: whoever reaches the cluster could run programs; expected token")
    if address == "local":
        with _elsewhere():
            ray.init(
                address="local", num_cpus=slots, include_dashboard=False, _node_ip_address="127.0.0.1",
                configure_logging=False, log_to_driver=False,
            )  # fmt: skip
        return
    if os.environ.get("RAY_AUTH_MODE") != "token":
        raise ValueError(f"RAY_AUTH_MODE is not set, and the cluster is {address}; expected token, and its token")
    with _elsewhere():
        ray.init(address=address, configure_logging=False, log_to_driver=False)


@contextlib.contextmanager
def _elsewhere() -> Iterator[None]:
    """Ray's workers import from the folder in which it is started before any other: within the block that is the root,
    where only the system's owner can put anything."""
    with interpreter.safe_path(), contextlib.chdir("/"):
        yield
