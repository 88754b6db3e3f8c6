"""conv_grad_parts.h: gradients of a convolution's weights in float32 by a matrix unit of bfloat16,
channels last, each number as a sum of parts.

It is the product of `gemm_parts.py` with a row for each output channel, a column for each element
of a filter, and the pixels of the output as depth. What the pixels read is gathered and split once
for all rows, so that no tap of the window is copied before.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels import gemm, gemm_parts
from graphtool.kernels.conv_parts import RUNS, area_in_runs, copies, seen_in_runs, window_in_runs
from graphtool.kernels.gemm_blocked import DIVIDED, WORK, divided
from graphtool.kernels.gemm_parts import PARAMETERS
from graphtool.kernels.images import OUTPUT, STRIDES, space
from graphtool.kernels.kit import (
    Area, Contract, Conv, Dim, Form, Instance, Lowered, Macro, Node, Numbers, Plan, Pointer,
    Product, Record, Rows, Rules, Symbol, Target, TensorType, Use, Value, View, elements, fetched,
    need, product, product_cost, register, sizes, start, symbol_of, target_op, widths)

MACROS = (
    Macro("PARTS", "literal", "parts of a number"), *OUTPUT, *STRIDES,
    *sizes(O="output channels", LDK="elements between adjacent pixels of A"), *RUNS, *DIVIDED)
POINTERS = (Pointer("A", "the gradient of the output", ("b",)),
            Pointer("X", "the input, its padding included"), WORK)


def meaning(t: Instance) -> None:
    """The product of the gradient and what each pixel reads."""
    t.rows(t.read("A", 0) @ seen_in_runs(t, 1)[0], 0)


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    n, oh, ow, kh, runs, run, m, ldk = t.sizes("BATCH OH OW KH RUNS RUN O LDK")
    yield Rows((1, m, kh * runs * run))
    yield Area("A", (m, n * oh * ow), (1, ldk), (1,))
    yield area_in_runs(t, 1)
    yield gemm_parts.work_area(t, True)


def lower(use: Use) -> Lowered:
    """The use of the template."""
    g, x, attrs = use.view(0), use.view(1), use.node.attrs
    depth = g.shape[0]
    m, columns = use.out.type.shape
    assert isinstance(columns, int)
    high, wide = space(TensorType(x.dtype, x.shape), attrs["window"], attrs["strides"],
                       attrs["dilation"])
    macros, room = gemm_parts.blocks_of(use, depth)
    cut, work = divided(use, room, m, columns, depth)
    macros |= {"BATCH": x.shape[0], "OH": high, "OW": wide, "O": m, "LDK": g.strides[0],
               "XN": x.strides[0], "XH": x.strides[1], "XW": x.strides[2],
               **window_in_runs(x, 1, attrs), **cut}
    del macros["FLOATS"]  # the template knows
    row, first = Symbol("m", 0, None, m), Symbol("n", 0, None)
    hook = use.epilogue((Symbol("b", 0, None, 1), row, first), (symbol_of(row), symbol_of(first)))
    pointers = {"A": start(g), "X": start(x), "WORK": work}
    return Lowered(use.template("conv_grad_parts", macros, pointers, hook),
                   2 * m * columns * depth)


def reads(node: Node, x: Value, view: View) -> bool:
    """Whether it can read an operand here: adjacent channels, whatever is between pixels."""
    return view.shape[-1] == 1 or view.strides[-1] == 1


# ---- the op ------------------------------------------------------------------------------------

CONV_GRAD_PARTS = Form("conv_grad_parts", PARAMETERS, rate="tile_bf16")


def _infer(g: TensorType, x: TensorType, *, window: tuple[int, int], strides: tuple[int, int],
           dilation: tuple[int, int] = (1, 1), plan: Plan | None = None) -> TensorType:
    need(g.rank == 2 and x.rank == 4 and g.dtype is x.dtype is dtypes.float32,
         f"{g} and {x} are not a gradient and an image")
    need(x.shape[0] * product(space(x, window, strides, dilation)) == g.shape[0],
         f"{g} does not have the pixels of {x} under windows of {window}")
    return TensorType(dtypes.float32, (g.shape[1], prod(window) * x.shape[3]))


def _decompose(g: Any, x: Any, *, window: Any, strides: Any, dilation: Any,
               plan: Plan | None = None) -> Any:
    high, wide = space(TensorType(x.dtype, x.shape), window, strides, dilation)
    n, c = x.shape[0], x.shape[3]
    taps = [o.reshape(o.slice(
        x, start=(0, i, j, 0), strides=(1, *strides, 1),
        limit=(n, i + (high - 1) * strides[0] + 1, j + (wide - 1) * strides[1] + 1, c)),
        shape=(n * high * wide, c))
        for i in range(0, window[0] * dilation[0], dilation[0])
        for j in range(0, window[1] * dilation[1], dilation[1])]
    seen = o.concat(*taps, axis=1) if len(taps) > 1 else taps[0]
    return o.matmul(o.transpose(g, perm=(1, 0)), seen)


def _flops(y: TensorType, g: TensorType, _x: TensorType, **_: Any) -> Dim:
    return 2 * elements(y) * g.shape[0]


OP = target_op("conv_grad_parts", _infer, _decompose, CONV_GRAD_PARTS, _flops,
               "the gradient of a convolution's weights in float32 by a matrix unit of bfloat16: "
               "y[o, (i, j, c)] = Σ g[(n, p, q), o]·x[n, p·stride + i·dilation, q·stride + "
               "j·dilation, c]; x includes its padding, and all numbers are split into parts")


# ---- plans and their costs ---------------------------------------------------------------------

def pays(s: Conv, target: Target, rules: Rules) -> Plan | None:
    """The plan, if the target has a matrix unit and this is expected to be faster than a product
    for each tap of the convolution."""
    one = Product(1, s.o, s.kh * s.kw * s.c, s.n * s.h * s.w, False, True)
    if rules.in_order or s.dtype is not dtypes.float32:
        return None
    found = gemm_parts.moving_plans(one, target, rules)
    if not found:
        return None
    p = CONV_GRAD_PARTS.plan(**{**dict(found[0].parameters), "split": 2})
    us = gemm_parts.moving_cost(one, p, target) + copies(s, target)
    return p if us < by_taps(s, target) else None


def by_taps(s: Conv, t: Target) -> float:
    """Expected microseconds of a product for each tap, and of copies of what it reads."""
    each = Product(1, s.c, s.o, s.n * s.h * s.w, False, True)
    moved = 4 * each.m * each.k
    product = product_cost(each, gemm.GEMM.plan(nv=widths(s.o, t)[0]), t)
    return s.kh * s.kw * (product + 2 * fetched(t, moved, moved) / t.threads)


register(Record(
    Contract("conv_grad_parts", "the gradient of a convolution's weights by a matrix unit of "
             "bfloat16, each number as a sum of parts", MACROS, POINTERS, meaning,
             ("b", "m", "n"), touches, grain="pieces"),
    {"conv_grad_parts": lower}, reads))
