"""What the page shows of a node beside its picture: source, kernel, rivals, weights in figures, and
the errors of two runs along the graph.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from graphtool.analysis.costs import flops
from graphtool.io.weights import Weight
from graphtool.ir.facets import Precision, Trait
from graphtool.ir.graph import Group, Module, Node, Value, is_constant, names_of
from graphtool.ir.plan import of_plan
from graphtool.ir.text import attr_text, literal_text, shown_attrs
from graphtool.report.page.charts import decades, plot
from graphtool.symbolic import Dim
from graphtool.symbolic.terms import evaluate, symbols

SAMPLE = 1 << 16  # elements of a weight that are looked at, evenly spread over it
BARS = "▁▂▃▄▅▆▇█"
BINS = 24
FIRST = 6  # elements of a weight that are shown
FLOOR = 1e-9  # of the plot; smaller errors, and none, are drawn here
CEILING = 1e3
HEAD = ("value", "in the other run", "error", "largest difference", "out of tolerance", "elements")
_LABELS = (f"datum.value <= {1.5 * FLOOR} ? '≤ ' + format(datum.value, '~e') : "
           "format(datum.value, '~e')")
_VERDICTS = {"match": "#4c78a8", "first to part": "#cf222e", "parts": "#f58518"}


class NodeFacts:
    """The rows of a module's nodes; the figures of each weight are found once."""

    def __init__(self, module: Module, names: dict[Value, str],
                 rows: Mapping[Value, int] | None = None) -> None:
        """`rows`: the page's rows of inputs and of nodes with one result, by this value."""
        self.module, self.names, self.rows = module, names, {} if rows is None else rows
        self.fused: dict[Node, Group] = {n: g for g in module.graph.groups for n in g.members}
        self.weights: dict[Value, Weight] = {
            v: n.attrs["data"] for n in module.graph.nodes if is_constant(n) for v in n.outputs}
        self.figures: dict[str, list[str]] = {}

    def of(self, node: Node) -> dict[str, Any]:
        """The facts of a node, by the names that the page's script knows them by."""
        at = self.module.locations.get(node.where)
        group = self.fused.get(node)
        return {"type": ", ".join(str(v.type) for v in node.outputs),
                "kind": kind(node, self.weights), "brief": brief(node, self.weights),
                "flops": _least(flops(node)), "held": sum(
                    self.weights[x].nbytes for x in node.inputs if x in self.weights),
                "inputs": [line for x in node.inputs for line in self.operand(x)],
                "attrs": ", ".join(f"{k}={attr_text(x)}" for k, x in shown_attrs(node).items()
                                   if k != "plan"),
                "at": at.at if at else node.where, "text": at.text if at else "",
                "of": self.carried(node),
                "fused": group.root.hint if group else "", "rivals": self.rivals(node),
                "history": [line for v in node.outputs[:1]
                            for line in self.module.history.get(v.hint, ())]}

    def carried(self, node: Node) -> list[str]:
        """The author's names of the node's values, if they say more than the node's name."""
        names = list(names_of(node))
        return [] if names == [self.names[v] for v in node.outputs[:1]] else names

    def operand(self, x: Any) -> list[str | int]:
        """An operand with its type, or its row in the page. Below a weight:
        its least, mean and greatest value, a histogram between them, and its first numbers."""
        if not isinstance(x, Value):
            return [literal_text(x)]
        row = self.rows.get(x)
        if row is not None:
            return [row]
        line = f"{self.names[x]}: {x.type}"
        weight = self.weights.get(x)
        if weight is None:
            return [line]
        if weight.digest not in self.figures:
            self.figures[weight.digest] = [*figures(weight), *first_numbers(weight)]
        return [line, *self.figures[weight.digest]]

    def rivals(self, node: Node) -> list[str]:
        """The chosen kernel and the kernels that were not chosen, with their µs."""
        plan = node.attrs.get("plan")
        if plan is None:
            return []
        choice = of_plan(self.module.choices.get(node.outputs[0]), plan)
        if choice is None:
            return [str(plan)]
        how = "measured" if choice.by == "tuned" else "expected"
        return [f"{name}: {us:g} µs {how}" for name, us in choice.us.items()]


