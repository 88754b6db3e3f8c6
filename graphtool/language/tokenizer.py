"""A byte-pair tokenizer: trained on text, saved as JSON. It works on bytes, so that any text works.

Tokens 0 to 255 are the bytes; token 256 + i is the i-th merge, a pair of earlier tokens; the last
one ends a text. `kernels/c/host/language.h` encodes and decodes in the same way.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from graphtool.errors import InputError, UsageError
from graphtool.io import files

BYTES = 256
FORMAT = "graphtool/tokenizer"
MOST = 64 << 20
"""Bytes of all tokens together; merges that double would soon ask for more than any memory has."""
Pair = tuple[int, int]


@dataclass(frozen=True)
class Tokenizer:
    """Merges in the order in which they were learnt; each joins two tokens that came before."""

    merges: tuple[Pair, ...] = ()

    @property
    def size(self) -> int:
        """The number of tokens: a token for each byte, for each merge, and for the end of a
        text."""
        return BYTES + len(self.merges) + 1

    @property
    def end(self) -> int:
        """The token that ends a text."""
        return BYTES + len(self.merges)

    @cached_property
    def rank(self) -> dict[Pair, int]:
        """The token that each pair becomes."""
        return {pair: BYTES + i for i, pair in enumerate(self.merges)}

    @cached_property
    def spelt(self) -> list[bytes]:
        """The bytes of each token; the token that ends a text has none."""
        out = [bytes((i,)) for i in range(BYTES)]
        for a, b in self.merges:
            out.append(out[a] + out[b])
        return [*out, b""]

    def encode(self, text: str | bytes) -> list[int]:
        """The tokens of a text, without the token that ends it."""
        data = text.encode() if isinstance(text, str) else text
        return [t for piece in pieces(data) for t in self._joined(piece)]

    def decode(self, tokens: Iterable[int]) -> bytes:
        """The bytes of tokens. Raises UsageError GT3151 for a number that is no token."""
        out = []
        for t in tokens:
            if not 0 <= t < self.size:
                raise UsageError("GT3151", f"{t} is no token", hint=f"0 to {self.end}")
            out.append(self.spelt[t])
        return b"".join(out)

    def _joined(self, piece: bytes) -> list[int]:
        """The tokens of a piece: of all pairs that are merges, the earliest one is joined first."""
        tokens = list(piece)
        while len(tokens) > 1:
            best = min(self.rank.get(p, self.size) for p in pairwise(tokens))
            if best == self.size:
                break
            tokens = _replaced(tokens, self.merges[best - BYTES], best)
        return tokens


def pieces(data: bytes) -> Iterator[bytes]:
    """The text in pieces, across which nothing is joined: words, numbers, signs and white space.

    The space before a word belongs to the word. A byte of 128 or more counts as a letter.
    """
    at = 0
    while at < len(data):
        start = at
        kind = _kind(data[at])
        if kind == _SPACE:
            while at < len(data) and _kind(data[at]) == _SPACE:
                at += 1
            if at < len(data) and data[at - 1] == 32:
                at -= 1  # it begins the word that follows
            if at > start:
                yield data[start:at]
                continue
            at += 1
            kind = _kind(data[at])
        while at < len(data) and _kind(data[at]) == kind:
            at += 1
        yield data[start:at]


_SPACE, _LETTER, _DIGIT, _SIGN = range(4)
_KINDS = [_SPACE if c in b" \t\n\r\v\f" else _DIGIT if 48 <= c <= 57 else
          _LETTER if c >= 128 or chr(c).isalpha() else _SIGN for c in range(256)]


def _kind(byte: int) -> int:
    return _KINDS[byte]


def _replaced(tokens: Sequence[int], pair: Pair, new: int) -> list[int]:
    """The tokens with each occurrence of the pair, from the left, replaced."""
    out: list[int] = []
    i = 0
    while i < len(tokens):
        if i + 1 < len(tokens) and (tokens[i], tokens[i + 1]) == pair:
            out.append(new)
            i += 2
        else:
            out.append(tokens[i])
            i += 1
    return out


def train(text: str | bytes, size: int) -> Tokenizer:
    """The tokenizer of at most `size` tokens that joins, again and again, the most frequent pair;
    of equally frequent ones the least, so that one text gives one tokenizer.

    Raises UsageError GT3150 for a size without room for the bytes.
    """
    if size <= BYTES:
        raise UsageError("GT3150", f"{size} tokens have no room for the {BYTES} bytes and an end",
                         hint=f"{BYTES + 1} or more")
    data = text.encode() if isinstance(text, str) else text
    frequency = Counter(pieces(data))
    words, times = [list(piece) for piece in frequency], list(frequency.values())
    counts = Counter[Pair]()
    places = defaultdict[Pair, set[int]](set)  # the words that a pair is in, or was

    def count(word: int, sign: int) -> None:
        for pair in pairwise(words[word]):
            counts[pair] += sign * times[word]
            places[pair].add(word)
    for i in range(len(words)):
        count(i, 1)
    merges: list[Pair] = []
    while len(merges) < size - BYTES - 1:
        best = max(counts, key=lambda pair: (counts[pair], -pair[0], -pair[1]), default=None)
        if best is None or counts[best] < 2:
            break
        for i in list(places[best]):
            count(i, -1)
            words[i] = _replaced(words[i], best, BYTES + len(merges))
            count(i, 1)
        merges.append(best)
    return Tokenizer(tuple(merges))


def save(tokenizer: Tokenizer, path: Path) -> None:
    """Write the tokenizer as JSON. Raises InputError GT0330 where that cannot be written."""
    files.write_bytes(path, dumps(tokenizer).encode())


def dumps(tokenizer: Tokenizer) -> str:
    """The tokenizer as JSON, a merge on each line."""
    rows = ",\n".join(f"  [{a}, {b}]" for a, b in tokenizer.merges)
    return f'{{"format": "{FORMAT}", "version": 1, "merges": [\n{rows}\n]}}\n'


def load(path: Path) -> Tokenizer:
    """The tokenizer of a file. Raises InputError GT3152 for a file that has none."""
    try:
        return _checked(json.loads(files.read_bytes(path)))
    except (ValueError, RecursionError) as error:
        raise InputError("GT3152", f"not a tokenizer: {error}", where=str(path),
                         hint="graphtool tokenizer train TEXT -o tokens.json makes one") from None


def _checked(raw: Any) -> Tokenizer:
    """Raises ValueError for what is no tokenizer."""
    if not isinstance(raw, dict) or raw.get("format") != FORMAT or raw.get("version") != 1:
        raise ValueError(f"it has no format {FORMAT!r}, version 1")
    rows = raw.get("merges")
    if not isinstance(rows, list):
        raise ValueError("it has no merges")
    for i, row in enumerate(rows):
        if not (isinstance(row, list) and len(row) == 2 and all(
                type(t) is int and 0 <= t < BYTES + i for t in row)):
            raise ValueError(f"merge {i} is no pair of earlier tokens")
    lengths = [1] * BYTES
    for a, b in rows:
        lengths.append(lengths[a] + lengths[b])
    if sum(lengths) > MOST:
        raise ValueError(f"its tokens have more than {MOST >> 20} MiB in all")
    return Tokenizer(tuple((a, b) for a, b in rows))
