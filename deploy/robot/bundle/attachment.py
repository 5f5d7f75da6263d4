"""What a bundle brings of a robot or a task that robo-rl does not come with: card, model, and the task's source.

They are an entry of the file's metadata, so the digest covers them. A card and a model are data, which are read like
any stranger's. A task's source is a program: it is kept as text, and run only where the user says so (``INSIDE``).
The entry is JSON: names of files with their bytes, compressed by zlib and in base 64.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

FILES_KEY = "robo_rl.files"
INSIDE = "inside"
"""In place of a task's name: run the source that the bundle brings."""
SOURCE = "source/"
"""Where the task's files are among the names; a run's folder has them at the same place."""
MAX_FILES, MAX_BYTES = 256, 16 << 20
MAX_PARTS = 8
OBJECTS = 2
"""In the JSON: files are text."""
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,99}", re.ASCII)


class AttachmentError(ValueError):
    """The files of a robot or a task can't be attached, or what is attached is damaged."""


@dataclass(frozen=True)
class Attached:
    """The files, by their names relative to one folder; none for robots and tasks that robo-rl comes with."""

    card: str = ""
    """The one that is the robot's card."""
    files: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def source_digest(self) -> str:
        """As ``robo_rl.sim.tasks.loading.Source.digest``; empty where there is no source."""
        inside = {name.removeprefix(SOURCE): data for name, data in self.files.items() if name.startswith(SOURCE)}
        found = hashlib.sha256()
        for name in sorted(inside, key=PurePosixPath):
            found.update(f"{name}\0{len(inside[name])}\0".encode() + inside[name])
        return found.hexdigest() if inside else ""

    def to_json(self) -> str:
        """Read back by ``from_json``."""
        packed = {name: base64.b64encode(zlib.compress(data, 9)).decode() for name, data in self.files.items()}
        return json.dumps({"card": self.card, "files": packed}, sort_keys=True)

    @staticmethod
    def from_json(text: str) -> Attached:
        """Read back; AttachmentError unless all names stay in one folder and the sizes are bounded."""
        try:
            if text.count("{") > OBJECTS or "[" in text:
                raise ValueError("more lists or objects than there are")
            data = json.loads(text, object_pairs_hook=_once)
            if not isinstance(data, dict) or data.keys() != {"card", "files"} or not isinstance(data["files"], dict):
                raise ValueError("other fields than 'card' and 'files'")
            left, files = MAX_BYTES, {}
            for name, packed in data["files"].items():
                files[name] = _inflate(packed, left)
                left -= len(files[name])
            require_names(files)
            if data["card"] != "" and data["card"] not in files:
                raise ValueError(f"card is {str(data['card'])[:100]!r}, which is not one of the files")
        except (ValueError, KeyError, TypeError, RecursionError, binascii.Error, zlib.error) as error:
            raise AttachmentError(f"attached files are damaged ({error}); export it again") from None
        return Attached(data["card"], files)

    def write(self, folder: Path) -> None:
        """Write the files below ``folder``, which must be empty or not be there."""
        if folder.exists() and any(folder.iterdir()):
            raise AttachmentError(f"{folder} is not empty; expected the name of a new folder")
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def folder(self) -> Path:
        """A folder of its own with the files, for as long as this process lives."""
        key = hashlib.sha256(self.to_json().encode()).hexdigest()
        if key not in _folders:
            made = tempfile.TemporaryDirectory(prefix="robo-rl-", ignore_cleanup_errors=True)
            self.write(Path(made.name))
            _folders[key] = made
        return Path(_folders[key].name)


_folders: dict[str, tempfile.TemporaryDirectory[str]] = {}
"""By the digest of what is in them. They are removed when the process ends."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, in which every name is once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name that is there twice")
    return found


def _inflate(packed: str, most: int) -> bytes:
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(base64.b64decode(packed, validate=True), most + 1)
    if len(data) > most:
        raise ValueError(f"more than {MAX_BYTES} bytes")
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("a file that is cut off")
    return data


def require_names(files: Mapping[str, bytes]) -> None:
    """ValueError unless the names are those of different files below one folder, on any computer."""
    if len(files) > MAX_FILES:
        raise ValueError(f"{len(files)} files, more than {MAX_FILES}")
    folders = {str(parent) for name in files for parent in PurePosixPath(name).parents}
    lower = [name.lower() for name in files]
    for name in files:
        parts = name.split("/")
        good = len(parts) <= MAX_PARTS and all(_PART.fullmatch(part) and part[-1] not in ". " for part in parts)
        if not good or name in folders or lower.count(name.lower()) > 1:
            expected = "one of letters, digits, '_', '-', '.' and blanks below the card's folder"
            raise ValueError(f"the name {name[:100]!r}; expected {expected}")
