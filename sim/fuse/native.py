"""A graph as native code: one C++ loop over the batch, vectorised, compiled once and cached on disk.

The loop works on blocks of as many environments as the processor has float lanes, also at the end of the
batch, where a padded copy is used. Which products and sums are rounded once, by a fused multiply-add, is
decided here and not by the compiler. So every environment goes through the same arithmetic, whatever the
batch size and the number of threads, and results never depend on them.

Arrays are structures of arrays: each scalar input and output is a contiguous row of n floats.
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
from typing import Any

from sim.fuse.graph import MASKS, Graph, Node, needed

# No -ffast-math: NaN and infinity must stay what they are. Scheduling for register pressure gains a tenth: the
# loop is one long block with more values alive than there are registers.
FLAGS = (
    "-std=gnu++17 -O2 -march=native -fschedule-insns -fsched-pressure "
    "-ffp-contract=off -fno-math-errno -fno-trapping-math -fopenmp -fPIC -shared"
)

TEMPLATES = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "neg": "-{}",
    "mul add": "multiply_add({}, {}, {})", "mul sub": "multiply_add({}, {}, -{})",
    "sub mul": "multiply_add(-{}, {}, {})",
    "min": "minimum({}, {})", "max": "maximum({}, {})", "where": "{} ? {} : {}",
    "lt": "{} < {}", "le": "{} <= {}", "gt": "{} > {}", "ge": "{} >= {}",
    "and": "{} & {}", "or": "{} | {}", "not": "~{}",
    "abs": "absolute({})", "sqrt": "root({})", "exp": "exponential({})", "tanh": "hyperbolic_tangent({})",
    "log": "lanes<std::log>({})", "sin": "lanes<std::sin>({})", "cos": "lanes<std::cos>({})",
}  # fmt: skip

PRELUDE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__AVX__)
#include <immintrin.h>
#endif
#if defined(__AVX512F__)
constexpr int LANES = 16;
#elif defined(__AVX__)
constexpr int LANES = 8;
#else
constexpr int LANES = 4;
#endif
typedef float Vector __attribute__((vector_size(4 * LANES)));
typedef int32_t Mask __attribute__((vector_size(4 * LANES)));
static inline Vector load(const float *p) { Vector v; memcpy(&v, p, sizeof v); return v; }
static inline void store(float *p, Vector v) { memcpy(p, &v, sizeof v); }
static inline void store(float *p, Mask m) { store(p, m ? Vector{} + 1.f : Vector{}); }
static inline Vector all(float x) { return x - Vector{}; }
// NaN if either is; the test of a costs nothing where a is a constant.
static inline Vector minimum(Vector a, Vector b) { return (a <= b) | (a != a) ? a : b; }
static inline Vector maximum(Vector a, Vector b) { return (a >= b) | (a != a) ? a : b; }
static inline Vector absolute(Vector a) { return (Vector)((Mask)a & 0x7fffffff); }
static inline Vector multiply_add(Vector a, Vector b, Vector c) {
#if defined(__AVX512F__)
  return (Vector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX__) && defined(__FMA__)
  return (Vector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}
template <float (*f)(float)> static inline Vector lanes(Vector a) {
  for (int i = 0; i < LANES; i++) a[i] = f(a[i]);
  return a;
}
static inline Vector root(Vector a) {
#if defined(__AVX512F__)
  return (Vector)_mm512_sqrt_ps((__m512)a);
#elif defined(__AVX__)
  return (Vector)_mm256_sqrt_ps((__m256)a);
#else
  return lanes<std::sqrt>(a);
#endif
}
// exp by range reduction and the polynomial of the Cephes library (expf), relative error below 2e-7. Two to the
// n is applied in halves, so that the result overflows to infinity and underflows to 0 where it should.
static inline Vector power_of_two(Mask n) { return (Vector)((n + 127) << 23); }
static inline Vector exponential(Vector x) {
  Vector y = minimum(all(89.f), maximum(all(-104.f), x));
  Vector n = multiply_add(y, all(1.44269504f), all(12582912.f)) - 12582912.f;
  Vector r = multiply_add(n, all(-0.693359375f), y);
  r = multiply_add(n, all(2.12194440e-4f), r);
  Vector p = multiply_add(all(1.9875691500e-4f), r, all(1.3981999507e-3f));
  p = multiply_add(p, r, all(8.3334519073e-3f));
  p = multiply_add(p, r, all(4.1665795894e-2f));
  p = multiply_add(p, r, all(1.6666665459e-1f));
  p = multiply_add(p, r, all(5.0000001201e-1f));
  p = multiply_add(p * r, r, r) + 1.f;
  Mask whole = __builtin_convertvector(n, Mask), half = whole >> 1;
  return x == x ? p * power_of_two(half) * power_of_two(whole - half) : x;
}
static inline Vector hyperbolic_tangent(Vector x) {
  Vector small = x * (1.f - x * x * (1.f / 3.f - x * x * (2.f / 15.f)));
  Vector large = 1.f - 2.f / (exponential(2.f * x) + 1.f);
  return absolute(x) < 0.04f ? small : large;
}
"""

