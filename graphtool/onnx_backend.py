"""The backend interface of the onnx package, for the evaluator and for compiled C."""

from graphtool.integrations.onnx_backend import (
    GraphtoolBackend,
    GraphtoolRep,
    prepare,
    run_model,
    run_node,
    supports_device,
)

__all__ = ["GraphtoolBackend", "GraphtoolRep", "prepare", "run_model", "run_node",
           "supports_device"]
