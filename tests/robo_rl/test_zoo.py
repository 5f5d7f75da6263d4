"""The zoo: names stand for files, and every policy has what is told of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from deploy.bundle import Bundle
from deploy.verify import verify
from robo_rl import zoo


def test_a_name_of_the_zoo_stands_for_its_file_and_any_other_path_for_itself() -> None:
    assert zoo.located("some/policy.onnx") == Path("some/policy.onnx")
    for name in zoo.names():
        assert zoo.located(f"zoo:{name}").is_file()
        told = json.loads((zoo.FOLDER / f"{name}.json").read_text())
        assert {"command", "evaluation"} < told.keys()
        assert Bundle.read(zoo.located(f"zoo:{name}")).digest == told["digest"]


@pytest.mark.parametrize("name", zoo.names())
def test_every_policy_of_the_zoo_has_the_report_of_this_very_file(name: str) -> None:
    told = json.loads((zoo.FOLDER / f"{name}.json").read_text())
    page = (zoo.FOLDER / f"{name}.html").read_text()
    assert f"<code>{told['digest']}</code>" in page
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
