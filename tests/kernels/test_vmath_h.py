"""vmath.h against numpy and libm in double precision: units in the last place, and the edges."""

import ctypes
import math
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.kernels.harness import INCLUDES, WIDTHS, Array, compile_c, width

FLAGS = ["-fno-math-errno", "-fno-trapping-math"]
UNARY = ["exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos",
         "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "erf_inv",
         "lgamma", "digamma", "i0e", "i1e", "sigmoid", "floor", "ceil", "round", "trunc", "sign",
         "abs"]
OWN = ["exp", "expm1", "log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
       "tanh", "asinh", "acosh", "atanh", "erf", "sigmoid"]
BINARY = ["max", "min", "pow", "atan2", "rem", "mod", "polygamma", "igamma", "igammac",
          "next_after"]
TESTS = ["is_nan", "is_inf", "is_finite"]
INTEGER = ["add", "sub", "mul", "div", "rem", "mod", "pow", "max", "min", "shift_left",
           "shift_right"]
FLOATS = {"f32": ("float", np.float32), "f64": ("double", np.float64)}
INTEGERS = {f"{kind}{bits}": (f"{'u' * (kind == 'u')}int{bits}_t",
                              np.dtype(f"{'u' * (kind == 'u')}int{bits}").type)
            for kind in "iu" for bits in (8, 16, 32, 64)}


def _loop(name: str, source: str, result: str, arity: int) -> str:
    arguments = ", ".join(f"x{i}[i]" for i in range(arity))
    parameters = ", ".join(f"const {source} *restrict x{i}" for i in range(arity))
    head = f"void all_{name}({parameters}, {result} *restrict y, int64_t n)"
    return (f"{head};\n{head}\n{{\n"
            f"    for (int64_t i = 0; i < n; i++) y[i] = gt_{name}({arguments});\n}}\n")


def _source() -> str:
    text = '#include "integers.h"\n#include "special.h"\n'
    for t, (c, _) in FLOATS.items():
        text += "".join(_loop(f"{f}_{t}", c, c, 1) for f in UNARY)
        text += "".join(_loop(f"{f}_{t}", c, c, 2) for f in BINARY)
        text += "".join(_loop(f"{f}_{t}", c, "uint8_t", 1) for f in TESTS)
        text += "".join(_loop(f"cast_{t}_{i}", c, to, 1) for i, (to, _) in INTEGERS.items())
        text += _loop(f"cast_{t}_bool", c, "uint8_t", 1)
    for t, (c, _) in INTEGERS.items():
        text += "".join(_loop(f"{f}_{t}", c, c, 2) for f in INTEGER)
        text += "".join(_loop(f"{f}_{t}", c, c, 1) for f in ("abs", "sign", "neg"))
    for half in ("f16", "bf16"):
        text += _loop(f"f32_to_{half}", "float", "uint16_t", 1)
        text += _loop(f"{half}_to_f32", "uint16_t", "float", 1)
    return text


class Library:
    """The compiled header: `library(name, result, *arrays)` applies gt_NAME to every element."""

    def __init__(self, where: Path, flags: list[str], cc: str = "gcc") -> None:
        self.loaded = compile_c(_source(), where, [*FLAGS, *flags], cc)

    def __call__(self, name: str, result: type, *arrays: Array) -> Array:
        arrays = tuple(np.ascontiguousarray(a) for a in np.broadcast_arrays(*arrays))
        y = np.empty(arrays[0].shape, result)
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*arrays, y)]
        getattr(self.loaded, f"all_{name}")(*pointers, ctypes.c_int64(y.size))
        return y


@pytest.fixture(scope="module", params=WIDTHS.values(), ids=WIDTHS)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(tmp_path_factory.mktemp("vmath"), request.param)


def _sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


ORACLE = {"erf": np.vectorize(math.erf, otypes=[float]),
          "erfc": np.vectorize(math.erfc, otypes=[float]), "sigmoid": _sigmoid, "asin": np.arcsin,
          "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
          "atanh": np.arctanh, "round": np.rint, "rsqrt": lambda x: 1 / np.sqrt(x),
          "lgamma": np.vectorize(math.lgamma, otypes=[float])}


def oracle(name: str, x: Array) -> Array:
    with np.errstate(all="ignore"):
        return ORACLE.get(name, getattr(np, name, None))(x.astype(np.float64))


