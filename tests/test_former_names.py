"""Former names of modules: the same modules, with a warning, and never in the place of a user's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from robo_rl.former_names import MOVED, name_since

ROOT = Path(__file__).parents[1]


def python(code: str, folder: Path) -> str:
    """What a new process prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("former", sorted(MOVED))
def test_each_former_name_leads_to_a_file(former: str) -> None:
    place = ROOT.joinpath(*MOVED[former].split("."))
    assert place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def test_what_has_not_moved_keeps_its_name() -> None:
    assert name_since("robo_rl.contract.checks") == "robo_rl.contract.checks"
    assert name_since("numpy.linalg") == "numpy.linalg"
    assert name_since("sim.tasks.multirotor.hover") == "robo_rl.sim.tasks.multirotor.hover"
    assert name_since("deploy.emulators.px4_wire") == "robo_rl.deploy.emulate.px4.wire"


@pytest.mark.parametrize("first", ["", "import robo_rl; "], ids=["from the clone", "after robo_rl"])
def test_a_former_name_is_the_same_module_and_warns(first: str, tmp_path: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); {first}"
        "import controllers.gate_codes, sim.ranges, robo_rl.statistics; "
        "import robo_rl.controllers.gate.codes as a, robo_rl.sim.ranges as b, robo_rl.evaluate.statistics as c; "
        "print(controllers.gate_codes is a, sim.ranges is b, robo_rl.statistics is c, a.__spec__.name)"
    )
    told = python(code, tmp_path)
    assert "True True True robo_rl.controllers.gate.codes" in told
    assert "FutureWarning: controllers.gate_codes is robo_rl.controllers.gate.codes since version 0.2.0" in told


def test_a_users_own_package_of_a_former_name_comes_first(tmp_path: Path) -> None:
    (tmp_path / "sim").mkdir()
    (tmp_path / "sim" / "__init__.py").write_text("MINE = 1\n")
    (tmp_path / "sim" / "tasks.py").write_text("MINE = 2\n")
    (tmp_path / "deploy.py").write_text("MINE = 3\n")
    code = (
        "import robo_rl.sim.ranges, robo_rl.deploy.robot.timing, sim.tasks, deploy; "
        "print(sim.MINE, sim.tasks.MINE, deploy.MINE)"
    )
    assert python(code, tmp_path) == "1 2 3\n"


def test_a_name_that_never_was_is_not_found(tmp_path: Path) -> None:
    code = "import robo_rl\ntry:\n    import sim.nothing\nexcept ModuleNotFoundError as error:\n    print(error)"
    assert "No module named 'robo_rl.sim.nothing'" in python(code, tmp_path)
