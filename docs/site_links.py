"""What mkdocs does to the pages of docs/ before they become a site (``make docs``)."""

from __future__ import annotations

import re
from typing import Any


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to files of the repository, which the site does not have, as the names of these files."""
    up = re.escape("../" * (1 + page.file.src_uri.count("/")))
    return re.sub(rf"\[([^\]]*)\]\({up}([^)#]+)[^)]*\)", r"\1 (`\2`)", markdown)
