"""Where a node of TorchScript stands: the source that was scripted, as the archive remembers it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

from graphtool.importers.torch.driver.captured import Place
from graphtool.importers.torch.driver.provenance import describe, user_frame

_LINE = re.compile(r'File "([^"]*)", line (\d+)[^\n]*\n(.*?)(?:\nSerialized|\Z)', re.DOTALL)
_MARK = re.compile(r"^ *~[ ~]*(<--- HERE)?$")


def place_of(node: Any, module: Any, method: str, callers: Sequence[str] = ()) -> Place:
    """The line of a node as a Place, with the frames of its callers, outermost first; without a
    line if the archive has none."""
    owner = module.owner
    found = _LINE.search(node.sourceRange())
    if found is None or found[1].startswith("<"):
        return Place(module.path, owner, "\n".join(callers))
    frame = f'File "{found[1]}", line {found[2]}, in {method}\n    {_marked(found[3])}'
    return Place(module.path, owner, "\n".join((*callers, frame)))


def told(place: Place) -> str:
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
