"""THE table of op cases: op, operands, attributes. Many tests run over it; every op has one.

`case("conv", [(1, 3, 8, 8), (4, 3, 3, 3)], strides=(2, 2))`: a bare shape is a normal f32; `t` says
type and kind of values; arrays, literals and None stand for themselves. `edge` marks a case whose
values (NaN, kinks, ties) have no finite-difference gradient.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from ml_dtypes import finfo

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool import ops as o
from graphtool.dtypes import BY_NAME, DType, bool_, float32, float64, of_numpy
from graphtool.errors import TypeMismatch
from graphtool.ir.facets import Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.op import OPS, Op, complete_attrs
from graphtool.ir.trace import trace

Array = np.ndarray[Any, Any]
INF, NAN = float("inf"), float("nan")


@dataclass(frozen=True)
class Spec:
    """A random operand. Kinds: normal, positive, unit (0, 1), open (−1, 1), above (1, 3), distinct
    (no two within 0.1), index (integers in [0, high)), integers (any), bool."""

    shape: tuple[int, ...]
    dtype: DType
    kind: str
    high: int = 4

    def array(self, rng: np.random.Generator, wide: bool) -> Array:
        n, dtype = self.shape, self.dtype
        match self.kind:
            case "normal":
                x = rng.normal(size=n)
            case "positive":
                x = rng.uniform(0.5, 2.0, n)
            case "unit":
                x = rng.uniform(0.05, 0.95, n)
            case "open":
                x = rng.uniform(-0.9, 0.9, n)
            case "above":
                x = rng.uniform(1.2, 3.0, n)
            case "distinct":
                count = int(np.prod(n))
                x = (rng.permutation(count) * 0.25 - count / 8).reshape(n)
            case "index":
                x = rng.integers(0, self.high, n)
            case "integers":
                lo, hi = (-9, 10) if dtype.kind == "int" else (0, 19)
                x = rng.integers(lo, hi, n)
            case "bool":
                x = rng.integers(0, 2, n)
            case _:
                raise AssertionError(self.kind)
        dtype = float64 if wide and dtype is float32 else dtype
        return np.asarray(x).astype(dtype.numpy)


def t(shape: tuple[int, ...], dtype: str = "f32", kind: str = "", high: int = 4) -> Spec:
    row = BY_NAME[dtype]
    default = "normal" if row.is_float else "bool" if row is bool_ else "integers"
    return Spec(shape, row, kind or default, high)


@dataclass(frozen=True, eq=False)
class Case:
    """One application of an op. `smooth` says that finite differences give its gradient."""

    name: str
    op: Op
    operands: tuple[Any, ...]
    attrs: dict[str, Any]
    smooth: bool = True

    def __repr__(self) -> str:
        return self.name


CASES: list[Case] = []


def each(cases: Iterable[Case], *others: Any) -> Callable[[Callable[..., None]], Any]:
    """A test of one case, as tests of one op: each runs all cases of the op, and says which fail.

    With `others` a case runs with each of them in turn. Most cases take a millisecond, and pytest
    takes three for a test. A case may skip.
    """
    ops = defaultdict[str, list[Case]](list)
    for c in cases:
        ops[c.op.name].append(c)

    def decorate(test: Callable[..., None]) -> Any:
        def together(op: str) -> None:
            failures = []
            for given in ((c, *more) for c in ops[op] for more in ([(x,) for x in others] or [()])):
                try:
                    test(*given)
                except pytest.skip.Exception:
                    continue
                except Exception as error:
                    error.add_note(f"case: {', '.join(map(repr, given))}")
                    failures.append(error)
            if failures:
                raise ExceptionGroup(f"{len(failures)} cases of {op}", failures)
        together.__name__, together.__doc__ = test.__name__, test.__doc__
        together.__module__ = test.__module__
        return pytest.mark.parametrize("op", ops)(together)
    return decorate


def case(op: str, operands: Sequence[Any], **attrs: Any) -> None:
    specs = tuple(t(x) if isinstance(x, tuple) else x for x in operands)
    number = sum(c.op.name == op for c in CASES)
    CASES.append(Case(f"{op}-{number}", OPS[op], specs, attrs))


def edge(op: str, operands: Sequence[Any], **attrs: Any) -> None:
    case(op, operands, **attrs)
    CASES[-1] = replace(CASES[-1], smooth=False)


def arrays(case: Case, seed: int = 0, wide: bool = False) -> list[Any]:
    """The operands: equal seeds give equal arrays. `wide` makes float32 ones float64."""
    rng = np.random.default_rng([seed, zlib.crc32(case.name.encode())])
    out: list[Any] = []
    for x in case.operands:
        if isinstance(x, Spec):
            x = x.array(rng, wide)
        elif isinstance(x, np.ndarray) and wide and x.dtype == np.float32:
            x = x.astype(np.float64)
        out.append(x)
    return out


def types(case: Case, wide: bool = False) -> list[Any]:
    """The operands' types; literals and None as they are."""
    return [TensorType(of_numpy(x.dtype), x.shape) if isinstance(x, np.ndarray) else x
            for x in arrays(case, 0, wide)]


SIZES = (1e-4, 1.0, 300.0)  # and near the largest number of a type


def narrowed(case: Case, dtype: DType, seed: int) -> Case:
    """The case with its float32 operands in a narrow type.

    Those of the kind normal are as large as one of SIZES or a quarter of the type's largest number,
    drawn by the seed.
    """
    rng = np.random.default_rng([seed, zlib.crc32(case.name.encode())])
    size = rng.choice([*SIZES, float(finfo(dtype.numpy).max) / 4])

    def made(x: Any, spec: Any) -> Any:
        if not isinstance(x, np.ndarray) or x.dtype != np.float32:
            return x
        factor = size if isinstance(spec, Spec) and spec.kind == "normal" else 1.0
        with np.errstate(over="ignore"):
            return np.asarray(np.asarray(x * factor).astype(dtype.numpy))
    operands = tuple(map(made, arrays(case, seed), case.operands))
    return replace(case, name=f"{case.name}-{dtype.short}-{size:g}", operands=operands)


def narrow_cases(dtype: DType, seed: int = 0) -> list[Case]:
    """Every case of float32 that means the same in a narrow type, so that the result in float32
    says what it has to be.

    Not among them: casts, ops that read bits, loops of the model's author, which round where the
    graph says so, and what takes no narrow type.
    """
    found = [narrowed(c, dtype, seed) for c in CASES if any(
        isinstance(x, (Spec, np.ndarray)) and x.dtype in (float32, np.float32)
        for x in c.operands) and not c.op.traits & (Trait.BITS | Trait.WORLD)
        and c.op.category != "control" and not any(
            isinstance(a, DType) and a.is_float for a in c.attrs.values())]
    return [c for c in found if _is_defined(c)]


def _is_defined(case: Case) -> bool:
    try:
        case.op.infer(*types(case), **complete_attrs(case.op, case.attrs))
    except TypeMismatch:
        return False
    return True


def f(*values: float) -> Array:
    return np.array(values, np.float32)


