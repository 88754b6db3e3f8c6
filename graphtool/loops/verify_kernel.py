"""Checks one kernel: each name is defined before its use, and has the type with which it is used.

Names become part of the C text, so only plain identifiers are allowed, and macros must follow their
contracts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.errors import InputError
from graphtool.loops.contract import CONTRACTS, misfits
from graphtool.loops.ir import (
    Accumulate,
    Apply,
    Expr,
    For,
    Hook,
    If,
    Index,
    Let,
    Load,
    Name,
    Stmt,
    Store,
    Template,
)
from graphtool.loops.program import Kernel, Param
from graphtool.loops.walk import bodies, certain, fold, scoped, values
from graphtool.scalars.table import BY_NAME
from graphtool.symbolic import Dim, Poly, Symbol, bounds, symbols

# number of operands of functions that are not in the table of scalars
ARITY = {"select": 3, "cast": 1, "bitcast": 1}
REDUCTIONS = ("add", "mul", "max", "min", "and", "or")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
# no header of a template uses such names within its functions
LOCAL = re.compile(r"[a-z]{1,8}[0-9]{1,9}")
SCALARS = ("running", "kept")  # other names of scalars, which no macro reads
_RESERVED = re.compile(
    r"d\d+|gt_.*|auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|"
    r"goto|if|inline|int|long|register|restrict|return|short|signed|sizeof|static|struct|switch|"
    r"typedef|union|unsigned|void|volatile|while|threads|main|u?int\d+_t")


def fault(code: str, message: str, place: str = "") -> InputError:
    """An InputError with this code, message and place in the program."""
    return InputError(code, message, where=place)


def identifier(name: str, kind: str) -> None:
    """Refuse a name that is not a C identifier, or that the emitted C uses itself."""
    if not _IDENTIFIER.fullmatch(name) or (kind != "buffer" and _RESERVED.fullmatch(name)):
        raise fault("GT0370", f"{name[:80]!r} cannot be the name of a {kind}")


def local(name: str, kind: str) -> None:
    """Refuse a name within a kernel that a template's header may use for a variable of its own."""
    identifier(name, kind)
    if not LOCAL.fullmatch(name) and not (kind == "scalar" and name in SCALARS):
        raise fault("GT0370", f"{name[:80]!r} cannot be the name of a {kind}, which are letters "
                              f"and a number, as in x0")


@dataclass(frozen=True)
class Access:
    """An element that a kernel certainly reads or writes; `exact`: the index reaches its bounds."""

    buffer: str
    index: Dim
    exact: bool


@dataclass
class _KernelScope:
    """The names that are defined at one position; `inner` gives the scope of a nested block."""

    names: dict[str, DType] = field(default_factory=dict)
    mutable: set[str] = field(default_factory=set)
    # symbols other than i64 scalars: dimensions, iterators, arguments
    indices: frozenset[str] = frozenset()
    loops: dict[str, Symbol] = field(default_factory=dict)
    params: dict[str, Param] = field(default_factory=dict)
    certain: bool = True  # whether every run reaches this position
    # expressions of the scope that were checked, and expressions that are certainly evaluated
    checked: dict[Expr, None] = field(default_factory=dict)
    reached: dict[Expr, None] = field(default_factory=dict)

    def inner(self, **changes: Any) -> _KernelScope:
        return replace(self, names=dict(self.names), mutable=set(self.mutable), checked={},
                       reached={}, **changes)


def accesses(kernel: Kernel, dims: frozenset[str]) -> list[Access]:
    """Check a kernel, and return the elements that it touches. Raises InputError GT037x."""
    result: list[Access] = []
    params: dict[str, Param] = {}
    for p in kernel.params:
        local(p.name, "parameter")
        if p.name in params:
            raise fault("GT0370", f"{p.name!r} is the name of two parameters",
                        f"kernel {kernel.name}")
        if p.packed and (not p.const or not p.dtype.is_packed):
            raise fault("GT0372", f"{p.name} of type {p.dtype} cannot be packed",
                        f"kernel {kernel.name}")
        params[p.name] = p
    checker = _Checker(result)
    around = _KernelScope(indices=dims, params=params)
    try:
        for n in kernel.numbers:
            checker.fresh(n.name, around)
            around.names[n.name] = n.dtype
        for s, scope in scoped(kernel.body, around, checker.inner):
            for e in values(s):
                checker.expr(e, scope)
            checker.stmt(s, scope)
    except InputError as error:
        error.within(f"kernel {kernel.name}")
        raise
    return result


