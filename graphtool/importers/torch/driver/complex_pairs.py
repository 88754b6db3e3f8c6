"""Complex tensors inside a program are pairs of real ones; inputs and outputs are never complex.

Calls that take or return a complex tensor have their own table of handlers, PAIRED. An op that
moves elements, or is linear with real factors, runs once on each part; _ALIKE lists these ops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphtool.dtypes import DType
from graphtool.front import Array
from graphtool.front.complex import Complex
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import Handler, handler
from graphtool.io.weights import Weight, weight
from graphtool.ir.trace import Builder

PAIRED: dict[str, Handler] = {}
REASON = ("complex numbers have no form for it; split them into real and imaginary parts "
          "(torch.view_as_real)")


PARTS = ("real", "imag")  # behind the name of a complex array


def constant_pair(builder: Builder, data: Weight, name: str, trained: bool,
                  alone: bool) -> Complex:
    """A complex constant as complex numbers; the last axis of its data is (real, imaginary)."""
    return Complex(*(builder.constant(weight(data.source[..., i]), f"{name}.{part}", trained,
                                      alone=alone)
                     for i, part in enumerate(PARTS)))


def paired(*names: str) -> Callable[[Handler], Handler]:
    """Declare the function as the handler of `aten.name` for calls with complex numbers."""
    def declare(fn: Handler) -> Handler:
        PAIRED.update({f"aten.{name}": fn for name in names})
        return fn
    return declare


def paired_handler(target: str) -> Handler | None:
    """The handler for complex operands, of the overload or else of the op; None without one."""
    special = PAIRED.get(target) or PAIRED.get(target.rpartition(".")[0])
    if special is None and target.rpartition(".")[0].removeprefix("aten.") in _ALIKE:
        plain = handler(target)
        special = None if plain is None else _each(plain)
    return special


# what does the same to the real and to the imaginary part
_ALIKE = frozenset((
    "view", "reshape", "_unsafe_view", "view_copy", "_reshape_alias", "_reshape_copy", "flatten",
    "unflatten", "squeeze", "unsqueeze", "squeeze_copy", "unsqueeze_copy", "expand", "expand_copy",
    "permute", "permute_copy", "transpose", "transpose_copy", "movedim", "t", "slice",
    "slice_copy", "select", "select_copy", "narrow", "split", "split_with_sizes", "chunk", "unbind",
    "flip", "roll", "repeat", "tile", "diagonal", "diagonal_copy", "as_strided", "as_strided_copy",
    "unfold", "unfold_copy", "index_select", "gather", "index", "take", "clone", "alias", "detach",
    "lift_fresh_copy", "contiguous", "neg", "sum", "mean", "cumsum", "tril", "triu", "cat",
    "stack", "index_put", "_unsafe_index_put", "slice_scatter",
    "select_scatter", "diagonal_scatter", "scatter_add", "index_add", "diag_embed", "trace",
    "avg_pool1d", "avg_pool2d", "diff", "rot90", "_unsafe_index", "alias_copy"))


def _each(plain: Handler) -> Handler:
    """Calls the real handler once for each part; a real tensor in a list has imaginary part 0."""
    def fn(c: Context, *args: Any, **kwargs: Any) -> Any:
        parts = []
        for part in (0, 1):
            mine = [_part(c, a, part) for a in args]
            result = plain(c, *mine, **{k: _part(c, v, part) for k, v in kwargs.items()})
            parts.append(result if isinstance(result, (tuple, list)) else (result,))
        joined = tuple(None if a is None else Complex(a, b) for a, b in zip(*parts, strict=True))
        return joined if len(joined) > 1 else joined[0]
    return fn


def _part(c: Context, x: Any, part: int) -> Any:
    match x:
        case Complex():
            return (x.real, x.imag)[part]
        case complex():
            return (x.real, x.imag)[part]
        case tuple() if any(isinstance(i, Complex) for i in x):  # a list of tensors, some real
            return tuple(_part(c, pair(c, i), part) for i in x)
        case _:
            return x


def pair(c: Context, x: Any, dtype: DType | None = None) -> Complex:
    """x as a pair of real tensors of `dtype`; a number becomes two of rank 0."""
    match x:
        case Complex():
            return x if dtype in (None, x.dtype) else Complex(c.cast(x.real, dtype),
                                                           c.cast(x.imag, dtype))
        case Array():
            real = c.cast(x, dtype or x.dtype)
            return Complex(real, c.full(x.shape, 0.0, real.dtype))
        case _:
            kind = dtype or c.out.dtype
            return Complex(c.full((), complex(x).real, kind), c.full((), complex(x).imag, kind))


def real_of(x: Any) -> Any:
    """x as a real operand; None if it is complex with an imaginary part that may not be 0."""
    if isinstance(x, Complex):
        return None
    return x.real if isinstance(x, complex) and not x.imag else (
        None if isinstance(x, complex) else x)
