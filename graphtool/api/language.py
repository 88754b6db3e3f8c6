"""Text: a tokenizer from text, and text by a compiled language model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import overload

from graphtool.api.arguments import Pathlike
from graphtool.language import tokenizer
from graphtool.language.sampling import samplings
from graphtool.language.tokenizer import Tokenizer
from graphtool.native.generation import TextGenerator
from graphtool.native.several_texts import write_texts


def train_tokenizer(text: str | bytes, size: int = 512) -> Tokenizer:
    """A byte-pair tokenizer of at most `size` tokens, for which the text's frequent pairs are
    tokens. The same text gives the same one. Raises UsageError GT3150 for less than 257 tokens."""
    return tokenizer.train(text, size)


def read_tokenizer(path: Pathlike) -> Tokenizer:
    """The tokenizer of a JSON file. Raises InputError GT3152 for another file."""
    return tokenizer.load(Path(path))


def write_tokenizer(value: Tokenizer, path: Pathlike) -> None:
    """Write a tokenizer as JSON, a merge on a line. Raises InputError GT0330 where it cannot."""
    tokenizer.save(value, Path(path))


@overload
def generate(build_dir: Pathlike, prompt: str = "", *, tokens: int = 64, temperature: float = 0.8,
             top_k: int = 0, top_p: float = 1.0, seed: int | Sequence[int] = 0,
             stop: tuple[str, ...] = (), threads: int | None = None) -> str: ...


@overload
def generate(build_dir: Pathlike, prompt: list[str] | tuple[str, ...], *, tokens: int = 64,
             temperature: float = 0.8, top_k: int = 0, top_p: float = 1.0,
             seed: int | Sequence[int] = 0, stop: tuple[str, ...] = (),
             threads: int | None = None) -> list[str]: ...


def generate(build_dir: Pathlike, prompt: str | Sequence[str] = "", *, tokens: int = 64,
             temperature: float = 0.8, top_k: int = 0, top_p: float = 1.0,
             seed: int | Sequence[int] = 0, stop: tuple[str, ...] = (),
             threads: int | None = None) -> str | list[str]:
    """What a compiled language model writes behind the prompt, up to so many tokens or to the
    first of the texts `stop`; the same seed gives the same text.

    Of several prompts it is a list. They are written at once, as many as the build has rows, and
    each ends on its own; `seed` may be one for each. `temperature` 0 takes the best token each
    time; `top_k` draws among the k best, `top_p` among the fewest whose probabilities add up to it.
    Raises InputError GT3156 for a build without a tokenizer, GT3157 for a prompt that has no room,
    UsageError GT3153 for numbers out of range.
    """
    prompts = [prompt] if isinstance(prompt, str) else list(prompt)
    how = samplings(temperature, top_k, top_p, [seed] if isinstance(seed, int) else seed,
                    len(prompts))
    writer = TextGenerator(Path(build_dir), threads)
    texts = [t.decode(errors="replace") for t in write_texts(writer, prompts, how, tokens, stop)]
    return texts[0] if isinstance(prompt, str) else texts
