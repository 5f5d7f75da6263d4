"""The list of tasks and robots for computers without a simulator is the one that a simulator gives."""

from __future__ import annotations

import json

from robo_rl.commands import catalog as included


def test_the_file_has_the_tasks_robots_and_figures_of_today() -> None:
    """``python -m robo_rl.commands.catalog`` writes it."""
    assert json.loads(included.FILE.read_text()) == included.everything()
