"""Lines of C: `Writer` collects them with indentation, and `#line` says whose lines they are.

Debuggers and profilers then show the model's own lines instead of the C's. A kernel's line is the
one in the Python source that its first node came from. Where the model names none, as most ONNX
files do, it is the node's line in a listing that is written next to the C.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from graphtool.escaping import c_string
from graphtool.escaping import line as line_of
from graphtool.loops.dim_names import source_line
from graphtool.loops.program import Program, Run, runs


class Writer:
    """Collects lines of text at the current depth; one level of depth is four spaces."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0
        self.place: tuple[str, int] | None = None  # the model's line for which the next ones stand
        self.places: list[tuple[str, int] | None] = []

    def line(self, text: str = "") -> None:
        """Append one line at the current depth; an empty line has no indentation."""
        self.lines.append("    " * self.depth + text if text else "")
        self.places.append(self.place)

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """Write `head`, indent what the `with` body writes, then write `tail`."""
        self.line(head)
        self.depth += 1
        yield
        self.depth -= 1
        self.line(tail)

    @contextmanager
    def standing_for(self, place: tuple[str, int] | None) -> Iterator[None]:
        """What the `with` body writes stands for this file and line of the model's source."""
        self.place = place
        yield
        self.place = None

    def text(self) -> str:
        """All lines so far as one text that ends with a newline."""
        return "\n".join(self.lines) + "\n"


Place = tuple[str, int]  # a file and a line in it, from 1


def listing_name(program: Program) -> str:
    """The name of the listing's file."""
    return f"{program.name}_nodes.txt"


@dataclass(frozen=True)
class DebugLines:
    """The lines of the listing, and where each value's name stands in it, counted from 1."""

    file: str
    lines: tuple[str, ...]
    at: Mapping[str, int]

    def place(self, run: Run) -> Place:
        """The line that a kernel's call stands for."""
        named = (self.at[n] for n in (*run.label.split(" + "), run.label) if n in self.at)
        return source_line(run.where) or (self.file, next(named))

    def kernels(self, program: Program) -> dict[str, Place]:
        """The line of each kernel; of one with several calls that of the first."""
        return {r.kernel: self.place(r) for r in reversed(list(runs(program.steps)))}

    def text(self) -> str:
        """The listing."""
        return "".join(f"{line}\n" for line in self.lines)


def debug_lines(program: Program, nodes: Mapping[str, str]) -> DebugLines:
    """The listing of a program. `nodes` is the text of the node that makes each value, by the
    author's names; a call none of whose names is there gets a line of its own."""
    lines = dict.fromkeys(map(_plain, nodes.values()))
    missing = {r.label: _plain(r.label) for r in runs(program.steps)
               if r.label not in nodes and not any(n in nodes for n in r.label.split(" + "))}
    numbers = {line: i for i, line in enumerate((*lines, *missing.values()), 1)}
    at = {name: numbers[_plain(line)] for name, line in nodes.items()}
    return DebugLines(listing_name(program), tuple(numbers),
                      at | {label: numbers[line] for label, line in missing.items()})


def _plain(text: str) -> str:
    """ASCII on one line."""
    return line_of(text).encode("ascii", "backslashreplace").decode()


def placed(lines: Iterable[str], places: Iterable[Place | None], file: str, before: int) -> str:
    """The text with directives: a line with a place stands there, any other in its own file, in
    which `before` lines precede the text."""
    out: list[str] = []
    elsewhere = False
    for line, place in zip(lines, places, strict=True):
        for part in line.split("\n"):
            if place is not None:
                out.append(f"#line {place[1]} {c_string(place[0])}")
            elif elsewhere:
                out.append(f"#line {before + len(out) + 2} {c_string(file)}")
            elsewhere = place is not None
            out.append(part)
    return "\n".join(out) + "\n"
