"""Text by a compiled language model: by the verb, from Python and by the C program, the same."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.errors import GraphtoolError
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import like, trace
from graphtool.language import tokenizer
from graphtool.language.sampling import Sampling
from graphtool.native.generation import TextGenerator
from graphtool.passes import run
from graphtool.symbolic import Symbol, dim_of
from tests.cli.conftest import Cli, gt
from tests.compilers import run_compiler
from tests.emit.test_contract import no_warning
from tests.language.test_tokenizer import MADE
from tests.passes.pass_samples import values

__all__ = ["gt"]
ROOM, WIDTH = 40, 8
PAST, NEW = Symbol("P", 0, 4096), Symbol("S", 1, 4096)


def step(new: Any, mask: bool = False, texts: int = 1) -> Module:
    """One layer of causal attention with learnt places, over a past of any length."""
    past = dim_of(PAST)

    def model(ids: Any, k: Any, v: Any, *more: Any) -> Any:
        at = like(ids, o.iota, shape=(1, new), axis=1, dtype=dtypes.int64) + like(
            ids, o.dim, of=past, dtype=dtypes.int64)
        x = o.embedding(values(ids, MADE.size, WIDTH), ids)
        x = x + o.embedding(values(ids, ROOM, WIDTH, seed=1), more[0] if more else at)
        q, a, b = (o.reshape(o.matmul(x, values(ids, WIDTH, WIDTH, seed=i)),
                             shape=(texts, 1, new, WIDTH)) for i in range(2, 5))
        k, v = o.concat(k, a, axis=2), o.concat(v, b, axis=2)
        every = like(ids, o.iota, shape=(1, past + new), axis=1, dtype=dtypes.int64)
        seen = o.le(every, o.reshape(at, shape=(new, 1)))
        if more:
            seen = o.and_(seen, o.reshape(o.ne(more[1], 0), shape=(texts, 1, 1, past + new)))
        y = o.reshape(o.attention(q, k, v, seen), shape=(texts, new, WIDTH))
        return o.matmul(x + y, values(ids, WIDTH, MADE.size, seed=6)), k, v
    i64, f32 = dtypes.int64, dtypes.float32
    types = [TensorType(i64, (texts, new)), *[TensorType(f32, (texts, 1, past, WIDTH))] * 2]
    names = ["ids", "k", "v"]
    if mask:
        types += [TensorType(i64, (texts, new)), TensorType(i64, (texts, past + new))]
        names += ["position_ids", "attention_mask"]
    graph = trace(model, types, names)
    open_ = (PAST,) if isinstance(new, int) else (PAST, NEW)
    return Module(graph, ("logits", "keys", "values"), {s.name: s for s in open_})


ALL = step(dim_of(NEW))
KEPT = f"cache{{max={ROOM}}}"


def best(prompt: list[int], count: int) -> list[int]:
    """The likeliest tokens behind a prompt, by the evaluator, which reads all of it each time."""
    tokens = list(prompt)
    for _ in range(count):
        past = {n: np.zeros((1, 1, 0, WIDTH), np.float32) for n in "kv"}
        scores = interp.run(ALL, {"ids": np.array([tokens]), **past})["logits"][0, -1]
        tokens.append(int(scores.argmax()))
    return tokens[len(prompt):]


@pytest.fixture(scope="module", params=["two", "one", "masked"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds with two entry points, with the one that takes a token, and with positions and a
    mask as inputs."""
    folder = tmp_path_factory.mktemp("lm")
    modules = {"prefill": run(ALL, KEPT), "decode": run(step(1), KEPT)}
    if request.param == "one":
        modules = {"decode": modules["decode"]}
    if request.param == "masked":
        modules = {"prefill": run(step(dim_of(NEW), True), KEPT),
                   "decode": run(step(1, True), KEPT)}
    return graphtool.build(modules, folder / "b", name="lm", tokenizer=MADE)


