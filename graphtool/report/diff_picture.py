"""A picture of a diff for a comment: what changed with its neighbours, as Mermaid text."""

from __future__ import annotations

from graphtool.escaping import mermaid
from graphtool.ir.graph import Module
from graphtool.report.align import align
from graphtool.report.diff import Diff, Kind
from graphtool.report.flat import Item, flatten

MOST = 60
"""Boxes; GitHub draws some hundreds, but nobody reads them."""
_CLASSES: dict[Kind | str, str] = {
    "added": "fill:#dafbe1,stroke:#1a7f37,color:#000",
    "removed": "fill:#ffebe9,stroke:#cf222e,color:#000,stroke-dasharray:4",
    "changed": "fill:#fff8c5,stroke:#9a6700,color:#000",
    "moved": "fill:#ddf4ff,stroke:#0969da,color:#000",
    "retyped": "fill:#fbefff,stroke:#8250df,color:#000",
    "kept": "fill:#f6f8fa,stroke:#8c959f,color:#000"}


def diff_picture(d: Diff, a: Module, b: Module) -> list[str]:
    """The lines of a flowchart: each change in the colour of its kind, removed nodes with dashed
    lines, and in grey what they read and what reads them. Empty if there is nothing to draw."""
    return _Picture(d, flatten(a.graph), flatten(b.graph)).lines()


class _Picture:
    def __init__(self, d: Diff, left: list[Item], right: list[Item]) -> None:
        self.left, self.right = left, right
        pairs = align(left, right, bridged=True)
        kinds = {(c.kind == "removed", c.name): c.kind for c in d.changes}
        # an id for each box: (0, i) of a removed item, (1, j) of one of the second graph
        self.here = {i: (1, pairs[i]) if i in pairs else (0, i) for i in range(len(left))}
        self.kinds = {(0, i): kinds[True, x.name] for i, x in enumerate(left)
                      if i not in pairs and (True, x.name) in kinds}
        self.kinds |= {(1, j): kinds[False, x.name] for j, x in enumerate(right)
                       if (False, x.name) in kinds}
        self.edges = dict.fromkeys([
            *(((1, x[0]), (1, j)) for j, item in enumerate(right) for x in item.args
              if isinstance(x, tuple)),
            *((self.here[x[0]], self.here[i]) for i, item in enumerate(left) for x in item.args
              if isinstance(x, tuple) and 0 in (self.here[x[0]][0], self.here[i][0]))])

    def item(self, box: tuple[int, int]) -> Item:
        return (self.left, self.right)[box[0]][box[1]]

    def lines(self) -> list[str]:
        changed = [box for box in self.kinds if self.item(box).op != "constant"]
        shown = dict.fromkeys(changed[:MOST])
        near = [box for edge in self.edges if shown.keys() & edge for box in edge
                if self.item(box).op != "constant"]
        shown |= dict.fromkeys(near[:4 * MOST])
        if not changed:
            return []
        ids = {box: f"n{k}" for k, box in enumerate(sorted(shown, reverse=True))}
        kinds = {box: self.kinds.get(box, "kept") for box in ids}
        out = ["flowchart TB", *(f"  {self.box(box, name)}:::{kinds[box]}"
                                 for box, name in ids.items())]
        out += [f"  {ids[x]} {'-.->' if 0 in (x[0], y[0]) else '-->'} {ids[y]}"
                for x, y in self.edges if x in ids and y in ids]
        out += [f"  classDef {k} {_CLASSES[k]}" for k in dict.fromkeys(kinds.values())]
        left = len(changed) - MOST
        return out + ([f"  %% and {left} more changes"] if left > 0 else [])

    def box(self, box: tuple[int, int], name: str) -> str:
        item = self.item(box)
        told = [item.name] if item.op == "return" else [
            item.op, item.name, *(f"{k}={v}" for k, v in item.attrs.items()),
            ", ".join(map(str, item.types))]
        text = "<br/>".join(mermaid(t if len(t) <= 40 else f"{t[:39]}…") for t in told)
        left, right = ("([", "])") if item.op in ("input", "return") else ("[", "]")
        return f'{name}{left}"{text}"{right}'
