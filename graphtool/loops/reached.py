"""The elements that a kernel touches, as polynomials over the loops around them, with all that is
known there of each name: what a proof about its indices starts from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphtool.errors import InputError, UndecidedOrder
from graphtool.loops import walk
from graphtool.loops.contract import CONTRACTS
from graphtool.loops.ir import (
    Apply,
    Expr,
    For,
    Hook,
    If,
    Let,
    MacroValue,
    Stmt,
    Store,
    Template,
)
from graphtool.loops.program import Kernel
from graphtool.loops.scope import Loops, Scope, ends_of, from_data, type_ends
from graphtool.loops.tiling import divided
from graphtool.loops.touches import Area, Rows
from graphtool.loops.verify_kernel import REDUCTIONS
from graphtool.loops.verify_template import TemplateUse, dense
from graphtool.symbolic import (
    Dim,
    Poly,
    Symbol,
    coefficient,
    dim_of,
    substitute,
    symbols,
)
from graphtool.symbolic.nonnegative import Ends, Proof

CASES = 4  # ranges of sizes, within each other, that a template may tell apart
ACC, COUNT = "acc", "count"  # the part of a row that a hook is given, and its length


@dataclass(frozen=True)
class Touch:
    """A load or store: the element `index` of the buffer behind a parameter, for all iterations of
    the scope's loops. `changes`: what is stored is computed from the same element, and may be so
    again where it `adds`: as a sum, a product, an extreme."""

    buffer: str
    index: Dim
    writes: bool
    scope: Scope
    changes: bool = False
    adds: bool = False
    scratch: bool = False  # memory that belongs to a thread

    @property
    def data(self) -> list[str]:
        """The values of the names in the index that data decide."""
        return [self.scope.data[s.name] for s in symbols(self.index) if s.name in self.scope.data]

    @property
    def chosen(self) -> bool:
        """Whether data or a condition choose if and where it takes place."""
        return self.scope.conditional or bool(self.data)

    @property
    def domain(self) -> tuple[Dim, Loops]:
        """The index, and the loops over all that it takes: the parts of a hook's row are one."""
        index, loops, row = self.index, self.scope.loops, self.scope.row
        loops = tuple((n, self.scope.of(e)) for n, e in loops)
        part = next((n for n, e in loops if row and e == self.scope.values[COUNT]), "")
        factors = [coefficient(index, n) for n in (row, part)]
        if not part or factors[0] is None or factors[0] != factors[1]:
            return index, loops
        whole = dict(loops)[row]
        return substitute(index, {row: 0}), tuple(
            (n, whole if n == part else e) for n, e in loops if n != row)

    def inside(self, size: Dim) -> bool:
        """Whether it is shown that the index is inside of so many elements."""
        known = tuple((n, self.scope.of(e)) for n, e in self.scope.loops)
        index, loops = divided(self.index, known)
        parts = {n: Ends((0,), (e - 1,)) for n, e in loops if n not in self.scope.names}
        proof = Proof({**self.scope.names, **parts})
        return proof.holds(index) and proof.holds(self.scope.of(size) - 1 - index)


def touches(kernel: Kernel, around: Scope, lanes: int,
            numbers: Mapping[str, Ends] | None = None) -> Iterator[Touch]:
    """All that a kernel touches, whatever conditions say; `numbers` has what runs pass.

    Raises InputError for a template whose footprint cannot be stated for all sizes.
    """
    around = around.inner()
    for n in kernel.numbers:
        around.define(n.name, (numbers or {}).get(n.name, type_ends(n)))
    yield from _body(kernel.body, around, lanes)


def _body(body: Iterable[Stmt], scope: Scope, lanes: int) -> Iterator[Touch]:
    start: Scope | None = scope
    for s, here in walk.scoped(body, start, _inner):
        if here is None:
            continue
        for e in walk.values(s):
            yield from _loads(e, here)
        match s:
            case Let(name, value, mutable) if not value.dtype.is_float:
                here.define(name, type_ends(value) if mutable else ends_of(value, here))
                if data := from_data(value, here):
                    here.data[name] = data
            case Store(buffer, index, value):
                here_before = [x for x in walk.loads(value)
                               if x.buffer == buffer and x.index == index]
                adds = isinstance(value, Apply) and value.fn in REDUCTIONS and any(
                    x in value.args for x in here_before)
                yield Touch(buffer, here.of(index), True, here, bool(here_before), adds)
            case Template():
                yield from _cases(s, here, lanes)


