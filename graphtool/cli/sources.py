"""Reads what a verb is given: graphs and models from files or stdin, and arrays for inputs."""

from __future__ import annotations

import atexit
import io
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from graphtool.cli import terminal, waiting
from graphtool.compile.options import Choosing, Importing
from graphtool.compile.source import AS_IS, is_stdin, read_graph, read_program
from graphtool.errors import InputError, UsageError, listed, near

if TYPE_CHECKING:
    import numpy as np

    from graphtool.compile.source import Source
    from graphtool.io.weights import Weight
    from graphtool.ir.graph import Module
    from graphtool.kernels.choice.rules import Rules
    from graphtool.kernels.choice.tuning import Tuning
    from graphtool.loops.program import Program
    from graphtool.target import Target

    Arrays = dict[str, np.ndarray[Any, Any]]

How = TypeVar("How", bound=Choosing)

# NAME=1x4xf32=0.5: sizes, an element type, and one value for all elements
_FILLED = re.compile(r"(?P<shape>(?:\d+x)*)(?P<dtype>[a-z]\w*)=(?P<value>.+)", re.DOTALL)


def capture_of(source: str, capture: str | None) -> str:
    """How a source is captured: as the option says if it is Python code, else not at all."""
    from graphtool.importers import Importer, capture_words, what
    if capture and capture not in capture_words():
        raise UsageError("GT3021", f"unknown capture {capture!r}", hint=", ".join(capture_words()))
    kind = what(source, capture or "export")
    return capture or "" if isinstance(kind, Importer) and kind.captures else ""


def spooled(source: str) -> str:
    """The source; for a model from stdin the path of a file with it, which is deleted when the
    program ends. Another runtime can read that, and it can be read twice."""
    from tempfile import TemporaryDirectory

    from graphtool.importers.record import IMPORTERS
    if not is_stdin(source):
        return source
    stream = sys.stdin.buffer
    head = stream.peek(4096) if isinstance(stream, io.BufferedReader) else b""
    model = next((r for r in IMPORTERS.values() if r.suffixes and r.begun(head)), None)
    if model is None:
        return source
    folder = TemporaryDirectory()
    atexit.register(folder.cleanup)
    (path := Path(folder.name, f"model{model.suffixes[0]}")).write_bytes(stream.read())
    return str(path)


def captured(capture: str | None) -> Importing:
    """The option of an import that verbs have which read graphs and models alike."""
    return Importing(capture=capture or None)


def goal(march: str) -> Target:
    """The target that `--march` names."""
    return Choosing(target=march).goal


def noted(how: How) -> How:
    """The options with the tuning file read; a note names each line that a later one replaces."""
    return replace(how, tuning=tuning_of(Path(how.tuning))) if isinstance(
        how.tuning, (str, Path)) else how


class Read(NamedTuple):
    """What a verb was given: the module, its weights file, whether it came as a listing."""

    module: Module
    weights: Path | None = None
    text: bool = False


def load(source: str, how: Importing = AS_IS, without: bool = False, called: str = "") -> Module:
    """The module of a graph file, of `-` (stdin), or of a model, which is imported as `how` says.

    The weights of a graph from stdin are in its text, or in a file of the current folder; of the
    folder DIR where the source is `DIR/-`. `without` is for verbs that look at a graph: a weights
    file that is not there is named, and only data that are wanted are an error. `called` is what
    the user calls the source, if it is a copy.
    """
    return read(source, how, without, called).module


def read(source: str, how: Importing = AS_IS, without: bool = False, called: str = "") -> Read:
    """`load`, and what is known of where it came from."""
    from graphtool.ir.graph import is_constant
    waiting.stage(f"reading {called or source}")
    source_ = warned(read_graph(source, how, without))
    assert source_.module is not None
    if any(n.attrs["data"].absent for n in source_.module.graph.nodes if is_constant(n)):
        terminal.note(f"{called or source}: its weights file is not there, so their numbers are "
                      "not shown")
    waiting.stage("")
    return Read(source_.module, source_.side, source_.text)


def warned(source: Source) -> Source:
    """The source; what its import warns of is printed."""
    for text in source.module.meta.get("warnings", ()) if source.imported and source.module else ():
        terminal.note(f"warning: {text}")
    return source


def program(source: str) -> tuple[Program, Mapping[str, Weight]]:
    """The program of a file, and its weights."""
    program_ = read_program(source)
    assert program_.program is not None
    return program_.program, program_.store