def kind(node: Node, weights: Collection[Value] = ()) -> str:
    """What the colour of a node says: the op's category; of the ops that compute, whether it is a
    layer, with a matrix of weights or a product of matrices, or arithmetic between layers."""
    op = node.op
    if op.category != "compute" or op.precision is Precision.LOW or any(
            x in weights and len(x.type.shape) > 1 for x in node.inputs if isinstance(x, Value)):
        return op.category
    return "arithmetic"


def brief(node: Node, weights: Collection[Value] = ()) -> str:
    """What a reader wants to see of a layer: `3→64, 7×7, stride 2` of a convolution, the window of
    a pooling, the sizes of a weight, a number that is added or multiplied."""
    held = [x for x in node.inputs if isinstance(x, Value) and x in weights]
    if "strides" in node.attrs:
        return _windowed(node, held)
    if Trait.ELEMENTWISE in node.op.traits:
        return ", ".join(literal_text(x) for x in node.inputs
                         if isinstance(x, int | float) and not isinstance(x, bool))
    shape = next((v.type.shape for v in held if len(v.type.shape) > 1), ())
    return "×".join(map(str, shape))


def _windowed(node: Node, held: Sequence[Value]) -> str:
    """The channels and the window of a convolution or a pooling, and how it moves."""
    attrs = node.attrs
    strides, window = attrs["strides"] or (), attrs.get("window")
    words = []
    if window is None:  # a filter is [outputs, inputs per group, *window]
        filters = [x for x in node.inputs[1:2] if isinstance(x, Value)]
        shape = filters[0].type.shape if filters else ()
        window = shape[2:]
        if filters and filters[0] in held and "groups" in attrs:
            words.append(f"{shape[1] * (attrs['groups'] or 1)}→{shape[0]}")
    if len(window) > 2 and window[:2] == (1, 1):  # of all axes
        window, strides = window[2:], strides[2:]
    words += ["×".join(map(str, window))] if window else []
    dilation = attrs.get("rhs_dilation") or attrs.get("dilation") or ()
    for name, sides in (("stride", strides), ("dilation", dilation),
                        ("groups", (attrs.get("groups") or 1,))):
        if set(sides) - {1}:
            shown = sides[:1] if len(set(sides)) == 1 else sides
            words.append(f"{name} {'×'.join(map(str, shown))}")
    return ", ".join(words)


def _least(size: Dim) -> int:
    """A size whose open dims have their least value, and not 0."""
    return evaluate(size, {s.name: max(1, s.lo or 0) for s in symbols(size)})