def ints(values: Any, dtype: str = "i64") -> Array:
    return np.array(values, BY_NAME[dtype].numpy)


INTEGERS = ("i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8")
ODD = f(-INF, -800, -3, -1, -0.0, 0, 0.5, 1, 2.5, 3, 800, INF, NAN)

# ---- elementwise -------------------------------------------------------------------------------

_DOMAIN = {"log": "positive", "log1p": "positive", "sqrt": "positive", "rsqrt": "positive",
           "asin": "open", "acos": "open", "atanh": "open", "erf_inv": "open", "acosh": "above",
           "lgamma": "positive", "digamma": "positive"}
for _op in ("neg", "abs", "sign", "floor", "ceil", "round", "trunc", "exp", "expm1", "log",
            "log1p", "sqrt", "rsqrt", "sigmoid", "sin", "cos", "tan", "asin", "acos", "atan",
            "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "erf_inv", "lgamma",
            "digamma", "is_nan", "is_inf", "is_finite"):
    _kind = _DOMAIN.get(_op, "normal")
    for _shape in ((3, 4), (), (0, 3)):
        case(_op, [t(_shape, kind=_kind)])
    edge(_op, [ODD])
    case(_op, [t((5,), "f64", _kind)])
for _op in ("neg", "abs", "sign"):
    for _dtype in ("i64", "i32", "i8"):
        case(_op, [t((5,), _dtype)])
for _op in ("add", "sub", "mul", "div", "rem", "mod", "max", "min"):
    _b = {"div": "positive", "rem": "positive", "mod": "positive"}.get(_op, "normal")
    case(_op, [(3, 4), t((3, 4), kind=_b)])
    case(_op, [(2, 1, 4), t((3, 1), kind=_b)])
    case(_op, [(2, 3), t((), kind=_b)])
    case(_op, [(0, 3), t((1, 3), kind=_b)])
    case(_op, [(2, 3), 2.5])
    case(_op, [3, t((4,), kind="positive")])
    edge(_op, [ODD, ODD[::-1].copy()])
    edge(_op, [ODD, ODD])
    for _dtype in INTEGERS:
        case(_op, [t((3, 4), _dtype), t((4,), _dtype)])
        case(_op, [t((7,), _dtype), 3])
case("pow", [t((3, 4), kind="positive"), (3, 4)])
case("pow", [t((2, 1), kind="positive"), (3,)])
for _exponent in (2.0, 3.0, 0.5, -1.0, 0.0):
    case("pow", [t((3, 4), kind="positive"), _exponent])
case("pow", [(3, 4), 2])
case("pow", [2.0, (3, 4)])
edge("pow", [ODD, ODD[::-1].copy()])
edge("pow", [f(0, 0, 2, -1), f(0, 2, 0, 3)])
case("pow", [t((6,), "i32"), ints([0, 1, 2, 3, -1, 4], "i32")])
for _order in (0, 1, 2, 5):
    case("polygamma", [_order, t((3, 4), kind="positive")])
edge("polygamma", [1, (5,)])
edge("polygamma", [f(1, 2, 3), t((2, 3), kind="positive")])
case("polygamma", [2.0, t((0, 3))])
edge("polygamma", [1, ODD])
edge("polygamma", [1, f(-1e-40, -1e-10, -1e5 - 0.25)])
edge("polygamma", [2, ODD])
for _op in ("igamma", "igammac"):
    edge(_op, [t((3, 4), kind="positive"), t((3, 4), kind="positive")])
    case(_op, [2.5, t((4,), kind="positive")])
    edge(_op, [f(0.3, 3, 30, 300, 2), f(9, 0.1, 35, 250, 40)])
    edge(_op, [f(1e6, 1e6, 1e9, 3e38, 3e38), f(999000, 1002000, 1e9, 3e38, 1e-40)])
    edge(_op, [f(0, 0, 1, -1, 1, INF, INF, NAN), f(0, 1, 0, 1, INF, 1, INF, 1)])
for _op in ("i0e", "i1e"):
    case(_op, [t((3, 4), kind="positive")])
    case(_op, [(3, 4)])
    edge(_op, [f(0, -0.0, 19.9, 20.1, -300, INF, -INF, NAN)])
edge("next_after", [f(0, 1, 1, -1, NAN, 2), f(1, 2, 0, -1, 0, 2)])
case("atan2", [(3, 4), (4,)])
edge("atan2", [f(0, 1, -1, 0), f(0, 0, 0, -1)])
for _op in ("eq", "ne", "lt", "le", "gt", "ge"):
    case(_op, [(3, 4), (4,)])
    case(_op, [(3, 4), 0.5])
    edge(_op, [ODD, ODD[::-1].copy()])
    case(_op, [t((3, 4), "i32", "index"), t((4,), "i32", "index")])
    case(_op, [t((5,), "u8"), 3])
    case(_op, [t((2, 3), "bool"), t((3,), "bool")])
for _op in ("and", "or", "xor"):
    case(_op, [t((3, 4), "bool"), t((4,), "bool")])
    for _dtype in INTEGERS:
        case(_op, [t((3, 4), _dtype), t((3, 1), _dtype)])
case("not", [t((3, 4), "bool")])
for _dtype in INTEGERS:
    case("not", [t((4,), _dtype)])
    for _op in ("shift_left", "shift_right"):
        case(_op, [t((3, 4), _dtype), t((4,), _dtype, "index", 7)])
        case(_op, [t((3, 4), _dtype), 2])
case("select", [t((3, 4), "bool"), (3, 4), (4,)])
case("select", [t((3, 1), "bool"), (4,), 0.5])
case("select", [t((), "bool"), 1.0, (2, 2)])
case("select", [t((4,), "bool"), t((4,), "i64"), -1])
edge("select", [np.array([True, False, True]), f(1, NAN, 2), f(NAN, 2, INF)])
case("clamp", [(3, 4), -0.5, 0.5])
case("clamp", [(3, 4), None, 0.5])
case("clamp", [(3, 4), -0.25, None])
case("clamp", [(3, 4), t((4,), kind="open"), t((3, 1), kind="above")])
edge("clamp", [ODD, -3.0, 3.0])
case("clamp", [t((6,), "i32"), -2, 3])
for _to in ("f64", "f16", "bf16", "i64", "i32", "i8", "u8", "bool"):
    case("cast", [(3, 4)], dtype=BY_NAME[_to])
for _from in (*INTEGERS, "bool"):
    for _to in ("f32", "i64", "u8", "bool"):
        case("cast", [t((3, 4), _from)], dtype=BY_NAME[_to])
edge("cast", [f(NAN, INF, -INF, 300, -300, 1e20, 2.5, -2.5)], dtype=BY_NAME["i32"])
edge("cast", [f(NAN, INF, -INF, 300, -300, 1e20, 2.5, -2.5)], dtype=BY_NAME["i64"])
case("bitcast", [(3, 4)], dtype=BY_NAME["i32"])
case("bitcast", [t((3,), "i64")], dtype=BY_NAME["f64"])

# ---- activations -------------------------------------------------------------------------------

