"""Names become members of C structures, tensors, topics and files: only plain ones are taken, wherever they stand."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_rl.contract import Contract, ContractError
from tests.robo_rl.contract.generated import data_of, full_contract

DATA = data_of(full_contract())
IDENTIFIERS = [
    ("signals", 7, "name"), ("commands", 3, "name"), ("state", 0, "name"), ("robot", "kind"), ("network", "activation"),
    ("network", "encoders", 1, "group"),
]  # fmt: skip
"""A letter, then at most 63 letters, digits and underscores."""
NAMES = [("task",), ("robot", "name")]
"""1 to 64 letters, digits, and _ . - after the first; they become parts of names of files."""
LABELS = [
    ("signals", 0, "elements", 1), ("commands", 4, "elements", 0),
    ("robot", "actuators", 1, "name"), ("commands", 5, "law", "tool"), ("provenance", "algorithm"),
    ("provenance", "source"),
]  # fmt: skip
"""1 to 64 letters, digits, and _ . : - after the first."""
PHRASES = [("signals", 0, "frame"), ("commands", 3, "frame")]
"""1 to 128 letters, digits, spaces and _ . , : ; ( ) / + -"""

HOSTILE = [
    "", " ", "*/", "a*/b", "/* a", "../a", "..", "/a", "~a", "a\\b", '"', "a'b", "a`b`", "$a", "$(a)", "a;b", "a|b",
    "a&b", "a\nb", "a\r", "a\t", "a\0b", "\x1b[0m", "\u202ea", "ﬁ", "é", "ａ", "a\u0301", "٣", "a b\u00a0", " a",
    "a ", "a%s", "{a}", "<a>", "#a", "a=b", "-a", ".a", "a" * 129, "a" * 10**6, "\ud800", "None\u2028", "a,b\\", "a[0]",
]  # fmt: skip
"""What no field may be, whatever it names; what phrases may hold is left out for them."""


def renamed(path: tuple[Any, ...], name: Any) -> str:
    data = copy.deepcopy(DATA)
    place: Any = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = name
    return json.dumps(data)


@pytest.mark.parametrize("path", [*IDENTIFIERS, *NAMES, *LABELS], ids=lambda path: ".".join(map(str, path)))
def test_no_hostile_name_is_taken(path: tuple[Any, ...]) -> None:
    for name in HOSTILE:
        if path == ("provenance", "source") and not name:
            continue  # of a task that comes with robo-rl
        with pytest.raises(ContractError) as refusal:
            Contract.from_json(renamed(path, name))
        assert "; expected " in str(refusal.value), repr(name[:50])
        assert len(str(refusal.value)) < 1000
        assert str(refusal.value).isprintable()


@pytest.mark.parametrize("path", PHRASES, ids=lambda path: ".".join(map(str, path)))
def test_no_hostile_phrase_is_taken(path: tuple[Any, ...]) -> None:
    for name in set(HOSTILE) - {"a;b"}:
        with pytest.raises(ContractError, match=r"frame is .*; expected 1 to 128 letters, digits, spaces and "):
            Contract.from_json(renamed(path, name))


@pytest.mark.parametrize("path", IDENTIFIERS, ids=lambda path: ".".join(map(str, path)))
def test_identifiers_are_letters_digits_and_underscores_after_a_letter(path: tuple[Any, ...]) -> None:
    for name in ("a", "Z", "a" * 64, "a_1", "A9_"):
        assert Contract.from_json(renamed(path, name)).digest
    for name in ("9a", "_a", "a-b", "a.b", "a:b", "a" * 65):
        with pytest.raises(ContractError, match="; expected a letter, then at most 63 letters, digits and underscores"):
            Contract.from_json(renamed(path, name))


@pytest.mark.parametrize("path", LABELS, ids=lambda path: ".".join(map(str, path)))
def test_labels_may_have_dots_colons_and_hyphens_too(path: tuple[Any, ...]) -> None:
    for name in ("a", "9", "_a", "FL-hip.joint:2", "a" * 64):
        assert Contract.from_json(renamed(path, name)).digest


@pytest.mark.parametrize("path", NAMES, ids=lambda path: ".".join(map(str, path)))
def test_names_of_tasks_and_robots_are_no_files(path: tuple[Any, ...]) -> None:
    for name in ("a", "9", "_a", "go2-flat", "v1.2-b_c", "a" * 64, "a.pyc", "py", "toml"):
        assert Contract.from_json(renamed(path, name)).digest
    for name in ("x.py:Task", "x.py", "x.PY", "card.toml", "a:b", "a.", "a" * 65):
        with pytest.raises(
            ContractError, match=r"expected 1 to 64 letters, digits, and _ . - after the first; no file"
        ):
            Contract.from_json(renamed(path, name))


ALLOWED = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"


@given(st.text(min_size=1, max_size=70))
def test_any_text_is_a_signal_s_name_only_if_it_is_an_identifier(name: str) -> None:
    good = all(c in ALLOWED for c in name) and name[0].isalpha() and len(name) <= 64
    good = good and name not in ("state", "next_state")
    text = renamed(("signals", 7, "name"), name)
    if good:
        assert Contract.from_json(text).signals[7].name == name
    else:
        with pytest.raises(ContractError, match="; expected "):
            Contract.from_json(text)
