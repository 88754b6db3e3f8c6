"""Every template in the interpreter of programs, against the evaluator; what its table refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.errors import InputError
from graphtool.io.weights import Weight
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.plan import Plan
from graphtool.ir.serial import collect_all
from graphtool.ir.trace import trace
from graphtool.kernels.record import KERNELS
from graphtool.loops import interp as loops
from graphtool.loops.contract import HOME, REQUIRED
from graphtool.loops.ir import MacroValue, Template
from graphtool.loops.program import Program
from graphtool.loops.verify import verify
from graphtool.lower import lower
from graphtool.target import named

TARGET = named("x86-64", 2)
NR = TARGET.lanes * 2
Array = np.ndarray[Any, Any]


def data(shape: tuple[int, ...], kind: Any = np.float32) -> Array:
    """Numbers that differ: normal ones, or any of an integer type."""
    rng = np.random.default_rng(len(shape))
    x = rng.standard_normal(shape) if not np.issubdtype(kind, np.integer) else (
        rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape))
    return x.astype(kind)


def constant(x: Any, value: Array) -> Any:
    return x.builder.constant(value)


def packed(op: str, w: Array, **attrs: Any) -> Callable[[Any], Any]:
    """Weights as a kernel wants them, as a constant of the graph."""
    made = np.asarray(getattr(o, op)(w, **attrs))
    return lambda x: constant(x, made)


def positive(x: Any) -> Any:
    return o.max(x, 0 if x.dtype.is_integer else 0.0)


def finished(y: Any) -> Any:
    """What an epilogue has to do, with an operand for each column."""
    return positive(y) + constant(y, data(y.shape[-1:], y.dtype.numpy))


def gemm(x: Any) -> Any:
    return finished(o.gemm(x, packed("pack", data((5, 11)), nr=NR)(x), n=11))


def gemm_across(x: Any) -> Any:
    turned = o.transpose(x, perm=(0, 2, 1))
    return o.gemm(turned, packed("pack", data((2, 3, 7)), nr=NR)(x), n=7)


def gemm_blocked(x: Any) -> Any:
    return finished(o.gemm_blocked(x, packed("pack", data((5, 11)), nr=NR)(x), n=11,
                                   plan=Plan("gemm_blocked", (("deep", 2),))))


def gemm_blocked_across(x: Any) -> Any:
    turned = o.transpose(x, perm=(0, 2, 1))
    return o.gemm_blocked(turned, packed("pack", data((2, 3, 7)), nr=NR)(x), n=7)


def gemm_pairs(x: Any) -> Any:
    w = np.asarray(o.pack_pairs(data((5, 11), dtypes.bfloat16.numpy), nr=NR))
    return finished(o.gemm_bf16(x, constant(x, w.reshape(*w.shape[:2], NR * 2)), n=11))


def blas(x: Any) -> Any:
    return finished(o.blas(x, constant(x, data((5, 11)))))


def conv(x: Any) -> Any:
    w = packed("pack_conv", data((6, 4, 2, 3)), nr=NR, groups=2)(x)
    return finished(o.conv_direct(x, w, channels=6, window=(2, 3), strides=(2, 1),
                                  dilation=(1, 2)))


def conv_inside(x: Any) -> Any:
    w = packed("pack_conv", data((6, 8, 3, 3)), nr=NR, groups=1)(x)
    return finished(o.conv_direct(x, w, channels=6, window=(3, 3), strides=(1, 1),
                                  dilation=(4, 3), inside=(3, 8, 2, 9)))


def conv_pairs(x: Any) -> Any:
    w = np.asarray(o.pack_conv_pairs(data((6, 3, 2, 3), dtypes.bfloat16.numpy), nr=NR))
    w = w.reshape(*w.shape[:4], NR * 2)
    return o.conv_bf16(x, constant(x, w), channels=6, window=(2, 3), strides=(2, 1))


def depthwise(x: Any) -> Any:
    return finished(o.depthwise(x, constant(x, data((3, 2, 5))), strides=(2, 1)))


def depthwise_grad(x: Any, g: Any) -> Any:
    return finished(o.depthwise_grad(x, g, strides=(1, 2), dilation=(2, 1)))


def neighbours(x: Any) -> Any:
    """Two pixels of three channels are one."""
    w = np.tile(data((3, 2, 3)), 2)
    return o.depthwise(x, constant(x, w), strides=(1, 1), dilation=(1, 2))


def row_sums(x: Any) -> Any:
    y = positive(o.depthwise(x, constant(x, data((3, 2, 5))), strides=(1, 1)))
    return y, o.reduce_sum(y, axes=(2,))


def pool(x: Any) -> Any:
    attrs = {"window": (2, 3), "strides": (2, 1), "dilation": (1, 2)}
    return tuple(positive(o.pooled(x, kind=kind, **attrs)) for kind in ("sum", "max", "min"))


def winograd(x: Any) -> Any:
    w = packed("pack_winograd", data((8, 3, 3, 3)), tile=2, nr=NR)(x)
    return finished(o.winograd(x, w, channels=8, tile=2))


def winograd_line(x: Any) -> Any:
    out = []
    for upright, window in ((False, (2, 5)), (True, (4, 1))):
        w = packed("pack_winograd_line", data((6, 3, *window)), tile=2, nr=NR, upright=upright)(x)
        out.append(finished(o.winograd_line(x, w, channels=6, tile=2, window=window,
                                            dilation=(1, 2), upright=upright)))
    return tuple(out)


def attention(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return (o.attend(q, k, v, mask, scale=0.5),
            positive(o.attend(q, k, v, causal=True, scale=0.25, softcap=3.0)))


def attention_amx(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return (o.attend_amx(q, k, v, mask, scale=0.5),
            o.attend_amx(q, k, v, causal=True, scale=0.25, softcap=3.0))


def attention_bytes(q: Any, k: Any, v: Any) -> Any:
    grids = np.array([120, 130, 0.002, 100, 0.05, 140, 255], np.float32)
    return positive(o.attend_bytes(q, k, v, constant(q, grids)))


def attention_parts(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return (o.attend_parts(q, k, v, mask, scale=0.5, plan=Plan("attend_parts", (("parts", 3),))),
            positive(o.attend_parts(q, k, v, causal=True, scale=0.25, softcap=3.0)))


def narrow_attention(q: Any, k: Any, v: Any, mask: Any = None, *factors: Any) -> Any:
    return positive(o.attend(q, k, v, mask, *factors, scale=0.5))


def transpose(x: Any) -> Any:
    return positive(o.transpose(x, perm=(1, 0)))


def transposed_pairs(x: Any) -> Any:
    return o.pack_blocks(x, nr=32, transpose=True)


def gemm_int(x: Any) -> Any:
    return finished(o.gemm_int(x, packed("pack_int", data((7, 9), np.int8), nr=NR)(x), n=9))


def gemm_int_pairs(x: Any) -> Any:
    return o.gemm_int(x, packed("pack_int", data((7, 9), np.int16), nr=NR)(x), n=9)


def conv_int(x: Any) -> Any:
    out = []
    for joined in (False, True):
        attrs = {"window": (2, 3), "strides": (2, 1), "dilation": (1, 1 if joined else 2)}
        w = packed("pack_int_conv", data((6, 5 if joined else 3, 2, 3), np.int8), nr=NR,
                   groups=1, joined=joined)(x)
        seen = x if joined else o.slice(x, start=(0, 0, 0, 0), limit=(*x.shape[:3], 3),
                                        strides=(1, 1, 1, 1))
        out.append(o.conv_int(seen, w, channels=6, depth=5 if joined else 3, joined=joined,
                              **attrs))
    return tuple(out)


def gemm_amx(x: Any) -> Any:
    kind = np.int8 if x.dtype is dtypes.uint8 else x.dtype.numpy
    return finished(o.gemm_amx(x, packed("pack_blocks", data((70, 9), kind), nr=NR)(x), n=9))


def gemm_amx_blocked(x: Any) -> Any:
    w = packed("pack_blocks", data((70, 9), x.dtype.numpy), nr=NR)(x)
    return finished(o.gemm_amx_blocked(x, w, n=9, plan=Plan("gemm_amx_blocked", (("deep", 32),))))


def gemm_amx_across(x: Any) -> Any:
    turned = o.transpose(x, perm=(0, 2, 1))
    w = packed("pack_blocks", data((2, 45, 33), x.dtype.numpy), nr=NR)(x)
    return o.gemm_amx_blocked(turned, w, n=33, plan=Plan("gemm_amx_blocked", (("deep", 32),)))


def gemm_wide(x: Any) -> Any:
    kind = np.int8 if x.dtype is dtypes.uint8 else x.dtype.numpy
    return finished(o.gemm_wide(x, packed("pack_units", data((70, 9), kind), nr=128)(x), n=9))


def conv_wide(x: Any) -> Any:
    kind = np.int8 if x.dtype is dtypes.uint8 else x.dtype.numpy
    w = packed("pack_units", data((6 * x.shape[3], 9), kind), nr=128)(x)
    how: dict[str, Any] = {"channels": 9, "window": (2, 3), "strides": (2, 1), "dilation": (1, 2)}
    return (finished(o.conv_wide(x, w, **how)),
            finished(o.conv_wide(x, w, padding=((1, 0), (2, 1)), **how)))


def gemm_parts(x: Any) -> Any:
    w = packed("pack_parts", data((70, 9)), nr=NR)(x)
    return finished(o.gemm_parts(x, w, n=9, plan=Plan("gemm_parts", (("deep", 32),))))


def gemm_parts_moving(x: Any) -> Any:
    turned = o.transpose(x, perm=(0, 2, 1))
    w = packed("pack", data((2, 45, 33)), nr=NR)(x)
    return o.gemm_parts_moving(turned, w, n=33, plan=Plan("gemm_parts_moving", (("deep", 32),)))


def gemm_parts_across(x: Any) -> Any:
    w = packed("pack_parts", data((2, 33, 45)), nr=NR, parts=2, transpose=True)(x)
    return o.gemm_parts(o.transpose(x, perm=(0, 2, 1)), w, n=33)


def conv_parts(x: Any) -> Any:
    out = []
    for groups, dilation in ((1, (1, 1)), (2, (1, 2))):
        w = packed("pack_parts", data((groups, 6 * x.shape[3] // groups, 35)), nr=NR)(x)
        out.append(finished(o.conv_parts(
            x, w, channels=35 * groups, window=(2, 3), strides=(2, 1), dilation=dilation,
            plan=Plan("conv_parts", (("deep", 32),)))))
    return tuple(out)


def conv_grad_parts(g: Any, x: Any) -> Any:
    rows = o.reshape(g, shape=(60, 35))
    return finished(o.conv_grad_parts(rows, x, window=(2, 3), strides=(2, 1), dilation=(1, 2),
                                      plan=Plan("conv_grad_parts", (("deep", 32),))))


def conv_amx(x: Any) -> Any:
    kind, out = np.int8 if x.dtype is dtypes.uint8 else x.dtype.numpy, []
    for gathered in (False, True):
        attrs = {"window": (2, 3), "strides": (2, 1), "dilation": (1, 1 if gathered else 2)}
        w = packed("pack_conv_blocks", data((6, 5, 2, 3), kind), nr=NR, gathered=gathered)(x)
        out.append(finished(o.conv_amx(x, w, channels=6, gathered=gathered, **attrs)))
    return tuple(out)


def depthwise_int(x: Any) -> Any:
    kind = np.int8 if x.dtype is dtypes.uint8 else np.int16
    w = packed("pack_int_depthwise", data((5, 1, 3, 2), kind), high=2, stride=2)(x)
    return finished(o.depthwise_int(x, w, window=(3, 2), strides=(2, 1)))


def conv_bytes(x: Any) -> Any:
    w = packed("pack_int", data((2 * 3 * 5, 7), np.int8), nr=2)(x)
    return finished(o.conv_bytes(x, w, channels=7, zero=-3, window=(2, 3), strides=(1, 2),
                                 dilation=(2, 1), padding=((1, 0), (1, 2))))


def depthwise_bytes(x: Any) -> Any:
    w = constant(x, data((5, 3, 2), np.int8))
    return (finished(o.depthwise_bytes(x, w, zero=9, window=(3, 2), padding=((1, 1), (1, 0)))),
            o.depthwise_bytes(x, w, zero=0, window=(3, 2), strides=(2, 1), dilation=(1, 2)))


def winograd_int(x: Any) -> Any:
    w = packed("pack_int_winograd", data((8, 3, 3, 3), np.int8), tile=2, nr=NR)(x)
    return o.winograd_int(x, w, channels=8, tile=2)


def recurrence(p: Any) -> Any:
    out = []
    for kind, gates in (("lstm", 4), ("gru_linear", 3)):
        part = o.slice(p, start=(0,) * 4, limit=(*p.shape[:3], 3 * gates), strides=(1,) * 4)
        out += o.recurrence(part, constant(p, data((2, 3, 3 * gates))), constant(
            p, data((2, 3 * gates))), kind=kind, direction="bidirectional")
    return tuple(out)


def recurrence_grad(p: Any) -> Any:
    r = constant(p, data((2, 3, 12)))
    y, *_, kept = o.recurrence(p, r, kind="lstm", direction="bidirectional")
    return tuple(o.recurrence_grad(r, y, kept, y * 0.5, kind="lstm", direction="bidirectional"))


def sort(x: Any) -> Any:
    half = o.cast(x, dtype=dtypes.float16)
    return (*o.sort(x, axis=0), *o.top_k(half, k=2, axis=1), o.top_k(x, k=3, axis=1,
                                                                     largest=False)[1])


def cholesky(x: Any) -> Any:
    return o.cholesky_whole(x)


def triangular(a: Any, b: Any) -> Any:
    turned = o.transpose(a, perm=(0, 2, 1))
    one = o.slice(b, start=(0, 0, 0), limit=(*b.shape[:2], 1), strides=(1, 1, 1))
    return (o.triangular_whole(a, b), o.triangular_whole(turned, b, lower=False, unit=True),
            o.triangular_whole(turned, one, lower=False), o.triangular_whole(a, one))


def fft(x: Any) -> Any:
    n = x.shape[-1]
    angle = 2 * np.pi * np.arange(n) / n
    table = constant(x, np.stack([np.cos(angle), np.sin(angle)]).astype(x.dtype.numpy))
    return (*o.fft(x, None, table, half=True), o.fft(x, x * 2.0, table, inverse=True)[1])


def trees(x: Any) -> Any:
    """Two trees: a root each, and leaves; the second one takes NaN to its child 1."""
    tables = ([0, -1, -1, 17, -1, -1], np.zeros(6, np.float32),
              [[1, 2], [1, 0], [2, 1], [4, 5], [4, 2], [5, 3]], [0, 3], data((4, 2)))
    given = [constant(x, np.asarray(t, np.int32) if isinstance(t, list) else t) for t in tables]
    return (o.trees(x, *given, depth=1, compare="lt", fold="sum"),
            o.trees(x, *given, depth=1, compare="mixed", missing=True, fold="max"))


def nbits(x: Any) -> Any:
    tables = (data((9, 5, 8), np.uint8), data((9, 5)), data((9, 5)))
    return o.linear_nbits(x, *(constant(x, t) for t in tables), bits=4, block=16)


def panels(op: Any) -> Callable[[Any], Any]:
    def fn(x: Any) -> Any:
        tables = [o.pack(data((9, 5)), nr=TARGET.lanes, transpose=True) for _ in range(2)]
        w = o.pack_nbits(data((9, 5, 8), np.uint8), lanes=TARGET.lanes, bits=4)
        return op(x, *(constant(x, t) for t in (w, *tables)), n=9, bits=4, block=16)
    return fn


def collective(x: Any) -> Any:
    y, ticket = o.collective_begin(x, kind="sum")
    return o.collective_end(x, y, ticket)


SAMPLES: dict[str, list[tuple[Callable[..., Any], tuple[str, ...]]]] = {
    "attend": [(attention, ("f32[4,6,8]", "f32[2,6,8]", "f32[2,6,5]", "f32[4,6,6]")),
               (narrow_attention, ("f32[4,1,8]", "bf16[1,6,8]", "bf16[1,6,5]")),
               (narrow_attention, ("f32[4,5,8]", "f16[2,6,8]", "f16[2,6,5]", "f32[5,6]")),
               *((narrow_attention, (f"f32[4,{n},8]", "i8[2,6,8]", "i8[2,6,5]", f"f32[{n},6]",
                                     "f32[2,6,1]", "f32[2,6,1]")) for n in (2, 5))],
    "attend_amx": [(attention_amx, ("bf16[4,37,8]", "bf16[2,35,8]", "bf16[2,35,5]",
                                    "f32[4,37,35]"))],
    "attend_bytes": [(attention_bytes, ("u8[2,37,8]", "u8[2,35,8]", "u8[2,35,5]"))],
    "attend_parts": [(attention_parts, ("f32[4,37,8]", "f32[2,35,8]", "f32[2,35,5]",
                                        "f32[4,37,35]"))],
    "blas": [(blas, ("f32[2,3,5]",))],
    "cholesky": [(cholesky, ("f32[2,11,11]",)), (cholesky, ("f64[1,3,3]",))],
    "collective": [(collective, ("f32[6]",))],
    "conv_direct": [(conv, ("f32[2,5,8,8]",)), (conv_inside, ("f32[2,11,12,8]",)),
                    (conv_pairs, ("bf16[1,5,7,3]",))],
    "depthwise": [(depthwise, ("f32[2,7,6,5]",)), (neighbours, ("f32[1,5,6,3]",)),
                  (row_sums, ("f32[2,7,6,5]",))],
    "fft": [(fft, ("f32[2,30]",)), (fft, ("f64[2,30]",))],
    "gemm": [(gemm, ("f32[2,3,5]",)), (gemm_across, ("f32[2,3,6]",)), (gemm_pairs, ("bf16[4,5]",)),
             (gemm, ("f32[1,5]",))],
    "conv_amx": [(conv_amx, ("u8[2,5,19,5]",)), (conv_amx, ("bf16[1,5,7,5]",)),
                 (conv_amx, ("bf16[2,9,7,5]",)), (conv_amx, ("f16[1,5,7,5]",))],
    "conv_parts": [(conv_parts, ("f32[2,5,19,12]",))],
    "conv_grad_parts": [(conv_grad_parts, ("f32[2,2,15,35]", "f32[2,5,19,12]"))],
    "conv_bytes": [(conv_bytes, ("i8[2,5,8,5]",))],
    "conv_int": [(conv_int, ("u8[2,5,8,5]",))],
    "depthwise_bytes": [(depthwise_bytes, ("u8[2,7,6,5]",))],
    "depthwise_grad": [(depthwise_grad, ("f32[2,9,12,21]", "f32[2,4,5,21]")),
                       (depthwise_grad, ("bf16[2,9,12,5]", "bf16[2,4,5,5]"))],
    "depthwise_int": [(depthwise_int, (f"{kind}[2,9,6,5]",)) for kind in ("u8", "i16")],
    "conv_wide": [(conv_wide, ("bf16[2,5,9,8]",)), (conv_wide, ("f16[1,4,8,16]",)),
                  (conv_wide, ("u8[1,4,8,16]",)), (conv_wide, ("f32[1,5,8,12]",))],
    "gemm_wide": [(gemm_wide, ("bf16[2,4,70]",)), (gemm_wide, ("f16[19,70]",)),
                  (gemm_wide, ("u8[19,70]",)), (gemm_wide, ("f32[19,70]",))],
    "gemm_amx": [(gemm_amx, ("u8[2,4,70]",)), (gemm_amx, ("bf16[19,70]",)),
                 (gemm_amx, ("f16[19,70]",))],
    "gemm_amx_blocked": [(gemm_amx_blocked, ("bf16[19,70]",)),
                         (gemm_amx_across, ("bf16[2,45,19]",)),
                         (gemm_amx_across, ("f16[2,45,19]",))],
    "gemm_blocked": [(gemm_blocked, ("f32[2,3,5]",)), (gemm_blocked_across, ("f32[2,3,6]",))],
    "gemm_parts": [(gemm_parts, ("f32[19,70]",)), (gemm_parts_across, ("f32[2,45,19]",)),
                   (gemm_parts_moving, ("f32[2,45,19]",))],
    "gemm_int": [(gemm_int, ("u8[2,4,7]",)), (gemm_int_pairs, ("i16[4,7]",))],
    "linear_bf16": [(panels(o.linear_bf16), ("f32[19,70]",))],
    "linear_f32": [(panels(o.linear_f32), ("f32[3,70]",))],
    "linear_nbits": [(nbits, ("f32[3,70]",))],
    "linear_q8": [(panels(o.linear_q8), ("f32[3,70]",))],
    "pooled": [(pool, ("f32[2,7,9,5]",)), (pool, ("bf16[2,7,9,5]",))],
    "recurrence": [(recurrence, ("f32[3,2,2,12]",))],
    "recurrence_grad": [(recurrence_grad, ("f32[3,2,2,12]",))],
    "sort": [(sort, ("f32[5,4]",))],
    "transpose": [(transpose, ("f32[96,64]",)), (transposed_pairs, ("bf16[96,64]",))],
    "trees": [(trees, ("f32[5,2]",))],
    "triangular": [(triangular, ("f32[2,5,5]", "f32[2,5,37]"))],
    "winograd": [(winograd, ("f32[2,6,7,3]",)), (winograd_int, ("u8[1,6,7,3]",))],
    "winograd_line": [(winograd_line, ("f32[2,8,13,3]",))]}


def typed(text: str) -> TensorType:
    short, _, shape = text.rstrip("]").partition("[")
    return TensorType(dtypes.dtype(short), tuple(map(int, shape.split(","))))


@cache
def sample(name: str, i: int) -> tuple[Module, Program, dict[str, Weight]]:
    function, types = SAMPLES[name][i]
    graph = trace(function, [typed(t) for t in types], [f"x{k}" for k in range(len(types))])
    module = Module(graph, tuple(f"y{k}" for k in range(len(graph.outputs))))
    target = TARGET if HOME in KERNELS[name].contract.languages else named("sm_90")
    fused = passes.run(module, "fuse", supply={"target": target})
    held = {w.digest: w for w in collect_all(fused.graph)}
    return module, lower(fused, target, name="model"), held


def uses(program: Program, name: str) -> list[Template]:
    return [s for k in program.kernels for s in k.body if isinstance(s, Template)
            and s.kernel == name]


CALLS = [(name, i) for name in sorted(KERNELS) for i in range(len(SAMPLES.get(name, [0])))]


@pytest.mark.parametrize(("name", "i"), CALLS)
def test_the_interpreter_agrees_with_the_evaluator(name: str, i: int) -> None:
    module, program, held = sample(name, i)
    assert uses(program, name)
    verify(program)
    xs = made_up.random_inputs(module, 0)
    want = interp.run(module, xs)
    for key, y in loops.run(program, xs, held).items():
        np.testing.assert_allclose(y.astype(np.float64), want[key].astype(np.float64), rtol=1e-4,
                                   atol=1e-5)


def changed(program: Program, name: str, change: Callable[[Template], Template]) -> Program:
    """The program with each use of a template changed."""
    def body(k: Any) -> Any:
        return replace(k, body=tuple(change(s) if isinstance(s, Template) and s.kernel == name
                                     else s for s in k.body))
    return replace(program, kernels=tuple(map(body, program.kernels)))


def refused(program: Program) -> str:
    with pytest.raises(InputError) as found:
        verify(program)
    assert found.value.code == "GT0380"
    return found.value.message


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_a_misspelt_macro_cannot_pass(name: str) -> None:
    _, program, _ = sample(name, 0)
    for macro, _ in uses(program, name)[0].macros:
        def misspelt(t: Template, macro: str = macro) -> Template:
            return replace(t, macros=tuple((f"{k}Z" if k == macro else k, v)
                                           for k, v in t.macros))
        assert f"{macro}Z" in refused(changed(program, name, misspelt))


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_a_macro_of_another_kind_or_left_out_cannot_pass(name: str) -> None:
    _, program, _ = sample(name, 0)
    for row in KERNELS[name].contract.macros:
        wrong: MacroValue = "#error" if row.kind in ("size", "literal") else 7
        given = [k for k, _ in uses(program, name)[0].macros]
        if row.name not in given:
            continue

        def other(t: Template, row: Any = row, wrong: MacroValue = wrong) -> Template:
            return replace(t, macros=tuple((k, wrong if k == row.name else v)
                                           for k, v in t.macros))

        def without(t: Template, row: Any = row) -> Template:
            return replace(t, macros=tuple(m for m in t.macros if m[0] != row.name))
        assert row.name in refused(changed(program, name, other))
        if row.default is REQUIRED:
            assert row.name in refused(changed(program, name, without))
