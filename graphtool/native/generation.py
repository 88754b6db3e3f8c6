"""Writes text with the build of a language model: the prompt by one entry point, then token after
token by another, over caches that stay where they are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from graphtool.errors import InputError
from graphtool.io.manifest import entry_names, read_manifest
from graphtool.io.manifest_rows import LanguageRow, RolesRow
from graphtool.language.sampling import Random, Sampling, draw
from graphtool.language.tokenizer import Tokenizer
from graphtool.language.tokenizer import load as load_tokenizer
from graphtool.native.arguments import numbers
from graphtool.native.device import Block
from graphtool.native.memory_map import room
from graphtool.native.runtime import Model, load

Array = np.ndarray[Any, Any]


class Step:
    """One entry point: it reads tokens into the caches, and gives the scores of the next one."""

    def __init__(self, model: Model, row: RolesRow) -> None:
        self.model, self.row = model, row
        names = [p.name for p in model.inputs]
        self.tokens, self.position = names[row.tokens], names[row.position]
        self.logits = model.outputs[row.logits].name
        self.pairs = [(model.outputs[o].name, names[i]) for o, i in model.manifest.donations]
        self.mask = model.inputs[row.mask] if row.mask >= 0 else None
        self.places = names[row.places] if row.places >= 0 else ""

    def caches(self) -> dict[str, Array]:
        """Empty caches, by the names of the inputs, side by side in huge pages if the system has
        them: a step reads all of them. They stay on the device where the kernels run on one."""
        rows = {p.name: p for p in self.model.inputs}
        shapes = {i: numbers(rows[i].shape, {}) for _, i in self.pairs}
        sizes = {i: math.prod(s) * rows[i].dtype.numpy.itemsize for i, s in shapes.items()}
        starts = dict(zip(sizes, accumulate((-(-n // 64) * 64 for n in sizes.values()), initial=0),
                          strict=False))
        total = sum(sizes.values()) + 64 * len(sizes)
        if self.model.manifest.device:
            self.block = Block(self.model.library, self.model.manifest.name, total)
            memory = self.block.as_array()
        else:
            memory = room(total)
            memory.fill(0)
        return {i: memory[at:at + sizes[i]].view(rows[i].dtype.numpy).reshape(shapes[i])
                for i, at in starts.items()}

    def __call__(self, tokens: Array, at: int, caches: dict[str, Array], begins: Array) -> Array:
        """The scores f32[B, V] of the tokens behind these, i64[B, S]; their first column stands at
        `at`, and row b sees nothing before `begins[b]`."""
        given = {self.tokens: tokens, self.position: np.array(at), **caches}
        if self.mask is not None:
            seen = np.arange(self.row.room) >= begins[:, None]
            given[self.mask.name] = seen.astype(self.mask.dtype.numpy)
        if self.places:
            places = np.arange(at, at + tokens.shape[1]) - begins[:, None]
            given[self.places] = np.maximum(places, 0)
        outputs = self.model.run(given, out={o: caches[i] for o, i in self.pairs})
        last: Array = outputs[self.logits].reshape(len(tokens), -1, self.row.size)[:, -1]
        return last


class TextGenerator:
    """A loaded language model. Its caches keep what was read: `at` tokens. Of one that takes
    several texts at once, `rows` of them, `read` and `write` use the first row.

    `threads` is how many a run may use. Raises InputError GT3156 for a build without a tokenizer.
    """

    def __init__(self, build_dir: Path, threads: int | None = None) -> None:
        m = read_manifest(build_dir)
        self.language = _language(m.language, build_dir)
        self.tokenizer: Tokenizer = load_tokenizer(build_dir / self.language.tokenizer)
        models = {e: load(build_dir, threads, entry=e) for e in entry_names(m)}
        self.steps = [Step(model, _checked(model, self.language.roles.get(entry), build_dir))
                      for entry, model in models.items()]
        self.caches = self.steps[0].caches()
        first = self.steps[0].row
        self.room, self.most, self.rows, self.at = first.room, first.most, first.texts, 0

    def run(self, tokens: Array, at: int, begins: Array) -> Array:
        """The scores of the next tokens, f32[B, V], by the entry point that takes so many."""
        step = self.steps[-1 if tokens.shape[1] <= self.steps[-1].row.most else 0]
        return step(tokens, at, self.caches, begins)

    def read(self, tokens: list[int]) -> Array:
        """The scores of the next token, f32[V], after these have been read.

        Raises InputError GT3157 if they have no room in the caches.
        """
        if self.at + len(tokens) > self.room:
            raise InputError("GT3157", f"{self.at + len(tokens)} tokens, and there is room for "
                                       f"{self.room}", hint="the room is that of the pass cache")
        rows = np.full((self.rows, len(tokens)), self.tokenizer.end, np.int64)
        rows[0] = tokens
        scores, begins = np.empty((1, 0), np.float32), np.zeros(self.rows, np.int64)
        for start in range(0, len(tokens), self.most):
            part = rows[:, start:start + self.most]
            scores = self.run(part, self.at, begins)
            self.at += part.shape[1]
        first: Array = scores[0]
        return first

    def back(self, count: int) -> None:
        """Forget the last `count` tokens that were read."""
        self.at = max(self.at - count, 0)

    def write(self, prompt: str, how: Sampling, most: int = 64) -> Iterator[int]:
        """Up to `most` tokens that follow the prompt, until one ends the text or the room is
        full. The caches start empty."""
        self.at = 0
        random = Random(how.seed)
        pending = self.tokenizer.encode(prompt) or [self.tokenizer.end]
        for _ in range(most):
            if self.at + len(pending) > self.room and self.at == self.room:
                return
            token = draw(self.read(pending), how, random)
            if token == self.tokenizer.end:
                return
            yield token
            pending = [token]

    def text(self, prompt: str, how: Sampling, most: int = 64,
             stop: tuple[str, ...] = ()) -> Iterator[bytes]:
        """The bytes that follow the prompt as they become certain, up to the first of the texts
        `stop`, which is left out."""
        ends = [s.encode() for s in stop if s]
        held, longest = b"", max((len(s) for s in ends), default=1)
        for token in self.write(prompt, how, most):
            held += self.tokenizer.spelt[token]
            ends_at = [at for s in ends if (at := held.find(s)) >= 0]
            if ends_at:
                yield held[:min(ends_at)]
                return
            sure = max(len(held) - (longest - 1), 0)
            yield held[:sure]
            held = held[sure:]
        yield held


def _language(row: LanguageRow | None, build_dir: Path) -> LanguageRow:
    if row is not None:
        return row
    raise InputError("GT3156", "this build has no tokenizer", where=str(build_dir),
                     hint="graphtool build prefill.graph.json decode.graph.json "
                          "--tokenizer tokens.json")


def _checked(model: Model, row: RolesRow | None, build_dir: Path) -> RolesRow:
    """The row, if the ports that it names are there. Raises InputError GT2201."""
    m = model.manifest
    if row is None or not all((
            0 <= row.tokens < len(m.inputs), 0 <= row.position < len(m.inputs),
            -1 <= row.places < len(m.inputs), -1 <= row.mask < len(m.inputs),
            0 <= row.logits < len(m.outputs), row.most > 0, row.size > 0, row.texts > 0)):
        raise InputError("GT2201", f"malformed build.json: the roles of {m.entry} are not its "
                                   "ports", where=str(build_dir / "build.json"))
    return row
