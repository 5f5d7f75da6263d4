"""Robot files that are a list of figures, ``name = value`` each (TOML): a dataclass says which."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, TypeVar

from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.files import read_bytes, write
from robo_rl.files.text import loads_toml

MOST_BYTES = 1 << 16
Figures = TypeVar("Figures")


def read_figures(path: str, kind: type[Figures]) -> Figures:
    """A file of this kind, whose checks are its own; "": its defaults. DriverError for anything else than one."""
    if not path:
        return kind()
    where = Path(path).expanduser()
    try:
        return parse_figures(read_bytes(where, MOST_BYTES), kind)
    except FileNotFoundError:
        raise DriverError(f"{path}: there is no such file; expected a robot file (*.toml)") from None
    except (OSError, ValueError, RecursionError) as error:
        raise DriverError(f"{path}: {str(error)[:300]}") from None


def parse_figures(data: bytes, kind: type[Figures]) -> Figures:
    """A file's content. ValueError for anything else."""
    found = loads_toml(data)
    known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    if unknown := sorted(set(found) - set(known)):
        raise ValueError(f"{str(unknown)[:100]} are unknown; expected {', '.join(known)}")
    return kind(**found)


def write_figures(path: Path, figures: Any) -> None:
    """As ``read_figures`` reads it."""
    rows = dataclasses.asdict(figures).items()
    write(path, "".join(f'{n} = "{v}"\n' if isinstance(v, str) else f"{n} = {v!r}\n" for n, v in rows))


def require_figures(figures: Any, bounds: tuple[tuple[str, float, float], ...]) -> None:
    """ValueError unless each named figure is a number within its bounds."""
    for name, low, high in bounds:
        value = getattr(figures, name)
        if type(value) not in (int, float) or not low <= value <= high:
            raise ValueError(f"{name} is {str(value)[:40]}; expected a number from {low:g} to {high:g}")
