"""Conditions that torch.export records of open sizes are conditions of the module, and checked."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.export import Dim, export
from torch.fx.experimental.symbolic_shapes import sym_or

from graphtool import interp
from graphtool.cli.faults import run as cli
from graphtool.compile.as_is import build
from graphtool.dtypes import float32
from graphtool.errors import InputError, UnsupportedError
from graphtool.importers.torch import import_torch, read_pt2
from graphtool.importers.torch.driver.captured import CapturedProgram, GraphInput
from graphtool.importers.torch.driver.exprs import conditions
from graphtool.io import npz
from graphtool.ir.graph import Module, TensorType
from graphtool.native import runtime
from graphtool.symbolic import symbol

OPEN, N = Dim.DYNAMIC, Dim("_dim", min=2, max=64)


class Function(torch.nn.Module):
    def __init__(self, fn: Callable[..., Any]) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, x: Any, y: Any = None) -> Any:
        return self.fn(x) if y is None else self.fn(x, y)


def branch(x: Any, y: Any) -> Any:
    return x.sum() + y.sum() if x.shape[0] > 2 * y.shape[0] else x.mean() - y.mean()


def unless_7(x: Any) -> Any:
    return x * 2 if x.shape[0] != 7 else x


def halves(x: Any) -> Any:
    return x.view(x.shape[0] // 2, 2, -1).transpose(0, 1)


def nested(x: Any) -> Any:
    return x["a"][:, ::2] + x["b"][0]


def one_of_two(x: Any, y: Any) -> Any:
    torch._check(sym_or(x.shape[0] % 4 == 0, x.shape[0] >= 2 * y.shape[0]))
    return x.sum() + y


# the function, sample shapes, open dims, what `show` prints, shapes that fit, and that do not
CASES: dict[str, tuple[Callable[..., Any], Any, Any, str, list[Any], list[Any]]] = {
    "a multiple": (lambda x: x.reshape(-1, 4).sum(1), [24], [{0: 4 * N}], "input x: f32[4*s",
                   [[8], [40]], [[9], [4], [400]]),
    "a line": (lambda x, y: torch.cat([x, y]) * 2, [9, 4], [{0: 2 * N + 1}, {0: N}], " + 1]",
               [[7, 3]], [[8, 4], [9, 3]]),
    "lines alone": (lambda x, y: torch.cat([x, y]) * 2, [9, 6], [{0: 4 * N + 1}, {0: 3 * N}],
                    "input y: f32[3*s", [[13, 9]], [[13, 6], [12, 9], [13, 8]]),
    "a remainder": (lambda x: x.reshape(-1, 4).sum(1), [24], [{0: OPEN}], " % 4 == 0",
                    [[8], [40]], [[9], [4]]),
    "a branch": (branch, [9, 4], [{0: OPEN}, {0: OPEN}], "require max(2*s", [[7, 3]], [[6, 3]]),
    "not equal": (unless_7, [9], [{0: OPEN}], "require max(1, s", [[6], [8]], [[7]]),
    "halves": (halves, [[8, 6]], [{0: OPEN, 1: OPEN}], "require (s", [[[4, 3]]], [[[5, 3]]]),
    "in a dict": (nested, [{"a": [8, 6], "b": [[3]]}], [{"a": {1: OPEN}, "b": [{0: OPEN}]}],
                  "+ 1)//2) == s", [[{"a": [8, 9], "b": [[5]]}]], [[{"a": [8, 9], "b": [[4]]}]]),
}


def made(shape: Any) -> Any:
    if isinstance(shape, dict):
        return {k: made(v) for k, v in shape.items()}
    if isinstance(shape, list) and shape and isinstance(shape[0], list):
        return [made(s) for s in shape]
    return torch.randn(shape)


def exported(name: str) -> Any:
    fn, shapes, dims, *_ = CASES[name]
    open_ = dict(zip(("x", "y"), dims, strict=False))
    if len(shapes) == 1:
        open_["y"] = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return export(Function(fn), tuple(map(made, shapes)), dynamic_shapes=open_ if len(
            shapes) > 1 else (dims[0],))


def inputs(module: Module, args: Any) -> dict[str, Any]:
    leaves = torch.utils._pytree.tree_leaves(args)
    return {v.hint: t.numpy() for v, t in zip(module.graph.inputs, leaves, strict=True)}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("decomposed", [False, True])
def test_a_saved_program_keeps_its_conditions(name: str, decomposed: bool, tmp_path: Path,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    """The evaluator and compiled C agree with torch, and refuse what torch refuses."""
    fn, _, _, shown, fits, others = CASES[name]
    program = exported(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(program.run_decompositions() if decomposed else program,
                          tmp_path / "m.pt2")
    assert cli(["import", str(tmp_path / "m.pt2"), "-o", str(tmp_path / "m.graph.json")]) == 0
    assert cli(["show", str(tmp_path / "m.graph.json")]) == 0 and shown in capsys.readouterr().out
    module = read_pt2(tmp_path / "m.pt2")
    model = runtime.load(build(module, tmp_path / "b", name="m"))
    for shapes in fits:
        args = [made(s) for s in shapes]
        want = fn(*args).numpy()
        for run in (lambda xs: interp.run(module, xs), model.run):
            got, = run(inputs(module, args)).values()
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    for shapes in others:
        args = [made(s) for s in shapes]
        for run in (lambda xs: interp.run(module, xs), model.run):
            with pytest.raises(InputError) as found:
                run(inputs(module, args))
            assert found.value.code in ("GT0514", "GT0515", "GT0516", "GT2213", "GT2215", "GT2231")


@pytest.mark.parametrize("name", ["a remainder", "a branch"])
def test_a_live_program_keeps_its_conditions(name: str) -> None:
    *_, others = CASES[name]
    module = import_torch(exported(name), ())
    with pytest.raises(InputError, match="does not hold"):
        interp.run(module, inputs(module, [made(s) for s in others[0]]))


def test_one_of_two_conditions_is_enough() -> None:
    program = export(Function(one_of_two), (made(9), made(4)),
                     dynamic_shapes=({0: OPEN}, {0: OPEN}))
    module = import_torch(program, ())
    for sizes in ((8, 7), (7, 3)):
        args = [made(n) for n in sizes]
        got, = interp.run(module, inputs(module, args)).values()
        np.testing.assert_allclose(got, one_of_two(*args).numpy(), rtol=1e-5)
    with pytest.raises(InputError, match="does not hold"):
        interp.run(module, inputs(module, [made(7), made(4)]))


def test_a_program_reads_sizes_from_derived_dims(tmp_path: Path) -> None:
    """The executable of C finds n from an input of 4*n + 1 elements."""
    module = import_torch(exported("lines alone"), ())
    folder = build(module, tmp_path / "b", name="m", exe=True)
    import subprocess
    for sizes, code in (((13, 9), 0), ((13, 6), 3), ((12, 9), 3)):
        xs = inputs(module, [made([n]) for n in sizes])
        npz.save(xs, tmp_path / "in.npz")
        run = subprocess.run([folder / "m", "-o", tmp_path / "out.npz", tmp_path / "in.npz"],
                             capture_output=True, text=True, check=False)
        assert (run.returncode, "GT2213" in run.stderr) == (code, code == 3), run.stderr
    assert npz.load(tmp_path / "out.npz")["output"].shape == (22,)


def program(*shape: Any) -> CapturedProgram:
    return CapturedProgram((GraphInput("x", "user", "x"),), (), (),
                           {"x": TensorType(float32, shape)})


@pytest.mark.parametrize(("text", "want"), [
    ("L['x'].size()[0] % 4 == 0", "(n%4) == 0"), ("L['x'].size()[0] >= 2", ""),
    ("L['x'].size()[0] > 2", "max(3, n) == n"), ("L['x'].size()[0] != 2", "max(3, n) == n"),
    ("L['x'].size()[0] < 9", "max(9, n + 1) == 9"), ("L['x'].size()[0] <= 99", ""),
    ("min(16*L['x'].size()[0], 48*L['x'].size()[0]) == 16*L['x'].size()[0]", ""),
    ("max(4, L['x'].size()[0]) == abs(-4)", "max(4, n) == 4"),
    ("2 < L['x'].size()[0] < 9", "max(3, n) == n, max(9, n + 1) == 9"),
    ("L['x'].size()[0] % 3 == 0 and L['x'].size()[0] <= 60", "(n%3) == 0, max(60, n) == 60"),
    ("L['x'].size()[0] == 4 or L['x'].size()[0] == 8", "n*n - 12*n + 32 == 0"),
    ("L['x'].size()[0] == 4 or L['x'].size()[0] >= 2", ""),
    ("L['x'].size()[0] != 1", ""), ("L['x'].stride()[0] == 1", ""), ("L['k'] == 3", "")])
def test_texts(text: str, want: str) -> None:
    found = conditions([text], program(symbol("n", 2, 99)))
    assert ", ".join(map(str, found)) == want


@pytest.mark.parametrize("text", [
    "L['x'].size()[0] in (1, 2)", "L['x'].size()[7] == 1", "L['z'].size()[0] == 1",
    "__import__('os').getcwd() == L['x'].size()[0]", "L['x'].size()[0] == 1 or True",
    "L['x'].size()[0] ==", "min() == L['x'].size()[0]"])
def test_a_condition_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedError) as found:
        conditions([text], program(symbol("n", 2, 99)))
    assert found.value.code == "GT1102"
