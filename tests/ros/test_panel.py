"""The panel as people use it: its page in a real browser, nodes in processes of their own, DDS between them."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from typing import Any

import numpy as np
import pytest
from browser import Browser

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

pytestmark = [pytest.mark.slow, pytest.mark.browser]
PATIENCE = 120.0  # s
OPERATE, VIEW = "the-token-of-the-operator", "the-token-of-those-who-view"
SILENCE = 12.0
"""s of simulated time that an operator may be silent. It passes several times as fast as real time at most."""


@pytest.fixture
def panel(flight, make_variant) -> tuple[Any, str]:
    """A robot in simulated time that wants an operator, a policy with constant set-points, and the panel; its address.

    Set-points that come by message would be an operator's signs of life too.
    """
    bundle = make_variant(operator_timeout=SILENCE)
    hover = "setpoints:=['position_setpoint=0 0 1', 'linear_velocity_setpoint=0 0 0']"
    flight.start("twin", "--use-sim-time", "--parameter", "operator:=false")
    flight.start("policy", str(bundle), "--use-sim-time", "--parameter", hover)
    flight.start("panel", "--port", "0")
    flight.until(lambda: flight.truth, "the twin")
    flight.until(lambda: "panel is at" in flight.log("panel"), "the panel")
    return flight, flight.log("panel").split("panel is at ")[1].split()[0]


def arm(page: Browser) -> None:
    """Press until it is not refused any more: signals may not all have arrived yet."""
    page.until("document.querySelector('#do-arm').disabled === false")
    end = time.monotonic() + PATIENCE
    while page.text("#state") != "READY" and time.monotonic() < end:
        page.click("#do-arm")
        page.until("!document.querySelector('#said').textContent.endsWith('…')")
        if "done" in page.text("#said"):
            page.until("document.querySelector('#state')?.textContent === 'READY'")


def engage(flight: Any, page: Browser) -> None:
    """Arm and engage, again where this computer was too busy for the steps to be in time."""
    for _ in range(5):
        arm(page)
        flight.gates.clear()
        page.click("#do-engage")
        page.until("['ACTIVE', 'FAULT'].includes(document.querySelector('#state')?.textContent)")
        if page.text("#state") == "ACTIVE":
            return
        assert flight.fault()["reason"] == "OVERRUN"
        flight.operator.restart_twin()
        page.click("#do-reset")
        page.until("document.querySelector('#state')?.textContent === 'IDLE'")
    raise AssertionError(flight.gates)


def complaints(page: Browser) -> list[str]:
    """Of the browser, but for the refusals of ``arm``."""
    return [text for text in page.complaints if "400 (Bad Request)" not in text]


def brightness(picture: np.ndarray) -> float:
    return float(np.median(picture))


def test_a_person_arms_engages_and_stops_with_the_space_key(panel, open_page):
    flight, url = panel
    page = open_page(url)
    page.until("document.querySelector('#about')?.textContent.includes('unconfigured')")
    page.click("#do-configure")
    engage(flight, page)
    assert page.text("#ladder [aria-current]") == "live"
    assert "This page is the operator" in page.text("#alive")

    began = flight.truth[-1][0]  # longer than the contract lets an operator be silent
    flight.until(lambda: flight.truth[-1][0] > began + SILENCE + 1.0, "some time")
    assert page.text("#state") == "ACTIVE"
    assert page.run("history.length") > 20
    assert "Hz" in page.text("#topics")
    page.run("document.querySelector('#do-disarm').focus()")
    page.press_space()
    page.until("document.querySelector('#state')?.textContent === 'FAULT'")
    flight.until(lambda: flight.state == "FAULT", "a fault")
    assert flight.gates[-1]["reason"] == "OPERATOR_STOP"
    page.until("document.querySelector('#reason')?.textContent.includes('asked to stop')")
    page.click("#do-reset")
    page.until("document.querySelector('#state')?.textContent === 'IDLE'")

    page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    light = page.picture()
    page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    dark = page.picture()
    assert brightness(light) > 200
    assert brightness(dark) < 60
    sizes = page.run("[...document.querySelectorAll('button')].map(b => [b.id, b.clientWidth * b.clientHeight])")
    assert max(sizes, key=lambda entry: entry[1])[0] == "stop"

    assert complaints(page) == []
    flight.processes["panel"].kill()
    page.until("!document.querySelector('#lost').hidden")
    assert "Connection to the panel lost" in page.text("#lost")
    page.press_space()
    page.until("document.querySelector('#said')?.textContent.includes('NOT CONFIRMED')")
    flight.until(lambda: flight.state == "IDLE", "the gate, which the panel's end does not touch")


def test_a_robot_stops_when_the_page_that_armed_it_is_closed(panel, open_page):
    flight, url = panel
    flight.operator.do("configure")
    page, other = open_page(url), open_page(url)
    engage(flight, page)
    other.until("document.querySelector('#state')?.textContent === 'ACTIVE'")
    assert "Another page" in other.text("#alive")
    page.ask("Page.navigate", url="about:blank")
    assert flight.fault()["reason"] == "OPERATOR_LOST"  # although the other page and the panel are there
    other.until("document.querySelector('#state')?.textContent === 'FAULT'")


def test_who_may_only_view_can_stop_the_robot_and_nothing_else(flight, make_variant, open_page):
    hover = "setpoints:=['position_setpoint=0 0 1', 'linear_velocity_setpoint=0 0 0']"
    flight.start("twin", "--use-sim-time", "--parameter", "operator:=false")
    flight.start("policy", str(make_variant()), "--use-sim-time", "--parameter", hover)
    flight.start("panel", "--port", "0", "--parameter", f"token:={OPERATE}", f"view_token:={VIEW}")
    flight.until(lambda: flight.truth, "the twin")
    flight.until(lambda: "panel is at" in flight.log("panel"), "the panel")
    (viewing,) = re.findall(r"to view, and to stop: (\S+)", flight.log("panel"))
    (operating,) = re.findall(r"the panel is at (\S+)", flight.log("panel"))
    base = viewing.partition("?")[0]

    def act(token: str, **request: str) -> tuple[int, str]:
        asked = urllib.request.Request(f"{base}act", json.dumps(request).encode(), {"Authorization": f"Bearer {token}"})
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    page = open_page(operating)
    page.until("document.querySelector('#about')?.textContent.includes('unconfigured')")
    page.click("#do-configure")
    engage(flight, page)
    for action in ("configure", "arm", "engage", "disarm", "reset", "deactivate", "cleanup", "promote", "demote"):
        assert act(VIEW, do=action, page="x")[0] == 403
    assert act(VIEW, do="select", page="x", name="other")[0] == 403
    assert act(VIEW, alive="x")[0] == 403  # nor can they pass for the operator
    flight.until(lambda: flight.state == "ACTIVE", "the gate's word")
    assert page.text("#state") == "ACTIVE"
    assert act("no-token-of-this-panel", do="stop", page="x")[0] == 401

    watching = open_page(viewing)
    watching.until("document.querySelector('#state')?.textContent === 'ACTIVE'")
    watching.until("document.querySelector('#alive')?.textContent.startsWith('View only')")
    assert watching.run("[...document.querySelectorAll('button')].filter(b => !b.disabled).map(b => b.id)") == ["stop"]
    watching.press_space()
    assert flight.fault()["reason"] == "OPERATOR_STOP"
    assert act(VIEW, do="reset", page="x")[0] == 403
    assert act(OPERATE, do="reset", page="x")[0] == 200


def test_what_the_panel_does_not_know_is_refused_in_a_sentence(panel):
    _, url = panel
    for request in ("{}", "[]", '{"do": "fly", "page": "x"}', '{"do": "arm"}', '{"alive": 1}', '{"do": "stop"}', "7"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}act", data=request.encode(), timeout=60)
        assert refused.value.code == 400
        assert b"expected" in refused.value.read()