_ACTIVATIONS: dict[str, list[dict[str, Any]]] = {
    "relu": [{}], "gelu": [{}, {"approximate": "tanh"}], "silu": [{}], "mish": [{}],
    "softplus": [{}, {"beta": 2.0, "threshold": 1.0}], "elu": [{}, {"alpha": 0.5}], "selu": [{}],
    "celu": [{}, {"alpha": 0.5}], "leaky_relu": [{}, {"slope": 0.2}],
    "hard_sigmoid": [{}, {"alpha": 0.2}], "hard_swish": [{}],
    "hardtanh": [{}, {"lo": -0.5, "hi": 2.0}], "softsign": [{}], "log_sigmoid": [{}],
    "thresholded_relu": [{}, {"alpha": 0.1}],
}
for _op, _variants in _ACTIVATIONS.items():
    for _attrs in _variants:
        case(_op, [(3, 4)], **_attrs)
        edge(_op, [ODD], **_attrs)
    case(_op, [()])
    case(_op, [(0, 2)])
    case(_op, [t((4,), "f64")])
case("relu", [t((6,), "i32")])
case("prelu", [(2, 3, 4), t((3, 1), kind="unit")])
case("prelu", [(2, 3), t((1,), kind="unit")])
edge("prelu", [ODD, f(0.25)])
case("stop_gradient", [(2, 3)])
case("gradient", [(2, 3)], of="w")
case("unknown_gradient", [(2, 3)], reason="a backward of its own")
case("barrier", [(2, 3)])
case("checkpoint", [(2, 3)], region=1, edge="in")

# ---- reductions --------------------------------------------------------------------------------

for _op in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_mean", "reduce_var"):
    for _axes in ((0,), (1,), (0, 2), (-1,), (0, 1, 2), ()):
        case(_op, [(2, 3, 4)], axes=_axes)
    case(_op, [(1, 4)], axes=(0,))
    case(_op, [()], axes=())
    case(_op, [(0, 3)], axes=(1,))
    edge(_op, [f(1, NAN, 3, INF)], axes=(0,))
    if _op != "reduce_var":
        for _dtype in INTEGERS:
            case(_op, [t((3, 4), _dtype)], axes=(1,))
for _op in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min"):
    case(_op, [(0, 3)], axes=(0,))
edge("reduce_prod", [f(0, 2, 3, 0)], axes=(0,))
case("reduce_prod", [f(0, 2, 3, 4)], axes=(0,))
edge("reduce_max", [f(1, 3, 3, 2)], axes=(0,))
case("reduce_var", [(3, 5)], axes=(1,), correction=1)
for _op in ("reduce_and", "reduce_or"):
    case(_op, [t((3, 4), "bool")], axes=(1,))
    case(_op, [t((3, 4), "bool")], axes=(0, 1))
for _how in ("max", "min"):
    case("extreme", [(3, 4)], kind=_how, axis=1)
    case("extreme", [(3, 4, 2)], kind=_how, axis=-2)
    for _last in (False, True):
        case("arg_reduce", [t((3, 4))], kind=_how, axis=1, last=_last)
        edge("arg_reduce", [f(1, 3, 3, 0, 0)], kind=_how, axis=0, last=_last)
        edge("arg_reduce", [f(1, NAN, 3, NAN, 0)], kind=_how, axis=0, last=_last)
    for _dtype in INTEGERS:
        case("arg_reduce", [t((3, 5), _dtype, "index", 3)], kind=_how, axis=-1)
for _how in ("sum", "prod", "max", "min"):
    for _reverse in (False, True):
        for _exclusive in (False, True):
            case("cumulative", [(2, 4, 3)], kind=_how, axis=1, reverse=_reverse,
                 exclusive=_exclusive)
    case("cumulative", [(3, 1)], kind=_how, axis=-1)
    case("cumulative", [(0, 2)], kind=_how, axis=0)
    case("cumulative", [t((5,), "i32")], kind=_how, axis=0)
case("cumulative", [f(2, 0, 3, 4)], kind="prod", axis=0)
edge("cumulative", [f(1, 2, 2, 1, NAN, 3)], kind="max", axis=0)

# ---- movement ----------------------------------------------------------------------------------

case("reshape", [(2, 3, 4)], shape=(6, 4))
case("reshape", [(2, 3, 4)], shape=(4, 3, 2))
case("reshape", [(1,)], shape=())
case("reshape", [()], shape=(1, 1))
case("reshape", [(0, 3)], shape=(3, 0))
case("reshape", [(1, 6, 1)], shape=(2, 1, 3))
case("transpose", [(2, 3, 4)], perm=(2, 0, 1))
case("transpose", [(2, 1, 3)], perm=(1, 0, 2))
case("transpose", [()], perm=())
case("transpose", [t((2, 3), "bool")], perm=(1, 0))
case("broadcast", [(3, 1)], shape=(2, 3, 4))
case("broadcast", [()], shape=(2, 2))
case("broadcast", [(2, 3)], shape=(2, 3))
case("broadcast", [(1, 3)], shape=(0, 3))
case("spread", [(1, 3)], shape=(4, 3))
case("spread", [(2, 1, 3)], shape=(2, 5, 3))
case("slice", [(5, 6)], start=(1, 0), limit=(4, 6), strides=(1, 1))
case("slice", [(5, 6)], start=(0, 1), limit=(5, 6), strides=(2, 3))
case("slice", [(5, 6)], start=(2, 3), limit=(2, 6), strides=(1, 2))
case("slice", [()], start=(), limit=(), strides=())
case("pad", [(2, 3)], lo=(1, 0), hi=(0, 2))
case("pad", [(2, 3)], lo=(0, 1), hi=(2, 0), interior=(1, 2), value=1.5)
case("pad", [(5, 6)], lo=(-1, -2), hi=(-2, 1))
case("pad", [(4, 5)], lo=(-1, 1), hi=(1, -3), interior=(2, 1))
case("pad", [(4,)], lo=(-9,), hi=(6,))
case("pad", [(4,)], lo=(-2,), hi=(-3,))
case("pad", [(0, 2)], lo=(1, 1), hi=(1, 0), value=2.0)
case("pad", [(3, 1)], lo=(0, 2), hi=(0, -1), interior=(0, 3))
case("pad", [t((3,), "i64")], lo=(1,), hi=(1,), value=7.0)
case("pad", [t((3,), "bool")], lo=(1,), hi=(1,), value=1.0)
case("concat", [(2, 3), (2, 1), (2, 2)], axis=1)
case("concat", [(2, 3), (0, 3), (1, 3)], axis=0)
case("concat", [(2, 3)], axis=-1)
case("concat", [t((2,), "i64"), t((3,), "i64")], axis=0)
case("stack", [(2, 3), (2, 3), (2, 3)], axis=1)
case("stack", [(), ()], axis=0)
case("stack", [(2, 3), (2, 3)], axis=-1)
case("reverse", [(3, 4)], axes=(0,))
case("reverse", [(3, 4)], axes=(-1, 0))
case("reverse", [(3, 4)], axes=())
case("iota", [], shape=(3, 4), axis=1, dtype=BY_NAME["i64"])
case("iota", [], shape=(3, 1), axis=0, dtype=BY_NAME["f32"])
case("iota", [], shape=(0,), axis=0, dtype=BY_NAME["i32"])
case("dim", [], of=7, dtype=BY_NAME["i64"])
case("dim", [], of=7, dtype=BY_NAME["f32"])

