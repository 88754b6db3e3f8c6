"""Kernels as functions: loop nests as statements, templates as macros around a header."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext

import numpy as np

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.emit.early import constants
from graphtool.emit.expr import ExprPrinter
from graphtool.emit.fields import TILE, staged
from graphtool.emit.gathers import sizes_of
from graphtool.emit.headers import called
from graphtool.emit.language import C, Language
from graphtool.emit.lines import DebugLines, Place, Writer, placed
from graphtool.emit.numbers import given, passed
from graphtool.emit.shares import has_phases, phased, pieces
from graphtool.emit.staged_rows import write_strip
from graphtool.emit.statements import Statements
from graphtool.emit.teams import is_for_a_team, language_of_kernel
from graphtool.emit.weights import ALIGN
from graphtool.escaping import c_comment
from graphtool.loops.contract import CONTRACTS, Macro
from graphtool.loops.forms import KernelFacts
from graphtool.loops.ir import For, Hook, MacroValue, Name, Template
from graphtool.loops.program import Kernel, Param, Program, runs
from graphtool.loops.walk import polynomials
from graphtool.loops.walk import statements as walked
from graphtool.symbolic import substitute, symbols


def pointer_type(p: Param, language: Language = C) -> str:
    """The type of a pointer parameter; packed elements are read as bytes."""
    return language.pointer.format(const="const " if p.const else "",
                                   type="uint8_t" if p.packed else language.type(p.dtype))


def kernel_dims(kernel: Kernel, dims: Mapping[str, str]) -> list[str]:
    """The program's dims that the kernel uses, in order."""
    used = {s.name for d in polynomials(kernel.body) for s in symbols(d)}
    return [c for name, c in dims.items() if name in used]


INT64_MAX = 2 ** 63 - 1


def number_type(number: Name, language: Language) -> str:
    """The type of a number that a run passes: on a device, that of an index."""
    return language.size if language.device else language.type(number.dtype.computes)


