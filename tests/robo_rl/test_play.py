"""The live viewer over real connections, in a real browser, and its physics against closed forms."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import imageio_ffmpeg
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from robo_rl.commands.play import main
from robo_rl.loading import load
from robo_rl.viewer.flying import GREATEST_SHIFT, Flying
from robo_rl.viewer.server import Viewer
from sim.pictures.canvas import RenderingError, open_context
from sim.robots.multirotor import GRAVITY

CALM = {
    "thrust": 1.0,
    "thrust_of_one_rotor": 1.0,
    "force": 0.0,
    "torque": 0.0,
    "noise": 0.0,
    "initial/tilt": 0.0,
    "initial/linear_velocity": 0.0,
    "initial/angular_velocity": 0.0,
}


def geometric() -> Flying:
    return Flying(load("geometric", "quadrotor-hover"), flights=2, fixed=CALM)


@pytest.fixture
def viewer() -> Iterator[Viewer]:
    """A page that is served, with the simulation running."""
    stop = threading.Event()
    with Viewer(geometric()) as server:
        threads = [
            threading.Thread(target=server.serve_forever),
            threading.Thread(target=server.source.run, args=(stop,)),
        ]
        for thread in threads:
            thread.start()
        yield server
        stop.set()
        server.shutdown()
        for thread in threads:
            thread.join(timeout=60)


def get(viewer: Viewer, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=60)
    with contextlib.closing(connection):
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.read()


def act(viewer: Viewer, request: object) -> tuple[int, bytes]:
    return get(viewer, "/act", "POST", json.dumps(request).encode())


def frames(viewer: Viewer, count: int) -> list[dict]:
    status, content = get(viewer, f"/stream?frames={count}")
    assert status == 200
    return [json.loads(line.removeprefix(b"data: ")) for line in content.splitlines() if line.startswith(b"data: ")]


def test_the_stream_delivers_moving_states(viewer):
    seen = frames(viewer, 10)
    assert len(seen) == 10
    times = [frame["time"] for frame in seen]
    assert times == sorted(set(times))
    assert np.abs(np.subtract(seen[-1]["position"], seen[0]["position"])).max() > 0
    lengths = np.linalg.norm([frame["orientation"] for frame in seen], axis=-1)
    np.testing.assert_allclose(lengths, 1.0, atol=1e-3)


def test_the_page_and_the_scene_are_served(viewer):
    status, page = get(viewer, "/")
    assert status == 200
    assert b"<canvas" in page
    status, scene = get(viewer, "/scene")
    assert status == 200
    assert [rotor["name"] for rotor in json.loads(scene)["rotors"]] == ["m1", "m2", "m3", "m4"]


def test_the_page_asks_nothing_of_other_hosts(viewer):
    _, page = get(viewer, "/")
    assert not re.findall(rb"""(?:src|href)\s*=\s*["'](?!data:)|https?://|@import|url\(""", page)


def test_a_push_is_added_to_the_velocity_of_all_vehicles(viewer):
    assert act(viewer, {"pause": True})[0] == 204
    before = frames(viewer, 1)[0]
    assert act(viewer, {"push": [0.5, -0.25, 1.0]})[0] == 204
    after = frames(viewer, 1)[0]
    change = np.subtract(after["velocity"], before["velocity"])
    np.testing.assert_allclose(change, [[0.5, -0.25, 1.0]] * 2, atol=2e-3)


def test_nothing_moves_while_paused(viewer):
    act(viewer, {"pause": True})
    first, *_, last = frames(viewer, 5)
    assert last == first
    act(viewer, {"pause": False})
    assert frames(viewer, 5)[-1]["time"] > last["time"]


def test_a_simulation_that_can_not_keep_up_still_answers():
    """A control period of a microsecond: every step is late."""
    live, stop = geometric(), threading.Event()
    object.__setattr__(live.task.spec, "control_period", 1e-6)
    thread = threading.Thread(target=live.run, args=(stop,))
    thread.start()
    try:
        for pause in (True, False) * 20:
            live.act({"pause": pause})
            assert live.next_frame(0, timeout=60) is not None
    finally:
        stop.set()
        thread.join(timeout=60)
    assert live.time > 0


def test_reset_begins_new_flights(viewer):
    before = frames(viewer, 1)[0]
    act(viewer, {"reset": True})
    after = frames(viewer, 1)[0]
    assert after["episodes"] == [count + 1 for count in before["episodes"]]
    assert after["failures"] == before["failures"]


