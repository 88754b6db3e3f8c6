"""Memory that a step's operand and result share: a kernel that declares in which order it touches
memory may write where it will read no more.

The plan of memory asks how far before an operand a result must start; the verifier compares all
bytes of both where they are. Sizes must be fixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from graphtool.loops.contract import CONTRACTS
from graphtool.loops.ir import For, Hook, Load, Store, Template
from graphtool.loops.liveness import Life, places_of_runs
from graphtool.loops.program import Kernel, Run, Step, runs
from graphtool.loops.spans import Array, Points
from graphtool.loops.touches import Area, Rows
from graphtool.loops.verify_template import TemplateUse, dense, starts
from graphtool.loops.walk import fold, statements, values
from graphtool.symbolic import Dim

NEVER = 1 << 40  # the step of a write that does not happen


@dataclass(frozen=True)
class Touched:
    """When a kernel touches an operand and a result, for each byte from the start of their
    buffers: the last step that reads it (-1: none), the first that writes it (NEVER: none).

    `finished`: the bytes that the hook reads, at the step in which it does so; `in_place`: the hook
    reads each of them only for the element that it then stores at the same place.
    """

    reads: Array
    finished: Array
    writes: Array
    in_place: bool

    @property
    def last(self) -> Array:
        """For each byte, the last step before which it may not be overwritten, wherever it is: what
        the hook reads in a step, it may read after other bytes are written in that step."""
        return np.asarray(np.maximum(self.reads, np.where(
            self.finished < 0, -1, self.finished + 1)))

    def at(self, distance: int) -> bool:
        """Whether the result may start so many bytes after the operand."""
        last = self.reads if distance == 0 and self.in_place else self.last
        low, high = max(0, distance), min(len(last), distance + len(self.writes))
        return low >= high or bool(
            (last[low:high] <= self.writes[low - distance:high - distance]).all())

    def least(self) -> int:
        """So many bytes before the operand, or more, the result may start."""
        last = self.last
        read, wrote = np.flatnonzero(last >= 0), np.flatnonzero(self.writes < NEVER)
        if not read.size or not wrote.size:
            return 0
        order = np.argsort(self.writes[wrote], kind="stable")
        steps, ends = self.writes[wrote][order], np.maximum.accumulate(wrote[order] + 1)
        back = np.argsort(last[read], kind="stable")[::-1]
        # for each step, the lowest byte that is read after it
        after, lowest = last[read][back], np.minimum.accumulate(read[back])
        count = np.searchsorted(-after, -steps, side="left")  # of bytes read after the step
        reach = np.where(count > 0, ends - lowest[np.maximum(count - 1, 0)], -NEVER)
        return int(reach.max(initial=-len(last) - len(self.writes)))


@dataclass(frozen=True)
class Sharing:
    """Where the result of a step may start, seen from an operand that is not used after it:
    at the same place (`same`), and `behind` bytes before it or more."""

    same: bool
    behind: int


def sharing(kernels: Mapping[str, Kernel], steps: Iterable[Step], lives: Mapping[str, Life],
            lanes: int) -> dict[tuple[str, str], Sharing]:
    """For each operand and result of a step that may share memory, how."""
    found: dict[tuple[str, str], Sharing] = {}
    known: dict[tuple[str, str, str], Sharing | None] = {}
    steps = tuple(steps)
    for run, place in zip(runs(steps), places_of_runs(steps), strict=True):
        kernel = kernels[run.kernel]
        for read, written in _pairs(run, kernel, lives, place):
            x, y = (kernel.params[run.args.index(b)].name for b in (read, written))
            key = kernel.name, x, y
            if key not in known:
                touched = touched_by(kernel, x, y, lanes)
                known[key] = None if touched is None else Sharing(touched.at(0), touched.least())
            if (how := known[key]) is not None:
                found[read, written] = how
    return found


def _pairs(run: Run, kernel: Kernel, lives: Mapping[str, Life], place: int
           ) -> Iterable[tuple[str, str]]:
    """The operands that the step uses last, each with the results that it makes first."""
    once = [(b, p) for b, p in zip(run.args, kernel.params, strict=True)
            if run.args.count(b) == 1 and b in lives]
    for read, p in once:
        for written, q in once:
            if p.const and not q.const and lives[read][1] == lives[written][0] == place:
                yield read, written


def touched_by(kernel: Kernel, read: str, written: str, lanes: int) -> Touched | None:
    """When the kernel touches its parameters; None if it does not declare the order, or touches
    them in another way than its operand and its hook do."""
    if len(kernel.body) != 1 or not isinstance(kernel.body[0], Template):
        return None
    t = kernel.body[0]
    contract = CONTRACTS[t.kernel]
    if contract.order is None or contract.touches is None or not contract.row:
        return None
    use = TemplateUse(contract, t, {}, lanes)
    try:
        (hook,), order = t.hooks, contract.order(use)
    except KeyError:  # a size is not fixed
        return None
    pointers = [name for name, b, _ in t.pointers if b == read]
    if pointers not in ([], [order.pointer]) or any(b == written for _, b, _ in t.pointers):
        return None
    areas = {a.pointer: a for a in contract.touches(use) if isinstance(a, Area)}
    extents = next(a.extents for a in contract.touches(use) if isinstance(a, Rows))
    loads, stores = _hook(hook, extents, contract.row, (read, written))
    if loads is None or stores is None or len(stores) != 1:
        return None
    size = {p.name: p.dtype.bytes for p in kernel.params}
    steps = np.broadcast_to(order.writes, extents).ravel()
    reads = _steps(_elements(use, areas[order.pointer]), np.broadcast_to(
        order.reads, areas[order.pointer].shape).ravel(), -1) if pointers else _NONE
    finished = _NONE
    for at in loads:
        finished = _longest(finished, _steps(at, steps, -1))
    length = max(len(reads), len(finished)) * size[read]
    return Touched(
        _bytes(reads, size[read], length, -1), _bytes(finished, size[read], length, -1),
        _bytes(_steps(stores[0], steps, NEVER), size[written], 0, NEVER),
        size[read] == size[written] and all(
            (at == stores[0]).all() and len(np.unique(at)) == len(at) for at in loads))


_NONE = np.zeros(0, np.int64)


def _elements(use: TemplateUse, area: Area) -> Array:
    """The element of the buffer for each element of the area."""
    strides = area.strides or dense(area.shape)
    first = int(starts(use, area.pointer)[0])
    grid = np.zeros(area.shape, np.int64) + first
    for axis, (n, s) in enumerate(zip(area.shape, strides, strict=True)):
        grid += (np.arange(n) * s).reshape(-1, *(1,) * (len(strides) - axis - 1))
    return grid.ravel()


def _hook(hook: Hook, extents: tuple[int, ...], row: int, names: tuple[str, str]
          ) -> tuple[list[Array] | None, list[Array] | None]:
    """The elements that the hook loads from one buffer, and stores to the other, for each element
    that it is given; None for a hook with other loops than that over its row."""
    inside = list(statements(hook.body))
    lanes = [s for s in inside if isinstance(s, For)]
    if len(lanes) > 1:
        return None, None
    *outer, last = np.indices(extents).reshape(len(extents), -1)
    env = dict(zip([i.name for i in hook.indices], [*outer, last - last % row], strict=True))
    env |= {s.iter.name: last % row for s in lanes} | {"count": np.ones_like(last)}
    points = Points.at(env, {})
    loads: dict[Dim, None] = {}

    def see(e: object, _: list[None]) -> None:
        if isinstance(e, Load) and e.buffer == names[0]:
            loads[e.index] = None
    seen: dict[object, None] = {}
    for s in inside:
        for e in values(s):
            fold(e, see, seen)
    stores = [s.index for s in inside if isinstance(s, Store) and s.buffer == names[1]]
    try:
        return ([points.dim(d).astype(np.int64) for d in loads],
                [points.dim(d).astype(np.int64) for d in stores])
    except KeyError:
        return None, None


def _steps(elements: Array, steps: Array, usual: int) -> Array:
    """For each element of the buffer its step: the last one, or of writes the first one."""
    out = np.full(int(elements.max(initial=-1)) + 1, usual, np.int64)
    (np.maximum if usual < 0 else np.minimum).at(out, elements, steps)
    return out


def _longest(a: Array, b: Array) -> Array:
    """The later step of each element, of arrays that may differ in length."""
    out = np.full(max(len(a), len(b)), -1, np.int64)
    out[:len(a)] = a
    out[:len(b)] = np.maximum(out[:len(b)], b)
    return out


def _bytes(steps: Array, size: int, length: int, usual: int) -> Array:
    """The steps of elements of so many bytes, byte by byte, for `length` bytes at least."""
    out = np.repeat(steps, size)
    return np.concatenate([out, np.full(max(0, length - len(out)), usual, np.int64)])
