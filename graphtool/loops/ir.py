"""The loop IR on one screen: expressions, statements, kernels, programs. Data only.

Expressions are shared by identity (a DAG); indices are Polys over the loop iterators, and a
`Let`-bound integer may stand in them as a symbol, which is how a gather reads its index.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Union

from graphtool.dtypes import DType
from graphtool.symbolic import Dim, Symbol

# ---- expressions ----


@dataclass(frozen=True, slots=True, eq=False)
class Const:
    value: int | float | bool
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """A scalar bound by Let or accumulated."""

    name: str
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """An index polynomial as an int64 value."""

    value: Dim
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """One element of a buffer; `index` counts elements from the buffer's start."""

    buffer: str
    index: Dim
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class Apply:
    """A row of the scalars table, or `select` (cond, a, b), or `cast` to `dtype`."""

    fn: str
    args: tuple[Expr, ...]
    dtype: DType


Expr = Union[Const, Name, Index, Load, Apply]

# ---- statements ----


@dataclass(frozen=True, slots=True, eq=False)
class For:
    """for iter in [0, extent). parallel: the thread's share; simd: iterations are independent."""

    iter: Symbol
    extent: Dim
    mode: Literal["serial", "parallel", "simd", "unroll"]
    body: tuple[Stmt, ...]
    reduces: tuple[tuple[str, str], ...] = ()  # (accumulator, fn) that a simd loop reduces


@dataclass(frozen=True, slots=True, eq=False)
class Let:
    """A scalar constant of the block; `symbol` names it in index polynomials too."""

    name: str
    value: Expr
    mutable: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Accumulate:
    """name = fn(name, value); `fn` None assigns."""

    name: str
    fn: str | None
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    buffer: str
    index: Dim
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class If:
    cond: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Hook:
    """A function that a template calls back: its scalar parameters and its body."""

    name: str
    params: tuple[str, ...]  # C declarations such as "int64_t m"
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A kernel header with its macros; `hooks` are emitted before it."""

    header: str
    macros: tuple[tuple[str, str], ...]
    hooks: tuple[Hook, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A C function of the prelude, for its effect (`memset` of a halo)."""

    fn: str
    args: tuple[str, ...]


Stmt = Union[For, Let, Accumulate, Store, If, Template, Call]

# ---- programs ----


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """Where elements live. input/output: the caller's; weight: the weights file; arena: offset."""

    name: str
    dtype: DType
    size: Dim  # elements
    space: Literal["input", "output", "weight", "arena"]
    offset: Dim = 0  # bytes within the arena or the weights file
    slot: int = 0  # which input or output
    label: str = ""  # the graph value


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """One C function: every thread runs it on its share. `serial`: thread 0 alone."""

    name: str
    body: tuple[Stmt, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    serial: bool = False
    label: str = ""  # which graph nodes it came from
    flops: Dim = 0
    bytes: Dim = 0


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    kernel: str
    barrier: bool = True  # wait for all threads behind it


Step = Run


@dataclass(frozen=True, slots=True, eq=False)
class Port:
    """An input or output of the program as the caller sees it."""

    name: str
    dtype: DType
    shape: tuple[Dim, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """All that the C back end needs. Dims are the symbols that become parameters."""

    name: str
    dims: tuple[Symbol, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    buffers: tuple[Buffer, ...]
    kernels: tuple[Kernel, ...]
    steps: tuple[Step, ...]
    arena: Dim = 0  # bytes
    donations: tuple[tuple[int, int], ...] = ()
    weights: tuple[tuple[str, str], ...] = ()  # (buffer, digest)
    meta: dict[str, str] = field(default_factory=dict)
