"""Programs of the loop IR: buffers, kernels, and the steps that run them. Data only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from graphtool.assume import Assumed
from graphtool.dtypes import DType
from graphtool.io.manifest_rows import Choice
from graphtool.loops.interned import Interned
from graphtool.loops.ir import Name, Stmt
from graphtool.symbolic import Dim, Equation, Symbol, ceildiv


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """Memory for elements: the caller's (input, output), the weights file, or the arena.

    A buffer in the space `check` is one i32, 0 at first; a run in which it becomes another number
    fails, with the buffer's label as the reason.
    """

    name: str
    dtype: DType
    size: Dim  # elements
    space: Literal["input", "output", "weight", "arena", "check"]
    offset: Dim = 0  # bytes within the arena or the weights file
    slot: int = 0  # which input, output or check
    label: str = ""  # the graph value

    @property
    def packed(self) -> bool:
        """Whether elements of less than a byte share bytes. They do in weights, which are never
        written."""
        return packs(self.space, self.dtype)

    def bytes_of(self, count: Dim) -> Dim:
        """The bytes of so many elements of it."""
        if self.packed:
            return ceildiv(count * self.dtype.bits, 8)
        return count * self.dtype.bytes


INDICES_OF = "indices of "
"""How the label of a kernel begins that checks the indices of a value, whose name follows."""
SCRATCH = "scratch of "
"""How the label of a buffer begins that is a kernel's own workspace, and no graph value."""


