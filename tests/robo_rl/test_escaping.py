"""One escaping function per output language: whatever the text, it stays a comment, a string or a name."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from robo_rl.files import escaping

HOSTILE = (
    "*/ int main(void) { return 7; } /*", "**//", "/**/", "//*", "*", "/", "??/", "\\", '"', '"; evil(); "', "'",
    "`id`", "$(id)", "${HOME}", "@id@", "a;b", "a\nb", "a\r\n#include <x>", "\x1b]0;x\x07", "\x1b[2J", "\u202e",
    "\u2028", "\0", "../ESCAPED", "/etc/passwd", "-o", "--help", ".bashrc", "..", "", " ", "<script>", "]]>", "&amp;",
    "{{ 7*7 }}", '"},"scripts":{"x":"y', "\ud800", "ﬁ", "CON", "a" * 300, "# x", "| x |", "[a](javascript:b)",
    "%s", "NUL\0.c",
)  # fmt: skip
texts = st.text() | st.sampled_from(HOSTILE) | st.lists(st.sampled_from(HOSTILE), max_size=4).map("".join)


def run(*command: str, text: str = "") -> str:
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, (command, text, done.stderr)
    return done.stdout.decode()


@pytest.fixture(scope="module")
def gcc() -> str:
    found = shutil.which("gcc")
    if found is None:
        pytest.skip("gcc not found; apt-get install gcc")
    return found


@given(texts)
@example("**//")
@example("/*/")
@example("a*/b/*c\\")
def test_a_comment_of_c_neither_ends_nor_begins_within_its_text(text: str) -> None:
    found = escaping.c_comment(text)
    whole = f"/*{found}*/"
    assert whole.index("*/", 2) == len(whole) - 2
    assert "/*" not in whole[2:]
    assert found.isascii()
    assert found.isprintable()


def test_a_compiler_sees_nothing_of_any_hostile_comment(gcc: str) -> None:
    lines = [f"int a{i}; /* {escaping.c_comment(text)} */ // {escaping.c_comment(text)}" for i, text in
             enumerate(HOSTILE)]  # fmt: skip
    seen = run(gcc, "-E", "-P", "-std=gnu11", "-Wall", "-Werror", "-xc", "-", text="\n".join(lines))
    assert seen.split() == " ".join(f"int a{i};" for i in range(len(HOSTILE))).split()


def test_a_compiler_reads_a_string_of_c_as_it_was_meant(gcc: str, tmp_path: Path) -> None:
    told = [text.encode(errors="surrogatepass").decode(errors="replace") for text in HOSTILE]
    strings = ",\n".join(escaping.c_string(text) for text in told)
    code = f"#include <stdio.h>\nstatic const char *const s[] = {{{strings}}};\n"
    code += f"int main(void) {{ for (int i = 0; i < {len(told)}; i++) puts(s[i]); return 0; }}\n"
    program = tmp_path / "strings"
    run(gcc, "-std=c99", "-trigraphs", "-Wall", "-Wextra", "-Werror", "-xc", "-", "-o", str(program), text=code)
    found = subprocess.run([program], capture_output=True, check=True).stdout
    expected = b"".join(text.encode().split(b"\0")[0] + b"\n" for text in told)
    assert found == expected


@given(texts | st.sampled_from(sorted(escaping.C_RESERVED)) | st.from_regex(r"[A-Z_]{1,4}", fullmatch=True))
def test_an_identifier_of_c_is_one_that_nothing_else_means(text: str) -> None:
    name = escaping.c_identifier(text)
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name, re.ASCII)
    assert name not in escaping.C_RESERVED
    assert not re.match(r"_[A-Z_]", name)
    assert escaping.c_identifier(name) == name


def test_every_word_of_c_and_cpp_and_every_common_macro_may_name_a_member(gcc: str) -> None:
    listed = run(gcc, "-dM", "-E", "-std=gnu11", "-include", "math.h", "-include", "stdint.h", "-include", "stdbool.h",
                 "-include", "stdio.h", "-include", "string.h", "-include", "errno.h", "-xc", "-")  # fmt: skip
    macros = re.findall(r"^#define (\w+) ", listed, re.MULTILINE)
    assert {"unix", "linux", "errno", "INFINITY"} <= set(macros)
    names = sorted({escaping.c_identifier(name) for name in (*escaping.C_RESERVED, *macros)})
    includes = "".join(f"#include <{name}.h>\n" for name in ("math", "stdint", "stdbool", "stdio", "string", "errno"))
    code = includes + "struct all {\n" + "".join(f"float {name}[1];\n" for name in names) + "};\n"
    for command in ((gcc, "-std=gnu11", "-xc"), (gcc, "-std=gnu2x", "-xc"), (gcc, "-std=gnu++20", "-xc++")):
        run(*command, "-Wall", "-Werror", "-fsyntax-only", "-", text=code)


@given(texts)
def test_json_toml_and_xml_read_back_what_was_meant(text: str) -> None:
    assert json.loads(f'{{"a": {escaping.json_string(text)}}}') == {"a": text}
    whole = "".join(c for c in text if not 0xD800 <= ord(c) < 0xE000)
    assert tomllib.loads(f"a = {escaping.toml_string(text)}\nb = 1") == {"a": whole, "b": 1}
    root = ElementTree.Element("robot", name=escaping.xml_text(text))
    assert ElementTree.fromstring(ElementTree.tostring(root)).get("name") == escaping.printable(text)


@given(texts)
def test_kconfig_cmake_and_properties_stay_on_their_line_and_in_their_quotes(text: str) -> None:
    for found in (escaping.kconfig_string(text), escaping.cmake_string(text)):
        assert re.fullmatch(r'"(?:[^"\\$]|\\.)*"', found)
        assert found.isprintable()
    assert escaping.properties_value(text).isprintable()


def test_cmake_reads_a_string_as_it_was_meant(tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake not found; apt-get install cmake")
    told = [text for text in HOSTILE if text.isascii() and text.isprintable()]
    script = "".join(f"message({escaping.cmake_string(text)})\n" for text in told)
    (tmp_path / "x.cmake").write_text(script)
    done = subprocess.run(["cmake", "-P", "x.cmake"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr.split("\n")[:-1] == told


@settings(max_examples=20)
@given(texts.filter(lambda text: "\0" not in text))
def test_a_shell_sees_one_word_that_is_no_option(text: str) -> None:
    word = escaping.shell_word(text)
    found = subprocess.run(["sh", "-c", f"printf %s {os.fsencode(word).decode(errors='replace')}"],
                           capture_output=True, check=True).stdout if "\ud800" not in text else b"-"[:0]  # fmt: skip
    assert not word.startswith("-")
    if text.isascii():
        assert found.decode().removeprefix("./") in (text, text.removeprefix("./"))


@given(texts)
def test_a_file_s_name_is_in_its_own_folder(text: str) -> None:
    name = escaping.file_name(text)
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name)
    assert (Path("folder") / name).resolve().parent == Path("folder").resolve()
    assert len(name) <= escaping.LONGEST_NAME
    assert escaping.file_name(name) == name


@given(texts)
def test_nothing_in_markdown_is_markup(text: str) -> None:
    found = escaping.markdown(text)
    assert "\n" not in found
    assert not re.search(r"(?<!\\)[<`|\[]", re.sub(r"\\\\", "", found))


@given(texts)
def test_a_terminal_gets_no_control_characters(text: str) -> None:
    found = escaping.terminal(text)
    assert all(c.isprintable() or c in "\n\t" for c in found)
    assert found.encode().decode() == found
    if text.isprintable():
        assert found == text