LOOP = r"""
constexpr int TENSORS = {tensors}, INPUTS = {inputs}, OUTPUTS = {outputs};
static const int size[] = {{{sizes}}};
static const bool shared[] = {{{shared}}};
static void compute(const float *const *in, float *const *out, int64_t begin, int64_t end) {{
{constants}
  for (int64_t e = begin; e < end; e += LANES) {{
{body}
  }}
}}
extern "C" void run(const float *const *from, const int64_t *stride, float *to, int64_t n, int threads) {{
  const int64_t blocks = n / LANES, full = blocks * LANES, left = (n - full) * sizeof(float);
  const float *in[INPUTS];
  float *out[OUTPUTS], rest_in[INPUTS][LANES], rest_out[OUTPUTS][LANES];
  for (int t = 0, i = 0; t < TENSORS; t++)
    for (int k = 0; k < size[t]; k++) in[i++] = from[t] + k * stride[t];
  for (int o = 0; o < OUTPUTS; o++) out[o] = to + o * n;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (int t = 0; t < threads; t++) compute(in, out, blocks * t / threads * LANES, blocks * (t + 1) / threads * LANES);
  if (full == n) return;
  for (int t = 0, i = 0; t < TENSORS; t++)
    for (int k = 0; k < size[t]; k++, i++)
      if (!shared[t]) {{
        memset(rest_in[i], 0, sizeof rest_in[i]);
        memcpy(rest_in[i], in[i] + full, left);
        in[i] = rest_in[i];
      }}
  for (int o = 0; o < OUTPUTS; o++) out[o] = rest_out[o];
  compute(in, out, 0, LANES);
  for (int o = 0; o < OUTPUTS; o++) memcpy(to + o * n + full, rest_out[o], left);
}}
"""


class CompilerMissing(RuntimeError):
    """There is no C++ compiler on this machine."""


def source(graph: Graph, outputs: Sequence[Node], sizes: Sequence[int], shared: Sequence[bool]) -> str:
    """C++ that computes ``outputs`` for every environment.

    The graph's inputs are the numbers of some tensors in turn: ``sizes`` numbers each per environment, or
    per batch where ``shared``.
    """
    alike = [flag for flag, size in zip(shared, sizes, strict=True) for _ in range(size)]
    constants, body = [], []
    for index, name, operands in _plan(graph, outputs):
        if name == "const":
            constants.append(f"  const Vector v{index} = all({_literal(operands[0])});")
        elif name == "input" and alike[operands[0]]:
            constants.append(f"  const Vector v{index} = all(*in[{operands[0]}]);")
        elif name == "input":
            body.append(f"    const Vector v{index} = load(in[{operands[0]}] + e);")
        else:
            kind = "Mask" if name in MASKS else "Vector"
            value = TEMPLATES[name].format(*(f"v{operand}" for operand in operands))
            body.append(f"    const {kind} v{index} = {value};")
    body += [f"    store(out[{slot}] + e, v{node.index});" for slot, node in enumerate(outputs)]
    return PRELUDE + LOOP.format(
        tensors=len(sizes),
        inputs=len(alike),
        outputs=len(outputs),
        sizes=", ".join(map(str, sizes)),
        shared=", ".join("true" if flag else "false" for flag in shared),
        constants="\n".join(constants),
        body="\n".join(body),
    )


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


def _literal(number: float) -> str:
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError(f"a fused function has the constant {number}; expected a finite number")
    return f"{number!r}f"


def load(code: str) -> Callable[[Any, Any, int, int, int], None]:
    """Compile ``code``, or find it in the cache, and return its ``run(tensors, strides, results, n, threads)``."""
    run = build(code).run
    run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int]
    run.restype = None
    return run


def build(code: str, *options: str) -> ctypes.CDLL:
    """Compile C++ ``code`` with further ``options`` of the compiler, or find it in the cache, and load it."""
    compiler = _compiler()
    key = hashlib.sha256("\n".join((code, FLAGS, *options, _machine(compiler))).encode()).hexdigest()[:32]
    library = cache_folder() / f"{key}.so"
    if not library.exists():
        _compile(compiler, code, options, library)
    return ctypes.CDLL(str(library))


def cache_folder() -> Path:
    """Where compiled code is kept; safe to delete."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "robo-rl" / "fuse"


def _compile(compiler: tuple[str, ...], code: str, options: Sequence[str], library: Path) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        path = Path(folder, "step.cpp")
        path.write_text(code)
        built = Path(folder, "step.so")
        command = [*compiler, *FLAGS.split(), str(path), "-o", str(built), *options]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            raise RuntimeError(f"{compiler[0]} failed:\n{result.stderr[:2000]}")
        os.replace(built, library)  # atomic: another process sees all of it or nothing


def _compiler() -> tuple[str, ...]:
    """The command that compiles: its path, and its options if the variable CXX has some."""
    name, *options = shlex.split(os.environ.get("CXX") or "g++")
    path = shutil.which(name)
    if path is None:
        hint = "install one (Debian, Ubuntu: apt install g++) or set CXX"
        raise CompilerMissing(f"no C++ compiler '{name}' found; {hint}")
    return path, *options


@functools.cache
def _machine(compiler: tuple[str, ...]) -> str:
    """A text that differs where compiled code can't be shared: compiler version and processor."""
    version = subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=True).stdout
    cpuinfo = Path("/proc/cpuinfo")
    features = ""
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        features = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return "\n".join((" ".join(compiler), version, platform.machine(), features))
