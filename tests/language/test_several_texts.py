"""Several texts at once: each is what it would be alone, and each ends on its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import graphtool
from graphtool.errors import GraphtoolError
from graphtool.language.sampling import Sampling
from graphtool.native.generation import TextGenerator
from graphtool.native.several_texts import write_texts
from graphtool.passes import run
from graphtool.symbolic import dim_of
from tests.cli.conftest import Cli, gt
from tests.language.test_generate import KEPT, MADE, NEW, step

__all__ = ["gt"]
ROWS = 3
PROMPTS = ["the cat sat on", "a", "", "dogs the the", "cat"]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build that takes a text at a time."""
    modules = {"prefill": run(step(dim_of(NEW), True), KEPT), "decode": run(step(1, True), KEPT)}
    return graphtool.build(modules, tmp_path_factory.mktemp("lm") / "b", name="lm", tokenizer=MADE)


@pytest.fixture(scope="module", params=["whole", "eight bits", "one entry"])
def together(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds that take three rows."""
    kept = KEPT.replace("}", ",dtype=i8}") if request.param == "eight bits" else KEPT
    modules = {"prefill": run(step(dim_of(NEW), True, ROWS), kept),
               "decode": run(step(1, True, ROWS), kept)}
    if request.param == "one entry":
        modules = {"decode": modules["decode"]}
    return graphtool.build(modules, tmp_path_factory.mktemp("lm") / "b", name="lm", tokenizer=MADE)


@pytest.mark.part(6)
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_each_text_is_what_it_is_alone(alone: Path, together: Path, temperature: float) -> None:
    """Five prompts of five lengths: two groups, the second with an empty row."""
    how = [Sampling(temperature, seed=i) for i in range(len(PROMPTS))]
    found = list(write_texts(TextGenerator(together), PROMPTS, how, 20))
    one = TextGenerator(together)
    want = [b"".join(one.text(p, h, 20)) for p, h in zip(PROMPTS, how, strict=True)]
    assert found == want and len(set(found)) > 1
    if "i8" not in {p.dtype.short for p in one.steps[0].model.inputs}:
        assert found == list(write_texts(TextGenerator(alone), PROMPTS, how, 20))


def test_a_text_ends_where_its_own_end_comes(together: Path) -> None:
    how = [Sampling(1.5, seed=i) for i in range(3)]
    whole = list(write_texts(TextGenerator(together), PROMPTS[:3], how, 12))
    stop = whole[0][2:3].decode(errors="replace")
    found = list(write_texts(TextGenerator(together), PROMPTS[:3], how, 12, (stop,)))
    assert found == [t.partition(stop.encode())[0] for t in whole]
    assert list(write_texts(TextGenerator(together), PROMPTS[:3], how, 0)) == [b""] * 3


def test_the_verb_and_python_write_them(together: Path, gt: Cli) -> None:
    argv = [a for p in PROMPTS[:2] for a in ("--prompt", p)]
    done = gt("generate", together, *argv, "--seed", 3, "--seed", 4, "--tokens", 6)
    texts = graphtool.generate(together, PROMPTS[:2], seed=[3, 4], tokens=6)
    assert done.out == f"--- 1\n{texts[0]}\n--- 2\n{texts[1]}\n" and "3 at once" in done.err
    alone = graphtool.generate(together, PROMPTS[1], seed=4, tokens=6)
    assert alone == texts[1]


def test_a_full_room_ends_all_texts(together: Path) -> None:
    how = [Sampling(3.0, seed=i) for i in range(2)]
    assert all(list(write_texts(TextGenerator(together), PROMPTS[:2], how, 1000)))
    with pytest.raises(GraphtoolError, match="GT3157"):
        list(write_texts(TextGenerator(together), ["a", "x1" * 40], how, 1))


def test_seeds_are_one_or_one_for_each(together: Path, gt: Cli) -> None:
    done = gt("generate", together, "--prompt", "a", "--seed", 1, "--seed", 2)
    assert done.code == 2 and "GT3153" in done.err


@pytest.mark.parametrize("change", ["no mask", "other rows"])
def test_what_cannot_be_several_is_refused(change: str, tmp_path: Path) -> None:
    modules: dict[str, Any] = {"prefill": run(step(dim_of(NEW), True, 2), KEPT)}
    modules["decode"] = run(step(1, change != "no mask", 2 if change == "no mask" else 3), KEPT)
    with pytest.raises(GraphtoolError, match="GT3154"):
        graphtool.build(modules, tmp_path / "b", tokenizer=MADE)
