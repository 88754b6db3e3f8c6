"""The loop IR on one screen: expressions and statements; programs of them are in program.py.

Equal expressions and statements are one object (interned.py), so expressions form a DAG. Indices
are Polys over the loop iterators, and a `Let`-bound integer may stand in them as a symbol, which
is how a gather reads its index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.loops.interned import Interned, InternedNumber
from graphtool.symbolic import Dim, Symbol

# ---- expressions ----


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Const(metaclass=InternedNumber):
    """A number or a boolean of the given type."""

    value: int | float | bool
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Name(metaclass=Interned):
    """A scalar bound by Let or accumulated."""

    name: str
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Index(metaclass=Interned):
    """An index polynomial as an int64 value."""

    value: Dim
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Load(metaclass=Interned):
    """One element of a buffer; `index` counts elements from the buffer's start."""

    buffer: str
    index: Dim
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Apply(metaclass=Interned):
    """A row of the scalars table, or `select` (cond, a, b), or `cast` to `dtype`."""

    fn: str
    args: tuple[Expr, ...]
    dtype: DType


Expr = Const | Name | Index | Load | Apply

# ---- statements ----


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class For(metaclass=Interned):
    """for iter in [0, extent). parallel: threads divide the iterations; simd: iterations are
    independent."""

    iter: Symbol
    extent: Dim
    mode: Literal["serial", "parallel", "simd", "parallel simd"]
    body: tuple[Stmt, ...]
    reduces: tuple[tuple[str, str], ...] = ()  # (accumulator, fn) that a simd loop reduces


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Let(metaclass=Interned):
    """A scalar of the block. Index polynomials may use an integer by its name, and Accumulate may
    change a mutable one."""

    name: str
    value: Expr
    mutable: bool = False


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Accumulate(metaclass=Interned):
    """name = fn(name, value); `fn` None assigns."""

    name: str
    fn: str | None
    value: Expr


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Store(metaclass=Interned):
    """Write `value` to element `index` of a buffer."""

    buffer: str
    index: Dim
    value: Expr


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class If(metaclass=Interned):
    """Run `then` if the condition is true, else `orelse`."""

    cond: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Hook(metaclass=Interned):
    """A function that a template calls on a finished row: acc[count] of `dtype` at `indices`.

    It is GT_NAME in C. The body loads from the buffer `acc` and stores to the row's place in
    memory.
    """

    name: str
    indices: tuple[Symbol, ...]  # int64_t parameters, the last one is followed by `count`
    body: tuple[Stmt, ...]
    dtype: DType = dtypes.float32


MacroValue = Dim | bool | float | DType | str  # a str is a key of the macro's `words`


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Template(metaclass=InternedNumber):
    """A use of a kernel's header, KERNEL.h; contract.py has its rules.

    A macro (name, value) and a pointer (name, buffer, offset) are GT_NAME in C, a pointer as
    `(buffer + offset)`. Hooks are emitted before the header.
    """

    kernel: str
    macros: tuple[tuple[str, MacroValue], ...]
    pointers: tuple[tuple[str, str, Dim], ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    hooks: tuple[Hook, ...] = ()


Stmt = For | Let | Accumulate | Store | If | Template
