"""A debugger of values: runs a graph step by step, and reads commands wherever it stops.

A step computes one value. The evaluator computes it when the step is reached; compiled code has
run whole before, with the result of every kernel as an output, and is then gone through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphtool.errors import GraphtoolError, Signal, UsageError, near, one_of
from graphtool.verify.debug_values import brief, measured, selected

Array = np.ndarray[Any, Any]
On = Callable[[str, Array], None]
WATCHES: dict[str, Callable[[Array], bool]] = {
    "--nan": lambda x: bool(np.isnan(x).any()), "--inf": lambda x: bool(np.isinf(x).any())}
HELP = """\
break NAME          stop after this value is computed; break --nan, --inf: where one appears
break               list what is stopped at; delete NAME takes one away
run                 start, or start again
next [N]            compute the next value, or the next N
continue            go on to the next stop, or to the end
print NAME[0,:4]    a value or a part of it; without a name the one at which the run stands
stats [NAME]        its type, smallest, largest, mean, deviation; how many are 0, NaN, infinite
where               the node at which the run stands, and its operands
list                the nodes around it
values [TEXT]       the values computed so far, or those whose name has this text
help, quit          short forms: b, r, n, c, p, s, w, l, v, h, q"""


@dataclass(frozen=True)
class ValueRow:
    """A value that a run computes: the node as text, the names that stop there, its operands."""

    name: str
    text: str
    names: tuple[str, ...] = ()
    operands: tuple[str, ...] = ()


@dataclass(frozen=True)
class DebugSubject:
    """What is debugged: its values in order, a run that hands each value to a function once it is
    computed, and the values that exist before. `hidden`: names inside a kernel, and the value that
    it computes."""

    kind: str
    rows: tuple[ValueRow, ...]
    run: Callable[[On], object]
    given: Mapping[str, Array]
    hidden: Mapping[str, str]


class Quit(Signal):
    """The user ends the session."""


class Again(Signal):
    """The user starts the run from the beginning."""


class Debugger:
    """One session over a subject; `tell` prints lines. `strict`: a bad command ends it with its
    error, as nobody is there who could mend it."""

    def __init__(self, subject: DebugSubject, commands: Iterable[str], tell: Callable[..., None],
                 strict: bool = True) -> None:
        self.subject, self.commands, self.tell, self.strict = subject, iter(commands), tell, strict
        self.index = {r.name: i for i, r in enumerate(subject.rows)}
        self.stops = dict[int, str]()  # what the user called it, by its place in the order
        self.watched = list[str]()
        self.values = dict[str, Array](subject.given)
        self.at, self.left = -1, 0  # the value at which the run stands; steps to go, -1: no limit
        self.running, self.failed = False, None  # type: bool, GraphtoolError | None

    def session(self) -> int:
        """Read commands until they end: 0, or the exit code of the error that ended the run."""
        with suppress(Quit):
            self.prompt()
        return self.failed.exit_code if self.failed else 0

    def prompt(self) -> None:
        """Obey commands until one lets the run go on. Raises Quit when there are no more."""
        for line in self.commands:
            try:
                if self.obey(line) and self.running:
                    return
            except GraphtoolError as error:
                if self.strict:
                    raise
                self.tell(*str(error).split("\n"))
        raise Quit

    def obey(self, line: str) -> bool:
        """Do what a line says. True if the run goes on. Raises UsageError GT3160 for a command
        that is none, GT3161 for a value that is none, or is not there yet."""
        word, _, rest = line.strip().partition(" ")
        if not word:
            return False
        rest, full = rest.strip(), [c for c in COMMANDS if c == word or word == c[:1]]
        if not full:
            raise UsageError("GT3160", f"unknown command {word!r}", hint=one_of(word, COMMANDS))
        return bool(COMMANDS[full[0]](self, rest))

    # ---- the run -------------------------------------------------------------------------------

    def start(self, left: int) -> bool:
        """Run until the end, with a stop where one is due."""
        if self.running:
            raise Again
        while True:
            self.values, self.at, self.left = dict(self.subject.given), -1, left
            self.running, self.failed = True, None
            try:
                self.subject.run(self.arrived)
                self.tell(f"the run is complete: {len(self.subject.rows)} values")
            except Again:
                left = -1
                continue
            except GraphtoolError as error:
                if isinstance(error, UsageError):
                    raise
                self.failed = error
                self.tell(f"the run failed after {self.at + 1} of {len(self.subject.rows)} values")
                self.tell(*str(error).split("\n"))
            finally:
                self.running = False
            return False

    def arrived(self, name: str, value: Array) -> None:
        """Keep a value that the run has computed, and stop here if it is to."""
        self.values[name] = value
        if name not in self.index:
            return
        self.at, self.left = self.index[name], self.left - 1
        seen = [w[2:] for w in self.watched if WATCHES[w](value)] if _numeric(value) else []
        if self.at not in self.stops and not seen and self.left != 0:
            return
        row = self.subject.rows[self.at]
        self.tell(f"{self.at + 1} of {len(self.subject.rows)}  {row.text}")
        if seen:
            self.tell(f"  it has {' and '.join(seen)}")
        self.prompt()

    def resume(self, steps: int) -> bool:
        """Go on, for so many values; -1: until something stops it."""
        if not self.running:
            if self.at >= 0:
                raise UsageError("GT3161", "the run is over", hint="run starts it again")
            return self.start(steps)
        self.left = steps
        return True

    # ---- commands ------------------------------------------------------------------------------

    def cmd_break(self, name: str) -> None:
        """`break`."""
        if name in WATCHES:
            self.watched += [name] if name not in self.watched else []
        elif name:
            self.stops[self.place(name)] = name
        if not name or self.at < 0:
            watched = [*self.watched, *(f"{n} ({self.subject.rows[i].name})"
                                        if n != self.subject.rows[i].name else n
                                        for i, n in sorted(self.stops.items()))]
            self.tell(f"stops at: {', '.join(watched) or 'nothing'}")

    def cmd_delete(self, name: str) -> None:
        """`delete`."""
        if name in self.watched:
            self.watched.remove(name)
        elif (i := next((i for i, n in self.stops.items() if n == name), None)) is not None:
            del self.stops[i]
        else:
            raise UsageError("GT3161", f"nothing stops at {name!r}",
                             hint=one_of(name, (*self.watched, *self.stops.values())))

    def cmd_next(self, count: str) -> bool:
        """`next`."""
        if count and not (count.isdecimal() and int(count)):
            raise UsageError("GT3160", f"next {count}: not a number of values", hint="next 3")
        return self.resume(int(count or 1))

    def cmd_print(self, text: str) -> None:
        """`print`."""
        name, part, x = self.chosen(text)
        first, *rest = brief(x)
        self.tell(f"{name}{part}: {first}", *rest)

    def cmd_stats(self, text: str) -> None:
        """`stats`."""
        name, part, x = self.chosen(text)
        self.tell(f"{name}{part}: {measured(x)}")

    def cmd_where(self, _: str) -> None:
        """`where`."""
        row = self.here()
        self.tell(row.text)
        for name in row.operands:
            if name in self.values:
                self.tell(f"  {name}: {measured(self.values[name])}")

    def cmd_list(self, _: str) -> None:
        """`list`."""
        for i in range(max(0, self.at - 3), min(len(self.subject.rows), max(self.at, 0) + 4)):
            mark = ("->" if i == self.at else "  ") + ("*" if i in self.stops else " ")
            self.tell(f"{mark} {i + 1} {self.subject.rows[i].text}")

    def cmd_values(self, part: str) -> None:
        """`values`."""
        for name, x in self.values.items():
            if part in name:
                self.tell(f"{name}: {x.dtype}{list(x.shape)}")

    def cmd_help(self, _: str) -> None:
        """`help`."""
        self.tell(*HELP.split("\n"))

    def cmd_quit(self, _: str) -> bool:
        """`quit`."""
        raise Quit

    # ---- names ---------------------------------------------------------------------------------

    def place(self, name: str) -> int:
        """The place in the order of the first value that this name stands for."""
        if name in self.index:
            return self.index[name]
        matches = [i for i, r in enumerate(self.subject.rows) if (
            name in r.names or r.name.startswith(f"{name}."))]
        if not matches:
            raise self.unknown(name, [*self.index, *WATCHES, *(
                n for r in self.subject.rows for n in r.names)])
        return matches[0]

    def here(self) -> ValueRow:
        """The value at which the run stands."""
        if self.at < 0:
            raise UsageError("GT3161", "nothing has been computed", hint="run, or next")
        return self.subject.rows[self.at]

    def chosen(self, text: str) -> tuple[str, str, Array]:
        """The name, the part in brackets, and the array that a command names."""
        known = sorted({*self.values, *self.index}, key=len, reverse=True)
        name = next((n for n in known if text == n or text.startswith(f"{n}[")), "")
        if not text or (text[0] == "[" and not name):
            name, text = (row := self.here()).name, f"{row.name}{text}"
        if not name and (other := self.meant(text.partition("[")[0])):
            name, text = other.name, other.name + "".join(text.partition("[")[1:])
        if not name:
            raise self.unknown(text.partition("[")[0], [
                *known, *(n for r in self.subject.rows for n in r.names)])
        if name not in self.values:
            raise UsageError("GT3161", f"{name} is not computed yet",
                             hint=f"break {name}; continue" if self.running else "run")
        return name, text[len(name):], selected(self.values[name], text[len(name):])

    def meant(self, name: str) -> ValueRow | None:
        """The value that the author calls so: a pass that computes it in another layout calls it
        `NAME.select`, and a kernel has the names of all that it computes, its result's last."""
        matches = [r for r in self.subject.rows if name in r.names[-1:]] or [
            r for r in self.subject.rows if r.name.startswith(f"{name}.")]
        return matches[0] if name and len(matches) == 1 else None

    def unknown(self, name: str, known: Iterable[str]) -> UsageError:
        """The error for a name that no value has."""
        inside = self.subject.hidden.get(name) or next(
            (r.name for r in self.subject.rows if name in r.names), None)
        if inside:
            return UsageError("GT3161", f"{name} stays inside the kernel that computes {inside}",
                              hint="--with evaluator has it")
        return UsageError("GT3161", f"there is no value {name!r}", hint=near(
            name, known, "`values` and `list` name them"))


def _numeric(x: Array) -> bool:
    return x.dtype.kind not in "biuOSUT"


COMMANDS: dict[str, Callable[[Debugger, str], object]] = {
    "break": Debugger.cmd_break, "delete": Debugger.cmd_delete,
    "run": lambda d, _: d.start(-1), "next": Debugger.cmd_next,
    "continue": lambda d, _: d.resume(-1), "print": Debugger.cmd_print,
    "stats": Debugger.cmd_stats, "where": Debugger.cmd_where, "list": Debugger.cmd_list,
    "values": Debugger.cmd_values, "help": Debugger.cmd_help, "quit": Debugger.cmd_quit}


def commands_of(text: str) -> Iterator[str]:
    """The commands of a text, each on a line or before a semicolon."""
    return (c.strip() for line in text.splitlines() for c in line.split(";"))
