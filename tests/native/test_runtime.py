"""Running a build: inputs that fit and that do not, sizes that change, outputs that are given."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.errors import InputError
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.native import runtime
from graphtool.symbolic import Symbol, symbol
from graphtool.target import named

B, T = symbol("B", 1, 8), symbol("T", 0)
F32, I64 = dtypes.float32, dtypes.int64


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def fn(x: Any, ids: Any) -> Any:
        table = x.builder.constant(np.arange(12, dtype=np.float32).reshape(6, 2))
        rows = o.gather(table, o.reshape(ids, shape=(B, 1)), axes=(0,))
        return o.concat(x, rows, axis=1), o.reduce_sum(x, axes=(1,))
    graph = trace(fn, [TensorType(F32, (B, T)), TensorType(I64, (B,))], ["x", "ids"])
    module = Module(graph, ("rows", "total"), {"B": Symbol("B", 1, 8), "T": Symbol("T", 0)})
    return build(module, tmp_path_factory.mktemp("run") / "m", target=named("generic", threads=4))


@pytest.fixture
def model(built: Path) -> runtime.Model:
    return runtime.load(built)


def given(b: int = 2, t: int = 3) -> dict[str, Any]:
    return {"x": np.arange(b * t, dtype=np.float32).reshape(b, t), "ids": np.arange(b) % 6}


def wanted(x: Any, ids: Any) -> list[Any]:
    table = np.arange(12, dtype=np.float32).reshape(6, 2)
    return [np.concatenate([x, table[ids]], 1), x.sum(1, keepdims=True)]


def assert_right(out: dict[str, Any], inputs: dict[str, Any]) -> None:
    assert list(out) == ["rows", "total"]
    for got, want in zip(out.values(), wanted(**inputs), strict=True):
        np.testing.assert_allclose(got, want)


def test_sizes_may_change_from_run_to_run(model: runtime.Model) -> None:
    for b, t in ((2, 3), (8, 100), (1, 0), (3, 5)):
        assert_right(model(**given(b, t)), given(b, t))


def test_arrays_need_not_be_contiguous(model: runtime.Model) -> None:
    x = np.arange(24, dtype=np.float32).reshape(6, 4)[::2, ::-1]
    assert_right(model(x=x, ids=np.arange(6)[::2]), {"x": x, "ids": np.arange(6)[::2]})


def test_torch_tensors_are_taken(model: runtime.Model) -> None:
    torch = pytest.importorskip("torch")
    tensors = {k: torch.from_numpy(v) for k, v in given().items()}
    assert_right(model(**tensors), given())


def test_indices_out_of_range_stay_inside(model: runtime.Model) -> None:
    x = np.zeros((2, 1), np.float32)
    width = model(x=x, ids=np.array([0, 1]))["rows"].shape[1]
    out = {"rows": np.empty((2, width), np.float32)}
    with pytest.raises(InputError, match="GT0501"):
        model.run({"x": x, "ids": np.array([10**12, -5])}, out)
    np.testing.assert_array_equal(out["rows"][:, 1:], [[10, 11], [0, 1]])


def test_results_may_be_given(model: runtime.Model) -> None:
    out = {"rows": np.empty((2, 5), np.float32)}
    assert model.run(given(), out)["rows"] is out["rows"]
    assert_right(model.run(given(), out), given())


def test_a_call_repeats_the_run(model: runtime.Model) -> None:
    inputs = given()
    out = model.run(inputs)
    inputs["x"] += 1
    model.call()
    assert_right(out, inputs)


def test_a_bound_call_reads_and_writes_fixed_arrays(model: runtime.Model) -> None:
    inputs = given()
    rows = np.empty((2, 5), np.float32)
    call = model.bind(inputs, {"rows": rows})
    other = model.bind(given(5, 2))
    inputs["x"] += 1
    out = call()
    assert out["rows"] is rows and call() is out is call.outputs
    assert_right(out, inputs)
    assert_right(other(), given(5, 2))  # it has sizes and an arena of its own
    inputs["ids"][0] = 10**12
    with pytest.raises(InputError, match="GT0501"):
        call()
    with pytest.raises(InputError, match="x must be a contiguous array"):
        model.bind({**inputs, "x": np.ones((2, 6), np.float32)[:, ::2]})
    with pytest.raises(InputError, match="GT2210"):
        model.bind({"x": inputs["x"]})


def test_a_bound_call_starts_a_donated_output_from_its_input(tmp_path: Path) -> None:
    graph = trace(lambda x: x + 1, [TensorType(F32, (4,))], ["x"])
    module = Module(graph, ("y",), donations=((0, 0),))
    model = runtime.load(build(module, tmp_path / "m", target=named("generic")))
    x = np.zeros(4, np.float32)
    apart, same = model.bind({"x": x}), model.bind({"x": x}, {"y": x})
    assert (apart()["y"] == 1).all() and (apart()["y"] == 1).all() and (x == 0).all()
    assert same()["y"] is x and (same()["y"] == 2).all() and (apart()["y"] == 3).all()


def test_each_thread_with_its_own_model(built: Path) -> None:
    faults: list[str] = []

    def work(seed: int) -> None:
        mine, inputs = runtime.load(built, threads=2), given(seed % 8 + 1, seed * 7)
        for _ in range(50):
            for got, want in zip(mine(**inputs).values(), wanted(**inputs), strict=True):
                if not np.allclose(got, want):
                    faults.append(f"seed {seed}")
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert faults == []


FORKED = """
import os, sys, numpy, graphtool
model = graphtool.load(sys.argv[1], threads=2)
inputs = {"x": numpy.ones((8, 1 << 20), "f4"), "ids": numpy.zeros(8, int)}
want = model(**inputs)["total"]
child = os.fork()
if child == 0:
    first = numpy.array_equal(model(**inputs)["total"], want)
    os._exit(0 if first and numpy.array_equal(model(**inputs)["total"], want) else 1)
