"""Where a node came from: source lines that the torch exporter stores, module scopes, node names.

A path is cut to the part below site-packages, or to the file's name; never a machine's own path.
"""

from __future__ import annotations

import re
from typing import Any

from graphtool.ir.graph import Location

_FRAME = re.compile(r'File "([^"\n]+)", line (\d+), in ([^\n]+)\n([^\n]*)')
_PACKAGES = re.compile(r".*[/\\](?:site|dist)-packages[/\\]")
_TRACE = "pkg.torch.onnx.stack_trace"
_SCOPES = "pkg.torch.onnx.name_scopes"
_CLASSES = "pkg.torch.onnx.class_hierarchy"


class SourceLocations:
    """The table of source locations, few rows of which serve many nodes, and the classes of the
    modules of torch by their paths."""

    def __init__(self) -> None:
        self.table: dict[str, Location] = {}
        self.modules: dict[str, str] = {}

    def key(self, node: Any) -> str:
        """The key of the node's location; "" if only its output names are known."""
        trace = next((p.value for p in node.metadata_props if p.key == _TRACE), "")
        frame = _frame(trace)
        if frame is not None:
            return self._line(*frame)
        scope, slash, _ = node.name.rpartition("/")
        if slash and scope.strip("/"):
            return self._add(scope.strip("/"), Location(scope.strip("/")))
        automatic = re.fullmatch(rf"(node_)?{re.escape(node.op_type)}_?\d*", node.name)
        if not node.name or automatic or node.name in node.output:
            return ""
        return self._add(node.name, Location(f"{node.name} ({node.op_type})"))

    def layer(self, node: Any) -> tuple[str, ...]:
        """The module path that the author gave the node's layer, if torch's exporter recorded it.

        It is the path of a torch.nn module (`block1.conv`), or the path of another module with the
        function that it calls (`block1.relu`).
        """
        noted = {p.key: p.value for p in node.metadata_props}
        scopes, classes = (re.findall(r"'([^']*)'", noted.get(key, ""))
                           for key in (_SCOPES, _CLASSES))
        if len(scopes) < 2 or len(classes) != len(scopes):
            return ()
        self.modules.update((scope, kind.rpartition(".")[2]) for scope, kind in zip(
            scopes[:-1], classes[:-1], strict=True) if scope)
        *_, path, function = scopes
        if path and classes[-2].startswith("torch.nn."):
            return (path,)
        function = re.sub(r"_\d+$", "", function)
        return (f"{path}.{function}" if path else function,)

    def _line(self, path: str, line: str, function: str, text: str) -> str:
        place = Location(f"{path}:{line} {function}", text)
        key = f"{path.rpartition('/')[2]}:{line}"
        if self.table.get(key, place) != place:
            key = f"{path}:{line}"
        return self._add(key, place)

    def _add(self, key: str, place: Location) -> str:
        self.table.setdefault(key, place)
        return key


def _frame(trace: str) -> tuple[str, str, str, str] | None:
    """Path, line, function and source of the innermost frame outside torch, or None."""
    frames = _FRAME.findall(trace)
    for path, line, function, text in reversed(frames):
        below = _PACKAGES.sub("", path).replace("\\", "/")
        if below == path.replace("\\", "/") and re.match(r"/|[A-Za-z]:", below):
            below = below.rpartition("/")[2]
        if not below.startswith("torch/"):
            return below, line, function.strip(), text.strip()
    return None
