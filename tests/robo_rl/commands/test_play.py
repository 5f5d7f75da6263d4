"""The command as people call it: a page until Ctrl-C, films and pictures of any task, and what it refuses."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
import tyro
import viser
import websockets.asyncio.client as client
from PIL import Image

from robo_rl.commands.looking.play import has_display, main
from robo_rl.sim.pictures.canvas import RenderingError, open_context

STRANGER = str(Path(__file__).parents[1] / "viewer" / "cart_and_pole.py")
HOVER = ["classical", "--task", "quadrotor-hover"]


@pytest.fixture
def graphics() -> None:
    try:
        open_context((32, 32)).free()
    except RenderingError as error:
        pytest.skip(str(error))


def play(arguments: list[str]) -> dict:
    """The JSON of a play command that ends by itself."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert tyro.cli(main, args=[*arguments, "--json"], config=(tyro.conf.FlagCreatePairsOff,)) == 0
    return json.loads(out.getvalue().splitlines()[-1])


def test_the_page_is_served_until_interrupted_and_the_command_ends_with_zero():
    command = [sys.executable, "-m", "robo_rl", "play", *HOVER, "--no-open", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()  # nothing comes before the JSON object
        port = int(json.loads(line)["url"].rstrip("/").rsplit(":", 1)[1])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/")
        answer = connection.getresponse()
        assert answer.status == 200
        assert b"<html" in answer.read()

        async def listen() -> None:
            """Until there was as much as shapes and controls are."""
            address, kind, size = f"ws://127.0.0.1:{port}", f"viser-v{viser.__version__}", 0
            async with client.connect(address, subprotocols=[kind], max_size=None) as page:  # type: ignore[list-item]
                while size < 10_000:
                    size += len(await asyncio.wait_for(page.recv(), 60))

        asyncio.run(listen())
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
        assert process.stdout.read() == ""
    finally:
        process.kill()
        process.communicate()


def test_a_port_that_is_taken_is_refused_in_a_sentence():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"can't be served at 127.0.0.1, port {port}: .*in use"):
            play([*HOVER, "--port", str(port), "--no-open"])


@pytest.mark.usefixtures("graphics")
def test_a_film_and_a_picture_are_written(tmp_path):
    film, picture = tmp_path / "flight.mp4", tmp_path / "flight.png"
    options = ["--video", str(film), "--picture", str(picture), "--seconds", "1.2", "--size", "160", "120"]
    result = play(["classical", "--task", "quadrotor-track", "--fps", "10", *options])
    assert result == {"picture": str(picture), "video": str(film), "frames": 12, "seconds": 1.2}
    assert imageio_ffmpeg.count_frames_and_secs(str(film))[0] == 12
    with Image.open(picture) as image:
        assert np.asarray(image).std() > 5


@pytest.mark.usefixtures("graphics")
@pytest.mark.parametrize(("target", "size"), [("zoo:go2-flat", (1800, 300)), ("zoo:quadrotor-hover", (1200, 600))])
def test_who_stands_on_the_ground_is_pictured_in_panels_and_who_flies_in_one_scene(tmp_path, target, size):
    play([target, "--picture", str(tmp_path / "robot.png"), "--seconds", "1.2"])
    with Image.open(tmp_path / "robot.png") as image:
        assert image.size == size


@pytest.mark.usefixtures("graphics")
def test_a_strangers_task_has_film_and_picture_without_any_code_for_them(tmp_path):
    film, picture = tmp_path / "cart.gif", tmp_path / "cart.png"
    options = ["--video", str(film), "--picture", str(picture), "--seconds", "1.2", "--size", "160", "120"]
    play(["classical", "--task", f"{STRANGER}:Balance", "--fps", "10", *options])
    for file in (film, picture):
        with Image.open(file) as image:
            pixels = np.asarray(image.convert("RGB")).astype(int)
        assert ((pixels[..., 0] > pixels[..., 1] + 60) & (pixels[..., 0] > pixels[..., 2] + 60)).sum() > 10  # the pole


def test_a_plant_that_can_not_be_drawn_is_refused_with_what_it_lacks(tmp_path):
    options = ["--picture", str(tmp_path / "cart.png"), "--seconds", "1.2"]
    with pytest.raises(ValueError, match=r"BlindPlant has no drawing\(\) and no poses\(\), .* docs/own-task\.md"):
        play(["classical", "--task", f"{STRANGER}:Blind", *options])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--episodes", "0"], "expected 1 to 16"),
        (["--seconds", "nan"], "expected 0.1 to 3600"),
        (["--fixed", "gravity", "3", "--video", "a.mp4"], "'gravity' is not one of the task's ranges"),
        (["--fixed", "gravity", "3"], "'gravity' is not one of the task's ranges"),
        (["--video", "flight.mov"], "ends in .mp4 or .gif"),
        (["--picture", "flight.jpg"], "ends in .png"),
        (["--address", "somewhere"], "expected an IPv4 address"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(options, said):
    with pytest.raises(ValueError, match=said):
        play([*HOVER, *options, "--no-open"])


def test_a_browser_is_not_opened_without_a_display():
    shown = {name: os.environ.pop(name) for name in ("DISPLAY", "WAYLAND_DISPLAY") if name in os.environ}
    try:
        assert has_display() == (sys.platform != "linux")
    finally:
        os.environ.update(shown)