def spread(smallest: float, largest: float, n: int = 20000) -> Array:
    """Both signs, evenly over the orders of magnitude."""
    x = np.geomspace(smallest, largest, n)
    return np.concatenate([-x, x])


# function, largest error in ULP, arguments
ACCURACY = [
    ("exp", 1.5, np.concatenate([np.linspace(-87.3, 88.72, 100000), spread(1e-30, 80)])),
    ("expm1", 2, np.concatenate([np.linspace(-20, 88.72, 100000), spread(1e-30, 80)])),
    ("log", 1.5, np.concatenate([spread(1e-44, 3e38)[20000:], np.linspace(0.3, 3, 100000)])),
    ("log1p", 2, np.concatenate([spread(1e-30, 0.99), np.geomspace(1e-30, 3e38, 50000)])),
    ("sin", 2, np.concatenate([np.linspace(-1e4, 1e4, 200000), spread(1e-30, 1e6)])),
    ("cos", 2, np.concatenate([np.linspace(-1e4, 1e4, 200000), spread(1e-30, 1e6)])),
    ("tanh", 5.5, np.concatenate([np.linspace(-10, 10, 100000), spread(1e-30, 100)])),
    ("erf", 7, np.concatenate([np.linspace(-4.5, 4.5, 50000), spread(1e-30, 100)])),
    ("erfc", 3, np.concatenate([np.linspace(-4.5, 9, 50000), spread(1e-30, 9)])),
    ("sigmoid", 3, np.concatenate([np.linspace(-87, 40, 100000), spread(1e-30, 80)])),
    ("sqrt", 0.6, np.geomspace(1e-37, 3e38, 20000)),
    ("rsqrt", 1.6, np.geomspace(1e-37, 3e38, 20000)),
    ("tan", 2.1, np.concatenate([np.linspace(-1e4, 1e4, 200000), spread(1e-30, 1e6)])),
    ("asin", 0.62, np.concatenate([np.linspace(-1, 1, 50000), spread(1e-30, 1)])),
    ("acos", 0.62, np.concatenate([np.linspace(-1, 1, 50000), spread(1e-30, 1)])),
    ("atan", 1.5, spread(1e-10, 1e10)),
    ("sinh", 2, np.concatenate([np.linspace(-89.4, 89.4, 100000), spread(1e-30, 80)])),
    ("cosh", 2, np.concatenate([np.linspace(-89.4, 89.4, 100000), spread(1e-30, 80)])),
    ("asinh", 0.6, np.concatenate([np.linspace(-4, 4, 50000), spread(1e-30, 3e38)])),
    ("acosh", 0.6, np.concatenate([np.linspace(1, 4, 50000), np.geomspace(1, 3e38, 50000)])),
    ("atanh", 1.8, np.concatenate([np.linspace(-0.999, 0.999, 50000), spread(1e-30, 0.9999)])),
    ("lgamma", 8, np.geomspace(3, 1e10, 5000)),
    *((f, 0, np.concatenate([np.linspace(-9, 9, 145), spread(1e-30, 1e30)]))
      for f in ("floor", "ceil", "round", "trunc", "sign", "abs")),
]


@pytest.mark.parametrize(("name", "ulp", "x"), ACCURACY, ids=[a[0] for a in ACCURACY])
def test_f32_accuracy(library: Library, name: str, ulp: float, x: Array) -> None:
    x = x.astype(np.float32)
    exact, y = oracle(name, x), library(f"{name}_f32", np.float32, x)
    normal = (np.abs(exact) >= np.finfo(np.float32).tiny) | (exact == 0)
    unit = np.spacing(np.abs(exact.astype(np.float32))).astype(np.float64)
    error = np.where(normal, np.abs(y - exact) / unit, 0)
    worst = int(np.argmax(error))
    assert error[worst] <= ulp, f"{name}({x[worst]!r}) = {y[worst]!r}, exactly {exact[worst]!r}"


@pytest.mark.parametrize("name", sorted({a[0] for a in ACCURACY}))
def test_f64_accuracy(library: Library, name: str) -> None:
    x = next(a[2] for a in ACCURACY if a[0] == name)
    np.testing.assert_allclose(library(f"{name}_f64", np.float64, x), oracle(name, x), rtol=1e-13,
                               atol=0)


SPECIAL = np.array([np.inf, -np.inf, np.nan, -np.nan, 0.0, -0.0, 1, -1, 1e-45, -1e-45, 2, 0.5,
                    88.73, -104, -200, 3e38, -3e38, 1e30], np.float32)


