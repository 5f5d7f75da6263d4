"""Every place that opens a file is known here, with what keeps a stranger's file from harm there.

A new one is confined (another process reads it, with little memory and time), or bounded (a file, not a pipe or device,
of so many bytes, whose reader takes as much as that), or reads what no stranger wrote.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("robo_rl", "deploy", "sim", "controllers", "ros2_ws", "plugins")
OPENS = {
    "open", "fdopen", "read_bytes", "read_text", "safe_open", "fromfile", "loadtxt", "genfromtxt", "memmap", "mmap",
    "from_file", "iterparse", "imread", "File", "ParquetFile", "read_table", "load_file", "ZipFile", "TarFile",
    "from_xml_path", "InferenceSession", "CDLL", "loadMJCF", "loadURDF",
}  # fmt: skip
LOADS = {
    "ElementTree.parse",
    "np.load",
    "numpy.load",
    "torch.load",
    "pickle.load",
    "joblib.load",
    "yaml.load",
    "json.load",
    "tomllib.load",
}
SAFE_ANYWHERE = {"files.read_bytes", "read_bytes"}
"""``robo_rl.files.read_bytes``, which is bounded."""
NO_FILES = {"Run.open", "session.open", "webbrowser.open", "wire.open", "world.wire.open", "opener.open"}
RESTRICTED = "robo_rl/adapters/foreign/parameters.py"
"""Reads a VecNormalize's statistics in a confined process, by an unpickler that makes arrays and nothing else."""
UNPICKLED = {"pickle", "dill", "cloudpickle", "shelve", "marshal", "joblib"}

CONFINED = """_free_cells:Image.open _of_npz:np.load _opened:hpy.File _read:parquet.ParquetFile
_task:parquet.ParquetFile _task_of_lines:file.open parsed:yaml.load parsed:zipfile.ZipFile
parsed_sb3:torch.load parsed_sb3:zipfile.ZipFile parsed_torch:torch.load trial:ElementTree.parse"""
"""In a process of its own, by ``robo_rl.files.sandbox``."""
TRIED = """__init__:bullet.loadURDF _named:ElementTree.parse _parsed:ElementTree.parse _read:mujoco.MjSpec.from_file
_record:onnxruntime.InferenceSession _session:onnxruntime.InferenceSession _speeds:ElementTree.parse _unpacked:np.load
named_files:ElementTree.parse of:onnxruntime.InferenceSession open_session:onnxruntime.InferenceSession read:np.load
record:onnxruntime.InferenceSession to_be_seen:ElementTree.parse what_to_do:path.read_bytes"""
"""After such a process has read the same file without harm (``require_bearable``, ``Bundle.read``), or of a graph that
was made of one."""
BOUNDED = """_is_sb3:zipfile.ZipFile _read_bytes:path.read_bytes is_script:zipfile.ZipFile load:safetensors.safe_open
open_own:os.fdopen open_own:os.open read_bytes:path.read_bytes recover:mmap.mmap
recover:path.open"""
"""After ``files.require_file``: a file of so many bytes, whose reader takes a few times as much."""
AGAIN = """_import:path.read_bytes _located:path.read_bytes attached_of:path.read_bytes
attached_of:task.card_file.read_bytes digest:path.read_bytes require_demonstrations:path.read_bytes
require_reset_states:path.read_bytes unchanged:path.read_bytes"""
"""After it was read by one of those above, or is the user's own code, which is run (docs/security.md)."""
OWN = """__init__:.open __init__:ctypes.CDLL __init__:np.memmap __init__:os.open
__init__:path.open _compile:built.open _cpuinfo:open _elements:.read_text _greatest_memory:Path.read_text
_has_fma:info.read_text
available:CONTROL_GROUP.read_text _library_of_corners:Path.read_text
_has_library:ctypes.CDLL _is_whole:library.read_bytes _lay_out:file.read_text
_leave_all:os.open _library:Path.read_text _machine:cpuinfo.read_text _opened:ctypes.CDLL _serve:os.open
_text:path.read_text _work:open _write:.read_text build:ctypes.CDLL class_of:task.read_text
compile_host:.read_text compile_native:.read_text do_GET:self.server.source.page.read_bytes
_held:open graph_seeds:located.read_bytes keep_time:ctypes.CDLL limit:open
load_model:mujoco.MjModel.from_xml_path log_seeds:path.read_bytes main:.read_text main:about.read_text
main:os.open main:Link.open module:Path.read_text new_key:os.fdopen new_key:os.open of_serial:os.open
stored:FILE.read_text package:file.read_text films:file.read_bytes pictures:path.read_bytes preemptible:.read_text
processor_flags:info.read_text replacing:partial.open replay:np.fromfile scripts:LOADER.read_text
shown:path.read_text write_device:.read_text write_onboard:.read_text write_robot:.read_text
definitions:file.read_text _load:ctypes.CDLL follow:os.open follow_gamepad:os.open
write_clip:partial.open write_project:path.read_bytes write_project:source.read_text write_project:template.read_text
_digest:file.read_bytes _read:file.read_bytes _versions:.read_bytes start:.read_text start:urdf.read_text"""
"""What robo-rl came with, has just written itself, compiled code that its user names, the system's files, devices."""
EXCHANGED = """_next_file:path.open _regular:os.fdopen _regular:os.open"""
"""The folder that a robot and its learner share: frames of a fixed size, each with a digest."""


