"""Writing and reading artifacts: atomic writes, canonical JSON, one clear error for a bad file."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphtool.errors import InputError
from graphtool.escaping import visible


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file at once: a failure leaves an earlier file at this path unchanged."""
    from graphtool.io.atomic import atomic  # late: reading does not need it
    with atomic(path) as file:
        file.write(data)


def next_to(path: Path, suffix: str) -> Path:
    """The file NAME + `suffix` next to NAME.graph.json, NAME.program.json, NAME.json, NAME.gt.

    Raises InputError GT0330 where the path is a directory, so that nothing is half written.
    """
    if not path.name or path.is_dir():
        raise InputError("GT0330", "cannot write: it is a directory", where=str(path))
    stem = path.name.removesuffix(".gt").removesuffix(".json").removesuffix(".graph")
    stem = stem.removesuffix(".program")
    return path.with_name(stem + suffix)


def compact(x: Any) -> str:
    """One line of JSON in the order given; the same value gives the same text."""
    return visible(json.dumps(x, ensure_ascii=False, separators=(", ", ": "), allow_nan=False))


def tagged_float(x: float) -> float | str:
    """A float that JSON can hold: NaN and the infinities become `"nan"`, `"inf"`, `"-inf"`."""
    if math.isfinite(x):
        return x
    return "nan" if math.isnan(x) else ("inf" if x > 0 else "-inf")


def read_json(data: bytes | str, where: str) -> Any:
    """Parse JSON strictly: no duplicate keys, no NaN tokens. Raises InputError GT0331."""
    try:
        document = json.loads(data, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
        if (b"\\u" if isinstance(data, bytes) else "\\u") in data:  # type: ignore[operator]
            json.dumps(document, ensure_ascii=False).encode()  # raises for half of a surrogate pair
        return document
    except (ValueError, UnicodeDecodeError, RecursionError) as error:
        if conflicted(data):
            raise InputError("GT0331", "git left a conflict in it", where=where, hint=(
                "take one side: git checkout --ours, or --theirs; `graphtool git install` merges "
                "graphs by structure")) from error
        raise InputError("GT0331", f"not a JSON artifact, or cut short: {error}",
                         where=where) from error


def conflicted(data: bytes | str) -> bool:
    """Whether a text has the lines that git puts around a conflict."""
    text = data.decode(errors="replace") if isinstance(data, bytes) else data
    return all(f"\n{mark} " in f"\n{text}" for mark in ("<<<<<<<", ">>>>>>>"))


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        seen: set[str] = set()
        twice = next(k for k, _ in pairs if k in seen or seen.add(k))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice!r} occurs twice")
    return out


def _no_constant(token: str) -> Callable[[], None]:
    raise ValueError(f"{token} is not JSON")


def read_bytes(path: Path) -> bytes:
    """Raises InputError GT0332 where there is no such file or it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError("GT0332", f"cannot read: {error.strerror or error}",
                         where=str(path)) from error
