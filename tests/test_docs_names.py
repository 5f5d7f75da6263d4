"""Names in the pages exist: headings, make's targets, tasks, robots, drivers, policies; commands are complete."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import re
import shlex
import typing
from pathlib import Path

import pytest

from robo_rl.cli import COMMANDS, ROOMS
from robo_rl.commands.running.emulate import ROBOTS
from robo_rl.learn import config
from robo_rl.sim.robots import robot_names
from robo_rl.sim.tasks.loading import task_class, task_names
from robo_rl.zoo import names

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("docs/**/*.md")), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))]
DRIVERS = {*typing.get_args(ROBOTS), "simulated"}
OWN = re.compile(r".*[./:…]|[A-Z]+$|\./|my_|inside$|Ant-v5$")
"""What a reader has made or replaces, such as a file, CARD or inside; and gymnasium's."""
FOLDERS = "benchmarks|controllers|deploy|docker|docs|examples|plugins|robo_rl|ros2_ws|sim|tests"
OTHERS = {
    "deploy/deploy_mujoco/configs", "deploy/pre_train/g1/motion.pt", "examples/main.c", "examples/Fly/Fly.ino",
    "examples/Spin/Spin.ino", "ros2_ws/install/setup.sh",
}  # fmt: skip
"""Files of legged_gym's deployment, of the packages that robo-rl firmware writes, and what colcon builds."""


@functools.cache
def text_of(page: Path) -> str:
    return page.read_text()


