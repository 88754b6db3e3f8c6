"""Quantised forms of the zoo's models, made by onnxruntime's own tools from what `prepare` exports.

Names are MODEL.FORM. Forms: `qdq` and `operators` are static, 8 bits, weights per channel, ranges
from seeded random inputs; `dynamic` quantises activations when it runs.
"""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import work

CALIBRATION = 4  # inputs that ranges are taken from


def export(name: str) -> dict[str, Any]:
    """Write models/NAME/{model.onnx, io.npz, meta.json} from the prepared float model."""
    base, _, form = name.rpartition(".")
    source, target, start = work.prepared(base), work.prepared(name), time.perf_counter()
    logging.disable(logging.WARNING)
    target.folder.mkdir(parents=True, exist_ok=True)
    plain, made = target.folder / "plain.onnx", target.folder / "unfinished.onnx"
    _plain(source.onnx, plain)
    _FORMS[form](source, plain, made)
    plain.unlink()
    shutil.copyfile(source.folder / "io.npz", target.folder / "io.npz")
    meta = {**json.loads((source.folder / "meta.json").read_text()), "name": name, "form": form,
            "seconds": round(time.perf_counter() - start, 2), **work.stamp()}
    (target.folder / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")
    made.rename(target.onnx)  # last: it says that all the rest is there
    return meta


def _plain(source: Path, target: Path) -> None:
    """The model with batch norm folded, as the tools want it, and shapes that are not stale."""
    import onnx
    from onnxruntime.quantization.shape_inference import quant_pre_process
    quant_pre_process(str(source), str(target), skip_symbolic_shape=True)
    model = onnx.load(str(target))
    del model.graph.value_info[:]
    onnx.save(model, str(target))


def _static(form: str, source: work.Prepared, plain: Path, made: Path) -> None:
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    quantize_static(
        str(plain), str(made), _Inputs(source),
        quant_format=QuantFormat.QDQ if form == "qdq" else QuantFormat.QOperator,
        per_channel=True, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)


def _dynamic(source: work.Prepared, plain: Path, made: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic
    quantize_dynamic(str(plain), str(made), weight_type=QuantType.QInt8, per_channel=True)


_FORMS: dict[str, Any] = {"qdq": lambda *a: _static("qdq", *a),
                          "operators": lambda *a: _static("operators", *a), "dynamic": _dynamic}


class _Inputs:
    """The model's own inputs, then seeded ones like them; whole numbers stay as they are."""

    def __init__(self, source: work.Prepared) -> None:
        self.rows = self.drawn(source)

    @staticmethod
    def drawn(source: work.Prepared) -> Iterator[dict[str, Any]]:
        import numpy as np
        rng = np.random.default_rng(0)
        own = dict(zip(source.input_names, source.arrays("in"), strict=True))
        yield own
        for _ in range(CALIBRATION - 1):
            yield {k: rng.normal(x.mean(), x.std(), x.shape).astype(x.dtype)
                   if x.dtype.kind == "f" else x for k, x in own.items()}

    def get_next(self) -> dict[str, Any] | None:
        return next(self.rows, None)

    def set_range(self, start_index: int, end_index: int) -> None:
        pass
