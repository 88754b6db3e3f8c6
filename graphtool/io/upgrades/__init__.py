"""One file a format: the functions that make a document of version n one of version n + 1.

A document is what `json.loads` gives. An upgrade returns a new one and leaves the old as it is. It
looks at nothing else and imports nothing that may change later, because what it knows of version n
is frozen with it. It leaves `format`, `version` and `since` alone: io/versions.py sets them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Document = dict[str, Any]
Upgrade = Callable[[Document], Document]


def head_alone(document: Document) -> Document:
    """The same document, for a version that differs in `format`, `version` and `since` alone."""
    return document


def named_arrays(document: Document) -> Document:
    """Since version 3 the model of a training has by name the arrays that hold each of its own."""
    row = document.get("training") if isinstance(document, dict) else None
    if not isinstance(row, dict) or not isinstance(row.get("model"), list):
        return document
    return {**document, "training": {**row, "model": {str(n): [n] for n in row["model"]}}}
