"""Constants of less than a byte an element: packed in the file and in C, wherever they are read."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.compile.unit import MODES
from graphtool.dtypes import DType
from graphtool.errors import UnsupportedError
from graphtool.io import npz
from graphtool.io.weights import load, weight
from graphtool.ir import serial as graphs
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.loops import interp as loops
from graphtool.loops import serial, verify
from graphtool.lower import lower
from graphtool.native import runtime
from graphtool.symbolic import Symbol, symbol
from graphtool.target import named
from tests.emit.test_strict import strict
from tests.lower.compiling import compiled, faults, optimised

SMALL = tuple(d for d in dtypes.TABLE if d.is_packed)
B = symbol("B", 0, 50)
X, COUNT = TensorType(dtypes.float32, (5, 7)), TensorType(dtypes.int64, ())
small = pytest.mark.parametrize("dtype", SMALL, ids=str)


def data(dtype: DType, *shape: int) -> np.ndarray[Any, Any]:
    fields = np.random.default_rng(shape).integers(0, 1 << dtype.bits, shape, np.uint8)
    return fields.view(dtype.numpy)


def real(x: Any) -> Any:
    return o.cast(x, dtype=dtypes.float32)


def loop(w: Any, x: Any) -> Any:
    """A while loop from a constant, which each iteration reads another of; a branch inside."""
    kept, row = TensorType(w.dtype, (5, 7)), TensorType(w.dtype, (7,))
    at = [COUNT, X, kept, row, kept]
    pick = trace(lambda y, w: (y + real(w), w), [X, kept])
    leave = trace(lambda y, w: (o.neg(y), w), [X, kept])
    cond = trace(lambda n, *_: o.lt(n, 5), at)

    def step(n: Any, y: Any, last: Any, row: Any, w: Any) -> Any:
        drawn = o.gather(w, o.reshape(n, shape=(1, 1)), axes=(0,))
        y, last = o.cond(o.eq(o.mod(n, 2), 0), y, w, then=pick, orelse=leave)
        return n + 1, y * 0.5, last, o.reshape(drawn, shape=(7,))
    zero = x.builder.constant(np.zeros((), np.int64))
    one = o.reshape(o.slice(w, start=(1, 0), limit=(2, 7), strides=(1, 1)), shape=(7,))
    return o.while_(zero, x, o.reverse(w, axes=(0,)), one, w, cond=cond,
                    body=trace(step, at), carries=4)[1:]


def module(dtype: DType, rows: Any) -> Module:
    """A result from each way in which a constant can be read."""
    def body(x: Any, ids: Any) -> Any:
        def w(*shape: int) -> Any:
            return x.builder.constant(data(dtype, *shape), "w", True)
        odd = w(5, 7)
        middle = o.slice(odd, start=(0, 1), limit=(5, 2), strides=(1, 1))
        return (
            odd, w(3), w(), w(0, 3), o.transpose(odd, perm=(1, 0)), o.reshape(odd, shape=(7, 5)),
            o.slice(odd, start=(1, 3), limit=(5, 6), strides=(1, 1)),
            o.slice(odd, start=(0, 1), limit=(5, 7), strides=(2, 3)),
            o.reverse(odd, axes=(0, 1)), o.broadcast(w(1, 7), shape=(4, 7)),
            o.concat(odd, w(2, 7), odd, axis=0), o.pad(odd, lo=(1, 0), hi=(0, 3), value=1.0),
            o.concat(middle, odd, axis=1), real(odd), real(odd) * x, real(middle) + x,
            o.reduce_sum(real(w(5, 9)), axes=(1,)),
            o.reduce_max(real(o.transpose(odd, perm=(1, 0))), axes=(0, 1)),
            o.gather(odd, ids, axes=(0,)), real(o.gather(w(11, 33), ids, axes=(0,))) * 0.5,
            o.gather(o.transpose(odd, perm=(1, 0)), ids, axes=(0,)),
            real(o.gather(w(9, 601), ids, axes=(0,))), o.matmul(x, real(w(7, 6))),
            o.matmul(real(w(3, 5)), x), o.cumulative(real(odd), kind="sum", axis=1),
            o.scatter(x, x.builder.constant(np.array([[3]])), real(w(1, 7)), axes=(0,)),
            o.select(o.gt(x, 0.0), odd, o.reverse(odd, axes=(1,))), *loop(odd, x))
    g = trace(body, [X, TensorType(dtypes.int64, (rows, 1))], ["x", "ids"])
    return Module(g, tuple(f"y{i}" for i in range(len(g.outputs))),
                  {"B": Symbol("B", 0, 50)} if rows is B else {})


def inputs(rows: int = 3) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(rows)
    return {"x": rng.standard_normal((5, 7)).astype(np.float32),
            "ids": rng.integers(0, 5, (rows, 1))}


@pytest.mark.part(9)
@small
@pytest.mark.parametrize("march", ["native", "x86-64-v3", "x86-64", "generic"])
def test_every_read(dtype: DType, march: str, tmp_path: Path) -> None:
    m, target = module(dtype, 3), named(march, threads=3)
    model = compiled(m, tmp_path / "b", target=target, eager=True)
    assert faults(model.run(inputs()), interp.run(m, inputs())) == []


@pytest.mark.part(2)
@small
def test_symbolic_sizes_and_the_default_passes(dtype: DType, tmp_path: Path) -> None:
    m = module(dtype, B)
    model = compiled(optimised(m), tmp_path / "b", target=named("native", threads=3), eager=True)
    for rows in (0, 1, 50):
        assert faults(model.run(inputs(rows)), interp.run(m, inputs(rows))) == []


@pytest.mark.part(2)
@small
def test_a_program_and_its_file(dtype: DType, tmp_path: Path) -> None:
    m = module(dtype, 3)
    program = lower(m, named("x86-64", threads=1))
    verify.verify(program)
    store = {n.attrs["data"].digest: n.attrs["data"] for n in m.graph.nodes
             if n.op.name == "constant"}
    assert faults(loops.run(program, inputs(), store), interp.run(m, inputs())) == []
    serial.save(program, tmp_path / "m.program.json", store)
    again, held = serial.load(tmp_path / "m.program.json")
    model = runtime.load(build(again, tmp_path / "b", target=named("x86-64", threads=1),
                               store=held, jobs=2))
    assert faults(model.run(inputs()), interp.run(m, inputs())) == []


@pytest.mark.parametrize("mode", MODES)
def test_an_executable_in_every_mode(mode: str, tmp_path: Path) -> None:
    m = module(dtypes.int4, 3)
    path = build(m, tmp_path / "b", target=named("native", threads=1), weights=mode, exe=True,
                 jobs=2)
    if mode != "file":  # the program holds them
        assert not (path / "model.safetensors").exists()
        (path / "model_weights.bin").unlink(missing_ok=True)
    npz.save(inputs(), tmp_path / "in.npz")
    subprocess.run([path / "model", tmp_path / "in.npz", "-o", tmp_path / "out.npz"], check=True)
    want = {k: v for k, v in interp.run(m, inputs()).items() if v.dtype == np.float32}
    assert faults(npz.load(tmp_path / "out.npz"), want) == []


def table(dtype: DType) -> Module:
    g = trace(lambda ids: o.cast(o.gather(ids.builder.constant(data(dtype, 999, 33), "w", True),
                                          ids, axes=(0,)), dtype=dtypes.float32),
              [TensorType(dtypes.int64, (3, 1))], ["ids"])
    return Module(g, ("y",))


@small
def test_the_files_hold_no_more_than_the_bits(dtype: DType, tmp_path: Path) -> None:
    bits, spare = 999 * 33 * dtype.bits // 8, 4 * 64 + 512
    path = build(table(dtype), tmp_path / "b", jobs=2)
    assert bits <= (path / "model.safetensors").stat().st_size < bits + spare
    graphs.save(table(dtype), tmp_path / "m.json")
    assert bits <= (tmp_path / "m.safetensors").stat().st_size < bits + spare
    again = graphs.load(tmp_path / "m.json")
    xs = {"ids": np.array([[0], [997], [998]])}
    want = interp.run(table(dtype), xs)
    assert faults(interp.run(again, xs), want) == []
    assert faults(runtime.load(path).run(xs), want) == []


@small
def test_files_of_earlier_versions(dtype: DType, tmp_path: Path) -> None:
    """They have a byte for each element."""
    w = weight(data(dtype, 5, 7))
    head = {"__metadata__": {w.digest: dtype.name},
            w.digest: {"dtype": "U8", "shape": [5, 7], "data_offsets": [0, 35]}}
    text = json.dumps(head).encode()
    old = len(text).to_bytes(8, "little") + text + w.source.tobytes()
    (tmp_path / "w.safetensors").write_bytes(old)
    found = load(tmp_path / "w.safetensors")[w.digest]
    assert found == w and found.nbytes == w.nbytes and np.array_equal(found.source, w.source)


@pytest.mark.parametrize(("cc", "march"), [("gcc", "generic"), ("clang", "x86-64-v3")])
def test_no_warnings(cc: str, march: str, tmp_path: Path) -> None:
    for d in SMALL:
        (tmp_path / d.short).mkdir()
        strict(module(d, B), tmp_path / d.short, cc, march)


def test_a_sort_of_what_shares_bytes_is_refused(tmp_path: Path) -> None:
    g = trace(lambda x: o.sort(x.builder.constant(data(dtypes.int4, 40)), axis=0)[0], [X], ["x"])
    with pytest.raises(UnsupportedError, match="GT2003") as found:
        lower(Module(g, ("y",)), named("native"))
    assert found.value.hint == "cast it to 8 bits first"


@pytest.mark.parametrize("dtype", [*SMALL, dtypes.float8e4m3fn, dtypes.float8e5m2], ids=str)
def test_sorts_of_small_numbers(dtype: DType, tmp_path: Path) -> None:
    """By value, not by bits."""
    g = trace(lambda x: o.top_k(x, k=9, axis=0), [TensorType(dtype, (9,))], ["x"])
    m = Module(g, ("values", "places"))
    xs = {"x": np.arange(-4, 5).astype(np.int8).view(np.uint8).astype(np.int8).astype(dtype.numpy)}
    assert faults(compiled(m, tmp_path / "b").run(xs), interp.run(m, xs)) == []
