"""robo-rl play."""

from __future__ import annotations

import dataclasses
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from robo_rl.console import Progress, give, require_place, require_port, say

if TYPE_CHECKING:
    from robo_rl.learn.runs.folder import Run
    from robo_rl.policies.loading import Loaded
    from robo_rl.sim.drawing import Motion

ROBOTS = 4
STRIP_ROBOTS, STRIP_SECONDS, FILM_SECONDS = 2, 4.0, 5.0


def main(
    target: Annotated[str, tyro.conf.Positional],
    task: str | None = None,
    robot: str | None = None,
    seed: int = 0,
    fixed: dict[str, float] = {},  # noqa: B006 (never changed)
    episodes: int | None = None,
    seconds: float | None = None,
    switch: tuple[str, ...] = (),
    beside: tuple[str, ...] = (),
    digest: str | None = None,
    video: Path | None = None,
    picture: Path | None = None,
    size: tuple[int, int] = (640, 480),
    fps: int = 30,
    gamepad: Path | None = None,
    port: int = 0,
    address: str = "127.0.0.1",
    no_open: bool = False,
    json: bool = False,
) -> int:
    """Watch a policy: live in the browser, or as a video file or a picture.

    The page is served to this machine only, until Ctrl-C. Of a run, it also shows the curves of the training, which may
    go on, have ended or been killed: the robots always have its newest policy. It has controls to push the robots, to
    move the set-points of multirotors or the commanded velocities of legged robots, to change loads, wind, ground,
    motors, latency and noise, and to switch to another policy. With --json: url; or video, frames and seconds; and
    picture.

    Args:
        target: A run's folder, a .onnx file or its address (https://…), or of --task: 'classical', its classical
            controller, 'zero' or 'random', to look at it.
        task: Run this task instead of its own: a name, or FILE.py:CLASS. A .onnx file of such a task
            needs it, or 'inside': the source that the file brings.
        robot: Run it on this robot instead of its own.
        seed: Random seed of the episodes.
        fixed: Ranges of the task set to one value, as NAME VALUE pairs: --fixed initial/tilt 1.57 wind 1.
        episodes: Number of episodes at once; by default four, or one of a team, and in a video of a moving set-point or
            a walk.
        seconds: Length of the episodes, after which the page resets them; of the video, 5 by default, or the episode's;
            of a walk in a picture, which shows its middle, 4 by default; of a way among walls or on lanes in a picture
            the whole episode.
        switch: More targets of the same task, which the page can switch to.
        beside: Of a run: more runs of the same task, whose curves the page shows beside its own. Their policies are
            those of the last robots, one robot or more each.
        digest: Of a file at an address, its SHA-256, which you else confirm.
        video: Write this file (.mp4 or .gif) instead of serving a page.
        picture: Write this file (.png): recoveries or steps at several moments, time running from left to right.
        size: Width and height of the video in pixels.
        fps: Frames per second of the video.
        gamepad: Drive by a gamepad (Linux: /dev/input/js0): left stick, then right stick, for what the operator
            commands, in the order of the tab "drive", which also names keys for it.
        port: Port of the page; 0 for any free one.
        no_open: Don't open a browser.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.learn.runs.folder import Run
    from robo_rl.policies.loading import load
    from robo_rl.policies.sharing import fetched, is_address

    if episodes is not None and not 1 <= episodes <= 16:
        raise ValueError(f"--episodes is {episodes}; expected 1 to 16")
    if seconds is not None and not 0.1 <= seconds <= 3600:
        raise ValueError(f"--seconds is {seconds:g}; expected 0.1 to 3600")
    require_port(port)
    if gamepad is not None and not gamepad.exists():
        raise ValueError(f"--gamepad is '{gamepad}', which does not exist; expected a joystick, as /dev/input/js0")
    require_place(video, "--video", ".mp4", ".gif")
    require_place(picture, "--picture", ".png")
    loaded = load(str(fetched(target, digest, json)) if is_address(target) else target, task, robot)
    robots = max(1, ROBOTS // loaded.task.spec.team)
    if video is None and picture is None:
        others = {Path(name).stem: load(name, loaded.task, robot).policy for name in switch}
        runs = [Run.open(name) for name in (target, *beside) if Path(name).is_dir()]
        if len(runs) < len(beside) + bool(beside):
            raise ValueError(f"--beside is {' '.join(beside)}, and the target {target}; expected folders of runs")
        return serve(
            loaded, episodes or robots, seed, seconds, fixed, others, port, address, no_open, json, runs=runs,
            gamepad=gamepad,
        )  # fmt: skip
    result: dict[str, Any] = {}
    if picture is not None:
        result |= _strip(loaded, episodes or STRIP_ROBOTS, seed, seconds, fixed, picture, json)
    if video is not None:
        result |= _film(loaded, episodes or robots, seed, seconds, fixed, video, size, fps, json, episodes is None)
    give(result, json)
    return 0


def serve(
    loaded: Loaded, robots: int, seed: int, seconds: float | None, fixed: dict[str, float],
    others: dict[str, Any], port: int, address: str, no_open: bool, json: bool,
    runs: Sequence[Run] = (), stop: threading.Event | None = None, gamepad: Path | None = None,
) -> int:  # fmt: skip
    """Serve the page until Ctrl-C, or until ``stop`` is set."""
    import secrets
    import webbrowser

    import torch

    from robo_rl.evaluate.evaluation import GraphPolicy
    from robo_rl.policies.loading import load
    from robo_rl.viewer.access import Access
    from robo_rl.viewer.driving import follow
    from robo_rl.viewer.live import Live
    from robo_rl.viewer.page import Page
    from robo_rl.viewer.side_by_side import SideBySide
    from robo_rl.viewer.training import Newest

    torch.set_num_threads(1)
    local = address.startswith("127.")
    access = Access(address, "" if local else secrets.token_urlsafe(24))
    stop, newest = stop or threading.Event(), None
    if runs and isinstance(loaded.policy, GraphPolicy):
        newest = Newest(runs[0], loaded.policy.policy)
    if len(runs) > 1:
        rivals = [loaded.policy, *(load(str(run.folder), loaded.task).policy for run in runs[1:])]
        loaded = dataclasses.replace(loaded, policy=SideBySide(rivals))
    live = Live(loaded, robots, seed, seconds, fixed, others)
    try:
        page = Page(live, port, access, runs, newest)
    except OSError as error:
        raise ValueError(f"the page can't be served at {address}, port {port}: {error}") from None
    with page:
        sender = threading.Thread(target=page.run, args=(stop,), daemon=True)
        sender.start()
        if gamepad is not None:
            threading.Thread(target=follow, args=(gamepad, page.controls.driver, stop), daemon=True).start()
        say(f"{loaded.name} is at {page.url}   (Ctrl-C ends it)", json)
        give({"url": page.url}, json)
        if not no_open and has_display():
            webbrowser.open(page.url)
        try:
            live.run(stop)
        except KeyboardInterrupt:
            say("", json)
        finally:
            stop.set()
            sender.join(timeout=5.0)
    return 0


def has_display() -> bool:
    """Whether a browser could show something; text browsers must not take over the terminal."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _film(
    loaded: Loaded, episodes: int, seed: int, seconds: float | None, fixed: dict[str, float], video: Path,
    size: tuple[int, int], fps: int, json: bool, fewer: bool,
) -> dict[str, Any]:  # fmt: skip
    """Record, then draw every frame; where it may be ``fewer``, of as many robots as are not too small."""
    from robo_rl.sim.pictures.camera import as_many_as_seen
    from robo_rl.sim.pictures.film import film, pace_of, require_film

    require_film(video, size, fps)
    length = seconds or min(FILM_SECONDS, loaded.task.spec.episode_length)
    motion = _record(loaded, episodes, seed, length, fixed)
    motion = as_many_as_seen(motion, size) if fewer else motion
    task = loaded.task.spec.name
    caption = loaded.name if task in loaded.name else f"{task}, {loaded.name}"
    with Progress("drawing", int(length / pace_of(motion) * fps)) as progress:
        count = film(video, motion, caption, size, fps, progress.update)
    say(f"{video}: {count} frames, {count / fps:g} s, {video.stat().st_size:,} bytes", json)
    return {"video": str(video), "frames": count, "seconds": count / fps}