class Kernels:
    """Prints the kernels of a program in a language; `dims` gives the text of each open dimension,
    and `debug` the lines of the model, if the text is to name them."""

    def __init__(self, program: Program, dims: Mapping[str, str],
                 debug: DebugLines | None = None, language: Language = C) -> None:
        self.program, self.dims, self.language = program, dims, language
        self.places = debug.kernels(program) if debug else dict[str, Place]()
        self.printer = ExprPrinter(dims, language=language)
        self.labels, self.pieces = _labels(program), pieces(program, language.steps.pieces)
        self.sizes, self.given = sizes_of(program), given(program)
        self.passed = passed(program, language)
        self.constants = constants(program) if language.asks else {}

    @property
    def compiled_later(self) -> bool:
        """Whether the driver of a device compiles the kernels: their text is not C's."""
        return self.language.device is not None and self.language.device.compiles

    def declarations(self) -> str:
        """The text of `NAME_kernels.h`: what the files rely on and the prototype of every kernel.

        The C files include it before the kernels' headers, which read these settings.
        """
        w = Writer()
        guard = f"{self.program.name.upper()}_KERNELS_H"
        w.line(f"#ifndef {guard}")
        w.line(f"#define {guard}")
        for line in self.language.settings(self.program):
            w.line(line)
        w.line("#include <stdint.h>")
        header = self.language.workers.header
        if header and any(map(phased, self.program.kernels)):
            w.line(f'#include "{header}"')
        for kernel in () if self.compiled_later else self.program.kernels:
            w.line(f"{self.head(kernel)};")
        w.line("#endif")
        return w.text()

    def head(self, kernel: Kernel) -> str:
        """The prototype of a kernel without `;`: its part of the work, then its parameters."""
        it = self.of(kernel)
        params = ", ".join((*it.workers.params, *self.parameters(kernel, it, it.buffer)))
        return it.kernel.format(name=f"{self.program.name}_{kernel.name}", params=params)

    def parameters(self, kernel: Kernel, language: Language, buffer: str = "{pointer}{name}"
                   ) -> list[str]:
        """The declarations of what a kernel hands on behind its part: the worker if it has phases,
        buffers such as `const float *x`, each as `buffer`, numbers, then sizes."""
        who = language.workers
        return [*([f"{who.type}{who.name}"] if phased(kernel) else []),
                *(buffer.format(pointer=pointer_type(p, language), name=p.name)
                  for p in kernel.params),
                *(f"{number_type(p.number, language)} {p.name}" for p in self.passed[kernel.name]),
                *(f"{language.size} {d}" for d in kernel_dims(kernel, self.dims))]

    def of(self, kernel: Kernel) -> Language:
        """The language, with this kernel's workers and type of indices."""
        return language_of_kernel(self.language, kernel)

    def file(self, name: str, kernels: Sequence[Kernel]) -> str:
        """The text of the file `name` with these kernels and the includes that they need."""
        w = Writer()
        for kernel in kernels:
            w.line()
            self.kernel(w, kernel)
        declared = () if self.compiled_later else (f"{self.program.name}_kernels.h",)
        head = dict.fromkeys((*declared, *self.language.includes,
                              *called(w.text(), self.language, self.program.name)))
        return "".join(f'#include "{header}"\n' for header in head) + placed(
            w.lines, w.places, name, len(head))

    def kernel(self, w: Writer, kernel: Kernel) -> None:
        """Write one kernel: its labels as comments, its templates, then the function itself.

        No more than three labels are written; the number of the others follows.
        """
        for label in self.labels[kernel.name][:3]:
            w.line(f"/* {c_comment(label)} */")
        if len(self.labels[kernel.name]) > 3:
            w.line(f"/* and {len(self.labels[kernel.name]) - 3} more of the same */")
        for t, c_name in self.templates(kernel).items():
            self.template(w, kernel, t, c_name)
        with w.standing_for(self.places.get(kernel.name)), w.block(
                self.head(kernel) + "\n{"):
            for name, size in self.constants.get(kernel.name, {}).items():
                w.line(self.language.asks.format(name=name, bytes=size))
            if self.language.begins:
                w.line(self.language.begins)
            if kernel.serial and self.language.workers.alone:
                w.line(self.language.workers.alone)
            for line in self.bound(kernel):
                w.line(line)
            self.body(w, kernel)

    def bound(self, kernel: Kernel) -> Iterator[str]:
        """The lines that define the buffers of a kernel, and what its team has together."""
        it = self.language
        for p in kernel.params if it.bind else ():
            yield it.bind.format(pointer=pointer_type(p, it), name=p.name)
        if it.aligned and self.templates(kernel):
            for p in kernel.params:
                yield it.aligned.format(pointer=pointer_type(p, it), name=p.name)
        if it.workers.memory and any(isinstance(s, For) and s.reduces
                                     for s in walked(kernel.body)):
            yield it.workers.memory

    def statements(self, w: Writer, kernel: Kernel, serial: bool, hook: bool = False
                   ) -> Statements:
        """A printer for the statements of `kernel`, or of a hook of it, that writes to `w`.

        `serial` means that the parallel loops are not divided between the workers.
        """
        masks = any(not p.const and p.dtype is dtypes.bool_ for p in kernel.params)
        packed = frozenset(p.name for p in kernel.params if p.packed)
        return Statements(w, ExprPrinter(self.dims, packed, self.of(kernel)),
                          {p.name: p for p in kernel.params}, serial,
                          KernelFacts(masks, self.program.align < ALIGN,
                                      self.sizes.get(kernel.name, {}), self.given[kernel.name]),
                          hook,
                          any(map(is_for_a_team, walked(kernel.body))), self.calls(kernel))

    def body(self, w: Writer, kernel: Kernel) -> None:
        """Write the statements of a kernel. Beside a template with phases, every other statement
        is a phase too."""
        statements, who = self.statements(w, kernel, kernel.serial), self.language.workers
        for stmt in kernel.body:
            whole = phased(kernel) and not (isinstance(stmt, Template) and has_phases(stmt))
            each = f"{who.each.format(part=who.args[0])} {{" if whole else ""
            with w.block(each) if whole else nullcontext():
                statements.stmt(stmt)
            if whole:
                w.line(f"{who.wait};")

    def templates(self, kernel: Kernel) -> dict[Template, str]:
        """The templates of a kernel, each with the name of its function."""
        used = dict.fromkeys(s for s in walked(kernel.body) if isinstance(s, Template))
        return {t: f"{self.program.name}_{kernel.name}_{i}" for i, t in enumerate(used)}

    def calls(self, kernel: Kernel) -> dict[Template, str]:
        """The templates of a kernel, each with the call of its function."""
        args = ", ".join((*self.language.workers.args, *self.names(kernel)))
        return {t: f"{name}({args});" for t, name in self.templates(kernel).items()}

    def names(self, kernel: Kernel) -> list[str]:
        """What a kernel hands on to its templates besides the piece."""
        worker = [self.language.workers.name] if phased(kernel) else []
        return [*worker, *(p.name for p in kernel.params),
                *(p.name for p in self.passed[kernel.name]), *kernel_dims(kernel, self.dims)]

    def template(self, w: Writer, kernel: Kernel, t: Template, c_name: str) -> None:
        """Write the hooks and macros of one template, and the include of its header."""
        who = self.language.workers
        params = "".join(f", {p}" for p in self.parameters(kernel, self.language))
        args = "".join(f", {n}" for n in self.names(kernel))
        with w.standing_for(self.places.get(kernel.name)):
            for hook in t.hooks:
                self.hook(w, c_name, kernel, hook, params, self.names(kernel), self.row(t))
        w.line(f"#define GT_NAME {c_name}")
        w.line(f"#define GT_PARAMS {params}")
        w.line(f"#define GT_ARGS {args}")
        if self.pieces[kernel.name].each > 1 and CONTRACTS[t.kernel].grain == "shares":
            w.line(f"#define GT_PIECES {self.pieces[kernel.name].each}")
        if has_phases(t):
            w.line(f"#define GT_PHASE(p) {who.each.format(part='p')}")
            w.line(f"#define GT_WAIT {who.wait}")
        contract = CONTRACTS[t.kernel]
        for name, value in t.macros:
            macro = contract.macro(name)
            assert macro is not None
            w.line(f"#define {called_with(name, macro.arguments)} {self.macro(macro, value)}")
        for hook in t.hooks:
            w.line(f"#define GT_{hook.name.upper()} {c_name}_{hook.name}")
        for name, buffer, offset in t.pointers:
            pointer = contract.pointer(name)
            assert pointer is not None
            if pointer.by_thread:  # of any thread, its memory is where that of the first one is
                offset = substitute(offset, dict.fromkeys(pointer.arguments, 0))
            place = self.printer.index(offset, 13)
            if pointer.by_thread and phased(kernel):
                w.line(f"#define GT_COMMON ({buffer} + {place})")
                kind = pointer_type(next(p for p in kernel.params if p.name == buffer))
                buffer = f"({kind}){who.private.format(pointer=buffer)}"
            w.line(f"#define {called_with(name, pointer.arguments)} ({buffer} + {place})")
        w.line(f'#include "{contract.text(self.language.name)}"')

    def macro(self, macro: Macro, value: MacroValue) -> str:
        """A macro's value as C text."""
        match value:
            case bool():
                return str(int(value))
            case float():
                return f"({float(np.float32(value))!r}f)"
            case str():
                return macro.words[value]
            case DType():
                return self.language.type(value)
            case _ if value == INT64_MAX:
                return "INT64_MAX"
            case _:
                return self.printer.index(value, 15)

    def row(self, t: Template) -> int:
        """The most elements of a finished row, by the contract if it says so. Of integers it is a
        row of a tile, which is at most 16 vectors: without vectors the stack need not hold more."""
        if most := CONTRACTS[t.kernel].row:
            return most
        small = self.program.align < ALIGN and t.kernel in ("conv_int", "gemm_int", "depthwise_int")
        return min(TILE, 16 * self.program.lanes) if small else TILE

    def hook(self, w: Writer, stem: str, kernel: Kernel, hook: Hook, params: str,
             names: list[str], most: int = TILE) -> None:
        """Write the function that a template calls for a finished row of `count` elements in `acc`,
        `most` at most.

        `stem` begins its C name and `names` are the parameters that it may leave unused.
        """
        it = self.language
        indices = "".join(f", {it.size} {s.name}" for s in hook.indices)
        acc = it.own.format(const="const ", type=it.type(hook.dtype)) + f"{it.restrict} acc"
        head = it.function.format(name=f"{stem}_{hook.name}",
                                  params=f"{acc}{indices}, {it.size} count{params}")
        with w.block(f"{head}\n{{"):
            text = Writer()
            statements = self.statements(text, kernel, True, True)
            for stmt in hook.body:
                stages = staged(stmt, {p.name: p.dtype for p in kernel.params},
                                statements.around) if it.converts_rows else None
                if stages is None:
                    statements.stmt(stmt)
                else:
                    write_strip(stages, most, "count", statements)
            body = text.text()
            for name in ["acc", "count", *(s.name for s in hook.indices), *names]:
                if not re.search(rf"\b{name}\b", body):
                    w.line(f"(void){name};")
            for line in text.lines:
                w.line(line)


def called_with(name: str, arguments: Sequence[str]) -> str:
    """A macro's name in C, with its arguments."""
    return f"GT_{name}({', '.join(arguments)})" if arguments else f"GT_{name}"


def _labels(program: Program) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {k.name: [] for k in program.kernels}
    for step in runs(program.steps):
        label = step.label + (f"  ({step.where})" if step.where else "")
        if label not in out[step.kernel]:
            out[step.kernel].append(label)
    return out
