"""What the pages say is so: links lead somewhere, code runs, commands and JSON keys exist, tables are true."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import json
import pkgutil
import re
import shutil
import subprocess
import sys
import typing
from pathlib import Path

import pytest

from robo_rl.cli import COMMANDS, ROOMS
from robo_rl.sim.robots.multirotor import UNITS
from robo_rl.sim.tasks.loading import load_task

ROOT = Path(__file__).parent.parent
PAGES = sorted(ROOT.glob("docs/**/*.md"))
EVERYWHERE = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
FLIGHTS = {
    "episodes", "success", "success_low", "success_high", "position_error_mean_m", "position_error_p95_m",
    "tracking_error_rms_m", "duration_mean_s",
}  # fmt: skip


def blocks(page: Path, *languages: str) -> list[str]:
    """The page's fenced blocks in one of the languages."""
    return [
        text for language, text in re.findall(r"```(\w*)\n(.*?)```", page.read_text(), re.S) if language in languages
    ]


def with_python(pages: list[Path]) -> list:
    """Those with code, as parameters of a test; code that trains is slow."""
    codes = {page: "".join(blocks(page, "python")) for page in pages}
    slow = {page: [pytest.mark.slow] if "Learner" in code else [] for page, code in codes.items()}
    return [pytest.param(page, marks=slow[page]) for page, code in codes.items() if code]


def table_rows(page: Path, heading: str) -> list[list[str]]:
    """The cells of all tables under a heading, header lines left out."""
    (section,) = re.findall(rf"^##+ {re.escape(heading)}\n(.*?)(?=^##+ |\Z)", page.read_text(), re.S | re.M)
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")
    ]
    return [row for row in rows if row[0].startswith("`")]


@pytest.mark.parametrize("page", EVERYWHERE, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text())
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("page", with_python([*PAGES, ROOT / "README.md"]), ids=lambda page: page.name)
def test_the_pages_code_runs(page, bundle_file, tmp_path, monkeypatch):
    """Blocks marked "python", in their order; a sketch that can't run by itself is marked "py"."""
    shutil.copy(bundle_file, tmp_path / "policy.onnx")
    monkeypatch.chdir(tmp_path)
    namespace: dict = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), namespace)
    assert namespace


def options(command: str) -> set[str]:
    """Every option that a command understands."""
    found = {"--help"}
    main = importlib.import_module(f"robo_rl.commands.{ROOMS[command]}.{command.replace('-', '_')}").main
    for name, kind in typing.get_type_hints(main).items():
        if dataclasses.is_dataclass(kind):
            found |= {f"--{name}.{field.name.replace('_', '-')}" for field in dataclasses.fields(kind)}
        elif name != "return":
            found.add(f"--{name.replace('_', '-')}")
    return found


@pytest.mark.parametrize("page", EVERYWHERE, ids=lambda page: page.name)
def test_every_command_that_is_shown_exists_with_its_options(page):
    shown = [line for block in blocks(page, "console", "sh") for line in block.splitlines() if "robo-rl " in line]
    shown += re.findall(r"`(robo-rl [a-z][^`]*)`", page.read_text())
    for line in shown:
        found = re.search(r"robo-rl ([a-z-]+)([^#]*)", line)
        if found is None or found[1] == "&&" or "git clone" in line or "pip install" in line:
            continue
        assert found[1] in COMMANDS, line
        assert set(re.findall(r"--[\w.-]+", found[2])) <= options(found[1]), line


def run(command: str, capsys: pytest.CaptureFixture[str], **arguments: object) -> dict:
    """The JSON object that a command prints."""
    importlib.import_module(f"robo_rl.commands.{ROOMS[command]}.{command}").main(**arguments, json=True)
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def documented(command: str) -> set[str]:
    """The keys that docs/commands.md lists for a command, in the tables of keys."""
    rows = table_rows(ROOT / "docs/commands.md", command)
    keys = {key for row in rows for key in re.findall(r"`(\w+)`", row[0])}
    return keys - FLIGHTS


