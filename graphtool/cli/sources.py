"""Reads what a verb is given: graphs and models from files or stdin, and arrays for inputs."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from graphtool.cli import terminal
from graphtool.errors import InputError, UsageError, listed, near

if TYPE_CHECKING:
    import numpy as np

    from graphtool.front.assumptions import Bounds
    from graphtool.io.weights import Weight
    from graphtool.ir.graph import Module
    from graphtool.kernels.choice.rules import Rules
    from graphtool.kernels.choice.tuning import Tuning
    from graphtool.loops.program import Program
    from graphtool.target import Target

    Arrays = dict[str, np.ndarray[Any, Any]]

# NAME=1x4xf32=0.5: sizes, an element type, and one value for all elements
_FILLED = re.compile(r"(?P<shape>(?:\d+x)*)(?P<dtype>[a-z]\w*)=(?P<value>.+)", re.DOTALL)
_RANGE = re.compile(r"(?P<name>[^=]+)(=(?P<low>\d+)\.\.(?P<high>\d*)(\s+step\s+(?P<step>\d+))?)?")
_EQUAL = re.compile(r"(?P<name>[^=]+)=\s*(?P<size>[^=.]+)")


class Importing(NamedTuple):
    """How a model becomes a graph: the options of `import`, as they were given."""

    inputs: Sequence[str] = ()
    capture: str | None = None
    dynamic: Sequence[str] = ()
    limits: Sequence[str] = ()
    strict: bool | None = None

    def model(self, source: str) -> Module:
        """The module of a model; its warnings are printed. Raises UsageError GT3020, GT3021 or
        GT3029 for an option that cannot be read, and what the importers raise."""
        from graphtool import importers
        from graphtool.importers.limits import read_limits
        capture = self.capture or "export"
        if capture not in ("export", "fx", "jax"):
            raise UsageError("GT3021", f"unknown capture {capture!r}", hint="export, fx or jax")
        module = importers.import_source(source, inputs=self.inputs, capture=capture,
                                         dynamic=bounds(self.dynamic),
                                         limits=read_limits(self.limits, self.strict))
        for text in module.meta.get("warnings", ()):
            terminal.note(f"warning: {text}")
        return module

    def check(self, source: str) -> None:
        """Raises UsageError GT3024 if options are given, and the source is not a model."""
        options = {"--inputs": self.inputs, "--capture": self.capture, "--dynamic": self.dynamic,
                 "--limit": self.limits,
                 "--lenient" if self.strict is False else "--strict": self.strict is not None}
        given = [name for name, value in options.items() if value]
        if given and not is_model(source):
            from graphtool.importers import refuse_options
            refuse_options(source, given)


AS_IS = Importing()
"""No option of an import is given."""


def on_machine(target: Target, word: str | None) -> Target:
    """The target with the figures of the machine that the option names, if it is given."""
    from graphtool import target as targets
    return target if word is None else targets.on_machine(target, word)


def check_machine(target: Target, source: str) -> None:
    """Raises UsageError GT3090 if a machine was named for what is built as it is."""
    from graphtool.target import usual_machine
    if target.machine != usual_machine(target):
        raise UsageError("GT3090", "kernels are chosen when a graph is optimised, and this one is "
                                   "built as it is", where=source,
                         hint="give --machine to `graphtool opt`, or to build with a model")


def capture_of(source: str, capture: str | None) -> str:
    """How a source is captured: as the option says if it is Python code, else not at all."""
    if capture not in (None, "export", "fx", "jax"):
        raise UsageError("GT3021", f"unknown capture {capture!r}", hint="export, fx or jax")
    return capture or "" if is_model(source) and ":" in source else ""


def importing(inputs: Sequence[str] | None, capture: str | None, dynamic: Sequence[str] | None,
              limit: Sequence[str] | None, strict: bool | None) -> Importing:
    """The options of `import` as the parser gives them: None where an option was not given."""
    return Importing(inputs or (), capture, dynamic or (), limit or (), strict)


def captured(capture: str | None) -> Importing:
    """The option of an import that verbs have which read graphs and models alike."""
    return Importing(capture=capture or None)


class Read(NamedTuple):
    """What a verb was given: the module, its weights file, whether it came as a listing."""

    module: Module
    weights: Path | None = None
    text: bool = False


def load(source: str, how: Importing = AS_IS) -> Module:
    """The module of a graph file, of `-` (stdin), or of a model, which is imported as `how` says.

    The weights of a graph from stdin are in its text, or in a file of the current folder; of the
    folder DIR where the source is `DIR/-`.
    """
    return read(source, how).module


def read(source: str, how: Importing = AS_IS) -> Read:
    """`load`, and what is known of where it came from."""
    how.check(source)
    if is_stdin(source):
        data = sys.stdin.buffer.read()
        return _with_kernels(lambda: _of_stdin(source, data))
    if is_model(source):
        return Read(how.model(source))
    return _with_kernels(lambda: _of_file(source))


def _of_stdin(source: str, data: bytes) -> Read:
    from graphtool.ir import serial
    return Read(serial.loads(data, folder=Path(source).parent), None, serial.is_listing(data))


def _of_file(source: str) -> Read:
    from graphtool.ir import serial
    return Read(*serial.load_pair(Path(source)), source.endswith(serial.SUFFIX))


def _with_kernels(reader: Callable[[], Read]) -> Read:
    """What `reader` reads; the ops of kernels, a third of the time to start, are loaded only for a
    graph that has some."""
    import graphtool.ops
    try:
        return reader()
    except InputError as error:
        if error.code != "GT0401" or "graphtool.kernels" in sys.modules:
            raise
    import graphtool.kernels  # noqa: F401  (adds the ops of kernels)
    return reader()


def program(source: str) -> tuple[Program, Mapping[str, Weight]]:
    """The program of a file, and its weights."""
    import graphtool.kernels  # noqa: F401  (fills the table that the reader uses)
    from graphtool.loops import serial
    return serial.load(Path(source))


def is_stdin(source: str) -> bool:
    """Whether a graph comes from stdin: `-`, or `DIR/-` with its weights in DIR."""
    return source == "-" or source.endswith("/-")


def is_model(source: str) -> bool:
    """Whether a source is to be imported rather than read."""
    from graphtool.importers.suffixes import SAVED
    return not source.endswith((".json", ".gt")) and (
        source.endswith((".onnx", ".pt2", *SAVED, ".mlir")) or ":" in source)


def save(module: Module, out: Path | None, text: bool = False) -> None:
    """Write a graph file; with `-` or nothing the whole graph to stdout, as `text` or as JSON."""
    from graphtool.ir import listing, serial
    if out is None or str(out) == "-":
        write = listing.dumps if text else serial.dumps
        terminal.document(write(module, embed=True))
    else:
        serial.save(module, out)


def write(out: Path | None, text: str) -> None:
    """Write a text file, or with `-` or nothing to stdout."""
    from graphtool.io import files
    if out is None or str(out) == "-":
        terminal.document(text)
    else:
        files.write_bytes(out, text.encode())


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
            raise UsageError("GT3011", f"--dim {text!r} is not NAME=SIZE", hint="as in --dim B=8")
        known = among or ()
        now = [d for d in known if name not in known and by_author(d) == name]
        if among is not None and name not in among and not now:
            raise UsageError("GT3011", f"there is no dim {name!r}",
                             hint=near(name, among, f"the dims are {listed(among)}") if among
                             else "all sizes are fixed")
        out[name] = int(value)
        renamed.update(dict.fromkeys(now, int(value)))
    return renamed | out


def bounds(dims: Sequence[str] | None) -> dict[str, Bounds]:
    """`--dynamic batch=1..64` as a mapping; a bare name is 1 or more. `H=32..1024 step 32` has a
    third number, `W=H` and `M=2*N` are texts. Raises UsageError GT3020."""
    out: dict[str, Bounds] = {}
    for text in dims or ():
        match, equal = _RANGE.fullmatch(text), _EQUAL.fullmatch(text)
        if match is None and equal is None:
            raise UsageError("GT3020", f"--dynamic {text!r} is not NAME=LOW..HIGH",
                             hint="as in --dynamic batch=1..64, seq=2.., batch, "
                                  "'H=32..1024 step 32', W=H or N=1")
        if match is None:
            assert equal is not None
            size = equal["size"].strip()
            out[equal["name"]] = (int(size), int(size)) if size.isdecimal() else size
            continue
        low, high = int(match["low"] or 1), int(match["high"]) if match["high"] else None
        if high is not None and high < low:
            raise UsageError("GT3020", f"--dynamic {text!r}: {high} is less than {low}")
        if match["step"] == "0":
            raise UsageError("GT3020", f"--dynamic {text!r}: a step is 1 or more")
        out[match["name"]] = (low, high, int(match["step"])) if match["step"] else (low, high)
    return out


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
        out[name] = _array(name, value)
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
        found = npz.load(Path(value[1:]))
        if len(found) != 1 and name not in found:
            raise InputError("GT3014", f"{len(found)} arrays in the file, none of them is {name!r}",
                             where=value[1:])
        return found.get(name, next(iter(found.values())))
    match = _FILLED.fullmatch(value)
    if match is None:
        raise UsageError("GT3015", f"cannot read the value of input {name}: {value!r}",
                         hint="@FILE.npy, or sizes, type and value: 1x4xf32=0.5")
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
    found = load_tuning(path)
    for site in found.repeated:
        terminal.note(f"{path}: {site} occurs twice, the later line counts")
    return found
