"""What mkdocs does to the pages of docs/ before they become a site (``make docs``)."""

from __future__ import annotations

import re
from typing import Any


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to files of the repository, which the site does not have, as the names of these files."""
    return re.sub(r"\[([^\]]*)\]\(\.\./([^)#]+)[^)]*\)", r"\1 (`\2`)", markdown)
