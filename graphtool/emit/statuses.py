"""What a run of a compiled model can refuse: the rules that sizes must satisfy, as C, and the
numbers, names and sentences of all that its functions return, listed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphtool.emit.expr import ExprPrinter
from graphtool.emit.language import Device, language_of
from graphtool.emit.lines import Writer
from graphtool.escaping import c_comment, c_string
from graphtool.loops.dim_names import equation_by_author, symbol_by_author
from graphtool.loops.program import Program
from graphtool.symbolic import Symbol, divides


def atom_text(s: Symbol, place: str) -> str:
    """The C text of what polynomials are made of: the number of a symbol's steps."""
    if s.step == 1:
        return place
    return f"({place} - {s.offset}) / {s.step}" if s.offset else f"{place} / {s.step}"


def atoms(program: Program, array: str) -> dict[str, str]:
    """What polynomials are made of, in terms of an array of the program's dims and sizes."""
    known = enumerate((*program.dims, *program.sizes))
    return {s.name: f"({atom_text(s, f'{array}[{i}]')})" if s.step > 1 else f"{array}[{i}]"
            for i, s in known}


def rules(program: Program) -> list[tuple[str, str]]:
    """(a C condition over `dims`, the rule as text)."""
    printer = ExprPrinter(atoms(program, "dims"))
    steps = [(f"dims[{i}] % {s.step} == {s.offset}", divides(symbol_by_author(s)))
             for i, s in enumerate(program.dims) if s.step > 1]
    return [*steps, *((f"{printer.index(e.left)} == {printer.index(e.right)}",
                       str(equation_by_author(e))) for e in program.requires)]


@dataclass(frozen=True, slots=True)
class Status:
    """One number that a run or a load can return. Without a `name` it is known by its text."""

    number: int
    name: str
    text: str


BAD_DIM = Status(-1, "BAD_DIM", "a dim is out of its range, or sizes are too large")
BAD_SIZE = Status(-2, "BAD_SIZE", "a size that the run computed is out of its bounds")
NULL_POINTER = Status(-3, "NULL_POINTER", "weights, arena, dims, an input or an output is NULL")
MISALIGNED = Status(-4, "MISALIGNED", "weights or arena does not start at a multiple of 64 bytes")
ON_DEVICE = Status(-4, "MISALIGNED", f"{MISALIGNED.text}, or an array of the device at one of 16")
NO_FILE = Status(-5, "NO_FILE", "the weights file cannot be read")
BAD_FILE = Status(-6, "BAD_FILE", "the weights file is cut short, or is another model's")
NO_MEMORY = Status(-7, "NO_MEMORY", "there is not enough memory for the weights")
DEVICE_FAILED = Status(-9, "DEVICE_FAILED", "the device reported an error")
DEVICE_MEMORY = Status(-10, "DEVICE_MEMORY", "there is not enough memory on the device")
NO_CODE = Status(-11, "NO_CODE", "the device's compiler refused the kernels")
BAD_POOL = Status(-12, "BAD_POOL", "there is no pool, or it did not run each part once")
FIRST_RULE = -16  # of the first rule that sizes must satisfy; -17 is the next one
FIRST_CHECK = -1000  # what a run returns whose first check fails; the second gives -1001
LOADING = (NULL_POINTER, NO_FILE, BAD_FILE, NO_MEMORY)  # of NAME_load
FIXED = (BAD_DIM, BAD_SIZE, NULL_POINTER, MISALIGNED, NO_FILE, BAD_FILE, NO_MEMORY)


def statuses(program: Program) -> tuple[Status, ...]:
    """All that the functions of this program may return, besides 0."""
    fixed = tuple(s for s in FIXED if s is not BAD_SIZE or program.sizes)
    language = language_of(program)
    if language.steps.given:
        fixed = (*fixed, BAD_POOL)
    if device := language.device:
        fixed = (*(ON_DEVICE if s is MISALIGNED else s for s in fixed), *of_device(device))
    checks = (Status(FIRST_CHECK - b.slot, "", b.label) for b in program.checks)
    return (*fixed, *rule_statuses(program), *checks)


def of_device(device: Device) -> tuple[Status, ...]:
    """What a device may return."""
    return (Status(-8, "NO_DEVICE", device.missing), DEVICE_FAILED, DEVICE_MEMORY,
            *([NO_CODE] if device.compiles else []))


def rule_statuses(program: Program) -> tuple[Status, ...]:
    """One status for each of the program's rules, in their order."""
    return tuple(Status(FIRST_RULE - i, "", f"{rule} does not hold")
                 for i, (_, rule) in enumerate(rules(program)))


def enumeration(name: str, rows: Sequence[Status]) -> str:
    """The enum of the header; rows without a name are listed as comments."""
    w = Writer()
    with w.block("enum {", "};"):
        for s in rows:
            if s.name:
                w.line(f"{name.upper()}_{s.name} = {s.number}, /* {c_comment(s.text)} */")
            else:
                w.line(f"/* {s.number}: {c_comment(s.text)} */")
        w.line(f"{name.upper()}_OK = 0")
    return w.text().rstrip("\n")


def status_function(w: Writer, name: str, rows: Sequence[Status]) -> None:
    """Write NAME_status_text."""
    with (w.block(f"const char *{name}_status_text(int status)\n{{"),
          w.block("switch (status) {")):
        w.line(f"case {name.upper()}_OK: return \"it succeeded\";")
        for s in rows:
            label = f"{name.upper()}_{s.name}" if s.name else str(s.number)
            w.line(f"case {label}: return {c_string(s.text)};")
        w.line('default: return "an unknown status";')
