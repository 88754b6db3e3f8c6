"""Writes several texts at once with a build whose entry points take several rows of tokens.

Each row is a text. Prompts end together: a shorter one begins later, and its mask hides the columns
before, which hold other tokens. A column is run only together with columns of the same beginnings,
so that each token sees just what it would see alone. A text that has ended stays in its row, and
nothing reads what comes there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from graphtool.errors import InputError
from graphtool.language.sampling import Random, Sampling, draw
from graphtool.native.generation import TextGenerator

Array = np.ndarray[Any, Any]


@dataclass
class Text:
    """One text: what was written, and whether it has ended."""

    how: Sampling
    ends: tuple[bytes, ...]
    left: int
    written: bytes = b""
    done: bool = False
    random: Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = Random(self.how.seed)
        self.done = self.left == 0

    def add(self, writer: TextGenerator, scores: Array) -> int:
        """Draw a token, and note whether it ends the text."""
        token = draw(scores, self.how, self.random)
        self.left -= 1
        if token == writer.tokenizer.end:
            self.done = True
            return token
        self.written += writer.tokenizer.spelt[token]
        ends_at = [at for s in self.ends if (at := self.written.find(s)) >= 0]
        if ends_at:
            self.written = self.written[:min(ends_at)]
        self.done = bool(ends_at) or self.left == 0
        return token


def write_texts(writer: TextGenerator, prompts: Sequence[str], how: Sequence[Sampling],
                most: int = 64, stop: tuple[str, ...] = ()) -> Iterator[bytes]:
    """What follows each prompt, as `TextGenerator.text` gives it for one; in groups of as many as
    the build takes at once.

    Raises InputError GT3157 where the longest prompt of a group has no room.
    """
    if writer.rows == 1:
        for prompt, settings in zip(prompts, how, strict=True):
            yield b"".join(writer.text(prompt, settings, most, stop))
        return
    ends = tuple(s.encode() for s in stop if s)
    for first in range(0, len(prompts), writer.rows):
        group = prompts[first:first + writer.rows]
        texts = [Text(h, ends, most) for h in how[first:first + writer.rows]]
        _write(writer, [writer.tokenizer.encode(p) or [writer.tokenizer.end] for p in group], texts)
        yield from (t.written for t in texts)


def _write(writer: TextGenerator, prompts: list[list[int]], texts: list[Text]) -> None:
    """Write the texts of one group; rows without a text hold the token that ends one."""
    end, at = writer.tokenizer.end, max(map(len, prompts))
    if at > writer.room:
        raise InputError("GT3157", f"{at} tokens, and there is room for {writer.room}",
                         hint="the room is that of the pass cache")
    if all(t.done for t in texts):
        return
    rows = np.full((writer.rows, at), end, np.int64)
    begins = np.zeros(writer.rows, np.int64)
    for i, tokens in enumerate(prompts):
        begins[i] = at - len(tokens)
        rows[i, begins[i]:] = tokens
    scores = _prompts(writer, rows, begins)
    while True:
        following = np.full((writer.rows, 1), end, np.int64)
        for i, text in enumerate(texts):
            if not text.done:
                following[i] = text.add(writer, scores[i])
        if all(t.done for t in texts) or at == writer.room:
            return
        scores = writer.run(following, at, begins)
        at += 1


def _prompts(writer: TextGenerator, rows: Array, begins: Array) -> Array:
    """The scores behind the prompts. A row that has not begun sees itself, so that its numbers are
    finite; they are hidden later."""
    scores = np.empty(0, np.float32)
    for first, last in pairwise(sorted({0, rows.shape[1], *begins.tolist()})):
        hidden = np.where(begins <= first, begins, 0)
        for start in range(first, last, writer.most):
            part = rows[:, start:min(start + writer.most, last)]
            scores = writer.run(part, start, hidden)
    return scores