def packs(space: str, dtype: DType) -> bool:
    """Whether buffers in this space hold several elements of the type in a byte, the first in
    the lowest bits."""
    return space == "weight" and dtype.is_packed


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Param(metaclass=Interned):
    """A pointer parameter of a kernel; its Loads and Stores use this name.

    Indices count elements, also of `packed` ones, which share bytes.
    """

    name: str
    dtype: DType
    const: bool
    packed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """One C function that every thread runs on its share; `serial`: only thread 0 runs it.

    Equal kernels are one object: two layers of the same shape differ only in the buffers that they
    pass, and in `numbers`, which a run passes by value.
    """

    name: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]
    serial: bool = False
    numbers: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Call a kernel on buffers and numbers; `barrier`: then wait until all threads are done.

    `choice` lists the alternatives from which the kernel was chosen, if there were any.
    """

    kernel: str
    args: tuple[str, ...]
    label: str = ""  # the graph nodes that it computes
    where: str = ""  # the line of the source, or an ONNX node's name
    flops: Dim = 0
    barrier: bool = True
    choice: Choice | None = None
    numbers: tuple[int | float | bool, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """Steps selected by the bool in `pred`. Threads wait before it and after each side."""

    pred: str
    then: tuple[Step, ...]
    orelse: tuple[Step, ...]
    label: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """Runs `cond`, then `body` while the bool in `pred` is true. Threads wait after both."""

    pred: str
    cond: tuple[Step, ...]
    body: tuple[Step, ...]
    label: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """Run `body` for each value of the counter in [0, extent); kernels may use the counter as a
    dimension."""

    counter: Symbol
    extent: Dim
    body: tuple[Step, ...]
    label: str = ""


ENDLESS = 1 << 62  # the greatest value of a size without a bound; no memory is planned for it


@dataclass(frozen=True, slots=True, eq=False)
class Bind:
    """Set `size` to the integer at `index` of a buffer.

    A run fails if the integer is below the symbol's least value or above `most`. Threads wait
    before and after it.
    """

    size: Symbol
    buffer: str
    index: Dim
    most: Dim
    label: str = ""


Step = Run | Branch | Repeat | Times | Bind


def inner_steps(s: Step) -> tuple[Step, ...]:
    """The steps inside a step."""
    match s:
        case Branch():
            return (*s.then, *s.orelse)
        case Repeat():
            return (*s.cond, *s.body)
        case Times():
            return s.body
        case _:
            return ()


def map_inner(s: Step, change: Callable[[tuple[Step, ...]], tuple[Step, ...]]) -> Step:
    """The step with `change` applied to each list of steps inside it."""
    match s:
        case Branch():
            return replace(s, then=change(s.then), orelse=change(s.orelse))
        case Repeat():
            return replace(s, cond=change(s.cond), body=change(s.body))
        case Times():
            return replace(s, body=change(s.body))
        case _:
            return s


def map_runs(steps: Iterable[Step], change: Callable[[Run], Run]) -> tuple[Step, ...]:
    """The steps with `change` applied to each run, also to those of branches and loops."""
    return tuple(change(s) if isinstance(s, Run) else map_inner(
        s, lambda inner: map_runs(inner, change)) for s in steps)


def every_step(steps: Iterable[Step]) -> Iterator[Step]:
    """Every step in program order, including those of branches and loops."""
    for s in steps:
        yield s
        yield from every_step(inner_steps(s))


def runs(steps: Iterable[Step]) -> Iterator[Run]:
    """Every run in program order."""
    return (s for s in every_step(steps) if isinstance(s, Run))


def binds(steps: Iterable[Step]) -> Iterator[Bind]:
    """All steps that set a size."""
    return (s for s in every_step(steps) if isinstance(s, Bind))


def counters(steps: Iterable[Step]) -> Iterator[Symbol]:
    """The counters of all loops over steps."""
    return (s.counter for s in every_step(steps) if isinstance(s, Times))


def flags(steps: Iterable[Step]) -> Iterator[str]:
    """The buffers whose values select the steps to run, or give sizes."""
    for s in every_step(steps):
        match s:
            case Bind(_, buffer) | Branch(buffer) | Repeat(buffer):
                yield buffer


@dataclass(frozen=True, slots=True, eq=False)
class Port:
    """An input or output of the program as the caller sees it.

    `below`: who makes up integers for an input takes them less than each of these.
    """

    name: str
    dtype: DType
    shape: tuple[Dim, ...]
    below: tuple[Dim, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The whole input of the C back end.

    `dims` are the symbols that become parameters; `sizes` are the sizes that a run computes, with
    the greatest value of each. `requires` are dims that must be equal. `assumes` is what the
    rewrites assumed that made the graph.
    """

    name: str
    dims: tuple[Symbol, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    buffers: tuple[Buffer, ...]
    kernels: tuple[Kernel, ...]
    steps: tuple[Step, ...]
    arena: Dim = 0  # bytes
    threads: int = 1  # the greatest number of threads of a run
    donations: tuple[tuple[int, int], ...] = ()
    weights: tuple[tuple[str, str], ...] = ()  # (buffer, digest)
    meta: dict[str, str] = field(default_factory=dict)
    requires: tuple[Equation, ...] = ()
    assumes: tuple[Assumed, ...] = ()

    def __repr__(self) -> str:
        return (f"<Program {self.name}: {len(self.kernels)} kernels, "
                f"{self.arena} bytes of arena>")

    @property
    def lanes(self) -> int:
        """The floats of a vector for which the kernels are written and the weights packed."""
        return int(self.meta.get("lanes", "1"))

    @property
    def align(self) -> int:
        """The arena, the weights and each buffer start at a multiple of so many bytes."""
        return int(self.meta.get("align", "64"))

    @property
    def grids(self) -> dict[str, tuple[float, int]]:
        """The scale s and zero point q0 of the ports whose bytes q stand for (q - q0)*s, by
        `input0` and so on."""
        rows = (row.split() for row in self.meta.get("grids", "").split(",") if row)
        return {name: (float(scale), int(zero)) for name, scale, zero in rows}

    @property
    def checks(self) -> tuple[Buffer, ...]:
        """What a run checks, by number."""
        return tuple(sorted((b for b in self.buffers if b.space == "check"), key=lambda b: b.slot))

    @property
    def commit(self) -> int | None:
        """The place of the first step that overwrites a donated input; None if there is none."""
        donated = {o for o, _ in self.donations}
        state = {b.name for b in self.buffers if b.space == "output" and b.slot in donated}
        written = {k.name: [i for i, p in enumerate(k.params) if not p.const]
                   for k in self.kernels}
        return next((n for n, s in enumerate(self.steps) for r in runs((s,))
                     if any(r.args[i] in state for i in written[r.kernel])), None)

    @property
    def sizes(self) -> tuple[Symbol, ...]:
        """The sizes that a run computes, in program order."""
        return tuple(b.size for b in binds(self.steps))
