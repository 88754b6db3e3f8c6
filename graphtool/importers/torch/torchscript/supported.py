"""Finds what a scripted module calls that no graph can express, before anything is captured; and
where a node of TorchScript stands in the source that was scripted."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from graphtool.errors import Unsupported, UnsupportedError
from graphtool.importers.torch.driver.captured import CallPlace
from graphtool.importers.torch.driver.provenance import describe, user_frame

# ---- places -------------------------------------------------------------------------------------

_LINE = re.compile(r'File "([^"]*)", line (\d+)[^\n]*\n(.*?)(?:\nSerialized|\Z)', re.DOTALL)
_MARK = re.compile(r"^ *~[ ~]*(<--- HERE)?$")


def place_of(node: Any, module: Any, method: str, callers: Sequence[str] = ()) -> CallPlace:
    """The line of a node as a CallPlace, with the frames of its callers, outermost first; without a
    line if the archive has none."""
    owner = module.owner
    match = _LINE.search(node.sourceRange())
    if match is None or match[1].startswith("<"):
        return CallPlace(module.path, owner, "\n".join(callers), module.classes)
    frame = f'File "{match[1]}", line {match[2]}, in {method}\n    {_marked(match[3])}'
    return CallPlace(module.path, owner, "\n".join((*callers, frame)), module.classes)


def told(place: CallPlace) -> str:
    """A place in two lines: file, line and function, then the text."""
    frame = user_frame(place.stack)
    return f"{describe(place)}\n{frame.text}".strip() if frame else describe(place)


def _marked(excerpt: str) -> str:
    """The line above the mark that TorchScript draws below what it means."""
    lines = excerpt.splitlines()
    for above, line in itertools.pairwise(lines):
        if _MARK.match(line):
            return above.strip()
    return lines[0].strip() if lines else ""


# ---- what is supported --------------------------------------------------------------------------

_REASONS = {
    "quantized": "its weights are packed for torch's own kernels, which is not supported; import "
                 "the float model, and `graphtool quantise` it",
    "mkldnn": "it was rewritten for oneDNN, which is not supported; save the module before "
              "torch.jit.optimize_for_inference",
}
_PRIM = {
    "prim::CreateObject": "objects of classes are not supported inside a scripted module",
    "prim::fork": "parallel tasks are not supported; call the function plainly",
    "prim::MKLDNNGroup": _REASONS["mkldnn"],
    "prim::PythonOp": "Python functions are not supported inside a scripted module",
}


def check_calls(root: Any, unit: Any) -> None:
    """Raises UnsupportedError GT1101 with every call of another library that the `forward` of a
    `Scripted` reaches, and its lines."""
    refused: dict[str, tuple[str, list[str]]] = {}
    for module, node in _nodes(root, "forward", unit, set()):
        kind = node.kind()
        space = kind.partition("::")[0]
        reason = _PRIM.get(kind) or _REASONS.get(space, "")
        if not reason and space not in ("prim", "aten") and not _known(kind):
            reason = "no such op is known to torch here"
        if reason:
            refused.setdefault(kind.replace("::", "."), (reason, []))[1].append(
                describe(place_of(node, module, "forward")))
    if refused:
        raise UnsupportedError(
            "GT1101", f"{len(refused)} unsupported torch calls in the scripted module",
            tuple(Unsupported(name, reason, tuple(places))
                  for name, (reason, places) in sorted(refused.items())))


def _known(kind: str) -> bool:
    space, _, name = kind.partition("::")
    return hasattr(getattr(torch.ops, space), name)


def _nodes(module: Any, method: str, unit: Any, seen: set[Any]) -> Iterator[tuple[Any, Any]]:
    """(module, node) of all that a method reaches, each method once."""
    if (id(module), method) in seen or not module.script._has_method(method):
        return
    seen.add((id(module), method))
    yield from _within(module.script._get_method(method).graph, module, unit, seen)


def _within(graph: Any, module: Any, unit: Any, seen: set[Any]) -> Iterator[tuple[Any, Any]]:
    for node in _all(graph):
        yield module, node
        if node.kind() == "prim::CallMethod":
            callee = resolved(node.inputsAt(0), module)
            if hasattr(callee, "script"):
                yield from _nodes(callee, node.s("name"), unit, seen)
        elif node.kind() == "prim::CallFunction":
            name = node.inputsAt(0).type().annotation_str
            if name not in seen and (function := unit.find_function(name)) is not None:
                seen.add(name)
                yield from _within(function.graph, module, unit, seen)


def _all(block: Any) -> Iterator[Any]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _all(inner)


def resolved(value: Any, module: Any) -> Any:
    """The submodule that a value stands for: a chain of attributes from `self`."""
    node = value.node()
    if node.kind() == "prim::GetAttr":
        owner = resolved(node.inputsAt(0), module)
        return owner._modules.get(node.s("name")) if owner is not None else None
    return module if node.kind() == "prim::Param" else None
