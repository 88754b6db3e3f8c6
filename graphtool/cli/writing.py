"""generate and tokenizer: text by a language model, text as tokens."""

from __future__ import annotations

import time
from codecs import getincrementaldecoder
from pathlib import Path
from typing import Annotated

import typer

from graphtool.cli import options, terminal
from graphtool.cli.processors import note_of_threads
from graphtool.errors import UsageError

Build = Annotated[Path, typer.Argument(
    metavar="BUILD", help="The build of a language model, made with --tokenizer.")]
Prompt = Annotated[list[str] | None, typer.Option(
    "--prompt", metavar="TEXT", help="The text to go on from. May be repeated: then several texts "
    "are written at once.")]
Temperature = Annotated[float, typer.Option(
    "--temperature", help="Less than 1 makes likely tokens likelier, 0 always takes the best.")]
TopK = Annotated[int, typer.Option("--top-k", help="Draw among the K best tokens; 0: all.")]
TopP = Annotated[float, typer.Option(
    "--top-p", help="Draw among the fewest tokens whose probabilities add up to P.")]
Seed = Annotated[list[int] | None, typer.Option(
    "--seed", metavar="N", help="The seed of the random numbers, 0 if not given. May be repeated: "
    "one for each prompt.")]
Tokens = Annotated[int, typer.Option("--tokens", min=0, help="The most tokens to write.")]
Stop = Annotated[list[str] | None, typer.Option(
    "--stop", metavar="TEXT", help="End where this text comes, and leave it out. May be "
    "repeated.")]
Json = Annotated[Path, typer.Argument(metavar="TOKENIZER", help="A tokenizer, as in tokens.json.")]


def generate(build: Build, prompt: Prompt = None, temperature: Temperature = 0.8, top_k: TopK = 0,
             top_p: TopP = 1.0, seed: Seed = None, tokens: Tokens = 64, stop: Stop = None,
             threads: options.Threads = None) -> None:
    """Write text with a language model.

    The text that follows the prompt goes to stdout. The same seed gives the same text, also by the
    C program in the build. Texts of several prompts come one after the other, each behind a line
    with its number; each ends on its own, and is what it would be alone."""
    from graphtool.io.manifest import read_manifest
    from graphtool.language.sampling import samplings
    from graphtool.native.generation import TextGenerator
    from graphtool.native.several_texts import write_texts
    prompts = prompt or [""]
    how, *others = samplings(temperature, top_k, top_p, seed or [0], len(prompts))
    writer = TextGenerator(build, threads)
    note_of_threads(read_manifest(build), threads)
    began = time.perf_counter()
    if others:
        texts = write_texts(writer, prompts, [how, *others], tokens, tuple(stop or ()))
        for i, text in enumerate(texts, 1):
            terminal.prose(f"--- {i}\n{text.decode(errors='replace')}\n")
        terminal.note(f"{len(prompts)} texts, {writer.rows} at once, in "
                      f"{time.perf_counter() - began:.2f} s")
        return
    letters = getincrementaldecoder("utf-8")("replace")  # a letter may come in several tokens
    for part in writer.text(prompts[0], how, tokens, tuple(stop or ())):
        terminal.prose(letters.decode(part))
    terminal.prose(letters.decode(b"", final=True) + "\n")
    spent = time.perf_counter() - began
    full = "; the caches have no room for more" if writer.at == writer.room else ""
    terminal.note(f"{writer.at} tokens, the prompt's too, in {spent:.2f} s{full}")


def train(text: Annotated[list[Path], typer.Argument(metavar="TEXT...", help="Files of text.")],
          out: Annotated[Path, typer.Option("-o", "--out", help="The file to write.")],
          size: Annotated[int, typer.Option(
              "--size", help="How many tokens there are, 257 or more.")] = 512) -> None:
    """Make a byte-pair tokenizer from text: the most frequent pairs become tokens."""
    from graphtool.io import files
    from graphtool.language import tokenizer
    data = [files.read_bytes(path) for path in text]
    for path, part in zip(text, data, strict=True):
        if b"\0" in part:
            terminal.note(f"{path} is no text: it has bytes of 0, which become tokens too")
    tokenizer_ = tokenizer.train(b"\n".join(data), size)
    tokenizer.save(tokenizer_, out)
    terminal.note(f"{tokenizer_.size} tokens, {len(tokenizer_.merges)} of them merges")


def encode(source: Json, text: Annotated[str, typer.Argument(
        metavar="TEXT", help="The text.")]) -> None:
    """Print the tokens of a text."""
    from graphtool.language import tokenizer
    terminal.lines([" ".join(map(str, tokenizer.load(source).encode(text)))])


def decode(source: Json, tokens: Annotated[list[str], typer.Argument(
        metavar="TOKEN...", help="Numbers, as encode prints them.")]) -> None:
    """Print the text of tokens."""
    from graphtool.language import tokenizer
    words = [word for text in tokens for word in text.replace(",", " ").split()]
    if wrong := next((word for word in words if not word.isdecimal()), None):
        raise UsageError("GT3001", f"{wrong!r} is no token", hint="tokens are numbers, as "
                         "`graphtool tokenizer encode` prints them: 104 105")
    numbers = [int(word) for word in words]
    terminal.prose(tokenizer.load(source).decode(numbers).decode(errors="replace") + "\n")
