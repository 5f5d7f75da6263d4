"""Text that others wrote, made harmless for each language that robo-rl writes: one function per language.

Names of contracts and cards are checked where they are read (``robo_rl.contract.checks``). These functions do not rely
on it: whatever the text, what they give stays a comment, a string or a name in its language, on one line. XML is
written by ``xml.etree``, HTML by jinja2 with autoescape, JSON by ``json``; their escaping is not done anew here.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

LONGEST_NAME = 100
"""Characters of a file's name, so that there is room for a date and an ending."""

_C_KEYWORDS = (
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class "
    "co_await co_return co_yield compl complex concept const const_cast consteval constexpr constinit continue "
    "contract_assert decltype default delete do double dynamic_cast else enum explicit export extern false far final "
    "float for fortran friend goto if imaginary import inline int interrupt long module mutable namespace near new "
    "noexcept noreturn not not_eq nullptr operator or or_eq override private protected public register "
    "reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch "
    "template this thread_local throw true try typedef typeid typename typeof typeof_unqual union "
    "unsigned using virtual void volatile wchar_t while xor xor_eq"
)
_C_MACROS = (
    "L_ctermid L_tmpnam P_tmpdir abs arm assert avr boolean byte errno i386 interrupts linux math_errhandling max min "
    "mips pascal round stderr stdin stdout sun unix vax word"
)
C_RESERVED = frozenset(f"{_C_KEYWORDS} {_C_MACROS}".split())
"""Words of C to C23 and C++ to C++26, and names that compilers and firmware define as macros."""
PREFIX = "value_"
"""Before names that are reserved."""


def printable(text: str) -> str:
    """On one line, without characters that are not seen: others see what is there."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode() if not text.isascii() else text


def c_comment(text: str) -> str:
    """Within a comment of C, ``/* … */`` or ``// …``, which it neither ends nor continues on the next line."""
    apart = re.sub(r"\*(?=/)|/(?=\*)|\?(?=\?/)", lambda found: f"{found[0]} ", _ascii(printable(text)))
    if apart.rstrip().endswith("\\"):  # it would continue the line, even with spaces behind it
        return f"{apart}."
    return f"{apart} " if apart.endswith(("*", "/")) else apart


def c_string(text: str) -> str:
    """A string literal of C, with its quotes."""
    plain = {ord("\\"): r"\\", ord('"'): r"\"", ord("?"): r"\?"}  # a ? might begin a trigraph
    parts = (chr(b) if 32 <= b < 127 else f"\\{b:03o}" for b in text.encode(errors="surrogateescape"))
    return f'"{"".join(part if len(part) > 1 else part.translate(plain) for part in parts)}"'


def c_identifier(text: str) -> str:
    """A name in C and C++: the text where that is one, else something like it.

    Words of the languages, macros, and names in capitals, as most macros have, get a prefix.
    """
    name = re.sub(r"\W", "_", text, flags=re.ASCII) or "_"
    if name[0].isdigit():
        name = f"_{name}"
    capitals = re.fullmatch(r"[A-Z][A-Z0-9_]*", name) is not None
    reserved = name in C_RESERVED or re.match(r"_[A-Z_]", name) is not None
    return f"{PREFIX}{name}" if capitals or reserved else name


def json_string(text: str) -> str:
    """A string of JSON, with its quotes; ASCII alone."""
    return json.dumps(text)


def toml_string(text: str) -> str:
    """A basic string of TOML, with its quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    shown = (c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped if not 0xD800 <= ord(c) < 0xE000)
    return f'"{"".join(shown)}"'


def kconfig_string(text: str) -> str:
    """A string of Kconfig, with its quotes; ``$`` would be expanded."""
    return '"{}"'.format(re.sub(r'["\\$]', lambda found: f"\\{found[0]}", _ascii(printable(text))))


def cmake_string(text: str) -> str:
    """A quoted argument of CMake; ``$`` and ``@`` would be expanded."""
    return '"{}"'.format(re.sub(r'["\\$@]', lambda found: f"\\{found[0]}", _ascii(printable(text))))


def properties_value(text: str) -> str:
    """A value of Arduino's library.properties: the rest of a line."""
    return _ascii(printable(text)).strip()


def markdown(text: str) -> str:
    """Plain text of Markdown: no markup, no HTML, no table's border."""
    return re.sub(r"[\\`*_{}\[\]()<>#!|&~]", lambda found: f"\\{found[0]}", printable(text))


def xml_text(text: str) -> str:
    """For ``xml.etree``, which escapes marks but writes characters that XML does not have."""
    return printable(text)


def plot_label(text: str) -> str:
    """A text of matplotlib, which takes what is between two ``$`` for mathematics."""
    return printable(text).replace("$", r"\$")


def shell_word(text: str | Path) -> str:
    """One word of a shell's command, which is no option."""
    word = str(text)
    return shlex.quote(f"./{word}" if word.startswith("-") else word)


def file_name(text: str) -> str:
    """A file's name in its own folder, on any system: letters, digits and ``_ . -``, the first no ``.`` or ``-``."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", text)[:LONGEST_NAME]
    return re.sub(r"^[.-]+", "_", name).rstrip(".") or "_"


def terminal(text: str) -> str:
    """For a terminal, which acts on control characters: lines and tabs stay, others are shown."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in "\n\t" else printable(c) for c in text)
