"""The walk: every command of README.md and docs/ is run in order, and does what the text says (``make walk``).

Each page is walked in a folder of its own. ``rules.py`` says what is cut short, replaced, or not run, and why.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from walk import rules
from walk.pages import PAGES, ROOT, Command, blocks, commands, sketches
from walk.session import Session, opened

from robo_rl.sim.tasks.loading import task_class, task_names

EVERY = [command for page in PAGES for command in commands(page)]


def test_every_rule_is_for_a_command_of_the_pages() -> None:
    used = {id(rules.rule_of(command)) for command in EVERY}
    assert [rule.pattern for rule in rules.RULES if id(rule) not in used] == []
    assert set(rules.BEFORE) <= set(PAGES)


def test_what_is_added_to_a_training_is_for_its_algorithm() -> None:
    for command in EVERY:
        found = re.match(r"robo-rl train ([a-z][\w-]+)", command.text)
        rule = rules.rule_of(command)
        if found and found[1] in task_names() and not rule.skip:
            given = re.search(r"--algorithm (\w+)", command.text)
            algorithm = given[1] if given else task_class(found[1]).algorithms[0]
            assert set(re.findall(r"--(apg|bc|ppo|sac)\.", f"{command.text} {rule.add}")) <= {algorithm}, command.where


def test_every_page_with_commands_is_walked() -> None:
    pages = {str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md")} | {"README.md"}
    assert pages <= set(PAGES)


def test_what_is_not_run_has_a_reason() -> None:
    left_out = [command for command in EVERY if rules.rule_of(command).skip]
    assert all(rules.rule_of(command).skip.strip() for command in left_out)
    assert 3 * sum(rules.rule_of(command).skip != rules.SETUP for command in left_out) < len(EVERY)
    for page in PAGES:
        for line, text in sketches(page):
            reason = any(re.search(pattern, text) for pattern in rules.SKETCHES)
            assert reason, f"{page}:{line}: not run by test_docs; say why in rules.SKETCHES, or mark it 'python'"


def verb(command: Command) -> list[str]:
    """What the command is about: of "robo-rl ros teleop --source joy" ros and teleop."""
    words = [re.sub(r".*/", "", word) for word in command.text.split() if "=" not in word]
    return words[1:3] if words[:2] in (["robo-rl", "ros"], ["robo-rl", "link"]) else words[words[0] == "robo-rl" :][:1]


def test_what_a_reason_names_has_the_command() -> None:
    """A page runs it, and in a test's files its words are written; of a folder in one of them."""
    for command in EVERY:
        for place in re.findall(r"\b(?:tests|docs|benchmarks|examples)/[\w./-]*\w", rules.rule_of(command).skip):
            assert (ROOT / place).exists(), f"{command.where}: {place}"
            if place.startswith("docs/"):
                run = [one for one in commands(place) if not rules.rule_of(one).skip]
                assert any(verb(one)[0] == verb(command)[0] for one in run), f"{command.where}: {place}"
            elif (ROOT / place).is_file() and command.text.startswith("robo-rl "):
                text = (ROOT / place).read_text()
                assert re.search(re.sub("[-_]", "[-_]", verb(command)[-1]), text), f"{command.where}: {place}"


@pytest.fixture
def session(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Session]:
    with opened(tmp_path, rules.DOMAIN) as walked:
        yield walked


@pytest.mark.walk
@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)])
def test_the_commands_of_the_page_do_what_it_says(page: str, session: Session) -> None:
    for name, (source, language, number) in rules.FILES.get(page, {}).items():
        written = [lines for _, kind, lines in blocks(source) if kind == language][number]
        (session.folder / name).write_text("\n".join(written) + "\n")
    for line in rules.BEFORE.get(page, ()):
        code, told = session.run(line)
        assert code == 0, f"before {page}: {line}\n{told}"
    wrong = []
    for command in commands(page):
        start = time.monotonic()
        found = walk(command, session)
        print(f"{time.monotonic() - start:6.1f} s  {command.where}: {command.text}", flush=True)
        if found:
            print(found, flush=True)
            wrong.append(f"{command.where}: {command.text}: {found}")
    assert not wrong, "\n\n".join(wrong)


def walk(command: Command, session: Session) -> str:
    """Run it by its rule; what is not as the page says, or nothing."""
    rule = rules.rule_of(command)
    if rule.skip:
        return ""
    if rule.before:
        code, told = session.run(rule.before)
        if code != 0:
            return f"exit code {code} of '{rule.before}', before it:\n{told[-3000:]}"
    text = command.text
    for old, new in (rule.replace,) if rule.replace[0] else ():
        text = text.replace(old, new)
    if rule.take[0]:
        text = text.replace(rule.take[0], re.findall(rule.take[1], session.told)[-1])
    text = f"{text} {rule.add}".strip()
    until = rule.until or "".join(_pattern(line) for line in command.printed[:1])
    code, told = session.run_until(text, until, rule.stays) if until else session.run(text)
    session.told += told
    if code != (1 if rule.fails else 0):
        return f"exit code {code} of '{text}':\n{told[-3000:]}"
    for pattern, low, high in rule.says:
        number = re.search(pattern, told)
        if number is None or not low <= float(number[1].replace(",", "")) <= high:
            return f"expected '{pattern}' from {low} to {high}:\n{told[-3000:]}"
    missing = [line for line in command.printed if not re.search(_pattern(line), told)]
    return f"expected the lines {missing}:\n{told[-3000:]}" if missing else ""


def _pattern(line: str) -> str:
    """A line of output, whatever its numbers."""
    return re.sub(r"\d+", r"\\d+", re.escape(line.strip()))