# ---- indexing ----------------------------------------------------------------------------------

case("gather", [(5, 3), t((4, 1), "i64", "index", 5)], axes=(0,))
case("gather", [(3, 5), t((2, 2, 1), "i32", "index", 5)], axes=(1,))
case("gather", [(4, 5, 3), t((6, 2), "i64", "index", 4)], axes=(1, 0))
case("gather", [(4, 4, 3), t((6, 2), "i64", "index", 3)], axes=(0, 2))
case("gather", [(2, 5, 3), t((2, 4, 1), "i64", "index", 5)], axes=(1,), batch=1)
case("gather", [(2, 3, 5), t((2, 3, 2, 1), "i64", "index", 5)], axes=(2,), batch=2)
case("gather", [(5, 3), t((1,), "i64", "index", 5)], axes=(0,))
case("gather", [(5, 3), t((0, 1), "i64", "index", 5)], axes=(0,))
case("gather", [t((5,), "i64"), t((3, 1), "u8", "index", 5)], axes=(0,))
for _how in ("set", "add", "mul", "min", "max"):
    case("scatter", [(6, 3), ints([[4], [1], [0]]), (3, 3)], axes=(0,), kind=_how)
    case("scatter", [(6, 3), ints([[4], [1], [4]]), (3, 3)], axes=(0,), kind=_how)
    case("scatter", [(2, 5, 2), t((2, 3, 1), "i64", "index", 5), (2, 3, 2)], axes=(1,), batch=1,
         kind=_how)
    case("scatter", [(4, 5), ints([[1, 2], [3, 0], [1, 2]]), (3,)], axes=(0, 1), kind=_how)
    case("scatter", [t((6,), "i64"), ints([[4], [4]]), t((2,), "i64")], axes=(0,), kind=_how)
case("scatter", [(3,), ints([[1], [1], [2]]), f(0, 2, 0)], axes=(0,), kind="mul")
edge("scatter", [f(1, 5, 2), ints([[1], [1]]), f(5, 5)], axes=(0,), kind="max")
case("dynamic_slice", [(5, 6), ints(2), ints(1)], sizes=(2, 3))
case("dynamic_slice", [(5, 6), ints(9), ints(-3)], sizes=(2, 3))
case("dynamic_slice", [(5, 6), 1, ints(0)], sizes=(2, 6))
case("dynamic_update_slice", [(5, 6), (2, 3), ints(1), ints(2)])
case("dynamic_update_slice", [(5, 6), (2, 3), ints(9), ints(-1)])
case("sort", [t((3, 5), kind="distinct")], axis=1)
case("sort", [t((3, 5), kind="distinct")], axis=0, descending=True)
edge("sort", [f(2, 1, NAN, 1, 2, INF, 1)], axis=0)
edge("sort", [f(2, 1, NAN, 1, 2, INF, 1)], axis=0, descending=True)
case("sort", [t((7,), "i32", "index", 3)], axis=0, descending=True)
case("sort", [t((7,), "u8", "index", 3)], axis=0)
case("sort", [t((5,), "bool")], axis=0)
case("sort", [(3, 0)], axis=1)
case("sort", [()], axis=0)
for _largest in (True, False):
    case("top_k", [t((3, 6), kind="distinct")], k=2, axis=1, largest=_largest)
    case("top_k", [t((5, 2, 3), kind="distinct")], k=3, axis=0, largest=_largest)
    edge("top_k", [f(2, 1, NAN, 1, 2, 1)], k=4, axis=0, largest=_largest)
    case("top_k", [t((6,), "i64", "index", 3)], k=6, axis=-1, largest=_largest)
case("top_k", [(3, 2)], k=0, axis=1)

# ---- contraction -------------------------------------------------------------------------------

for _ta in (False, True):
    for _tb in (False, True):
        case("matmul", [(3, 4) if not _ta else (4, 3), (4, 5) if not _tb else (5, 4)],
             transpose_a=_ta, transpose_b=_tb)
        case("matmul", [(2, 1, 3, 4) if not _ta else (2, 1, 4, 3),
                        (6, 4, 5) if not _tb else (6, 5, 4)], transpose_a=_ta, transpose_b=_tb)
case("matmul", [(2, 3, 4), (4, 5)])
case("matmul", [(3, 4), (2, 4, 5)])
case("matmul", [(1, 4), (4, 1)])
case("matmul", [(3, 0), (0, 2)])
case("matmul", [(0, 3), (3, 2)])
case("matmul", [t((3, 4), "i8"), t((4, 2), "i8")], dtype=BY_NAME["i32"])
case("matmul", [t((3, 4), "i64"), t((4, 2), "i64")])
case("matmul", [t((3, 4), "f64"), t((4, 2), "f64")])
case("linear", [(2, 3), (4, 3), (4,)])
case("linear", [(2, 5, 3), (4, 3), None])
case("linear", [(3,), (4, 3), (4,)])
case("embedding", [(5, 3), t((2, 4), "i64", "index", 5)])
case("embedding", [(5, 3), t((), "i32", "index", 5)])
case("embedding", [(5,), t((3,), "i64", "index", 5)])

case("conv", [(1, 3, 8, 8), (4, 3, 3, 3)])
case("conv", [(2, 3, 8, 7), (4, 3, 3, 2)], strides=(2, 2), padding=((1, 1), (0, 2)))
case("conv", [(2, 3, 8, 8), (4, 3, 3, 3)], strides=(3, 2), padding=((2, 0), (1, 1)))
case("conv", [(1, 2, 9, 9), (3, 2, 3, 3)], rhs_dilation=(2, 3))
case("conv", [(1, 2, 9, 9), (3, 2, 3, 3)], rhs_dilation=(2, 1), strides=(2, 3),
     padding=((2, 1), (0, 3)))
case("conv", [(2, 4, 5, 5), (6, 2, 3, 3)], groups=2, padding=((1, 1), (1, 1)))
case("conv", [(1, 4, 5, 5), (8, 1, 3, 3)], groups=4, strides=(2, 2))
case("conv", [(2, 3, 4, 5), (4, 3, 3, 3)], lhs_dilation=(2, 3), padding=((2, 2), (1, 2)))
case("conv", [(2, 4, 4, 4), (4, 2, 3, 2)], lhs_dilation=(2, 2), padding=((2, 1), (1, 1)),
     groups=2, rhs_dilation=(2, 1))
case("conv", [(1, 2, 6, 6), (2, 2, 3, 3)], padding=((-1, 0), (0, -2)))
case("conv", [(4, 3, 5, 5), (6, 3, 3, 3)], batch_groups=2, padding=((1, 1), (0, 1)))
case("conv", [(4, 3, 5), (6, 3, 2)], batch_groups=2, strides=(2,), lhs_dilation=(3,))
case("conv", [(2, 3, 10), (4, 3, 3)], strides=(2,), padding=((1, 2),))
case("conv", [(2, 3, 4, 5), (4, 3, 3, 3)], lhs_dilation=(2, 3), padding=((2, 2), (1, 2)),
     absent=True)
