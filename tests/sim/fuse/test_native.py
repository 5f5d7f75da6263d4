"""The native loop: accuracy of its own functions, random expressions against torch, and life without a compiler."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from robo_rl.sim.accelerate.fuse import empty_block, fuse
from robo_rl.sim.accelerate.fuse.native import PRELUDE, Code, CompilerFailed, CompilerMissing, cache_folder, flags, load
from tests.suite import representatives


@pytest.fixture(scope="module")
def functions():
    return fuse(lambda x: {"exp": torch.exp(x), "tanh": torch.tanh(x)})


def every_kind_of_float() -> np.ndarray:
    """Floats of all exponents and both signs, with many in between."""
    bits = np.arange(0, 1 << 32, 4099, dtype=np.uint64).astype(np.uint32)
    numbers = bits.view(np.float32)
    return numbers[np.isfinite(numbers)]


def test_exponential_is_exact_to_two_units_in_the_last_place_over_all_floats(functions):
    x = np.concatenate([every_kind_of_float(), np.linspace(-104, 89, 200_001, dtype=np.float32)])
    got = functions(torch.from_numpy(x))["exp"].numpy()
    with np.errstate(over="ignore", under="ignore"):
        exact = np.exp(x.astype(np.float64))
        rounded = exact.astype(np.float32)
    assert np.array_equal(np.isinf(got), np.isinf(rounded))
    finite = np.isfinite(rounded)
    assert (np.abs(got[finite] - exact[finite]) <= 2 * np.spacing(rounded[finite])).all()


def test_hyperbolic_tangent_is_exact_to_2e_7_over_all_floats(functions):
    x = np.concatenate([every_kind_of_float(), np.linspace(-10, 10, 200_001, dtype=np.float32)])
    got = functions(torch.from_numpy(x))["tanh"].numpy()
    exact = np.tanh(x.astype(np.float64))
    np.testing.assert_allclose(got, exact, rtol=3e-6, atol=1e-45)
    assert np.abs(got - exact).max() < 2e-7
    assert np.abs(got).max() <= 1


def test_exponential_and_tangent_have_the_limits_of_the_functions(functions):
    inf = float("inf")
    results = functions(torch.tensor([inf, -inf, 0.0, float("nan")]))
    assert results["exp"][:3].tolist() == [inf, 0.0, 1.0]
    assert results["tanh"][:3].tolist() == [1.0, -1.0, 0.0]
    assert results["exp"][3].isnan()
    assert results["tanh"][3].isnan()


@pytest.fixture(scope="module")
def vectorised():
    return fuse(lambda x: {"sin": torch.sin(x), "cos": torch.cos(x), "log": torch.log(x)})


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sine_and_cosine_are_exact_to_1e_7_over_all_floats(vectorised, name):
    x = np.concatenate([every_kind_of_float(), np.linspace(-8192, 8192, 400_001, dtype=np.float32)])
    got = vectorised(torch.from_numpy(x))[name].numpy()
    exact = getattr(np, name)(x.astype(np.float64))
    assert np.abs(got - exact).max() < 1e-7
    near = np.abs(x) < 1.0
    np.testing.assert_allclose(got[near], exact[near], rtol=3e-7, atol=1e-45)


def test_logarithm_is_exact_to_a_unit_in_the_last_place_over_all_floats(vectorised):
    x = np.concatenate([every_kind_of_float(), np.linspace(0.5, 2, 400_001, dtype=np.float32)])
    x = x[x > 0]
    got = vectorised(torch.from_numpy(x))["log"].numpy()
    exact = np.log(x.astype(np.float64))
    assert (np.abs(got - exact) <= np.spacing(np.abs(exact).astype(np.float32))).all()


def test_sine_cosine_and_logarithm_have_the_limits_of_the_functions(vectorised):
    inf = float("inf")
    results = vectorised(torch.tensor([inf, -inf, float("nan"), 0.0, -0.0, -1.0, 1.0]))
    assert [results[name][:3].isnan().all() for name in ("sin", "cos")] == [True, True]
    assert results["sin"][3:5].tolist() == [0.0, 0.0]
    assert results["cos"][3:5].tolist() == [1.0, 1.0]
    assert results["log"][[0, 3, 4, 6]].tolist() == [inf, -inf, -inf, 0.0]
    assert results["log"][[1, 2, 5]].isnan().all()


# --- random expressions -------------------------------------------------------------------------------------------

LEAVES = st.one_of(st.integers(0, 2), st.floats(-2, 2, width=16).map(float))
UNARY = {
    "neg": lambda x: -x,
    "sin": torch.sin,
    "tanh": torch.tanh,
    "exp": lambda x: torch.exp(torch.clamp(x, max=2.0)),
    "log": lambda x: torch.log(x * x + 0.5),
    "sqrt": lambda x: torch.sqrt(x * x + 0.5),
    "square": lambda x: torch.clamp(x, -10.0, 10.0).square(),
}
BINARY = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: torch.clamp(x, -10.0, 10.0) * torch.clamp(y, -10.0, 10.0),
    "div": lambda x, y: x / (y * y + 0.5),
    "minimum": torch.minimum,
    "maximum": torch.maximum,
    "where": lambda x, y: torch.where(x < y, x * 0.5, y),
}
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(sorted(UNARY)), inner), st.tuples(st.sampled_from(sorted(BINARY)), inner, inner)
    ),
    max_leaves=12,
)


def evaluate(expression, columns):
    """The value of an expression: a column, a constant, or an operation on expressions."""
    match expression:
        case int():
            return columns[expression]
        case float():
            return expression + 0.0 * columns[0]
        case (name, inner):
            return UNARY[name](evaluate(inner, columns))
        case (name, left, right):
            return BINARY[name](evaluate(left, columns), evaluate(right, columns))


@settings(max_examples=3, derandomize=True, deadline=None, database=None)
@given(st.lists(EXPRESSIONS, min_size=15, max_size=15))
def test_random_expressions_and_their_gradients_are_those_of_torch(expressions):
    def compute(x):
        return torch.stack([evaluate(e, x.unbind(-1)) for e in expressions], -1)

    start = torch.randn(33, 3, generator=torch.Generator().manual_seed(len(str(expressions))))
    mine, exact = start.clone().requires_grad_(), start.double().requires_grad_()
    got, expected = fuse(compute)(mine), compute(exact)
    scale = expected.detach().abs().clamp(min=1.0)
    assert ((got - expected).abs() / scale).max() < 1e-4
    got.mean().backward()
    expected.mean().backward()
    scale = max(1.0, exact.grad.abs().max())
    assert (mine.grad - exact.grad).abs().max() / scale < 1e-4


# --- compiler and cache -------------------------------------------------------------------------------------------


@pytest.fixture
def no_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)


def spring(state: tuple[Tensor, Tensor], stiffness: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor]:
    place, speed = state
    speed = speed - 0.1 * stiffness[:, None] * place
    return (place + 0.1 * speed, speed), torch.where(place > 0, 1.0, 0.0)


def spring_arguments() -> tuple[tuple[Tensor, Tensor], Tensor]:
    _, (place, speed, stiffness) = empty_block(19, [(2,), (2,), ()])
    for seed, part in enumerate((place, speed, stiffness)):
        part[:] = torch.randn(part.shape, generator=torch.Generator().manual_seed(seed))
    return (place, speed), stiffness


def test_without_a_compiler_calls_are_the_same_but_slow(no_compiler):
    with pytest.warns(UserWarning, match=r"no C\+\+ compiler 'g\+\+' found; install one .* many times slower"):
        (place, _), _ = fuse(spring)(*spring_arguments())
    expected, _ = spring(*spring_arguments())
    assert torch.equal(place, expected[0])


@pytest.mark.filterwarnings("ignore:no C")
def test_without_a_compiler_bound_calls_and_gradients_are_the_same(monkeypatch, tmp_path):
    found = []
    for compiler in (None, tmp_path / "nothing-here"):
        if compiler:
            monkeypatch.setenv("CXX", str(compiler))
        function = fuse(spring)
        state, stiffness = spring_arguments()
        (block,), (parts,) = function.results(state, stiffness)
        function.bind(state, stiffness, out=parts)()
        cotangents = (state, torch.zeros(2, 19).mT)
        gradient, room = empty_block(19, [state[1].shape[1:], stiffness.shape[1:]])
        wanted = (state[1], stiffness)
        function.bind_gradient(state, stiffness, cotangents=cotangents, wanted=wanted, out=room)()
        found.append((block, gradient))
        assert torch.equal(parts[0][0].mT, block[:2])
    for native, eager in zip(*found, strict=True):
        np.testing.assert_allclose(native, eager, rtol=1e-5, atol=1e-6)


def test_a_compiler_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("CXX", "/nowhere/g++ -m64")
    with pytest.raises(CompilerMissing, match=r"no C\+\+ compiler '/nowhere/g\+\+' found"):
        load(Code("nothing"))


@pytest.mark.parametrize("name", ["false", "'", "python3 -c 'import sys; sys.exit(1)'"])
def test_a_program_that_is_no_compiler_is_named(monkeypatch, name):
    monkeypatch.setenv("CXX", name)
    with pytest.raises(CompilerMissing, match=r"is no C\+\+ compiler: it tells no version|the variable CXX is"):
        load(Code("nothing"))
    monkeypatch.setenv("CXX", "true")  # which tells its version
    with pytest.raises(CompilerFailed, match="it wrote no library"):
        load(Code("nothing"))


def test_a_compiler_with_options_is_used_and_its_errors_are_shown(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CXX", "g++ -DANSWER=42")
    with pytest.raises(CompilerFailed, match=r"(?s)g\+\+ failed:.*error"):
        load(Code("this is not C++;"))
    code = 'extern "C" void run(float *table, void *, void *, float *to, void *, long, int) { *to = ANSWER + *table; }'
    loop = load(Code(code + ' extern "C" void run_rows() {}', (0.5,)))
    answer = torch.zeros(1)
    loop.run(0, 0, answer.data_ptr(), 0, 1, 1)
    assert answer == 42.5


def test_compiled_code_is_kept_in_the_cache_folder_and_found_again(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    double = fuse(lambda x: 2 * x)
    assert torch.equal(double(torch.ones(3)), torch.full((3,), 2.0))
    (library,) = cache_folder().iterdir()
    assert cache_folder() == tmp_path / "robo-rl" / "fuse"
    before = library.stat().st_mtime_ns
    assert torch.equal(fuse(double.function)(torch.ones(3)), torch.full((3,), 2.0))
    assert [file.stat().st_mtime_ns for file in cache_folder().iterdir()] == [before]


def test_another_constant_needs_no_other_code(monkeypatch, tmp_path):
    """Compiled once for all; each function keeps its own constants, also for the gradient."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def made(mass: float, drag: float):
        return fuse(lambda x: torch.tanh(x * (2.0 * drag)) / mass - mass)

    functions = {(mass, drag): made(mass, drag) for mass, drag in ((1.7, 0.3), (3.5, 0.7), (7.0, 1.1))}
    for (mass, drag), function in functions.items():
        x = torch.linspace(-1, 1, 50, requires_grad=True)
        y = function(x)
        y.sum().backward()
        exact = torch.tanh(x.detach().double() * (2.0 * drag))
        torch.testing.assert_close(y.detach().double(), exact / mass - mass, atol=1e-6, rtol=1e-6)
        torch.testing.assert_close(x.grad.double(), (1 - exact**2) * 2.0 * drag / mass, atol=1e-6, rtol=1e-5)
    assert len(list(cache_folder().iterdir())) == 2


