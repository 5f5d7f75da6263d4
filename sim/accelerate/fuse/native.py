"""A graph as native code: one C++ loop over the batch, vectorised, compiled once and cached on disk.

The loop works on blocks of as many environments as the processor has float lanes, also at the end of the
batch, where a padded copy is used. Which products and sums are rounded once, by a fused multiply-add, is
decided here and not by the compiler. So every environment goes through the same arithmetic, whatever the
batch size and the number of threads, and results never depend on them.

Constants are a table that is given to the loop, not text in it: another robot's figures, or a card with one number
changed, use the same code as long as the same operations remain.

Arrays are structures of arrays: each scalar input and output is a contiguous row of n floats. Functions of vectors are
in ``vector.h``, and the processor's instructions that they need in ``instructions.h``.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from robo_rl.sim.accelerate.fuse.graph import EXTREMES, MASKS, RANDOM, Graph, Node, needed


def flags(system: str = platform.system(), machine: str = platform.machine()) -> tuple[str, ...]:
    """The compiler's options: GCC's on Linux, Apple's clang's on macOS, which has no OpenMP: one thread there.

    No -ffast-math: NaN and infinity must stay what they are. Scheduling for register pressure gains a tenth: the loop
    is one long block with more values alive than there are registers.
    """
    own = ["-march=native", "-fschedule-insns", "-fsched-pressure"], ["-fopenmp"]
    if system == "Darwin":
        own = ["-mcpu=apple-m1" if machine == "arm64" else "-march=native"], []
    numbers = ["-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
    return ("-std=gnu++17", "-O2", *own[0], *numbers, *own[1], "-fPIC", "-shared")


LONG = 8000
"""Lines of code from which on its scheduling is left out: the time of that grows with the square of the block's length,
and is half of all that the compiler takes at 15,000 lines (153 s and 75 s of a core: what a critic of car-traffic-lidar
sees, which takes 1.9 to 2.1 µs for each robot without it, 1.6 with it)."""
UNSCHEDULED = ("-fno-schedule-insns",) if "-fschedule-insns" in flags() else ()

TEMPLATES = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "neg": "-{}",
    "mul add": "multiply_add({}, {}, {})", "mul sub": "multiply_add({}, {}, -{})",
    "sub mul": "multiply_add(-{}, {}, {})",
    "min": "minimum({}, {})", "max": "maximum({}, {})",
    "at most": "minimum({1}, {0})", "at least": "maximum({1}, {0})", "where": "{} ? {} : {}",
    "lt": "{} < {}", "le": "{} <= {}", "gt": "{} > {}", "ge": "{} >= {}",
    "and": "{} & {}", "or": "{} | {}", "not": "~{}",
    "abs": "absolute({})", "sqrt": "root({})", "exp": "exponential({})", "tanh": "hyperbolic_tangent({})",
    "log": "logarithm({})", "sin": "sine({})", "cos": "cosine({})",
}  # fmt: skip

PRELUDE = "".join(Path(__file__).with_name(name).read_text() for name in ("instructions.h", "vector.h"))


LOOP = r"""
constexpr int TENSORS = {tensors}, INPUTS = {inputs}, RESULTS = {results}, OUTPUTS = {outputs};
constexpr int PARTS = 8;  // of the batch for each thread: whichever is free takes the next one, as cores may be busy
static const int size[] = {{{sizes}}}, count[] = {{{counts}}};
static const bool shared[] = {{{shared}}}, truths[] = {{{truths}}};
struct Row {{ char *at; char width; }};
static __attribute__((noinline)) void compute(const float *table, const float *const *in, const Row *out, int64_t begin,
                                              int64_t end) {{
{constants}
  for (int64_t e = begin; e < end; e += LANES) {{
{body}
  }}
}}
// Where the numbers of tensors lie, and room for some environments of each.
struct Rows {{
  const float *in[INPUTS];
  Row out[OUTPUTS];
  Rows(const float *const *from, const int64_t *from_stride, char *const *to, const int64_t *to_stride) {{
    for (int t = 0, i = 0; t < TENSORS; t++)
      for (int k = 0; k < size[t]; k++) in[i++] = from[t] + k * from_stride[t];
    for (int t = 0, o = 0; t < RESULTS; t++)
      for (int k = 0; k < count[t]; k++, o++) {{
        const char width = truths[t] ? 1 : sizeof(float);
        out[o] = Row{{to[t] + k * to_stride[t] * width, width}};
      }}
  }}
}};
struct Room {{
  float in[INPUTS][LANES], out[OUTPUTS][LANES];
  const float *from[INPUTS];
  Row to[OUTPUTS];
  Room(const Rows &rows) {{
    for (int t = 0, i = 0; t < TENSORS; t++)
      for (int k = 0; k < size[t]; k++, i++) from[i] = shared[t] ? rows.in[i] : in[i];
    for (int o = 0; o < OUTPUTS; o++) to[o] = Row{{(char *)out[o], rows.out[o].width}};
  }}
}};
extern "C" void run(const float *table, const float *const *from, const int64_t *from_stride, char *const *to,
                    const int64_t *to_stride, int64_t n, int threads) {{
  const int64_t blocks = n / LANES, full = blocks * LANES, left = n - full;
  const Rows rows(from, from_stride, to, to_stride);
  const int64_t parts = threads > 1 ? threads * PARTS : 1;
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (threads > 1)
  for (int64_t p = 0; p < parts; p++)
    compute(table, rows.in, rows.out, blocks * p / parts * LANES, blocks * (p + 1) / parts * LANES);
  if (full == n) return;
  Room room(rows);
  for (int i = 0; i < INPUTS; i++) {{
    if (room.from[i] != room.in[i]) continue;
    memset(room.in[i], 0, sizeof room.in[i]);
    memcpy(room.in[i], rows.in[i] + full, left * sizeof(float));
  }}
  compute(table, room.from, room.to, 0, LANES);
  for (int o = 0; o < OUTPUTS; o++) {{
    const int width = rows.out[o].width;
    memcpy(rows.out[o].at + full * width, room.to[o].at, left * width);
  }}
}}
extern "C" void run_rows(const float *table, const float *const *from, const int64_t *from_stride, char *const *to,
                         const int64_t *to_stride, const int64_t *ids, int64_t m, int threads) {{
  const Rows rows(from, from_stride, to, to_stride);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 4) if (threads > 1)
  for (int64_t b = 0; b < m; b += LANES) {{
    const int here = m - b < LANES ? m - b : LANES;
    Room room(rows);
    for (int i = 0; i < INPUTS; i++)
      for (int l = 0; room.from[i] == room.in[i] && l < LANES; l++)
        room.in[i][l] = rows.in[i][ids[b + (l < here ? l : 0)]];
    compute(table, room.from, room.to, 0, LANES);
    for (int o = 0; o < OUTPUTS; o++)
      for (int l = 0; l < here; l++)
        if (rows.out[o].width == 1) rows.out[o].at[ids[b + l]] = room.to[o].at[l];
        else ((float *)rows.out[o].at)[ids[b + l]] = room.out[o][l];
  }}
}}
"""


DIGEST_BYTES = hashlib.sha256().digest_size


class CompilerMissing(ValueError):
    """There is no C++ compiler on this machine."""


class CompilerFailed(ValueError):
    """The compiler refused the code, or wrote no library. The message has its first lines."""


class Code(NamedTuple):
    """C++, and the constants that it is given."""

    text: str
    constants: tuple[float, ...] = ()


def source(graph: Graph, outputs: Sequence[Sequence[Node]], sizes: Sequence[int], shared: Sequence[bool]) -> Code:
    """C++ that computes ``outputs``, the numbers or truth values of some tensors in turn, for every environment.

    The graph's inputs are the numbers of some other tensors: ``sizes`` numbers each per environment, or per batch
    where ``shared``. Truth values are written as bytes.
    """
    alike = [flag for flag, size in zip(shared, sizes, strict=True) for _ in range(size)]
    every = [node for nodes in outputs for node in nodes]
    constants, body, drawn = [], [], set()
    table: list[float] = []
    place: dict[int, int] = {}
    for node, name, operands in _plan(graph, every):
        index = place[node] = len(place)  # of those that are needed: folded constants leave no gap
        if name not in ("const", "input"):
            operands = [place[operand] for operand in operands]
        if name == "const":
            constants.append(f"  const Vector v{index} = all(table[{len(table)}]);")
            table.append(operands[0])
        elif name == "input" and alike[operands[0]]:
            constants.append(f"  const Vector v{index} = all(in[{operands[0]}][0]);")
        elif name == "input":
            body.append(f"    const Vector v{index} = load(in[{operands[0]}] + e);")
        elif name in RANDOM:  # one call gives four numbers
            four = "r" + "_".join(map(str, operands))
            if four not in drawn:
                body.append(f"    Vector {four}[4]; random({', '.join([four, *(f'v{k}' for k in operands)])});")
                drawn.add(four)
            body.append(f"    const Vector v{index} = {four}[{RANDOM.index(name)}];")
        else:
            kind = "Mask" if name in MASKS else "Vector"
            value = _expression(name, [f"v{operand}" for operand in operands])
            body.append(f"    const {kind} v{index} = {value};")
    truths = [nodes[0].is_mask for nodes in outputs for _ in nodes]
    kinds = ["uint8_t" if truth else "float" for truth in truths]
    stores = zip(every, kinds, strict=True)
    body += [
        f"    store(({kind} *)out[{slot}].at + e, v{place[node.index]});" for slot, (node, kind) in enumerate(stores)
    ]
    text = PRELUDE + LOOP.format(
        tensors=len(sizes),
        inputs=len(alike),
        results=len(outputs),
        outputs=len(every),
        sizes=_list(sizes),
        counts=_list([len(nodes) for nodes in outputs]),
        shared=_list(shared),
        truths=_list([bool(nodes) and nodes[0].is_mask for nodes in outputs]),
        constants="\n".join(constants),
        body="\n".join(body),
    )
    return Code(text, tuple(table))


def _expression(name: str, operands: Sequence[str]) -> str:
    if name not in EXTREMES:
        return TEMPLATES[name].format(*operands)
    rest = list(operands)  # by halves: GCC takes minutes for a chain of as many as a lidar has beams
    while len(rest) > 1:
        pairs = [TEMPLATES[EXTREMES[name]].format(a, b) for a, b in zip(rest[::2], rest[1::2], strict=False)]
        rest = pairs + rest[2 * len(pairs) :]
    return rest[0]


def _list(values: Sequence[int | bool]) -> str:
    return ", ".join(str(int(value)) for value in values)


def _plan(graph: Graph, outputs: Sequence[Node]) -> list[tuple[int, str, list]]:
    """The operations that ``outputs`` need, in order. A product that only sums use is computed within them."""
    used = {node.index for node in outputs}
    whole, everything = set(used), needed(outputs)  # whole: what is used otherwise than as a term of a sum
    for index in everything:
        name, *operands = graph.operations[index]
        whole.update(operands if name not in ("const", "input", "add", "sub") else ())

    plan: list[tuple[int, str, list]] = []
    for index in sorted(everything, reverse=True):
        if index not in used:
            continue
        name, *operands = graph.operations[index]
        if name in ("add", "sub"):
            name, operands = _fused_sum(graph, name, operands, whole)
        if name not in ("const", "input"):
            used.update(operands)
        plan.append((index, name, operands))
    return plan[::-1]


def _fused_sum(graph: Graph, name: str, terms: list[int], whole: set[int]) -> tuple[str, list[int]]:
    """``terms[0]`` plus or minus ``terms[1]``, with a term that is a product merged into it, the second if both are."""
    for place in (1, 0):
        kind, *factors = graph.operations[terms[place]]
        if kind == "mul" and terms[place] not in whole:
            merged = "mul add" if name == "add" else "mul sub" if place == 0 else "sub mul"
            return merged, [*factors, terms[1 - place]]
    return name, terms


class Loop(NamedTuple):
    """Compiled code: over all environments, and over some of them."""

    run: Callable[[Any, Any, Any, Any, int, int], None]
    """(tensors, strides, results, strides, n, threads)."""
    run_rows: Callable[[Any, Any, Any, Any, int, int, int], None]
    """(tensors, strides, results, strides, address of the environments' numbers, how many, threads)."""


def load(code: Code) -> Loop:
    """Compile ``code``, or find it in the cache."""
    library = build(code.text, *(UNSCHEDULED if code.text.count("\n") > LONG else ()))
    tensors = [ctypes.c_void_p] * 5
    library.run.argtypes = [*tensors, ctypes.c_int64, ctypes.c_int]
    library.run_rows.argtypes = [*tensors, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int]
    library.run.restype = library.run_rows.restype = None
    table = (ctypes.c_float * len(code.constants))(*code.constants)
    return Loop(functools.partial(library.run, table), functools.partial(library.run_rows, table))


def build(code: str, *options: str) -> ctypes.CDLL:
    """Compile C++ ``code`` with further ``options`` of the compiler, or find it in the cache, and load it."""
    compiler = _compiler()
    key = hashlib.sha256("\n".join((code, " ".join(flags()), *options, _machine(compiler))).encode()).hexdigest()[:32]
    library = cache_folder() / f"{key}.so"
    if not _is_whole(library):
        _compile(compiler, code, options, library)
    return ctypes.CDLL(str(library))


def _is_whole(library: Path) -> bool:
    """Whether a file in the cache ends with the SHA-256 of what is before: to load a damaged one ends the process.

    What is behind the last section of an ELF file is nobody's.
    """
    if not library.is_file():
        return False
    data = library.read_bytes()
    return data[-DIGEST_BYTES:] == hashlib.sha256(data[:-DIGEST_BYTES]).digest()


def cache_folder(kind: str = "fuse") -> Path:
    """Where compiled code is kept, or what else of a ``kind`` takes long to make; safe to delete."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "robo-rl" / kind


def _compile(compiler: tuple[str, ...], code: str, options: Sequence[str], library: Path) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        path = Path(folder, "step.cpp")
        path.write_text(code)
        built = Path(folder, "step.so")
        command = [*compiler, *flags(), str(path), "-o", str(built), *options]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0 or not built.is_file():
            said = result.stderr[:2000] or "it wrote no library and said nothing"
            raise CompilerFailed(f"{compiler[0]} failed:\n{said}")
        with built.open("r+b") as file:
            digest = hashlib.sha256(file.read()).digest()
            file.write(digest)
        os.replace(built, library)  # atomic: another process sees all of it or nothing


def _compiler() -> tuple[str, ...]:
    """The command that compiles: its path, and its options if the variable CXX has some."""
    try:
        name, *options = shlex.split(os.environ.get("CXX") or "g++") or ["g++"]
    except ValueError as error:
        raise CompilerMissing(f"the variable CXX is {os.environ['CXX']!r}: {error}") from None
    path = shutil.which(name)
    if path is None:
        hint = "install one (Debian, Ubuntu: apt install g++) or set CXX"
        raise CompilerMissing(f"no C++ compiler '{name}' found; {hint}")
    return path, *options


@functools.cache
def _machine(compiler: tuple[str, ...]) -> str:
    """A text that differs where compiled code can't be shared: compiler version and processor."""
    asked = subprocess.run([*compiler, "--version"], capture_output=True, text=True, errors="replace")
    if asked.returncode != 0 or not asked.stdout:
        hint = "install one (Debian, Ubuntu: apt install g++) or set CXX"
        raise CompilerMissing(f"'{' '.join(compiler)}' is no C++ compiler: it tells no version; {hint}")
    cpuinfo = Path("/proc/cpuinfo")
    features = ""
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        features = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return "\n".join((" ".join(compiler), asked.stdout, platform.machine(), features))
