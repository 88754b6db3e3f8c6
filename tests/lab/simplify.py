"""`simplify` over many ONNX models: nodes before and after, and whether the values stay equal.

The models are ONNX's own backend cases, those of `simplify_models`, the samples, and every op of
our table as the exporter writes it.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto, TensorProto

from benchmarks import tables, work
from graphtool import dtypes
from graphtool.cli.simplifying import simplified
from graphtool.errors import GraphtoolError
from graphtool.exporters.onnx import model_of, node_counts
from graphtool.importers.onnx import import_model
from tests.lab.simplify_models import TEXTS, exported

SAMPLES = Path(__file__).parents[2] / "samples"
HEAD = ("model", "before", "after", "why", "values")
Feed = Mapping[str, Any]
REASONS = (  # what ONNX cannot say at once, by the first operator that shows it
    ("Attention", "before opset 24 onnxruntime counts causal masks from another corner"),
    ("Sequence", "a sequence becomes its tensors"), ("Loop", "a loop with a condition: the steps "
     "that its number bounds, and a branch in each"), ("FlexAttention", "its body is inlined"),
    ("Scan", "a batch of scans is a scan of scans"), ("Upsample", "removed from ONNX"),
    ("Softmax", "before opset 13 it meant another thing"), ("LogSoftmax", "the same"),
    ("PRelu", "before opset 7 the slope was not broadcast"), ("Dropout", "a constant as output"),
    ("Split", "constants as outputs"), ("Constant", "a constant as output"),
    ("Gradient", "a constant as output"), ("Tile", "before opset 13, on constants"),
    ("Gemm", "a constant 0 is added"), ("Shape", "sizes that are data"))


@dataclass(frozen=True)
class Row:
    """A model's nodes before and after, and the largest difference of its values; `fault` is why
    there are none."""

    name: str
    before: int
    after: int
    fault: str = ""
    error: float | None = None
    why: str = ""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="*", default=(), help="models whose name has one of these")


def main(options: argparse.Namespace) -> int:
    """Run all, write the table of those that grow or differ; how many differ or fail."""
    rows = []
    for name, make, feeds in models():
        if not options.only or any(o in name for o in options.only):
            rows.append(row_of(name, make(), feeds))
            if rows[-1].fault or rows[-1].after > rows[-1].before:
                print(" | ".join(cells(rows[-1])), flush=True)
    text = report(rows, options.command_line)
    if not options.only:
        work.results("simplify.md").write_text(text)
    print(text.splitlines()[2])
    return sum(bool(r.fault) for r in rows)


def models() -> Iterator[tuple[str, Callable[[], ModelProto], Sequence[Feed]]]:
    """(name, what makes the model, inputs of some runs)."""
    from tests.lab.suite.cases import cases
    for case in cases():
        if case.kind != "real":
            plain = all(isinstance(x, np.ndarray) for xs, _ in case.data_sets for x in xs)
            feeds = [dict(zip(case.inputs, xs, strict=True)) for xs, _ in case.data_sets]
            yield f"onnx: {case.name}", partial(_same, case.model), feeds if plain else ()
    for name, text in TEXTS.items():
        model = text.model()
        yield f"text: {name}", partial(_same, model), [] if text.random else [
            feed(model, sizes) for sizes in text.sizes]
    for path in sorted(SAMPLES.glob("*.onnx")):
        yield f"sample: {path.stem}", partial(onnx.load, path), [
            feed(onnx.load(path), {"batch": 2})]
    for name, make in exported().items():
        yield f"torch: {name}", make, [{}]
    yield from _ops()


def _ops() -> Iterator[tuple[str, Callable[[], ModelProto], Sequence[Feed]]]:
    from tests.cases import CASES, arrays
    from tests.exporters.onnx.test_cases import module
    for case in CASES:
        with contextlib.suppress(GraphtoolError):
            model = model_of(module(case))
            xs = [x for x in arrays(case) if isinstance(x, np.ndarray)]
            yield f"op: {case.name}", partial(_same, model), [
                dict(zip((v.name for v in model.graph.input), xs, strict=True))]


def _same(model: ModelProto) -> ModelProto:
    return model


def feed(model: ModelProto, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Inputs of a model: normally distributed floats, and integers −1 and 0, which any axis has."""
    rng = np.random.default_rng(0)
    held = {t.name for t in model.graph.initializer}
    out = {}
    for v in model.graph.input:
        kind = v.type.tensor_type
        shape = [sizes.get(d.dim_param, 2) if d.dim_param else d.dim_value
                 for d in kind.shape.dim]
        dtype = next(d for d in dtypes.TABLE if d.onnx == kind.elem_type)
        x = rng.standard_normal(shape) if dtype.is_float else rng.integers(-1, 1, shape)
        if v.name not in held:
            out[v.name] = np.asarray(x).astype(dtype.numpy)
    return out


