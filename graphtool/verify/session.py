"""onnxruntime in this process: a session on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphtool.errors import InputError


def onnx_session(path: Path, threads: int = 0) -> Any:
    """An onnxruntime session on the CPU. Raises InputError GT3043 where it refuses the model."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    try:
        return onnxruntime.InferenceSession(str(path), options,
                                            providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has no common base for its faults
        raise InputError("GT3043", f"onnxruntime: {_first_line(error)}",
                         where=str(path)) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