@pytest.mark.parametrize(
    "request_",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b"{}",
        b"\xff\xfe",
        b"[" * 4000,
        b'{"push": [1, 2]}',
        b'{"push": [1, 2, NaN]}',
        b'{"push": [1e9, 0, 0]}',
        b'{"push": "north"}',
        b'{"shift": [0, 0, 5]}',
        b'{"pause": 1}',
        b'{"reset": false}',
        b'{"pilot": "autopilot"}',
        b'{"pilot": ["policy"]}',
        b'{"knob": {"name": "mass"}}',
        b'{"knob": {"name": "mass", "value": -1}}',
        b'{"knob": {"name": "gravity", "value": 1}}',
        b'{"push": [0, 0, 1], "pause": true}',
        b'{"shutdown": true}',
    ],
)
def test_a_bad_action_is_refused_in_a_sentence_and_changes_nothing(viewer, request_):
    act(viewer, {"pause": True})
    before = frames(viewer, 1)[0]
    status, text = get(viewer, "/act", "POST", request_)
    assert status == 400
    assert len(text) > 15
    assert frames(viewer, 1)[0] == before


def test_bad_requests_do_not_end_the_server(viewer):
    assert get(viewer, "/secrets")[0] == 404
    assert get(viewer, "/../../etc/passwd")[0] == 404
    assert get(viewer, "/stream?frames=many")[0] == 404
    assert get(viewer, "/", "POST", b"{}")[0] == 404
    assert get(viewer, "/", "DELETE")[0] == 501
    assert get(viewer, "/act", "POST", b" " * 100_000)[0] == 400
    assert get(viewer, "/act", "POST", b"{}", Content_Length="-5")[0] == 400
    for garbage in (b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b""):
        with socket.create_connection(("127.0.0.1", viewer.port), timeout=60) as raw:
            raw.sendall(garbage)
    assert get(viewer, "/scene")[0] == 200


def test_other_sites_pages_cannot_reach_it(viewer):
    assert get(viewer, "/scene", Host="evil.example")[0] == 403
    assert get(viewer, "/act", "POST", b'{"reset": true}', Origin="http://evil.example")[0] == 403
    own = f"http://127.0.0.1:{viewer.port}"
    assert get(viewer, "/act", "POST", b'{"pause": true}', Origin=own)[0] == 204


def test_it_listens_on_the_loopback_interface_alone(viewer):
    assert viewer.socket.getsockname()[0] == "127.0.0.1"


def test_a_browser_that_goes_away_ends_only_its_own_stream(viewer, capsys):
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", viewer.port), timeout=60) as raw:
            raw.sendall(f"GET /stream HTTP/1.1\r\nHost: 127.0.0.1:{viewer.port}\r\n\r\n".encode())
            assert raw.recv(100)
    assert len(frames(viewer, 100)) == 100
    assert "Traceback" not in capsys.readouterr().err


def test_mean_thrust_at_hover_carries_the_mass_that_the_knob_says():
    """Level hover without disturbance: Σ c2 Ω² = m g."""
    live = geometric()
    card = live.task.card
    for factor in (0.8, 1.5):
        live.act({"knob": {"name": "mass", "value": factor}})
        for _ in range(900):
            live.step()
        speed = live.env.plant.truth()["rotor_speed"]
        thrust = card.thrust[2] * speed.square().sum(-1)
        np.testing.assert_allclose(thrust, factor * card.mass * GRAVITY, rtol=0.01)


def test_knobs_hold_in_flights_that_begin_later():
    live = geometric()
    for name, value in {"mass": 1.3, "wind": 2.0, "delay": 0.03, "noise": 4.0}.items():
        live.act({"knob": {"name": name, "value": value}})
    live.act({"reset": True})
    plant = live.env.plant
    np.testing.assert_allclose(plant.param("mass"), 1.3 * live.task.card.mass, rtol=1e-6)
    np.testing.assert_allclose(plant.param("wind"), [[2.0, 0.0, 0.0]] * 2)
    np.testing.assert_allclose(live.env.draws.delay, 0.03)
    np.testing.assert_allclose(live.env.draws.noise, 4.0)


def test_vehicles_follow_a_setpoint_that_is_moved():
    live = geometric()
    live.act({"shift": [0.3, -0.2, 0.1]})
    for _ in range(900):
        live.step()
    assert live.failures == [0, 0]
    np.testing.assert_allclose(live.env.plant.truth()["position"], [[0.3, -0.2, 0.1]] * 2, atol=0.02)


