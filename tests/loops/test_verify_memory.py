"""A template, a port or a weight that does not fit its buffer is refused before C is made of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import passes
from graphtool.compile.as_is import build
from graphtool.compile.weights import weights_of
from graphtool.dtypes import float32, int64
from graphtool.errors import InputError
from graphtool.io.weights import Weight, weight
from graphtool.ir.serial import collect_all
from graphtool.kernels.record import KERNELS
from graphtool.loops.contract import CONTRACTS
from graphtool.loops.ir import Const, For, Store, Template
from graphtool.loops.program import (
    ENDLESS,
    Bind,
    Buffer,
    Kernel,
    Param,
    Port,
    Program,
    Run,
    runs,
)
from graphtool.loops.serial import dumps, loads
from graphtool.loops.verify_memory import verify_memory
from graphtool.loops.walk import statements
from graphtool.lower import lower
from graphtool.native import runtime
from graphtool.symbolic import Dim, Equation, Symbol, symbol_of
from graphtool.symbolic.poly import floordiv, mod
from graphtool.target import named
from tests.cases import CASES
from tests.emit import samples
from tests.kernels.test_meaning import SAMPLES, sample
from tests.loops.programs import NAMES, program
from tests.lower.compiling import merged

GOLDEN = sorted((Path(__file__).parents[1] / "io/golden/program/v1").glob("*.program.json"))
TARGET = named("x86-64-v3", 2)
KERNEL_TEXTS = [dumps(sample(name, i)[1]) for name in SAMPLES for i in range(len(SAMPLES[name]))]
TEXTS = [dumps(program(n)) for n in NAMES] + [dumps(loads(p.read_text())) for p in GOLDEN]
TEXTS += KERNEL_TEXTS
# what makes a template touch more, whatever else it says
IMAGE = ("BATCH", "OH", "OW")
GROWS = {"gemm": ("M", "N", "K"), "gemm_int": ("M", "N", "K"),
         "gemm_blocked": ("M", "N", "K", "DEEP", "CHUNK"),
         "gemm_amx_blocked": ("M", "N", "K", "DEEP", "CHUNK"),
         "gemm_parts": ("M", "N", "K", "DEEP", "CHUNK"),
         "conv_parts": (*IMAGE, "O", "KH", "RUN", "GROUPS", "DEEP", "CHUNK"),
         "conv_grad_parts": (*IMAGE, "O", "KH", "RUN", "DEEP", "CHUNK"),
         "gemm_wide": ("M", "N", "K"), "conv_wide": (*IMAGE, "C", "O", "KH"),
         "gemm_amx": ("M", "N", "K"), "conv_amx": (*IMAGE, "O", "KH", "RUN"),
         "attend": ("S", "T", "HEADS"), "attend_amx": ("S", "T", "HEADS"),
         "attend_parts": ("S", "T", "HEADS", "PARTS"), "attend_bytes": ("S", "T", "HEADS"),
         "conv_direct": (*IMAGE, "C", "O"), "conv_int": (*IMAGE, "O", "KH", "RUN"),
         "depthwise": (*IMAGE, "C", "KH"), "depthwise_int": (*IMAGE, "C", "KW"),
         "depthwise_grad": (*IMAGE, "C", "KH"),
         "conv_bytes": ("BATCH", "IH", "IW", "C", "O", "KH"),
         "depthwise_bytes": ("BATCH", "IH", "IW", "C", "KH"),
         "fft": ("LINES", "N"), "cholesky": ("BATCH", "N"), "triangular": ("BATCH", "N", "M"),
         "pooled": (*IMAGE, "C"), "winograd": ("C", "O", "OH", "OW"),
         "winograd_line": ("BATCH", "ACROSS", "ALONG", "C", "O"), "sort": ("ROWS", "N"),
         "linear_nbits": ("M", "N", "K", "PARTS"),
         "linear_q8": ("M", "N", "K"), "linear_f32": ("M", "N", "K"),
         "linear_bf16": ("M", "N", "K"),
         "recurrence": ("STEPS", "ROWS", "H"),
         "recurrence_grad": ("STEPS", "ROWS", "H"), "trees": ("ROWS", "TREES", "TARGETS"),
         "transpose": ("A", "B"), "collective": ("COUNT",),
         "blas": ("M", "N", "K", "LDA")}


def templates(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    def within(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for row in rows:
            if "macros" in row:
                yield row
            for inner in ("body", "then", "orelse"):
                yield from within(row.get(inner, []))
    for kernel in document["kernels"]:
        yield from within(kernel["body"])


def code(document: dict[str, Any]) -> str:
    try:
        loads(json.dumps(document))
    except InputError as error:
        return error.code
    return ""


def test_what_lowering_makes_is_accepted() -> None:
    for name in NAMES:
        verify_memory(program(name))
    for make in (samples.softmax, samples.layer, samples.moves):
        verify_memory(lower(make(), TARGET))
    assert [code(json.loads(text)) for text in TEXTS] == [""] * len(TEXTS)


@pytest.mark.parametrize("kernel", GROWS)
def test_a_template_larger_than_its_buffers(kernel: str) -> None:
    seen = set()
    for text in TEXTS:
        for n, t in enumerate(templates(json.loads(text))):
            for m, macro in enumerate(t["macros"]):
                if t["kernel"] == kernel and macro["name"] in GROWS[kernel] and (
                        macro.get("size") not in (None, 0)):
                    document = json.loads(text)
                    row = list(templates(document))[n]["macros"][m]
                    row["size"] = 100000 if isinstance(row["size"], int) else f"1000*{row['size']}"
                    assert code(document) in ("GT0371", "GT0375", "GT0380"), macro
                    seen.add(macro["name"])
    assert CONTRACTS[kernel].touches is not None and seen


@pytest.mark.parametrize(("most", "refused"), [(2000, False), (2001, True), (ENDLESS, False)])
def test_a_size_that_a_run_computes(most: int, refused: bool) -> None:
    """It is tried up to its bound; no memory is planned for one that has none."""
    size = Symbol("n", 0)
    i, n = Symbol("i", 0, None, symbol_of(size)), symbol_of(size)
    kernel = Kernel("k", (Param("y", float32, False),), (
        For(i, n, "serial", (Store("y", symbol_of(i), Const(0.0, float32)),)),))
    made = Program(
        "m", (), (Port("c", int64, ()),), (Port("y", float32, (n,)),),
        (Buffer("b0", int64, 1, "input"), Buffer("b1", float32, 2000, "output")), (kernel,),
        (Bind(size, "b0", 0, most), Run("k", ("b1",))))
    if refused:
        with pytest.raises(InputError, match="GT0375"):
            verify_memory(made)
    else:
        verify_memory(made)


def conditioned(size: Dim, *requires: Equation) -> Program:
    """y[i] = 0 for all i below N·M, of an output with `size` elements."""
    dims = tuple(Symbol(n, 1) for n in "NM")
    n, m = map(symbol_of, dims)
    i = Symbol("i", 0, None, n * m)
    kernel = Kernel("k", (Param("y", float32, False),), (
        For(i, n * m, "serial", (Store("y", symbol_of(i), Const(0.0, float32)),)),))
    return Program("m", dims, (), (Port("y", float32, (size,)),),
                   (Buffer("b0", float32, size, "output"),), (kernel,), (Run("k", ("b0",)),),
                   requires=requires)


N, M = symbol_of(Symbol("N", 1)), symbol_of(Symbol("M", 1))


@pytest.mark.parametrize("rows", [
    (Equation(mod(floordiv(N + 1, 2), 8), 0),), (Equation(N, M),), (Equation(2 * N, 3 * M),),
    (Equation(mod(N, 7), 3), Equation(mod(M, 64), 63)), (Equation(mod(N * M, 6), 5),)])
def test_sizes_that_conditions_allow_are_tried(rows: tuple[Equation, ...]) -> None:
    verify_memory(conditioned(N * M, *rows))
    with pytest.raises(InputError, match="GT0375"):
        verify_memory(conditioned(N * M - 1, *rows))


def test_conditions_that_no_sizes_satisfy() -> None:
    with pytest.raises(InputError, match=r"GT0376.*no sizes are found.*N%4"):
        verify_memory(conditioned(N * M, Equation(mod(N, 4), 1), Equation(mod(N, 4), 2)))


def test_a_mutant_without_columns_is_refused() -> None:
    """It divided by zero in the reader."""
    for name in ("gemm_int", "conv_int", "gemm", "conv_direct", "winograd"):
        for macro in ("NV", "MR"):
            document = json.loads(dumps(sample(name, 0)[1]))
            for t in templates(document):
                for m in t["macros"]:
                    m["size"] = 0 if m["name"] == macro else m.get("size")
            assert code(document) == "GT0380"


def test_steps_are_chosen_by_an_element_that_is_there() -> None:
    case = next(c for c in CASES if c.op.name == "while")
    module = passes.run(merged([case])[0], supply={"target": TARGET})
    found = json.loads(dumps(lower(module, TARGET)))
    pred = next(s["pred"] for s in found["steps"] if "pred" in s)
    for b in found["buffers"]:
        b["size"] = 0 if b["id"] == pred else b["size"]
    assert code(found) == "GT0375"


def test_every_kernel_says_what_it_touches() -> None:
    own = {name: c for name, c in CONTRACTS.items() if name in KERNELS}
    assert [n for n, c in own.items() if c.touches is None] == []
    assert set(own) == set(GROWS)


def test_a_pointer_beyond_its_buffer() -> None:
    seen = 0
    for text in TEXTS:
        for n, t in enumerate(templates(json.loads(text))):
            if t["kernel"] not in GROWS:
                continue
            for offset in (10**6, -1):
                document = json.loads(text)
                list(templates(document))[n]["pointers"][0]["offset"] = offset
                assert code(document) in ("GT0375", "GT0380")
                seen += 1
    assert seen > 10


def test_a_hook_that_stores_beyond_its_buffer() -> None:
    seen = 0
    for text in TEXTS:
        for n, t in enumerate(templates(json.loads(text))):
            for hook in range(len(t.get("hooks", ())) if t["kernel"] in GROWS else 0):
                document = json.loads(text)
                body = list(templates(document))[n]["hooks"][hook]["body"]
                while "body" in body[-1]:
                    body = body[-1]["body"]
                if "index" in body[-1] and "buffer" in body[-1]:
                    body[-1]["index"] = f"100000 + {body[-1]['index']}"
                    assert code(document) in ("GT0375", "GT0380")
                    seen += 1
    assert seen > 5


@pytest.mark.parametrize("side", ["inputs", "outputs"])
def test_a_port_smaller_than_its_buffer(side: str) -> None:
    for text in TEXTS:
        document = json.loads(text)
        port = document[side][0]
        if port["shape"] and port["shape"][-1] not in (0, 1) and isinstance(port["shape"][-1], int):
            port["shape"][-1] -= 1
            assert code(document) == "GT0376"


def test_a_weight_smaller_than_its_buffer() -> None:
    for text in TEXTS:
        p = loads(text)
        if p.weights:
            tiny = {d: weight(np.zeros(1, np.int8)) for _, d in p.weights}
            with pytest.raises(InputError) as found:
                weights_of(p, tiny)
            assert found.value.code == "GT2115"


def grove(**changed: Any) -> tuple[Any, dict[str, Weight]]:
    """A program of trees with constant tables, of which some are changed."""
    case = next(c for c in CASES if c.op.name == "trees")
    module = passes.run(merged([case], params=True)[0], supply={"target": TARGET})
    made = lower(module, TARGET)
    store = {w.digest: w for w in collect_all(module.graph)}
    at = {p[1]: p[0] for k in made.kernels for s in statements(k.body)
          if isinstance(s, Template) for p in s.pointers}
    params = {a: p.name for k, r in zip(made.kernels, runs(made.steps), strict=True)
              for p, a in zip(k.params, r.args, strict=True)}
    for buffer, digest in made.weights:
        if (name := at[params[buffer]]) in changed:
            data = store[digest].stored.copy()
            data.ravel()[0] = changed[name]
            store[digest] = replace(store[digest], held=data)
    return made, store


@pytest.mark.parametrize(("table", "number"), [
    ("CHILDREN", 100), ("CHILDREN", -1), ("CHILDREN", 0), ("ROOTS", 8), ("ROOTS", -1),
    ("KINDS", 16 * 3)])
def test_a_constant_that_leads_out_of_a_buffer_or_round(table: str, number: int) -> None:
    weights_of(*grove())
    with pytest.raises(InputError) as found:
        weights_of(*grove(**{table: number}))
    assert found.value.code in ("GT0375", "GT0380")


def test_a_walk_round_in_a_circle_ends(tmp_path: Path) -> None:
    """Tables that the caller gives may hold anything: each node leads to the first one here."""
    module, feed = merged([next(c for c in CASES if c.op.name == "trees")])
    ready = passes.run(module, supply={"target": TARGET})
    tables = [n for n, x in feed.items() if x.dtype == np.int32]
    round_ = {n: np.zeros_like(x) if n in tables else x for n, x in feed.items()}
    got = runtime.load(build(ready, tmp_path / "b", target=TARGET)).run(round_)
    assert all(np.isfinite(y).all() for y in got.values())


def test_data_that_decide_are_constants() -> None:
    case = next(c for c in CASES if c.op.name == "trees")
    module = passes.run(merged([case])[0], supply={"target": TARGET})
    document = json.loads(dumps(lower(module, TARGET)))
    assert code(document) == ""
    for t in templates(document):
        t["macros"] = [m for m in t["macros"] if m["name"] not in ("NODES", "LEAVES", "FEATURES")]
    assert code(document) == "GT0375"


def test_a_loop_that_is_never_run_touches_nothing() -> None:
    case = next(c for c in CASES if c.op.name == "scan" and "0" in c.name)
    module = passes.run(merged([case])[0], supply={"target": TARGET})
    loads(dumps(lower(module, TARGET)))
