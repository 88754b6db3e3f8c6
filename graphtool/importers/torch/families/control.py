"""torch's higher-order ops: branches, loops and scans become ours, with their graphs as regions.

A region is closed: capture has turned every outer value that it reads into an operand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphtool.front.complex import Complex
from graphtool.importers.torch.driver.captured import CapturedProgram
from graphtool.importers.torch.driver.complex_pairs import PAIRED
from graphtool.importers.torch.driver.table import Handler, aten
from graphtool.importers.torch.kit import Array, Context, Refused, dtypes, o, trace
from graphtool.ir.graph import Graph, TensorType
from graphtool.ir.replay import inline

_SPACE = "higher_order"


def region_op(*names: str) -> Callable[[Handler], Handler]:
    """Declare a handler whose tensors may be complex. The regions take and return the real and
    the imaginary part of such a tensor as two neighbouring values."""
    def declare(fn: Handler) -> Handler:
        def joined(c: Context, *args: Any, **kwargs: Any) -> Any:
            return _joined(c, fn(c, *args, **kwargs))
        PAIRED.update({f"{_SPACE}.{name}": joined for name in names})
        return aten(*names, namespace=_SPACE)(fn)
    return declare


def _joined(c: Context, results: Any) -> tuple[Any, ...]:
    """The results as a tuple; the two parts of a complex one become a Complex."""
    parts = iter(results if isinstance(results, (tuple, list)) else (results,))
    return tuple(Complex(next(parts), next(parts)) if split else next(parts)
                 for split in c.complex_outs)


def _tensors(*groups: Any) -> list[Array]:
    """The tensor operands, complex ones as two; a region reads sizes without an operand."""
    return [part for group in groups for x in group if isinstance(x, (Array, Complex))
            for part in ((x.real, x.imag) if isinstance(x, Complex) else (x,))]


def _all_tensors(what: str, *groups: Any) -> None:
    if not all(isinstance(x, (Array, Complex)) for group in groups for x in group):
        raise Refused(f"{what} that is a number is not supported; make it a tensor")


@region_op("cond")
def cond(c: Context, pred: Any, true_graph: CapturedProgram, false_graph: CapturedProgram,
         operands: tuple[Any, ...] = ()) -> Any:
    """Our cond with the two graphs as regions; `pred` may also be a comparison of sizes."""
    if not isinstance(pred, (Array, bool)):
        raise Refused("the condition of a branch must be a tensor or a comparison of sizes")
    flag = pred.reshape(()) if isinstance(pred, Array) else c.number(pred, dtypes.bool_)
    return o.cond(flag, *_tensors(operands), then=c.region(true_graph),
                  orelse=c.region(false_graph))


@region_op("while_loop")
def while_loop(c: Context, cond_fn: CapturedProgram, body_fn: CapturedProgram,
               carried: tuple[Any, ...], extra: tuple[Any, ...] = ()) -> Any:
    """Our while_ with the condition and the body as regions; numbers cannot be carried."""
    _all_tensors("a carried value", carried)
    return o.while_(*_tensors(carried, extra), cond=_flag(c.region(cond_fn)),
                    body=c.region(body_fn), carries=len(_tensors(carried)))


def _flag(graph: Graph) -> Graph:
    """The graph of a condition, its one result reshaped to rank 0."""
    if graph.outputs[0].type.rank == 0:
        return graph
    types = [v.type for v in graph.inputs]

    def flat(*xs: Array) -> Any:
        return inline(xs[0].builder, graph, xs)[0].reshape(())
    return trace(flat, types, [v.hint for v in graph.inputs])


@region_op("scan")
def scan(c: Context, combine_fn: CapturedProgram, init: tuple[Any, ...], xs: tuple[Any, ...],
         extra: tuple[Any, ...] = ()) -> Any:
    """Our scan over axis 0 of `xs`: (final carries…, stacked rows…)."""
    _all_tensors("a carried or scanned value", init, xs)
    if not xs:
        raise Refused("a scan without a tensor to scan is not supported; give at least one in "
                      "`xs`")
    return o.scan(*_tensors(init, xs, extra), body=c.region(combine_fn),
                  carries=len(_tensors(init)), xs=len(_tensors(xs)), length=xs[0].shape[0])


@region_op("map_impl")
def map_impl(c: Context, f: CapturedProgram, xs: tuple[Any, ...], extra: tuple[Any, ...] = ()
             ) -> Any:
    """f of each slice along axis 0: a scan without carried values."""
    return scan(c, f, (), xs, extra)


@region_op("associative_scan")
def associative_scan(c: Context, combine_fn: CapturedProgram, xs: tuple[Any, ...],
                     extra: tuple[Any, ...] = ()) -> Any:
    """y₀ = x₀, yₜ = f(yₜ₋₁, xₜ): a scan whose carried value is also its output row."""
    _all_tensors("a scanned value", xs)
    xs, graph = tuple(_tensors(xs)), c.region(combine_fn)
    n = len(xs)
    rows = [TensorType(x.dtype, x.shape[1:]) for x in xs]
    types = [*rows, *rows, *(x.type for x in _tensors(extra))]

    def step(*given: Array) -> Any:
        out = inline(given[0].builder, graph, given)
        return (*out, *out)
    first = [x.take(0, 0, 1) for x in xs]
    init = [x.reshape(x.shape[1:]) for x in first]
    rest = [x.take(0, 1, x.shape[0]) for x in xs]
    out = o.scan(*init, *rest, *_tensors(extra), body=trace(step, types), carries=n, xs=n,
                 length=rest[0].shape[0])
    return tuple(o.concat(a, b, axis=0) for a, b in zip(first, out[n:], strict=True))


# ---- graphs that are only set apart ------------------------------------------------------------

def _inlined(c: Context, graph: CapturedProgram, operands: Any) -> Any:
    return tuple(inline(c, c.region(graph), _tensors(operands)))


@region_op("wrap_with_set_grad_enabled", "invoke_subgraph")
def wrapped(c: Context, first: Any, second: Any, *operands: Any) -> Any:
    """The graph inlined; called with gradients off (first is False), its results are detached."""
    result = _inlined(c, first if isinstance(first, CapturedProgram) else second, operands)
    return tuple(o.stop_gradient(x) for x in result) if first is False else result


@region_op("wrap_with_autocast")
def autocast(c: Context, device: Any, dtype: Any, enabled: bool, cache: Any, graph: CapturedProgram,
             *operands: Any) -> Any:
    """The graph inlined if autocast is off; refused if it is on."""
    if enabled:
        raise Refused("autocast is not supported, because torch chooses the dtypes at run time; "
                      "cast by hand")
    return _inlined(c, graph, operands)


@region_op("tag_activation_checkpoint", "wrap")
def checkpoint(c: Context, graph: CapturedProgram, *operands: Any, **_: Any) -> Any:
    """The graph inlined: recomputation is decided by our own passes."""
    return _inlined(c, graph, operands)