again = numpy.array_equal(model(**inputs)["total"], want)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if again else 2)
"""


def test_a_child_of_a_process_that_ran_two_threads(built: Path) -> None:
    """It hung, because OpenMP's threads are not in the child."""
    subprocess.run([sys.executable, "-c", FORKED, str(built)], check=True, timeout=300)


BAD: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "missing": ("GT2210", lambda g: g.pop("ids")),
    "unknown": ("GT2211", lambda g: g.update(z=1)),
    "type": ("GT2212", lambda g: g.update(x=g["x"].astype(np.float64))),
    "rank": ("GT2213", lambda g: g.update(x=g["x"][0])),
    "disagree": ("GT2214", lambda g: g.update(ids=np.arange(3))),
    "range": ("GT2215", lambda g: g.update(given(9, 2))),
}


@pytest.mark.parametrize("name", BAD)
def test_inputs_that_do_not_fit(name: str, model: runtime.Model) -> None:
    code, spoil = BAD[name]
    inputs = given()
    spoil(inputs)
    with pytest.raises(InputError) as caught:
        model.run(inputs)
    assert caught.value.code == code
    assert_right(model(**given()), given())


@pytest.mark.parametrize("out", [np.empty((2, 4), np.float32), np.empty((2, 5)),
                                 np.empty((5, 2), np.float32).T,
                                 np.broadcast_to(np.float32(0), (2, 5))])
def test_results_that_do_not_fit(out: Any, model: runtime.Model) -> None:
    with pytest.raises(InputError, match="GT2216"):
        model.run(given(), {"rows": out})


def test_a_rebuilt_library_is_another_one(tmp_path: Path) -> None:
    """The old one goes on as it was; nothing is written, so a read-only system can load."""
    def adding(n: float) -> runtime.Model:
        graph = trace(lambda x: x + n, [TensorType(F32, (2,))], ["x"])
        build(Module(graph, ("y",)), tmp_path / "m", target=named("generic", threads=1))
        return runtime.load(tmp_path / "m")
    models = [adding(n) for n in (1.0, 2.0, 3.0)]
    assert [m(x=np.zeros(2, np.float32))["y"][0] for m in models] == [1, 2, 3]


# ---- damaged builds ----------------------------------------------------------------------------

@pytest.fixture
def copy(built: Path, tmp_path: Path) -> Path:
    for p in built.iterdir():
        (tmp_path / p.name).write_bytes(p.read_bytes())
    return tmp_path


def test_another_json(copy: Path) -> None:
    (copy / "build.json").write_text('{"format": "graphtool/graph", "version": 1}')
    with pytest.raises(InputError, match="GT2201"):
        runtime.load(copy)


@pytest.mark.parametrize("change", [{"arena": []}, {"inputs": 3}, {"surprise": 1}])
def test_a_malformed_manifest(change: dict[str, Any], copy: Path) -> None:
    manifest = json.loads((copy / "build.json").read_text()) | change
    (copy / "build.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="GT2201"):
        runtime.load(copy)


@pytest.mark.parametrize("damage", [b"", b"not a library"])
def test_a_damaged_library(damage: bytes, copy: Path) -> None:
    (copy / "libmodel.so").write_bytes(damage)
    with pytest.raises(InputError, match="GT2203"):
        runtime.load(copy)


def test_weights_cut_short(copy: Path) -> None:
    path = copy / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(InputError, match="GT2204"):
        runtime.load(copy)


def test_no_build_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        runtime.load(tmp_path / "nowhere")


SAMPLES = Path(__file__).parents[2] / "samples"


def test_fixed_sizes_need_no_algebra(tmp_path: Path) -> None:
    """Loading a model is quick: what only open sizes or other targets need is not imported."""
    module = graphtool.import_model(SAMPLES / "digits.onnx", dynamic={"batch": (1, 1)})
    built = graphtool.build(module, tmp_path / "b")
    code = ("import sys, numpy, graphtool\nmodel = graphtool.load(sys.argv[1])\n"
            "model(image=numpy.ones((1, 1, 8, 8), 'f4'))\n"
            "print(*{m.split('.')[1] for m in sys.modules if m.startswith('graphtool.')})")
    done = subprocess.run([sys.executable, "-c", code, str(built)], capture_output=True, text=True,
                          check=True)
    assert {"symbolic", "target"}.isdisjoint(done.stdout.split()), done.stdout


def test_loading_needs_numpy_only(built: Path) -> None:
    """A deployed model starts at once, on a machine that has nothing else."""
    code = ("import sys, numpy\nbefore = set(sys.modules)\n"
            "import graphtool\nmodel = graphtool.load(sys.argv[1])\n"
            "model(x=numpy.ones((2, 3), 'f4'), ids=numpy.zeros(2, int))\n"
            "print(*set(sys.modules) - before)")
    done = subprocess.run([sys.executable, "-c", code, str(built)], capture_output=True, text=True,
                          check=True)
    found = set(done.stdout.split())
    mine = {name for name in found if name.startswith("graphtool")}
    assert {name.split(".")[0] for name in found - mine} <= sys.stdlib_module_names
    assert {name.split(".")[1] for name in mine if "." in name} == {
        "dtypes", "errors", "escaping", "io", "machines", "native", "symbolic"} and len(
            mine) <= 34
    assert "importlib.metadata" not in found  # as slow as all of graphtool
    assert "tempfile" not in found  # 5 of 20 ms
