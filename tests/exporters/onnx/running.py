"""An exported model, checked and run: by onnxruntime, or by onnx where that lacks a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

from graphtool.exporters.onnx import model_of
from graphtool.ir.graph import Module

_NO_ARRAY = {onnx.TensorProto.BFLOAT16}  # what onnxruntime hands out no numpy array of
OPTIONS = onnxruntime.SessionOptions()
OPTIONS.log_severity_level = 4
OPTIONS.intra_op_num_threads = 1


def exported(module: Module) -> onnx.ModelProto:
    model = model_of(module)
    onnx.checker.check_model(model, full_check=True)
    return model


def session(model: onnx.ModelProto) -> onnxruntime.InferenceSession | None:
    """None where onnxruntime has no kernel for one of the operators in its types."""
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), OPTIONS,
                                            providers=["CPUExecutionProvider"])
    except Exception as error:
        if "NOT_IMPLEMENTED" not in str(error) and "NotImplemented" not in type(error).__name__:
            raise
        return None


def run(model: onnx.ModelProto, feed: list[Any]) -> tuple[str, list[Any]]:
    """Who ran it, and what it gave."""
    names = [v.name for v in model.graph.input]
    inputs = dict(zip(names, feed, strict=True))
    outputs = {v.type.tensor_type.elem_type for v in model.graph.output}
    found = None if outputs & _NO_ARRAY else session(model)
    if found is None:
        with np.errstate(all="ignore"):
            return "onnx", ReferenceEvaluator(model).run(None, inputs)
    return "onnxruntime", found.run(None, inputs)
