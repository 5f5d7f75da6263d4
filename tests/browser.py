"""Headless Chromium, steered by its debugging protocol over a pipe: one page, with keys, clicks and pictures."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import time
from typing import Any

import numpy as np
from PIL import Image

PATIENCE = 180.0  # s
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
WITHOUT_GPU = ("--disable-gpu",)
WEBGL = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")
"""Options with which Chromium draws WebGL without a graphics card."""


def find_browser() -> str | None:
    """The path of Chromium, if it is installed."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


def without_scripts(page: str) -> str:
    """A report's page without the scripts of its interactive plots, and what they read."""
    return re.sub(r"<script>.*?</script>|<script type=\"application/json\">.*?</script>", "", page, flags=re.DOTALL)


class Browser:
    """One page. ``complaints`` are the page's uncaught errors and what its console says of errors."""

    def __init__(
        self, program: str, folder: str, options: tuple[str, ...] = WITHOUT_GPU, size: tuple[int, int] = (1180, 900)
    ) -> None:
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        command = [program, "--headless=new", "--no-sandbox", "--no-first-run", "--hide-scrollbars", *options]
        command += ["--disable-background-networking", "--disable-dev-shm-usage", f"--user-data-dir={folder}"]
        command += ["--remote-debugging-pipe", f"--window-size={size[0]},{size[1]}", "about:blank"]
        moved = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'  # where Chromium looks for the pipe
        self.process = subprocess.Popen(
            ["bash", "-c", moved, "bash", *command],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._lines, self._count, self._session = os.fdopen(self._in, "rb", 0), 0, ""
        self._rest = b""
        self.complaints: list[str] = []
        self.requests: list[str] = []
        """Addresses that the page asked for."""
        page = next(t for t in self.ask("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self.ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        width, height = size
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def ask(self, method: str, **parameters: Any) -> Any:
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = json.loads(self._read())
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer.get("method", ""), answer.get("params", {}))

    def _note(self, event: str, what: dict[str, Any]) -> None:
        if event == "Runtime.exceptionThrown" or (event == "Log.entryAdded" and what["entry"]["level"] == "error"):
            self.complaints.append(json.dumps(what))
        if event == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])

    def _read(self) -> bytes:
        while b"\0" not in self._rest:
            more = self._lines.read(1 << 16)
            assert more, "the browser has ended"
            self._rest += more
        found, _, self._rest = self._rest.partition(b"\0")
        return found

    def run(self, script: str) -> Any:
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def text(self, selector: str) -> str:
        return self.run(f"document.querySelector({json.dumps(selector)})?.textContent ?? ''")

    def press_space(self) -> None:
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, code="Space", key=" ", text=" " if kind == "keyDown" else "")

    def click(self, selector: str) -> None:
        """Click on the middle of an element."""
        self._click(f"document.querySelector('{selector}')")

    def click_text(self, text: str) -> None:
        """Click on the first element that says nothing else, as soon as it is there."""
        says = f"!e.childElementCount && e.textContent == {json.dumps(text)}"
        found = f"[...document.querySelectorAll('*')].find(e => {says})"
        self.until(f"!!{found}")
        self._click(found)

    def _click(self, element: str) -> None:
        box = f"{element}.getBoundingClientRect()"
        x, y = self.run(f"(box => [box.x + box.width / 2, box.y + box.height / 2])({box})")
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self) -> np.ndarray:
        data = base64.b64decode(self.ask("Page.captureScreenshot")["data"])
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)

    def until(self, script: str) -> None:
        """Wait until the script is true, or fail with what the page says."""
        end = time.monotonic() + PATIENCE
        while not self.run(script):
            if time.monotonic() > end:
                raise AssertionError(
                    f"waited in vain for {script}; the page says: {self.run('document.body.innerText')}"
                )

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=60)
        self._lines.close()
        os.close(self._out)