case("conv", [(2, 5, 4, 4), (6, 2, 3, 3)], groups=2, strides=(2, 1), lhs_dilation=(3, 2),
     padding=((2, -1), (1, 0)), channels_last=True, absent=True)
case("conv", [(1, 2, 4, 5, 4), (3, 2, 2, 3, 2)], strides=(1, 2, 2),
     padding=((1, 0), (1, 1), (0, 1)))
case("conv", [(2, 6, 5, 3), (4, 3, 3, 3)], channels_last=True, padding=((1, 1), (1, 1)))
case("conv", [(2, 5, 6, 5, 4), (6, 2, 3, 3, 2)], channels_last=True, groups=2,
     padding=((1, 1), (1, 0), (0, 1)), strides=(2, 1, 1))
case("conv", [(2, 4, 3, 5, 3), (20, 3, 2, 2, 3)], channels_last=True, rhs_dilation=(2, 1, 1),
     padding=((1, 2), (0, 1), (1, 1)))
case("conv", [(1, 3, 4, 4, 2), (5, 2, 3, 3, 3)], channels_last=True, lhs_dilation=(2, 2, 2),
     padding=((2, 1), (2, 2), (1, 2)))
case("conv", [(1, 3, 4, 4, 2), (5, 2, 1, 3, 3)], channels_last=True)
case("conv", [(2, 6, 6, 4), (4, 2, 3, 2)], channels_last=True, strides=(2, 2), groups=2)
case("conv", [(1, 3, 4, 4), (5, 3, 1, 1)])
case("conv", [(0, 3, 4, 4), (5, 3, 3, 3)])
case("conv", [(1, 1, 1, 1), (1, 1, 1, 1)])
case("conv", [t((1, 2, 4, 4), "i8"), t((3, 2, 3, 3), "i8")], dtype=BY_NAME["i32"])

# ---- windows and pooling -----------------------------------------------------------------------

for _how in ("sum", "max", "min", "prod"):
    case("reduce_window", [t((2, 7, 6))], kind=_how, window=(1, 3, 2))
    case("reduce_window", [t((7, 8))], kind=_how, window=(3, 2), strides=(2, 3),
         padding=((1, 1), (0, 1)))
    case("reduce_window", [t((7, 8))], kind=_how, window=(2, 3), window_dilation=(2, 1),
         strides=(1, 2))
    case("reduce_window", [t((4,))], kind=_how, window=(3,), base_dilation=(2,), padding=((1, 2),))
    case("reduce_window", [t((6,), "i32")], kind=_how, window=(2,), padding=((1, 0),))
case("reduce_window", [t((6,), "i64")], kind="min", window=(2,), padding=((1, 0),))
case("reduce_window", [t((6,), "u8")], kind="max", window=(2,), padding=((1, 0),))
edge("reduce_window", [f(1, NAN, 2, 2, 3)], kind="max", window=(2,))
for _how in ("max", "min"):
    case("arg_reduce_window", [t((2, 7, 6))], kind=_how, window=(1, 3, 2), strides=(1, 2, 2),
         padding=((0, 0), (1, 1), (0, 1)))
    case("arg_reduce_window", [t((5,))], kind=_how, window=(2,), base_dilation=(2,),
         window_dilation=(2,))
    edge("arg_reduce_window", [f(2, 2, NAN, 1, NAN, 1)], kind=_how, window=(2,))
    case("extreme_tap", [t((2, 7, 6))], kind=_how, window=(1, 3, 2), strides=(1, 2, 2),
         padding=((0, 0), (1, 1), (0, 1)))
    edge("extreme_tap", [f(2, 2, NAN, 1, NAN, 1)], kind=_how, window=(2,))
case("unpool", [t((2, 4, 3)), t((2, 4, 3), "i32", "index", 6)], shape=(2, 7, 6), window=(1, 3, 2),
     strides=(1, 2, 2), padding=((0, 0), (1, 1), (0, 1)))
case("unpool", [t((2, 3)), t((2, 3), "i32", "index", 2)], shape=(2, 8), window=(1, 2),
     strides=(1, 3))
_POOLS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((1, 2, 6, 6), {"window": (2, 2), "strides": (2, 2)}),
    ((2, 3, 7, 6), {"window": (3, 3), "strides": (2, 2), "padding": ((1, 1), (1, 1))}),
    ((1, 2, 7), {"window": (3,), "strides": (2,), "padding": ((1, 2),)}),
    ((1, 2, 4, 5, 4), {"window": (2, 3, 2), "padding": ((0, 1), (1, 1), (1, 0))}),
    ((1, 2, 7, 8), {"window": (2, 3), "dilation": (2, 2), "padding": ((1, 1), (1, 1))}),
    ((2, 6, 5, 3), {"window": (3, 2), "strides": (1, 2), "channels_last": True}),
    ((0, 2, 4, 4), {"window": (2, 2)}),
]
for _shape, _attrs in _POOLS:
    for _op in ("max_pool", "avg_pool"):
        case(_op, [_shape], **_attrs)
    case("lp_pool", [t(_shape, kind="positive")], **_attrs)
case("avg_pool", [(1, 2, 5, 5)], window=(3, 3), padding=((1, 1), (1, 1)), count_include_pad=True)
case("lp_pool", [t((1, 2, 5), kind="positive")], window=(2,), order=3.0)
edge("max_pool", [np.zeros((1, 1, 4, 4), np.float32)], window=(2, 2), strides=(1, 1))
case("max_pool", [t((1, 1, 4, 4), "i8")], window=(2, 2), padding=((1, 0), (0, 1)))

# ---- resize ------------------------------------------------------------------------------------

for _mode in ("linear", "cubic"):
    for _coordinates in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel",
                         "half_pixel_symmetric"):
        case("resize", [(1, 2, 4, 5)], sizes=(1, 2, 7, 3), mode=_mode, coordinates=_coordinates)
    case("resize", [(1, 1, 8, 7)], sizes=(1, 1, 3, 3), mode=_mode, antialias=True)
    case("resize", [(1, 1, 4, 4)], sizes=(1, 1, 6, 6), mode=_mode, exclude_outside=True)
    case("resize", [(1, 1, 4)], sizes=(1, 1, 6), mode=_mode, scales=(1.0, 1.0, 1.4))
for _rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
    for _coordinates in ("half_pixel", "asymmetric", "align_corners"):
        case("resize", [(1, 2, 4, 6)], sizes=(1, 2, 8, 4), coordinates=_coordinates,
             rounding=_rounding)
case("resize", [(1, 1, 4, 4)], sizes=(1, 1, 3, 5), mode="linear",
     coordinates="tf_crop_and_resize", roi=(0.0, 0.0, 0.2, -0.1, 1.0, 1.0, 0.9, 1.3),
     extrapolation=10.0)
