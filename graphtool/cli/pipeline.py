"""What `opt` does while the passes run: prints, dumps and remembers. The passes run elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphtool import interp, passes
from graphtool.analysis import made_up
from graphtool.cli import terminal
from graphtool.errors import InputError, UsageError, one_of
from graphtool.io import pairs
from graphtool.io.weights import Weight
from graphtool.ir import serial
from graphtool.ir.graph import Module
from graphtool.ir.listing import listing
from graphtool.kernels.choice.rules import Rules
from graphtool.lower.arena import arena_of
from graphtool.passes.journal import PassEvents, write_journal
from graphtool.report.table import table
from graphtool.symbolic import Symbol
from graphtool.target import Target
from graphtool.verify.compare import Difference, compare, worst
from graphtool.verify.pipeline import (
    PLANS,
    OptReport,
    PassRow,
    before_after,
    counted,
    opt_report,
    pass_row,
    times,
)

_WEIGHTS = "weights.safetensors"


class Watch:
    """One run of passes over one module."""

    def __init__(self, module: Module, text: str | None, print_after: str | None,
                 dump_dir: Path | None, goal: Target, rules: Rules,
                 journal: Path | None = None) -> None:
        self.journal, self.recorder = journal, PassEvents(module)
        self.module, self.current = module, module
        self.calls = passes.calls(text)
        self.names = [str(c) for c in self.calls]
        self.print_after, self.dump_dir = print_after, dump_dir
        self.rules = rules
        self.goal = goal
        self.arena = arena_of(self.goal, rules)
        self.rows: list[PassRow] = []
        self.weights: dict[str, Weight] = {}
        self.dumped: dict[Path, bytes] = {}
        self.differences: list[Difference] | None = None
        places = ("all", "changed", *dict.fromkeys(c.name for c in self.calls))
        if print_after is not None and print_after not in places:
            raise UsageError("GT3022", f"--print-after {print_after!r}: no such pass runs",
                             hint=one_of(print_after, places))

    def run(self) -> Module:
        """The module after the passes; what was asked for is printed and dumped on the way."""
        if self.dump_dir is not None:
            try:
                self.dump_dir.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError("GT0330", f"cannot write: {error.strerror}",
                                 where=str(self.dump_dir)) from error
        try:
            self.dump(self.module, "000-input")
            return passes.run(self.module, self.calls, after=self.after,
                              supply={"target": self.goal, "rules": self.rules,
                                      "arena": self.arena}, texts=self.journal is not None)
        finally:
            self.write_dump()
            if self.journal is not None:
                write_journal(self.journal, self.recorder.events)

    def after(self, report: passes.PassReport, module: Module) -> None:
        """Record what a pass did; print or dump the graph if this was asked for."""
        changed = module.graph is not self.current.graph
        if self.journal is not None:
            self.recorder.after(report, module)
        self.current = module
        self.rows.append(pass_row(report, changed))
        if self.print_after in ("all", report.name) or (self.print_after == "changed" and changed):
            state = "" if changed else " (no change)"
            terminal.lines([f"; after {report.call}{state}", *listing(module), ""])
        self.dump(module, f"{len(self.rows):03d}-{report.name}")

    def dump(self, module: Module, stage: str) -> None:
        """Keep one stage's graph for `write_dump`."""
        if self.dump_dir is not None:
            for w in serial.collect_weights(module):
                self.weights[w.digest] = w
            self.dumped[self.dump_dir / f"{stage}.graph.json"] = serial.dumps(
                module, _WEIGHTS if self.weights else "").encode()

    def write_dump(self) -> None:
        """Write the graphs of all stages, and the weights file that they share."""
        if self.dump_dir is not None:
            pairs.save_all(self.dumped, self.dump_dir / _WEIGHTS, self.weights.values())

    def check(self, result: Module, seed: int, sizes: Mapping[str, int],
              atol: float | None, rtol: float) -> bool:
        """Evaluate before and after on made-up inputs; whether all outputs agree."""
        inputs = self._inputs(seed, sizes, {n: s for n, s in self.module.symbols.items()
                                            if n not in result.symbols})
        self.differences = compare(interp.run(self.module, inputs), interp.run(result, inputs),
                                   atol, rtol)
        return all(d.ok for d in self.differences)

    def bisect(self, seed: int, sizes: Mapping[str, int], atol: float | None, rtol: float,
               form: str, source: str) -> int:
        """Report the first pass that changes the outputs on made-up inputs, in a form that
        `--format` takes: the exit code. `source` is the graph's file."""
        from graphtool.verify.bisect import bisect, bisect_lines, bisect_outcome
        named = {n: s for c in self.calls if c.name == "specialize" for n in c.arguments
                 if (s := self.module.symbols.get(n))}
        result = bisect(self.module, self.calls, self._inputs(seed, sizes, named), atol, rtol,
                        {"target": self.goal})
        terminal.tell(result, form, lambda: bisect_lines(result),
                     lambda: bisect_outcome(result, source))
        return 0 if result.ok else 1

    def _inputs(self, seed: int, sizes: Mapping[str, int],
                gone: Mapping[str, Symbol]) -> dict[str, Any]:
        """Made-up inputs; the dims in `gone` have the sizes that a pass binds them to."""
        known = {n: s for n, s in sizes.items() if n in self.module.symbols}
        for name, symbol in gone.items():
            if symbol.lo is not None:
                known.setdefault(name, self._bound(name, symbol.lo))
        return made_up.random_inputs(self.module, seed, known)

    def _bound(self, name: str, least: int) -> int:
        values: dict[str, Any] = {}
        for call in self.calls:
            if call.name == "specialize":
                values.update(call.arguments)
        return int(values.get(name, max(least, 1)))

    def report(self, result: Module) -> OptReport:
        """The report of `opt` for the module that the passes returned."""
        return opt_report(self.rows, self.module, result, self.differences, self.arena)

    def tell(self, report: OptReport, time: bool, stats: bool) -> None:
        """The tables that were asked for."""
        if time:
            terminal.table(times(report))
        if stats:
            terminal.table(before_after(report))
            terminal.lines([counted(report)])
            if report.recompute:
                terminal.table(table(PLANS, report.recompute))
        if report.check is not None:
            ok = all(d.ok for d in report.check)
            terminal.lines([f"check: {'the same' if ok else 'DIFFERENT'} before and after: "
                            f"{worst(report.check)}"])