@functools.cache
def parsed(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text())


@functools.cache
def opened() -> dict[str, list[str]]:
    """By "FUNCTION:CALL" the files in which a function opens something by a call."""
    done = subprocess.run(["git", "ls-files", *PRODUCT], cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        if line.endswith(".py"):
            for function, call in calls(parsed(line)):
                found.setdefault(f"{function}:{called(call)}", []).append(line)
    return found


def called(call: str) -> str:
    """A call's name, without what is in brackets."""
    return re.sub(r"[^A-Za-z_.]+", "", call.split("(")[0] + ("." + call.rsplit(".", 1)[1] if "(" in call else ""))


def calls(tree: ast.AST) -> list[tuple[str, str]]:
    """The innermost function of each call that opens a file, and the call."""
    found = []

    def walk(node: ast.AST, function: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
            if isinstance(child, ast.Call) and opens(child):
                found.append((function, ast.unparse(child.func)))
            walk(child, inner)

    walk(tree, "module")
    return found


def opens(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    if name in SAFE_ANYWHERE | NO_FILES:
        return False
    return name in LOADS or name.split(".")[-1] in OPENS


def test_every_place_that_opens_a_file_is_known() -> None:
    known = {name for words in (CONFINED, TRIED, BOUNDED, AGAIN, OWN, EXCHANGED) for name in words.split()}
    new = {name: found for name, found in opened().items() if name not in known}
    assert not new, f"{new}: a file of a stranger is read by files.sandbox, or by files.read_bytes; then say so here"


def test_what_is_known_is_there() -> None:
    known = {name for words in (CONFINED, TRIED, BOUNDED, AGAIN, OWN, EXCHANGED) for name in words.split()}
    assert known <= opened().keys()


def test_nothing_is_unpickled() -> None:
    done = subprocess.run(["git", "ls-files", *PRODUCT], cwd=ROOT, capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        if line.endswith(".py") and line != RESTRICTED:
            for node in ast.walk(parsed(line)):
                names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                assert not {name.split(".")[0] for name in names} & UNPICKLED, line


CALLS = """open(p) np.load(p) h5py.File(p) Image.open(p) mmap.mmap(f) ElementTree.parse(p) safetensors.safe_open(p)
yaml.load(p) zipfile.ZipFile(p) p.read_text() p.read_bytes() json.load(p)"""


def test_the_search_finds_what_opens_files() -> None:
    for text in CALLS.split():
        assert calls(ast.parse(f"def f(p):\n    {text}")) == [("f", text.partition("(")[0])]
    assert calls(ast.parse("def f(p):\n    read_bytes(p, 100)")) == []
