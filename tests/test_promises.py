"""What pages promise is there: metrics, extras, files of a run."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from pathlib import Path

import pytest

from robo_rl import zoo
from robo_rl.cli import main
from robo_rl.commands.looking import evaluate
from robo_rl.commands.training import train

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("docs/*.md")), ROOT / "README.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_extras_that_a_page_names_are_offered(page: Path) -> None:
    offered = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"(?:robo-rl|'\.)\[([\w,-]+)\]", page.read_text())
    assert {extra for one in named for extra in one.split(",")} <= set(offered)


def test_the_page_of_installation_names_the_extras_of_drivers_and_tools() -> None:
    text = (ROOT / "docs" / "getting-started.md").read_text()
    offered = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert [extra for extra in offered if extra not in ("bench", "dev") and f"`{extra}`" not in text
            and f"[{extra}]" not in text] == []  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_installs_nothing_from_pypi_that_is_not_there(page: Path) -> None:
    assert re.findall(r"pip install '?robo-rl'?(?:\s|`|$)", page.read_text(), re.M) == []


def measured_rows() -> list[tuple[str, str]]:
    """Rows of the tables of results, and the command of each that evaluates a policy."""
    pages = [ROOT / "README.md", ROOT / "docs" / "results.md"]
    rows = [line for page in pages for line in page.read_text().splitlines() if line.startswith("|")]
    return [(row, line) for row in rows for line in re.findall(r"`robo-rl ((?:evaluate|train) [^`]+)`", row)]


def test_a_row_of_results_has_as_many_episodes_as_its_command_runs() -> None:
    defaults = {
        name: inspect.signature(command.main).parameters["episodes"].default
        for name, command in (("evaluate", evaluate), ("train", train))
    }
    for row, line in measured_rows():
        given = re.search(r"--episodes (\d+)", line)
        count = int(given[1]) if given else defaults[line.split()[0]]
        count //= 20 if "--ground" in line else 1  # of each height of each kind of terrain
        assert count in {int(number.replace(",", "")) for number in re.findall(r"of ([\d,]+)", row)}, line


def test_a_row_of_results_has_the_success_that_the_zoo_tells_of_its_policies() -> None:
    told = 0
    for row, line in measured_rows():
        for name in re.findall(r"`(?:robo-rl evaluate )?zoo:([\w-]+)`", row) if "--" not in line else []:
            success = json.loads((zoo.FOLDER / f"{name}.json").read_text())["evaluation"]["success"]
            assert f"{success:.1%}".replace("%", " %") in row or (success == 1.0 and "all of" in row), name
            told += 1
    assert told >= 8


def documented_metrics() -> list[str]:
    """Names and patterns of the table of metrics, "…" and capitals for what tasks name."""
    text = (ROOT / "docs" / "algorithms.md").read_text()
    (section,) = re.findall(r"^## Metrics\n(.*?)^## ", text, re.S | re.M)
    rows = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| `")]
    names = []
    for cell, about in rows:
        if not about.strip().startswith("sac"):
            names += re.findall(r"`([^`]+)`", cell + (about if "`" in about else ""))
    return [name for name in names if name[0].islower() and name != "success"]


def test_every_metric_that_is_documented_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--runs", str(tmp_path), "--episodes", "0", "--algorithm", "ppo", "--ppo.updates", "6")
    with pytest.raises(SystemExit) as done:
        main(["train", "quadrotor-hover", *options, "--ppo.environments", "16", "--ppo.horizon", "64", "--json"])
    assert done.value.code == 0
    run = Path(json.loads(capsys.readouterr().out.splitlines()[-1])["run"])
    written = set().union(*(json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()))
    told = {
        "TERM": "position|near|alive",
        "MEASURE": r"\w+",
        "NN": r"\d\d",
        "CAUSE": ".+",
        "RANGE": ".+",
        "COMMAND": r"\w+",
        "…": ".+",
    }
    missing = []
    for name in documented_metrics():
        pattern = re.escape(name)
        for word, meant in told.items():
            pattern = pattern.replace(re.escape(word), f"(?:{meant})")
        shown = name.startswith("_p") or name == "episode/success"  # the last of a row of quantiles; tasks with success
        if not shown and not any(re.fullmatch(pattern, one) for one in written):
            missing.append(name)
    assert missing == []
    known = {name.split("/")[0] for name in documented_metrics()} | {"update", "environment_steps", "alive"}
    assert {name.split("/")[0] for name in written} <= known | {"learning_rate"}


def test_the_messages_of_the_page_of_symptoms_are_said() -> None:
    """Each quoted message of its tables, but for values, is in the source, where texts of several lines are joined."""
    folders = ("robo_rl", "deploy", "sim", "controllers", "ros2_ws/src")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.*") if path.suffix in (".py", ".h", ".c")]
    source = re.sub(r'"\s*\n\s*f?"', "", "".join(path.read_text() for path in files))
    rows = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs" / "troubleshooting.md").read_text(), re.M)
    quoted = [
        message
        for row in rows
        for message in re.findall(r"`([^`]+)`", row)
        if " " in message and "robo-rl " not in message
    ]
    parts = [part.strip(" ',.") for message in quoted for part in re.split(r"…|'[^']*'|\d+", message)]
    assert [part for part in parts if len(part) > 6 and part not in source] == []
    assert len(quoted) > 5