case("resize", [(1, 1, 4, 4)], sizes=(1, 1, 3, 8), coordinates="tf_half_pixel_for_nn",
     rounding="floor")
case("resize", [(1, 1, 3)], sizes=(1, 1, 1), mode="linear", coordinates="pytorch_half_pixel")
case("resize", [(5,)], sizes=(3,), mode="cubic", antialias=True)
case("resize", [t((1, 1, 3), "u8")], sizes=(1, 1, 5))
for _mode in ("nearest", "linear", "cubic"):
    edge("resize_by", [(1, 2, 4, 6), np.array([1.0, 1.0, 2.0, 0.7])], sizes=(1, 2, 8, 4),
         mode=_mode, coordinates="pytorch_half_pixel", exclude_outside=_mode == "cubic")
edge("resize_by", [(1, 1, 7), np.array([1.0, 1.0, 0.5])], sizes=(1, 1, 3), mode="linear",
     antialias=True)
edge("resize_by", [(5,), np.array([0.6])], sizes=(3,), mode="cubic", antialias=True)
edge("resize_by", [(4, 4), None, np.array([0.2, -0.1, 0.9, 1.3])], sizes=(3, 5), mode="linear",
     coordinates="tf_crop_and_resize", extrapolation=10.0)
edge("resize_by", [t((3,), "u8"), np.array([2.5])], sizes=(7,))

# ---- normalisation -----------------------------------------------------------------------------

for _op in ("softmax", "log_softmax"):
    for _axis in (0, 1, -1):
        case(_op, [(2, 3, 4)], axis=_axis)
    case(_op, [(3, 1)], axis=1)
    case(_op, [(0, 3)], axis=1)
    edge(_op, [f(1000, 1000, -1000, -INF)], axis=0)
case("logsumexp", [(2, 3, 4)], axes=(1,))
case("logsumexp", [(2, 3, 4)], axes=(0, 2))
edge("logsumexp", [f(1000, 1000)], axes=(0,))
edge("logsumexp", [f(-INF, -INF)], axes=(0,))
case("layer_norm", [(2, 3, 4), (4,), (4,)], axes=(-1,))
case("layer_norm", [(2, 3, 4), (3, 4), None], axes=(1, 2), epsilon=0.1)
case("layer_norm", [(2, 3)], axes=(1,))
case("rms_norm", [(2, 3, 4), (4,)], axes=(-1,))
case("rms_norm", [(2, 3)], axes=(1,), epsilon=1e-6)
case("group_norm", [(2, 6, 4, 3), (6,), (6,)], groups=3)
case("group_norm", [(2, 4, 5), None, None], groups=1)
case("instance_norm", [(2, 3, 4, 4), (3,), (3,)])
case("instance_norm", [(2, 3, 5)])
case("batch_norm", [(2, 3, 4, 4), (3,), (3,), (3,), t((3,), kind="positive")])
case("batch_norm", [(4, 3), (3,), (3,), (3,), t((3,), kind="positive")], epsilon=0.01)
case("batch_norm", [(2, 4, 3), (3,), (3,), (3,), t((3,), kind="positive")], axis=-1)
case("batch_norm_training", [(4, 3, 2, 2), (3,), (3,)])
case("batch_norm_training", [(6, 3)])
case("lrn", [(2, 5, 3, 3)], size=3)
case("lrn", [(1, 4, 2)], size=2, alpha=0.1, beta=0.5, bias=2.0)
for _order in (1.0, 2.0, 3.0, INF, -INF):
    case("norm", [(3, 4)], axes=(1,), order=_order)
edge("norm", [f(0, 0)], axes=(0,))

# ---- transformers ------------------------------------------------------------------------------

case("attention", [(2, 4, 3, 8), (2, 4, 5, 8), (2, 4, 5, 6)])
case("attention", [(2, 4, 5, 8), (2, 4, 5, 8), (2, 4, 5, 8)], causal=True)
case("attention", [(2, 4, 3, 8), (2, 4, 5, 8), (2, 4, 5, 8)], causal=True, scale=0.3)
case("attention", [(2, 4, 3, 8), (2, 2, 5, 8), (2, 2, 5, 6)])
case("attention", [(2, 4, 3, 8), (2, 2, 5, 8), (2, 2, 5, 6), (2, 4, 3, 5)], softcap=2.0)
case("attention", [(2, 4, 3, 8), (2, 1, 5, 8), (2, 1, 5, 6), (3, 5)], causal=True)
case("attention", [(2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), t((2, 1, 3, 5), "bool")])
case("attention", [(2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), (5,)])
case("attention", [(2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), ()])
case("attention", [(2, 3, 4), (2, 5, 4), (2, 5, 4)])
case("attention", [(3, 4), (5, 4), (5, 4)])
case("attention", [(1, 1, 2, 4), (1, 1, 3, 4), (1, 1, 3, 4),
                   np.array([[True, False, True], [False, False, False]])])
case("attention", [(1, 1, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1)])
for _pairs in (False, True):
    case("rotary_embedding", [(2, 3, 5, 8), (5, 4), (5, 4)], interleaved=_pairs)
    case("rotary_embedding", [(2, 5, 8), (5, 2), (5, 2)], interleaved=_pairs)

# ---- recurrence --------------------------------------------------------------------------------

for _direction, _d in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
    case("lstm", [(3, 2, 4), (_d, 12, 4), (_d, 12, 3), (_d, 24), (_d, 2, 3), (_d, 2, 3)],
         direction=_direction)
    case("gru", [(3, 2, 4), (_d, 9, 4), (_d, 9, 3), (_d, 18), (_d, 2, 3)], direction=_direction,
         linear_before_reset=True)
    case("rnn", [(3, 2, 4), (_d, 3, 4), (_d, 3, 3), (_d, 6), (_d, 2, 3)], direction=_direction)
case("lstm", [(2, 2, 4), (1, 12, 4), (1, 12, 3)])
case("lstm", [(2, 2, 4), (1, 12, 4), (1, 12, 3), None, None, None, (1, 9)], clip=0.5)
case("lstm", [(1, 1, 1), (1, 4, 1), (1, 4, 1)])
case("gru", [(2, 2, 4), (1, 9, 4), (1, 9, 3)])
case("gru", [(2, 2, 4), (1, 9, 4), (1, 9, 3), (1, 18)], clip=0.5)
case("rnn", [(2, 2, 4), (1, 3, 4), (1, 3, 3)], activation="relu")
for _kind, _g in (("lstm", 4), ("gru", 3), ("gru_linear", 3), ("tanh", 1), ("relu", 1)):
    case("recurrence", [(3, 2, 5, _g * 7), (2, 7, _g * 7), (2, _g * 7), (2, 5, 7)], kind=_kind,
         direction="bidirectional")
    case("recurrence", [(2, 1, 6, _g * 32), (1, 32, _g * 32)], kind=_kind, direction="reverse")
    case("recurrence", [(0, 1, 2, _g * 3), (1, 3, _g * 3), (1, _g * 3), (1, 2, 3)], kind=_kind)
