"""A graph as native code: one C++ loop over the batch, vectorised, compiled once and cached on disk.

The loop works on blocks of as many environments as the processor has float lanes, also at the end of the
batch, where a padded copy is used: every environment goes through the same instructions, whatever the
batch size and the number of threads, so results never depend on them.

Arrays are structures of arrays: each scalar input and output is a contiguous row of n floats.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sim.fuse.graph import MASKS, Graph, Node

# No -ffast-math: NaN and infinity must stay what they are.
FLAGS = "-std=gnu++17 -O2 -march=native -ffp-contract=fast -fno-math-errno -fno-trapping-math -fopenmp -fPIC -shared"

TEMPLATES = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "neg": "-{}",
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
static inline Vector minimum(Vector a, Vector b) { return a <= b ? a : b; }
static inline Vector maximum(Vector a, Vector b) { return a >= b ? a : b; }
static inline Vector absolute(Vector a) { return a < 0.f ? -a : a; }
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
// exp by range reduction and the polynomial of the Cephes library (expf), relative error below 2e-7.
static inline Vector exponential(Vector x) {
  Vector y = minimum(maximum(x, all(-87.f)), all(88.f));
  Vector n = (y * 1.44269504f + 12582912.f) - 12582912.f;
  Vector r = y - n * 0.693359375f + n * 2.12194440e-4f;
  Vector p = 1.9875691500e-4f * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.f;
  Mask exponent = (__builtin_convertvector(n, Mask) + 127) << 23;
  Vector scale;
  memcpy(&scale, &exponent, sizeof scale);
  return x == x ? p * scale : x;
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
    for index in _needed(graph, outputs):
        name, *operands = graph.operations[index]
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


def _needed(graph: Graph, outputs: Sequence[Node]) -> list[int]:
    needed: set[int] = set()
    pending = [node.index for node in outputs]
    while pending:
        index = pending.pop()
        if index not in needed:
            needed.add(index)
            name, *operands = graph.operations[index]
            if name not in ("const", "input"):
                pending += operands
    return sorted(needed)


def _literal(number: float) -> str:
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError(f"a fused function has the constant {number}; expected a finite number")
    return f"{number!r}f"


def load(code: str) -> Callable[[Any, Any, int, int, int], None]:
    """Compile ``code``, or find it in the cache, and return its ``run(tensors, strides, results, n, threads)``."""
    compiler, machine = _toolchain()
    key = hashlib.sha256("\n".join((code, FLAGS, machine)).encode()).hexdigest()[:32]
    library = cache_folder() / f"{key}.so"
    if not library.exists():
        _compile(compiler, code, library)
    run = ctypes.CDLL(str(library)).run
    run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int]
    run.restype = None
    return run


def cache_folder() -> Path:
    """Where compiled code is kept; safe to delete."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "robo-rl" / "fuse"


def _compile(compiler: str, code: str, library: Path) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        path = Path(folder, "step.cpp")
        path.write_text(code)
        built = Path(folder, "step.so")
        command = [compiler, *FLAGS.split(), str(path), "-o", str(built)]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            raise RuntimeError(f"{compiler} failed on generated code:\n{result.stderr[:2000]}")
        os.replace(built, library)  # atomic: another process sees all of it or nothing


@functools.cache
def _toolchain() -> tuple[str, str]:
    """The compiler, and a text that differs where its code can't be shared: compiler version and processor."""
    compiler = os.environ.get("CXX") or shutil.which("g++")
    if compiler is None:
        raise CompilerMissing("no C++ compiler found; install one (Debian, Ubuntu: apt install g++) or set CXX")
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    cpuinfo = Path("/proc/cpuinfo")
    features = ""
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        features = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return compiler, "\n".join((version, platform.machine(), features))