class _Checker:
    def __init__(self, all_accesses: list[Access]) -> None:
        self.accesses = all_accesses

    def stmt(self, s: Stmt, scope: _KernelScope) -> None:
        match s:
            case For():
                self.loop(s, scope)
            case Let(name, value, mutable):
                self.fresh(name, scope)
                scope.names[name] = value.dtype
                if mutable:
                    scope.mutable.add(name)
            case Accumulate(name, fn, value):
                self.accumulates(name, fn, value, scope)
            case Store(buffer, index, value):
                self.touch(buffer, index, value.dtype, True, scope)
                self.reached(buffer, index, scope)
            case If(cond):
                if cond.dtype is not dtypes.bool_:
                    raise fault("GT0372", f"the condition is {cond.dtype}, expected bool")
            case Template():
                self.template(s, scope)

    def inner(self, s: Stmt, scope: _KernelScope) -> list[_KernelScope]:
        match s:
            case For(i, extent):
                low = bounds(extent)[0]
                return [scope.inner(
                    indices=scope.indices | {i.name}, loops=scope.loops | {i.name: i},
                    certain=scope.certain and low is not None and low > 0)]
            case Template(hooks=hooks):
                return [scope.inner(
                    indices=scope.indices | {*(i.name for i in h.indices), "count"}, certain=False,
                    params=scope.params | {"acc": Param("acc", h.dtype, True)}) for h in hooks]
            case _:
                return [scope.inner(certain=False) for _ in bodies(s)]

    def loop(self, s: For, scope: _KernelScope) -> None:
        self.dim(s.extent, scope)
        high = bounds(s.extent)[1]
        i = s.iter
        self.fresh(i.name, scope)
        if i.lo != 0 or (i.extent is not None and i.extent != s.extent) or (
                i.hi is not None and (high is None or i.hi < high - 1)):
            raise fault("GT0372", f"the bounds of {i.name} are not those of its loop")
        for name, fn in s.reduces:
            if fn not in REDUCTIONS or name not in scope.mutable:
                raise fault("GT0372", f"the loop over {i.name} cannot reduce {name!r} by {fn!r}")

    def fresh(self, name: str, scope: _KernelScope) -> None:
        local(name, "scalar")
        self.new(name, scope)

    def new(self, name: str, scope: _KernelScope) -> None:
        if name in scope.names or name in scope.indices or name in scope.params:
            raise fault("GT0370", f"{name!r} is defined twice")

    def accumulates(self, name: str, fn: str | None, value: Expr, scope: _KernelScope) -> None:
        if name not in scope.mutable or scope.names.get(name) is not value.dtype:
            raise fault("GT0371", f"{name!r} is not a variable of type {value.dtype}")
        if fn is not None and fn not in REDUCTIONS:
            raise fault("GT0372", f"{fn!r} cannot accumulate")

    # ---- expressions -----------------------------------------------------------------------

    def expr(self, e: Expr, scope: _KernelScope) -> None:
        fold(e, lambda e, _: self.form(e, scope), scope.checked)
        if scope.certain:
            fold(e, lambda e, _: self.read(e, scope), scope.reached, certain)

    def form(self, e: Expr, scope: _KernelScope) -> None:
        match e:
            case Name(name, dtype):
                if scope.names.get(name) is not dtype:
                    raise fault("GT0371", f"no scalar {name!r} of type {dtype} is defined here")
            case Index(value, dtype):
                if dtype is not dtypes.int64:
                    raise fault("GT0372", f"the index is {dtype}, expected i64")
                self.dim(value, scope)
            case Load(buffer, index, dtype):
                self.touch(buffer, index, dtype, False, scope)
            case Apply(fn, args):
                self.apply(e, fn, args)

    def apply(self, e: Apply, fn: str, args: tuple[Expr, ...]) -> None:
        if (BY_NAME[fn].arity if fn in BY_NAME else ARITY.get(fn)) != len(args):
            raise fault("GT0372", f"there is no function {fn[:40]!r} of {len(args)} operands")
        row = BY_NAME.get(fn)
        mixed = row is not None and len({a.dtype for a in args}) > 1
        wrong = row is not None and row.result == "bool" and e.dtype is not dtypes.bool_
        same = row is not None and row.result == "same" and e.dtype is not args[0].dtype
        if mixed or wrong or same or (fn == "select" and (
                args[0].dtype is not dtypes.bool_ or {a.dtype for a in args[1:]} != {e.dtype})):
            raise fault("GT0372", f"{fn} of {', '.join(a.dtype.short for a in args)} is not "
                                  f"{e.dtype}")

    def touch(self, buffer: str, index: Dim, dtype: DType, write: bool,
              scope: _KernelScope) -> None:
        p = scope.params.get(buffer)
        if p is None or p.dtype is not dtype or (write and p.const):
            raise fault("GT0373", f"no buffer {buffer[:40]!r} of type {dtype} can be "
                                  f"{'written' if write else 'read'} here")
        self.dim(index, scope)

    def read(self, e: Expr, scope: _KernelScope) -> None:
        if isinstance(e, Load):
            self.reached(e.buffer, e.index, scope)

    def reached(self, buffer: str, index: Dim, scope: _KernelScope) -> None:
        if buffer != "acc" and scope.certain:
            self.accesses.append(Access(buffer, index, _affine(index, scope.loops)))

    def dim(self, d: Dim, scope: _KernelScope) -> None:
        for s in symbols(d):
            if s.name not in scope.indices and scope.names.get(s.name) is not dtypes.int64:
                raise fault("GT0371", f"no index {s.name!r} is defined here")

    # ---- templates -------------------------------------------------------------------------

    def template(self, t: Template, scope: _KernelScope) -> None:
        contract = CONTRACTS.get(t.kernel)
        if contract is None:
            raise fault("GT0378", f"there is no template {t.kernel[:40]!r}")
        for text in misfits(contract, t):
            raise fault("GT0380", text)
        for _, value in t.macros:
            if isinstance(value, Poly):
                self.dim(value, scope)
        for name, buffer, offset in t.pointers:
            row = contract.pointer(name)
            if row is None or buffer not in (*t.reads, *t.writes):
                raise fault("GT0373", f"the pointer {name} into {buffer[:40]!r}")
            self.dim(offset, replace(scope, indices=scope.indices | set(row.arguments)))
        for buffer in (*t.reads, *t.writes):
            p = scope.params.get(buffer)
            if p is None or p.packed or (buffer in t.writes and p.const):
                raise fault("GT0373", f"{t.kernel} cannot touch {buffer[:40]!r}")
        for hook in t.hooks:
            self.hook(hook, contract.hook, scope)

    def hook(self, h: Hook, names: tuple[str, ...], scope: _KernelScope) -> None:
        identifier(h.name, "hook")
        for s, name in zip(h.indices, names, strict=True):
            if s.name != name:
                raise fault("GT0370", f"{s.name[:80]!r} cannot be the index {name} of a hook")
            self.new(s.name, scope)


def _affine(d: Dim, loops: dict[str, Symbol]) -> bool:
    """Whether d is a sum of loop iterators with integer factors: then each end of its interval
    is reached."""
    if isinstance(d, int):
        return True
    return all(len(m) <= 1 and all(isinstance(a, Symbol) and p == 1 and a.name in loops
                                   and isinstance(a.extent, int) for a, p in m) for m, _ in d.terms)