APART = ("digamma", "erf_inv", "lgamma", "i0e", "i1e")  # numpy has no oracle of them


@pytest.mark.parametrize("name", [n for n in UNARY if n not in APART])
def test_special_values(library: Library, name: str) -> None:
    x = SPECIAL if name not in ("sin", "cos", "tan") else SPECIAL[np.abs(SPECIAL) != 1e30]
    if name in ("sin", "cos", "tan"):
        x = x[~((np.abs(x) > 1e6) & np.isfinite(x))]
    expected = oracle(name, x)
    with np.errstate(over="ignore"):
        rounded = expected.astype(np.float32)
    np.testing.assert_allclose(library(f"{name}_f32", np.float32, x), rounded, rtol=1e-6,
                               atol=1e-37)
    np.testing.assert_allclose(library(f"{name}_f64", np.float64, x.astype(np.float64)), expected,
                               rtol=1e-13)


def test_every_nan_stays_nan(library: Library) -> None:
    payloads = np.array([0x7f800001, 0x7fc00001, 0xffc00123, 0x7fffffff, 0xffffffff], np.uint32)
    for name in OWN:
        assert np.isnan(library(f"{name}_f32", np.float32, payloads.view(np.float32))).all(), name


def test_bounded_functions_stay_within_their_bounds(library: Library) -> None:
    x = np.concatenate([np.linspace(-20, 20, 400000), spread(1, 3e38)]).astype(np.float32)
    for name in ("tanh", "erf", "sin", "cos", "sigmoid"):
        y = library(f"{name}_f32", np.float32, x)
        assert (np.abs(y) <= 1).all(), name


def test_polygamma(library: Library) -> None:
    # ψ′(1) = π²/6, ψ′(½) = π²/2, ψ′(-½) = π²/2 + 4, ψ″(1) = -2ζ(3), ψ″(½) = -14ζ(3), ψ‴(1) = π⁴/15
    zeta, pi = 1.2020569031595942854, math.pi
    n = np.array([1, 1, 1, 2, 2, 3.0])
    x = np.array([1, 0.5, -0.5, 1, 0.5, 1])
    want = [pi ** 2 / 6, pi ** 2 / 2, pi ** 2 / 2 + 4, -2 * zeta, -14 * zeta, pi ** 4 / 15]
    np.testing.assert_allclose(library("polygamma_f64", np.float64, n, x), want, rtol=1e-13)
    single = library("polygamma_f32", np.float32, n.astype(np.float32), x.astype(np.float32))
    np.testing.assert_allclose(single, want, rtol=1e-6)
    edges = library("polygamma_f64", np.float64, np.array([1.5, -1, 1, 2, 1, 2, 2]),
                    np.array([1, 1, 0, -3, np.inf, -2e4, np.nan]))
    np.testing.assert_array_equal(edges, [np.nan, np.nan, np.inf, -np.inf, 0, np.nan, np.nan])


def test_gamma_in_parts(library: Library) -> None:
    # P(1, x) = 1 - exp(-x), P(1/2, x) = erf(sqrt(x)), on both sides of where the formula changes
    x = np.array([1e-3, 0.7, 1.4, 2.1, 9.0, 30.0])
    root = [math.erf(math.sqrt(v)) for v in x]
    half, one = np.full(6, 0.5), np.ones(6)
    np.testing.assert_allclose(library("igamma_f64", np.float64, half, x), root, rtol=1e-13)
    np.testing.assert_allclose(library("igammac_f64", np.float64, one, x), np.exp(-x), rtol=1e-12)
    single = library("igammac_f32", np.float32, one.astype(np.float32), x.astype(np.float32))
    np.testing.assert_allclose(single, np.exp(-x), rtol=3e-6)


def test_bessel(library: Library) -> None:
    # I0 and I1 of 1; exp(-x)·I(x) agrees on both sides of 20, where the formula changes
    e = math.exp(1)
    for name, want in (("i0e", 1.2660658777520084), ("i1e", 0.5651591039924851)):
        np.testing.assert_allclose(library(f"{name}_f64", np.float64, np.array([1.0])) * e, want,
                                   rtol=1e-14)
        near = library(f"{name}_f64", np.float64, np.array([20 - 1e-12, 20, -20.0]))
        np.testing.assert_allclose(np.abs(near), near[1], rtol=1e-12)
        assert np.sign(near[2]) == (1 if name == "i0e" else -1)


