"""`NAME.program.json`: a program as canonical JSON, one statement, buffer or step on each line.

Reading a file and writing it again gives the same bytes, and shared expressions stay shared. The
weights are in a safetensors file next to it; the graph is not needed any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from graphtool.errors import InputError
from graphtool.io import files, pairs, weights
from graphtool.io.values import check_side_name
from graphtool.io.versions import PROGRAM, checked
from graphtool.io.weights import Weight
from graphtool.loops.decode import program_of
from graphtool.loops.encode import lines
from graphtool.loops.program import Program
from graphtool.loops.records import ProgramFile
from graphtool.loops.verify import verify
from graphtool.loops.verify_memory import verify_constants, verify_memory


def dumps(program: Program, weights_name: str = "") -> str:
    """The program's text; `weights_name` is the file next to it that holds the weights."""
    head = [f'"{k}": {files.compact(v)}' for k, v in PROGRAM.head.items()]
    return "{" + ",\n".join([*head, *lines(program, weights_name)]) + "\n}\n"


def loads(data: bytes | str, where: str = "-") -> Program:
    """The program of a text. Raises InputError GT0331 and GT036x, GT037x if it is unsound."""
    return _program(parse(data, where), where)


def side_file(path: Path) -> Path:
    """The path of the weights of the program at `path`; NAME.safetensors belongs to the graph."""
    return files.next_to(path, ".program.safetensors")


def save(program: Program, path: Path, store: Mapping[str, Weight]) -> None:
    """Write the program, and its weights into the file next to it.

    Raises InputError GT0367 if a weight is not in `store`.
    """
    wanted = dict.fromkeys(digest for _, digest in program.weights)
    missing = [d for d in wanted if d not in store]
    if missing:
        raise InputError("GT0367", f"{len(missing)} weights of the program are missing",
                         where=missing[0])
    pairs.save(path, side_file(path), [store[d] for d in wanted],
               lambda name: dumps(program, name).encode())


def load(path: Path) -> tuple[Program, Mapping[str, Weight]]:
    """The program at `path` and its weights, mapped. Raises InputError as `loads` does."""
    file = parse(files.read_bytes(path), str(path))
    program = _program(file, str(path))
    if not file.weights:
        return program, {}
    check_side_name(file.weights, "next to the program", str(path))
    return program, weights.load(path.with_name(file.weights))


def parse(data: bytes | str, where: str) -> Any:
    """The rows of a file; form and version are checked, the meaning is not."""
    raw = files.read_json(data, where)
    try:
        return msgspec.convert(checked(PROGRAM, raw, where), ProgramFile)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InputError("GT0362", f"malformed program: {error}", where=where) from error


def _program(file: Any, where: str) -> Program:
    try:
        program = program_of(file, where)
        verify(program, where)
        verify_memory(program, where)
        verify_constants(program)
        return program
    except RecursionError as error:
        raise InputError("GT0362", "the program is nested too deeply", where=where) from error
