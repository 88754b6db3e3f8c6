"""Source locations: a Python stack and a module path give a key and an entry in the location table.

Frames inside torch are skipped, and absolute paths are shortened. An exception during a capture is
traced to the line of the user's model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from graphtool.errors import UnsupportedError
from graphtool.importers.python_source import chain, short_file, user_line
from graphtool.importers.torch.driver.captured import CallPlace
from graphtool.ir.graph import Location

_FRAME = re.compile(r'File "([^"]*)", line (\d+), in ([^\n]*)(?:\n {4}([^\n]*))?')
_LIBRARIES = ("torch/", "torchgen/")


@dataclass(frozen=True, slots=True)
class StackFrame:
    """One call of a Python stack: shortened file, line, function, source text."""

    file: str
    line: int
    function: str
    text: str = ""


def frames(stack: str) -> list[StackFrame]:
    """The frames of a formatted stack, outermost first."""
    return [StackFrame(short_file(f), int(n), fn.strip(), (text or "").strip())
            for f, n, fn, text in _FRAME.findall(stack)]


@lru_cache(256)  # calls of one line have the same stack
def user_frame(stack: str) -> StackFrame | None:
    """The innermost frame outside torch: the line that a person wrote."""
    whole = frames(stack)
    ours = [f for f in whole if not f.file.startswith(_LIBRARIES) and not f.file.startswith("<")]
    return ours[-1] if ours else (whole[-1] if whole else None)


def describe(place: CallPlace) -> str:
    """`mlp.py:9 MLP.forward`, for an error's list of places."""
    frame = user_frame(place.stack)
    return location(place, frame).at if frame else place.module or "forward"


def location(place: CallPlace, frame: StackFrame) -> Location:
    """The table's entry for a place: `file:line Class.function` and the source text."""
    function = f"{place.owner}.{frame.function}" if place.owner and (
        frame.function == "forward") else frame.function
    return Location(f"{frame.file}:{frame.line} {function}", frame.text)


@lru_cache(4096)
def clean_path(path: str) -> str:
    """torch's module path as an attribute path of the model, without `L['self']` and `@n`."""
    path = re.sub(r"^L\['self'\]|^L__self__|^self(?=\.|$)", "", path)
    path = re.sub(r"\['?([^'\]]*)'?\]", r".\1", path)
    path = re.sub(r"_modules\.|@\d+", "", path)
    return path.strip(".")


def module_place(modules: Sequence[tuple[Any, str]], stack: str) -> CallPlace:
    """The place of a call in these modules, the outermost first: torch's path and the full name of
    the class of each."""
    named = [(clean_path(str(path)), kind) for path, kind in modules
             if not kind.startswith("graphtool.")]
    owner = next((kind for _, kind in reversed(named) if not kind.startswith("torch.")), "")
    return CallPlace(clean_path(str(modules[-1][0])) if modules else "", _last(owner), stack,
                 tuple((path, _last(kind)) for path, kind in named if path))


def _last(kind: str) -> str:
    """A class without its Python module."""
    return kind.rpartition(".")[2]


@dataclass
class Locations:
    """The table of locations. A key is a module's path, with `#2`, `#3` for its further lines.
    `modules` has the classes of the modules around them by their paths."""

    table: dict[str, Location] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    _keys: dict[tuple[str, str], str] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    def key(self, place: CallPlace) -> str:
        """The key of a place, added to the table if new; "" without a stack."""
        self.modules.update(place.classes)
        frame = user_frame(place.stack)
        if frame is None:
            return ""
        path = place.module or "forward"
        entry = location(place, frame)
        seen = self._keys.get((path, entry.at))
        if seen is None:
            n = self._counts[path] = self._counts.get(path, 0) + 1
            seen = self._keys[path, entry.at] = path if n == 1 else f"{path}#{n}"
            self.table[seen] = entry
        return seen


# ---- lines of the user's model ------------------------------------------------------------------

# a word of the exception's text or type → what went wrong, what to do about it
_ADVICE = (
    ("TraceError", "control flow that depends on an input", "use --capture export"),
    ("data-dependent", "a branch or a size that depends on the data",
     "use torch.cond for a branch, torch.where for a choice of values, "
     "torch._check for a bound on a size"),
    ("GuardOnDataDependent", "a branch or a size that depends on the data",
     "use torch.cond for a branch, torch.where for a choice of values, "
     "torch._check for a bound on a size"),
    ("specialized", "a dynamic dim that the model fixes",
     "a loop over the dim, or a test of it, makes its size a constant; name fewer dims as "
     "dynamic, or write the loop as tensor operations; where it is that of nn.GRU, LSTM or RNN, "
     "import the ONNX model that torch.onnx.export(…, dynamo=False) writes"),
    ("Constraints violated", "a dynamic dim that the model restricts",
     "give the dim the bounds that the model allows, or leave it static"),
)

_GUARD = re.compile(r"satisfy the generated guard (.+?)\.?$", re.MULTILINE)
_SIZE = re.compile(r"L\['(\w+)'\]\.size\(\)\[(\d+)\]")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # torch.onnx writes for terminals


def failure(error: BaseException, how: str, torch_dir: str) -> UnsupportedError:
    """The coded error of a failed capture: the line, the kind of fault, and advice."""
    texts = [_COLOUR.sub("", f"{type(e).__name__}: {e}") for e in chain(error)]
    joined = "\n".join(texts)
    kind, hint = next(((k, h) for word, k, h in _ADVICE if word in joined), ("", ""))
    first = next((line.strip() for line in texts[0].splitlines() if line.strip()), "")
    if guards := dict.fromkeys(g for g in _GUARD.findall(joined) if "Infinity" not in g):
        first = "of every run it requires " + ", ".join(
            _SIZE.sub(r"\1.shape[\2]", g) for g in guards)
    line, text = user_line(error, torch_dir)
    message = f"{how} cannot capture the model"
    message += f": {kind} ({first[:300]})" if kind else f": {first[:400]}"
    if how == "torch.fx" and "export" not in hint:
        hint = "use --capture export, which sees shapes and values"
    return UnsupportedError("GT1102", message, where=(line, text), hint=hint)