# ---- one model ----------------------------------------------------------------------------------

def simpler(model: ModelProto) -> ModelProto:
    """The simplified model."""
    operations: list[Any] = []
    return model_of(simplified(import_model(model, operations=operations), operations))


def row_of(name: str, model: ModelProto, feeds: Sequence[Feed]) -> Row:
    """A model's row; a refusal of the import is none."""
    before = node_counts(model)
    try:
        after = simpler(model)
    except GraphtoolError as error:
        return Row(name, before.total(), before.total(), why=f"refused: {error.code}")
    except Exception as error:
        return Row(name, before.total(), 0, f"{type(error).__name__}: {error}"[:90])
    count = node_counts(after).total()
    why = next((words for op, words in REASONS if any(op in n for n in before)), "") if (
        count > before.total()) else ""
    row = Row(name, before.total(), count, why=why)
    if name.startswith("torch: "):
        feeds = [feed(model, {"B": b, "T": t}) for b, t in ((2, 5), (1, 1), (3, 7))]
    try:
        errors = [apart(model, after, f) for f in feeds]
    except AssertionError as error:
        return Row(name, before.total(), count, str(error)[:90], why=why)
    except Exception as error:  # onnxruntime lacks a kernel, or takes no such input
        return Row(name, before.total(), count, why=why or f"not run: {type(error).__name__}")
    return Row(row.name, row.before, row.after, "", max(errors, default=None), why)


def apart(a: ModelProto, b: ModelProto, inputs: Feed, tolerance: float = 2e-3) -> float:
    """The largest difference of two models' outputs in onnxruntime, relative to the largest value.

    Raises AssertionError above the tolerance, and for outputs of other names, types or shapes; what
    onnxruntime raises for the first model, and AssertionError if it is for the second only."""
    want = _run(a, inputs)
    try:
        got = _run(b, inputs)
    except Exception as error:
        raise AssertionError(f"only the first runs: {error}") from error
    assert want.keys() == got.keys(), f"outputs {[*got]}"
    worst = 0.0
    for name, x in want.items():
        y = got[name]
        assert x.shape == y.shape and x.dtype == y.dtype, f"{name}: {y.dtype}{y.shape}"
        if x.dtype.kind not in "fc":
            assert np.array_equal(x, y), f"{name} differs"
        elif x.size:
            wide = x.astype(np.float64), y.astype(np.float64)
            assert np.array_equal(*map(np.isnan, wide)), f"{name}: NaN elsewhere"
            largest = max(float(np.abs(wide[0][np.isfinite(wide[0])]).max(initial=0)), 1e-6)
            with np.errstate(invalid="ignore"):
                off = np.where(wide[0] == wide[1], 0.0, np.abs(wide[0] - wide[1]))
            worst = max(worst, float(np.nanmax(off, initial=0)) / largest)
    assert worst <= tolerance, f"differs by {worst:.1e}"
    return worst


def _run(model: ModelProto, inputs: Feed) -> dict[str, Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    bfloat = any(v.type.tensor_type.elem_type == TensorProto.BFLOAT16 for v in model.graph.output)
    if bfloat:
        raise NotImplementedError("numpy has no bfloat16 to give out")
    names = [v.name for v in session.get_outputs()]
    known = {v.name for v in session.get_inputs()}
    given = {n: x for n, x in inputs.items() if n in known}
    return dict(zip(names, session.run(names, given), strict=True))


# ---- the table ----------------------------------------------------------------------------------

def cells(row: Row) -> list[str]:
    return [row.name, str(row.before), str(row.after), row.why,
            row.fault or tables.error(row.error)]


def report(rows: Sequence[Row], command: str) -> str:
    """Counts, and a line for each model that grows or differs."""
    stamp = work.stamp()
    grow = [r for r in rows if r.after > r.before or r.fault]
    fewer = sum(r.after < r.before for r in rows)
    compared = [r.error for r in rows if r.error is not None]
    shown = [r for r in rows if not r.name.startswith(("onnx: ", "op: ")) and r not in grow]
    return "\n".join([
        "# simplify: nodes before and after", "",
        f"{len(rows)} models: {fewer} get fewer nodes, {len(grow)} would get more or differ; "
        f"{len(compared)} compared in onnxruntime, largest difference "
        f"{tables.error(max(compared, default=None))} of the largest value.", "",
        f"`{command}`; {stamp['date']}, {stamp['cpu']}. Constants are not counted. The verb writes "
        "a model that would get more nodes as it was.", "",
        tables.markdown(HEAD, [cells(r) for r in (*shown, *grow)])])
