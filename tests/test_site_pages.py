"""The site's pages of robots and tasks say what cards, specs and contracts say."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.sim.robots import load_robot, robot_names
from robo_rl.sim.tasks.loading import included_tasks, load_task
from robo_rl.zoo import located, names

FILE = Path(__file__).parents[1] / "docs" / "site_pages.py"


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_pages", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", robot_names())
def test_a_robots_page_has_its_figures_actuators_and_sources(pages: ModuleType, name: str) -> None:
    page, card = pages.robot_page(name), load_robot(name)
    assert page.startswith(f"# {card.title}\n")
    assert all(f"| `{actuator.name}` |" in page for actuator in card.facts().actuators)
    assert all(f"| `{figure}` |" in page for figure in card.sources)
    numbers = [value for value in card.figures().values() if isinstance(value, float)]
    assert f"{numbers[0]:.4g}" in page


@pytest.mark.parametrize("name", sorted(included_tasks()))
def test_a_tasks_page_has_its_signals_commands_rewards_and_ranges(pages: ModuleType, name: str) -> None:
    page, spec = pages.task_page(name), load_task(name).spec
    for listed in (spec.reward, spec.ranges, [s.name for s in spec.signals], [c.name for c in spec.commands]):
        assert all(f"| `{entry}` |" in page for entry in listed)
    for line in page.splitlines():  # every table has as many cells in each row as its head
        assert not re.search(r"\bnan\b|None", line), line


def test_policies_are_on_the_pages_of_the_robot_and_the_task_that_their_files_name(pages: ModuleType) -> None:
    for name in names():
        contract = Bundle.read(located(f"zoo:{name}")).contract
        assert f"`zoo:{name}`" in pages.task_page(contract.task)
        assert f"`zoo:{name}`" in pages.robot_page(contract.robot.name)


def test_tables_have_the_same_number_of_cells_in_every_row(pages: ModuleType) -> None:
    every = [pages.robot_page(name) for name in robot_names()] + [pages.task_page(name) for name in included_tasks()]
    for page in every:
        for table in re.findall(r"(?:^\|.*\n)+", page, re.M):
            assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1, table
