"""The zoo: names stand for files, and every policy has what is told of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from robo_rl import zoo
from robo_rl.deploy.build.verify import renewed, task_of, verify
from robo_rl.deploy.robot.bundle import Bundle
from tests.suite import representatives

VERSION1 = Path(__file__).parents[1] / "data" / "version1"
OFTEN = ("quadrotor-hover", "arm-place", "car-race")
"""Verified by ``make test``, and a walk by ``tests/deploy/test_version1.py``; the others by ``make release``, as
``test_navigation.py`` has a base's graph in C."""


def test_a_name_of_the_zoo_stands_for_its_file_and_any_other_path_for_itself() -> None:
    assert zoo.located("some/policy.onnx") == Path("some/policy.onnx")
    for name in zoo.names():
        assert zoo.located(f"zoo:{name}").is_file()
        told = json.loads((zoo.FOLDER / f"{name}.json").read_text())
        assert {"command", "evaluation"} < told.keys()
        assert Bundle.read(zoo.located(f"zoo:{name}")).digest == told["digest"]


@pytest.mark.parametrize("name", zoo.names())
def test_every_policy_of_the_zoo_has_the_contract_that_its_task_has_today(name: str) -> None:
    contract = Bundle.read(zoo.located(f"zoo:{name}")).contract
    assert contract == renewed(contract, task_of(contract)), "write them again: python -m robo_rl.commands.renew_zoo"


def test_renewing_writes_what_has_another_contract_and_notes_its_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from robo_rl.commands import renew_zoo as renew

    old, new = "go2-flat", "go2-recover"
    shutil.copy(VERSION1 / f"{old}.onnx", tmp_path)
    shutil.copy(zoo.located(f"zoo:{new}"), tmp_path)
    for name in (old, new):
        (tmp_path / f"{name}.json").write_text('{"digest": "", "command": "robo-rl train"}')
    for module in (zoo, renew):
        monkeypatch.setattr(module, "FOLDER", tmp_path)
    renew.main()
    digest = Bundle.read(tmp_path / f"{old}.onnx").digest
    assert digest == Bundle.read(Path(zoo.__file__).parent / f"{old}.onnx").digest
    assert json.loads((tmp_path / f"{old}.json").read_text()) == {"digest": digest, "command": "robo-rl train"}
    assert capsys.readouterr().out == f"{tmp_path / f'{old}.onnx'}: {digest}\n"
    renew.main()
    assert capsys.readouterr().out == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", representatives(zoo.names(), OFTEN))
def test_every_policy_of_the_zoo_does_what_its_task_expects(name: str) -> None:
    found = verify(zoo.located(f"zoo:{name}"), episodes=60)
    assert found.passed, found.failures
    assert found.graph.same
    assert found.search.torch_error is not None


def test_a_policy_that_the_zoo_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="'dodo' is not one of the zoo's policies"):
        zoo.located("zoo:dodo")
