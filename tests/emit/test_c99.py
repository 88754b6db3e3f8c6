"""Plain C99: the functions that it takes from the headers, compilers that have nothing to say, and
the numbers."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.emit.functions import definitions, functions
from graphtool.emit.typed import array
from graphtool.errors import InputError, InternalError, UsageError
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.loops import serial
from graphtool.native import runtime
from graphtool.symbolic import Symbol, symbol
from tests.lower.test_control import collatz
from tests.native.cuda.models import weights

RNG = np.random.default_rng(3)
FLAGS = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wcast-align",
         "-Werror", "-O1")
COMPILERS = [c for c in ("gcc", "clang") if shutil.which(c)]
needs_gcc = pytest.mark.skipif("gcc" not in COMPILERS, reason="gcc is not installed")
SYSTEM = "".join(f"#include <{h}.h>\n" for h in ("math", "stddef", "stdint", "string"))


def silent(folder: Path, *files: str) -> None:
    for compiler in COMPILERS:
        done = subprocess.run([compiler, *FLAGS, "-Wno-unused-function", "-fsyntax-only", *files],
                              cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:2000]


def test_functions_come_with_those_that_they_call() -> None:
    names = [d.name for d in functions("y = gt_sigmoid_f32(x) + gt_max_i64(a, b);")]
    assert names == ["gt_float_of_bits", "gt_bits_of_float", "gt_choose_f32", "gt_exp_scaled_f32",
                     "gt_exp_f32", "gt_sigmoid_f32", "gt_max_i64"]
    with pytest.raises(InternalError, match="gt_nowhere"):
        functions("gt_nowhere(1)")


def test_a_function_of_a_macro_has_its_lines() -> None:
    text = definitions()["gt_mod_i32"].text
    assert text == ("static inline int32_t gt_mod_i32(int32_t a, int32_t b)\n{\n"
                    "    const int32_t r = gt_rem_i32(a, b);\n"
                    "    return r != 0 && (r < 0) != (b < 0) ? (int32_t)(r + b) : r;\n}")


def test_all_functions_are_plain_and_silent(tmp_path: Path) -> None:
    text = "\n\n".join(d.text for d in definitions().values() if "gt_vf" not in d.text
                       and d.name != "gt_load_first")
    assert len(definitions()) > 300
    assert not re.search(r"__\w+|GT_\w+|^#|\(\*", text, re.M)
    (tmp_path / "all.c").write_text(SYSTEM + text + "\n")
    silent(tmp_path, "all.c")


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64, dtypes.int64, dtypes.int32,
                                   dtypes.int8, dtypes.uint64, dtypes.float16, dtypes.bool_],
                         ids=str)
@needs_gcc
def test_typed_arrays_have_the_same_bytes(dtype: Any, tmp_path: Path) -> None:
    if dtype.is_float:
        info = np.finfo(dtype.numpy)
        x = np.array([0.0, -0.0, np.inf, -np.inf, info.tiny, info.smallest_subnormal, info.max,
                      1 / 3, -1e-3], dtype.numpy)
    else:
        x = np.array([dtype.low, dtype.high, 0, 1] if dtype.is_integer else [0, 1], dtype.numpy)
    (tmp_path / "a.c").write_text(
        f"{SYSTEM}#include <stdio.h>\nextern {array('x', dtype, x.tobytes())}"
        "int main(void) { return fwrite(x, 1, sizeof x, stdout) != sizeof x; }\n")
    subprocess.run(["gcc", "-std=c99", "a.c", "-o", "a"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "a"], capture_output=True, check=True).stdout == x.tobytes()


def kinds(x: Any, h: Any, b: Any, i: Any, q: Any, m: Any) -> tuple[Any, ...]:
    """One nest of each kind: x is f32[33, 24], h f16[33, 24], b bf16[9, 8], i i64[33], q i8[9, 8],
    m bool[33, 24]."""
    heads = o.reshape(o.slice(x, start=(0, 0), limit=(33, 16), strides=(1, 1)),
                      shape=(1, 2, 33, 8))
    rows = o.reshape(i, shape=(33, 1))
    image = weights(x, 1, 3, 6, 6)
    return (
        o.softmax(o.linear(x, weights(x, 7, 24), weights(x, 7)), axis=1),
        o.layer_norm(o.gelu(x), None, None, axes=(1,)), o.reduce_sum(x * 2.0, axes=(0,)),
        o.cumulative(x, axis=0, kind="sum"), o.gather(x, rows, axes=(0,)),
        o.scatter(weights(x, 64, 24), rows, x, axes=(0,), kind="add"),
        o.relu(o.conv(image, weights(x, 4, 3, 3, 3), padding=((1, 1), (1, 1)))),
        o.attention(heads, heads, heads), h * h + h, o.cast(o.exp(b), dtype=dtypes.float32),
        o.matmul(q, o.transpose(q, perm=(1, 0)), dtype=dtypes.int32),
        o.select(m, x, -x), o.reduce_and(m, axes=(1,)), i * 3 - 1, o.sort(x, axis=1)[0],
        o.pow(o.abs(x), o.sigmoid(x)), o.cast(x * 100.0, dtype=dtypes.int8))


def of_kinds() -> Module:
    types = [TensorType(dtypes.float32, (33, 24)), TensorType(dtypes.float16, (33, 24)),
             TensorType(dtypes.bfloat16, (9, 8)), TensorType(dtypes.int64, (33,)),
             TensorType(dtypes.int8, (9, 8)), TensorType(dtypes.bool_, (33, 24))]
    graph = trace(kinds, types, ['x */ "\\\n#error', "h", "b", "i", "q", "m"])
    return Module(graph, tuple(f"y{i}" for i in range(len(graph.outputs))), {})


@needs_gcc
def test_each_kind_of_nest(tmp_path: Path) -> None:
    """Silent compilers, nothing of the headers, and the evaluator's results."""
    m = of_kinds()
    path = graphtool.build(m, tmp_path / "b", profile="safety", name="net")
    assert {p.name for p in path.glob("*.h")} == {
        "net.h", "net_kernels.h", "net_functions.h", "net_weights.h"}
    text = "".join(p.read_text() for p in path.glob("net*.[ch]"))
    assert not re.search(r"\b(malloc|goto|while|_Pragma|__attribute__|__builtin\w+)\b|\(\*", text)
    silent(path, *(p.name for p in path.glob("*.c")))
    rows = [RNG.standard_normal((33, 24)) * 2, RNG.standard_normal((33, 24)),
            RNG.standard_normal((9, 8)), RNG.integers(0, 33, 33), RNG.integers(-128, 128, (9, 8)),
            RNG.random((33, 24)) < 0.5]
    given = {v.hint: r.astype(v.type.dtype.numpy)
             for v, r in zip(m.graph.inputs, rows, strict=True)}
    given[m.graph.inputs[0].hint][:3, :4] = [np.nan, np.inf, -np.inf, 1e-40]
    got, want = runtime.load(path).run(given), interp.run(m, given)
    for name, y in want.items():
        tolerance = {"rtol": 2e-5, "atol": 1e-5} if y.dtype.kind == "f" else {}
        np.testing.assert_allclose(got[name].astype(np.float64), y.astype(np.float64),
                                   err_msg=name, **tolerance)