def test_a_policy_and_the_controller_can_take_turns(trained_run):
    live = Flying(load(str(trained_run)), flights=2)
    assert list(live.pilots) == ["policy", "geometric"]
    for pilot in ("geometric", "policy", "geometric"):
        live.act({"pilot": pilot})
        for _ in range(50):
            live.step()
        assert live.next_frame(0, 1.0).content["pilot"] == pilot
    assert torch.isfinite(live.env.plant.truth()["position"]).all()


def test_a_failed_flight_is_counted_and_begins_again():
    live = geometric()
    live.env.plant.truth()["position"][0] = torch.tensor([2.0, 0.0, 0.0])
    live.step()
    assert live.failures == [1, 0]
    assert live.episodes == [2, 1]
    assert live.env.plant.truth()["position"][0].norm() < 0.5


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
ACTIONS = st.sampled_from(["pause", "reset", "pilot", "push", "shift", "knob"])


@pytest.fixture(scope="module")
def target() -> Flying:
    return geometric()


@given(request_=JSON | st.dictionaries(ACTIONS, JSON, min_size=1, max_size=1))
@settings(max_examples=200, deadline=None)
def test_no_request_can_break_the_simulation(target, request_):
    with contextlib.suppress(ValueError):
        target.act(request_)
    target.step()
    assert torch.isfinite(target.env.plant.truth()["position"]).all()
    assert target.shift.abs().max() <= GREATEST_SHIFT


@pytest.mark.browser
def test_in_chromium_the_page_draws_vehicles_and_numbers_without_complaint(viewer, chromium, tmp_path):
    picture = tmp_path / "page.png"
    url = f"{viewer.url}?frames=40"
    patient = "--virtual-time-budget=10000"  # until the stream has ended
    result = chromium(patient, "--window-size=1280,800", f"--screenshot={picture}", url)
    assert "CONSOLE" not in result.stderr
    with Image.open(picture) as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)[:, :960]  # without the panel
    assert pixels.std() > 4
    orange = (pixels[..., 0] > pixels[..., 2] + 90) & (pixels[..., 0] > pixels[..., 1] + 30)
    green = (pixels[..., 1] > pixels[..., 0] + 60) & (pixels[..., 1] > pixels[..., 2] + 15)
    assert orange.sum() > 50  # front rotors
    assert green.sum() > 20  # set-points
    page = chromium(patient, "--dump-dom", url)
    assert "CONSOLE" not in page.stderr
    table = page.stdout.split('<tbody id="flights">')[1].split("</tbody>")[0]
    assert len(re.findall(r"\d+\.\d cm", table)) == 2
    assert 'aria-pressed="true">geometric' in page.stdout


def play(arguments: list[str]) -> dict:
    """The JSON of a play command that ends by itself."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        import tyro

        assert tyro.cli(main, args=[*arguments, "--json"], config=(tyro.conf.FlagCreatePairsOff,)) == 0
    return json.loads(out.getvalue().splitlines()[-1])


def test_the_command_serves_until_interrupted_and_ends_with_zero():
    command = [sys.executable, "-m", "robo_rl", "play", "geometric", "--task", "quadrotor-hover", "--no-open", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        port = int(url.rstrip("/").rsplit(":", 1)[1])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/stream?frames=3")
        assert connection.getresponse().read().count(b"data:") == 3
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.communicate()


def test_the_command_writes_a_film_and_a_picture(tmp_path):
    try:
        open_context((32, 32)).free()
    except RenderingError as error:
        pytest.skip(str(error))
    film, picture = tmp_path / "flight.mp4", tmp_path / "flight.png"
    options = ["--video", str(film), "--picture", str(picture), "--seconds", "1.2", "--size", "160", "120"]
    result = play(["geometric", "--task", "quadrotor-track", "--fps", "10", *options])
    assert result == {"picture": str(picture), "video": str(film), "frames": 12, "seconds": 1.2}
    assert imageio_ffmpeg.count_frames_and_secs(str(film))[0] == 12
    with Image.open(picture) as image:
        assert np.asarray(image).std() > 5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--flights", "0"], "expected 1 to 16"),
        (["--seconds", "nan"], "expected 0.1 to 3600"),
        (["--fixed", "gravity", "3", "--video", "a.mp4"], "no range 'gravity'"),
        (["--video", "flight.mov"], "ends in .mp4 or .gif"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(options, said):
    with pytest.raises(ValueError, match=said):
        play(["geometric", "--task", "quadrotor-hover", *options])


def test_a_browser_is_not_opened_without_a_display():
    from robo_rl.commands.play import has_display

    shown = {name: os.environ.pop(name) for name in ("DISPLAY", "WAYLAND_DISPLAY") if name in os.environ}
    try:
        assert has_display() == (sys.platform != "linux")
    finally:
        os.environ.update(shown)
