"""The commands of README.md and docs/ in the order in which a reader meets them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "docs/getting-started.md", "docs/own-robot.md", "docs/own-task.md", "docs/run-on-a-robot.md"]
PAGES += sorted({str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md")} - set(PAGES))
PAGES += ["examples/own_kind/README.md"]
"""First those that the README sends a newcomer to, in that order."""


@dataclass(frozen=True)
class Command:
    """One line that a reader can paste into a shell."""

    page: str
    line: int
    text: str
    """Without prompt and comment."""
    printed: tuple[str, ...] = ()
    """The lines below it that show what it prints."""

    @property
    def where(self) -> str:
        """As an editor opens it."""
        return f"{self.page}:{self.line}"

    @property
    def key(self) -> str:
        """As ``rules`` name it."""
        return f"{self.page.removeprefix('docs/')}: {self.text}"


def blocks(page: str) -> list[tuple[int, str, list[str]]]:
    """The fenced blocks: line of the first line, language, lines."""
    found: list[tuple[int, str, list[str]]] = []
    inside = False
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        if line.strip().startswith("```"):
            inside = not inside
            if inside:
                found.append((number + 1, line.strip().strip("`"), []))
        elif inside:
            found[-1][2].append(line)
    return found


def commands(page: str) -> list[Command]:
    """Those of the blocks of shell commands, and of the README's tables."""
    found: list[Command] = []
    for first, language, lines in blocks(page):
        for number, line in enumerate(lines, first):
            text = re.sub(r"(^|\s+)# .*$", "", line).strip()
            if language == "console" and not line.startswith("$ "):
                before = found.pop()
                found.append(Command(before.page, before.line, before.text, (*before.printed, line)))
            elif language in ("console", "sh") and text:
                found.append(Command(page, number, text.removeprefix("$ ")))
    if page in ("README.md", "docs/results.md"):
        for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
            row = re.findall(r"`(robo-rl [^`]+)`", line) if line.startswith("|") else []
            found += [Command(page, number, text) for text in row]
    return found


def sketches(page: str) -> list[tuple[int, str]]:
    """Blocks of Python that ``test_docs`` does not run, for they are marked "py"."""
    return [(first, "\n".join(lines)) for first, language, lines in blocks(page) if language == "py"]
