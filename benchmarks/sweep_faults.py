"""A sweep on a Ray cluster of two nodes, whose driver is killed at five moments and one node in the middle.

24 hover trainings. Then: are all done, is each policy that of the same training by hand (three of them are trained
again), and is no process left?

    pip install 'robo-rl[scale]'
    python benchmarks/sweep_faults.py
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from results import words, write

SEEDS, AGAIN, DRIVER_KILLS = 24, (0, 11, 23), 5
SWEEP = f'task = "quadrotor-hover"\nseeds = {SEEDS}\n[options]\nepisodes = 100\ncheckpoint-seconds = 0.5\n'


def main() -> None:
    words(__doc__)
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ["RAY_AUTH_TOKEN"] = os.urandom(32).hex()
    os.environ["OMP_NUM_THREADS"] = "1"
    from ray.cluster_utils import Cluster

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "hover.toml").write_text(SWEEP)
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
        cluster.wait_for_nodes()
        try:
            kills, seconds = sweep(folder, cluster, nodes)
        finally:
            cluster.shutdown()
        digests = {path.parent.name: json.loads(path.read_text())["policy_digest"] for path in done(folder)}
        left = workers(folder)
        same = sum(by_hand(folder, seed) in digests.values() for seed in AGAIN)
    print(f"{len(digests)} of {SEEDS} done after {kills} kills of the driver and one of a node, {seconds:.0f} s")
    print(f"{len(set(digests.values()))} different policies; {same} of {len(AGAIN)} are those of a training by hand")
    print(f"{len(left)} processes left")
    write("sweep_faults", {"done": len(digests), "of": SEEDS, "driver_kills": kills, "node_kills": 1,
                           "same_as_by_hand": same, "of_by_hand": len(AGAIN), "processes_left": len(left)})  # fmt: skip


def sweep(folder: Path, cluster: Any, nodes: list[Any]) -> tuple[int, float]:
    """Start the sweep again and again until it is done; (kills of the driver, s)."""
    command = ["sweep", str(folder / "hover.toml"), "--out", str(folder / "out"), "--engine", "ray"]
    command += ["--address", cluster.address, "--slots", "2"]
    at = random.Random(0)
    begun, kills = time.monotonic(), 0
    while True:
        driver = subprocess.Popen([sys.executable, "-m", "robo_rl", *command], stderr=subprocess.DEVNULL)
        count = len(done(folder))
        enough = count + at.randint(1, 4)
        while driver.poll() is None and (kills == DRIVER_KILLS or len(done(folder)) < enough):
            if len(nodes) == 2 and len(done(folder)) >= SEEDS // 2:
                cluster.remove_node(nodes.pop(), allow_graceful=False)
            time.sleep(0.2)
        if driver.poll() is not None:
            if driver.returncode:
                sys.exit(f"the sweep ended with {driver.returncode}")
            return kills, time.monotonic() - begun
        time.sleep(at.uniform(0.0, 3.0))
        driver.kill()
        driver.wait()
        kills += 1


def done(folder: Path) -> list[Path]:
    return sorted((folder / "out").glob("*/done.json"))


def by_hand(folder: Path, seed: int) -> str:
    """The digest of the policy that the command line trains."""
    runs = folder / "by-hand"
    command = ["train", "quadrotor-hover", "--seed", str(seed), "--episodes", "0", "--runs", str(runs)]
    subprocess.run([sys.executable, "-m", "robo_rl", *command], check=True, stdout=subprocess.DEVNULL)
    return json.loads(next(runs.glob(f"*-seed{seed}-*/done.json")).read_text())["policy_digest"]


def workers(folder: Path) -> list[int]:
    """Processes that still work on the sweep."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            said = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in said and b"work" in said.split(b"\0"):
            found.append(int(process.name))
    return found


if __name__ == "__main__":
    main()