def _inner(s: Stmt, scope: Scope | None) -> list[Scope | None]:
    """The scopes of the bodies of a statement; None for hooks, which `_hook` follows."""
    match s:
        case For(i, extent) if scope is not None:
            return [scope.loop(i.name, scope.of(extent))]
        case If() if scope is not None:
            return [scope.inner(conditional=True) for _ in walk.bodies(s)]
    return [None for _ in walk.bodies(s)]


def _loads(e: Expr, scope: Scope) -> Iterator[Touch]:
    for x in walk.loads(e):
        yield Touch(x.buffer, scope.of(x.index), False, scope)


# ---- templates ---------------------------------------------------------------------------------

class _Open(TemplateUse):
    """A use whose macros may be polynomials of open sizes."""

    scope: Scope

    def get(self, name: str) -> Any:
        """A macro's value, or its default."""
        row = self.contract.macro(name)
        value: MacroValue | None = dict(self.template.macros).get(
            name, row.default if row is not None else None)
        return self.scope.of(value) if isinstance(value, Poly) else value


def _cases(t: Template, scope: Scope, lanes: int) -> Iterator[Touch]:
    """What a template touches, for each range of sizes that it tells apart."""
    try:
        found = list(_template(t, scope, lanes))
    except UndecidedOrder as error:
        parts = _ranges(*error.pairs[0])
        if not parts or len(scope.case) >= CASES:
            raise
        for part in parts:
            yield from _cases(t, replace(scope.inner(), values=scope.values | {part[0]: part[1]},
                                         case=(*scope.case, part)), lanes)
    else:
        yield from found


def _ranges(a: Dim, b: Dim) -> list[tuple[str, Dim]]:
    """Ranges of one size, all that it may be, in which a < b, a == b and a > b are known, or in
    which a factor of both is 0 or not."""
    apart = a - b
    terms = apart.terms if isinstance(apart, Poly) else ()
    constant = sum(c for mono, c in terms if not mono)
    for mono, coeff in terms:
        for s, _ in mono:
            if isinstance(s, Symbol) and s.step == 1 and s.lo is not None:
                at = max(-constant // coeff, s.lo)
                ends = [(s.lo, at - 1), (at, at), (at + 1, s.hi)]
                return [(s.name, dim_of(Symbol(s.name, low, high)))
                        for low, high in ends if high is None or low <= high]
    return []


def _template(t: Template, scope: Scope, lanes: int) -> Iterator[Touch]:
    contract = CONTRACTS[t.kernel]
    use = _Open(contract, t, {}, lanes)
    object.__setattr__(use, "scope", scope)
    if contract.touches is None or contract.tables is not None:
        raise InputError("GT0380", f"data decide what {t.kernel} touches")
    for area in contract.touches(use):
        if isinstance(area, Rows):
            for hook in t.hooks:
                yield from _hook(hook, area.extents, scope, lanes)
        else:
            yield from _area(use, area, scope)


def _hook(h: Hook, extents: tuple[Dim, ...], scope: Scope, lanes: int) -> Iterator[Touch]:
    """What a hook touches: of a row, any part from the last index on, `count` elements long."""
    for s, extent in zip(h.indices, extents, strict=True):
        scope = scope.loop(s.name, extent)
    scope.row = h.indices[-1].name
    scope.define(COUNT, Ends((1,), (scope.of(extents[-1]) - scope.values[scope.row],)))
    yield from _body(h.body, scope, lanes)


def _area(use: TemplateUse, area: Area, scope: Scope) -> Iterator[Touch]:
    found = [p for p in use.template.pointers if p[0] == area.pointer]
    row = use.contract.pointer(area.pointer)
    if not found or row is None:
        return
    _, buffer, offset = found[0]
    at = (1,) if row.by_thread else area.at
    for name, extent in zip(row.arguments, at, strict=True):
        scope = scope.loop(name, extent)
    index = scope.of(offset)
    strides = area.strides or dense(area.shape)
    for n, (extent, stride) in enumerate(zip(area.shape, strides, strict=True)):
        scope = scope.loop(f"{area.pointer}.{n}", extent)
        index = scope.of(index + scope.values[f"{area.pointer}.{n}"] * stride)
    yield Touch(buffer, index, area.writes or row.writes, scope, scratch=row.by_thread)
