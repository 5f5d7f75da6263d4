"""A stranger's path, by printed hints alone: from an empty folder to a verified policy of an own robot and task."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from walk import rules
from walk.session import Session, opened

LIVE = r"http://"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with opened(tmp_path, rules.DOMAIN) as walked:
        yield walked


def hints(told: str) -> list[str]:
    """The commands that an output tells to go on with: behind "Next:", and aligned below it."""
    found: list[str] = []
    inside = False
    for line in told.splitlines():
        inside = line.startswith("Next:") or (inside and line.startswith("       "))
        if inside:
            found += [text for text in re.split(r" {2,}", line.removeprefix("Next:").strip()) if text]
    return found


def follow(session: Session, command: str) -> list[str]:
    """Paste a hint as it stands; the hints that it prints."""
    if re.match("robo-rl play (?!.*--)", command):
        code, told = session.run_until(f"{command} --no-open", LIVE, stays=False)
    else:
        code, told = session.run(command)
    assert code == 0, f"{command}\n{told[-3000:]}"
    return hints(told)


@pytest.mark.slow
@pytest.mark.walk
def test_from_an_empty_folder_to_a_verified_policy_by_hints_alone(session: Session) -> None:
    session.unlink()  # the repository is not at hand
    done = ["robo-rl new my_robot"]
    printed = follow(session, done[0])
    for wanted in ("train", "export", "verify"):
        (command,) = [hint for hint in printed if hint.startswith(f"robo-rl {wanted} ")]
        printed = follow(session, command)
        done.append(command)
    assert "my_robot" in done[1]


@pytest.mark.walk
def test_every_hint_on_the_way_works(session: Session) -> None:
    session.unlink()
    done: set[str] = set()
    coming = ["robo-rl new my_robot"]
    while coming:
        command = coming.pop(0)
        if command not in done:
            done.add(command)
            print(command, flush=True)
            coming += follow(session, command)
    assert {command.split()[1] for command in done if command.startswith("robo-rl ")} >= {"train", "play", "verify"}


def test_hints_are_read_as_they_are_printed() -> None:
    told = (
        "trained\nNext:  robo-rl play a      robo-rl export a --out b.onnx\n       robo-rl report a\nother\n       text"
    )
    assert hints(told) == ["robo-rl play a", "robo-rl export a --out b.onnx", "robo-rl report a"]