def sizes(dims: Sequence[str] | None, among: Collection[str] | None = None
          ) -> dict[str, int]:
    """`--dim B=8` as a mapping; only dims `among` the known ones. A dim that a build has renamed is
    known by its old name too. Raises UsageError GT3011."""
    from graphtool.loops.dim_names import by_author
    out: dict[str, int] = {}
    renamed: dict[str, int] = {}
    for text in dims or ():
        name, equals, value = text.rpartition("=")
        if not equals or not name or not value.isdigit():
            raise UsageError("GT3011", f"--dim {text!r} is not NAME=SIZE", hint="as in --dim "
                             f"{next(iter(among or ()), 'B')}=8")
        known = among or ()
        now = [d for d in known if name not in known and by_author(d) == name]
        if among is not None and name not in among and not now:
            raise UsageError("GT3011", f"there is no dim {name!r}",
                             hint=near(name, among, f"the dims are {listed(among)}") if among
                             else "all sizes are fixed")
        out[name] = int(value)
        renamed.update(dict.fromkeys(now, int(value)))
    return renamed | out


def arrays(names: Sequence[str], file: Path | None, given: Sequence[str] | None,
           make: Callable[[], Mapping[str, Any]] | None) -> Arrays:
    """The inputs: of the file, then those given one by one, then made up where allowed."""
    from graphtool.io import npz
    out: Arrays = {}
    if file is not None and file.suffix == ".safetensors":
        from graphtool.train import checkpoint
        out = checkpoint.read(file)
    elif file is not None:
        out = dict(npz.load(file))
    if file is not None and file.suffix == ".npy" and len(names) == 1:
        out = dict(zip(names, out.values(), strict=True))
    for text in given or ():
        name, value = _named(text, names)
        try:
            out[name] = _array(name, value)
        except UsageError as error:  # a wrong name is the first that is wrong
            if not names or {name, f"{name}.real"} & set(names):
                raise
            raise InputError("GT0512", f"there is no input {name}", hint="the inputs are "
                             f"{listed(names)}") from error
    for name in [n for n, x in out.items() if x.dtype.kind == "c" and f"{n}.real" in names]:
        whole = out.pop(name)
        out |= {f"{name}.real": whole.real.copy(), f"{name}.imag": whole.imag.copy()}
    if make is not None:
        out = {**make(), **out}
    elif not file and not given and names:
        raise UsageError("GT3012", "no inputs are given",
                         hint=f"the inputs are {listed(names)}; --inputs FILE.npz, "
                              "--input NAME=VALUE, or --random")
    return out


def _named(text: str, names: Sequence[str]) -> tuple[str, str]:
    """Split NAME=VALUE; the name of a known input may contain any character."""
    for name in sorted(names, key=len, reverse=True):
        if text.startswith(f"{name}="):
            return name, text[len(name) + 1:]
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError("GT3013", f"--input {text!r} is not NAME=VALUE",
                         hint="as in --input x=@x.npy or --input x=1x4xf32=0.5")
    return name, value


def _array(name: str, value: str) -> np.ndarray[Any, Any]:
    import numpy as np

    from graphtool.dtypes import dtype
    from graphtool.io import npz
    if value.startswith("@"):
        array = npz.load(Path(value[1:]))
        if len(array) != 1 and name not in array:
            raise InputError("GT3014", f"{len(array)} arrays in the file, none of them is {name!r}",
                             where=value[1:])
        return array.get(name, next(iter(array.values())))
    match = _FILLED.fullmatch(value)
    if match is None:
        there = f"a file is read with @: {name}=@{value}\n" if Path(value).is_file() else ""
        raise UsageError("GT3015", f"cannot read the value of input {name}: {value!r}",
                         hint=f"{there}@FILE.npy, or sizes, type and value: {name}=1x4xf32=0.5")
    shape = [int(d) for d in match["shape"].split("x") if d]
    row = dtype(match["dtype"])
    try:
        if row.kind == "string":
            return np.full(shape, match["value"], row.numpy)
        number = _number(match["value"])
        return np.full(shape, number, np.float64 if isinstance(number, float) else None
                       ).astype(row.numpy)
    except (ValueError, OverflowError, MemoryError) as error:
        raise UsageError("GT3015", f"cannot make input {name}: {error}") from error


def _number(text: str) -> int | float | bool:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)


def rules(precision: str, kernels: str, tuning: Path | None, assume: str) -> Rules:
    """What kernels may be chosen, as the options say."""
    from graphtool.kernels.choice.rules import rules_of
    return rules_of(precision, kernels, tuning_of(tuning) if tuning is not None else None, assume)


def tuning_of(path: Path) -> Tuning:
    """A tuning file; a note names each line that a later one replaces."""
    from graphtool.kernels.choice.tuning import load as load_tuning
    tuning = load_tuning(path)
    for site in tuning.repeated:
        terminal.note(f"{path}: {site} occurs twice, the later line counts")
    return tuning


def told_left_out(proofs: str, names: Sequence[str]) -> None:
    """Say which passes and rules were not used for their tier of proof."""
    if names:
        terminal.note(f"left out, as they are not {proofs}: {', '.join(dict.fromkeys(names))}")
