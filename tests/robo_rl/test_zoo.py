"""The zoo: names stand for files, and every policy has what is told of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from deploy.bundle import Bundle
from deploy.verify import verify
from robo_rl import zoo

VERSION1 = Path(__file__).parents[1] / "data" / "version1"


def test_a_name_of_the_zoo_stands_for_its_file_and_any_other_path_for_itself() -> None:
    assert zoo.located("some/policy.onnx") == Path("some/policy.onnx")
    for name in zoo.names():
        assert zoo.located(f"zoo:{name}").is_file()
        told = json.loads((zoo.FOLDER / f"{name}.json").read_text())
        assert {"command", "evaluation"} < told.keys()
        assert Bundle.read(zoo.located(f"zoo:{name}")).digest == told["digest"]


@pytest.mark.parametrize("name", zoo.names())
def test_every_policy_of_the_zoo_has_the_report_of_the_same_graph(name: str) -> None:
    """The reports are of the files of version 1, whose graphs and golden vectors the zoo still has."""
    told = json.loads((zoo.FOLDER / f"{name}.json").read_text())
    page = (zoo.FOLDER / f"{name}.html").read_text()
    assert f"<code>{told['reported_digest']}</code>" in page
    assert Bundle.read(VERSION1 / f"{name}.onnx").digest == told["reported_digest"]
    figures = re.search(r'id="figures">(.*?)</script>', page, re.DOTALL)
    assert figures is not None
    shown, evaluated = json.loads(figures[1]), told["evaluation"]
    assert shown["target"] == f"zoo:{name}"
    assert evaluated["success_low"] <= shown["success"] <= evaluated["success_high"]
    assert "<video" in page


@pytest.mark.slow
@pytest.mark.parametrize("name", zoo.names())
def test_every_policy_of_the_zoo_does_what_its_task_expects(name: str) -> None:
    found = verify(zoo.located(f"zoo:{name}"), episodes=60)
    assert found.passed, found.failures


def test_a_policy_that_the_zoo_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no policy 'dodo' in the zoo; it has"):
        zoo.located("zoo:dodo")
