"""How far two runs are apart at every value that both compute, in order, not only at the outputs.

Two graphs are run by the evaluator; a fused graph also as C, with the result of each kernel as an
output.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphtool import interp
from graphtool.compile.as_is import build
from graphtool.ir.graph import Module, is_constant
from graphtool.ir.serial import collect_all
from graphtool.ir.text import value_names
from graphtool.lower import lower
from graphtool.native import runtime
from graphtool.report.align import align
from graphtool.report.flat import flatten
from graphtool.report.page.facts import Apart
from graphtool.target import Target
from graphtool.verify.compare import Difference, difference, is_text
from graphtool.verify.repro import with_steps
from graphtool.verify.sides import by_position, of_module

Array = np.ndarray[Any, Any]


def along(a: Module, b: Module, inputs: Mapping[str, Array], atol: float | None, rtol: float
          ) -> list[Apart]:
    """Every value that both graphs have, in the order of the first one, which is the reference.

    Values belong together where `diff` aligns their nodes, else by the names that their author gave
    and passes keep, if their shapes are equal. `inputs` are named as those of the first graph."""
    ours = _values(a, inputs)
    theirs = _values(b, by_position(inputs, of_module(a).inputs, of_module(b).inputs))
    rows = []
    for name, other in _pairs(a, b).items():
        x, y = ours.get(name), theirs.get(other)
        y = None if x is None or y is None else _alike(x, y)
        if x is not None and y is not None:
            rows.append(_apart(difference(name, x, y, atol, rtol), other, x, y))
    return rows


def compiled(fused: Module, inputs: Mapping[str, Array], target: Target, atol: float | None,
             rtol: float) -> list[Apart]:
    """The result of every kernel of a fused graph: the evaluator's, and that of compiled C."""
    every = with_steps(fused)
    program = lower(every, target, name="steps")
    wanted = interp.run(every, inputs)
    with tempfile.TemporaryDirectory(prefix="graphtool-") as folder:
        built = build(program, Path(folder) / "build", name="steps", target=target,
                      store={w.digest: w for w in collect_all(every.graph)})
        outputs = runtime.load(built).run(inputs)
    return [_apart(difference(name, x, outputs[name], atol, rtol), name, x, outputs[name])
            for name, x in wanted.items()]


def _values(module: Module, inputs: Mapping[str, Array]) -> dict[str, Array]:
    values: dict[str, Array] = {}
    interp.run(module, inputs, on_value=values.__setitem__)
    return values


def _pairs(a: Module, b: Module) -> dict[str, str]:
    """The values of both, by name, in the order of the first."""
    left, right = flatten(a.graph), flatten(b.graph)
    aligned = {left[i].name: right[j].name for i, j in align(left, right).items()
               if left[i].op not in ("constant", "input", "return", "region")}
    names = value_names(a.graph)
    computed = [names[n.outputs[0]] for n in a.graph.nodes if n.outputs and not is_constant(n)]
    ends, taken = _ends(computed, b), set(aligned.values())
    partner = {name: aligned.get(name) or ends.get(name, "") for name in computed}
    return {name: other for name, other in partner.items()
            if other and (name in aligned or other not in taken)}


def _ends(wanted: Sequence[str], module: Module) -> dict[str, str]:
    """For a value of another stage, the last node that passes derived from it, as `relu.select` is
    from `relu`."""
    known, out = set(wanted), dict[str, str]()
    for v, name in value_names(module.graph).items():
        stem = v.hint
        while stem and stem not in known:
            stem = stem.rpartition(".")[0]
        if stem:
            out[stem] = name
    return out


def _alike(x: Array, y: Array) -> Array | None:
    """The second value in the layout of the first: with channels last, its axis comes back. None
    if their shapes differ, or for strings."""
    if is_text(x) or is_text(y):
        return None
    if x.shape != y.shape and x.ndim == y.ndim > 2:
        y = np.moveaxis(y, -1, 1)
    return y if x.shape == y.shape else None


def _apart(d: Difference, other: str, x: Array, y: Array) -> Apart:
    e, a = (np.asarray(v, np.float64) for v in (x, y))
    with np.errstate(all="ignore"):
        same = (e == a) | (np.isnan(e) & np.isnan(a))
        gap = float(np.sqrt(np.mean(np.where(same, 0.0, a - e) ** 2))) if e.size else 0.0
        size = float(np.sqrt(np.mean(np.where(np.isfinite(e), e, 0.0) ** 2))) if e.size else 0.0
        error = gap / size if size else gap
    return Apart(d.name, other, error if np.isfinite(error) else float("inf"), d.ok,
                 float(d.max_abs), d.out, d.elements)