@needs_gcc
def test_weights_of_bytes_stay_bytes(tmp_path: Path) -> None:
    """Also those of a product that stands alone, and transposed ones; the arena has no copy."""
    def net(x: Any) -> tuple[Any, ...]:
        def wide(*shape: int) -> Any:
            w = RNG.integers(-128, 128, shape).astype(np.int8)
            return o.cast(x.builder.constant(w), dtype=dtypes.int32)
        y = o.conv(o.cast(x, dtype=dtypes.int32) - 3, wide(40, 3, 3, 3), padding=((1, 1), (1, 1)))
        rows = o.reshape(o.reduce_sum(o.max(y, 0), axes=(2, 3)), shape=(2, 40))
        return y, o.matmul(rows, wide(33, 40), transpose_b=True), o.matmul(rows, wide(40, 9))
    m = Module(trace(net, [TensorType(dtypes.int8, (2, 3, 5, 5))], ["x"]), ("y", "z", "w"), {})
    path = graphtool.build(m, tmp_path / "b", profile="safety", name="net", keep=True)
    program, _ = serial.load(next(path.glob("stages/*.program.json")))
    held = [(b.dtype, b.size) for b in program.buffers if b.space == "weight"]
    assert sorted(held, key=lambda h: h[1]) == [
        (dtypes.int8, 9 * 40), (dtypes.int8, 27 * 40), (dtypes.int8, 33 * 40)]
    x = {"x": RNG.integers(-128, 128, (2, 3, 5, 5)).astype(np.int8)}
    got, want = runtime.load(path).run(x), interp.run(m, x)
    assert all(np.array_equal(got[k], want[k]) for k in want)


@needs_gcc
def test_numbers_choose_without_a_branch(tmp_path: Path) -> None:
    """The bits of all pairs of special numbers are those of the evaluator."""
    def net(x: Any, y: Any) -> tuple[Any, ...]:
        pool = o.max_pool(o.reshape(x, shape=(1, 1, 9, 9)), window=(3, 3))
        return (o.max(x, y), o.min(x, y), o.relu(x), o.clamp(x, -1.0, 2.0), pool,
                o.select(o.gt(x, y), x * 2.0, y))
    pairs = [TensorType(dtypes.float32, (81,))] * 2
    m = Module(trace(net, pairs, ["x", "y"]), tuple("abcdef"), {})
    path = graphtool.build(m, tmp_path / "b", profile="safety", name="net")
    text = "".join(p.read_text() for p in path.glob("net_*.[ch]"))
    assert "gt_choose_f32" in text and "?" not in re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    specials = np.array([0.0, -0.0, 1.0, -1.5, 2.5, np.inf, -np.inf, np.nan, 1e-40], np.float32)
    x, y = (a.ravel() for a in np.meshgrid(specials, specials))
    got, want = runtime.load(path).run({"x": x, "y": y}), interp.run(m, {"x": x, "y": y})
    for name in want:
        np.testing.assert_array_equal(got[name], want[name], err_msg=name)
        assert np.array_equal(np.signbit(got[name]) & ~np.isnan(got[name]),
                              np.signbit(want[name]) & ~np.isnan(want[name])), name


def test_what_the_profile_cannot_take(tmp_path: Path) -> None:
    x = TensorType(dtypes.float32, (symbol("N", 1, 9), 4))
    m = Module(trace(lambda x: (o.relu(x),), [x], ["x"]), ("y",), {"N": Symbol("N", 1, 9)})
    with pytest.raises(InputError, match="the size N is open") as found:
        graphtool.build(m, tmp_path / "b", profile="safety")
    assert found.value.code == "GT2132"
    loop = Module(collatz(), ("last", "k", "top"), {})
    with pytest.raises(InputError, match="iterations depends on data"):
        graphtool.build(loop, tmp_path / "b", profile="safety")
    for options, word in (({"precision": "fast"}, "--precision"), ({"threads": 2}, "--threads"),
                          ({"target": "cuda"}, "--target cuda"), ({"exe": True}, "--exe")):
        with pytest.raises(UsageError, match=word) as refused:
            graphtool.build(m, tmp_path / "b", profile="safety", **options)
        assert refused.value.code == "GT2119"
