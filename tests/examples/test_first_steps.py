"""The notebook for Colab runs from top to bottom: shell lines in a shell, the rest in one Python, in order."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from walk.session import Session, opened

ROOT = Path(__file__).parents[2]
NOTEBOOK = json.loads((ROOT / "examples" / "first_steps.ipynb").read_text())
CELLS = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
SHELL = "import subprocess\ndef shell(line):\n    assert subprocess.run(line, shell=True).returncode == 0, line\n"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with opened(tmp_path, "77") as walked:
        yield walked


def program() -> str:
    """The cells as one script; what the last line of a cell is worth is printed, as a notebook does."""
    lines = [SHELL]
    for cell in CELLS:
        text = re.sub(r"^( *)!(.*)$", lambda found: f"{found[1]}shell({found[2]!r})", cell, flags=re.M)
        text = re.sub(r"^( *)%pip .*$", r"\1raise AssertionError('robo_rl is installed')", text, flags=re.M)
        last = ast.parse(text).body[-1]
        if isinstance(last, ast.Expr):
            kept = text.splitlines()
            kept[last.lineno - 1 :] = [f"print({ast.unparse(last)})"]
            text = "\n".join(kept)
        lines.append(text)
    return "\n".join(lines)


def test_the_notebook_is_without_results_and_its_links_lead_somewhere() -> None:
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    for number, cell in enumerate(NOTEBOOK["cells"]):
        assert cell["id"] == f"cell-{number}"
        assert not cell.get("outputs")
        for link in re.findall(r"\]\((.*?)\)", "".join(cell["source"])):
            assert (ROOT / "examples" / link).is_file()


@pytest.mark.walk
def test_the_notebook_runs_from_top_to_bottom(session: Session) -> None:
    package = session.folder / "IPython"
    package.mkdir()
    (package / "display.py").write_text("def HTML(text):\n    return f'{len(text)} characters of HTML'\n")
    (session.folder / "steps.py").write_text(program())
    session.environment["PYTHONPATH"] = f"{session.folder}:{session.environment['PYTHONPATH']}"
    code, told = session.run("python steps.py")
    assert code == 0, told[-3000:]
    assert re.search(r"[0-9.]+\s?% of [0-9,]+", told)  # of held-out episodes
    assert re.search(r"\d{5,} characters of HTML", told)
    assert "'rotor_speed': array(" in told
    assert "position" in told.splitlines()[-1]
