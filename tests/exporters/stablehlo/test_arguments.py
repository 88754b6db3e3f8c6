"""Parameters as arguments: the text, the file beside it, and the round trip."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from graphtool import dtypes, import_model, interp
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.errors import InputError
from graphtool.exporters.stablehlo import export_stablehlo
from graphtool.importers.stablehlo import import_text
from graphtool.ir.graph import Graph, Module, TensorType, is_parameter
from graphtool.ir.trace import Builder

F = TensorType(dtypes.float32, (2,))


def exported(module: Module, path: Path) -> tuple[Module, dict[str, Any]]:
    export_stablehlo(module, path, arguments=True)
    return import_text(path.read_text()), safetensors.numpy.load_file(f"{path}.safetensors")


@pytest.mark.torch
def test_a_model(tmp_path: Path) -> None:
    module = import_model("samples/mlp.py:model")
    again, held = exported(module, tmp_path / "m.mlir")
    names = [v.hint for v in again.graph.inputs]
    assert names[:3] == ["x", "fc1.weight", "fc1.bias"] and set(names[1:]) == set(held)
    assert not any(map(is_parameter, again.graph.nodes))
    text = (tmp_path / "m.mlir").read_text()
    assert text.startswith('module @graphtool attributes {graphtool.weights = '
                           '"m.mlir.safetensors"} {\n')
    assert ('tensor<10xf32> {graphtool.parameter = "fc3.bias"} loc("fc3.bias")' in text
            and len(text) < 9000)
    x = made_up.random_inputs(module, 0, {})
    for a, b in zip(interp.run(again, x | held).values(), interp.run(module, x).values(),
                    strict=True):
        np.testing.assert_array_equal(a, b)
    held["fc3.bias"] += 1
    (moved,), (was,) = interp.run(again, x | held).values(), interp.run(module, x).values()
    np.testing.assert_allclose(moved, was + 1, rtol=1e-5, atol=1e-5)


def odd() -> tuple[Module, Any]:
    """A parameter with the name of an input, one with odd characters, a half, and one of int4."""
    b = Builder()
    x = b.input(F, "x")
    data = [np.array([1, 2], np.float32), np.array([3, 4], np.float32),
            np.array([5, 6]).astype(dtypes.bfloat16.numpy), np.array([7, -8]).astype(
                dtypes.int4.numpy)]
    p = [b.constant(d, n, param=True) for d, n in zip(data, ("x", "a['b'].c", "half", "int"),
                                                      strict=True)]
    y = x * p[0] + p[1] + o.cast(p[2], dtype=F.dtype) + o.cast(p[3], dtype=F.dtype)
    return Module(Graph((x.value,), tuple(b.nodes), (y.value,)), ("y",)), np.float32([1, -1])


def test_odd_names_and_types(tmp_path: Path) -> None:
    module, x = odd()
    again, held = exported(module, tmp_path / "m.mlir")
    assert [v.hint for v in again.graph.inputs] == ["x", "x#2", "a['b'].c", "half"]
    assert set(held) == {"x#2", "a['b'].c", "half"}
    assert sum(map(is_parameter, again.graph.nodes)) == 1
    assert held["half"].dtype == dtypes.bfloat16.numpy
    (got,) = interp.run(again, {"x": x, **held}).values()
    np.testing.assert_array_equal(got, [1 + 3 + 5 + 7, -2 + 4 + 6 - 8])


def test_parameters_of_branches_that_have_one_name(tmp_path: Path) -> None:
    def branch(scale: float) -> Graph:
        b = Builder()
        x = b.input(F, "x")
        y = x * b.constant(np.array([scale, 2], np.float32), "w", param=True)
        return Graph((x.value,), tuple(b.nodes), (y.value,))
    b = Builder()
    flag, x = b.input(TensorType(dtypes.bool_, ()), "flag"), b.input(F, "x")
    y = o.cond(flag, x, then=branch(3), orelse=branch(5))
    y = y[0] if isinstance(y, tuple) else y
    module = Module(Graph((flag.value, x.value), tuple(b.nodes), (y.value,)), ("y",))
    again, held = exported(module, tmp_path / "m.mlir")
    assert set(held) == {"w", "w#2"}
    for flag_now, want in ((True, [3, 2]), (False, [5, 2])):
        (got,) = interp.run(again, {"flag": np.array(flag_now), "x": np.ones(2, np.float32),
                                    **held}).values()
        np.testing.assert_array_equal(got, want)


def test_without_parameters_there_is_one_file(tmp_path: Path) -> None:
    b = Builder()
    x = b.input(F, "x")
    export_stablehlo(Module(Graph((x.value,), tuple(b.nodes), (x.value,)), ("y",)),
                     tmp_path / "m.mlir", arguments=True)
    assert [p.name for p in tmp_path.iterdir()] == ["m.mlir"]


def test_a_failure_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="GT0330"):
        export_stablehlo(odd()[0], tmp_path / "none" / "m.mlir", arguments=True)
    assert not list(tmp_path.iterdir())


def test_the_interpreter_agrees(tmp_path: Path) -> None:
    pytest.importorskip("jaxlib")
    from tests.exporters.stablehlo.test_peers import interpreter
    from tests.lab.hlo_peers import parsed
    module = import_model("samples/mlp.py:model")
    again, held = exported(module, tmp_path / "m.mlir")
    text, x = (tmp_path / "m.mlir").read_text(), made_up.random_inputs(module, 0, {})
    parsed(text)
    given = [(x | held)[v.hint] for v in again.graph.inputs]
    (got,), (want,) = interpreter(text, given), interp.run(module, x).values()
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