DAMAGES = ["cut", "empty", "bit flipped", "zeros", "of an earlier release"]


@pytest.mark.parametrize("damage", representatives(DAMAGES, ["bit flipped", "of an earlier release"]))
def test_damaged_code_in_the_cache_is_compiled_again(monkeypatch, tmp_path, damage):
    """In a process of its own, which a damaged library would end."""
    script = """
import torch
from robo_rl.sim.accelerate.fuse import fuse
assert torch.equal(fuse(lambda x: 3 * x)(torch.ones(3)), torch.full((3,), 3.0))
"""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (library,) = cache_folder().iterdir()
    whole = library.read_bytes()
    middle = len(whole) // 2
    library.write_bytes(
        {
            "cut": whole[:middle],
            "empty": b"",
            "bit flipped": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
            "zeros": whole[:4096] + bytes(len(whole) - 4096),
            "of an earlier release": whole[:-32],
        }[damage]
    )
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
    assert [file.read_bytes() for file in cache_folder().iterdir()] == [whole]


def test_clang_knows_all_options_for_macos(tmp_path: Path) -> None:
    clang = shutil.which("clang")
    if clang is None:
        pytest.skip("clang is missing: apt-get install clang")
    (tmp_path / "step.cpp").write_text('extern "C" int one() { return 1; }\n')
    options = [option for option in flags("Darwin", "arm64") if option != "-shared"]  # needs Apple's linker
    words = [
        clang,
        "--target=arm64-apple-macos13",
        "-Werror",
        "-nostdinc++",
        *options,
        "-c",
        "step.cpp",
        "-o",
        "step.o",
    ]
    told = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr


