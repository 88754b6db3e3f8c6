"""The steps of a program as C: calls of kernels, and the branches and loops around them.

All workers take the same branch: there is a barrier before they read its condition, and they meet
after it. How they do so is a matter of the language.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphtool.emit.expr import ExprPrinter
from graphtool.emit.kernels import kernel_dims, pointer_type
from graphtool.emit.language import C, Language
from graphtool.emit.lines import DebugLines, Writer
from graphtool.emit.numbers import passed
from graphtool.emit.shares import only_runs, own_memory, phased, pieces
from graphtool.emit.teams import is_for_a_team, language_of_kernel
from graphtool.emit.vectors import vectors
from graphtool.escaping import c_comment
from graphtool.loops.contract import CONTRACTS, SHARED
from graphtool.loops.ir import For, Template
from graphtool.loops.program import (
    Bind,
    Branch,
    Buffer,
    Kernel,
    Param,
    Program,
    Repeat,
    Run,
    Step,
    Times,
    runs,
)
from graphtool.loops.walk import statements
from graphtool.symbolic import Dim, maximum, symbols


def is_loose(program: Program) -> bool:
    """Whether a run may end before each thread has gone through all steps."""
    first = program.commit
    unchecked = first is None or not checks_before(program, first)
    return unchecked and only_runs(program.steps) and any(
        not k.serial for k in program.kernels)


def checks_before(program: Program, first: int) -> list[int]:
    """The checks that the steps before `first` make."""
    buffers = {b.name: b for b in program.buffers}
    return sorted({buffers[a].slot for r in runs(program.steps[:first]) for a in r.args
                   if a in buffers and buffers[a].space == "check"})


def entered(program: Program) -> list[Run]:
    """The runs of kernels that all threads enter, pieces or not: a late one may do so in a run that
    has ended."""
    kernels = {k.name: k for k in program.kernels}
    return [r for r in runs(program.steps) if phased(kernels[r.kernel])
            ] if is_loose(program) else []


MOST_STEPS = 500  # of a function: the time that gcc takes grows faster than a function's length


class StepPrinter:
    """Prints steps; `held` gives the C text of each weight's address, `debug` the model's lines."""

    def __init__(self, w: Writer, program: Program, held: Mapping[str, str],
                 dims: Mapping[str, str], debug: DebugLines | None = None,
                 language: Language = C) -> None:
        self.debug, self.language, self.how = debug, language, language.steps
        self.w, self.program, self.held, self.dims = w, program, held, dims
        self.printer = ExprPrinter(dims)
        self.buffers = {b.name: b for b in program.buffers}
        self.kernels, self.passed = {k.name: k for k in program.kernels}, passed(program, language)
        self.sizes = [s.name for s in program.sizes]
        self.pieces = pieces(program, self.how.pieces)
        self.total, self.at = sum(1 for _ in runs(program.steps)), 0
        self.kept: dict[str, str] = {}  # what variables hold of the caller's addresses

    def divided(self, program: Program) -> list[str]:
        """Write functions of at most MOST_STEPS steps each, if a program is longer than that and
        consists of runs of kernels only; returns the calls of them, else nothing."""
        first = program.commit
        if self.language.device or len(program.steps) <= MOST_STEPS or not all(
                isinstance(s, Run) for s in program.steps) or (
                first is not None and checks_before(program, first)):
            return []
        ports = self.kept_ports(entered(program))
        given = {f"d{i}": "int64_t" for i in range(len(program.dims))} | {
            f"{b.space}{b.slot}": f"{'const ' if b.space == 'input' else ''}void *"
            for b in ports.values()}
        self.kept = {name: f"{b.space}{b.slot}" for name, b in ports.items()}
        params = "".join(f", {kind} {name}" for name, kind in given.items())
        calls = []
        for n, start in enumerate(range(0, len(program.steps), MOST_STEPS)):
            with self.w.block(f"GT_NOINLINE void steps{n}(const run_state *s, gt_worker *w"
                              f"{params})\n{{"):
                for name in ("s", *given):
                    self.w.line(f"(void){name};")
                self.steps(program.steps[start:start + MOST_STEPS])
            self.w.line()
            calls.append(f"steps{n}(s, w{''.join(f', {name}' for name in given)});")
        return calls

    def all(self, program: Program, calls: Sequence[str] = ()) -> None:
        """Write all steps. Before the first that overwrites a donated input, threads stop if a
        check has failed: the input stays as it was. `calls` are those of `divided`."""
        first = program.commit
        checked = [] if first is None else checks_before(program, first)
        if first is None or not checked:
            if is_loose(program):
                self.keep(entered(program))
                self.say(self.how.loosen)
            for call in calls:
                self.w.line(call)
            self.steps(() if calls else program.steps)
            return
        self.steps(program.steps[:first])
        self.say(self.how.barrier)
        for i in range(0, len(checked), 6):
            failed = " || ".join(self.how.read.format(pointer="s->failed", place=slot)
                                 for slot in checked[i:i + 6])
            self.w.line(f"if ({failed}) return; /* nothing is overwritten yet */")
        self.steps(program.steps[first:])

    def kept_ports(self, entered: Sequence[Run]) -> dict[str, Buffer]:
        """What these runs are handed of the caller's, by name, in order."""
        ports = {a: self.buffers[a] for r in entered for a in r.args if a in self.buffers
                 and a not in self.held and self.buffers[a].space in ("input", "output")}
        return dict(sorted(ports.items(), key=lambda port: (port[1].space, port[1].slot)))

    def keep(self, entered: Sequence[Run]) -> None:
        """Write variables for what these runs are handed of the caller's, whose memory may be gone
        when a late thread comes to them."""
        for name, b in self.kept_ports(entered).items():
            constant = "const " if b.space == "input" else ""
            self.w.line(f"{constant}void *const {b.space}{b.slot} = s->{b.space}s[{b.slot}];")
            self.kept[name] = f"{b.space}{b.slot}"

    def say(self, text: str) -> None:
        """Write a line that the language has for this, if it has one."""
        if text:
            self.w.line(text)

    def steps(self, steps: Sequence[Step]) -> None:
        """Write the steps in order, with barriers before and after each branch and loop."""
        for step in steps:
            if isinstance(step, Run):
                self.run(step)
                continue
            self.say(self.how.barrier)
            self.w.line(f"/* {c_comment(step.label)} */")
            match step:
                case Bind():
                    self.bind(step)
                case Branch():
                    with self.w.block("{"):
                        self.read_flag(step.pred)
                        with self.w.block("if (on) {"):
                            self.steps(step.then)
                        with self.w.block("else {"):
                            self.steps(step.orelse)
                case Repeat():
                    self.repeat(step)
                case Times():
                    i, extent = step.counter.name, self.printer.index(step.extent)
                    with self.w.block(f"for (int64_t {i} = 0; {i} < {extent}; {i}++) {{"):
                        self.steps(step.body)
                        self.say(self.how.barrier)
            self.say(self.how.barrier)

    def bind(self, step: Bind) -> None:
        """Write a step that reads a size. All threads read the same number, so all go on or all
        stop."""
        b, at = self.buffers[step.buffer], self.sizes.index(step.size.name)
        name = self.dims[step.size.name]
        self.w.line(f"{name} = {self.value(b, self.printer.index(step.index))};")
        self.say(self.how.meet)
        first = f"if ({self.how.leader}) " if self.how.leader else ""
        self.w.line(f"{first}s->sizes[{at}] = {name};")
        least, most = step.size.lo, self.printer.index(step.most)
        below = "" if least is None else f"{name} < {least} || "
        with self.w.block(f"if ({below}{name} > {most}) {{"):
            self.w.line(f"{first}*s->status = -2;")
            self.w.line("return;")

    def repeat(self, step: Repeat) -> None:
        """Write a while loop: the steps of the condition, the test of its flag, then the body."""
        with self.w.block("for (;;) {"):
            self.steps(step.cond)
            self.say(self.how.barrier)
            self.read_flag(step.pred)
            self.w.line("if (!on) break;")
            self.steps(step.body)
            self.say(self.how.barrier)

    def read_flag(self, name: str) -> None:
        """Write the read of a buffer's first element, which no thread may overwrite before all
        have read it."""
        self.w.line(f"const int on = {self.value(self.buffers[name], '0')};")
        self.say(self.how.meet)

    def value(self, b: Buffer, place: str) -> str:
        """The text of an element of a buffer that a kernel has computed."""
        p = Param(b.name, b.dtype, True)
        pointer = f"(({pointer_type(p)}){self.pointer(b.name, p)})"
        return self.how.read.format(pointer=pointer, place=place)

    def run(self, step: Run) -> None:
        """Write the call of a kernel for each piece that a worker gets; a serial one has one."""
        kernel, how, phases = self.kernels[step.kernel], self.how, phased(self.kernels[step.kernel])
        own = frozenset() if phases else own_memory(kernel)
        args = [self.pointer(a, p, p.name in own)
                for a, p in zip(step.args, kernel.params, strict=True)]
        args += [self.printer.expr(p.argument(kernel, step)) for p in self.passed[kernel.name]]
        args += kernel_dims(kernel, self.dims)
        at, self.at = f"{self.at}, {self.total}", self.at + 1
        args = [*(how.whole if phases else how.part),
                *([how.worker] if phases else []), *args]
        name = f"{self.program.name}_{kernel.name}"
        given = ", ".join(how.argument.format(arg=a) for a in args)
        text = (how.phased if phases else how.step).format(
            at=at, call=f"{name}({given})", name=name, args=given, extent=self.extent(kernel),
            teams=self.teams(kernel), shared=_shared(kernel), pointers=len(kernel.params),
            index=language_of_kernel(self.language, kernel).size,
            shares="1" if kernel.serial else how.shares,
            pieces=self.pieces[kernel.name].text(how.shares))
        self.w.line(f"/* {c_comment(step.label)} */")
        with self.w.standing_for(self.debug.place(step) if self.debug else None):
            self.w.line(text)
        if step.barrier:
            self.say(self.how.barrier)

    def teams_of_templates(self, kernel: Kernel) -> Dim:
        """How many teams have work in the templates of a kernel."""
        most: Dim = 0
        for s in statements(kernel.body):
            if isinstance(s, Template):
                contract = CONTRACTS[s.kernel]
                usual = {m.name: m.default for m in contract.macros}
                if contract.teams is not None:
                    most = maximum(most, contract.teams(usual | dict(s.macros), self.program.lanes))
        return most

    def extent(self, kernel: Kernel) -> str:
        """The iterations of the first loop that is divided; 1 if one worker does all, or if only
        the kernel knows how many there are."""
        shared = [s.extent for s in statements(kernel.body) if isinstance(s, For)
                  and s.mode.startswith("parallel")]
        if kernel.serial or not shared or any(s.name not in self.dims for s in symbols(shared[0])):
            return "1"
        return self.printer.index(shared[0])

    def teams(self, kernel: Kernel) -> str:
        """How many teams have work: an iteration each, or one for each of their workers."""
        extent, team = self.extent(kernel), self.language.workers.team
        together = language_of_kernel(self.language, kernel).workers.teams
        if together > 1:
            return f"({extent} + {together - 1}) / {together}"
        if team > 1 and (most := self.teams_of_templates(kernel)) != 0:
            return self.printer.index(most)
        if extent == "1" or any(map(is_for_a_team, statements(kernel.body))):
            return extent
        first = kernel.body[0]
        if self.language.pieces and len(kernel.body) == 1 and isinstance(first, For) and (
                divided := vectors(first, {p.name: p for p in kernel.params})):
            team *= divided.width
        return f"({extent} + {team - 1}) / {team}"

    def pointer(self, name: str, p: Param, own: bool = False) -> str:
        """The C text of a pointer to buffer `name` that parameter `p` can have; `own`: of the
        first worker, and to memory of their own for the others.

        It points to void, so that nothing is said of its alignment; only what a kernel updates of
        the caller's inputs loses its `const`.
        """
        if name in self.held:
            return self.held[name]
        b: Buffer = self.buffers[name]
        base = self.kept.get(name) or {
            "input": f"s->inputs[{b.slot}]", "output": f"s->outputs[{b.slot}]",
            "arena": f"arena_at(s, {self.printer.index(b.offset)})",
            "check": f"s->failed + {b.slot}"}[b.space]
        if b.space == "input" and not p.const:
            return f"({pointer_type(p)}){base}"
        return self.how.private.format(pointer=base) if own else base


def _shared(kernel: Kernel) -> int:
    """The bytes that a launch gives each team, beside what the templates declare themselves."""
    return max((int(value) for s in statements(kernel.body) if isinstance(s, Template)
                for name, value in s.macros if name == SHARED and isinstance(value, int)),
               default=0)
