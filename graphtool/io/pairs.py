"""Replaces a document, and the file of weights that it names beside it, together.

At every moment the document on disk finds what it names. The second file keeps its usual name, NAME
with another ending. If its new contents would break the old document, they are first written under
a temporary name, and the document names that until the contents have the usual name.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from graphtool.errors import InputError
from graphtool.io import files, weights
from graphtool.io.atomic import PART, atomic, is_stream, locked, sweep, writing
from graphtool.io.host import settle
from graphtool.io.weights import Weight

DOCUMENTS = (".graph.json", ".program.json", ".gt")
_DIGEST = re.compile(rb"sha256:[0-9a-f]{8,64}")
_TOKEN = 8  # random bytes in a temporary name


def save(path: Path, side: Path, held: Iterable[Weight], render: Callable[[str], bytes]) -> None:
    """Write the document `render(NAME)`, and its weights into the file of that name beside it.

    Several documents may name one weights file (NAME.graph.json and NAME.gt do). Weights that the
    others refer to stay in it; weights that no document refers to are removed. Raises InputError
    GT0330 if it cannot be written, GT0337 if `side` is not a weights file of graphtool.
    """
    _place_for(side, path)
    wanted = {w.digest: w for w in held}
    with writing(path), locked(path.parent):
        there = _store(side)
        naming = {p: text for p, text in _documents(path) if _named(side, text)}
        mine = _digests(naming.pop(path, b""), there)
        for text in naming.values():
            wanted = {d: there[d] for d in _digests(text, there)
                      if weights.intact(there[d])} | wanted
        if held_now := wanted.keys() <= there.keys() and len(wanted) == len(there):
            held_now = all(map(weights.intact, there.values()))
        if not wanted or held_now:
            _document(path, render(side.name if wanted else ""))
            if mine and not wanted:
                side.unlink(missing_ok=True)
        else:
            swap(path, side, render, lambda f: weights.save(wanted.values(), f),
                 mine <= wanted.keys())
        _sweep(path, side)


def save_all(documents: Mapping[Path, bytes], side: Path, held: Iterable[Weight]) -> None:
    """Write several documents that name one weights file, so that each is complete at any moment:
    the file has the weights of the old documents until all the new ones are written."""
    wanted = {w.digest: w for w in held}
    with writing(side), locked(side.parent):
        there = _store(side)
        old = {d for _, text in _documents(side) if _named(side, text)
               for d in _digests(text, there) if weights.intact(there[d])}
        every = wanted | {d: there[d] for d in old}
        if every:
            with atomic(side) as file:
                weights.save(every.values(), file)
            settle(side.parent)
        for path, data in documents.items():
            _document(path, data)
        left = {d for _, text in _documents(side) if _named(side, text)
                for d in _digests(text, every)}
        if left < every.keys():
            with atomic(side) as file:
                weights.save([every[d] for d in left], file)


def _place_for(side: Path, path: Path) -> None:
    """Raises InputError GT0330 where nothing can be written beside the document."""
    if is_stream(path):
        raise InputError("GT0330", f"{side.name} has to be written beside it, and it is a device, "
                                   "a pipe or an open file", where=str(path),
                         hint="-o NAME, a file")


def swap(path: Path, side: Path, render: Callable[[str], bytes],
         fill: Callable[[BinaryIO], object], keeps: bool, links: bool = True) -> None:
    """Replace both files. `keeps`: the new `side` has everything that the old document names.
    `links`: readers accept a file that has two names for a moment."""
    if keeps:
        with atomic(side) as file:
            fill(file)
        settle(side.parent)
        _document(path, render(side.name))
        return
    aside = _aside(side, secrets.token_hex(_TOKEN))
    with atomic(aside) as file:
        fill(file)
    settle(side.parent)
    _document(path, render(aside.name))
    _second_name(aside, side, links)
    settle(side.parent)
    _document(path, render(side.name))
    aside.unlink(missing_ok=True)


def replace(path: Path, side: Path, render: Callable[[str], bytes],
            fill: Callable[[BinaryIO], object]) -> None:
    """`swap` for a second file of any kind, which only this document names; it is copied, because
    onnx refuses a file with two names."""
    _place_for(side, path)
    with writing(path), locked(path.parent):
        swap(path, side, render, fill, not (path.exists() and side.exists()), links=False)
        _sweep(path, side)


def _second_name(aside: Path, side: Path, links: bool) -> None:
    """Give the file its usual name too; a copy if the drive has no hard links."""
    link = side.with_name(f".{side.name}.{secrets.token_hex(4)}{PART}")
    try:
        if not links:
            raise OSError
        os.link(aside, link)
    except OSError:
        with atomic(side) as file, aside.open("rb") as source:
            shutil.copyfileobj(source, file, 1 << 20)
    else:
        os.replace(link, side)


def _document(path: Path, data: bytes) -> None:
    files.write_bytes(path, data)
    settle(path.parent)


def _aside(side: Path, token: str) -> Path:
    return side.with_name(f"{side.stem}.{token}{side.suffix}")


def _store(side: Path) -> dict[str, Weight]:
    """The weights in the file, unchecked; none if the file is missing or broken.

    Raises InputError GT0337 for a valid file that graphtool did not write: it is not overwritten.
    """
    try:
        arrays = dict(weights.load(side))
    except InputError:
        return {}
    if not arrays and side.stat().st_size > 0:
        raise InputError("GT0337", f"{side.name} would be overwritten, and is not graphtool's",
                         where=str(side), hint="write the graph under another name")
    return arrays


def _documents(path: Path) -> Iterator[tuple[Path, bytes]]:
    """The documents of this folder, with their contents."""
    names = (path.name, files.next_to(path, ".json").name)
    for name in sorted(os.listdir(path.parent)):
        file = path.with_name(name)
        if (name in names or (name.endswith(DOCUMENTS) and name[0] != ".")) and file.is_file():
            with suppress(OSError):
                yield file, file.read_bytes()


def _named(side: Path, text: bytes) -> bool:
    return files.compact(side.name).encode() in text


def _digests(text: bytes, store: dict[str, Weight]) -> set[str]:
    """The digests in the store that a document refers to; a listing may give only their start."""
    said = {m.decode() for m in _DIGEST.findall(text)}
    short = tuple(d for d in said if len(d) < len("sha256:") + 64)
    return {d for d in store if d in said or (short and d.startswith(short))}


def _sweep(path: Path, side: Path) -> None:
    """Delete what killed writers left beside `side`, if no document names it."""
    further = re.compile(rf"\.?({re.escape(side.stem)}\.[0-9a-f]{{{2 * _TOKEN}}}"
                         rf"{re.escape(side.suffix)})(\.\w{{8}}{re.escape(PART)})?")
    left = {path.with_name(m[1]) for n in os.listdir(path.parent) if (m := further.fullmatch(n))}
    if left:
        texts = [text for _, text in _documents(path)]
        for file in left:
            sweep(file)
            if not any(_named(file, text) for text in texts):
                file.unlink(missing_ok=True)
