"""tunnel-walk: planner and walking policy, and a policy that was trained end to end, in the same unseen rooms.

    python benchmarks/tunnel_walk.py [--cells 0.2 0.22 0.25] [--rooms 200] [--policy RUN]

zoo:go2-flat follows the velocities that the task's planner commands; RUN was trained at tunnel-walk, and takes the same
path, scan and proprioception to joint targets. Rooms have cells of so many m: their ways are two or three cells wide.
The narrowest place of a room is told from its planned path: the distance across it between what is filled on either
side. An episode that failed within CONTACT of something is counted as a contact, else as a fall.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import torch
from first_episodes import by_controller, first_episodes
from results import write
from torch import Tensor

from robo_rl.evaluate.proportion import wilson
from robo_rl.learn.runs.folder import HELD_OUT
from robo_rl.policies.loading import load
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.legged_in_room import LeggedInRoom
from robo_rl.sim.tasks.legged.tunnel import BEAMS, BODY, TunnelWalk

CONTACT = 0.04  # m of clearance a control step before
WIDER = (0.2, 0.3, 0.4)
"""m, of the narrowest place over the robot's width: limits between the groups that are told apart."""
WALKER = "zoo:go2-flat"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--cells", type=float, nargs="*", default=[0.2, 0.22, 0.25], help="m, of rooms")
    arguments.add_argument("--rooms", type=int, default=200, help="of each size of cells")
    arguments.add_argument("--first", type=int, default=0, help="number of the first room")
    arguments.add_argument("--policy", help="a run or a bundle of tunnel-walk, to walk too")
    given = arguments.parse_args()
    rows = [
        {"policy": target, "cell": cell, **walk(target, cell, given.rooms, given.first)}
        for cell in given.cells
        for target in (WALKER, given.policy)
        if target is not None
    ]
    write("tunnel_walk", {"rooms": given.rooms, "first": given.first, "rows": rows})


class Walked:
    """What was to be seen of the robots before their last step."""

    def __init__(self, env: VecEnv) -> None:
        self.clearance, self.left = torch.zeros(env.n), torch.zeros(env.n)

    def __call__(self, env: VecEnv, running: Tensor) -> None:
        truth = env.plant.truth()
        self.clearance = torch.where(running, truth["clearance"][:, 0], self.clearance)
        self.left = torch.where(running, truth["left"][:, 0], self.left)


def walk(target: str, cell: float, rooms: int, first: int) -> dict[str, Any]:
    """The first episode in each of so many rooms."""
    task = TunnelWalk()
    task.cell = cell
    env = VecEnv(task, rooms, seed=HELD_OUT, evaluation=True, first=first)
    narrowest, length = narrowest_places(env.plant), env.plant.truth()["left"][:, 0].clone()
    walked, begun = Walked(env), time.perf_counter()
    found = first_episodes(env, by_controller(load(target, task).policy), walked)
    contact = found.failed & (walked.clearance < CONTACT)
    fall = found.failed & ~contact
    group = torch.bucketize(narrowest - BODY[1], torch.tensor(WIDER))
    row = {
        **counted(found.succeeded),
        "contact": int(contact.sum()),
        "fall": int(fall.sum()),
        "timeout": int((~found.succeeded & ~found.failed).sum()),
        "arrival_time_s": float(found.time[found.succeeded].mean()),
        "way_made": float((1 - walked.left / length).mean()),
        "by_narrowest": [counted(found.succeeded[group == k]) for k in range(len(WIDER) + 1)],
    }
    print(f"{target} in cells of {cell} m:", json.dumps(row), f"in {time.perf_counter() - begun:.0f} s", flush=True)
    return row


def counted(succeeded: Tensor) -> dict[str, Any]:
    """How many of some episodes (n,) arrived."""
    arrived, rooms = int(succeeded.sum()), len(succeeded)
    return {"rooms": rooms, "arrived": arrived, "interval": wilson(arrived, rooms) if rooms else None}


def narrowest_places(plant: LeggedInRoom) -> Tensor:
    """(n,) m: the least distance across the planned paths, between what is filled to the left and to the right.

    The plant's scans are others until its next step.
    """
    rooms, path = plant.rooms, plant.rooms.planned
    way = path[:, 1:] - path[:, :-1]
    still, found = torch.zeros(len(path)), torch.full((len(path),), torch.inf)
    for k in range(way.shape[1]):
        heading = torch.atan2(way[:, k, 1], way[:, k, 0])
        pose = torch.stack([*(0.5 * (path[:, k] + path[:, k + 1])).unbind(-1), heading])
        rooms.measure(pose.contiguous(), still, still)
        across = rooms.ranges[:, BEAMS // 4] + rooms.ranges[:, 3 * BEAMS // 4]
        found = torch.where(way[:, k].norm(dim=-1) > 1e-3, torch.minimum(found, across), found)
    return found


if __name__ == "__main__":
    main()