def commands(page: Path) -> tuple[list[str], list[str]]:
    """Those that a reader pastes, of blocks and of tables of results, and those that a sentence or another table names.

    Without comments and what follows a pipe, ; or &&.
    """
    text = text_of(page)
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M) + re.findall(r"^(?:\$ |    )(robo-rl .*)", text, re.M)
    pasted = [line for block in blocks for line in block.splitlines() if "robo-rl " in line]
    named = re.findall(r"`(robo-rl\s[^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M))
    if page.name in ("README.md", "results.md"):
        pasted += [line for row in re.findall(r"^\|.*", text, re.M) for line in re.findall(r"`(robo-rl [^`]+)`", row)]
    return _plain(pasted), _plain(named)


def _plain(lines: list[str]) -> list[str]:
    found = [re.search(r"robo-rl\s([a-z-]+\s?[^#]*)", line) for line in lines]
    each = [re.split(r"&&|;|\||\)| > ", one[1])[0].strip() for one in found if one]
    return [one for one in each if one.split()[0] in COMMANDS and "…" not in one]


@functools.cache
def signature(command: str) -> dict[str, tuple[typing.Any, bool, bool]]:
    """Of each parameter its type, whether it is a word without an option, and whether it has a default."""
    main = importlib.import_module(f"robo_rl.commands.{ROOMS[command]}.{command.replace('-', '_')}").main
    hints = typing.get_type_hints(main, include_extras=True)
    return {
        name: (getattr(hints[name], "__origin__", hints[name]) if "Positional" in str(hints[name]) else hints[name],
               "Positional" in str(hints[name]), one.default is not inspect.Parameter.empty)
        for name, one in inspect.signature(main).parameters.items()
    }  # fmt: skip


def _many(kind: object) -> bool:
    return any(name in str(kind) for name in ("tuple", "list", "dict"))


def without_options(command: str, words: list[str]) -> list[str]:
    """The words that are neither options nor their values."""
    found, left = [], 0.0
    for word in words:
        if word.startswith("--"):
            kind = signature(command).get(word[2:].replace("-", "_"), (str, False, True))[0]
            left = (
                0
                if kind is bool or "=" in word or word == "--help"
                else float("inf")
                if "." in word or _many(kind)
                else 1
            )
        elif left > 0:
            left -= 1
        else:
            found.append(word)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_have_the_words_that_they_need_and_no_others(page: Path) -> None:
    pasted, named = commands(page)
    for line in (*pasted, *named):
        command, *words = shlex.split(line)
        kinds = [kind for kind, is_word, _ in signature(command).values() if is_word]
        needed = sum(is_word and not has_default for _, is_word, has_default in signature(command).values())
        given = without_options(command, words)
        assert line not in pasted or "--help" in words or needed <= len(given), line
        assert len(given) <= len(kinds) or any(map(_many, kinds)), line
        for word, kind in zip(given, kinds, strict=False):
            assert typing.get_origin(kind) is not typing.Literal or word in typing.get_args(kind), line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tasks_robots_drivers_and_policies_exist(page: Path) -> None:
    text = text_of(page)
    tasks = re.findall(r"robo-rl (?:train|demonstrate|reset-states) ([\w./:-]+)|--task[= ]([\w./:-]+)", text)
    told = {
        "task": (
            {name for pair in tasks for name in pair if name and name[0] != "-"},
            {*task_names(), "quadrotor-circle"},
        ),
        "robot": (set(re.findall(r"--robot ([\w./:-]+)", text)), {*robot_names(), "g1"}),
        "driver": (set(re.findall(r"--driver ([\w./:-]+)", text)), DRIVERS),
        "policy": (set(re.findall(r"\bzoo:([a-z][\w-]+)", text)), set(names())),
    }
    for kind, (named, known) in told.items():
        assert {name for name in named if not OWN.match(name)} <= known, kind


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_targets_of_make_exist(page: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = re.findall(r"`make ([a-z][\w-]*)`|^(?:\$ )?make ([a-z][\w-]*)", text_of(page), re.M)
    assert {name for pair in named for name in pair if name} <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_of_the_repository_exist(page: Path) -> None:
    """Those that a sentence, a table or a command names, such as benchmarks/motors.py, from the repository's root."""
    named = {
        name.rstrip("/.") for name in re.findall(rf"(?<![\w./~$-])((?:{FOLDERS})/[\w./-]++)(?![*])", text_of(page))
    }
    assert {name for name in named - OTHERS if not (ROOT / name).exists()} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_of_algorithms_exist_wherever_they_are_named(page: Path) -> None:
    known = {name: getattr(config, f"{name.capitalize()}Config") for name in ("apg", "bc", "ppo", "sac")}
    fields = {name: {field.name for field in dataclasses.fields(kind)} for name, kind in known.items()}
    for algorithm, setting in re.findall(r"--(apg|bc|ppo|sac)\.([\w-]+)", text_of(page)):
        assert setting.replace("-", "_") in fields[algorithm], f"--{algorithm}.{setting}"


def test_the_page_on_gpus_names_the_tasks_that_can_be_on_one() -> None:
    rows = re.findall(r"^\| ([^|]*)\|[^|]*\| yes \|", text_of(ROOT / "docs/gpu.md"), re.M)
    named = set(re.findall(r"[a-z0-9-]+", " ".join(rows)))
    assert named & set(task_names()) == {name for name in task_names() if "cuda" in task_class(name).devices}


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/robots/*.md")), ids=lambda page: page.name)
def test_a_robots_page_says_where_the_file_comes_from_that_it_runs(page: Path) -> None:
    """Each policy file of ``robo-rl run`` was exported above it, is the zoo's, or the text names it."""
    made: set[str] = set()
    for line in commands(page)[0]:
        command, *words = shlex.split(line)
        if command == "export":
            made |= {word for pair in re.findall(r"--out (\S+)|export (runs/\S+)", line) for word in pair}
        file = next((word for word in words if word.endswith(".onnx")), "zoo:")
        known = file.startswith("zoo:") or file in made or file.removesuffix("/policy.onnx") in made
        assert command != "run" or known or f"`{file}`" in text_of(page), line


@functools.cache
def anchors(page: Path) -> frozenset[str]:
    """Of a page's headings, as the site and GitHub name them."""
    plain = re.sub(r"^```.*?^```", "", text_of(page), flags=re.S | re.M)
    titles = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title) for title in re.findall(r"^#+ (.*)$", plain, re.M)]
    return frozenset(re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", title.lower().strip())) for title in titles)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_a_heading_lead_to_it(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", text_of(page))
    places = [((page.parent / path) if path else page, anchor) for path, anchor in links if "://" not in path]
    assert [f"{place.name}#{anchor}" for place, anchor in places if anchor not in anchors(place)] == []