def test_commands_give_the_documented_keys(bundle_file, trained_run, tmp_path, capsys):
    few = {"episodes": 20}
    given = {
        "tasks": run("tasks", capsys),
        "train": run("train", capsys, task="quadrotor-hover", runs=tmp_path, apg=_short(), **few),
        "evaluate": run("evaluate", capsys, target=str(bundle_file), **few),
        "export": run("export", capsys, run=trained_run, out=tmp_path / "policy.onnx"),
        "inspect": run("inspect", capsys, file=bundle_file),
        "verify": run("verify", capsys, file=bundle_file, **few),
        "new": run("new", capsys, folder=tmp_path / "my_robot"),
        "zoo": run("zoo", capsys),
        "robots": run("robots", capsys, robots=["crazyflie"]),
        "runs": run("runs", capsys, folder=trained_run),
        "keys": run("keys", capsys, what="new", file=tmp_path / "key", name="alice"),
        "sign": run("sign", capsys, file=bundle_file, key=tmp_path / "key"),
    }
    with_flights = {"train", "evaluate", "verify"}
    optional = {"evaluate": {"sweep", "comparison", "crossings", "decision_rates"}}
    for command, result in given.items():
        flights = FLIGHTS if command in with_flights else set()
        assert set(result) == documented(command) - optional.get(command, set()) | flights, command


def _short() -> object:
    from robo_rl.learn.config import ApgConfig

    return ApgConfig(updates=2, environments=16, horizon=8)


def test_the_flights_keys_are_documented():
    text = (ROOT / "docs/commands.md").read_text()
    assert {key for key in FLIGHTS if f"`{key}`" in text} == FLIGHTS


def test_every_command_has_its_section():
    headings = re.findall(r"^## ([\w-]+)$", (ROOT / "docs/commands.md").read_text(), re.M)
    assert sorted(headings) == sorted(COMMANDS)


@pytest.mark.parametrize("task", ["quadrotor-hover", "quadrotor-track"])
def test_the_table_of_ranges_is_the_tasks(task):
    rows = table_rows(ROOT / "docs/tasks.md", "Randomization")
    told = {row[0].strip("`"): (float(row[1]), float(row[2])) for row in rows}
    ranges = load_task(task).spec.ranges
    assert {name for name in told if not name.startswith("goal/")} == {n for n in ranges if not n.startswith("goal/")}
    for name, drawn in ranges.items():
        assert told[name] == pytest.approx(drawn.end, rel=1e-3), name


def test_the_table_of_signals_is_the_tasks():
    rows = table_rows(ROOT / "docs/tasks.md", "Signals")
    told = {row[0].strip("`"): float(row[2] or 0) for row in rows}
    assert told == {s.name: (s.noise or (0.0,))[0] for s in load_task("quadrotor-hover").spec.signals}


def test_the_table_of_a_cards_fields_is_the_readers():
    rows = table_rows(ROOT / "docs/own-robot.md", "Fields")
    assert {row[0].strip("`"): row[1] for row in rows if row[1]} == UNITS


def test_the_table_of_terms_is_the_vocabulary_of_adopted_policies():
    from robo_rl.adapters.foreign.terms import TERMS

    rows = table_rows(ROOT / "docs/bring-your-policy.md", "The description")
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row[0])} == set(TERMS)


def test_the_contracts_fields_are_all_specified():
    from robo_rl import contract

    text = (ROOT / "docs/bundle.md").read_text()
    kinds = [
        kind for _, kind in inspect.getmembers(contract, dataclasses.is_dataclass) if not kind.__name__.startswith("_")
    ]
    names = {field.name for kind in kinds for field in dataclasses.fields(kind) if field.init}
    assert {name for name in names if f"`{name}`" not in text} == set()


def test_the_results_are_those_that_were_measured_last(monkeypatch):
    """``python benchmarks/results_page.py`` writes them."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    page = (ROOT / "docs/results.md").read_text()
    assert importlib.import_module("results_page").with_figures(page) == page


def test_the_site_lists_every_page_once():
    listed = re.findall(r"^ *- ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)
    assert sorted(listed) == sorted(str(page.relative_to(ROOT / "docs")) for page in PAGES)


def test_every_name_of_the_api_page_exists():
    named = re.findall(r"^::: ([\w.]+)$", (ROOT / "docs/api.md").read_text(), re.M)
    assert named
    without = () if importlib.util.find_spec("stable_baselines3") else ("robo_rl.adapters.sb3_env",)
    for name in named:
        assert name.startswith(without) or pkgutil.resolve_name(name) is not None


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path):
    """Warnings are errors there: links, anchors, names of the API."""
    pytest.importorskip("mkdocs", reason="pip install 'robo-rl[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Policy" in (tmp_path / "site" / "api" / "index.html").read_text()
