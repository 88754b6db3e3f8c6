"""Quantises models by several tools from the same examples: error, and time of one inference.

Trained networks on scikit-learn's digits (`samples/`), and seeded ones of the zoo. Contestants:
graphtool by two ways of choosing ranges, onnxruntime's own tools, and nncf for OpenVINO where it is
installed. Errors are those on inputs that were not calibrated on, against float32.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import logging
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import stats, work
from benchmarks.models import QUANTISE, trained_digits
from benchmarks.stats import OURS
from benchmarks.work import Row

Array = np.ndarray[Any, Any]
Batch = Mapping[str, Array]
Run = Callable[[Batch], Array]
CALIBRATION, HELD = 8, 4  # inputs of seeded models; the trained ones have images
IMAGES = 128


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=0.2, help="of calls in a round")
    parser.add_argument("--rounds", type=int, default=5)


def main(options: argparse.Namespace) -> int:
    """Quantise and time each model; the report, of earlier runs too, goes to
    results/quantise.md."""
    logging.disable(logging.WARNING)
    journal = work.Journal(work.results("quantise.jsonl"), lambda row: row["name"])
    for name in options.models:
        try:
            found = contest(name, options.rounds, options.seconds)
        except Exception as error:  # a model that a tool cannot take is said, the others go on
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}", flush=True)
            continue
        row = {"name": name, **found, **work.stamp()}
        journal.add(row)
        print(f"{name}: " + "; ".join(
            f"{k} {v['ms']:.4g} ms, error {v['error']:.2g}" for k, v in row["tools"].items()),
            flush=True)
    known = journal.rows()
    text = report([known[n] for n in QUANTISE if n in known], options)
    work.results("quantise.md").write_text(text)
    print(f"\n{text}")
    return 0


class Case:
    """One model as ONNX: `seen` to calibrate with and `fresh` to judge by, each a list of inputs;
    `labels` of the fresh images where there are any."""

    def __init__(self, name: str, folder: Path) -> None:
        import torch
        torch.manual_seed(0)
        self.onnx, self.labels = folder / "float.onnx", None
        if name in trained_digits.MAKERS:
            model, train, test, self.labels = trained_digits.made(name)
            self.seen: list[Batch] = [{"x0": train[i:i + 1]} for i in range(IMAGES)]
            self.fresh: list[Batch] = [{"x0": test[i:i + 1]} for i in range(len(test))]
        else:
            from benchmarks.models.seeded import build
            model, given = build(name)
            rng = np.random.default_rng(0)
            own = {f"x{i}": x.numpy() for i, x in enumerate(given)}
            drawn: list[Batch] = [{n: _like(x, rng) for n, x in own.items()}
                                  for _ in range(CALIBRATION + HELD - 1)]
            self.seen, self.fresh = [own, *drawn[HELD:]], drawn[:HELD]
        first = self.seen[0]
        with torch.no_grad():
            torch.onnx.export(model.eval(), tuple(map(torch.from_numpy, first.values())),
                              str(self.onnx), dynamo=True, verbose=False, external_data=False,
                              input_names=[*first])


def _like(x: Array, rng: np.random.Generator) -> Array:
    """Numbers like those of an input; whole ones in another order, so that they stay in range."""
    if x.dtype.kind == "f":
        return np.asarray(rng.normal(x.mean(), x.std(), x.shape), x.dtype)
    return np.asarray(rng.permutation(x, axis=0 if len(x) > 1 else x.ndim - 1))


def contest(name: str, rounds: int, seconds: float) -> Row:
    """Of each tool: milliseconds at one thread, relative error, images that are right."""
    with tempfile.TemporaryDirectory(prefix="quantise-") as folder:
        case = Case(name, Path(folder))
        exact = _onnxruntime(case.onnx)
        want = [exact(x) for x in case.fresh]
        runs: dict[str, Run] = {}
        for tool, make in TOOLS.items():
            if tool == "nncf" and not importlib.util.find_spec("nncf"):
                continue
            try:
                runs[tool] = make(case, Path(folder) / tool)
            except Exception as error:  # a tool that cannot take a model is said
                print(f"{name}: {tool}: {type(error).__name__}: {str(error)[:200]}", flush=True)
        times: dict[str, list[list[float]]] = {tool: [] for tool in runs}
        for _ in range(rounds):
            for tool, run in runs.items():
                times[tool].append(_timed(run, case.fresh[0], seconds))
        tools = {}
        for tool, run in runs.items():
            got = [run(x) for x in case.fresh]
            tools[tool] = {"ms": stats.summary(times[tool]).median, "error": _error(got, want),
                           "right": _right(got, case.labels)}
        return {"tools": tools, "right": _right(want, case.labels),
                "count": len(case.fresh) if case.labels is not None else None}


def _timed(run: Run, x: Batch, seconds: float) -> list[float]:
    found: list[float] = []
    end = time.perf_counter() + seconds
    run(x)
    while time.perf_counter() < end or len(found) < 5:
        start = time.perf_counter()
        run(x)
        found.append(time.perf_counter() - start)
    return found


def _error(got: list[Array], want: list[Array]) -> float:
    lost = sum(float(((a.astype(np.float64) - b) ** 2).sum())
               for a, b in zip(got, want, strict=True))
    return float(np.sqrt(lost / sum(float((b.astype(np.float64) ** 2).sum()) for b in want)))


def _right(got: list[Array], labels: Array | None) -> int | None:
    if labels is None:
        return None
    return int(sum(y.argmax() == label for y, label in zip(got, labels, strict=True)))


# ---- the tools ---------------------------------------------------------------------------------

def _graphtool(method: Any) -> Callable[[Case, Path], Run]:
    def make(case: Case, folder: Path) -> Run:
        import graphtool
        module = graphtool.import_model(case.onnx)
        examples = {n: np.stack([x[n] for x in case.seen]) for n in case.seen[0]}
        small = graphtool.quantise(module, graphtool.Quantisation(method=method), examples)
        loaded = graphtool.load(graphtool.build(small, folder), threads=1)
        return lambda x: np.asarray(next(iter(loaded(**x).values())))
    return make


def _onnxruntime(path: Path) -> Run:
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda x: np.asarray(session.run(None, dict(x))[0])


def _by_onnxruntime(case: Case, folder: Path) -> Run:
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process
    folder.mkdir()
    quant_pre_process(str(case.onnx), str(folder / "plain.onnx"), skip_symbolic_shape=True)

    class Reader:
        def __init__(self) -> None:
            self.rows = iter(case.seen)

        def get_next(self) -> Mapping[str, Array] | None:
            return next(self.rows, None)
    quantize_static(str(folder / "plain.onnx"), str(folder / "q.onnx"), Reader(),
                    quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    return _onnxruntime(folder / "q.onnx")


def _by_nncf(case: Case, folder: Path) -> Run:
    import openvino
    nncf: Any = importlib.import_module("nncf")
    core = openvino.Core()
    small = nncf.quantize(core.read_model(str(case.onnx)), nncf.Dataset(case.seen),
                          subset_size=len(case.seen))
    compiled = core.compile_model(small, "CPU", {"INFERENCE_NUM_THREADS": 1,
                                                 "PERFORMANCE_HINT": "LATENCY"})
    request = compiled.create_infer_request()
    return lambda x: np.asarray(request.infer(dict(x))[0].copy())


TOOLS: dict[str, Callable[[Case, Path], Run]] = {
    OURS: _graphtool("minmax"), f"{OURS} mse": _graphtool("mse"), "onnxruntime": _by_onnxruntime,
    "nncf": _by_nncf}


# ---- the report --------------------------------------------------------------------------------

def _cell(v: Row | None) -> str:
    right = f", {v['right']} right" if v and v["right"] is not None else ""
    return f"{v['ms']:.4g}, {v['error']:.2g}{right}" if v else "–"


def report(rows: list[Row], options: argparse.Namespace) -> str:
    """Markdown: a row a model, and the ratios of time and error to the best peer."""
    first, tools = rows[-1], [t for t in TOOLS if any(t in row["tools"] for row in rows)]
    head = " | ".join(tools)
    out = ["# Quantisation by several tools", "",
           f"{first['date']}, {first['cpu']}, {first['cores']} cores, one thread; static int8, the "
           f"same examples for all; contestants in turns, {options.rounds} rounds of "
           f"{options.seconds} s, medians. Error: √(Σ(y − ŷ)² / Σy²) on inputs that were not "
           f"calibrated on, against float32. Right: of {trained_digits.COUNT} test images, for "
           f"trained models. Command: `{options.command_line}`.", "",
           f"| ms, error | {head} | time ratio | error ratio |",
           "|---|" + "---|" * (len(tools) + 2)]
    faster, nearer = [], []
    for row in rows:
        found = row["tools"]
        peers = [v for k, v in found.items() if not k.startswith(OURS)]
        faster.append(min(p["ms"] for p in peers) / found[OURS]["ms"])
        nearer.append(min(p["error"] for p in peers) / max(found[OURS]["error"], 1e-9))
        cells = [_cell(found.get(tool)) for tool in tools]
        name = row["name"] + (f" ({row['right']} right)" if row["right"] is not None else "")
        out.append(f"| {name} | {' | '.join(cells)} | {faster[-1]:.2f} | {nearer[-1]:.2f} |")
    out += ["", "Ratios: the best peer's time, and the best peer's error, over graphtool's "
                "(min-max). Geometric mean of "
                f"time {stats.geometric_mean(faster):.2f}, of error "
                f"{stats.geometric_mean(nearer):.2f}.", ""]
    return "\n".join(out)
