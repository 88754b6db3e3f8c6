"""Values that a check may give to inputs of a model: those whose numbers must fit sizes, as the
lengths of a cache or the parts of a split. Random numbers would be refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphtool.front import Array
from graphtool.importers.least_sizes import least_sizes
from graphtool.importers.onnx.driver.schemas import plain_domain
from graphtool.ir.facets import Movement, Trait
from graphtool.ir.graph import Graph, Value
from graphtool.ir.run_sizes import all_nodes, bare
from graphtool.symbolic import Dim, Symbol, floordiv, minimum, product, text

Example = int | float | str
Examples = Mapping[int, Sequence[Dim | float]]
_MICROSOFT = "com.microsoft"


class ExampleValues:
    """The values of inputs, and the sizes, that the nodes so far can be run on."""

    def __init__(self) -> None:
        self.values: dict[str, list[Example]] = {}
        self.sizes: dict[str, Example] = {}

    def note(self, node: Any, inputs: Sequence[Any], results: Sequence[Any],
             attributes: Callable[[], Mapping[str, Any]]) -> None:
        """Add those of a node."""
        if all(x is None or isinstance(x, Array) for x in (*inputs, *results)):
            self.values |= _values(node, inputs, results, attributes)
            self.sizes |= _sizes(node, inputs)

    def fit(self, graph: Graph, free: Mapping[str, Symbol]) -> None:
        """Add sizes with which nothing inside of branches and loops is empty. They are not
        required: a run may take another branch."""
        inside = {*all_nodes(graph)} - {*graph.nodes}
        shapes = (d - 1 for n in inside for v in n.outputs for d in v.type.shape)
        least = {name: n for name, n in least_sizes(shapes, free).items() if n > 1}
        self.sizes = {**least, **self.sizes}

    def meta(self) -> dict[str, Any]:
        """Entries of a module's meta data."""
        rows = {"examples": self.values, "example_sizes": self.sizes}
        return {name: row for name, row in rows.items() if row}


def _values(node: Any, inputs: Sequence[Any], results: Sequence[Any],
            attributes: Callable[[], Mapping[str, Any]]) -> dict[str, list[Example]]:
    """By the names of model inputs, the values that this node can be run on: numbers, or sizes as
    text; one value is for all elements."""
    row = _ROWS.get((plain_domain(node.domain), node.op_type))
    if row is None:
        return {}
    out: dict[str, list[Example]] = {}
    for i, values in row(inputs, attributes(), results).items():
        x = inputs[i] if i < len(inputs) else None
        if x is None or x.known is not None:
            continue
        source, counted = _source(x)
        if source is not None:  # a sum over a mask is the number of ones
            out[source.hint] = [1] if counted else [
                v if isinstance(v, int | float) else text(v) for v in values]
    return out


def _sizes(node: Any, inputs: Sequence[Any]) -> dict[str, Example]:
    """Sizes that this node can be run on, by the names of symbols: numbers, or sums as text.

    onnxruntime adds several keys at once to a cache only for a single sequence; the number of all
    keys, where it is a size itself, is that of the old and the new ones.
    """
    if (plain_domain(node.domain), node.op_type) != (_MICROSOFT, "GroupQueryAttention") or (
            len(inputs) < 7 or inputs[3] is None):
        return {}
    steps, past, total = inputs[0].shape[1], inputs[3].shape[2], inputs[6].known
    batch = inputs[0].shape[0]
    out: dict[str, Example] = {s.name: 1 for s in (bare(steps) or bare(batch),) if s is not None}
    size = None if total is None or total.size != 1 else bare(total.reshape(-1)[0])
    return out if size is None else out | {size.name: text(past + steps)}


def _source(x: Array) -> tuple[Value | None, bool]:
    """The input whose elements x has, in another type or shape; or the input that is summed to x,
    and whether it is."""
    v, counted, shifted = x.value, False, False
    while (node := x.builder.made_by.get(v)) is not None:
        counted |= node.op.name == "reduce_sum"
        shifted |= node.op.name in ("sub", "add")
        moves = node.op.movement is Movement.KEEPS or Trait.CONVERTS in node.op.traits
        first = node.inputs[0] if node.inputs else None
        if not isinstance(first, Value) or not (
                moves or node.op.name in ("reduce_sum", "sub", "add")):
            return None, False
        v = first
    return (None if shifted and not counted else v), counted


# ---- what each operator can be run on -----------------------------------------------------------

def _cache(xs: Sequence[Any], _: Any, results: Sequence[Any]) -> Examples:
    """Every sequence is as long as the new cache: the old one and the new keys, or a buffer that
    keeps its size."""
    total = results[1].shape[2] if len(results) > 1 and results[1] is not None else xs[0].shape[1]
    return {5: (total - 1,), 6: (total,)}


def _boxes(*_: Any) -> Examples:
    return {2: (2,), 3: (0.5,), 4: (0.0,)}


def _same_elements(xs: Sequence[Any], *_: Any) -> Examples:
    count = xs[1].shape[0] if len(xs) > 1 else 0  # in opset 1 the shape is an attribute
    return {1: (product(xs[0].shape), *(1,) * (count - 1))} if isinstance(count, int) and count \
        else {}


def _parts(xs: Sequence[Any], attributes: Mapping[str, Any], results: Sequence[Any]) -> Examples:
    n, others = xs[0].shape[attributes.get("axis", 0)], len(results) - 1
    part = floordiv(n, len(results))
    return {1: (n - part * others, *(part,) * others)}


def _twice(xs: Sequence[Any], attributes: Mapping[str, Any], _: Any) -> Examples:
    axes = attributes.get("axes") or range(len(xs[0].shape))
    by = [2 if a % len(xs[0].shape) > 1 else 1 for a in axes]
    sizes = [xs[0].shape[a] * n for a, n in zip(axes, by, strict=True)]
    return {2: [float(n) for n in by], 3: sizes}


def _few(xs: Sequence[Any], attributes: Mapping[str, Any], _: Any) -> Examples:
    return {1: (minimum(xs[0].shape[attributes.get("axis", -1)], 2),)}


_ROWS: dict[tuple[str, str], Callable[..., Examples]] = {
    (_MICROSOFT, "GroupQueryAttention"): _cache,
    ("", "NonMaxSuppression"): _boxes,
    ("", "Reshape"): _same_elements,
    ("", "Expand"): lambda xs, *_: {1: xs[0].shape} if xs[1].shape == (len(xs[0].shape),) else {},
    ("", "Split"): _parts,
    ("", "Resize"): _twice,
    ("", "TopK"): _few,
    ("", "OneHot"): lambda *_: {1: (4,)},
    ("", "Range"): lambda *_: {0: (1,), 1: (4,), 2: (1,)},
}
