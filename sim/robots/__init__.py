"""Robots as cards: published figures, each with its unit and its source, in one TOML file per robot.

A card in this folder is known by its folder's name; any other card by its path, so a user's own robot needs
no code. Everything derived from the figures (limits, facts of the contract) comes from the card and is written
nowhere else.

What a card must hold depends on the robot's kind. It has a folder with code here under its name, whose ``CARD`` is the
class of its cards, or a package of its own that tells the class by the entry point ``robo_rl.robots``, or a class in a
user's own file beside the task (``Task.card_type``).
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar, cast

from robo_rl.contract import Robot
from robo_rl.contract.checks import NAME
from robo_rl.contract.kinds import kinds_in, offered
from robo_rl.files.escaping import shell_word
from robo_rl.files.suggestions import expected_one_of
from robo_rl.files.text import read_toml
from robo_rl.sim.robots.figures import CardError, require

FOLDER = Path(__file__).parent


class Card(Protocol):
    """The figures of one robot, of one kind."""

    kind: ClassVar[str]

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def sources(self) -> dict[str, str]:
        """Where each figure is from."""

    def facts(self) -> Robot:
        """What a contract tells about this robot."""

    def figures(self) -> dict[str, Any]:
        """What is worth knowing at a glance, by name with its unit: "mass_kg"."""

    def files(self) -> tuple[Path, ...]:
        """Files beside the card that belong to it, such as a model."""

    @classmethod
    def read(cls, card: dict[str, Any], name: str, path: Path) -> Self:
        """The card in the parsed TOML ``card`` of the file ``path``; CardError names what is wrong with it."""

    def drawing(self) -> tuple[Any, Any]:
        """How it looks at rest: a MuJoCo model, and poses (bodies, 7) as ``Plant.poses`` gives them."""

    def urdf(self) -> str:
        """The robot as ROS's tools read it."""


C = TypeVar("C", bound=Card)

OWN_KIND = "a robot of another kind has a class of cards of its own, which your task names (docs/own-task.md)"


def card_types() -> dict[str, type[Card]]:
    """The classes of cards by kind: ours, and those of installed packages."""
    ours = {kind: importlib.import_module(f"{__name__}.{kind}").CARD for kind in kinds_in(__name__)}
    return {**{point.name: point.load() for point in offered("robo_rl.robots")}, **ours}


def place_of(file: Path, card: Path) -> Path:
    """Where a file of a robot goes, relative to a copy of its card: as it is below ``card``, else beside it."""
    for one, folder in ((file, card.parent), (file.resolve(), card.parent.resolve())):
        if one.is_relative_to(folder) and ".." not in one.relative_to(folder).parts:
            return one.relative_to(folder)
    return Path(file.name)


def robot_names() -> list[str]:
    """Robots that come with robo-rl."""
    return sorted(path.parent.name for path in FOLDER.glob("*/card.toml"))


def load_robot(name: str | Path, card_type: type[C] | None = None) -> C:
    """The card of that name, or in the file of that path (ending in .toml).

    ``card_type`` is the class of the kind that is expected, which need not be one that robo-rl knows.
    """
    own = Path(name).suffix.lower() == ".toml"
    if Path(name).suffix.lower() in (".urdf", ".xml", ".mjcf", ".xacro"):
        kind = "urdf" if Path(name).suffix.lower() in (".urdf", ".xacro") else "mjcf"
        raise CardError(
            f"robot '{name}' is a model; expected a robot file (card.toml), which says what motors it has and where it "
            f"stands: robo-rl new NAME --{kind} {shell_word(name)} writes one"
        )
    if not own and name not in robot_names() and Path(name, "card.toml").is_file():
        raise CardError(f"robot '{name}' is a folder; expected its robot file, {Path(name, 'card.toml')}")
    path = Path(name) if own else FOLDER / name / "card.toml"
    if not path.is_file():
        if own:
            raise CardError(f"robot '{name}' is not known: there is no such file; expected the path of a card, *.toml")
        one = expected_one_of(name, robot_names())
        raise CardError(f"robot '{name}' is not known{one} or the path of a card, *.toml")
    try:
        card = read_toml(path)
    except ValueError as error:
        raise CardError(str(error)) from None
    label = Path(os.path.abspath(path)).parent.name if path.name == "card.toml" else path.stem
    if NAME.fullmatch(label) is None:
        raise CardError(
            f"{path}: it names the robot '{label[:80]}'; expected 1 to 64 letters (a to z), digits, and _ . - after "
            "the first: rename the file, or its folder if it is card.toml"
        )
    known = card_types() | ({card_type.kind: card_type} if card_type else {})
    kind = card.get("kind", "")
    require(isinstance(kind, str) and kind in known, str(path), "kind", kind, f"one of {sorted(known)}; {OWN_KIND}")
    if card_type is not None and kind != card_type.kind:
        raise CardError(f"robot '{name}' is of the kind '{kind}'; expected '{card_type.kind}'")
    return cast(C, known[kind].read(card, label, path))