def test_digamma_and_erf_inv(library: Library) -> None:
    # ψ(1) = -γ, ψ(½) = -γ - 2·ln 2, ψ(10), ψ(-½) = ψ(½) + 2, ψ(1e6)
    gamma = 0.57721566490153286061
    x = np.array([1, 0.5, 10, -0.5, 1e6])
    psi = [-gamma, -gamma - 2 * math.log(2), 2.25175258906672110765,
           -gamma - 2 * math.log(2) + 2, 13.815510057964190784]
    np.testing.assert_allclose(library("digamma_f64", np.float64, x), psi, rtol=1e-13)
    np.testing.assert_allclose(library("digamma_f32", np.float32, x.astype(np.float32)), psi,
                               rtol=1e-6)
    edges = library("digamma_f64", np.float64, np.array([0.0, -0.0, -1, np.inf, -np.inf, np.nan]))
    np.testing.assert_array_equal(edges, [-np.inf, np.inf, np.nan, np.inf, np.nan, np.nan])
    y = np.concatenate([spread(1e-8, 5, 500), [0.0]])
    x = oracle("erf", y)
    # where erf is flat its inverse magnifies the rounding of x
    slack = 1e-15 / np.maximum(np.exp(-y * y), 1e-300)
    back = library("erf_inv_f64", np.float64, x)
    assert (np.abs(back - y) <= 1e-14 * np.abs(y) + slack).all()
    edges = library("erf_inv_f32", np.float32, np.array([1, -1, 2, np.nan, 0], np.float32))
    np.testing.assert_array_equal(edges, np.array([np.inf, -np.inf, np.nan, np.nan, 0]))


def _pairs() -> tuple[Array, Array]:
    values = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1, -1, 2, -3, 0.5, 5.5, -5.5, 1e30])
    a, b = np.meshgrid(values, values)
    return a.ravel(), b.ravel()


@pytest.mark.parametrize("t", FLOATS)
@pytest.mark.parametrize(("name", "f"), [
    ("max", np.maximum), ("min", np.minimum), ("pow", np.power), ("atan2", np.arctan2),
    ("rem", np.fmod), ("mod", np.mod)])
def test_binary_floats(library: Library, t: str, name: str, f: np.ufunc) -> None:
    dtype = FLOATS[t][1]
    a, b = (v.astype(dtype) for v in _pairs())
    with np.errstate(all="ignore"):
        expected = f(a, b)
    np.testing.assert_allclose(library(f"{name}_{t}", dtype, a, b), expected, rtol=1e-6)


@pytest.mark.parametrize("t", FLOATS)
def test_classification(library: Library, t: str) -> None:
    x = SPECIAL.astype(FLOATS[t][1])
    for name, f in zip(TESTS, (np.isnan, np.isinf, np.isfinite), strict=True):
        np.testing.assert_array_equal(library(f"{name}_{t}", np.uint8, x), f(x))


def _exact(name: str, a: int, b: int, info: np.iinfo) -> int:
    """The documented meaning, in whole numbers without bounds; the result is wrapped after."""
    bits = info.bits
    beyond = b < 0 or b >= bits
    quotient = 0 if b == 0 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
    match name:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "div":
            return quotient
        case "rem":
            return 0 if b == 0 else a - quotient * b
        case "mod":
            return 0 if b == 0 else a % b
        case "pow":
            return pow(a, b, 1 << 64) if b >= 0 else {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)
        case "max":
            return max(a, b)
        case "min":
            return min(a, b)
        case "shift_left":
            return 0 if beyond else a << b
        case "shift_right":
            return (-1 if a < 0 else 0) if beyond else a >> b
    raise AssertionError(name)


def _wrap(value: int, info: np.iinfo) -> int:
    value %= 1 << info.bits
    return value - (1 << info.bits) if value > info.max else value