EVERY_FUNCTION = r"""
#include <stdio.h>
int main() {
  uint32_t z = 12345;
  uint64_t digest = 1469598103934665603u;  // FNV-1a
  for (int block = 0; block < 64000 / LANES; block++) {
    Vector x, y;
    Word w;
    for (int l = 0; l < LANES; l++) {
      x[l] = (float)(int32_t)(z = z * 1664525u + 1013904223u) * 1e-5f;
      y[l] = (float)((z = z * 1664525u + 1013904223u) >> 8) * 1e-6f;
      w[l] = z;
    }
    const Vector found[] = {root(y), multiply_add(x, y, y), sine(x), cosine(x), exponential(y), logarithm(y),
                            hyperbolic_tangent(x)};
    const Word high = high_half(w, 0xd2511f53u);
    for (int l = 0; l < LANES; l++) {
      if (high[l] != (uint32_t)((uint64_t)w[l] * 0xd2511f53u >> 32)) return 1;
      for (Vector f : found) {
        uint32_t bits;
        const float number = f[l];
        memcpy(&bits, &number, sizeof bits);
        digest = (digest ^ bits) * 1099511628211u;
      }
      Mask one = {};
      if (any(one)) return 1;
      one[l] = 4;
      if (!any(one)) return 1;
    }
  }
  printf("%d %016llx", LANES, (unsigned long long)digest);
}
"""
"""Roots, sines and so on of some numbers: the lanes, and a digest of all results, lane after lane."""


