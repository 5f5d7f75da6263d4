"""What a person may have meant by a name that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """ "; did you mean 'train'?" for a name that is like a known one, or like its beginning or end; else ""."""
    text, names = str(name), list(known)
    found = difflib.get_close_matches(text.lower(), names, n=1, cutoff=0.6)
    if not found and len(text) >= 3:
        found = [one for one in names if one.startswith(text.lower()) or one.endswith(text.lower())][:1]
    return f"; did you mean '{found[0]}'?" if found else ""


def expected_one_of(name: object, known: Iterable[str]) -> str:
    """The end of a refusal: "; did you mean 'train'? Expected one of […]", or "; expected one of […]" without a guess.

    The guess comes first, since the list may be long.
    """
    names = list(known)
    meant = did_you_mean(name, names)
    return f"{meant} Expected one of {names}" if meant else f"; expected one of {names}"