@pytest.mark.parametrize("t", INTEGERS)
def test_integers(library: Library, t: str) -> None:
    dtype = INTEGERS[t][1]
    info = np.iinfo(dtype)
    edges = {0, 1, 2, 3, 5, 7, info.bits - 1, info.bits, 100, info.min, info.min + 1, info.max,
             info.max - 1, *((-1, -2, -3, -7, -8) if info.min else ())}
    values = sorted(edges)
    a, b = (v.ravel() for v in np.meshgrid(np.array(values, dtype), np.array(values, dtype)))
    for name in INTEGER:
        expected = [_wrap(_exact(name, int(x), int(y), info), info)
                    for x, y in zip(a, b, strict=True)]
        np.testing.assert_array_equal(library(f"{name}_{t}", dtype, a, b),
                                      np.array(expected, dtype), err_msg=name)
    x = np.array(values, dtype)
    for name, f in (("abs", abs), ("neg", lambda v: -v), ("sign", lambda v: (v > 0) - (v < 0))):
        expected = [_wrap(f(int(v)), info) for v in x]
        np.testing.assert_array_equal(library(f"{name}_{t}", dtype, x), np.array(expected, dtype))


@pytest.mark.parametrize("to", [*INTEGERS, "bool"])
@pytest.mark.parametrize("t", FLOATS)
def test_casts_truncate_and_clamp(library: Library, t: str, to: str) -> None:
    source = FLOATS[t][1]
    powers = [sign * 2.0 ** e for e in (7, 8, 15, 16, 31, 32, 63, 64) for sign in (1, -1)]
    x = np.array([0, -0.0, 0.9, -0.9, 1.5, -1.5, 127.9, 255.9, 1e30, -1e30, np.inf, -np.inf, np.nan,
                  *powers], source)
    x = np.concatenate([x, np.nextafter(x, source(0)), np.nextafter(x, source(np.inf))])
    if to == "bool":
        return np.testing.assert_array_equal(library(f"cast_{t}_bool", np.uint8, x), x != 0)
    dtype = INTEGERS[to][1]
    info = np.iinfo(dtype)
    expected = [0 if np.isnan(v) else info.max if v > info.max else info.min if v < info.min
                else int(v) for v in map(float, x)]
    expected = [min(max(v, info.min), info.max) for v in expected]
    np.testing.assert_array_equal(library(f"cast_{t}_{to}", dtype, x), np.array(expected, dtype))


def test_half_conversions(library: Library) -> None:
    halves = np.arange(1 << 16, dtype=np.uint16)
    wide = library("f16_to_f32", np.float32, halves)
    np.testing.assert_array_equal(wide, halves.view(np.float16).astype(np.float32))
    # every half, every midpoint between two halves, and their neighbours
    finite = np.unique(wide[np.isfinite(wide)])
    middle = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
    x = np.concatenate([finite, middle, np.nextafter(middle, np.float32(0)),
                        np.nextafter(middle, np.float32(np.inf)), SPECIAL,
                        np.array([65519.996, 65520, 1e-8, 2.9e-8, 3.1e-8], np.float32)])
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(library("f32_to_f16", np.uint16, x).view(np.float16),
                                      x.astype(np.float16))
    np.testing.assert_array_equal(library("bf16_to_f32", np.float32, halves).view(np.uint32),
                                  halves.astype(np.uint32) << 16)
    bits = x.view(np.uint32).astype(np.uint64)
    expected = ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    number = ~np.isnan(x)
    narrow = library("f32_to_bf16", np.uint16, x)
    np.testing.assert_array_equal(narrow[number], expected[number])
    back = library("bf16_to_f32", np.float32, library("f32_to_bf16", np.uint16, np.array(
        [0x7f800001, 0x7fffffff, 0xffffffff], np.uint32).view(np.float32)))
    assert np.isnan(back).all()


@pytest.mark.part(2)
@width
def test_clang(tmp_path: Path, flags: list[str]) -> None:
    clang = Library(tmp_path, flags, "clang")
    for name, ulp, x in ACCURACY[:9]:
        test_f32_accuracy(clang, name, ulp, x)
    test_half_conversions(clang)


@pytest.mark.parametrize("level", [level for level in WIDTHS if level in ("native", "x86-64-v3")])
def test_gcc_vectorises_loops_over_them(tmp_path: Path, level: str) -> None:
    """A loop that is not vectorised is ten times slower, which no other test would notice."""
    loops = [_loop(f"{f}_f32", "float", "float", 1) for f in [*OWN, "sqrt", "rsqrt", "sign"]]
    loops += [_loop(f"{f}_f32", "float", "float", 2) for f in ("max", "min")]
    for loop in loops:
        (tmp_path / "one.c").write_text('#include "integers.h"\n' + loop)
        done = subprocess.run(
            ["gcc", "-std=gnu11", "-O3", *WIDTHS[level], *FLAGS, *INCLUDES,
             "-fopt-info-vec", "-c", "one.c", "-o", "one.o"], cwd=tmp_path, capture_output=True,
            text=True)
        assert "loop vectorized" in done.stderr, loop