def compiled(folder: Path, compiler: str, machine: str) -> tuple[int, str]:
    """What the program tells that is compiled so."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is missing")
    (folder / "all.cpp").write_text(PRELUDE + EVERY_FUNCTION)
    own = ("-march=native", "-shared", "-fopenmp", "-fschedule-insns", "-fsched-pressure")
    options = [option for option in flags() if option not in own]
    subprocess.run([compiler, *options, f"-march={machine}", "all.cpp", "-o", "all"], cwd=folder, check=True)
    lanes, digest = subprocess.run([folder / "all"], check=True, capture_output=True, text=True).stdout.split()
    return int(lanes), digest


@pytest.mark.skipif(platform.machine() != "x86_64", reason="processors with AVX")
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize(("machine", "lanes"), [("x86-64-v4", 16), ("x86-64-v3", 8)])
def test_functions_of_vectors_give_the_same_bits_at_all_widths_by_all_compilers(
    compiler: str, machine: str, lanes: int, tmp_path: Path
) -> None:
    """Fused multiplications round alike in all of them."""
    needed = "avx512dq" if lanes == 16 else "avx2"
    if needed not in Path("/proc/cpuinfo").read_text():
        pytest.skip(f"this processor has no {needed}")
    assert compiled(tmp_path, compiler, machine) == (lanes, compiled(tmp_path, "g++", "x86-64-v3")[1])


@pytest.mark.skipif(platform.machine() != "x86_64", reason="a processor that is known to have 4 lanes")
def test_functions_of_vectors_need_no_instructions_of_a_newer_processor(tmp_path: Path) -> None:
    """Without fused multiplications, so with other bits; by both compilers alike."""
    lanes, digest = compiled(tmp_path, "g++", "x86-64")
    assert lanes == 4
    assert compiled(tmp_path, "clang++", "x86-64") == (4, digest)