@pytest.fixture(scope="module")
def program(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(built, tmp_path_factory.mktemp("program"))


def compiled(built: Path, tmp_path: Path) -> Path:
    """The program of a build, compiled with all warnings."""
    shutil.copytree(built, tmp_path / "c")
    flags = ["-O1", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-Wno-psabi"]
    run_compiler(["gcc", *flags, *sorted(p.name for p in (tmp_path / "c").glob("*.c")), "-lm",
                  "-o", "lm"], tmp_path / "c").check_returncode()
    return tmp_path / "c" / "lm"


@pytest.mark.part(2)
@pytest.mark.parametrize("command", ["g++", "clang++"])
def test_the_program_is_cpp_too(command: str, built: Path, tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path / "c")
    no_warning(command, "lm_example.c", tmp_path / "c")
    no_warning(command, "lm_load.c", tmp_path / "c")


def test_the_best_tokens_are_the_evaluators(built: Path) -> None:
    prompt = MADE.encode("the cat sat")
    found = list(TextGenerator(built).write("the cat sat", Sampling(0.0), 12))
    assert found == best(prompt, 12)[:len(found)] and found


@pytest.mark.parametrize("how", [
    ("--temperature", "0"), ("--seed", "3"), ("--seed", "4", "--top-k", "5"),
    ("--top-p", "0.5", "--temperature", "1.5"), ("--stop", "e", "--seed", "1"),
    ("--tokens", "0"), ("--tokens", "100", "--temperature", "2")])
@pytest.mark.parametrize("prompt", ["the cat sat", ""])
def test_the_program_writes_what_the_verb_writes(how: tuple[str, ...], prompt: str, built: Path,
                                                 program: Path, gt: Cli) -> None:
    done = subprocess.run([program, prompt, *how], cwd=program.parent, capture_output=True,
                          check=True)
    writer = TextGenerator(built)
    options = dict(zip(how[::2], how[1::2], strict=True))
    sampling = Sampling(float(options.get("--temperature", 0.8)), int(options.get("--top-k", 0)),
                        float(options.get("--top-p", 1)), int(options.get("--seed", 0)))
    stop = (options["--stop"],) if "--stop" in options else ()
    want = b"".join(writer.text(prompt, sampling, int(options.get("--tokens", 64)), stop))
    assert done.stdout == want + b"\n"
    assert all(s.encode() not in want for s in stop)


@pytest.mark.part(2)
@pytest.mark.parametrize("kept", ["bf16", "i8"])
def test_caches_of_fewer_bits(kept: str, tmp_path: Path) -> None:
    """Program and verb write the same; the likeliest token is mostly that of whole caches."""
    modules = {"prefill": run(ALL, f"cache{{max={ROOM},dtype={kept}}}"),
               "decode": run(step(1), f"cache{{max={ROOM},dtype={kept}}}")}
    folder = graphtool.build(modules, tmp_path / "b", name="lm", tokenizer=MADE)
    program = compiled(folder, tmp_path)
    for how in (Sampling(0.0), Sampling(seed=2)):
        done = subprocess.run([program, "the cat sat", "--temperature", str(how.temperature),
                               "--seed", str(how.seed)], cwd=program.parent, capture_output=True,
                              check=True)
        assert done.stdout == b"".join(TextGenerator(folder).text("the cat sat", how)) + b"\n"
    found = next(TextGenerator(folder).write("the cat sat", Sampling(0.0)))
    assert [found] == best(MADE.encode("the cat sat"), 1)


def test_the_verb_writes_text(built: Path, gt: Cli) -> None:
    one, two = (gt("generate", built, "--prompt", "the ", "--seed", 7, "--temperature", 0,
                   "--tokens", 5) for _ in range(2))
    assert one.code == 0 and one.out == two.out and len(one.out) > 1


def test_python_writes_what_the_verb_writes(built: Path, gt: Cli) -> None:
    found = graphtool.generate(built, "the cat", tokens=9, seed=5, top_k=7)
    assert gt("generate", built, "--prompt", "the cat", "--tokens", 9, "--seed", 5, "--top-k",
              7).out == found + "\n"


def test_going_back_gives_the_same_scores(built: Path) -> None:
    writer = TextGenerator(built)
    writer.read(MADE.encode("the cat"))
    first = writer.read([104]).copy()
    writer.read([105]), writer.read([106])
    writer.back(3)
    np.testing.assert_array_equal(writer.read([104]), first)


def test_a_full_cache_ends_the_text(built: Path, gt: Cli) -> None:
    writer = TextGenerator(built)
    assert len(list(writer.write("the", Sampling(3.0), 1000))) <= ROOM + 1
    said = [gt("generate", built, "--prompt", "the", "--temperature", "0", "--tokens", n).err
            for n in ("1000", "2")]
    assert f"{ROOM} tokens, the prompt's too" in said[0] and "no room for more" in said[0]
    assert "no room" not in said[1]
    with pytest.raises(GraphtoolError, match="room for 40"):
        list(writer.write("x1" * ROOM, Sampling(), 1))


@pytest.mark.parametrize(("argv", "code"), [
    (("--top-p", "0"), 2), (("--what", "1"), 2), (("--seed",), 2), (("--seed", "x"), 2),
    (("--temperature", "-1"), 2), (("a", "b"), 2), (("--weights", "missing"), 1),
    (("x1" * ROOM,), 1)])
def test_the_program_refuses(argv: tuple[str, ...], code: int, program: Path) -> None:
    done = subprocess.run([program, *argv], cwd=program.parent, capture_output=True, text=True)
    assert done.returncode == code and done.stderr


def test_a_tokenizer_of_another_size_is_refused(tmp_path: Path) -> None:
    other = tokenizer.train("the the the", 259)
    with pytest.raises(GraphtoolError, match="GT3155"):
        graphtool.build({"decode": run(step(1), KEPT)}, tmp_path / "b", tokenizer=other)


@pytest.mark.parametrize("what", ["no cache", "two results", "a batch"])
def test_what_is_no_language_model_is_refused(what: str, tmp_path: Path) -> None:
    module = step(1)
    if what != "no cache":
        module = run(module, KEPT)
    if what == "two results":
        outputs = (*module.graph.outputs, module.graph.outputs[0])
        module = replace(module, graph=replace(module.graph, outputs=outputs),
                         output_names=(*module.output_names, "again"))
    if what == "a batch":
        module = Module(trace(lambda ids, k: (o.embedding(values(ids, MADE.size, MADE.size), ids),
                                              o.concat(k, o.cast(ids, dtype=dtypes.float32),
                                                       axis=1)),
                              [TensorType(dtypes.int64, (2, 1)),
                               TensorType(dtypes.float32, (2, dim_of(PAST)))], ["ids", "k"]),
                        ("logits", "keys"), {"P": PAST})
        module = run(module, KEPT)
    with pytest.raises(GraphtoolError, match="GT3154"):
        graphtool.build({"decode": module}, tmp_path / "b", tokenizer=MADE)


def test_a_build_without_a_tokenizer_is_refused(tmp_path: Path, gt: Cli) -> None:
    folder = graphtool.build({"decode": run(step(1), KEPT)}, tmp_path / "b")
    found = gt("generate", folder)
    assert found.code == 3 and "GT3156" in found.err
    assert json.loads((folder / "build.json").read_text())["language"] is None


@pytest.mark.parametrize("change", [{"tokens": 99}, {"logits": -1}, {"most": 0}, None])
def test_roles_that_are_no_ports_are_refused(change: dict[str, int] | None, built: Path,
                                             tmp_path: Path, gt: Cli) -> None:
    shutil.copytree(built, tmp_path / "b")
    manifest = json.loads((tmp_path / "b" / "build.json").read_text())
    rows = manifest["language"]["roles"]
    if change is None:
        del rows["decode"]
    else:
        rows["decode"] |= change
    (tmp_path / "b" / "build.json").write_text(json.dumps(manifest))
    found = gt("generate", tmp_path / "b")
    assert found.code == 3 and "GT2201" in found.err