@pytest.mark.parametrize("level", WIDTHS)
def test_steps_between_bytes(tmp_path: Path, level: str) -> None:
    """To the bit what a cast to a byte, and back from its zero point, gives."""
    (tmp_path / "steps.c").write_text("""#include "nest.h"
#include "integers.h"
void steps(const float *x, float zero, float *y, float *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] = gt_steps_u8(x[i], -zero);
        want[i] = (float)((int32_t)gt_cast_f32_u8(gt_round_f32(x[i]) + zero) - (int32_t)zero);
    }
}
""")
    library = tmp_path / "steps.so"
    subprocess.run(["gcc", "-std=gnu11", "-O3", "-shared", "-fPIC", *WIDTHS[level], *FLAGS,
                    *INCLUDES, "-o", library, tmp_path / "steps.c", "-lm"], check=True)
    lib = ctypes.CDLL(str(library))
    rng = np.random.default_rng(0)
    halves = np.arange(-600, 601, dtype=np.float32) / 2
    x = np.concatenate([halves, np.nextafter(halves, np.float32(1e9)), rng.normal(0, 200, 5000),
                        [np.nan, -np.nan, np.inf, -np.inf, -0.0, 3e9, -3e9, 1e30, 1e-40]])
    x = x.astype(np.float32)
    for zero in (0, 1, 5, 254, 255):
        y, want = np.empty_like(x), np.empty_like(x)
        arrays = [ctypes.c_void_p(a.ctypes.data) for a in (x, y, want)]
        lib.steps(arrays[0], ctypes.c_float(zero), *arrays[1:], ctypes.c_int64(x.size))
        np.testing.assert_array_equal(y.view(np.int32), want.view(np.int32))


BEHIND = ("x[i]", "gt_round_f32(x[i] / s)", "gt_round_f32(x[i] / s) + 3.0f",
          "gt_min_f32(gt_max_f32(gt_round_f32(x[i] / s), 0.0f), 255.0f)",
          "gt_min_f32(127.0f, gt_max_f32(-127.0f, gt_round_f32(x[i] / s)))",
          "(x[i] <= 0.0f ? 0.0f : x[i]) * s", "gt_max_f32(x[i], 0.0f)", "gt_tanh_f32(x[i]) * s",
          "gt_round_f32((float)gt_cast_f32_u8(gt_round_f32(x[i]) + 3.0f) * s)",
          "gt_round_f32((float)gt_sub_i32((int32_t)gt_cast_f32_u8(gt_round_f32(x[i]) + 143.0f),"
          " 143) * 0.0692f + s)",
          "gt_round_f32((float)gt_cast_f32_i8(gt_max_f32(x[i], 0.0f) / s) * s) + 3.0f",
          "gt_round_f32(gt_steps_u8(x[i] * s, -143.0f) * 0.0692f + s)",
          "gt_max_f32(gt_steps_u8(gt_max_f32(x[i], 0.0f), -12.0f) * s, 0.0f)")


@pytest.mark.parametrize("level", [level for level in WIDTHS if level in ("native", "x86-64-v3")])
@pytest.mark.parametrize("kind", ["i8", "u8", "i16", "u16"])
def test_gcc_vectorises_casts_behind_what_quantises(tmp_path: Path, level: str, kind: str) -> None:
    c = {"i": "int", "u": "uint"}[kind[0]] + f"{kind[1:]}_t"
    for x in BEHIND:
        (tmp_path / "one.c").write_text(f"""#include "nest.h"
#include "integers.h"
void f(const float *restrict x, float s, {c} *restrict y)
{{
    GT_SIMD
    for (int64_t i = 0; i < 512; i++) y[i] = gt_cast_f32_{kind}({x});
}}
""")
        done = subprocess.run(
            ["gcc", "-std=gnu11", "-O3", *WIDTHS[level], *FLAGS, *INCLUDES, "-fopenmp-simd",
             "-DGT_OPENMP_SIMD", "-fopt-info-vec", "-c", "one.c", "-o", "one.o"], cwd=tmp_path,
            capture_output=True, text=True)
        assert "loop vectorized" in done.stderr, x
