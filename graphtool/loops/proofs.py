"""What is proved of each kernel of a program: that all its indices are inside of their buffers, and
that it writes each element of its results exactly once, for all sizes that the program allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from graphtool.errors import InputError
from graphtool.loops.program import (
    SCRATCH,
    Bind,
    Branch,
    Buffer,
    Kernel,
    Program,
    Run,
    Step,
    Times,
    every_step,
    inner_steps,
    runs,
)
from graphtool.loops.reached import ACC, COUNT, Touch, touches
from graphtool.loops.scope import Loops, Scope
from graphtool.loops.tiling import box_of, covered
from graphtool.symbolic import Dim, dim_of, symbols, text
from graphtool.symbolic.nonnegative import Ends, within


@dataclass
class KernelProof:
    """One kernel: its `loads` and `stores` in the program, those of templates by what they declare;
    the reasons why something is not proved; and the values of the indices that data decide."""

    kernel: str
    loads: int = 0
    stores: int = 0
    outside: list[str] = field(default_factory=list)
    uncovered: list[str] = field(default_factory=list)
    clamped: list[str] = field(default_factory=list)

    @property
    def inside(self) -> str:
        """`proved`, or why not."""
        return f"not proved: {self.outside[0]}" if self.outside else "proved"

    @property
    def once(self) -> str:
        """`proved`, or why not."""
        return f"not proved: {self.uncovered[0]}" if self.uncovered else "proved"

    @property
    def holds(self) -> bool:
        """Whether both are proved."""
        return not self.outside and not self.uncovered


@dataclass(frozen=True)
class ProgramProof:
    """The kernels in order, and the outputs of which it is not shown that they are written."""

    kernels: list[KernelProof]
    unwritten: list[str]

    @property
    def holds(self) -> bool:
        """Whether all is proved."""
        return not self.unwritten and all(k.holds for k in self.kernels)


def proofs(program: Program) -> ProgramProof:
    """What is proved of a program. Kernels that no step runs have nothing to prove."""
    found = _Proofs(program)
    return ProgramProof(list(found.rows.values()), [
        program.outputs[b.slot].name for b in program.buffers
        if b.space == "output" and b.name not in found.complete])


Case = tuple[tuple[str, Dim], ...]  # ranges of sizes
Stores = list[tuple[Dim, Loops]]


@dataclass(frozen=True)
class Part:
    """What a run of a kernel writes of a buffer: indices, with the case of sizes in which it does,
    and the loops over them."""

    kernel: str
    stores: list[tuple[Case, Dim, Loops]]

    def of(self, case: Case) -> Stores:
        """What it writes in a case of sizes."""
        return [(index, loops) for c, index, loops in self.stores if c in ((), case)]


Parts = dict[str, list[Part]]  # by the buffer


class _Proofs:
    def __init__(self, program: Program) -> None:
        self.program, self.kernels = program, {k.name: k for k in program.kernels}
        self.buffers = {b.name: b for b in program.buffers}
        self.rows = {k.name: KernelProof(k.name) for k in program.kernels}
        self.around = _around(program)
        self.touches = {k.name: self.touched(k, self.around, program.lanes)
                        for k in program.kernels}
        self.done: set[tuple[str, int, Dim]] = set()
        donated = {out for out, _ in program.donations}
        self.complete = {b.name for b in program.buffers if b.space == "check" or (
            b.space == "output" and b.slot in donated)}
        self.report(self.sequence(program.steps))

    def passed(self, kernel: Kernel) -> dict[str, Ends]:
        """The least and the greatest of each integer that runs pass to a kernel."""
        rows = [r.numbers for r in runs(self.program.steps) if r.kernel == kernel.name]
        return {n.name: Ends((int(min(column)),), (int(max(column)),))
                for n, column in zip(kernel.numbers, zip(*rows, strict=True), strict=False)
                if n.dtype.is_integer}

    def touched(self, kernel: Kernel, around: Scope, lanes: int) -> list[Touch]:
        """What a kernel touches; nothing if that cannot be stated."""
        row = self.rows[kernel.name]
        try:
            found = list(touches(kernel, around, lanes, self.passed(kernel)))
        except InputError as error:
            row.outside.append(error.message)
            row.uncovered.append(error.message)
            return []
        row.loads, row.stores = (sum(t.writes is w for t in found) for w in (False, True))
        row.clamped += dict.fromkeys(text for t in found for text in t.data)
        return found

    def sequence(self, steps: Sequence[Step]) -> Parts:
        """Prove steps that follow each other; returns what they write of buffers that they do not
        write whole."""
        parts: Parts = {}
        for step in steps:
            match step:
                case Run():
                    given = self.given(step)
                    self.indices(step, given)
                    self.results(step, given, parts)
                case Times(counter, extent):
                    for name, found in self.again(step.body).items():
                        parts.setdefault(name, []).extend(
                            Part(p.kernel, [(c, i, ((counter.name, extent), *loops))
                                            for c, i, loops in p.stores]) for p in found)
                case Branch(_, then, orelse):
                    self.branch(then, orelse)
                case _:
                    self.report(self.again(inner_steps(step)))
        return {name: found for name, found in parts.items() if not self.whole(name, found)}

    def branch(self, *sides: Sequence[Step]) -> None:
        """Prove each side; what all write whole is whole."""
        before, after = self.complete, []
        for side in sides:
            self.complete = set(before)
            self.report(self.sequence(side))
            after.append(self.complete)
        self.complete = set.intersection(*after)

    def again(self, steps: Sequence[Step]) -> Parts:
        """The same for steps that are repeated, perhaps not once: what they write whole is written
        anew each time, and counts inside only."""
        before = set(self.complete)
        parts = self.sequence(steps)
        self.complete = before
        return parts

    def whole(self, name: str, parts: Sequence[Part]) -> bool:
        """Whether the parts are the whole buffer, each element once, in each case of the sizes."""
        cases = {case for part in parts for case, *_ in part.stores}
        done = all(self.whole_in(dict(case), name, [part.of(case) for part in parts])
                   for case in cases if case or len(cases) == 1)
        self.complete |= {name} if done else set()
        return done

    def whole_in(self, case: Mapping[str, Dim], name: str, parts: Sequence[Stores]) -> bool:
        """The same for sizes of one case."""
        sizes = {**self.around.values, **case}
        boxes = [box_of(within(index, sizes), [(n, within(e, sizes)) for n, e in loops])
                 for part in parts for index, loops in part]
        return all(parts) and None not in boxes and covered(
            [b for b in boxes if b], within(self.buffers[name].size, sizes))

    def report(self, parts: Parts) -> None:
        """Note that these parts are not the whole of their buffers."""
        for name, found in parts.items():
            for part in found:
                self.rows[part.kernel].uncovered.append(_reason(self.buffers[name], part))

    def given(self, run: Run) -> dict[str, Buffer]:
        params = self.kernels[run.kernel].params
        return {p.name: self.buffers[a] for p, a in zip(params, run.args, strict=True)}

    def indices(self, run: Run, given: Mapping[str, Buffer]) -> None:
        """Prove that the indices of a run are inside of its buffers."""
        for n, t in enumerate(self.touches[run.kernel]):
            size = t.scope.values[COUNT] if t.buffer == ACC else given[t.buffer].size
            key = run.kernel, n, size
            if key not in self.done:
                self.done.add(key)
                if not t.inside(size):
                    self.rows[run.kernel].outside.append(
                        f"{t.buffer}[{text(t.index)}] of {text(size)} elements")

    def results(self, run: Run, given: Mapping[str, Buffer], parts: Parts) -> None:
        """Prove that a run writes its results whole; else add what it writes to `parts`."""
        row = self.rows[run.kernel]
        for p in self.kernels[run.kernel].params:
            b = given[p.name]
            if p.const or b.label.startswith(SCRATCH):
                continue
            found = [t for t in self.touches[run.kernel]
                     if t.buffer == p.name and t.writes and not t.scratch]
            first = [t for t in found if not (t.chosen or t.changes)]
            if first and not self.whole(b.name, [part := _part(run, first)]):
                parts.setdefault(b.name, []).append(part)
            elif not found:
                row.uncovered.append(f"{b.label or b.name} is not written")
            elif not first and not self.begun(b.name, parts):
                row.uncovered.append(f"{b.label or b.name} is changed before it was written whole")
            changes = [t for t in found if t.changes and not t.chosen]
            if not self.whole(b.name, [_part(run, changes)]):
                row.uncovered += [f"{b.label or b.name} is changed at {text(t.index)} only"
                                  for t in changes if not self.whole(b.name, [_part(run, [t])])]

    def begun(self, name: str, parts: Parts) -> bool:
        """Whether a buffer was written whole before. Sums, and updates of elements that data or a
        condition choose, need that."""
        if name in parts and self.whole(name, parts[name]):
            del parts[name]
        return name in self.complete


def _part(run: Run, stores: Iterable[Touch]) -> Part:
    """What stores of a run write. Loops in which a sum grows count once."""
    rows = []
    for t in stores:
        index, loops = t.domain
        names = {s.name for s in symbols(index)}
        rows.append((t.scope.case, index, tuple(
            loop for loop in loops if loop[0] in names or not t.adds)))
    return Part(run.kernel, rows)


def _reason(b: Buffer, part: Part) -> str:
    """Why a part of a buffer is not the whole of it."""
    odd = next((index for _, index, loops in part.stores if box_of(index, loops) is None), None)
    name = b.label or b.name
    if odd is not None:
        return f"{name} is written at {text(odd)}"
    return f"{name} has {text(b.size)} elements, of which other elements are not written once"


def _around(program: Program) -> Scope:
    """The sizes of a program: its dims, those that a run computes, and counters of its loops."""
    scope = Scope({s.name: dim_of(s) for s in program.dims})
    for step in every_step(program.steps):
        match step:
            case Bind():
                scope.define(step.size.name, Ends((step.size.lo or 0,), (scope.of(step.most),)))
            case Times():
                scope.define(step.counter.name, Ends((0,), (scope.of(step.extent) - 1,)))
    return scope
