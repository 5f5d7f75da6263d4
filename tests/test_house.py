"""The house: folders that can be looked over, one import package."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST = 25
FEW = 6


def modules(folder: Path) -> int:
    return len([file for file in folder.glob("*.py") if file.name != "__init__.py"])


def test_no_folder_of_the_product_has_more_modules_than_can_be_looked_over() -> None:
    tops = [ROOT / name for name in ("robo_rl", "sim", "controllers", "deploy")]
    folders = {file.parent for top in tops for file in top.rglob("*.py")}
    assert {str(folder): modules(folder) for folder in folders if modules(folder) > MOST} == {}


def test_few_files_are_loose_in_the_package() -> None:
    names = sorted(file.name for file in (ROOT / "robo_rl").glob("*.py"))
    assert len(names) <= FEW, names
