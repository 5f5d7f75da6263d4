"""Take the picture of the live page with a goal and obstacles that were set by clicks.

python docs/images/clicks.py POLICY docs/images/clicks.png, with a run or a bundle of omni-nav, or "classical"
"""

from __future__ import annotations

import math
import sys
import threading

from viewer import main as take

from robo_rl.policies.loading import load
from robo_rl.viewer.live import Live
from robo_rl.viewer.page import Page

SEED, FULL, SECONDS = 3, 0.15, 2.0
EYE = (0.0, -4.5, 4.0)
"""m, of the camera from the robot that it follows."""


def main(policy: str, file: str) -> None:
    """A robot that was driving for a while, then paused."""
    live = Live(load(policy, "omni-nav"), 1, SEED, fixed={"room/fill": FULL})
    place = live.env.plant.truth()["place"][0].tolist()
    for bearing, distance, what in ((1.2, 3.6, "goal"), (1.2, 1.9, "obstacle"), (1.4, 2.1, "obstacle")):
        at = [x + distance * part for x, part in zip(place, (math.cos(bearing), math.sin(bearing)), strict=True)]
        live.act({"click": {"what": what, "robot": 0, "place": at}})
    for _ in range(round(SECONDS / live.task.spec.control_period)):
        live.step()
        live.act({"speed": 1.0})  # makes a frame, for the trail
    live.act({"pause": True})
    stop = threading.Event()
    with Page(live) as page:
        camera = page.server.initial_camera
        camera.position, camera.look_at = EYE, (0.0, 0.0, 0.0)
        work = [threading.Thread(target=run, args=(stop,)) for run in (live.run, page.run)]
        for thread in work:
            thread.start()
        take(page.url, file)
        stop.set()
        for thread in work:
            thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