case("recurrence", [(3, 1, 1, 12), (1, 3, 12), None, (1, 1, 3), (1, 1, 3)], kind="lstm")
for _kind, _g, _k in (("lstm", 4, 5), ("gru", 3, 3), ("gru_linear", 3, 4), ("tanh", 1, 1),
                      ("relu", 1, 1)):
    _s, _cell = (2, 5, 7), 2 * [(2, 5, 7)] if _kind == "lstm" else []
    case("recurrence_grad", [t((2, 7, _g * 7), "f32", "unit"), (3, *_s),
                             t((3, 2, 5, _k * 7), "f32", "unit"), (3, *_s), _s, _s, *_cell],
         kind=_kind, direction="bidirectional")
    case("recurrence_grad", [t((1, 32, _g * 32), "f32", "unit"), (2, 1, 6, 32),
                             t((2, 1, 6, _k * 32), "f32", "unit"), (2, 1, 6, 32)],
         kind=_kind, direction="reverse")
    case("recurrence_grad", [(1, 3, _g * 3), (0, 1, 2, 3), (0, 1, 2, _k * 3), None, (1, 2, 3)],
         kind=_kind)

# ---- weights of few bits -----------------------------------------------------------------------

for _bits, _block, _k in ((4, 32, 64), (4, 16, 40), (8, 16, 48), (2, 32, 64), (4, 8, 13)):
    for _rows in (1, 11):
        _blocks = -(-_k // _block)
        _packed = np.random.default_rng(_k).integers(0, 256, (7, _blocks, _block * _bits // 8))
        _tables = [_packed.astype(np.uint8), t((7, _blocks), kind="unit")]
        case("linear_nbits", [(_rows, _k), *_tables], bits=_bits, block=_block)
        case("linear_nbits", [(_rows, _k), *_tables, t((7, _blocks), kind="unit")], bits=_bits,
             block=_block)
        edge("linear_nbits", [(_rows, _k), *_tables], bits=_bits, block=_block, activations="q8")
    edge("round_blocks", [(3, _k)], block=_block)

# ---- trees -------------------------------------------------------------------------------------

# two trees: x[0] ? 0.2 : (x[2] ? −0.5), and x[1] ? 0; the second's NaNs go to child 1
_NODES = {"splits": f(0.2, 0, -0.5, 0, 0, 0, 0, 0),
          "children": ints([[1, 2], [1, 0], [3, 4], [3, 1], [4, 2], [6, 7], [6, 0], [7, 2]], "i32"),
          "roots": ints([0, 5], "i32"), "weights": f(1, -1, 2, 0.5, 4, -3).reshape(3, 2)}


def _grove(shape: tuple[int, ...], *comparisons: int, **attrs: Any) -> None:
    kinds = [-1] * 8
    for node, feature, which in zip((0, 2, 5), (0, 2, 1), comparisons, strict=True):
        kinds[node] = 16 * feature + 2 * which + int(node == 5)
    edge("trees", [shape, ints(kinds, "i32"), *_NODES.values()], depth=2, **attrs)


for _count in (1, 5, 67):
    _grove((_count, 3), 0, 0, 0)
for _which, _name in enumerate(("le", "lt", "ge", "gt", "eq", "ne")):
    _grove((5, 3), _which, _which, _which, compare=_name)
_grove((6, 3), 0, 3, 5, compare="mixed", missing=True)
edge("trees", [f(NAN, NAN, 0, 1, 0, NAN).reshape(2, 3),
               ints([1, -1, 33, -1, -1, 16, -1, -1], "i32"), *_NODES.values()],
     depth=2, missing=True)
for _fold in ("min", "max"):
    _grove((5, 3), 0, 0, 0, fold=_fold)

# ---- losses ------------------------------------------------------------------------------------

for _reduction in ("mean", "sum", "none"):
    case("mse_loss", [(3, 4), (3, 4)], reduction=_reduction)
    case("huber_loss", [(3, 4), (3, 4)], delta=0.7, reduction=_reduction)
    case("bce_loss", [t((3, 4), kind="unit"), t((3, 4), kind="unit")], reduction=_reduction)
    case("bce_loss", [(3, 4), t((3, 4), kind="unit"), t((4,), kind="unit")], from_logits=True,
         reduction=_reduction)
    case("kl_div", [(3, 4), t((3, 4), kind="unit")], reduction=_reduction)
    case("kl_div", [(3, 4), (3, 4)], log_target=True, reduction=_reduction)
    for _op in ("nll_loss", "cross_entropy"):
        case(_op, [(4, 5), t((4,), "i64", "index", 5)], reduction=_reduction)
        case(_op, [(4, 5), ints([1, -100, 4, 0]), t((5,), kind="positive")], reduction=_reduction)
        case(_op, [(2, 5, 3), t((2, 3), "i64", "index", 5)], reduction=_reduction)
    case("cross_entropy", [(4, 5), ints([1, 2, 4, 0]), t((5,), kind="positive")],
         reduction=_reduction, label_smoothing=0.1)
    case("cross_entropy", [(4, 5), t((4, 5), kind="unit")], reduction=_reduction)
case("cross_entropy", [(4, 5), ints([1, -100, 4, 0])], label_smoothing=0.2)
case("cross_entropy", [(2, 3, 5), t((2, 3), "i64", "index", 5)], axis=-1)
case("kl_div", [(3, 4), t((3, 4), kind="unit")], reduction="batchmean")
edge("bce_loss", [f(0, 1, 0, 1), f(0, 1, 1, 0)])
case("binary_cross_entropy", [t((3, 4), kind="unit"), t((3, 4), kind="unit")])
edge("bce_loss", [f(-800, 800, 0), f(0, 1, 1)], from_logits=True)
edge("cross_entropy", [np.array([[1000, -1000]], np.float32), ints([1])])

# ---- randomness --------------------------------------------------------------------------------

_STATE = np.array([42, 7], np.uint64)
case("rng_bits", [_STATE], shape=(3, 3))
case("rng_bits", [_STATE], shape=())
case("rng_bits", [np.array([2**64 - 1, 2**40], np.uint64)], shape=(8,))
case("uniform", [_STATE], shape=(4, 3), low=-1.0, high=2.0)
case("uniform", [_STATE], shape=(4,), dtype=BY_NAME["f64"])
case("normal", [_STATE], shape=(4, 3), mean=1.0, std=0.5)
case("dropout", [(4, 5), _STATE], p=0.3)
case("dropout", [(4, 5), _STATE], p=1.0)
case("bernoulli", [t((4, 5), kind="unit"), _STATE])

# ---- control flow ------------------------------------------------------------------------------

_ROW, _COUNT = TensorType(float32, (4,)), TensorType(BY_NAME["i64"], ())
_DOUBLE = trace(lambda x, y: (o.mul(x, 2.0), y), [_ROW, _ROW])
_SUM = trace(lambda x, y: (o.add(x, y), x), [_ROW, _ROW])
_MORE = trace(lambda k, x, s: o.gt(k, 0), [_COUNT, _ROW, _ROW])
_LESS = trace(lambda k, x, s: (o.sub(k, 1), o.mul(x, s)), [_COUNT, _ROW, _ROW])
_CELL = trace(lambda h, x, s: (o.add(h, x), o.mul(h, s)), [_ROW, _ROW, _ROW])
for _yes in (True, False):
    case("cond", [np.asarray(_yes), (4,), (4,)], then=_DOUBLE, orelse=_SUM)
for _trips in (0, 3):
    case("while", [np.asarray(_trips), (4,), (4,)], cond=_MORE, body=_LESS, carries=2)
    case("while", [np.asarray(_trips), (4,), (4,)], cond=_MORE, body=_LESS, carries=2, bound=2)
case("scan", [(4,), (5, 4), (4,)], body=_CELL, carries=1, xs=1, length=5)
case("scan", [(4,), (5, 4), (4,)], body=_CELL, carries=1, xs=1, length=5, reverse=True)
case("scan", [(4,), (0, 4), (4,)], body=_CELL, carries=1, xs=1, length=0)

# ---- factorisations ----------------------------------------------------------------------------

_SQUARE = np.random.default_rng(5).normal(size=(2, 4, 4)).astype(np.float32)
_POSITIVE = (_SQUARE @ _SQUARE.transpose(0, 2, 1) + np.eye(4)).astype(np.float32)
_LOWER = (np.tril(_SQUARE, -1) + 2 * np.eye(4)).astype(np.float32)
edge("cholesky", [_POSITIVE])  # its gradient is spread over both halves: tests/ops/test_factor.py
edge("cholesky", [_POSITIVE[0]])
edge("cholesky", [np.zeros((2, 0, 0), np.float32)])
edge("cholesky_whole", [_POSITIVE])
edge("triangular_whole", [_POSITIVE, np.ones((*_POSITIVE.shape[:2], 2), _POSITIVE.dtype)])
for _low in (True, False):
    case("triangular_solve", [_LOWER if _low else _LOWER.transpose(0, 2, 1).copy(), (2, 4, 3)],
         lower=_low)
    case("triangular_solve", [_LOWER[0], (4, 2)], lower=_low, unit=True)
case("triangular_solve", [(0, 3, 3), (0, 3, 2)])
for _shape in ((4, 4), (2, 3, 3), (2, 5, 3), (3, 5)):
    case("lu", [_shape])
    case("householder", [_shape])
edge("lu", [np.array([[0, 1, 2], [0, 3, 4], [0, 5, 6]], np.float32)])
edge("lu", [np.zeros((2, 0, 3), np.float32)])
edge("householder", [np.array([[3, 1], [0, 2]], np.float32)])
edge("householder", [np.zeros((0, 3, 3), np.float32)])
case("swapped", [ints([2, 3, 2, 3])], size=4)
case("swapped", [ints([[1, 2], [0, 1]])], size=3)
case("swapped", [np.zeros((2, 0), np.int64)], size=3)
for _flip in (True, False):
    case("reflect", [(2, 4, 3), t((2, 3), kind="unit"), (2, 4, 2)], transpose=_flip)
case("lu_solve", [(2, 3, 3), t((2, 3), "i64", "index", 3), (2, 3, 2)])

_SYMMETRIC = (_SQUARE + _SQUARE.transpose(0, 2, 1)).astype(np.float32)
for _shape in ((2, 4, 4), (3, 3), (1, 1)):  # gradients of all three: tests/ops/test_spectral.py
    edge("eigh", [_SYMMETRIC[..., :_shape[-1], :_shape[-1]].copy() if len(_shape) == 3 else
                  _SYMMETRIC[0, :_shape[-1], :_shape[-1]].copy()])
edge("eigh", [np.diag([2, 1, 2]).astype(np.float32)])
edge("eigh", [np.zeros((2, 0, 0), np.float32)])
for _shape in ((2, 4, 3), (3, 5), (2, 2)):
    for _all in (True, False):
        edge("svd", [np.random.default_rng(7).normal(size=_shape).astype(np.float32)], full=_all)
edge("svd", [np.ones((3, 2), np.float32)])
edge("svd", [np.zeros((0, 2, 2), np.float32)])
edge("svd", [np.zeros((2, 3, 0), np.float32)], full=True)

# ---- spectra -----------------------------------------------------------------------------------

for _shape in ((8,), (2, 3, 5), (2, 1), (2, 320), (17, 30), (2, 1, 36)):
    for _half in (False, True):
        case("fourier", [_shape], half=_half)
        case("fourier", [_shape, _shape], half=_half, inverse=True)
_angles = 2 * np.pi * np.arange(30) / 30
edge("fft", [np.random.default_rng(3).normal(size=(2, 30)), None, np.stack([
    np.cos(_angles), np.sin(_angles)])], half=True)
for _size in (1, 2, 7, 8, 48, 320, 321):
    case("fourier_real", [(2, _size // 2 + 1), (2, _size // 2 + 1)], size=_size)

# ---- sizes -------------------------------------------------------------------------------------

case("size", [ints(3)], size=3)
case("size", [ints(3)], size=3, most=7)
case("assume", [(2, 3)], shape=(2, 3))
case("nonzero", [ints([0, 3, 0, 5, -1, 0])], size=3)
case("nonzero", [ints([[0, 3, 0], [5, -1, 0]], "i32")], size=3)
case("nonzero", [np.array([[[True], [False]], [[True], [True]]])], size=3)
case("nonzero", [f(0.0, -0.0, NAN, 2.0)], size=2)
case("nonzero", [np.zeros((2, 3), np.float32)], size=0)
case("nonzero", [np.array(True)], size=1)

# ---- collectives: here of a process alone; of several in tests/ops/test_collective.py -----------

for _kind in ("sum", "mean", "max", "min"):
    case("all_reduce", [(3, 4)], kind=_kind)
case("all_reduce", [t((5,), "i32", "integers")], kind="max")
case("all_reduce", [t((2, 3), "bf16")], kind="mean")
case("all_gather", [(3, 4)], axis=1, size=1)
case("reduce_scatter", [(3, 4)], axis=0, size=1)
for _kind in ("sum", "max", "gather", "scatter"):
    case("collective_begin", [(6,)], kind=_kind)
case("broadcast_first", [(3, 4)])
case("collective_begin", [(6,)], kind="broadcast")
case("collective_begin", [(6,)], kind="sum", now=True)
case("process_rank", [])
case("collective_end", [(6,), (6,), np.zeros(1, np.int64)])

# ---- right-hand sides of bfloat16, packed at run time ------------------------------------------

case("pack_pairs", [t((5, 3), "bf16")], nr=16)
case("pack_pairs", [t((2, 6, 8), "bf16")], nr=8, transpose=True)
case("pack_int", [t((5, 3), "i8")], nr=16)
case("pack_int", [t((0, 3), "i8")], nr=16)
case("pack_int", [t((2, 6, 8), "i16")], nr=8, transpose=True)
case("pack_conv_pairs", [t((5, 3, 2, 3), "bf16")], nr=16)
case("pack_conv_pairs", [t((6, 3, 3, 3), "bf16")], nr=8, groups=2, whole=False)
case("pack_conv_pairs", [t((20, 4, 1, 2), "bf16")], nr=16, groups=2, whole=False)
