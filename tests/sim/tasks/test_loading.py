"""Tasks by name, from a user's own file, and from an installed package: what is found, and what is told if not."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from robo_rl.commands.training.tasks import main
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.tasks.loading import imported_later, load_task, task_class, task_names
from robo_rl.sim.tasks.multirotor.quadrotor import QuadrotorHover

HOVER = """
from robo_rl.sim.tasks.multirotor.quadrotor import QuadrotorHover

class {name}(QuadrotorHover):
    name = "my-hover"
    near = {near}
"""


@pytest.fixture(autouse=True)
def as_before(tmp_path: Path) -> Iterator[None]:
    """What a test brings in is not there for the next one; compiled modules of others can't be imported twice."""
    path, modules = list(sys.path), dict(sys.modules)
    yield
    sys.path[:] = path
    for name in sys.modules.keys() - modules.keys():
        module = sys.modules[name]
        places = [getattr(module, "__file__", None) or "", *getattr(module, "__path__", ())]
        if any(place.startswith(str(tmp_path)) for place in places):
            del sys.modules[name]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


def hover(path: Path, near: str = "0.5", name: str = "Mine") -> str:
    """A file with a task; its name for ``load_task``."""
    return f"{write(path, HOVER.format(name=name, near=near))}:{name}"


def test_every_task_that_comes_with_robo_rl_is_known_by_its_name() -> None:
    for name in task_names():
        assert task_class(name).name == name
        assert task_class(name).source is None


def test_a_class_in_a_file_is_a_task_for_its_own_robot_or_another(tmp_path: Path) -> None:
    task = load_task(hover(tmp_path / "mine.py"))
    assert isinstance(task, QuadrotorHover)
    assert (task.name, task.near, task.spec.robot.name) == ("my-hover", 0.5, "crazyflie")
    assert load_task(f"{tmp_path}/mine.py:Mine", "hummingbird").spec.robot.name == "hummingbird"
    with pytest.raises(CardError, match="robot 'go2' is of the kind 'legged'; expected 'multirotor'"):
        load_task(f"{tmp_path}/mine.py:Mine", "go2")


def test_a_relative_path_is_one_from_the_folder_that_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hover(tmp_path / "below" / "mine.py")
    monkeypatch.chdir(tmp_path)
    assert load_task("below/mine.py:Mine").source == load_task("./below/mine.py:Mine").source
    monkeypatch.chdir(tmp_path / "below")
    assert load_task("mine.py:Mine").source.file == tmp_path / "below" / "mine.py"


def test_a_file_may_import_what_lies_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "course.py", "from shapes.round import NEAR\n")
    write(tmp_path / "shapes" / "round.py", "NEAR = 0.75\n")  # a folder without __init__.py
    write(tmp_path / "pack" / "__init__.py", "from pack import inner\n")
    write(tmp_path / "pack" / "inner.py", "")
    write(tmp_path / "unused.py", "")
    name = hover(tmp_path / "mine.py", "NEAR")
    (tmp_path / "mine.py").write_text("import pack\nfrom course import NEAR\n" + (tmp_path / "mine.py").read_text())
    task = load_task(name)
    assert task.near == 0.75
    files = [path.relative_to(tmp_path).as_posix() for path in task.source.files]
    assert files == ["course.py", "mine.py", "pack/__init__.py", "pack/inner.py", "shapes/round.py"]


def test_the_digest_is_over_the_names_and_contents_of_these_files(tmp_path: Path) -> None:
    write(tmp_path / "course.py", "NEAR = 0.5\n")
    name = hover(tmp_path / "mine.py", "NEAR")
    (tmp_path / "mine.py").write_text("from course import NEAR\n" + (tmp_path / "mine.py").read_text())
    source = load_task(name).source
    expected = hashlib.sha256()
    for file in ("course.py", "mine.py"):
        data = (tmp_path / file).read_bytes()
        expected.update(file.encode() + b"\0" + str(len(data)).encode() + b"\0" + data)
    assert (source.label, source.digest) == ("mine.py:Mine", expected.hexdigest())


def test_the_digest_does_not_depend_on_what_was_loaded_before(tmp_path: Path) -> None:
    write(tmp_path / "course.py", "NEAR = 0.5\n")
    for file in ("first.py", "second.py"):
        name = hover(tmp_path / file, "NEAR")
        (tmp_path / file).write_text("from course import NEAR\n" + (tmp_path / file).read_text())
    alone = load_task(f"{tmp_path}/second.py:Mine").source
    load_task(f"{tmp_path}/first.py:Mine")
    assert load_task(name).source == alone
    assert [path.name for path in alone.files] == ["course.py", "second.py"]
    words = f"from robo_rl.sim.tasks.loading import load_task; print(load_task({name!r}).source.digest)"
    prepared = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import course, second; {words}"
    for code in (words, prepared):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == alone.digest


