"""Copies of nested data in which one place or two hold something strange, for hypothesis, and how they are read."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

STRANGE = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 3, 10**400, -(10**400), 2**63, 2**31, 1e308, 1e-308, 5e-324, 0.0, -0.0]),
    st.floats(),
    st.integers(),
    st.text(max_size=8),
    st.sampled_from(["$x_{1}$", "\\frac{1", "$", "*/", "../../x", "a" * 5000, "\0", "\n", "\ud800", "{x}"]),
    st.just([]),
    st.just({}),
    st.lists(st.floats(), max_size=4),
    st.just([[[]]]),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def places(data: Any, here: tuple = ()) -> list[tuple]:
    """The paths of all values within nested lists and dictionaries."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path for key, value in inner for path in ((*here, key), *places(value, (*here, key)))]


@st.composite
def changed(draw: st.DrawFn, data: Any) -> Any:
    """``data`` with one to three places replaced, taken out, or put in."""
    data = copy.deepcopy(data)
    for _ in range(draw(st.integers(1, 3))):
        known = places(data)
        if not known:
            break
        *way, last = draw(st.sampled_from(known))
        parent = data
        for key in way:
            parent = parent[key]
        what = draw(st.sampled_from(["replace", "replace", "replace", "delete", "add"]))
        if what == "replace":
            parent[last] = copy.deepcopy(draw(STRANGE))
        elif what == "delete":
            del parent[last]
        elif isinstance(parent, dict):
            parent[draw(st.text(max_size=6))] = copy.deepcopy(draw(STRANGE))
        else:
            parent.insert(last, copy.deepcopy(draw(STRANGE)))
    return data


def attempt(read: Callable[[], Any], refusal: type[ValueError]) -> tuple[Any, str]:
    """What was read, or None and the refusal's sentence."""
    try:
        return read(), ""
    except refusal as error:
        return None, str(error)
