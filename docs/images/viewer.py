"""Take a picture of a page of ``robo-rl play`` in headless Chromium, once it has drawn the scene.

python docs/images/viewer.py URL FILE.png
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from browser import WEBGL, Browser, find_browser

SIZE = (1180, 760)
DRAWN = "!!document.querySelector('[data-drawn]:not([data-drawn=\"0\"])')"
QUIET = "document.head.append(Object.assign(document.createElement('style'), {textContent: '%s'}))"
NOTES = ".mantine-Notifications-root { display: none }"
"""Of viser's client, which finds no graphics card."""


def main(url: str, file: str) -> None:
    """Wait for the scene and write the picture."""
    program = find_browser()
    if program is None:
        raise SystemExit("needs a browser: apt-get install chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(program, folder, WEBGL, SIZE)
        try:
            browser.ask("Page.navigate", url=url)
            browser.until(DRAWN)
            browser.run(QUIET % NOTES)
            Image.fromarray(browser.picture().astype(np.uint8)).quantize(256).save(file, optimize=True)
        finally:
            browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