def test_files_that_a_task_names_belong_to_it(tmp_path: Path) -> None:
    name = hover(tmp_path / "mine.py", '0.5\n    files = ("cards/mine.toml",)')
    write(tmp_path / "cards" / "mine.toml", "one = 1\n")
    first = load_task(name).source
    assert [path.name for path in first.files] == ["mine.toml", "mine.py"]
    digest = first.digest
    write(tmp_path / "cards" / "mine.toml", "two = 2\n")
    assert load_task(name).source.digest != digest


@pytest.mark.parametrize("file", ["absent.toml", "../outside.toml", "/etc/hostname", "."])
def test_files_that_are_not_beside_it_are_refused(file: str, tmp_path: Path) -> None:
    write(tmp_path / "outside.toml", "")
    name = hover(tmp_path / "below" / "mine.py", f'0.5\n    files = ("{file}",)')
    with pytest.raises(ValueError, match=f"files has '{file}'; expected the names of files beside it or below"):
        load_task(name)


def test_a_file_is_run_once_and_again_when_it_or_one_beside_it_has_changed(tmp_path: Path) -> None:
    write(tmp_path / "course.py", "NEAR = 0.5\n")
    name = hover(tmp_path / "mine.py", "NEAR")
    (tmp_path / "mine.py").write_text("from course import NEAR\n" + (tmp_path / "mine.py").read_text())
    first = task_class(name)
    assert task_class(name) is first
    write(tmp_path / "course.py", "NEAR = 0.7\n")  # of the same size, within the same second
    assert task_class(name).near == 0.7
    assert first.near == 0.5
    assert not list(tmp_path.rglob("__pycache__"))


def test_two_folders_may_have_files_of_the_same_names(tmp_path: Path) -> None:
    """As the copies of a task in two runs have."""
    for folder, near in (("a", 0.25), ("b", 0.75)):
        write(tmp_path / folder / "course.py", f"NEAR = {near}\n")
        hover(tmp_path / folder / "mine.py", "NEAR")
        path = tmp_path / folder / "mine.py"
        path.write_text("from course import NEAR\n" + path.read_text())
    names = [f"{tmp_path}/{folder}/mine.py:Mine" for folder in "abab"]
    assert [load_task(name).near for name in names] == [0.25, 0.75, 0.25, 0.75]
    assert task_class(names[0]) is task_class(names[2])


def test_what_lies_beside_a_file_does_not_come_before_what_is_installed(tmp_path: Path) -> None:
    """A file called like a module that is imported later, in a method or by robo-rl, is not taken for it."""
    write(tmp_path / "wave.py", "raise RuntimeError('taken for the standard one')\n")
    write(tmp_path / "deploy.py", "raise RuntimeError('taken for that of robo-rl')\n")
    load_task(hover(tmp_path / "mine.py"))
    import wave

    import robo_rl.deploy.build.pack

    assert Path(wave.__file__).parent != tmp_path
    assert Path(robo_rl.deploy.build.pack.__file__).resolve().parents[2] == Path(__file__).resolve().parents[3]


