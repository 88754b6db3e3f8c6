"""Times single operators on one thread, beside torch and onnxruntime, call by call in turns.

All contestants of an operator are in one process, which is pinned to one processor; each writes
into buffers that were bound before where it has such an interface. The table begins with the worst.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import stats, tables, work
from benchmarks.jobs import short
from benchmarks.models.operators import OPSET, Array, Operator, operators
from benchmarks.stats import OURS
from benchmarks.work import Journal, Row
from benchmarks.worker import pin, rounds

LINE = 64  # bytes of a cache line
TOLERANCE = 1e-3  # of a result, over its largest number: beyond that the row is no comparison


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--filter", default="*", metavar="GLOB",
                        help="only the operators whose name matches, e.g. 'Conv*'")
    parser.add_argument("--quick", action="store_true", help="three short rounds each")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.05, help="of each round")
    parser.add_argument("--below", type=float, metavar="RATIO",
                        help="time again the operators whose ratio in the journal is below this")
    parser.add_argument("--march", help="of our builds; default: this processor's")
    parser.add_argument("--report-only", action="store_true", help="time nothing")


def main(options: argparse.Namespace) -> int:
    if options.quick:
        options.rounds, options.seconds = 3, 0.02
    pin(1)
    journal = Journal(work.results("ops.jsonl"), lambda row: row["name"])
    known = journal.rows()
    chosen = [o for o in operators() if fnmatch.fnmatch(o.name.lower(), options.filter.lower())]
    if options.below:
        chosen = [o for o in chosen if (_ratio(known.get(o.name, {})) or 0.0) < options.below]
    for one in () if options.report_only else chosen:
        row = {"name": one.name, "rounds": options.rounds, "seconds": options.seconds,
               **work.stamp(), **measured(one, options)}
        journal.add(row)
        print(_said(row), flush=True)
    rows = [r for r in map(journal.rows().get, (o.name for o in operators())) if r]
    text = report(rows, options.command_line)
    work.results("ops.md").write_text(text)
    print(f"\n{text}\n{work.results('ops.md')} written")
    return sum(OURS in row["errors"] for row in rows)


# ---- the contestants ----------------------------------------------------------------------------


def measured(one: Operator, options: argparse.Namespace) -> Row:
    """`times` by contestant: median milliseconds, least, spread; `errors` of what failed."""
    folder = work.root() / "ops" / hashlib.sha1(one.name.encode()).hexdigest()[:10]
    folder.mkdir(parents=True, exist_ok=True)
    runs: dict[str, tuple[Callable[[], Any], list[Array]]] = {}
    errors: dict[str, str] = {}
    for name, load in CONTESTANTS.items():
        try:
            loaded = load(one, folder, options.march)
        except Exception as error:
            errors[name] = short(error)
            continue
        if loaded:
            runs[name] = loaded
    samples: dict[str, list[list[float]]] = {name: [] for name in runs}
    for k in range(options.rounds):
        for name in list(runs)[::1 if k % 2 == 0 else -1]:
            samples[name].append(rounds(runs[name][0], options.seconds, 2000))
    times = {name: vars(stats.summary(s)) for name, s in samples.items()}
    return {"times": times, "errors": errors, "difference": _difference(runs)}


def _difference(runs: dict[str, tuple[Callable[[], Any], list[Array]]]) -> float | None:
    """The largest from a peer's result over its largest number."""
    got = runs.get(OURS)
    peers = [arrays for name, (_, arrays) in runs.items() if name != OURS]
    if got is None or not peers:
        return None
    return max(work.error_of([a.astype(np.float64) for a in got[1]], p) for p in peers)