def figures(weight: Weight) -> list[str]:
    """Least, mean and greatest value, standard deviation, and a histogram as a line of bars. Of a
    large weight every n-th element counts, and this is said. Nothing for a weight whose numbers are
    not at hand, or none of which is finite."""
    if weight.absent or not weight.size or not (
            weight.dtype.is_float or weight.dtype.is_integer):
        return []
    data = weight.source.reshape(-1)
    step = -(-data.size // SAMPLE)
    seen = data[::step].astype(np.float64)
    data = seen[np.isfinite(seen)]
    if not data.size:
        return []
    notes = [f"{np.count_nonzero(data == 0) / seen.size:.0%} zero"] * bool(
        np.count_nonzero(data == 0) > seen.size / 100)
    notes += [f"{seen.size - data.size:,} not finite"] * bool(seen.size > data.size)
    notes += [f"by every {step}th element"] * (step > 1)
    low, span = data.min() / 2, data.max() / 2 - data.min() / 2  # halves: the range may overflow
    places = (data / 2 - low) / span if span > 0 else np.full(data.shape, 0.5)
    counts = np.bincount(np.minimum((places * BINS).astype(int), BINS - 1), minlength=BINS)
    bars = "".join(BARS[int(c * (len(BARS) - 1) / counts.max() + 0.5)] for c in counts)
    with np.errstate(over="ignore", invalid="ignore"):
        return [f"  {data.min():.3g} … {data.max():.3g}, mean {data.mean():.3g} ± {data.std():.3g}"
                + "".join(f", {note}" for note in notes),
                f"  {bars}"]


def first_numbers(weight: Weight) -> list[str]:
    """The first FIRST elements in the order of memory, as a line; nothing if they are not at hand.
    """
    if weight.absent or not weight.size:
        return []
    data = weight.source.reshape(-1)[:FIRST]
    more = ", …" if weight.size > FIRST else ""
    return [f"  = {', '.join(_short(x) for x in data.tolist())}{more}"]


def _short(x: Any) -> str:
    return f"{x:.3g}" if isinstance(x, float | complex) else str(x)


class Apart(msgspec.Struct):
    """One value of the first run and of the second. `error` is the root of the mean square of the
    difference over that of the first run's value; infinite if one side has NaN where the other has
    not. `ok`: within the tolerance."""

    name: str
    other: str
    error: float
    ok: bool
    max_abs: float
    out: int
    elements: int


def of_numbers(name: str, rows: Sequence[Apart]) -> dict[str, Any]:
    """The section of a comparison. A value is within the tolerance, the first one out of it, or a
    later one."""
    first = next((r.name for r in rows if not r.ok), "")
    text = (f"The first value that parts is {first}, {_error(next(r for r in rows if not r.ok))}."
            if first else f"All {len(rows)} values match." if rows else
            "The two graphs have no value in common.")
    return {"name": f"numbers: {name}", "kind": "numbers", "lines": [text],
            "charts": [_plot(name, rows, first)] if rows else [],
            "table": {"head": HEAD, "rows": [
                (r.name, "" if r.other == r.name else r.other, f"{r.error:.3g}",
                 f"{r.max_abs:.3g}", str(r.out or ""), str(r.elements)) for r in rows]}}


def marked(section: dict[str, Any], rows: Sequence[Apart], other: bool) -> None:
    """Tell the section of a graph about its values; `other`: it is the second run."""
    first = True
    for r in rows:
        name = r.other if other else r.name
        section.setdefault("errors", {})[name] = _error(r)
        if not r.ok:
            section.setdefault("parts", {})[name] = "first" if first else "later"
            first = False


def _error(r: Apart) -> str:
    return (f"{r.error:.3g} of its size, at most {r.max_abs:.3g}, "
            f"{r.out} of {r.elements} elements out of tolerance")


def _drawn(r: Apart) -> float:
    return min(max(r.error, FLOOR), CEILING)


def _plot(name: str, rows: Sequence[Apart], first: str) -> str:
    values = [{"place": i, "value": r.name, "error": _drawn(r),
               "verdict": "match" if r.ok else "first to part" if r.name == first else "parts",
               "told": f"{r.name}: {_error(r)}"} for i, r in enumerate(rows, 1)]
    shown = [v for v in _VERDICTS if any(row["verdict"] == v for row in values)]
    x = {"field": "place", "type": "quantitative", "title": "value, in the order of the graph",
         "axis": {"tickMinStep": 1, "format": "d"}, "scale": {"nice": True}}
    y = {"field": "error", "type": "quantitative", "scale": {"type": "log", "nice": True},
         "title": "error, of the value's size", "axis": {
             "values": decades([_drawn(r) for r in rows]), "labelExpr": _LABELS}}
    return plot({
        "width": 860, "height": 280, "title": name, "data": {"values": values}, "layer": [
            {"mark": {"type": "line", "color": "#9a9aa0", "strokeWidth": 1},
             "encoding": {"x": x, "y": y}},
            {"mark": {"type": "circle", "opacity": 1}, "encoding": {
                "x": x, "y": y, "description": {"field": "told"},
                "size": {"condition": {"test": "datum.verdict == 'first to part'", "value": 140},
                         "value": 36},
                "color": {"field": "verdict", "type": "nominal", "title": None, "scale": {
                    "domain": shown, "range": [_VERDICTS[v] for v in shown]}}}},
            {"transform": [{"filter": "datum.verdict == 'first to part'"}],
             "mark": {"type": "text", "dy": -12, "color": "currentColor", "align": {
                 "expr": f"datum.place > {len(rows) / 2} ? 'right' : 'left'"}},
             "encoding": {"x": x, "y": y, "text": {"field": "value"}}}]})
