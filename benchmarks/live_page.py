"""Frames per second of the live page, with robots of each zoo policy, and the processor time that they take.

One client is connected: a websocket that reads whatever comes, as a browser on another computer does. With --browser a
headless Chromium on this computer, which draws without a graphics card and so needs most of two cores for itself.

    python benchmarks/live_page.py
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import torch
import viser
import websockets.asyncio.client as websockets
from results import write

from robo_rl.policies.loading import load
from robo_rl.viewer.live import Live
from robo_rl.viewer.page import Page

SHOWN = {"zoo:quadrotor-hover": 4, "zoo:go2-flat": 4, "zoo:go2-rough": 2}
"""Robots by policy."""
SECONDS = 10.0
CAMERA = {
    "type": "ViewerCameraMessage", "wxyz": (1.0, 0.0, 0.0, 0.0), "position": (3.0, 3.0, 2.0), "fov": 1.0, "near": 0.01,
    "far": 100.0, "image_height": 900, "image_width": 1180, "look_at": (0.0, 0.0, 0.0), "up_direction": (0.0, 0.0, 1.0),
}  # fmt: skip
"""What a browser says first."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--browser", action="store_true")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    figures = {}
    for name, robots in SHOWN.items():
        figures[name] = found = measure(name, robots, chosen.browser)
        print(f"{name:<22} {robots} robots   {found['frames_per_second']:5.1f} frames/s   "
              f"{found['real_time']:.2f} of real time   {100 * found['cores']:.0f} % of a core")  # fmt: skip
    write("live_page" + ("_browser" if chosen.browser else ""), figures)


def measure(name: str, robots: int, browser: bool) -> dict[str, float]:
    live, stop = Live(load(name), robots, 0, None, {}, {}), threading.Event()
    with Page(live) as page, connected(page, browser):
        threads = [threading.Thread(target=run, args=(stop,), daemon=True) for run in (page.run, live.run)]
        for thread in threads:
            thread.start()
        if browser:
            page.wait_drawn()
        time.sleep(3.0)
        frames, begun, used = page.frames, time.perf_counter(), time.process_time()
        simulated = live.frame.moment.time
        time.sleep(SECONDS)
        passed = time.perf_counter() - begun
        found = {
            "robots": robots,
            "frames_per_second": round((page.frames - frames) / passed, 1),
            "real_time": round((live.frame.moment.time - simulated) / passed, 3),
            "cores": round((time.process_time() - used) / passed, 3),
        }
        stop.set()
        for thread in threads:
            thread.join(timeout=5.0)
    return found


@contextlib.contextmanager
def connected(page: Page, browser: bool) -> Any:
    """A client that reads."""
    if browser:
        sys.path.insert(0, str(Path(__file__).parents[1]))
        from tests.browser import WEBGL, Browser, find_browser

        program = find_browser()
        if program is None:
            sys.exit("chromium is missing: apt-get install chromium")
        with tempfile.TemporaryDirectory() as folder:
            window = Browser(program, folder, WEBGL)
            window.ask("Page.navigate", url=page.url)
            try:
                yield
            finally:
                os.killpg(window.process.pid, 9)
        return
    ended = threading.Event()

    async def read() -> None:
        address = f"ws://127.0.0.1:{page.port}"
        protocol = f"viser-v{viser.__version__}"
        async with websockets.connect(address, subprotocols=[protocol], max_size=None) as socket:  # type: ignore[list-item]
            await socket.send(msgspec.msgpack.encode(CAMERA))  # viser sends the scene to whom it knows a camera of
            while not ended.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(socket.recv(), 0.5)

    thread = threading.Thread(target=lambda: asyncio.run(read()), daemon=True)
    thread.start()
    yield
    ended.set()
    thread.join(timeout=5.0)


if __name__ == "__main__":
    main()