def _strip(
    loaded: Loaded, episodes: int, seed: int, seconds: float | None, fixed: dict[str, float], picture: Path, json: bool
) -> dict[str, Any]:
    """Where no seconds are given and a robot is in surroundings, its whole episode is shown."""
    from robo_rl.sim.pictures.camera import surrounded
    from robo_rl.sim.pictures.strip import strip

    length = seconds or min(STRIP_SECONDS, loaded.task.spec.episode_length)
    motion = _record(loaded, episodes, seed, length, fixed)
    if seconds is None and surrounded(motion):
        motion = _record(loaded, 1, seed, loaded.task.spec.episode_length, fixed)
    strip(picture, motion)
    say(f"{picture}: {picture.stat().st_size:,} bytes", json)
    return {"picture": str(picture)}


def _record(loaded: Loaded, episodes: int, seed: int, seconds: float, fixed: dict[str, float]) -> Motion:
    """What is to be seen of some episodes, over ``seconds``."""
    from robo_rl.evaluate.evaluation import Conditions, rollout
    from robo_rl.sim.drawing import require_drawing

    require_drawing(loaded.task.make_plant(1, "cpu"))
    conditions = Conditions(episodes, seed, seconds, fixed, recorded=episodes)
    motion = rollout(loaded.task, loaded.policy, conditions).motion
    assert motion is not None
    return motion
