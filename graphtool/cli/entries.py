"""Several models on the command line of `build`, which become entry points of one library."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphtool.cli import terminal
from graphtool.errors import UsageError

if TYPE_CHECKING:
    from graphtool.io.weights import Weight
    from graphtool.language.tokenizer import Tokenizer
    from graphtool.loops.program import Program
    from graphtool.target import Target


def split(given: str) -> tuple[str, str]:
    """The name and the source of `NAME=IN`; no name where a file is called so."""
    match = re.fullmatch(r"(\w+)=(.+)", given)
    return (match[1], match[2]) if match and not Path(given).exists() else ("", given)


def named(given: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each entry point and its source. One without a name has its file's, or its callable's.

    Raises UsageError GT2110 for two of the same name."""
    from graphtool.emit.names import c_name
    from graphtool.native.entries import check_entries
    found = []
    for entry, source in map(split, given):
        made = c_name(source.rpartition(":")[2] if ".py:" in source else source)
        found.append((entry or made, source))
    check_entries("model", tuple(entry for entry, _ in found))
    yield from found


def tokens(path: Path | None) -> Tokenizer | None:
    """The tokenizer of a file, if one is given."""
    from graphtool.language.tokenizer import load
    return None if path is None else load(path)


def refuse(options: Mapping[str, bool]) -> None:
    """Raises UsageError GT3055 for options that are given and are for builds of one function."""
    if given := [name for name, value in options.items() if value]:
        raise UsageError("GT3055", f"{', '.join(given)} cannot go with several entry points",
                         hint="build one model at a time")


def build(programs: Mapping[str, Program], store: Mapping[str, Weight], out: Path, name: str,
          target: Target, **how: Any) -> Path:
    """The build of the entry points; notes say what of the weights they share."""
    from graphtool.native.common_weights import common, shared_bytes
    from graphtool.native.entries import build_entries
    from graphtool.report.sizes import human
    path = build_entries(programs, out, name=name, target=target, store=store, **how)
    held = common(programs.values(), store)
    terminal.note(f"{path}: {', '.join(sorted(p.name for p in path.iterdir()))}")
    terminal.note(f"weights: {human(sum(w.nbytes for w in held), 'B')}, of which "
                  f"{human(shared_bytes(programs.values(), held), 'B')} serve several entry points")
    return path
