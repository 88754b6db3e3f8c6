"""What C adds to a program: the bytes of its code and data, and the stack of a whole call.

The files are compiled as a build compiles them, one thread and no link, and their objects are read.
The stack is a sum over the graph of calls that gcc writes: the frames of the deepest chain of calls
from a function on. What functions elsewhere take, those of the C library and of the compiler's
runtime, is in no file here, so they are named and not counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from graphtool.io.elf import read_object
from graphtool.native.compiler import Compiler
from graphtool.native.probes import supports

CALLS = "-fcallgraph-info=su"
_INDIRECT = "__indirect_call"
_NODE = re.compile(r'^node: \{ title: "([^"]*)" label: "((?:[^"\\]|\\.)*)"', re.MULTILINE)
_EDGE = re.compile(r'^edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)"', re.MULTILINE)
_FRAME = re.compile(r"(\d+) bytes \(([\w,]+)\)")


@dataclass(frozen=True, slots=True)
class Calls:
    """The frame of each function in bytes, and the functions that it calls, as a compiler wrote
    them. `open` are those whose frames have no fixed size."""

    frames: Mapping[str, int]
    callees: Mapping[str, frozenset[str]]
    open: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Stack:
    """The stack of a call: at most so many bytes, on this path, without what the functions
    `outside` take. `bytes` is None where there is no bound, and `why` says why."""

    bytes: int | None
    path: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes of code, constants and data of C files, the code of each function, and the stack of a
    call; the sizes are None where objects have a format that is not read."""

    code: int | None
    constants: int
    data: int
    functions: Mapping[str, int]
    stack: Stack


def footprint(texts: Mapping[str, str], compiler: Compiler, start: str,
              leave: Iterable[str] = ()) -> Footprint:
    """The footprint of C files, of which `leave` are not compiled; the stack is that of a call of
    the function `start`. Raises CompilerError GT2121."""
    calls = supports(compiler.command, "-c", CALLS)
    code = constants = data = 0
    functions: dict[str, int] = {}
    graphs: list[str] = []
    read = True
    with TemporaryDirectory(prefix="graphtool-size-") as folder:
        work = Path(folder)
        for name, text in texts.items():
            (work / name).write_bytes(text.encode())
        for name in sorted(set(texts) - set(leave)):
            if not name.endswith(".c"):
                continue
            one = compiler.of_file(name)
            one.run(*one.flags, *([CALLS] if calls else ()), "-c", name, "-o", f"{name[:-2]}.o",
                    cwd=work)
            obj = read_object(work / f"{name[:-2]}.o")
            if obj is None:
                read = False
                continue
            code, constants = code + obj.code, constants + obj.constants
            data += obj.data + obj.zeros
            functions |= obj.functions
            written = work / f"{name[:-2]}.ci"
            graphs += [written.read_text("utf-8", "replace")] if written.is_file() else []
    stack = deepest(read_calls(graphs), start) if graphs else Stack(
        None, why=f"{compiler.command[0]} writes no graph of calls: gcc does, from version 10 on")
    return Footprint(code if read else None, constants, data, functions, stack)


def read_calls(texts: Iterable[str]) -> Calls:
    """The graph of calls in files that gcc has written for the option CALLS."""
    frames: dict[str, int] = {}
    callees: dict[str, set[str]] = {}
    unbounded = set()
    for text in texts:
        for title, label in _NODE.findall(text):
            if (frame := _FRAME.search(label)) is not None:
                frames[title] = int(frame[1])
                if frame[2] == "dynamic":
                    unbounded.add(title)
        for source, to in _EDGE.findall(text):
            callees.setdefault(source, set()).add(to)
    return Calls(frames, {f: frozenset(c) for f, c in callees.items()}, frozenset(unbounded))


def deepest(calls: Calls, start: str) -> Stack:
    """The largest sum of frames along calls from `start` on.

    A call through a pointer counts as the deepest of the functions that nobody calls by name.
    """
    named = {to for callees in calls.callees.values() for to in callees}
    indirect = frozenset(calls.frames) - named - {start}
    calls = replace(calls, callees={
        f: (callees - {_INDIRECT}) | indirect if _INDIRECT in callees else callees
        for f, callees in calls.callees.items()})
    depths: dict[str, tuple[int, tuple[str, ...]]] = {}
    outside: set[str] = set()

    def depth(function: str, above: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
        if function in above:
            raise ValueError(f"{_short(function)} calls itself")
        if function in calls.open:
            raise ValueError(f"the frame of {_short(function)} has no fixed size")
        if function not in depths:
            within = [depth(to, (*above, function)) for to in sorted(
                calls.callees.get(function, ())) if to in calls.frames]
            outside.update(to for to in calls.callees.get(function, ()) if to not in calls.frames)
            below, path = max(within, default=(0, ()))
            depths[function] = (calls.frames[function] + below, (_short(function), *path))
        return depths[function]
    if start not in calls.frames:
        return Stack(None, why=f"no function {start}")
    try:
        total, path = depth(start, ())
    except ValueError as error:
        return Stack(None, why=str(error))
    return Stack(total, path, tuple(sorted(map(_short, outside))))


def _short(function: str) -> str:
    """The name of a function without its file and what a compiler adds to it."""
    return function.rpartition(":")[2].partition(".")[0]
