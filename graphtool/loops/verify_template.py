"""What the templates of a kernel touch, and the calls of their hooks, for numbers of the dims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphtool.dtypes import DType
from graphtool.errors import InputError
from graphtool.loops import walk
from graphtool.loops.contract import CONTRACTS, Contract
from graphtool.loops.ir import For, Hook, MacroValue, Stmt, Template
from graphtool.loops.spans import WIDE, Array, Points, Spans, positions, touch
from graphtool.loops.touches import Area, Rows
from graphtool.symbolic import Poly, evaluate

Env = Mapping[str, int]
ALIGN = 64
UNDECLARED = ("give its Contract `touches=`: a function that yields an Area for each pointer, the "
              "elements that the C touches there (docs/how-to/add-a-kernel.md)")


@dataclass(frozen=True)
class TemplateUse:
    """A template with numbers for its macros, as a contract's `touches` asks for them; `lanes` are
    the floats of a vector."""

    contract: Contract
    template: Template
    env: Env
    lanes: int

    def get(self, name: str) -> Any:
        """A macro's value, or its default. Raises KeyError where a symbol has no number."""
        row = self.contract.macro(name)
        value: MacroValue | None = dict(self.template.macros).get(
            name, row.default if row is not None else None)
        number = evaluate(value, self.env) if isinstance(value, Poly) else value
        if row is not None and row.kind == "size" and isinstance(number, int):
            self.need(-WIDE <= number <= WIDE, f"a {name} that fits 64 bits")
        return number

    def sizes(self, names: str) -> list[Any]:
        """The values of several macros, whose names stand with blanks between."""
        return [self.get(n) for n in names.split()]

    def has(self, name: str) -> bool:
        """Whether a pointer or macro was given."""
        return any(name == given[0] for given in (*self.template.pointers, *self.template.macros))

    def need(self, condition: bool, what: str) -> None:
        """Raises InputError GT0380 unless the condition holds."""
        if not condition:
            raise InputError("GT0380", f"{self.contract.name} needs {what}")


Calls = list[tuple[Hook, tuple[int, ...], Env]]


def template_spans(body: Iterable[Stmt], params: Mapping[str, DType], env: Env,
                   lanes: int, spans: Spans) -> Calls:
    """Add what templates touch to `spans`; the result has the calls of their hooks.

    Raises InputError GT0375 and GT0380 for what is wrong whatever the buffers are, and for
    templates with sizes that data decide, or that do not declare what they touch.
    """
    calls: Calls = []
    for t, here in _templates(tuple(body), env):
        contract = CONTRACTS[t.kernel]
        if contract.touches is None:
            raise InputError("GT0380", f"the kernel {t.kernel} does not declare what it touches, "
                                       f"so nobody can check that it stays inside its buffers",
                             hint=UNDECLARED)
        use = TemplateUse(contract, t, here, lanes)
        try:
            for area in contract.touches(use):
                if isinstance(area, Rows):
                    calls += [(h, area.extents, here) for h in t.hooks if min(area.extents) > 0]
                else:
                    _area(use, area, params, spans)
        except KeyError as error:
            raise InputError("GT0375", f"the data decide what {t.kernel} touches, by "
                                       f"{error}") from error
    return calls


def decisive(body: Iterable[Stmt], env: Env,
             lanes: int) -> Iterator[tuple[TemplateUse, dict[str, str]]]:
    """The templates for which the data of operands decide what is touched, with the parameters of
    these operands by the pointer's name."""
    for t, here in _templates(tuple(body), env):
        contract = CONTRACTS[t.kernel]
        if contract.tables is not None and contract.touches is not None:
            use = TemplateUse(contract, t, here, lanes)
            names = {a.pointer for a in contract.touches(use) if isinstance(a, Area) and a.decides}
            yield use, {name: b for name, b, _ in t.pointers if name in names}


def table_spans(use: TemplateUse, tables: Mapping[str, Array],
                params: Mapping[str, DType]) -> Spans:
    """What constant operands lead to, by their data."""
    spans: Spans = {}
    assert use.contract.tables is not None
    for area in use.contract.tables(use, tables):
        _area(use, area, params, spans)
    return spans


def _templates(body: tuple[Stmt, ...], env: Env) -> Iterator[tuple[Template, Env]]:
    """The templates, with the first and the last iteration of the loops around them."""
    for s in body:
        if isinstance(s, Template):
            yield s, env
        elif isinstance(s, For):
            if any(isinstance(x, Template) for x in walk.statements(s.body)):
                extent = evaluate(s.extent, env)
                for i in sorted({0, extent - 1}) if extent > 0 else ():
                    yield from _templates(s.body, {**env, s.iter.name: i})
        else:
            for inner in walk.bodies(s):
                yield from _templates(inner, env)


def _area(use: TemplateUse, area: Area, params: Mapping[str, DType], spans: Spans) -> None:
    name = area.pointer
    buffer = next((p[1] for p in use.template.pointers if p[0] == name), None)
    if buffer is None or 0 in area.shape or 0 in area.at:
        return
    use.need(min((*area.shape, *area.at), default=1) > 0, "sizes that are not negative")
    dtype = params[buffer]
    row = use.contract.pointer(name)
    writes = area.writes or (row is not None and row.writes)
    use.need(not writes or buffer in use.template.writes, f"a {name} that it can write")
    use.need(area.dtype in (None, dtype), f"{name} of type {area.dtype}, not {dtype}")
    strides = area.strides or dense(area.shape)
    far = [(n - 1) * s for n, s in zip(area.shape, strides, strict=True)]
    first = starts(use, name, (1,) if row is not None and row.by_thread else area.at)
    if area.aligned and (first * dtype.bytes % (use.lanes * 4)).any():
        use.need(False, f"{name} at a whole vector")
    touch(spans, buffer, float(first.min()) + sum(min(0, f) for f in far),
          float(first.max()) + sum(max(0, f) for f in far))


def starts(use: TemplateUse, pointer: str, extents: tuple[int, ...] = ()) -> Array:
    """Where a pointer leads for its arguments: all of them, or the ends and some between."""
    row = use.contract.pointer(pointer)
    assert row is not None
    offset = next(p[2] for p in use.template.pointers if p[0] == pointer)
    grid = positions(extents)
    table = {k: np.full(max(grid.shape[1], 1), v) for k, v in use.env.items()}
    return Points.at(table | dict(zip(row.arguments, grid, strict=True)), {}).dim(offset)


def dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array without gaps."""
    out = [1]
    for n in reversed(shape[1:]):
        out.append(out[-1] * n)
    return tuple(reversed(out))