def onnx_model(one: Operator) -> bytes:
    """An ONNX model of one node."""
    from onnx import helper, numpy_helper
    names = [f"x{i}" if o else "" for i, o in enumerate(one.operands)]
    inputs, held = [], []
    for name, operand in zip(names, one.operands, strict=True):
        if operand and operand.constant:
            held.append(numpy_helper.from_array(operand.array, name))
        elif operand:
            inputs.append(helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(operand.array.dtype), operand.array.shape))
    results = [f"y{i}" for i in range(one.outputs)]
    opset = 23 if one.op == "RMSNormalization" else OPSET
    graph = helper.make_graph([helper.make_node(one.op, names, results, **one.attributes)], "op",
                              inputs, [helper.make_empty_tensor_value_info(n) for n in results],
                              held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return bytes(_typed(model).SerializeToString())


def _typed(model: Any) -> Any:
    """With the types of the outputs, which onnx infers."""
    from onnx import shape_inference
    return shape_inference.infer_shapes(model, data_prop=True)


def _inputs(one: Operator) -> dict[str, Array]:
    return {f"x{i}": _at_line(o.array) for i, o in enumerate(one.operands) if o and not o.constant}


def _at_line(array: Array) -> Array:
    """A copy that starts at a cache line, as onnxruntime's own memory does: across lines, reading
    takes up to half as long again, and numpy leaves it to chance."""
    room = np.empty(array.nbytes + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    copy = room[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _ours(one: Operator, folder: Path, march: str | None) -> Any:
    import graphtool
    shutil.rmtree(folder / "build", ignore_errors=True)
    if one.op:
        path = folder / "model.onnx"
        path.write_bytes(onnx_model(one))
        module = graphtool.import_model(path)
    else:
        module = graphtool.import_model(_exported(one))
    built = (graphtool.build(module, folder / "build", threads=1, target=march) if march else
             graphtool.build(module, folder / "build", threads=1))
    model = graphtool.load(built, 1)
    names = [s.name for s in model.inputs]
    arrays = _inputs(one).values()
    results = model.run(dict(zip(names, arrays, strict=True)))
    return model.call, list(results.values())


def _exported(one: Operator) -> Any:
    import torch

    class Net(torch.nn.Module):
        def forward(self, *arrays: Any) -> Any:
            assert one.torch
            return one.torch(*arrays)
    return torch.export.export(Net(), tuple(map(torch.from_numpy, _inputs(one).values())))


def _onnxruntime(one: Operator, folder: Path, march: str | None) -> Any:
    if not one.op:
        return None
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(onnx_model(one), options, providers=["CPUExecutionProvider"])
    feeds = _inputs(one)
    binding = session.io_binding()
    for port in session.get_inputs():
        binding.bind_ortvalue_input(port.name, ort.OrtValue.ortvalue_from_numpy(feeds[port.name]))
    results = [ort.OrtValue.ortvalue_from_numpy(np.empty_like(a))
               for a in session.run(None, feeds)]
    for port, value in zip(session.get_outputs(), results, strict=True):
        binding.bind_ortvalue_output(port.name, value)
    session.run_with_iobinding(binding)
    return lambda: session.run_with_iobinding(binding), [r.numpy() for r in results]


def _torch(one: Operator, folder: Path, march: str | None) -> Any:
    if one.torch is None:
        return None
    import torch
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    arrays = [torch.from_numpy(_at_line(o.array)) if o else None for o in one.operands]
    run = one.torch
    result = run(*arrays)
    several = result if isinstance(result, (tuple, list)) else [result]
    return lambda: run(*arrays), [t.numpy() for t in several]


CONTESTANTS: dict[str, Callable[[Operator, Path, str | None], Any]] = {
    OURS: _ours, "onnxruntime": _onnxruntime, "torch": _torch}


# ---- the table ----------------------------------------------------------------------------------


def _medians(row: Row) -> dict[str, float]:
    return {name: t["median"] for name, t in row.get("times", {}).items()}


def _ratio(row: Row) -> float | None:
    return stats.ratio(_medians(row))


def _said(row: Row) -> str:
    ratio = _ratio(row)
    return f"{row['name']:28}" + ("–" if ratio is None else f"{ratio:6.2f}") + "  " + ", ".join(
        f"{n} {1e3 * t:.1f} µs" for n, t in _medians(row).items()) + "".join(
        f"; {n}: {e}" for n, e in row["errors"].items()) + (
        f"; difference {row['difference']:.1e}" if (row["difference"] or 0) > TOLERANCE else "")


def report(rows: list[Row], command: str = "") -> str:
    """Markdown: microseconds of each operator, the least ratio first."""
    ratios = [r for r in map(_ratio, rows) if r]
    if not ratios:
        return "Nothing was timed.\n"
    last = rows[-1]
    body = [[row["name"], *(tables.number(1e3 * t if (t := _medians(row).get(n)) else None)
                            for n in CONTESTANTS),
             tables.number(_ratio(row)),
             f"{100 * max(t['spread'] for t in row['times'].values()):.0f} %",
             tables.error(row["difference"])]
            for row in sorted(rows, key=lambda row: _ratio(row) or 0.0)]
    out = ["# Single operators on one thread", "",
           f"{last['date']}, {last['cpu']}, {last['cores']} cores; float32 unless the name says "
           f"more; in turns in one process, {last['rounds']} rounds of {last['seconds']} s, "
           "medians of all calls in microseconds. The ratio is the best peer's time over "
           "graphtool's; the spread is the largest of the contestants'; the difference is that of "
           "the results, over the largest number." + (f" Command: `{command}`." if command else ""),
           "",
           tables.markdown(["operator", *(f"{n} µs" for n in CONTESTANTS), "ratio", "spread",
                            "difference"], body),
           f"Geometric mean {stats.geometric_mean(ratios):.2f}, least {min(ratios):.2f}; below 1: "
           f"{sum(r < 1 for r in ratios)} of {len(ratios)}."]
    out += [f"{row['name']}: {n}: {e}." for row in rows for n, e in row["errors"].items()]
    return "\n\n".join(["\n".join(out[:4]), *out[4:]]) + "\n"