def test_a_file_in_the_folder_of_robo_rl_itself_does_not_take_its_modules_along(tmp_path: Path) -> None:
    """As in a clone, where a user's file lies beside the folders ``sim`` and ``robo_rl``."""
    root = tmp_path / "clone"
    root.mkdir()
    for package in ("controllers", "deploy", "robo_rl", "sim"):
        (root / package).symlink_to(Path(__file__).parents[3] / package)
    name = hover(root / "mine.py")
    code = (
        f"import sys; sys.path.insert(0, {str(root)!r}); from robo_rl.sim.tasks.loading import load_task, sys as s; "
        f"import robo_rl.sim as sim; task = load_task({name!r}); "
        "print([p.name for p in task.source.files], s.modules['robo_rl.sim'] is sim)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.split("\n")[0] == "['mine.py'] True"


def test_what_is_imported_within_a_method_is_noticed(tmp_path: Path) -> None:
    write(tmp_path / "within_a_method.py", "NEAR = 0.5\n")
    text = HOVER.format(name="Mine", near="0.5") + "    def goal(self, drawn):\n        import within_a_method\n"
    write(tmp_path / "mine.py", text + "        return super().goal(drawn)\n")
    task = load_task(f"{tmp_path}/mine.py:Mine")
    assert imported_later(task.source) == []
    import torch

    task.goal({"mass": torch.ones(2)})
    assert imported_later(task.source) == ["within_a_method.py"]


TWO = HOVER.format(name="One", near=0.5) + HOVER.format(name="Two", near=0.5)
BARE = """
from robo_rl.sim.tasks import Task

class Bare(Task):
    name = "bare"
    def make_plant(self, n, device): ...
"""
RAISES = "import sys\n\nprint(1)\nvalue = {}['speed']\n"
FAILS = HOVER.format(name="Fails", near=0.5) + "    def __init__(self, card=None):\n        raise KeyError('hip')\n"

WRONG = {
    # the file, its text, the class, what is told
    "a class that is not there": ("a.py", TWO, "Three", r"a.py:Three: the class does not exist; .* \['One', 'Two'\]"),
    "a class that it only imports": ("b.py", TWO, "Path", "b.py:Path: the class does not exist"),
    "no class": ("c.py", "Thing = 5\n", "Thing", r"c.py:Thing: the class does not exist; the file has the tasks \[\]"),
    "not a task": (
        "d.py",
        "class Thing: ...\n",
        "Thing",
        "it is not a task; expected a subclass of robo_rl.sim.tasks.Task",
    ),
    "lacks methods": (
        "e.py",
        BARE,
        "Bare",
        "it lacks command, errors, failed, goal, observe, place, .* summary, card_",
    ),
    "syntax": ("f.py", "x = 1\nif True\n    y = 2\n", "A", r"f.py: it can't be imported \(f.py, line 2: SyntaxError: "),
    "indentation": ("g.py", "def f():\nreturn\n", "A", r"\(g.py, line 2: IndentationError: "),
    "an exception": ("h.py", RAISES, "A", r"h.py: it can't be imported \(h.py, line 4: KeyError: 'speed'\)"),
    "an exit": ("i.py", "import sys\nsys.exit(3)\n", "A", r"\(i.py, line 2: SystemExit: 3\)"),
    "a missing package": ("j.py", "import nosuchpackage\n", "A", r"\(j.py, line 1: ModuleNotFoundError: No module "),
    "bytes": ("k.py", "x = '\udcff'\n", "A", r"k.py: it can't be imported \(.*SyntaxError: "),
    "the name of a module": ("torch.py", TWO, "One", "torch.py: there is another module 'torch'; expected a file of"),
    "the name of ours": ("robo_rl.py", TWO, "One", "robo_rl.py: there is another module 'robo_rl'; expected a file"),
    "the name of a built-in": ("sys.py", TWO, "One", "sys.py: there is another module 'sys'; expected a file of"),
    "no name of a module": ("my-task.py", TWO, "One", "my-task.py:One: expected names of letters, digits and _"),
    "a long name": ("a" * 70 + ".py", TWO, "One", "expected names of letters, digits and _, at most 64 characters"),
    "it can't be made": ("l.py", FAILS, "Fails", r"l.py: Fails can't be made \(l.py, line 8: KeyError: 'hip'\)"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_a_file_is_told_with_its_line(what: str, tmp_path: Path) -> None:
    file, text, name, sentence = WRONG[what]
    (tmp_path / file).write_text(text, errors="surrogateescape")
    with pytest.raises(ValueError, match=sentence):
        load_task(f"{tmp_path}/{file}:{name}")
    assert str(tmp_path) not in sys.path[:-1]


def test_an_error_in_a_file_beside_it_is_told_with_that_files_line(tmp_path: Path) -> None:
    write(tmp_path / "mine.py", "import course\n")
    write(tmp_path / "course.py", "\n\n1 / 0\n")
    with pytest.raises(ValueError, match=r"mine.py: it can't be imported \(course.py, line 3: ZeroDivisionError: "):
        load_task(f"{tmp_path}/mine.py:Mine")
    write(tmp_path / "course.py", "(\n")
    with pytest.raises(ValueError, match=r"mine.py: it can't be imported \(course.py, line 1: SyntaxError: "):
        load_task(f"{tmp_path}/mine.py:Mine")
    write(tmp_path / "course.py", "")
    hover(tmp_path / "mine.py")
    assert load_task(f"{tmp_path}/mine.py:Mine").near == 0.5  # once it is mended


def test_a_file_that_is_not_there_and_a_name_that_is_not_known_are_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no.py: the file does not exist; expected one with the task 'Circle'"):
        load_task(f"{tmp_path}/no.py:Circle")
    with pytest.raises(
        ValueError,
        match=r"task 'hover' is not known; did you mean 'quadrotor-hover'\? Expected one of .*, or FILE.py:CLASS",
    ):
        load_task("hover")
    with pytest.raises(ValueError, match=r"task './circle.py' is not known; .*say which class: ./circle.py:CLASS"):
        load_task("./circle.py")


# --- installed packages -------------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that is installed: a folder of modules, and what the installer noted about it."""
    site = tmp_path / "site"
    write(site / "mypackage" / "__init__.py", "")
    write(site / "mypackage" / "hover.py", HOVER.format(name="Hover", near=0.5).replace("my-hover", "packaged-hover"))
    write(site / "mypackage" / "broken.py", "raise RuntimeError('no driver')\n")
    text = "Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n"
    write(site / "my_package-1.0.dist-info" / "METADATA", text)
    points = """
        [robo_rl.tasks]
        packaged-hover = mypackage.hover:Hover
        packaged-broken = mypackage.broken:Broken
        packaged-nothing = mypackage.hover:QuadrotorNothing
        packaged-module = mypackage.hover
        quadrotor-hover = mypackage.hover:Hover
    """
    write(site / "my_package-1.0.dist-info" / "entry_points.txt", points)
    monkeypatch.syspath_prepend(site)
    return site


def test_an_installed_packages_task_is_known_by_its_name(package: Path) -> None:
    assert {"packaged-hover", "packaged-broken"} < set(task_names())
    task = load_task("packaged-hover", "hummingbird")
    assert (task.name, task.near, task.spec.robot.name) == ("packaged-hover", 0.5, "hummingbird")
    assert task.source is None
    assert load_task("quadrotor-hover").name == "quadrotor-hover"  # ours


def test_a_packages_task_that_can_not_be_loaded_is_told_and_harms_no_other(package: Path) -> None:
    assert load_task("packaged-hover").near == 0.5
    sentence = r"'packaged-broken' of the package 'my-package' \(mypackage.broken:Broken\): RuntimeError: no driver"
    with pytest.raises(ValueError, match=sentence):
        load_task("packaged-broken")
    with pytest.raises(ValueError, match=r"packaged-nothing.*: AttributeError: .* 'QuadrotorNothing'"):
        load_task("packaged-nothing")
    with pytest.raises(
        ValueError, match=r"packaged-module.*: it is not a task; expected a subclass of robo_rl.sim.tasks.Task"
    ):
        load_task("packaged-module")


def test_tasks_of_packages_are_listed_and_what_is_wrong_with_one(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(json=True) == 0
    out, err = capsys.readouterr()
    found = {task["name"]: task for task in json.loads(out)["tasks"]}
    assert found["packaged-hover"]["robot"] == "crazyflie"
    assert "packaged-broken" not in found
    assert "'packaged-broken' of the package 'my-package' (mypackage.broken:Broken): RuntimeError: no driver" in err


def test_a_package_offers_a_kind_of_robot_and_its_classical_controller(
    package: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from robo_rl.controllers import fallback
    from tests.robo_rl.contract.generated import small_contract

    write(
        package / "mypackage" / "wheel.py",
        """
        from dataclasses import dataclass, field
        from robo_rl.contract import Actuator, Robot

        @dataclass(frozen=True)
        class Wheel:
            kind = "reaction_wheel"
            name: str
            title: str = "Wheel"
            sources: dict = field(default_factory=dict)
            def facts(self):
                return Robot(self.name, self.kind, (Actuator("wheel", "effort", "N*m", -1, 1, 0),))
            def figures(self):
                return {"mass_kg": 1.0}
            def files(self):
                return ()
            @classmethod
            def read(cls, card, name, path):
                return cls(name)

        class Stop:
            needed = ()
            def __init__(self, contract):
                self.contract = contract
            @staticmethod
            def suits(contract):
                return contract.control_period == 0.01

        FALLBACK = Stop
        """,
    )
    points = package / "my_package-1.0.dist-info" / "entry_points.txt"
    points.write_text("".join(f"[robo_rl.{group}]\nreaction_wheel = mypackage.wheel{what}\n"
                              for group, what in (("robots", ":Wheel"), ("controllers", ""))))  # fmt: skip
    card = write(tmp_path / "wheel.toml", 'kind = "reaction_wheel"\n')
    robot = load_robot(str(card)).facts()
    assert robot == dataclasses.replace(small_contract().robot, kind="reaction_wheel")
    assert type(fallback(small_contract(robot=robot))).__name__ == "Stop"
    assert fallback(small_contract(robot=robot, control_period=0.02)) is None
