"""The contestants of the zoo: graphtool and the runtimes that read ONNX; compilers.py has the rest.

All get the same files and as many threads as asked for, write into buffers that were bound before
where their interface has such a thing, and compute in float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import compilers, work
from benchmarks.league import Case, Loaded, Peer
from benchmarks.work import Array

# ---- graphtool ----------------------------------------------------------------------------------


def _graphtool_build(case: Case) -> None:
    from graphtool import importers, optimize
    from graphtool.compile.as_is import build
    module = optimize(importers.import_source(str(case.model.onnx)), verify=False)
    build(module, case.cache / "build")


def _graphtool(case: Case) -> Loaded:
    from graphtool.native import runtime
    model = runtime.load(case.cache / "build", case.threads)
    results = model.run(dict(zip((s.name for s in model.inputs), case.model.arrays("in"),
                                 strict=True)))
    return Loaded(model.call, lambda _: list(results.values()))


# ---- runtimes that read ONNX --------------------------------------------------------------------


def _onnxruntime(case: Case) -> Loaded:
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = case.threads, 1
    options.log_severity_level = 4
    session = ort.InferenceSession(str(case.model.onnx), options,
                                   providers=["CPUExecutionProvider"])
    feeds = dict(zip(case.model.input_names, case.model.arrays("in"), strict=True))
    binding = session.io_binding()
    for port in session.get_inputs():
        binding.bind_ortvalue_input(port.name, ort.OrtValue.ortvalue_from_numpy(feeds[port.name]))
    results = [ort.OrtValue.ortvalue_from_numpy(np.empty_like(a))
               for a in case.model.arrays("out")]
    for port, value in zip(session.get_outputs(), results, strict=True):
        binding.bind_ortvalue_output(port.name, value)
    return Loaded(lambda: session.run_with_iobinding(binding),
                  lambda _: [r.numpy() for r in results])


def openvino(case: Case, precision: str = "f32") -> Loaded:
    """OpenVINO, which computes in this type where it can."""
    import openvino as ov
    core = ov.Core()
    compiled = core.compile_model(core.read_model(str(case.model.onnx)), "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision, "NUM_STREAMS": 1,
        "INFERENCE_NUM_THREADS": case.threads})
    request = compiled.create_infer_request()
    arrays = dict(zip(case.model.input_names, case.model.arrays("in"), strict=True))
    tensors = []
    for port in compiled.inputs:
        name = next(n for n in port.get_names() if n in arrays)
        tensors.append(ov.Tensor(arrays[name], shared_memory=True))
        request.set_tensor(port, tensors[-1])

    def outputs(_: Any) -> list[Array]:
        assert tensors  # they must live as long as the request
        return [request.get_output_tensor(i).data.copy() for i in range(len(compiled.outputs))]
    return Loaded(request.infer, outputs)


PEERS: dict[str, Peer] = {p.name: p for p in (
    Peer("graphtool", (), _graphtool, _graphtool_build),
    Peer("onnxruntime", ("onnxruntime",), _onnxruntime),
    Peer("openvino", ("openvino",), openvino),
    Peer("torch", ("torch",), compilers.torch_eager),
    Peer("inductor", ("torch",), compilers.inductor, compilers.inductor_build,
         lambda case: {"TORCHINDUCTOR_CACHE_DIR": str(case.cache / str(case.threads))}, True),
    Peer("jax", ("jax",), compilers.jax, compilers.jax_build, compilers.jax_env, True),
    Peer("iree", ("iree.runtime", "iree.compiler"), compilers.iree, compilers.iree_build,
         lasting=True),
    Peer("tvm", ("tvm",), compilers.tvm, compilers.tvm_build,
         lambda case: {"TVM_NUM_THREADS": str(case.threads)}, True),
)}


def case(model: str, peer: str, threads: int) -> Case:
    return Case(work.prepared(model), threads, work.cache(peer, model))


def facts(case: Case, loaded: Loaded, result: Any) -> dict[str, Any]:
    """The error against float64."""
    got = loaded.outputs(result)
    return {"error64": work.error_of(got, case.model.arrays("out64"))}
