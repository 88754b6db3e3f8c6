"""Statements of the loop IR as text: loops, each over the share of its range that a worker has, and
what is stored and summed in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphtool import dtypes
from graphtool.emit import kept_rows, row_steps, staged_rows
from graphtool.emit.expr import ExprPrinter, overflows
from graphtool.emit.fields import (
    WIDEST,
    FilledLoop,
    Stages,
    along_fields,
    converted,
    strips,
)
from graphtool.emit.gathers import GatheringLoop, gathering, write
from graphtool.emit.language import ALL, Share
from graphtool.emit.lines import Writer
from graphtool.emit.sums import PartialSums, side_by_side
from graphtool.emit.tables import TableRow, by_table, look_up
from graphtool.emit.teams import is_outer
from graphtool.emit.vectors import Piece, Vectors, vectors
from graphtool.loops.forms import KernelFacts, in_forms
from graphtool.loops.ir import (
    Accumulate,
    Apply,
    Expr,
    For,
    If,
    Index,
    Let,
    Load,
    Stmt,
    Store,
    Template,
)
from graphtool.loops.program import Param
from graphtool.symbolic import Dim, Symbol, coefficient, substitute, symbol_of

_OPERATORS = {"add": "+", "mul": "*", "and": "&", "or": "|"}


def _as_assigned(value: Expr) -> Expr:
    """The value without a cast that an assignment makes too: that of an index that was clamped in
    32 bits."""
    match value:
        case Apply("cast", (x,), dtypes.int64) if x.dtype is dtypes.int32:
            return x
    return value


class Statements:
    """Prints statements of the loop IR. `serial`: one worker runs all iterations of loops that are
    divided elsewhere. `hook`: they are those of a hook. `teams`: in the kernel, workers run
    iterations of a divided loop together. `calls` are those of the kernel's templates."""

    def __init__(self, w: Writer, printer: ExprPrinter, params: Mapping[str, Param], serial: bool,
                 around: KernelFacts, hook: bool = False, teams: bool = False,
                 calls: Mapping[Template, str] | None = None) -> None:
        self.w, self.p, self.params, self.serial = w, printer, params, serial
        self.calls = calls or {}
        self.around, self.language = around, printer.language
        who = self.language.workers
        self.outer, self.inner, self.flat = who.outer, who.row if hook else who.inner, who.flat
        if who.single:
            # all loops of a kernel alike: an iteration may read what one of an earlier loop stored
            self.outer = self.flat = who.outer if teams else who.flat
        # whether the workers of a team share a loop around the statements; one alone runs a hook
        self.divided = hook and bool(who.single)
        self.zeros = dict[str, str]()  # where each sum starts
        self.joined = set[Stmt]()  # sums of a team whose parts are joined outside a loop
        self.rows = 0  # loops that read rows, so far

    def expr(self, e: Expr) -> str:
        """The text of an expression in the forms that the language prefers."""
        return self.p.expr(in_forms(e, self.language.forms, self.around))

    def stmt(self, s: Stmt) -> None:
        """Write one statement of the loop IR."""
        match s:
            case Let(name, Index(value), False):
                self.w.line(f"const {self.language.size} {name} = {self.p.index(value)};")
            case Let(name, value, mutable):
                const = "" if mutable else "const "
                kind = self.language.type(value.dtype.computes)
                if mutable:
                    self.zeros[name] = self.expr(value)
                self.w.line(f"{const}{kind} {name} = {self.expr(_as_assigned(value))};")
            case Store(buffer, index, value):
                value = in_forms(value, self.language.forms, self.around)
                text = self.p.stored(value, self.params[buffer].dtype)
                self.store(f"{buffer}[{self.p.index(index)}] = {text};")
            case Accumulate():
                self.accumulate(s)
            case For():
                self.loop(s)
            case If(cond, then, orelse):
                self.block(f"if ({self.expr(cond)}) {{", then)
                if orelse:
                    self.block("else {", orelse)
            case Template():
                self.w.line(self.calls[s])

    def store(self, line: str) -> None:
        """Write a store; one worker does what all of a team would do."""
        who = self.language.workers
        if who.single and not self.divided:
            self.w.line(who.meet)
            self.w.line(f"if ({who.single}) {line}")
            self.w.line(who.meet)
        else:
            self.w.line(line)

    def block(self, head: str, body: Sequence[Stmt]) -> None:
        """Write a block with these statements."""
        with self.w.block(head):
            for s in body:
                self.stmt(s)

    def accumulate(self, s: Accumulate) -> None:
        """Write the update of a mutable scalar: an assignment, a compound assignment or a call."""
        if s.fn is None:
            self.w.line(f"{s.name} = {self.expr(s.value)};")
        elif s.fn in _OPERATORS and not overflows(s.fn, s.value.dtype.computes):
            self.w.line(f"{s.name} {_OPERATORS[s.fn]}= {self.expr(s.value)};")
        else:
            fn = f"gt_{s.fn}_{s.value.dtype.computes.short}"
            self.w.line(f"{s.name} = {fn}({s.name}, {self.expr(s.value)});")

    def loop(self, s: For) -> None:
        """Write a loop, over the share of its range that belongs to the worker.

        If the loop reads packed buffers along its iterator, these elements are unpacked first.
        """
        if row := self.row(s):
            self.w.line(row)
            return
        if self.language.sums and (sums := side_by_side(s, self.language.sums)):
            self.sums(sums)
            return
        table = self.table(s)
        if table is None and (parts := self.gathering(s)):
            write(parts, self)
            return
        share, lo, hi = self.range(s)
        if table:
            self.w.line(look_up(table, self.p.index, lo, hi))
            return
        around = self.around_sum(s)
        if around:
            self.w.line(around[0])
        fields = along_fields(s, self.p.packed, f"row{self.rows}_") if self.p.packed else None
        if strip := self.strip(s, share):
            staged_rows.write(*strip, lo, hi, self)
        elif fields is None:
            self.iterations(s, share, lo, hi)
        else:
            self.rows += 1
            self.by_rows(*fields, share, lo, hi)
        if around:
            self.w.line(around[1])

    def range(self, s: For) -> tuple[Share, str, str]:
        """The worker's share of a loop, where it begins and where it ends; a computed end gets a
        name."""
        share, i, size = self.share(s), s.iter.name, self.language.size
        n = self.p.index(s.extent)
        lo, hi = (text.format(n=n, size=size) for text in (share.first, share.end))
        if share.end != ALL.end:
            self.w.line(f"const {size} {i}_end = {hi};")
            hi = f"{i}_end"
        return share, lo, hi

    def row(self, s: For) -> str:
        """The statement for a loop that reduces adjacent elements of memory; "" for another loop,
        and where the language has none."""
        match s:
            case For(it, n, "simd", (Accumulate(acc, str(fn), Load(buffer, at, dtypes.float32)),)
                     ) if fn in self.language.rows and coefficient(at, it.name) == 1:
                place = f"{buffer} + {self.p.index(substitute(at, {it.name: 0}), 12)}"
                return self.language.rows[fn].format(acc=acc, place=place, n=self.p.index(n))
        return ""

    def sums(self, s: PartialSums) -> None:
        """Write the loops of a sum side by side, between the declaration of its parts and their
        sum."""
        row = Param(s.name, dtypes.float32, True)
        self.w.line(f"float {s.name}[{s.width}];")
        self.w.line(f"gt_parts_{s.fn}({s.name});")
        for loop in s.loops:
            self.on_rows([row]).stmt(loop)
        self.w.line(f"{s.acc} {_OPERATORS[s.fn]}= gt_joined_{s.fn}({s.name});")

    def around_sum(self, s: For) -> tuple[str, str] | None:
        """The lines around a loop that does nothing but a sum of a team in each iteration: its
        parts are joined once, behind it."""
        inside: Stmt = s
        while isinstance(inside, For) and not inside.reduces and len(inside.body) == 1:
            inside = inside.body[0]
        if inside is s or not isinstance(inside, For) or inside in self.joined:
            return None
        if not (inside.reduces and self.language.workers.single) or self.divided or (
                s.mode != "serial"):
            return None
        self.joined.add(inside)
        reduction = self.reduction(inside, *inside.reduces[0])
        before, after = self.inner.reduce
        return before.format(**reduction), after.format(**reduction)

    def share(self, s: For) -> Share:
        """How the iterations of a loop are divided among the workers."""
        shared = s.mode.startswith("parallel") and not self.serial
        if s.mode == "serial" or is_outer(s):
            return self.outer if shared else ALL
        return ALL if self.divided else self.flat if shared else self.inner

    def iterations(self, s: For, share: Share, lo: str, hi: str) -> None:
        """Write the `for` statement from `lo` to `hi`, the lines around it and its body."""
        i, before, after = s.iter.name, share.before, share.after
        if s in self.joined:
            before = after = ""
        elif s.reduces:
            acc, fn = s.reduces[0]
            before, after = (line.format(**self.reduction(s, acc, fn)) for line in share.reduce)
        each = share.step.format(size=self.language.size)
        block = kept_rows.block_of(s.body, self)
        if self.converts_rows and not before and (steps := row_steps.in_steps(s, block)):
            row_steps.write(steps, lo, hi, self)
            return
        if before:
            self.w.line(before)
        who, outer = self.language.workers, self.divided
        self.divided = outer or (bool(who.single) and share in (who.inner, who.flat))
        pieces = self.pieces(s) if share in (who.inner, who.flat) else None
        if pieces:
            lo, each = (f"({x}) * {pieces.width}" if " " in x else f"{x} * {pieces.width}"
                        for x in (lo, each or "1"))
        step = f"{i} += {each}" if each else f"{i}++"
        with self.w.block(f"for ({self.language.size} {i} = {lo}; {i} < {hi}; {step}) {{"):
            if pieces:
                self.at_once(pieces)
            else:
                kept_rows.write(block, self)
        self.divided = outer
        if after:
            self.w.line(after)

    def pieces(self, s: For) -> Vectors | None:
        """The loop with iterations that a worker computes together; None if it takes each alone."""
        return vectors(s, self.params) if self.language.pieces else None

    def at_once(self, v: Vectors) -> None:
        """Write the iterations of a piece: what is read, a loop over its elements, what is
        stored."""
        how = self.language.pieces
        assert how is not None

        def line(text: str, p: Piece) -> str:
            kind = self.language.type(p.param.dtype)
            return text.format(name=p.name, width=v.width, type=kind,
                               bytes=v.width * p.param.dtype.bytes,
                               place=f"{p.buffer} + {self.p.index(p.first, 13)}")
        for s in v.before:
            self.stmt(s)
        for p in (*v.reads, *v.writes):
            self.w.line(line(how.array, p))
        for p in v.reads:
            self.w.line(line(how.read, p))
        self.w.line(how.each)
        outside, self.params = self.params, {**self.params, **{
            p.name: p.param for p in (*v.reads, *v.writes)}}
        self.block(f"for (int {v.lane} = 0; {v.lane} < {v.width}; {v.lane}++) {{", v.body)
        self.params = outside
        for p in v.writes:
            self.w.line(line(how.write, p))

    def table(self, s: For) -> TableRow | None:
        """What a loop looks up in a table of bytes; None for any other loop."""
        plain = self.converts_rows and "simd" in s.mode
        return by_table(s, self.params, self.around.sizes) if plain else None

    @property
    def converts_rows(self) -> bool:
        """Whether one worker converts rows at a time, on a machine with memory for them."""
        return self.language.converts_rows and not (
            self.divided or self.around.small or self.p.packed)

    def gathering(self, s: For) -> GatheringLoop | None:
        """The parts of a loop that reads elements one by one; None for any other loop."""
        return gathering(s, self.params, self.around.sizes) if self.converts_rows else None

    def strip(self, s: For, share: Share) -> tuple[Symbol, Symbol, Stages] | None:
        """The loop in strips whose elements are converted by rows; None if it has none."""
        if not self.converts_rows or share.before != self.inner.before or (
                s.mode in ("serial", "parallel")):
            return None
        return strips(s, {p.name: p.dtype for p in self.params.values()}, self.around)

    def within_strip(self, s: For, count: str) -> None:
        """Write a loop over one strip, of `count` iterations."""
        stages = converted(s, {p.name: p.dtype for p in self.params.values()}, self.around)
        if stages is None:
            self.stmt(s)
        else:
            staged_rows.write_strip(stages, WIDEST, count, self)

    def on_rows(self, rows: Sequence[Param]) -> Statements:
        """A printer for statements that one worker runs, and that use these rows as well."""
        params = {**self.params, **{p.name: p for p in rows}}
        return Statements(self.w, self.p, params, True, self.around, True)

    def by_rows(self, s: For, fields: FilledLoop, share: Share, lo: str, hi: str) -> None:
        """Write the iterations in pieces; before each piece its rows are filled."""
        if fields.first is None:
            self.fill(fields, 0, hi)
            self.iterations(s, share, lo, hi)
            return
        at, size = fields.first.name, self.language.size
        with self.w.block(f"for ({size} {at} = {lo}; {at} < {hi}; {at} += {WIDEST}) {{"):
            self.w.line(f"const {size} {at}_end = gt_min_i64({at} + {WIDEST}, {hi});")
            self.fill(fields, symbol_of(fields.first), f"{at}_end - {at}")
            self.iterations(s, share, at, f"{at}_end")

    def fill(self, fields: FilledLoop, first: Dim, count: str) -> None:
        """Write the loops that fill the rows from iteration `first` on."""
        for row in fields.rows:
            self.p.exact.add(row.name)
            self.w.line(f"{self.language.type(row.type)} {row.name}[{row.length}];")
            self.w.line(f"gt_fields_{row.type.short}({row.name}, {row.buffer}, "
                        f"{self.p.index(row.start + first)}, {count});")

    def reduction(self, s: For, acc: str, fn: str) -> dict[str, str]:
        """The fields of the lines around a loop that reduces."""
        dtype = next((x.value.dtype.computes for x in s.body if isinstance(x, Accumulate)), None)
        typed = f"gt_{fn}_{dtype.short}" if dtype is not None and dtype.is_float else fn
        return {"acc": acc, "fn": fn, "op": _OPERATORS.get(fn, typed),
                "zero": self.zeros.get(acc, ""), "t": "" if dtype is None else dtype.short}
