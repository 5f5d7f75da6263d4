"""YAML of other trainers as plain data: nothing of it is run, whatever tags it has.

Isaac Lab and unitree_rl_lab write tags of Python (``!!python/tuple``, ``!!python/object/apply:builtins.slice``). A
tagged list or table is read as a list or table; a tagged text, such as the name of a function, as text.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from typing import Any

from robo_rl.adapters.foreign.description import AdoptionError
from robo_rl.files import sandbox as confined

MOST = 1 << 24
"""Bytes; the largest env.yaml of Isaac Lab have some 100 kB."""
MOST_VALUES = 1_000_000
"""With all that aliases repeat: ten lines of them can stand for a billion values."""


def read(data: bytes, where: str) -> dict[str, Any]:
    """The table in a YAML file; AdoptionError where there is none."""
    if len(data) > MOST:
        raise AdoptionError(f"{where}: {len(data)} bytes; expected at most {MOST}")
    try:
        found = json.loads(confined.attempt("robo_rl.adapters.foreign.yaml_file:parsed", data))
    except confined.Refused as error:
        raise AdoptionError(f"{where}: it can't be read as YAML ({error})") from None
    if not isinstance(found, dict):
        raise AdoptionError(f"{where}: it is a {type(found).__name__}; expected a table")
    return found


def parsed(data: bytes) -> bytes:
    """In a process of its own: the document as JSON."""
    import yaml

    class Loader(yaml.SafeLoader):
        """Knows no objects."""

        def flatten_mapping(self, node: Any) -> None:
            """Merges are not expanded: they grow without bound."""

    def plain(loader: Any, suffix: str, node: Any) -> Any:
        if isinstance(node, yaml.MappingNode):
            return loader.construct_mapping(node, deep=True)
        if isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node, deep=True)
        return node.value

    Loader.add_multi_constructor("", plain)
    Loader.add_multi_constructor("tag:yaml.org,2002:python/", plain)
    if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(data, Loader=Loader)):
        seen = sum(isinstance(token, yaml.AliasToken) for token in yaml.scan(data, Loader=Loader))
        if seen > 1000:
            raise ValueError(f"it has {seen} aliases; expected at most 1000")
    return json.dumps(_clean(yaml.load(data, Loader=Loader), itertools.count())).encode()


def _clean(value: Any, values: Iterator[int]) -> Any:
    if next(values) >= MOST_VALUES:
        raise ValueError(f"with its aliases it has more than {MOST_VALUES:,} values")
    if isinstance(value, dict):
        return {str(key): _clean(item, values) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_clean(item, values) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else math.copysign(1e30, value)
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
