"""Changed copies of a bundle, sealed anew as someone would who edits a file on purpose."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto

from deploy.bundle import DIGEST_KEY, NO_DIGEST, seal

Resealed = Callable[[Callable[[ModelProto], None]], Path]


@pytest.fixture
def resealed(bundle_file: Path, tmp_path: Path) -> Resealed:
    """``resealed(change)`` is the path of a copy of the bundle that ``change`` was applied to, with a right digest."""

    def make(change: Callable[[ModelProto], None]) -> Path:
        model = onnx.load(str(bundle_file))
        (digest,) = [entry for entry in model.metadata_props if entry.key == DIGEST_KEY]
        digest.value = NO_DIGEST
        change(model)
        path = tmp_path / "changed.onnx"
        path.write_bytes(seal(model.SerializeToString(deterministic=True)))
        return path

    return make
