"""What the functions of a compiled model return: numbers, names and sentences, listed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphtool.emit.lines import Writer
from graphtool.emit.rules import rules
from graphtool.escaping import c_comment, c_string
from graphtool.loops.program import Program


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
NO_FILE = Status(-5, "NO_FILE", "the weights file cannot be read")
BAD_FILE = Status(-6, "BAD_FILE", "the weights file is cut short, or is another model's")
NO_MEMORY = Status(-7, "NO_MEMORY", "there is not enough memory for the weights")
FIRST_RULE = -16  # of the first rule that sizes must satisfy; -17 is the next one
FIRST_CHECK = -1000  # what a run returns whose first check fails; the second gives -1001
LOADING = (NULL_POINTER, NO_FILE, BAD_FILE, NO_MEMORY)  # of NAME_load
FIXED = (BAD_DIM, BAD_SIZE, NULL_POINTER, MISALIGNED, NO_FILE, BAD_FILE, NO_MEMORY)


def statuses(program: Program) -> tuple[Status, ...]:
    """All that the functions of this program may return, besides 0."""
    fixed = tuple(s for s in FIXED if s is not BAD_SIZE or program.sizes)
    checks = (Status(FIRST_CHECK - b.slot, "", b.label) for b in program.checks)
    return (*fixed, *rule_statuses(program), *checks)


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
