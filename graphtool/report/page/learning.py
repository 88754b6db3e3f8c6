"""The curves of a training run, from the log.jsonl that `graphtool train --checkpoint` writes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphtool.errors import InputError
from graphtool.io import files
from graphtool.report.page.charts import decades, plot

Row = dict[str, Any]
POINTS = 600  # of a line; more are averaged
WIDTH, HEIGHT = 560, 240
COLOURS = {"step": "#9a9aa0", "training": "#4c78a8", "validation": "#e45756"}
_LOSSES = {"train_loss": "training", "val_loss": "validation"}
_TITLES = {"lr": "learning rate", "grad_norm": "norm of the gradients",
           "val_accuracy": "accuracy of validation", "val_mae": "mean absolute error of validation",
           "examples_per_second": "speed, examples/s"}
_LOGARITHMIC = ("loss", _TITLES["grad_norm"])
_OWN = ("step", "epoch", "steps", "loss", "seconds", *_LOSSES)  # not curves of their own


def read_log(path: Path) -> list[Row]:
    """The rows of a log: those of steps have `step`, those of epochs `steps`. Raises InputError
    GT3147 for a line that is none."""
    rows = []
    for number, line in enumerate(files.read_bytes(path).splitlines(), 1):
        try:
            row = json.loads(line)
            known = isinstance(row, dict) and ("loss" in row if "step" in row else
                                               "train_loss" in row and "steps" in row)
            numbers = {k: float(v) for k, v in row.items()} if known else None
        except (ValueError, TypeError, UnicodeDecodeError, RecursionError):
            numbers = None
        if numbers is None:
            raise InputError("GT3147", "not the log of a training run", where=f"{path}:{number}",
                             hint="`graphtool train … --checkpoint DIR` writes DIR/log.jsonl")
        rows.append(numbers)
    return rows


def curves(rows: Sequence[Row]) -> list[str]:
    """The plots: loss, then every other number of the log, over the steps. The axis of a loss or a
    norm that spans more than a factor of 100 is logarithmic."""
    steps = [r for r in rows if "step" in r]
    epochs = [r for r in rows if "step" not in r]
    losses = [*_points(steps, "step", "loss", "step"),
              *(p for key, name in _LOSSES.items() for p in _points(epochs, "steps", key, name))]
    plots = [_curve(losses, "loss", "Loss")] if losses else []
    for key in dict.fromkeys(k for r in rows for k in r if k not in _OWN):
        lines = [*_points(steps, "step", key, "step"), *_points(epochs, "steps", key, "epoch")]
        title = _TITLES.get(key, key.replace("_", " "))
        plots += [_curve(lines, title, title[0].upper() + title[1:])] if lines else []
    return plots


def _points(rows: Sequence[Row], x: str, y: str, line: str) -> list[Row]:
    points = [(r[x], r[y]) for r in rows if y in r and math.isfinite(r[y])]
    size = max(1, math.ceil(len(points) / POINTS))
    parts = [points[i:i + size] for i in range(0, len(points), size)]
    return [{"step": sum(a for a, _ in p) / len(p), "value": sum(b for _, b in p) / len(p),
             "line": line} for p in parts]


def _curve(points: list[Row], axis: str, title: str) -> str:
    values = [p["value"] for p in points]
    wide = axis in _LOGARITHMIC and min(values) > 0 and max(values) > 100 * min(values)
    lines = list(dict.fromkeys(p["line"] for p in points))
    colour: Row = {"field": "line", "type": "nominal", "title": None, "scale": {
        "domain": lines, "range": [COLOURS.get(n, COLOURS["training"]) for n in lines]}}
    if len(lines) == 1:
        colour["legend"] = None
    return plot({
        "width": WIDTH, "height": HEIGHT, "title": title, "data": {"values": points},
        "mark": {"type": "line", "point": len(points) < 40, "strokeWidth": 1.8},
        "encoding": {
            "x": {"field": "step", "type": "quantitative", "title": "step",
                  "axis": {"tickMinStep": 1, "format": "~s"}, "scale": {"nice": True}},
            "y": {"field": "value", "type": "quantitative", "title": axis,
                  "axis": {"format": ",~r", **({"values": decades(values)} if wide else {})},
                  "scale": {**({"type": "log"} if wide else {"zero": False}), "nice": True}},
            "color": colour}})


def log_lines(rows: Sequence[Row]) -> list[str]:
    """What the run came to, in short."""
    steps = sum("step" in r for r in rows)
    epochs = [r for r in rows if "step" not in r]
    out = [f"steps        {steps}", f"epochs       {len(epochs)}"]
    if epochs:
        out += [f"{key.replace('_', ' '):12} {epochs[-1][key]:.6g}" for key in epochs[-1]
                if key not in ("epoch", "steps")]
        judged = [float(r["val_loss" if "val_loss" in r else "train_loss"]) for r in epochs]
        best = min(judged)
        out.append(f"best         {best:.6g} after epoch {judged.index(best) + 1}")
    return out
